"""The rules of recall in the plainest Python: load everything, filter, sort, cut.

Slow and obvious on purpose; shares no code with the package. `recall_by_concept_names` returns
dictionaries with the fields of `ConceptMatch`, so tests compare with `dataclasses.asdict`.
"""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

Row = dict[str, Any]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
SOURCE_ORDER = {"observation": 0, "record": 1, "document_gist": 2, "document_section": 2}


class NoSuchProjectError(Exception):
    """The project asked for has no row of exactly that name."""


# --- timestamps ----------------------------------------------------------------------------------

READABLE_SHAPES = {
    day + clock + zone
    for day in ["0000-00-00"]
    for clock in [sep + time for sep in " T" for time in ("00:00", "00:00:00")]
    for zone in ("", "Z", "+00:00", "-00:00")
} | {"0000-00-00"}


def shape_of(text: str) -> str:
    """The text with each ASCII digit replaced by 0: what a format looks like."""
    return "".join("0" if character in "0123456789" else character for character in text)


def instant(value: object) -> datetime | None:
    """The moment a timestamp column names, or None when it cannot be read."""
    if not isinstance(value, str):
        return None
    text, fraction = without_fraction(value)
    if shape_of(text) not in READABLE_SHAPES:
        return None
    clock = text[11:16] or "00:00"
    seconds = text[17:19] if text[16:17] == ":" else "00"
    zone = text[19:] if text[16:17] == ":" else text[16:]
    try:
        local = datetime(
            int(text[0:4]),
            int(text[5:7]),
            int(text[8:10]),
            int(clock[0:2]),
            int(clock[3:5]),
            int(seconds),
            int((fraction + "000000")[:6]),
            tzinfo=timezone.utc,
        )
        return local - offset(zone)
    except (ValueError, OverflowError):
        return None


def without_fraction(text: str) -> tuple[str, str]:
    """Split the digits after the seconds' point off: ('…:00Z', '25') from '…:00.25Z'."""
    before, point, after = text.partition(".")
    digits = ""
    while after and after[0] in "0123456789":
        digits, after = digits + after[0], after[1:]
    if not point:
        return text, ""
    if not digits or shape_of(before)[11:] != "00:00:00":
        return "unreadable", ""
    return before + after, digits


def offset(zone: str) -> timedelta:
    """How far local time is ahead of UTC."""
    if zone in ("", "Z"):
        return timedelta(0)
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > 23 or minutes > 59:
        raise ValueError(zone)
    return (-1 if zone[0] == "-" else 1) * timedelta(hours=hours, minutes=minutes)


# --- names ---------------------------------------------------------------------------------------


def folded(name: str) -> str:
    """Equal for two names that are one name: composition, case and white space do not matter."""
    composed = unicodedata.normalize("NFC", " ".join(name.split()))
    return unicodedata.normalize("NFC", composed.casefold())


def resolve(conn: sqlite3.Connection, asked: Iterable[str]) -> list[tuple[str, set[int]]]:
    """Each known name once, in the order asked, as its reported spelling and its concepts' ids."""
    found: dict[str, tuple[str, set[int]]] = {}
    concepts = rows(conn, "concepts")
    for name in asked:
        same = [concept for concept in concepts if folded(concept["name"]) == folded(name) != ""]
        spellings = sorted(concept["name"] for concept in same)
        if same and folded(name) not in found:
            spelling = name if name in spellings else spellings[0]
            found[folded(name)] = (spelling, {concept["id"] for concept in same})
    return list(found.values())


# --- what is tagged ------------------------------------------------------------------------------

KINDS = {
    "observation": ("Observation", "observations"),
    "record": ("Record", "records"),
    "document_gist": ("Document", "document_sections"),
    "document_section": ("Section", "document_sections"),
}


def recall_by_concept_names(
    conn: sqlite3.Connection,
    names: Iterable[str],
    limit: int | None = None,
    *,
    project: str | None = None,
) -> list[Row]:
    """Everything tagged with one of the names, best first."""
    owners = {row["id"]: row["name"] for row in rows(conn, "projects")}
    if project is not None and project not in owners.values():
        raise NoSuchProjectError(project)
    asked = resolve(conn, names)
    matches = []
    for item in [*observations(conn), *records(conn), *sections(conn)]:
        item["project"] = owners.get(item["project_id"])
        tags = item.pop("tags")
        item["concepts"] = tuple(spelling for spelling, ids in asked if ids & tags)
        item["match_count"] = len(item["concepts"])
        item["kind"], item["item_table"] = KINDS[item["source_type"]]
        item["key"] = (item["id"],)
        if item["match_count"] and (project is None or item["project"] == project):
            matches.append(item)
    matches.sort(key=rank)
    return matches if limit is None or limit <= 0 else matches[:limit]


def projects_of(
    conn: sqlite3.Connection, names: Iterable[str], *, project: str | None = None
) -> list[str]:
    """The names of the projects that are tagged with one of the names."""
    concept_ids = {concept for _, ids in resolve(conn, names) for concept in ids}
    tagged = {
        row["project_id"]
        for row in rows(conn, "project_concepts")
        if row["concept_id"] in concept_ids
    }
    found = {row["name"] for row in rows(conn, "projects") if row["id"] in tagged}
    return sorted(name for name in found if project is None or name == project)


def rank(item: Row) -> tuple[int, int, int, int, int]:
    """Most concepts first, then newest (unknown times last), then kind of source, then id."""
    when = item["created_at"]
    unknown = when is None
    age = 0 if unknown else -((when - EPOCH) // timedelta(microseconds=1))
    return (-item["match_count"], int(unknown), age, SOURCE_ORDER[item["source_type"]], item["id"])


def observations(conn: sqlite3.Connection) -> list[Row]:
    """Every observation as a match to be."""
    return [
        {
            "source_type": "observation",
            "id": row["id"],
            "project_id": row.get("project_id"),
            "title": "",
            "body": row["body"],
            "created_at": instant(row.get("created_at")),
            "summary_status": None,
            "summary_stale": None,
            "status": None,
            "superseded_by": newer(conn, "observation", row["id"]),
            "place": None,
            "passage": None,
            "layers": (),
            "tags": tags(conn, "observation_concepts", "observation_id", row["id"]),
        }
        for row in rows(conn, "observations")
    ]


def records(conn: sqlite3.Connection) -> list[Row]:
    """Every decision record as a match to be."""
    return [
        {
            "source_type": "record",
            "id": row["id"],
            "project_id": row["project_id"],
            "title": row["title"],
            "body": row["body"],
            "created_at": instant(row["ingested_at"]),
            "summary_status": None,
            "summary_stale": None,
            "status": row["status"],
            "superseded_by": newer(conn, "record", row["id"]),
            "place": None,
            "passage": None,
            "layers": (),
            "tags": tags(conn, "record_concepts", "record_id", row["id"]),
        }
        for row in rows(conn, "records")
    ]


def sections(conn: sqlite3.Connection) -> list[Row]:
    """Every gist and section of a document as a match to be; its document may be missing."""
    documents = {row["id"]: row for row in rows(conn, "documents")}
    found = []
    for row in rows(conn, "document_sections"):
        document = documents.get(row["document_id"], {"title": "", "project_id": None})
        gist = row["level"] == "gist"
        parts = [document["title"], "" if gist else row["heading"]]
        item = {
            "source_type": "document_gist" if gist else "document_section",
            "id": row["id"],
            "project_id": document["project_id"],
            "title": " / ".join(part for part in parts if part),
            "body": row["summary_body"] if row["summary_status"] == "reviewed" else "",
            "created_at": instant(row["created_at"]),
            "summary_status": row["summary_status"],
            "summary_stale": bool(row["summary_stale"]),
            "status": None,
            "superseded_by": (),
            "place": None,
            "passage": None,
            "layers": (),
            "tags": tags(conn, "document_section_concepts", "section_id", row["id"]),
        }
        found.append(item)
    return found


def newer(conn: sqlite3.Connection, kind: str, item_id: int) -> tuple[str, ...]:
    """References to the existing items that supersede this one."""
    existing = {row["id"] for row in rows(conn, f"{kind}s")}
    by = {
        row["from_id"]
        for row in rows(conn, f"{kind}_relations")
        if row["to_id"] == item_id and row["relationship"] == "supersedes"
    }
    return tuple(f"{kind}:{new}" for new in sorted(by & existing))


def tags(conn: sqlite3.Connection, table: str, column: str, item_id: int) -> set[int]:
    """The ids of the concepts an item is linked to."""
    return {row["concept_id"] for row in rows(conn, table) if row[column] == item_id}


def rows(conn: sqlite3.Connection, table: str) -> list[Row]:
    """All rows of a table as dictionaries; none when there is no such table."""
    cursor = conn.cursor()
    cursor.row_factory = None
    names = [name for (name,) in cursor.execute("SELECT name FROM sqlite_master")]
    if table not in names:
        return []
    cursor.execute(f"SELECT * FROM {table}")
    columns = [column[0] for column in cursor.description]
    return [dict(zip(columns, values, strict=True)) for values in cursor.fetchall()]

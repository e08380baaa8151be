"""Builds the demo: a knowledge database made of this project's own decision records.

The records are ``decisions/*.md`` of the package; projects, observations, a document and the
descriptions of concepts are in ``demo_data``. The same input gives the same rows: every time and
every identifier comes from the data.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import stat
import sys
import tempfile
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .decision_records import DecisionRecord, read_decisions, wikilinks
from .errors import RecallError

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from importlib.resources.abc import Traversable
    else:
        from importlib.abc import Traversable

APPLICATION_ID = 0x64637264  # "dcrd"
"""Marks a file as made here; the programs that own knowledge databases leave it 0."""

SUGGESTED_QUESTION = "How does the matcher decide on word boundaries, and what about permissions?"

QUESTION_WITHOUT_CONCEPT = "What happens when somebody pastes something very long?"
"""Names no concept of the demo; it is answered where that is indexed."""

_PACKAGE = "datasette_concept_recall"
_BUILT_AT = "2026-11-30 00:00:00"  # the time of rows whose data has none
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "demo.datasette-concept-recall")
_CITATION = re.compile(r"(?:dr-)?[0-9]{4}", re.IGNORECASE)  # names a record, not a concept
_LINKS = {
    "projects": ("project_concepts", "project_id"),
    "observations": ("observation_concepts", "observation_id"),
    "records": ("record_concepts", "record_id"),
    "document_sections": ("document_section_concepts", "section_id"),
}


class DemoRefused(RecallError):
    """The demo cannot be written to this place; the message says why."""


@dataclass(frozen=True)
class DemoSummary:
    """What a demo database holds, and a question that finds something in it."""

    path: Path
    projects: int
    concepts: int
    observations: int
    records: int
    documents: int
    sections: int
    question: str = SUGGESTED_QUESTION


def build_demo(path: Path, decisions: Traversable | Path | None = None) -> DemoSummary:
    """Write the demo database to ``path``, where only an earlier demo may be.

    The records are those of the folder ``decisions``, or of the package. The file is finished
    beside its place and then moved there, so a failure leaves everything as it was.
    """
    target = Path(os.path.realpath(path))
    package = files(_PACKAGE)
    try:
        _refuse_foreign(target)
        records = read_decisions(decisions or package / "decisions")
        with tempfile.TemporaryDirectory(prefix=".concept-recall-", dir=target.parent) as folder:
            draft = Path(folder) / "demo.db"
            with contextlib.closing(sqlite3.connect(draft)) as conn:
                _fill(conn, package / "demo_data", records)
                summary = _summary(conn, path)
            draft.replace(target)
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise DemoRefused(f"The demo cannot be written to {path}: {reason}") from error
    return summary


def _refuse_foreign(target: Path) -> None:
    """Raise `DemoRefused` unless the place is free, or taken by a demo that nobody writes to."""
    if not target.parent.is_dir():
        raise DemoRefused(f"There is no folder {target.parent}")
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and stat.S_ISDIR(mode):
        raise DemoRefused(f"{target} is a folder; name a file in it")
    if mode is not None and not (stat.S_ISREG(mode) and _is_demo(target)):
        raise DemoRefused(f"{target} exists and is not a demo database; it is left as it is")
    for log in (Path(f"{target}-wal"), Path(f"{target}-journal")):
        # SQLite would apply what is left beside the old file to the new one.
        if log.exists() and log.stat().st_size:
            raise DemoRefused(f"{log} holds changes of another program; close it first")


def _is_demo(path: Path) -> bool:
    """Whether the header has our application id (https://www.sqlite.org/fileformat.html, 1.3)."""
    with path.open("rb") as file:
        header = file.read(72)
    return header[:16] == b"SQLite format 3\0" and header[68:] == APPLICATION_ID.to_bytes(4, "big")


def _fill(conn: sqlite3.Connection, data: Traversable, records: Sequence[DecisionRecord]) -> None:
    conn.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    conn.execute("PRAGMA foreign_keys = ON")
    conn.executescript((data / "schema.sql").read_text(encoding="utf-8"))
    writer = _Writer(conn, _load(data, "concepts"), searchable=_create_search_table(conn))
    with conn:
        writer.add_projects(_load(data, "projects"))
        writer.add_records(records)
        writer.add_observations(_load(data, "observations"))
        writer.add_document(_load(data, "document"))


def _load(data: Traversable, name: str) -> Any:
    return json.loads((data / f"{name}.json").read_text(encoding="utf-8"))


def _create_search_table(conn: sqlite3.Connection) -> bool:
    """Create kb_fts where SQLite has FTS5; knowledge databases do without it elsewhere."""
    try:
        conn.execute(
            "CREATE VIRTUAL TABLE kb_fts USING fts5(body, kind, label UNINDEXED, descr UNINDEXED,"
            " source_type UNINDEXED, source_id UNINDEXED, project_id UNINDEXED)"
        )
    except sqlite3.OperationalError:
        return False
    return True


def _summary(conn: sqlite3.Connection, path: Path) -> DemoSummary:
    tables = ("projects", "concepts", "observations", "records", "documents", "document_sections")
    return DemoSummary(
        path, *(conn.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables)
    )


class _Writer:
    """Adds rows as the programs that own knowledge databases do, but with fixed times and ids."""

    def __init__(
        self, conn: sqlite3.Connection, descriptions: Mapping[str, str], searchable: bool
    ) -> None:
        self._conn = conn
        self._descriptions = {name.lower(): text for name, text in descriptions.items()}
        self._searchable = searchable
        self._projects: dict[str | None, int | None] = {None: None}

    def add_projects(self, projects: Sequence[Mapping[str, Any]]) -> None:
        for project in projects:
            values = {key: project[key] for key in ("name", "description", "status", "created_at")}
            row = self._insert("projects", updated_at=project["created_at"], **values)
            self._projects[project["name"]] = row
            name, description = project["name"], project["description"]
            self._index(f"{name} {description}", "project", name, description, "project", row, row)
            self._tag("projects", row, project["concepts"])

    def add_records(self, records: Sequence[DecisionRecord]) -> None:
        """Add decisions, which all belong to the first project, and what they supersede."""
        rows = {record.id: self._add_record(record) for record in records}
        for record in records:
            for old in record.supersedes:
                self._supersede("record_relations", rows[record.id], rows[old])

    def _add_record(self, record: DecisionRecord) -> int:
        project, project_id = list(self._projects.items())[1]
        row = self._insert(
            "records",
            record_id=record.id,
            project_id=project_id,
            path=f"docs/decisions/{record.file}",
            title=record.title,
            date=record.date,
            status=record.status,
            kind=record.kind,
            body=record.body,
            checksum=record.checksum,
            ingested_at=f"{record.date} 00:00:00",
            workspace=project,
        )
        text, label = f"{record.title}\n{record.body}", f"DR-{record.id}"
        self._index(text, record.kind, label, record.title, "record", row, project_id)
        self._tag("records", row, record.concepts)
        return row

    def add_observations(self, observations: Sequence[Mapping[str, Any]]) -> None:
        """Add observations; the first has the id 1, and ``supersedes`` is the id of an earlier."""
        for observation in observations:
            values = {key: observation[key] for key in ("kind", "body", "created_at")}
            project_id = self._projects[observation["project"]]
            row = self._insert("observations", project_id=project_id, **values)
            text, kind = observation["body"], observation["kind"]
            self._index(text, kind, "", "", "observation", row, project_id)
            self._tag("observations", row, observation["concepts"])
            if "supersedes" in observation:
                self._supersede("observation_relations", row, observation["supersedes"])

    def add_document(self, document: Mapping[str, Any]) -> None:
        """Add a document; its first section is the gist, which carries the concepts of all."""
        keys = ("title", "format", "path", "published_date")
        row = self._insert(
            "documents",
            project_id=self._projects[document["project"]],
            ingested_at=document["created_at"],
            **{key: document[key] for key in keys},
        )
        gist, *sections = document["sections"]
        whole = "\n\n".join(section["body"] for section in sections)
        self._add_section(document, row, 0, gist, whole)
        for seq, section in enumerate(sections, 1):
            self._add_section(document, row, seq, section, section["body"])

    def _add_section(
        self,
        document: Mapping[str, Any],
        parent: int,
        seq: int,
        section: Mapping[str, Any],
        text: str,
    ) -> None:
        level = "section" if seq else "gist"
        row = self._insert(
            "document_sections",
            document_id=parent,
            level=level,
            seq=seq,
            heading=section["heading"],
            body=section["body"],
            summary_body=section["summary"],
            summary_status=section["status"],
            summary_stale=int(section["stale"]),
            source_size=len(text.split()),
            generated_by="human",
            created_at=document["created_at"],
        )
        if section["status"] == "reviewed":
            label = " — ".join(filter(None, [document["title"], section["heading"]]))
            project_id = self._projects[document["project"]]
            body, heading = section["summary"], section["heading"]
            self._index(body, level, label, heading, "document_summary", row, project_id)
        self._tag("document_sections", row, wikilinks(text))

    def _tag(self, table: str, row: int, names: Iterable[str]) -> None:
        links, column = _LINKS[table]
        for name in names:
            if not _CITATION.fullmatch(name):
                self._conn.execute(
                    f"INSERT OR IGNORE INTO {links} ({column}, concept_id) VALUES (?, ?)",
                    (row, self._concept(name)),
                )

    def _concept(self, name: str) -> int:
        """The id of a concept, in whatever case it was first written; a new one if need be."""
        known = self._conn.execute(
            "SELECT id FROM concepts WHERE name = ? COLLATE NOCASE", (name,)
        ).fetchone()
        if known:
            return int(known[0])
        description = self._descriptions.get(name.lower(), "")
        times = {"created_at": _BUILT_AT, "updated_at": _BUILT_AT}
        row = self._insert("concepts", name=name, description=description, **times)
        self._index(f"{name} {description}", "concept", name, description, "concept", row, 0)
        return row

    def _supersede(self, table: str, newer: int, older: int) -> None:
        self._conn.execute(f"INSERT INTO {table} VALUES (?, ?, 'supersedes')", (newer, older))

    def _index(self, *values: str | int | None) -> None:
        if self._searchable:
            self._conn.execute("INSERT INTO kb_fts VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def _insert(self, table: str, **values: object) -> int:
        """Add a row, with a uuid that follows from its values, and return its id."""
        values["uuid"] = str(uuid.uuid5(_NAMESPACE, f"{table} {values}"))
        values["origin_host"] = "demo"
        marks = ", ".join("?" * len(values))
        sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})"
        return int(self._conn.execute(sql, tuple(values.values())).lastrowid or 0)

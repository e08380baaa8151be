"""What there is to see of an index, read on a connection that belongs to somebody else.

Each function is given the tables that may be seen; what would come from another one is None.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ..errors import BadParameter
from ..mapping import Mapping
from ..pieces import joined
from ..reading import Reader, reading
from ..timestamps import parse_instant
from .turns import Turn

PASSAGES_PER_PAGE = 100
LETTERS_PER_PAGE = 200_000
"""About so many at most, since chunks may be large; but there is always a chunk on a page."""
EXAMPLES = 10
"""So many documents of each kind of trouble are named."""

TABLES_OF_DOCUMENT = frozenset({"document", "chunk"})
"""Without these there is nothing of a document to be seen."""
MORE_OF_DOCUMENT = frozenset({"source", "document_concept", "concept", "redaction", "location"})
TABLES_OF_SOURCES = frozenset({"source"})
MORE_OF_SOURCES = frozenset(
    {"run", "document", "skipped", "failure", "index_version", "setting", "request"}
)


def is_index(mapping: Mapping) -> bool:
    """Whether a mapping is that of an index."""
    return any(source.passages is not None for source in mapping.sources)


# --- one document ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Passage:
    """A chunk as it is read: ``text`` is ``[start:end]`` of the document, ``shown`` what of it is
    shown with it, so that what two chunks have in common is there once."""

    id: int
    place: str
    text: str
    start: int
    end: int
    shown: str


@dataclass(frozen=True)
class DocumentView:
    """A document with one page of its passages, of which there are ``total``.

    ``marked`` is the chunk that was asked for, None when the document has no such chunk.
    ``redactions`` are (family, place, removed), ``locations`` (folder, position, flags).
    """

    id: int
    title: str
    kind: str
    path: str
    created_at: str | None
    indexed_at: str | None
    problem: str | None
    is_gone: bool
    is_unverified: bool
    source: str | None
    concepts: list[str] | None
    redactions: list[tuple[str, str, str]] | None
    locations: list[tuple[str, str, str]] | None
    passages: list[Passage]
    total: int
    page: int
    pages: int
    marked: int | None


_DOCUMENT = (
    "select title, kind, path, created_at, indexed_at, problem, orphaned_in is not null,"
    " is_unverified, source_id, live_generation from document"
    " where id = ? and live_generation is not null"
)


def read_document(
    conn: sqlite3.Connection,
    document_id: int,
    visible: Set[str],
    *,
    chunk: int | None = None,
    page: int | None = None,
    size: int | None = None,
) -> DocumentView | None:
    """A document as it is searched, None when there is none of this number.

    ``page`` counts from 1; without it the page is that of ``chunk``, or the first. Pages are of
    ``size`` chunks, or of as many as can be read well. Raises `BadParameter` for a page that there
    is not, and `sqlite3.Error`.
    """
    with reading(conn) as reader:
        for *described, source_id, generation in reader.rows(_DOCUMENT, document_id):
            ((total,),) = reader.rows(
                "select count(*) from chunk where generation_id = ?", generation
            )
            size = size or _page_size(reader, generation, total)
            before = None if chunk is None else _before(reader, generation, chunk)
            pages = max(1, -(-total // size))
            if page is None:
                page = (before or 0) // size + 1
            if not 1 <= page <= pages:
                raise BadParameter(f"page is not a whole number from 1 to {pages}")
            marked = None if before is None else chunk
            title, kind, path, created_at, indexed_at, problem, is_gone, is_unverified = described
            return DocumentView(
                id=document_id,
                title=title,
                kind=kind,
                path=path,
                created_at=created_at,
                indexed_at=indexed_at,
                problem=problem,
                is_gone=bool(is_gone),
                is_unverified=bool(is_unverified),
                **_around(reader, visible, document_id, source_id, generation),
                passages=_passages(reader, generation, (page - 1) * size, size, marked),
                total=total,
                page=page,
                pages=pages,
                marked=marked,
            )
    return None


def _page_size(reader: Reader, generation: int, total: int) -> int:
    rows = reader.rows(
        "select end_offset from chunk where generation_id = ? order by position desc limit 1",
        generation,
    )
    letters = rows[0][0] if rows else 0
    fitting = LETTERS_PER_PAGE * total // max(letters, 1)
    return max(1, min(PASSAGES_PER_PAGE, fitting))


def _before(reader: Reader, generation: int, chunk: int) -> int | None:
    """How many chunks stand before one, None when it is not of this generation."""
    ((known, before),) = reader.rows(
        "select count(*), (select count(*) from chunk b where b.generation_id = ?1"
        " and b.position < c.position) from chunk c where c.generation_id = ?1 and c.id = ?2",
        generation,
        chunk,
    )
    return before if known else None


def _around(
    reader: Reader, visible: Set[str], document_id: int, source_id: int, generation: int
) -> dict[str, Any]:
    """What other tables have on a document."""

    def rows(tables: Set[str], sql: str, key: int) -> list[tuple[Any, ...]] | None:
        return reader.rows(sql, key) if tables <= visible else None

    source = rows({"source"}, "select name from source where id = ?", source_id)
    concepts = rows(
        {"document_concept", "concept"},
        "select c.name from document_concept l join concept c on c.id = l.concept_id"
        " where l.document_id = ? order by c.name collate nocase, c.name",
        document_id,
    )
    return {
        "source": source[0][0] if source else None,
        "concepts": None if concepts is None else [name for (name,) in concepts],
        "redactions": rows(
            {"redaction"},
            "select family, place, removed from redaction where generation_id = ? order by id",
            generation,
        ),
        "locations": rows(
            {"location"},
            "select folder, position, flags from location where document_id = ?"
            " order by folder, position",
            document_id,
        ),
    }


def _passages(
    reader: Reader, generation: int, first: int, size: int, marked: int | None
) -> list[Passage]:
    """``size`` chunks after ``first`` ones. The one before is read as well, for what is said in
    both of them."""
    skipped = max(first - 1, 0)
    rows = reader.rows(
        "select id, place, text, start_offset, end_offset from chunk where generation_id = ?"
        " order by position limit ? offset ?",
        generation,
        size + first - skipped,
        skipped,
    )
    shown = _shown([row[2:] for row in rows], [row[0] for row in rows], marked)
    found = [
        Passage(id_, place, text, start, end, own)
        for (id_, place, text, start, end), own in zip(rows, shown, strict=True)
    ]
    return found[first - skipped :]


def _shown(pieces: list[tuple[str, int, int]], ids: list[int], marked: int | None) -> list[str]:
    """What is shown of each chunk: what those before it do not say. The marked one is shown
    whole, and those before it end where it begins."""
    text, spans = joined(pieces)
    ends = [end for _, end in spans]
    starts = [0, *ends[:-1]]
    if marked in ids:
        at = ids.index(marked)
        starts[at] = spans[at][0]
        ends[:at] = [min(end, starts[at]) for end in ends[:at]]
        starts[:at] = [min(start, starts[at]) for start in starts[:at]]
    return [_laid_out(text, start, end) for start, end in zip(starts, ends, strict=True)]


def _laid_out(text: str, start: int, end: int) -> str:
    """A piece as it stands on lines of its own: indented only where it begins a line."""
    piece = text[start:end]
    if start and text[start - 1] not in "\r\n":
        piece = piece.lstrip(" \t")
    return piece.strip("\r\n")


# --- all sources ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunView:
    """A step of a source: what was asked for, and what it did so far or until it ended."""

    reason: str
    started_at: str
    ended_at: str | None
    outcome: str | None
    known: int
    done: int
    indexed: int
    unchanged: int
    skipped: int
    failed: int
    removed: int
    current: str | None

    def seconds_left(self, now: datetime) -> int | None:
        """How long a running step will take at the pace of what it read so far."""
        began = parse_instant(self.started_at)
        read = self.done - self.unchanged or self.done
        if began is None or read <= 0 or self.known < self.done:
            return None
        passed = max(0.0, (now - began).total_seconds())
        return round(passed * (self.known - self.done) / read)


@dataclass(frozen=True)
class SkippedGroup:
    """Documents that are left alone for the same reason; ``examples`` are (path, message)."""

    code: str
    count: int
    messages: int
    examples: list[tuple[str, str]]


@dataclass(frozen=True)
class Failed:
    """Documents that are tried again; ``examples`` are (path, message)."""

    count: int
    examples: list[tuple[str, str]]


@dataclass(frozen=True)
class SourceView:
    """A source. ``versions`` are its signatures by state, ``live`` and ``building``; ``documents``
    are those that are searched, ``asked`` what waits for whoever keeps the index fresh."""

    id: int
    name: str
    kind: str
    origin: str
    state: str
    problem: str | None
    held_removals: int
    is_leaving: bool
    next_run_at: str | None
    versions: dict[str, str] | None
    documents: int | None
    running: RunView | None
    last_run: RunView | None
    skipped: list[SkippedGroup] | None
    failed: Failed | None
    asked: list[str] | None


@dataclass(frozen=True)
class IndexView:
    """All sources of an index. ``is_kept`` tells that a program keeps it fresh, ``is_working``
    that one is at work on it."""

    sources: list[SourceView]
    is_paused: bool | None
    is_kept: bool
    is_working: bool


def read_sources(conn: sqlite3.Connection, path: Path | None, visible: Set[str]) -> IndexView:
    """The sources of the index in a file, in the order in which they were added.

    Raises `sqlite3.Error`.
    """
    with reading(conn) as reader:
        rows = reader.rows(
            "select id, name, kind, origin, state, problem, held_removals, is_leaving, next_run_at"
            " from source order by id"
        )
        documents = _documents(reader) if "document" in visible else None
        sources = [_source(reader, visible, row, documents) for row in rows]
        is_paused = _is_paused(reader) if "setting" in visible else None
    claims_to_run = any(source.state == "running" for source in sources)
    return IndexView(
        sources,
        is_paused,
        is_kept=path is not None and Turn(path, "keeper").is_taken(),
        # Not asked without need: whoever begins at that moment would find the turn taken.
        is_working=claims_to_run and path is not None and Turn(path).is_taken(),
    )


def _is_paused(reader: Reader) -> bool:
    return any(
        json.loads(value)
        for (value,) in reader.rows("select value from setting where name = 'paused'")
    )


def _documents(reader: Reader) -> dict[int, int]:
    """How many documents of each source are searched."""
    return dict(
        reader.rows(
            "select source_id, count(*) from document where live_generation is not null"
            " group by source_id"
        )
    )


def _source(
    reader: Reader, visible: Set[str], row: tuple[Any, ...], documents: dict[int, int] | None
) -> SourceView:
    id_, name, kind, origin, state, problem, held, is_leaving, next_run_at = row

    def rows(table: str, sql: str) -> list[tuple[Any, ...]] | None:
        return reader.rows(sql, id_) if table in visible else None

    versions = rows(
        "index_version", "select state, signature from index_version where source_id = ?"
    )
    asked = rows(
        "request",
        "select action from request where source_id is null or source_id = ?"
        " group by action order by min(id)",
    )
    running, last_run = _runs(reader, id_) if "run" in visible else (None, None)
    return SourceView(
        id=id_,
        name=name,
        kind=kind,
        origin=origin,
        state=state,
        problem=problem,
        held_removals=held,
        is_leaving=bool(is_leaving),
        next_run_at=next_run_at,
        versions=None if versions is None else dict(versions),
        documents=None if documents is None else documents.get(id_, 0),
        running=running,
        last_run=last_run,
        skipped=_skipped(reader, id_) if "skipped" in visible else None,
        failed=_failed(reader, id_) if "failure" in visible else None,
        asked=None if asked is None else [action for (action,) in asked],
    )


_RUN = (
    "select reason, started_at, ended_at, outcome, known, done, indexed, unchanged, skipped,"
    " failed, removed, current from run where source_id = ? and ended_at is"
)


def _runs(reader: Reader, source_id: int) -> tuple[RunView | None, RunView | None]:
    """The step that has not ended, and the last one that has."""
    found = [
        reader.rows(f"{_RUN} {condition} order by id desc limit 1", source_id)
        for condition in ("null", "not null")
    ]
    running, ended = (RunView(*rows[0]) if rows else None for rows in found)
    return running, ended


def _skipped(reader: Reader, source_id: int) -> list[SkippedGroup]:
    groups = reader.rows(
        "select code, count(*), count(distinct message) from skipped where source_id = ?"
        " group by code order by count(*) desc, code",
        source_id,
    )
    examples = "select path, message from skipped where source_id = ? and code = ?"
    return [
        SkippedGroup(
            code,
            count,
            messages,
            reader.rows(f"{examples} order by path limit {EXAMPLES}", source_id, code),
        )
        for code, count, messages in groups
    ]


def _failed(reader: Reader, source_id: int) -> Failed:
    ((count,),) = reader.rows("select count(*) from failure where source_id = ?", source_id)
    sql = f"select path, message from failure where source_id = ? order by path limit {EXAMPLES}"
    return Failed(count, reader.rows(sql, source_id))

"""The sources of an index with what is known of them, read on a connection of somebody else.

It is given the tables that may be seen; what would come from another one is None.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ..reading import Reader, reading
from ..timestamps import parse_instant
from .turns import Turn, is_kept

EXAMPLES = 10
"""So many documents of each kind of trouble are named."""

TABLES_OF_SOURCES = frozenset({"source"})
MORE_OF_SOURCES = frozenset(
    {"run", "document", "skipped", "failure", "index_version", "setting", "request"}
)


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
        is_kept=path is not None and is_kept(path),
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

"""The index database: its connection and transactions, sources, versions, runs and requests.

`documents` holds what is written of documents; there is no SQL of the index anywhere else.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..errors import DatabaseUnreadable, RecallError
from . import requests
from .clock import Clock, SystemClock, stamp
from .tables import is_index, migrate

BUSY_SECONDS = 30.0
"""So long a write waits for another program that writes the same file."""

State = Literal[
    "new", "queued", "running", "waiting", "done", "failed", "held", "unreachable", "refused",
    "broken",
]  # fmt: skip


class NoSuchSource(RecallError):
    """There is no source of this name in the index."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no source named {name!r} in this index")


class StoreUnavailable(RecallError):
    """The index cannot be written at the moment: it is full, locked or damaged."""


@dataclass(frozen=True)
class SourceRow:
    """One source. ``origin`` is the path it was added with, ``options`` what its kind understands,
    ``confidence`` ``local`` when nothing of it may reach a remote embedder."""

    id: int
    name: str
    kind: str
    origin: str
    options: dict[str, Any]
    confidence: str
    state: State
    problem: str | None
    held_removals: int
    approved_removals: int
    linked_up_to: int
    is_leaving: bool
    next_run_at: str | None


@dataclass
class Counts:
    """How far a run is: documents known, and of them done, in which way."""

    known: int = 0
    done: int = 0
    indexed: int = 0
    unchanged: int = 0
    skipped: int = 0
    failed: int = 0
    removed: int = 0
    current: str | None = field(default=None)


_SOURCE = (
    "select id, name, kind, origin, options, confidence, state, problem,"
    " held_removals, approved_removals, linked_up_to, is_leaving, next_run_at from source"
)


class Store:
    """An open index database; belongs to one thread."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        """Opens an index, or makes one where there is no file. Raises `DatabaseUnreadable`."""
        self.path, self.clock = path, clock or SystemClock()
        if path.is_dir():
            raise DatabaseUnreadable(f"{path} is a folder, not a database")
        try:
            self.conn = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._prepare()
        except DatabaseUnreadable as error:
            raise DatabaseUnreadable(f"{path} cannot be used as an index: {error}") from error
        except sqlite3.Error as error:
            raise DatabaseUnreadable(f"{path} cannot be opened: {error}") from error

        status = path.stat()
        self._file = status.st_dev, status.st_ino

    def _prepare(self) -> None:
        try:
            if is_index(self.conn) or not self.rows("select 1 from sqlite_master limit 1"):
                self.conn.execute("pragma journal_mode = wal")
            migrate(self.conn)
            self.conn.execute("pragma foreign_keys = on")
            self.conn.execute("pragma synchronous = normal")
        except BaseException:
            self.conn.close()
            raise

    def is_replaced(self) -> bool:
        """Whether another file, or none, is where this one was."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return True
        return (status.st_dev, status.st_ino) != self._file

    def close(self) -> None:
        """Closes the connection."""
        self.conn.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def now(self) -> str:
        """The time as it is stored."""
        return stamp(self.clock.now())

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        return self.conn.execute(sql, parameters).fetchall()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of what is written in it, or nothing.

        Raises `StoreUnavailable` when the file is full, locked for too long or damaged.
        """
        if self.conn.in_transaction:  # part of a larger one
            yield self.conn
            return
        try:
            self.conn.execute("begin immediate")
            try:
                yield self.conn
                self.commit()
            except BaseException:
                self.rollback()
                raise
        except sqlite3.IntegrityError:
            raise
        except sqlite3.DatabaseError as error:
            raise StoreUnavailable(f"The index cannot be written: {error}") from error

    def commit(self) -> None:
        """Ends the transaction; the only place where anything becomes true."""
        self.conn.execute("commit")

    def rollback(self) -> None:
        """Undoes what was written since the transaction began, unless SQLite did so itself."""
        if self.conn.in_transaction:
            self.conn.execute("rollback")

    # -- sources ----------------------------------------------------------------------------------

    def sources(self) -> list[SourceRow]:
        """All sources, in the order in which they were added."""
        return [_source(row) for row in self.rows(f"{_SOURCE} order by id")]

    def source(self, source_id: int) -> SourceRow | None:
        """One source, None when it was removed."""
        rows = self.rows(f"{_SOURCE} where id = ?", source_id)
        return _source(rows[0]) if rows else None

    def source_named(self, name: str) -> SourceRow:
        """The source of a name. Raises `NoSuchSource`."""
        rows = self.rows(f"{_SOURCE} where name = ?", name)
        if not rows:
            raise NoSuchSource(name)
        return _source(rows[0])

    def add_source(
        self,
        name: str,
        kind: str,
        origin: str,
        options: dict[str, Any] | None = None,
        confidence: str = "any",
    ) -> SourceRow:
        """Takes note of a source; nothing of it is read. Raises `RecallError` for a taken name."""
        with self.writing() as conn:
            if conn.execute("select 1 from source where name = ?", [name]).fetchone():
                raise RecallError(f"There is a source named {name!r} already")
            cursor = conn.execute(
                "insert into source (name, kind, origin, options, confidence, added_at)"
                " values (?, ?, ?, ?, ?, ?)",
                [name, kind, origin, json.dumps(options or {}), confidence, self.now()],
            )
        return _source(self.rows(f"{_SOURCE} where id = ?", cursor.lastrowid)[0])

    def set_confidence(self, source_id: int, confidence: str) -> None:
        """Whether texts of a source may reach remote embedders: ``any`` or ``local``."""
        with self.writing() as conn:
            conn.execute("update source set confidence = ? where id = ?", [confidence, source_id])

    def set_state(self, source_id: int, state: State, problem: str | None = None) -> None:
        """What is to be seen of a source; the problem is a sentence."""
        with self.writing() as conn:
            conn.execute(
                "update source set state = ?, problem = ? where id = ?",
                [state, problem, source_id],
            )

    def set_next_run(self, source_id: int, moment: str | None) -> None:
        """When a source is looked at again by itself."""
        with self.writing() as conn:
            conn.execute("update source set next_run_at = ? where id = ?", [moment, source_id])

    def hold_removals(self, source_id: int, count: int) -> None:
        """That so many documents are gone and wait for approval of that count; 0: none."""
        with self.writing() as conn:
            conn.execute(
                "update source set held_removals = ?, approved_removals = 0 where id = ?",
                [count, source_id],
            )

    def approve_removals(self, source_id: int, count: int) -> None:
        """That exactly so many documents may be removed. Raises `RecallError` for another count."""
        with self.writing() as conn:
            requests.approve(conn, source_id, count, self.now())

    def set_linked_up_to(self, source_id: int, name_id: int) -> None:
        """Up to which `known_name` the documents of a source were looked through."""
        with self.writing() as conn:
            conn.execute("update source set linked_up_to = ? where id = ?", [name_id, source_id])

    def announce_removal(self, source_id: int) -> None:
        """Tells a run of a source that it is to stop, since the source is about to be removed."""
        with self.writing() as conn:
            conn.execute("update source set is_leaving = 1 where id = ?", [source_id])

    def is_leaving(self, source_id: int) -> bool:
        """Whether a source is about to be removed, or was."""
        return self.rows("select is_leaving from source where id = ?", source_id) != [(0,)]

    def remove_source(self, source_id: int) -> None:
        """Removes a source with all that is known of it: vectors and chunks, then rows."""
        with self.writing() as conn:
            conn.execute(
                "delete from chunk where generation_id in (select g.id from generation g"
                " join document d on d.id = g.document_id where d.source_id = ?)",
                [source_id],
            )
            conn.execute("delete from source where id = ?", [source_id])
            forget_unused_concepts(conn)

    # -- runs -------------------------------------------------------------------------------------

    def begin_run(self, source_id: int, reason: str) -> int:
        """Notes that a step begins; its id. Steps that a killed process left open are closed."""
        with self.writing() as conn:
            conn.execute(
                "update run set ended_at = ?, outcome = 'interrupted', current = null"
                " where source_id = ? and ended_at is null",
                [self.now(), source_id],
            )
            cursor = conn.execute(
                "insert into run (source_id, reason, started_at) values (?, ?, ?)",
                [source_id, reason, self.now()],
            )
            conn.execute(
                "delete from run where source_id = ? and id <= ?",
                [source_id, (cursor.lastrowid or 0) - _RUNS_KEPT],
            )
            conn.execute(
                "update source set state = 'running', problem = null where id = ?", [source_id]
            )
        return cursor.lastrowid or 0

    def note_progress(self, run_id: int, counts: Counts) -> None:
        """How far a run is."""
        values = asdict(counts)
        with self.writing() as conn:
            conn.execute(
                f"update run set {', '.join(f'{name} = ?' for name in values)} where id = ?",
                [*values.values(), run_id],
            )

    def end_run(self, run_id: int, counts: Counts, outcome: str) -> None:
        """Notes how a step ended."""
        counts.current = None
        with self.writing() as conn:
            self.note_progress(run_id, counts)
            conn.execute(
                "update run set ended_at = ?, outcome = ? where id = ?",
                [self.now(), outcome, run_id],
            )

    # -- names ------------------------------------------------------------------------------------

    def learn(self, names: Iterable[str]) -> None:
        """Takes note of names of concepts, for which all texts are looked through."""
        known = {name for (name,) in self.rows("select name from known_name")}
        fresh = sorted(set(names) - known)
        if not fresh:
            return
        with self.writing() as conn:
            conn.executemany(
                "insert or ignore into known_name (name) values (?)", [[name] for name in fresh]
            )

    def known_names(self, after: int = 0) -> list[tuple[int, str]]:
        """The names that were noted, with their numbers, of which later ones are larger."""
        return self.rows("select id, name from known_name where id > ? order by id", after)

    # -- what others ask --------------------------------------------------------------------------

    def ask(self, action: str, source_id: int | None = None) -> None:
        """Leaves a request for whoever keeps this index fresh."""
        with self.writing() as conn:
            requests.request(conn, action, source_id, self.now())

    def take_requests(self) -> list[tuple[str, int | None]]:
        """All requests, each once, in their order: (action, source or None for all)."""
        if not self.rows("select 1 from request limit 1"):
            return []
        with self.writing() as conn:
            found = conn.execute("select action, source_id from request order by id").fetchall()
            conn.execute("delete from request")
        return [(action, source_id) for action, source_id in found]

    def setting(self, name: str, default: Any = None) -> Any:
        """A setting of the index, which any program may change."""
        rows = self.rows("select value from setting where name = ?", name)
        return json.loads(rows[0][0]) if rows else default

    def set_setting(self, name: str, value: object) -> None:
        """Changes a setting."""
        with self.writing() as conn:
            requests.set_setting(conn, name, value)

    def is_paused(self) -> bool:
        """Whether nothing may be started until somebody resumes."""
        return bool(self.setting("paused", False))

    def backup(self, target: Path) -> None:
        """Copies the index as it is at one moment, also while it is written, into a new file."""
        if target.exists():
            raise RecallError(f"{target} exists already; a backup is never written over a file")
        growing = target.with_name(f"{target.name}.part")
        growing.unlink(missing_ok=True)
        copy = sqlite3.connect(growing)
        try:
            self.conn.backup(copy)  # in one step: in several it would begin anew at every write
            copy.execute("pragma journal_mode = delete")
        except BaseException:
            copy.close()
            growing.unlink(missing_ok=True)
            raise
        copy.close()
        growing.rename(target)


_RUNS_KEPT = 1_000
"""So many of the latest runs are kept, of all sources together."""


def forget_unused_concepts(conn: sqlite3.Connection) -> None:
    """Deletes the concepts that no chunk carries any more."""
    conn.execute(
        "delete from concept where not exists"
        " (select 1 from chunk_concept cc where cc.concept_id = concept.id)"
    )


def _source(row: Sequence[Any]) -> SourceRow:
    values = list(row)
    values[4] = json.loads(values[4])
    return SourceRow(*values)

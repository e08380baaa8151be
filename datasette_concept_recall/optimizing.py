"""Adds to a knowledge database what makes recall fast, and takes it away again."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from .errors import RecallError
from .index_building import Progress, build
from .index_schema import (
    CHANGED,
    PREFIX,
    followed_tables,
    is_usable,
    objects,
    plain_indexes,
)
from .knowledge_schema import read_knowledge
from .mapping import Mapping
from .reading import Reader, as_text, quote_identifier, reading
from .search import recall_by_concept_names
from .vocabulary import Vocabulary


class CannotOptimize(RecallError):
    """The database has nothing to make faster, or nothing can be added to it; the message says."""


@dataclass(frozen=True)
class Plan:
    """What there is to add to a database.

    ``missing`` are the names of indexes and of parts of the recall index that are not there,
    ``changed`` how many items changed since the index was built.
    """

    mapping: Mapping
    missing: tuple[str, ...]
    changed: int

    @property
    def is_done(self) -> bool:
        return not self.missing and not self.changed


def plan(conn: sqlite3.Connection) -> Plan:
    """Looks what there is to do. Raises `CannotOptimize` and `sqlite3.Error`."""
    with reading(conn) as reader:
        mapping = read_knowledge(reader)
        if not mapping.sources:
            raise CannotOptimize(
                "The index is for knowledge databases only, and this is none; an index of the link"
                " table by concept helps any other (docs/other-databases.md)"
            )
        _refuse_what_cannot_be_followed(reader, mapping)
        _check_types(reader, mapping)
        there = set(added(conn))
        usable = is_usable(reader, mapping)
        indexes = [name for name in plain_indexes(mapping) if name not in there]
        parts = [] if usable else list(objects(reader, mapping))
        changed = reader.rows(f"select count(*) from {CHANGED}")[0][0] if usable else 0
    return Plan(mapping, tuple(indexes + parts), changed)


def _refuse_what_cannot_be_followed(reader: Reader, mapping: Mapping) -> None:
    no_tables = reader.rows(
        "select name, type from sqlite_master where type = 'view' or sql like 'create virtual %'"
    )
    kinds = {
        name.lower(): "view" if kind == "view" else "virtual table" for name, kind in no_tables
    }
    for table, _, item, _ in followed_tables(mapping):
        if table in kinds:
            message = f"{table} is a {kinds[table]}, and its changes could not be followed"
            raise CannotOptimize(message)
        keys = reader.rows(f"pragma table_info({quote_identifier(table)})")
        others = reader.rows(f"pragma index_list({quote_identifier(table)})")
        is_key = any(name.lower() == "id" and key for *_, name, _, _, _, key in keys)
        if item == "id" and (not is_key or any(origin == "pk" for _, _, _, origin, _ in others)):
            raise CannotOptimize(f"{table}.id is not declared INTEGER PRIMARY KEY")


_SLOW_SECONDS = 1


def _check_types(reader: Reader, mapping: Mapping) -> None:
    """The index holds ids as whole numbers; other ones would be compared in another way."""
    wanted = {(s.link, c) for s in mapping.sources for c in (s.link_item, s.link_concept)}
    wanted |= {
        (table, column)
        for s in mapping.sources
        for table, columns in s.ranked_by
        for column in columns
        if column == "id" or column.endswith("_id")
    }
    wanted |= {("projects", "id")} if mapping.has_projects else set()
    for table, column in sorted({("concepts", "id"), *wanted}):
        for _, name, declared, *_ in reader.rows(f"pragma table_info({quote_identifier(table)})"):
            if name.lower() == column and "INT" not in declared.upper():
                raise CannotOptimize(f"{table}.{column} is not declared as an integer")


_KINDS = ("trigger", "index", "table")
_NAMES = "select name from sqlite_master where type = ? and name glob ? || '*'"


def optimize(conn: sqlite3.Connection, progress: Progress = lambda _: None) -> Plan:
    """Adds or renews the recall index and the indexes of the link tables, in one transaction.

    Returns what there was to do; nothing is written when that is nothing. Interrupted at any
    time, it leaves the database as it was. Raises `CannotOptimize` and `sqlite3.Error`.
    """
    todo = plan(conn)
    if todo.is_done:
        return todo
    with _writing(conn):
        now = plan(conn)  # another process may have been first
        if not now.is_done:
            _drop(conn)
            build(conn, now.mapping, progress)
    return todo


def added(conn: sqlite3.Connection) -> list[str]:
    """The names of everything in the database that `optimize` adds."""
    return [name for _, name in _added(conn)]


def remove(conn: sqlite3.Connection) -> list[str]:
    """Takes away everything that `optimize` added; returns the names of what was there."""
    with _writing(conn):
        names = added(conn)
        _drop(conn)
    return names


class _writing:  # noqa: N801 - a context manager, named like a function
    """A transaction that excludes other writers from its beginning."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn

    def __enter__(self) -> None:
        self._conn.execute("begin immediate")
        # What is written stays in memory until the end, or readers would be locked out meanwhile.
        self._conn.execute("pragma cache_spill = off")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._conn.execute("commit")
        finally:
            if self._conn.in_transaction:
                self._conn.execute("rollback")
            self._conn.execute("pragma cache_spill = on")


def _added(conn: sqlite3.Connection) -> list[tuple[str, str]]:
    with reading(conn) as reader:
        return [(kind, name) for kind in _KINDS for (name,) in reader.rows(_NAMES, kind, PREFIX)]


def _drop(conn: sqlite3.Connection) -> None:
    for kind, name in _added(conn):
        conn.execute(f"drop {kind} if exists {quote_identifier(name)}")


def size_of(conn: sqlite3.Connection) -> int:
    """The size of the database in bytes, without the pages that are free."""
    (pages,), (free,), (size,) = (
        conn.execute(f"pragma {name}").fetchone()
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


class Stopwatch:
    """Times the recall of the concept with the most links in one table, ``concept``.

    None when nothing is tagged.
    """

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn, self._vocabulary = conn, Vocabulary()
        with reading(conn) as reader:
            self.concept = _busiest_concept(reader, read_knowledge(reader))

    def milliseconds(self) -> float:
        """The median of three recalls, after one that reads the names; of one if it is slow."""
        names = [] if self.concept is None else [self.concept]
        times: list[float] = []
        while len(times) < 4 and (len(times) < 2 or times[-1] < _SLOW_SECONDS):
            started = perf_counter()
            recall_by_concept_names(self._conn, names, 20, vocabulary=self._vocabulary)
            times.append(perf_counter() - started)
        return 1000 * median(times[1:])


def _busiest_concept(reader: Reader, mapping: Mapping) -> str | None:
    counts = [
        row
        for source in mapping.sources
        for row in reader.rows(
            f"select count(*), c.name from {source.link} l join concepts c"
            f" on c.id = l.{source.link_concept} group by c.id order by 1 desc limit 1"
        )
    ]
    return as_text(max(counts)[1]) if counts else None

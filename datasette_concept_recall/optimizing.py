"""Adds to a knowledge database what makes recall fast, and takes it away again."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from statistics import median
from time import perf_counter
from typing import Any

from .bitmaps import pack
from .errors import RecallError
from .index_schema import (
    CHANGED,
    ITEM,
    POSTING,
    PREFIX,
    STATE,
    VERSION,
    followed_tables,
    is_usable,
    objects,
    plain_indexes,
)
from .mapping import Mapping, Source, read_mapping
from .models import SOURCE_TYPES
from .reading import Reader, as_text, quote_identifier, reading
from .recall_index import CONCEPT, PROJECT, TYPE
from .search import recall_by_concept_names
from .timestamps import age_of
from .vocabulary import Vocabulary

Progress = Callable[[str], None]
"""Told in a few words what is being done now."""


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
        mapping = read_mapping(reader)
        if not mapping.sources:
            raise CannotOptimize("There are no concepts with tagged items in this database")
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
        for table, columns in s.ranked_by.items()
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
    _create_function(conn)
    with _writing(conn):
        now = plan(conn)  # another process may have been first
        if not now.is_done:
            _drop(conn)
            _build(conn, now.mapping, progress)
    return todo


def _create_function(conn: sqlite3.Connection) -> None:
    """Defines ``concept_recall_age``, of a blob since text that is not valid would be an error."""
    ((encoding,),) = conn.execute("pragma encoding").fetchall()

    def age(text: bytes | None) -> int:
        return age_of(None if text is None else text.decode(encoding, "replace"))

    conn.create_function("concept_recall_age", 1, age, deterministic=True)


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


def _build(conn: sqlite3.Connection, mapping: Mapping, progress: Progress) -> None:
    with reading(conn) as reader:
        creating = objects(reader, mapping)
    for sql in creating.values():
        if not sql.startswith("create trigger"):
            conn.execute(sql)
    progress("Ranking the items")
    conn.execute(_items_sql(mapping))
    ((items,),) = conn.execute(f"select count(*) from {ITEM}").fetchall()
    conn.execute(f"insert into {STATE} values (?, ?)", (VERSION, items))
    progress(f"Collecting the items of each concept ({items:,} items)")
    _store(conn, CONCEPT, _sets(conn, _links_sql(mapping)), items)
    by_project = f"select project_id, position from {ITEM} where typeof(project_id) = 'integer'"
    _store(conn, PROJECT, _sets(conn, by_project), items)
    types = " ".join(f"when '{name}' then {n}" for n, name in enumerate(SOURCE_TYPES))
    _store(
        conn, TYPE, _sets(conn, f"select case source_type {types} end, position from {ITEM}"), items
    )
    for name, sql in plain_indexes(mapping).items():
        progress(f"Adding the index {name}")
        conn.execute(sql)
    for sql in creating.values():
        if sql.startswith("create trigger"):
            conn.execute(sql)
    _try_triggers(conn, mapping)
    progress("Writing")


def _try_triggers(conn: sqlite3.Connection, mapping: Mapping) -> None:
    """Compiles what fires the triggers: a mistake in one would be an error of every writer."""
    for table, _, item, _ in followed_tables(mapping):
        conn.execute(f"explain insert into {table} default values").close()
        conn.execute(f"explain update {table} set {item} = {item}").close()
        conn.execute(f"explain delete from {table}").close()


def _items_sql(mapping: Mapping) -> str:
    each = " union all ".join(_source_items_sql(source) for source in mapping.sources)
    return (
        f"insert into {ITEM} select row_number() over (order by age, source, item) - 1,"
        f" age, source, item, project_id, source_type from ({each})"
    )


def _source_items_sql(source: Source) -> str:
    return (
        f"select concept_recall_age(case when typeof({source.created}) = 'text'"
        f" then cast({source.created} as blob) end) as age, {source.order} as source,"
        f" i.id as item, {source.project_id} as project_id, {source.source_type} as source_type"
        f" from {source.rows}"
        f" where i.id in (select {source.link_item} from {source.link})"
    )


def _links_sql(mapping: Mapping) -> str:
    return " union all ".join(
        f"select l.{source.link_concept}, x.position from {source.link} l join {ITEM} x"
        f" on x.source = {source.order} and x.item = l.{source.link_item}"
        f" where typeof(l.{source.link_concept}) = 'integer'"
        for source in mapping.sources
    )


def _sets(conn: sqlite3.Connection, sql: str) -> Iterator[tuple[int, list[int]]]:
    """``(id, positions)`` from a query of such pairs, positions ascending and each once."""
    cursor = conn.cursor()
    cursor.row_factory = None
    rows: Any = cursor.execute(f"select distinct * from ({sql}) order by 1, 2")
    for id_, pairs in groupby(rows, itemgetter(0)):
        yield id_, [position for _, position in pairs]


def _store(
    conn: sqlite3.Connection, kind: str, sets: Iterator[tuple[int, list[int]]], items: int
) -> None:
    conn.executemany(
        f"insert into {POSTING} (kind, id, size, positions) values (?, ?, ?, ?)",
        ((kind, id_, len(positions), pack(positions, items)) for id_, positions in sets),
    )


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
            self.concept = _busiest_concept(reader, read_mapping(reader))

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

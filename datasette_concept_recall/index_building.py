"""Fills the recall index from the tables of a knowledge database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from .bitmaps import pack
from .index_schema import (
    ITEM,
    POSTING,
    STATE,
    VERSION,
    followed_tables,
    objects,
    plain_indexes,
)
from .mapping import Mapping, Source
from .models import SOURCE_TYPES
from .reading import reading
from .recall_index import CONCEPT, PROJECT, TYPE
from .timestamps import age_of

Progress = Callable[[str], None]
"""Told in a few words what is being done now."""


def build(conn: sqlite3.Connection, mapping: Mapping, progress: Progress) -> None:
    """Creates and fills the index, inside the transaction of the caller, and then its triggers."""
    _create_function(conn)
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


def _create_function(conn: sqlite3.Connection) -> None:
    """Defines ``concept_recall_age``, of a blob since text that is not valid would be an error."""
    ((encoding,),) = conn.execute("pragma encoding").fetchall()

    def age(text: bytes | None) -> int:
        return age_of(None if text is None else text.decode(encoding, "replace"))

    conn.create_function("concept_recall_age", 1, age, deterministic=True)

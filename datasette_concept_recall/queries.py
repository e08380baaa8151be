"""The canned queries as Datasette offers them: to whom, and beside whose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from . import compat
from .access import current_mapping, databases
from .canned_sql import CannedQuery, canned_queries

if TYPE_CHECKING:
    from datasette.app import Datasette

_stored: WeakKeyDictionary[Datasette, dict[tuple[str, str], frozenset[str]]] = WeakKeyDictionary()
"""The tables that the queries stored on 1.0 read, which the schema may have outgrown."""


async def offered_queries(datasette: Datasette, database: str) -> dict[str, CannedQuery]:
    """The queries for a database as it is now, by name, but for names that tables have."""
    queries = canned_queries(await current_mapping(datasette, database))
    if not queries:
        return {}
    db = datasette.get_database(database)
    taken = {*await db.table_names(), *await db.view_names()}
    return {query.name: query for query in queries if query.name not in taken}


async def for_hook(datasette: Datasette, database: str) -> dict[str, dict[str, Any]]:
    """What the hook ``canned_queries`` of 0.65 returns.

    There it would hide a query of the same name in the metadata, so such are left out.
    """
    offered = await offered_queries(datasette, database)
    taken = compat.configured_query_names(datasette, database, offered)
    return {
        name: compat.canned_query(query) for name, query in offered.items() if name not in taken
    }


async def store(datasette: Datasette) -> None:
    """On 1.0, stores the queries of every database that is there at start-up, and no others."""
    if not compat.stores_queries(datasette):
        return
    tables = _stored[datasette] = {}
    offered = {name: await offered_queries(datasette, name) for name in databases(datasette)}
    await compat.remove_other_queries(
        datasette, {(database, name) for database in offered for name in offered[database]}
    )
    for database, queries in offered.items():
        for query in queries.values():
            tables[database, query.name] = query.tables
            await compat.store_query(datasette, database, query)


async def readable(datasette: Datasette, actor: compat.Actor) -> list[tuple[str, str]]:
    """``(database, query)`` of the stored queries that read only tables the actor may view."""
    stored = _stored.get(datasette, {})
    found: list[tuple[str, str]] = []
    for database in {database for database, _ in stored}:
        queries = {name: tables for (of, name), tables in stored.items() if of == database}
        tables = frozenset().union(*queries.values())
        visible = await compat.visible_tables(datasette, actor, database, tables)
        found += [(database, name) for name, needed in queries.items() if needed <= visible]
    return found

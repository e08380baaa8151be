"""Who may see what: the tables of a database that an actor may read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from datasette.utils import sqlite_timelimit

from . import compat
from .instances import vocabulary_for
from .mapping import Mapping

if TYPE_CHECKING:
    from datasette.app import Datasette


T = TypeVar("T")


async def in_time(
    datasette: Datasette,
    database: str,
    reader: Callable[[sqlite3.Connection], T],
    extra_ms: int = 0,
) -> T:
    """What a function reads from a database, in one trip to a thread, under Datasette's time limit
    and ``extra_ms``. Raises whatever the function does, and `KeyError` for no such database; see
    `was_interrupted`."""
    limit = datasette.setting("sql_time_limit_ms") + extra_ms

    def trip(conn: sqlite3.Connection) -> T:
        with sqlite_timelimit(conn, limit):
            return reader(conn)

    found: T = await datasette.get_database(database).execute_fn(trip)
    return found


def was_interrupted(error: Exception) -> bool:
    """Whether it was a time limit that ended a query."""
    return isinstance(error, sqlite3.OperationalError) and "interrupted" in str(error)


async def current_mapping(datasette: Datasette, database: str) -> Mapping:
    """The tables that recall would read in a database now."""
    vocabulary = vocabulary_for(datasette, database)
    mapping: Mapping = await datasette.get_database(database).execute_fn(vocabulary.mapping)
    return mapping


async def known_mapping(datasette: Datasette, database: str) -> Mapping:
    """The same, or how it was when somebody looked last, which costs nothing."""
    latest = vocabulary_for(datasette, database).latest_mapping
    return latest or await current_mapping(datasette, database)


async def visible_mapping(
    datasette: Datasette, actor: compat.Actor, database: str, mapping: Mapping
) -> Mapping | None:
    """What of a mapping the actor may read; None when it may not view the database or its concepts.

    A database that holds no concepts is no secret: its mapping is returned as it is.
    """
    if not await compat.may_view_database(datasette, actor, database):
        return None
    tables = await compat.visible_tables(
        datasette, actor, database, mapping.tables, as_spelled=True
    )
    visible = mapping.visible_to(tables)
    return None if mapping.has_concepts and not visible.has_concepts else visible


async def may_recall(datasette: Datasette, actor: compat.Actor, database: str) -> bool:
    """Whether the database holds concepts and the actor may ask for what is tagged with them.

    Tables are those that somebody saw last, since menus ask this on every page.
    """
    mapping = await known_mapping(datasette, database)
    if mapping.concepts is None:
        return False
    needed = {mapping.spelled(table) for table in mapping.concepts.tables}
    return await compat.may_view_database(
        datasette, actor, database
    ) and needed == await compat.visible_tables(datasette, actor, database, needed, as_spelled=True)


async def recallable_databases(datasette: Datasette, actor: compat.Actor) -> list[str]:
    """The names of all databases for which `may_recall` holds, in the order of the instance.

    One that cannot be read is left out: its own pages say so, and every page asks this.
    """
    found = []
    for name in databases(datasette):
        with suppress(sqlite3.Error):
            if await may_recall(datasette, actor, name):
                found.append(name)
    return found


def databases(datasette: Datasette) -> list[str]:
    """The names of the databases that people see, without Datasette's internal one."""
    return [name for name in datasette.databases if name not in ("_internal", "_memory")]

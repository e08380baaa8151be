"""What nobody may view through this plugin: queries over private tables, and its own tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from . import access, compat
from .access import databases
from .canned_sql import NAMES
from .index_schema import TABLES
from .queries import readable

if TYPE_CHECKING:
    from datasette.app import Datasette

_FULL_TEXT = ("", "_config", "_data", "_docsize", "_idx")

_DERIVED = {f"chunk_fts{end}": frozenset({"chunk"}) for end in _FULL_TEXT} | {
    "live_chunk": frozenset({"chunk", "document", "source"})
}
"""In an index: what shows the content of other tables, and which those are."""

_is_judging: ContextVar[bool] = ContextVar("concept_recall_is_judging", default=False)
"""Whether a rule is being made, so that permissions asked for it need no rule of their own."""

Veto = Callable[[], Awaitable["bool | None"]]
"""To be called by Datasette: False, or None for no opinion."""


def veto_0_65(datasette: Datasette, actor: compat.Actor, action: str, resource: Any) -> Veto | None:
    """What this plugin has against a permission, None for nothing.

    The tables of the recall index tell which items there are, of whatever tables, so no page shows
    them. A query of ours is for actors who may view every table that it reads, and so is what an
    index of documents derives from its tables.
    """
    if action == "view-table":
        database, table = resource
        if table.lower() in TABLES:
            return _never
        if table.lower() in _DERIVED and database in datasette.databases:
            return lambda: _opinion_on_derived(datasette, actor, database, table.lower())
    if action == "view-query":
        database, name = resource
        if name in NAMES and database in datasette.databases:
            return lambda: _opinion_on_query(datasette, actor, database, name)
    return None


async def _never() -> bool:
    return False


async def _opinion_on_derived(
    datasette: Datasette, actor: compat.Actor, database: str, table: str
) -> bool | None:
    return False if table in await _hidden(datasette, actor, database, look_again=True) else None


async def _hidden(
    datasette: Datasette, actor: compat.Actor, database: str, *, look_again: bool = False
) -> set[str]:
    """What an index derives from tables of which the actor may not view one."""
    mapping_of = access.current_mapping if look_again else access.known_mapping
    if not (await mapping_of(datasette, database)).is_index:
        return set()
    sources = frozenset[str]().union(*_DERIVED.values())
    visible = await compat.visible_tables(datasette, actor, database, sources, as_spelled=True)
    return {name for name, needed in _DERIVED.items() if not needed <= visible}


async def _opinion_on_query(
    datasette: Datasette, actor: compat.Actor, database: str, name: str
) -> bool | None:
    needed = await compat.tables_of_canned_query(datasette, actor, database, name)
    if needed is None:  # not ours: somebody else's of the same name
        return None
    visible = await compat.visible_tables(datasette, actor, database, needed)
    return None if needed <= visible else False


def rule_1_0(
    datasette: Datasette, actor: compat.Actor, action: str
) -> Callable[[], Awaitable[Any]] | None:
    """The rule of this plugin on a permission, see `veto_0_65`."""

    async def on_tables() -> Any:
        own = [(database, table) for database in databases(datasette) for table in TABLES]
        return compat.never_visible_sql([*own, *await _all_hidden(datasette, actor)])

    async def on_queries() -> Any:
        return compat.unreadable_queries_sql(await readable(datasette, actor))

    return {"view-table": on_tables, "view-query": on_queries}.get(action)


async def _all_hidden(datasette: Datasette, actor: compat.Actor) -> list[tuple[str, str]]:
    """`_hidden` of all databases, except where that is what is being found out."""
    if _is_judging.get():
        return []
    token = _is_judging.set(True)
    try:
        found = []
        for database in databases(datasette):
            with suppress(sqlite3.Error):  # nothing of it can be shown
                found += [(database, table) for table in await _hidden(datasette, actor, database)]
        return found
    finally:
        _is_judging.reset(token)

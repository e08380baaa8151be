"""What nobody may view through this plugin: queries over private tables, and its own tables."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from . import compat
from .access import databases
from .canned_sql import NAMES
from .index_schema import TABLES
from .queries import readable

if TYPE_CHECKING:
    from datasette.app import Datasette

Veto = Callable[[], Awaitable["bool | None"]]
"""To be called by Datasette: False, or None for no opinion."""


def veto_0_65(datasette: Datasette, actor: compat.Actor, action: str, resource: Any) -> Veto | None:
    """What this plugin has against a permission, None for nothing.

    The tables of the recall index tell which items there are, of whatever tables, so no page shows
    them. A query of ours is for actors who may view every table that it reads.
    """
    if action == "view-table":
        database, table = resource
        return _never if table.lower() in TABLES else None
    if action == "view-query":
        database, name = resource
        if name in NAMES and database in datasette.databases:
            return lambda: _opinion_on_query(datasette, actor, database, name)
    return None


async def _never() -> bool:
    return False


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
        return compat.never_visible_sql(own)

    async def on_queries() -> Any:
        return compat.unreadable_queries_sql(await readable(datasette, actor))

    return {"view-table": on_tables, "view-query": on_queries}.get(action)

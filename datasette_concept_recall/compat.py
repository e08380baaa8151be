"""Every difference between Datasette 0.65 and 1.0, told apart by what an instance can do."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from markupsafe import escape

from .canned_sql import CannedQuery
from .reading import quote_identifier

if TYPE_CHECKING:
    from datasette.app import Datasette

Actor = dict[str, Any] | None

T = TypeVar("T")

QUERY_SOURCE = "datasette-concept-recall"
"""The ``source`` under which 1.0 stores the queries of this plugin."""


def _is_1_0(datasette: Datasette) -> bool:
    return hasattr(datasette, "allowed")


async def may_view_instance(datasette: Datasette, actor: Actor) -> bool:
    """Whether the actor may view the instance, whatever there is in it."""
    if _is_1_0(datasette):
        return bool(await datasette.allowed(action="view-instance", actor=actor))
    return await _cascade(datasette, actor, [("view-instance", None)])


async def may_view_database(datasette: Datasette, actor: Actor, database: str) -> bool:
    """Whether the actor may view the database, and so the instance."""
    if _is_1_0(datasette):
        from datasette.resources import DatabaseResource

        resource = DatabaseResource(database)
        return bool(await datasette.allowed(action="view-database", resource=resource, actor=actor))
    return await _cascade(datasette, actor, [("view-database", database), ("view-instance", None)])


INDEX_ACTION = "concept-recall-index"
"""The permission to ask something of an index: runs, pauses, the removal of what is gone."""


def index_actions() -> list[Any]:
    """On 1.0, the permission as it is registered."""
    from datasette.permissions import Action

    return [Action(name=INDEX_ACTION, description="Run, pause and repair indexes of documents")]


async def may_index(datasette: Any, actor: Actor) -> bool:
    """Whether the actor may ask something of indexes: by default only root may.

    0.65 has no block ``permissions`` in its metadata; it is read here as 1.0 reads it.
    """
    if _is_1_0(datasette):
        return bool(await datasette.allowed(action=INDEX_ACTION, actor=actor))
    from datasette.utils import actor_matches_allow

    opinion = await _opinion(datasette, actor, INDEX_ACTION, None)
    if opinion is not None:
        return bool(opinion)
    allow = (datasette.metadata("permissions") or {}).get(INDEX_ACTION)
    is_root = actor is not None and actor.get("id") == "root"
    return is_root if allow is None else bool(actor_matches_allow(actor, allow))


async def write(datasette: Any, database: str, writer: Callable[[sqlite3.Connection], T]) -> T:
    """What a function returns that writes to a database, all of it in one transaction.

    Raises whatever the function raises; then nothing is written.
    """

    def in_transaction(conn: sqlite3.Connection) -> T:
        conn.execute("begin immediate")
        with conn:
            return writer(conn)

    begins = not _is_1_0(datasette)  # 1.0 begins one itself
    written: T = await datasette.get_database(database).execute_write_fn(
        in_transaction if begins else writer
    )
    return written


async def visible_tables(
    datasette: Datasette,
    actor: Actor,
    database: str,
    tables: Iterable[str],
    *,
    as_spelled: bool = False,
) -> frozenset[str]:
    """Those of the tables that the actor may view, given that it may view the database.

    ``as_spelled`` tells that they are named as in the database, which need not be asked then.
    """
    if _is_1_0(datasette):
        return await _visible_tables_1_0(datasette, actor, database, frozenset(tables))
    # In 0.65 nothing cascades by itself, and the most specific opinion counts.
    levels = [("view-database", database), ("view-instance", None)]
    by_default = await _cascade(datasette, actor, levels)
    spelled = {} if as_spelled else await _spelled(datasette, database)
    opinions = {
        table: await _opinion(
            datasette, actor, "view-table", (database, spelled.get(table.lower(), table))
        )
        for table in tables
    }
    return frozenset(t for t, o in opinions.items() if (by_default if o is None else o))


async def _spelled(datasette: Any, database: str) -> dict[str, str]:
    """Lower-case name -> name as the database spells it, of every table and view."""
    sql = "select name from sqlite_master where type in ('table', 'view')"
    rows = (await datasette.get_database(database).execute(sql)).rows
    return {row["name"].lower(): row["name"] for row in rows}


async def _cascade(datasette: Any, actor: Actor, levels: list[tuple[str, Any]]) -> bool:
    """The first opinion of 0.65 that is not "no opinion", most specific level first."""
    for action, resource in levels:
        opinion = await _opinion(datasette, actor, action, resource)
        if opinion is not None:
            return bool(opinion)
    return True


async def _opinion(datasette: Any, actor: Actor, action: str, resource: Any) -> bool | None:
    """What `Datasette.permission_allowed` of 0.65 answers, None for no opinion.

    That method looks up the spelling of every table in the database, a query each; here it has to
    be right already.
    """
    from datasette.plugins import pm
    from datasette.utils import await_me_maybe

    opinion = None
    for given in pm.hook.permission_allowed(
        datasette=datasette, actor=actor, action=action, resource=resource
    ):
        given = await await_me_maybe(given)
        if given is not None:
            opinion = given
    return opinion


async def _visible_tables_1_0(
    datasette: Any, actor: Actor, database: str, tables: frozenset[str]
) -> frozenset[str]:
    from datasette.resources import TableResource

    visible: set[str] = set()
    if len(tables) > 1:  # Datasette remembers single answers for the rest of the request
        listed = await datasette.allowed_resources("view-table", actor, parent=database, limit=1000)
        visible = {resource.child for resource in listed.resources} & tables
    # The listing is cut at 1,000, and knows a new table only after Datasette's next look at it.
    for table in tables - visible:
        resource = TableResource(database, table)
        if await datasette.allowed(action="view-table", resource=resource, actor=actor):
            visible.add(table)
    return frozenset(visible)


async def may_view_query(datasette: Datasette, actor: Actor, database: str, query: str) -> bool:
    """Whether there is such a stored or canned query and the actor may view it."""
    if _is_1_0(datasette):
        from datasette.resources import QueryResource

        return await datasette.get_query(database, query) is not None and await datasette.allowed(
            action="view-query", resource=QueryResource(database, query), actor=actor
        )
    if await datasette.get_canned_query(database, query, actor) is None:
        return False
    levels = [
        ("view-query", (database, query)),
        ("view-database", database),
        ("view-instance", None),
    ]
    return await _cascade(datasette, actor, levels)


def stores_queries(datasette: Datasette) -> bool:
    """Whether queries are stored at start-up, as on 1.0; 0.65 asks for them at every request."""
    return hasattr(datasette, "add_query")


async def store_query(datasette: Any, database: str, query: CannedQuery) -> None:
    """On 1.0, stores a query unless somebody else defined one of the same name."""
    existing = await datasette.get_query(database, query.name)
    if existing is None or existing.source == QUERY_SOURCE:
        await datasette.add_query(
            database,
            query.name,
            query.sql,
            title=query.title,
            description=query.description,
            parameters=query.parameters,
            hide_sql=True,
            is_trusted=True,
            source=QUERY_SOURCE,
        )


async def remove_other_queries(datasette: Any, wanted: Container[tuple[str, str]]) -> None:
    """On 1.0, removes what was once stored by this plugin but for these ``(database, query)``."""
    stored = await datasette.get_internal_database().execute(
        "select database_name, name from queries where source = ?", [QUERY_SOURCE]
    )
    for database, name in map(tuple, stored.rows):
        if (database, name) not in wanted:
            await datasette.remove_query(database, name, source=QUERY_SOURCE)


async def is_our_query(datasette: Any, database: str, name: str) -> bool:
    """On 1.0, whether the stored query of a name is one of this plugin."""
    query = await datasette.get_query(database, name)
    return query is not None and query.source == QUERY_SOURCE


def jump_menu_item(label: str, url: str, description: str) -> Any:
    """On 1.0, one entry of the menu to jump that is always the same."""
    from datasette.jump import JumpSQL

    return JumpSQL.menu_item(label=label, url=url, description=description)


def jump_items(items: Iterable[dict[str, str]]) -> Any:
    """On 1.0, entries of that menu: ``type``, ``label``, ``description``, ``url``, ``search_text``.

    They are handed over as values, so nothing is read from another database.
    """
    from datasette.jump import JumpSQL

    fields = ("type", "label", "description", "url", "search_text")
    columns = ", ".join(f"json_extract(value, '$.{field}') as {field}" for field in fields)
    return JumpSQL(
        sql=f"select {columns}, null as display_name from json_each(:concept_recall_items)",
        params={"concept_recall_items": json.dumps(list(items))},
    )


def unreadable_queries_sql(readable: Iterable[tuple[str, str]]) -> Any:
    """On 1.0, a permission rule that denies all of our queries but these ``(database, query)``."""
    from datasette.permissions import PermissionSQL

    return PermissionSQL(
        sql="""
            select database_name as parent, name as child, 0 as allow,
                'reads a table that the actor may not view' as reason
            from queries
            where source = :concept_recall_source and not exists (
                select 1 from json_each(:concept_recall_readable)
                where json_extract(value, '$[0]') = database_name
                  and json_extract(value, '$[1]') = name
            )
        """,
        params={
            "concept_recall_source": QUERY_SOURCE,
            "concept_recall_readable": json.dumps(list(readable)),
        },
    )


def never_visible_sql(tables: Iterable[tuple[str, str]]) -> Any:
    """On 1.0, a permission rule that denies these ``(database, table)`` to everybody."""
    from datasette.permissions import PermissionSQL

    return PermissionSQL(
        sql="""
            select json_extract(value, '$[0]') as parent, json_extract(value, '$[1]') as child,
                0 as allow, 'holds the index of concept recall' as reason
            from json_each(:concept_recall_tables)
        """,
        params={"concept_recall_tables": json.dumps(list(tables))},
    )


_TABLES_KEY = "concept_recall_tables"
"""Marks a canned query of 0.65 as one of ours, and holds the tables it reads."""


def canned_query(query: CannedQuery) -> dict[str, Any]:
    """The query as the hook ``canned_queries`` of 0.65 returns it."""
    return {
        "sql": query.sql,
        "title": query.title,
        "description": query.description,
        "params": list(query.parameters),
        "hide_sql": True,
        _TABLES_KEY: sorted(query.tables),
    }


def configured_query_names(datasette: Any, database: str, offered: Container[str]) -> set[str]:
    """On 0.65, the names of the queries that the metadata of a database defines.

    Datasette adds to that very dictionary what the hook once returned: such is not counted, and
    is taken away when it is no longer ``offered``.
    """
    queries = datasette.metadata("queries", database=database, fallback=False) or {}
    ours = {name for name, q in queries.items() if isinstance(q, dict) and _TABLES_KEY in q}
    for name in ours:
        if name not in offered:
            del queries[name]
    return set(queries) - ours


async def tables_of_canned_query(
    datasette: Any, actor: Actor, database: str, name: str
) -> frozenset[str] | None:
    """On 0.65, the tables that a canned query of ours reads, None for somebody else's."""
    query = await datasette.get_canned_query(database, name, actor)
    tables = query.get(_TABLES_KEY) if query else None
    return None if tables is None else frozenset(tables)


def has_top_row(datasette: Datasette) -> bool:
    """Whether plugins have a place on the pages of rows, as on 1.0."""
    return _is_1_0(datasette)


async def row_of_page(datasette: Any, request: Any, database: str, table: str) -> Any:
    """On 0.65, the row whose page is asked for, with its number where it has no key; or None."""
    from datasette.utils import urlsafe_components

    db = datasette.get_database(database)
    keys = await db.primary_keys(table)
    values = urlsafe_components(request.url_vars["pks"])
    this = " and ".join(f"{quote_identifier(key)} = ?" for key in keys or ["rowid"])
    columns = "*" if keys else "rowid, *"
    sql = f"select {columns} from {quote_identifier(table)} where {this}"
    return (await db.execute(sql, values)).first()


def description_of_table(datasette: Any, database: str, table: str, html: str) -> dict[str, Any]:
    """On 0.65, the metadata of a table as its rows' pages show it, with more in the description."""
    described = datasette.metadata("databases") or {}
    given = described.get(database, {}).get("tables", {}).get(table, {})
    told = given.get("description_html") or escape(given.get("description") or "")
    return {**given, "description_html": f"{told}{html}"}


def database_color(datasette: Datasette, database: str | None) -> str:
    """The colour of the bar beside the heading of a page, six hexadecimal digits.

    It is that of a database, with None that of a page which belongs to none.
    """
    of_none = "276890" if _is_1_0(datasette) else "ff0000"
    if database is None:
        return of_none
    return getattr(datasette.get_database(database), "color", of_none)


def add_background_task(
    datasette: Any, start: Callable[[], None], stop: Callable[[], None], name: str
) -> bool:
    """On 1.0: has something started with the server and stopped with it; False on 0.65, where
    nothing tells of the end."""
    if not hasattr(datasette, "add_background_task"):
        return False

    async def run(_: Any) -> None:
        start()
        try:
            await asyncio.Event().wait()
        finally:  # within the grace that Datasette gives, in a thread: it waits for a process
            await asyncio.shield(asyncio.to_thread(stop))

    datasette.add_background_task(run, name=name)
    return True

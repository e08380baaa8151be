"""Every difference between Datasette 0.65 and 1.0, told apart by what an instance can do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.database import Database

Actor = dict[str, Any] | None

QUERY_SOURCE = "datasette-concept-recall"
"""The ``source`` under which 1.0 stores the queries of this plugin."""


def _is_1_0(datasette: Datasette) -> bool:
    return hasattr(datasette, "allowed")


async def may_view_database(datasette: Datasette, actor: Actor, database: str) -> bool:
    """Whether the actor may view the database, and so the instance."""
    if _is_1_0(datasette):
        from datasette.resources import DatabaseResource

        resource = DatabaseResource(database)
        return bool(await datasette.allowed(action="view-database", resource=resource, actor=actor))
    return await _cascade(datasette, actor, [("view-database", database), ("view-instance", None)])


async def visible_tables(
    datasette: Datasette, actor: Actor, database: str, tables: Iterable[str]
) -> frozenset[str]:
    """Those of the tables that the actor may view, given that it may view the database."""
    if _is_1_0(datasette):
        return await _visible_tables_1_0(datasette, actor, database, frozenset(tables))
    # In 0.65 nothing cascades by itself, and the most specific opinion counts.
    database_levels = [("view-database", database), ("view-instance", None)]
    by_default = await _cascade(datasette, actor, database_levels)
    visible = set()
    for table in tables:
        opinion = await datasette.permission_allowed(
            actor, "view-table", (database, table), default=by_default
        )
        if opinion:
            visible.add(table)
    return frozenset(visible)


async def _cascade(datasette: Any, actor: Actor, levels: list[tuple[str, Any]]) -> bool:
    """The first opinion of 0.65 that is not "no opinion", most specific level first."""
    for action, resource in levels:
        opinion = await datasette.permission_allowed(actor, action, resource, default=None)
        if opinion is not None:
            return bool(opinion)
    return True


async def _visible_tables_1_0(
    datasette: Any, actor: Actor, database: str, tables: frozenset[str]
) -> frozenset[str]:
    from datasette.resources import TableResource

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


async def store_queries(datasette: Any, database: str, queries: dict[str, dict[str, Any]]) -> None:
    """On 1.0, makes the plugin's stored queries of a database exactly these.

    A query of the same name that somebody else defined is left as it is; what an earlier version
    of the plugin stored under another name is removed. On 0.65, where the hook
    ``canned_queries`` does this, nothing happens.
    """
    if not hasattr(datasette, "add_query"):
        return
    for name in await _stored_names(datasette, database):
        if name not in queries:
            await datasette.remove_query(database, name, source=QUERY_SOURCE)
    for name, query in queries.items():
        existing = await datasette.get_query(database, name)
        if existing is None or existing.source == QUERY_SOURCE:
            await datasette.add_query(
                database,
                name,
                query["sql"],
                title=query["title"],
                description=query["description"],
                parameters=query["params"],
                hide_sql=query["hide_sql"],
                is_trusted=True,
                source=QUERY_SOURCE,
            )


async def _stored_names(datasette: Any, database: str) -> list[str]:
    result = await datasette.get_internal_database().execute(
        "select name from queries where database_name = ? and source = ?",
        [database, QUERY_SOURCE],
    )
    return [row["name"] for row in result.rows]


def hidden_queries_sql(hidden: Iterable[tuple[str, str]]) -> Any:
    """On 1.0, a permission rule by which nobody is shown these ``(database, query)`` of ours."""
    import json

    from datasette.permissions import PermissionSQL

    return PermissionSQL(
        restriction_sql="""
            select database_name as parent, name as child from queries
            where source <> :concept_recall_source or not exists (
                select 1 from json_each(:concept_recall_hidden)
                where json_extract(value, '$[0]') = database_name
                  and json_extract(value, '$[1]') = name
            )
        """,
        params={
            "concept_recall_source": QUERY_SOURCE,
            "concept_recall_hidden": json.dumps(list(hidden)),
        },
    )


def configured_query_names(datasette: Any, database: str) -> set[str]:
    """On 0.65, the names of the queries that the metadata of a database defines."""
    return set(datasette.metadata("queries", database=database, fallback=False) or {})


async def canned_query_sql(datasette: Any, actor: Actor, database: str, name: str) -> str | None:
    """On 0.65, the SQL of the canned query of this name, whoever defined it."""
    query = await datasette.get_canned_query(database, name, actor)
    return query["sql"] if query else None


def database_color(database: Database) -> str:
    """The colour of the bar beside a database's heading, six hexadecimal digits."""
    return getattr(database, "color", "ff0000")

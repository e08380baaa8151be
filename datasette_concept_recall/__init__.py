"""Recall what a knowledge database holds about the concepts that a text names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datasette import hookimpl

from .errors import RecallError, UnknownProject
from .matching import ConceptMatcher, word_count, word_match
from .models import ConceptMatch, ConceptMention, LayerHit, RecallResult
from .rendering import RecordText, embedding_text, frontmatter_prose, predicate_line
from .search import recall_by_concept_names, recall_by_text
from .vocabulary import match_concept_names

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Awaitable, Callable, Generator

    from datasette.app import Datasette

__all__ = [
    "ConceptMatch",
    "ConceptMatcher",
    "ConceptMention",
    "LayerHit",
    "RecallError",
    "RecallResult",
    "RecordText",
    "UnknownProject",
    "embedding_text",
    "frontmatter_prose",
    "match_concept_names",
    "predicate_line",
    "recall_by_concept_names",
    "recall_by_text",
    "word_count",
    "word_match",
]


@hookimpl
def prepare_connection(conn: sqlite3.Connection, database: str, datasette: Datasette) -> None:
    """SQL functions on every connection."""
    from . import instances, semantic_layers, sql_functions

    sql_functions.register(conn, instances.vocabulary_for(datasette, database))
    if semantic_layers.configured_embedder(datasette) is not None:
        sql_functions.register_embedding(conn, lambda: semantic_layers.sql_embedder(datasette))


@hookimpl
def register_routes() -> list[tuple[str, Callable[..., Any]]]:
    """The pages and the JSON API."""
    from . import concept_views, document_views, source_views, views

    return [
        (views.ROUTE, views.recall_view),
        (views.ROUTE_OF_ALL, views.recall_view),
        (concept_views.LIST_ROUTE, concept_views.list_view),
        (concept_views.ONE_ROUTE, concept_views.one_view),
        (document_views.ROUTE, document_views.document_view),
        (source_views.ROUTE, source_views.sources_view),
    ]


@hookimpl
def register_actions() -> list[Any]:
    """On 1.0: the permission to ask something of an index."""
    from . import compat

    return compat.index_actions()


@hookimpl
def menu_links(
    datasette: Datasette, actor: dict[str, Any] | None
) -> Callable[[], Awaitable[list[dict[str, str]]]]:
    """Recall in the menu, when there is a database in which the actor may use it."""
    from . import menus

    return lambda: menus.menu_links(datasette, actor)


@hookimpl
def database_actions(
    datasette: Datasette, actor: dict[str, Any] | None, database: str
) -> Callable[[], Awaitable[list[dict[str, str]]]]:
    """Recall among the actions of a database."""
    from . import menus

    return lambda: menus.database_actions(datasette, actor, database)


@hookimpl
def table_actions(
    datasette: Datasette,
    actor: dict[str, Any] | None,
    database: str,
    table: str,
    request: Any,
) -> Callable[[], Awaitable[list[dict[str, str]]]]:
    """Recall and the facet among the actions of a tagged table."""
    from . import menus

    return lambda: menus.table_actions(datasette, actor, database, table, request)


@hookimpl
def view_actions(
    datasette: Datasette,
    actor: dict[str, Any] | None,
    database: str,
    view: str,
    request: Any,
) -> Callable[[], Awaitable[list[dict[str, str]]]]:
    """On 1.0: the same for a view."""
    from . import menus

    return lambda: menus.table_actions(datasette, actor, database, view, request)


@hookimpl
def row_actions(
    datasette: Datasette, request: Any, database: str, table: str, row: Any
) -> Callable[[], Awaitable[list[dict[str, str]]]]:
    """On 1.0: from a row to what is tagged with its concepts, and to the text of a document."""
    from . import menus

    return lambda: menus.row_actions(datasette, request, database, table, row)


@hookimpl
def query_actions(
    datasette: Datasette,
    actor: dict[str, Any] | None,
    database: str,
    query_name: str | None,
    params: Any,
) -> Callable[[], Awaitable[list[dict[str, str]]]]:
    """On 1.0: from one of our queries to the page that answers the same."""
    from . import menus

    return lambda: menus.query_actions(datasette, actor, database, query_name, params)


@hookimpl
def jump_items_sql(
    datasette: Datasette, actor: dict[str, Any] | None, request: Any
) -> Callable[[], Awaitable[list[Any]]]:
    """On 1.0: Recall and concepts in the menu to jump."""
    from . import jumping

    return lambda: jumping.jump_items(datasette, actor, request.args.get("q", ""))


@hookimpl
def top_row(
    datasette: Datasette, request: Any, database: str, table: str, row: Any
) -> Callable[[], Awaitable[str | None]]:
    """On 1.0: the concepts of a row and what is related by them."""
    from . import rows

    return lambda: rows.top_row(datasette, request, database, table, row)


@hookimpl
def extra_template_vars(
    datasette: Datasette, view_name: str, request: Any, database: str | None, table: str | None
) -> dict[str, Any] | Awaitable[dict[str, Any]]:
    """On 0.65: the same."""
    from . import compat, menus

    if view_name != "row" or not database or not table or compat.has_top_row(datasette):
        return {}
    return menus.row_vars(datasette, request, database, table)


@hookimpl
def extra_css_urls(template: str, request: Any, datasette: Datasette) -> list[str]:
    """The stylesheet where something of ours is shown, on no other page."""
    from . import menus

    return menus.css_urls(datasette, template, request)


@hookimpl
def extra_js_urls(template: str, datasette: Datasette) -> list[dict[str, Any]]:
    """The scripts of search as you type and of sources, on the pages that they are for."""
    from . import menus

    return menus.js_urls(datasette, template)


@hookimpl
def filters_from_request(
    request: Any, database: str, table: str, datasette: Datasette
) -> Callable[[], Awaitable[Any]]:
    """``_concept`` and ``_recall`` on the pages of tables."""
    from . import filters

    return lambda: filters.filter_rows(datasette, request, database, table)


@hookimpl
def register_facet_classes() -> list[type]:
    """``_facet_concept`` on the pages of tables."""
    from . import facets

    return [facets.ConceptFacet]


@hookimpl
def render_cell(value: Any, database: str | None, datasette: Datasette) -> Any:
    """``[[Name]]`` in a cell as a link to the page of the concept."""
    if not isinstance(value, str) or "[[" not in value:  # nearly always, and for every cell
        return None
    from . import cells

    if database is None or not cells.may_link(datasette, database, value):
        return None
    return lambda: cells.linked(datasette, database, value)


@hookimpl
def skip_csrf(scope: dict[str, Any]) -> bool | None:
    """On 0.65: posting a long text to Recall changes nothing, so needs no token."""
    from . import views

    return True if views.is_recall_path(scope["path"]) else None


@hookimpl(hookwrapper=True)  # 0.65 lets later ones win, so that anybody else's query of a name does
def canned_queries(datasette: Datasette, database: str) -> Generator[None, Any, None]:
    """On 0.65: the queries of a knowledge database."""
    from . import queries

    others = yield
    others.force_result([lambda: queries.for_hook(datasette, database), *others.get_result()])


@hookimpl
def startup(datasette: Datasette) -> Callable[[], Awaitable[None]]:
    """Configuration is checked, vocabularies are loaded, on 1.0 the same queries are stored."""
    from . import starting

    return lambda: starting.start(datasette)


@hookimpl(hookwrapper=True)  # 0.65 lets the last opinion win
def permission_allowed(
    datasette: Datasette, actor: dict[str, Any] | None, action: str, resource: Any
) -> Generator[None, Any, None]:
    """On 0.65: what nobody may view through this plugin."""
    from . import guards

    others = yield
    veto = guards.veto_0_65(datasette, actor, action, resource)
    others.force_result([*others.get_result(), *filter(None, [veto])])


@hookimpl
def permission_resources_sql(
    datasette: Datasette, actor: dict[str, Any] | None, action: str
) -> Callable[[], Awaitable[Any]] | None:
    """On 1.0: the same."""
    from . import guards

    return guards.rule_1_0(datasette, actor, action)


@hookimpl
def register_mcp_tools(datasette: Datasette, mcp: Any) -> None:
    """With datasette-mcp: tools for the clients of the instance."""
    from . import mcp_tools

    mcp_tools.register(datasette, mcp)


@hookimpl
def register_agent_tools() -> list[Any]:
    """With datasette-agent: the same tools for its assistant."""
    from . import agent_tools

    return agent_tools.agent_tools()


@hookimpl
def register_commands(cli: Any) -> None:
    """``datasette concept-recall``."""
    from .cli import register

    register(cli)

"""Recall what a knowledge database holds about the concepts that a text names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datasette import hookimpl

from .errors import RecallError, UnknownProject
from .matching import ConceptMatcher, word_count, word_match
from .models import ConceptMatch, ConceptMention, RecallResult
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
    "RecallError",
    "RecallResult",
    "UnknownProject",
    "match_concept_names",
    "recall_by_concept_names",
    "recall_by_text",
    "word_count",
    "word_match",
]


@hookimpl
def prepare_connection(conn: sqlite3.Connection, database: str, datasette: Datasette) -> None:
    """SQL functions on every connection."""
    from . import instances, sql_functions

    sql_functions.register(conn, instances.vocabulary_for(datasette, database))


@hookimpl
def register_routes() -> list[tuple[str, Callable[..., Any]]]:
    """The page and the JSON API."""
    from . import views

    return [(views.ROUTE, views.recall_view)]


@hookimpl
def menu_links(
    datasette: Datasette, actor: dict[str, Any] | None
) -> Callable[[], Awaitable[list[dict[str, str]]]]:
    """Recall in the menu, for every database in which the actor may use it."""
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
def extra_css_urls(template: str, datasette: Datasette) -> list[str]:
    """The stylesheet of the page, on no other page."""
    from . import menus

    return menus.css_urls(datasette, template)


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
    """The vocabularies are loaded in the background; on 1.0 the same queries are stored."""
    from . import instances, queries

    instances.warm_up(datasette)
    return lambda: queries.store(datasette)


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
def register_commands(cli: Any) -> None:
    """``datasette concept-recall``."""
    from .cli import register

    register(cli)

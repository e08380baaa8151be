"""Where Datasette's own pages lead to ours, and which styles and scripts pages load.

Menus are made for every page, so they ask what the tables were when somebody looked last, which
costs nothing; only the page of a database looks again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from . import access, compat, concept_list, concept_page, facets, page, rows
from .canned_sql import BY_NAMES, BY_TEXT, MENTIONS
from .page import short_link
from .parameters import Parameters
from .paths import concepts_path, recall_path, static_path
from .related import is_tagged
from .schema import lowered

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

    from .compat import Actor

_TEMPLATES = (page.TEMPLATE, concept_list.TEMPLATE, concept_page.TEMPLATE)

Action = dict[str, str]
"""An entry of a menu: ``href``, ``label`` and, shown by 1.0 only, ``description``."""

RECALL = "Find what is tagged with the concepts that a text names"


async def menu_links(datasette: Datasette, actor: Actor) -> list[Action]:
    """One link, to all databases when there are several in which the actor may use Recall."""
    found = await access.recallable_databases(datasette, actor)
    if not found:
        return []
    return [
        {"href": recall_path(datasette, found[0] if len(found) == 1 else None), "label": "Recall"}
    ]


async def database_actions(datasette: Datasette, actor: Actor, database: str) -> list[Action]:
    """The actions of a database, when the actor may use Recall in it."""
    await access.current_mapping(datasette, database)
    if not await access.may_recall(datasette, actor, database):
        return []
    return [
        _action("Recall by concept", recall_path(datasette, database), RECALL),
        _all_concepts(datasette, database),
    ]


async def table_actions(
    datasette: Datasette, actor: Actor, database: str, table: str, request: Request
) -> list[Action]:
    """The actions of a table or view, when it holds concepts or is tagged with them."""
    mapping = await access.known_mapping(datasette, database)
    if not is_tagged(mapping, table):
        return []
    visible = await access.visible_mapping(datasette, actor, database, mapping)
    if visible is None:
        return []
    found = []
    if visible.concepts is not None and visible.concepts.table == lowered(table):
        found.append(_all_concepts(datasette, database))
    sources = [source for source in visible.sources if source.item_table == lowered(table)]
    kinds = tuple(kind for source in sources for kind, _ in source.kinds)
    link = short_link(datasette, database, Parameters(types=kinds)) if kinds else None
    if link:
        description = "Find rows of this table by the concepts that a text names"
        found.append(_action("Recall by concept", link, description))
    facet = _facet_link(datasette, database, table, request) if kinds else None
    if facet:
        found.append(_action("Facet by concept", facet, "Count the rows for each concept"))
    return found


def _facet_link(datasette: Datasette, database: str, table: str, request: Request) -> str | None:
    """The same page with the facet as well; None when it is there."""
    pairs = parse_qsl(request.query_string, keep_blank_values=True)
    if any(name == facets.PARAMETER for name, _ in pairs):
        return None
    kept = [(name, value) for name, value in pairs if name != "_next"]
    path: str = datasette.urls.table(database, table)
    return f"{path}?{urlencode([*kept, (facets.PARAMETER, '1')])}"


async def query_actions(
    datasette: Datasette, actor: Actor, database: str, query: str | None, values: Any
) -> list[Action]:
    """On one of our own queries, the action that asks the same on the Recall page.

    ``values`` are what its parameters are set to, by name.
    """
    asked = _asked_by(query, {str(name): str(value) for name, value in (values or {}).items()})
    if asked is None or not await compat.is_our_query(datasette, database, str(query)):
        return []
    link = short_link(datasette, database, asked)
    if link is None or not await access.may_recall(datasette, actor, database):
        return []
    description = "The same question with excerpts, kinds and projects"
    return [_action("Ask on the Recall page", link, description)]


def _asked_by(query: str | None, values: dict[str, str]) -> Parameters | None:
    """What a run of one of our queries asks for, None for any other query."""
    if query in (BY_TEXT, MENTIONS):
        return Parameters(text=values.get("text", ""))
    if query != BY_NAMES:
        return None
    try:
        names = json.loads(values.get("names") or "[]")
    except ValueError:
        names = []
    listed = names if isinstance(names, list) else []
    return Parameters(names=tuple(name for name in listed if isinstance(name, str)))


def _action(label: str, href: str, description: str) -> Action:
    return {"href": href, "label": label, "description": description}


def _all_concepts(datasette: Datasette, database: str) -> Action:
    description = "All concepts, and how much is tagged with each"
    return _action("Concepts", concepts_path(datasette, database), description)


def css_urls(datasette: Datasette, template: str, request: Request | None) -> list[str]:
    """The stylesheet, for our own pages and for those of rows with a panel of ours."""
    if template in _TEMPLATES or rows.has_panel(request):
        return [static_path(datasette, "concept-recall.css")]
    return []


def js_urls(datasette: Datasette, template: str) -> list[dict[str, Any]]:
    """The script of search as you type, for the Recall page only.

    It is a module because Datasette has no other way to load a script after the page.
    """
    if template != page.TEMPLATE:
        return []
    return [{"url": static_path(datasette, "concept-recall.js"), "module": True}]

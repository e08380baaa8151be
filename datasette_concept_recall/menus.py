"""Where Datasette's own pages lead to ours, and which styles and scripts pages load.

Menus are made for every page, so they ask what the tables were when somebody looked last, which
costs nothing; only the page of a database looks again.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from markupsafe import Markup

from . import (
    access,
    compat,
    concept_list,
    concept_page,
    document_page,
    facets,
    page,
    rows,
    source_page,
)
from .canned_sql import BY_NAMES, BY_TEXT, MENTIONS
from .indexing import looking, reading_view
from .page import short_link
from .parameters import Parameters
from .paths import concepts_path, document_path, recall_path, sources_path, static_path
from .related import is_tagged
from .schema import lowered

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

    from .compat import Actor

_TEMPLATES = (
    page.TEMPLATE,
    concept_list.TEMPLATE,
    concept_page.TEMPLATE,
    document_page.TEMPLATE,
    source_page.TEMPLATE,
)

_SCRIPTS = {page.TEMPLATE: "concept-recall.js", source_page.TEMPLATE: "sources.js"}

Action = dict[str, str]
"""An entry of a menu: ``href``, ``label`` and, shown by 1.0 only, ``description``."""

RECALL = "Find what is tagged with the concepts that a text names"


async def menu_links(datasette: Datasette, actor: Actor) -> list[Action]:
    """One link, to all databases when there are several in which the actor may use Recall, and
    one to the sources of indexes when there is an index that it may see."""
    links = []
    found = await access.recallable_databases(datasette, actor)
    if found:
        href = recall_path(datasette, found[0] if len(found) == 1 else None)
        links.append({"href": href, "label": "Recall"})
    if await _sees_an_index(datasette, actor):
        links.append({"href": sources_path(datasette), "label": "Sources of the index"})
    return links


async def _sees_an_index(datasette: Datasette, actor: Actor) -> bool:
    for name in access.databases(datasette):
        with suppress(sqlite3.Error):  # its own pages say so
            if await _may_view(datasette, actor, name, looking.TABLES_OF_SOURCES):
                return True
    return False


async def _may_view(
    datasette: Datasette, actor: Actor, database: str, tables: frozenset[str]
) -> bool:
    """Whether a database is an index and the actor may view these tables of it."""
    if not (await access.known_mapping(datasette, database)).is_index:
        return False
    return await compat.may_view_database(
        datasette, actor, database
    ) and tables == await compat.visible_tables(datasette, actor, database, tables, as_spelled=True)


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
    kinds = tuple(kind for source in visible.sources_of(table) for kind, _ in source.kinds)
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


async def row_actions(
    datasette: Datasette, request: Request, database: str, table: str, row: sqlite3.Row
) -> list[Action]:
    """The actions of a row: what is related, and where the text of a document is read."""
    related = await rows.row_actions(datasette, request, database, table, row)
    link = await _reading_link(datasette, request.actor, database, table, row)
    if link is None:
        return related
    return [_action("Read", link, "The text of this document as it is searched"), *related]


async def row_vars(
    datasette: Datasette, request: Request, database: str, table: str
) -> dict[str, Any]:
    """On 0.65, which has no such actions: the same, behind the description of the row's table."""
    found = await rows.template_vars(datasette, request, database, table)
    link = None
    if table == "document":
        row = await compat.row_of_page(datasette, request, database, table)
        link = row and await _reading_link(datasette, request.actor, database, table, row)
    if not link:
        return found
    html = Markup('<p><a href="{}">Read this document</a></p>').format(link)
    if not found:
        return {"metadata": compat.description_of_table(datasette, database, table, html)}
    told = found["metadata"]
    return {"metadata": told | {"description_html": f"{html}{told['description_html']}"}}


async def _reading_link(
    datasette: Datasette, actor: Actor, database: str, table: str, row: sqlite3.Row
) -> str | None:
    """Where the document of a row is read, None when it is none that the actor may read."""
    if table != "document" or not await _may_view(
        datasette, actor, database, reading_view.TABLES_OF_DOCUMENT
    ):
        return None
    if row["live_generation"] is None:  # not searched, so not to be read either
        return None
    return document_path(datasette, database, row["id"])


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
    """The script of search as you type for the Recall page, and that of the page of sources.

    They are modules because Datasette has no other way to load a script after the page.
    """
    file = _SCRIPTS.get(template)
    return [{"url": static_path(datasette, file), "module": True}] if file else []

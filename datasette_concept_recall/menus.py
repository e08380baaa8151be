"""Where Datasette's own pages lead to Recall, and the page's stylesheet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import access

if TYPE_CHECKING:
    from datasette.app import Datasette

    from .compat import Actor

_DESCRIPTION = "Find what is tagged with the concepts that a text names"


def recall_path(datasette: Datasette, database: str, extension: str = "") -> str:
    """The path of the page, or with ``.json`` of the API, including the base URL."""
    return f"{datasette.urls.database(database)}/-/recall{extension}"


async def menu_links(datasette: Datasette, actor: Actor) -> list[dict[str, str]]:
    """A link for each database in which the actor may use Recall."""
    found = await access.recallable_databases(datasette, actor)
    return [
        {
            "href": recall_path(datasette, database),
            "label": "Recall" if len(found) == 1 else f"Recall in {database}",
        }
        for database in found
    ]


async def database_actions(
    datasette: Datasette, actor: Actor, database: str
) -> list[dict[str, str]]:
    """The action of a database, when the actor may use Recall in it."""
    if not await access.may_recall(datasette, actor, database):
        return []
    href = recall_path(datasette, database)
    return [{"href": href, "label": "Recall by concept", "description": _DESCRIPTION}]


def css_urls(datasette: Datasette, template: str) -> list[str]:
    """The stylesheet, for the page's own template only."""
    if template != "concept_recall.html":
        return []
    return [datasette.urls.static_plugins("datasette-concept-recall", "concept-recall.css")]

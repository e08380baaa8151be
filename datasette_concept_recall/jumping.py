"""The menu to jump of Datasette 1.0: the Recall page, and the concepts that are typed."""

from __future__ import annotations

import asyncio
import sqlite3
from traceback import print_exc
from typing import TYPE_CHECKING, Any

from datasette import Forbidden

from . import asking, compat
from .folding import canonical_name
from .labels import ELLIPSIS, shown_name
from .mapping import Concepts
from .menus import RECALL
from .paths import concept_link, recall_path
from .reading import as_text, reading

if TYPE_CHECKING:
    from datasette.app import Datasette

    from .compat import Actor

_MOST = 101
"""Datasette shows 100 items, and says so when there are more."""

_LONGEST_LABEL = 120


async def jump_items(datasette: Datasette, actor: Actor, typed: str) -> list[Any]:
    """What the hook ``jump_items_sql`` returns: items that the actor may jump to.

    Concepts are looked for when something is ``typed``, in every database where the actor may see
    them. This is not left to Datasette, which would fail as a whole with one slow or broken
    database.
    """
    try:
        scope = await asking.scope_of(datasette, actor, None)
    except Forbidden:
        return []
    if not scope.sights:
        return []
    only = scope.sights[0].database if len(scope.sights) == 1 else None
    recall = compat.jump_menu_item("Recall", recall_path(datasette, only), RECALL)
    if not typed.strip():
        return [recall]
    found = await asyncio.gather(
        *(_concepts(datasette, actor, sight, typed) for sight in scope.sights)
    )
    return [recall, compat.jump_items([item for items in found for item in items])]


async def _concepts(
    datasette: Datasette, actor: Actor, sight: asking.Sight, typed: str
) -> list[dict[str, str]]:
    """The concepts of one database that contain what is typed, case variants once."""

    def find(conn: sqlite3.Connection, sight: asking.Sight) -> list[str]:
        concepts = sight.visible.concepts
        return names_with(conn, concepts, typed) if concepts else []

    try:
        sight, names = await asking.read(datasette, actor, sight, find)
    except (asking.TookTooLong, sqlite3.Error):
        print_exc()  # as Datasette does; there are other databases
        return []
    except Forbidden:
        return []
    once = {canonical_name(name): name for name in reversed(names)}
    linked = ((name, concept_link(datasette, sight.database, name)) for name in once.values())
    return [
        {
            "type": "concept",
            "label": _label(name),
            "description": f"Concept in {sight.database}",
            "url": link,
            "search_text": name,
        }
        for name, link in linked
        if link
    ]


def names_with(conn: sqlite3.Connection, concepts: Concepts, typed: str) -> list[str]:
    """Names that contain the words typed, in that order: as Datasette finds and sorts them."""
    terms = typed.split()
    name = f"cast({concepts.name} as text)"
    sql = (
        f"select distinct {name} as name from {concepts.rows} where name like ?1"
        " order by lower(name) <> lower(?2), lower(name) not like lower(?2 || '%'), length(name),"
        " name limit ?3"
    )
    with reading(conn) as reader:
        rows = reader.rows(sql, f"%{'%'.join(terms)}%", typed.strip(), _MOST)
    return [as_text(name) for (name,) in rows]


def _label(name: str) -> str:
    label = shown_name(name)
    return label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + ELLIPSIS

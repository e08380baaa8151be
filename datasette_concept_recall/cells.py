"""``[[Name]]`` in the cells of tables as links to the pages of concepts.

The hook that renders a cell is not told who asks. So links are made only where everybody may see
the concepts: a link tells that there is one of that name.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from markupsafe import Markup, escape

from . import access
from .instances import vocabulary_for
from .matching import ConceptMatcher
from .paths import concept_link
from .wikilinks import Piece, pieces

if TYPE_CHECKING:
    from datasette.app import Datasette

_SECONDS = 1.0
"""So long it is remembered which names everybody may see: a page may have many cells."""

_public: WeakKeyDictionary[Datasette, dict[str, tuple[float, ConceptMatcher | None]]] = (
    WeakKeyDictionary()
)


def may_link(datasette: Datasette, database: str, value: str) -> bool:
    """Whether a text might hold links. What Datasette cuts short in a cell is left to it."""
    longest = datasette.setting("truncate_cells_html")
    return database in datasette.databases and (not longest or len(value) <= longest)


async def linked(datasette: Datasette, database: str, value: str) -> Markup | None:
    """The text with its links, None when there is none to make."""
    found = pieces(value)
    if not any(piece.names for piece in found):
        return None
    matcher = await _public_names(datasette, database)
    if matcher is None:
        return None
    shown = [(piece.text, _link(datasette, database, matcher, piece)) for piece in found]
    if not any(link for _, link in shown):
        return None
    return Markup("").join(
        Markup('<a href="{}">{}</a>').format(link, text) if link else escape(text)
        for text, link in shown
    )


def _link(datasette: Datasette, database: str, matcher: ConceptMatcher, piece: Piece) -> str | None:
    known = (spellings[0] for name in piece.names if (spellings := matcher.resolve(name)))
    name = next(known, None)
    return None if name is None else concept_link(datasette, database, name)


async def _public_names(datasette: Datasette, database: str) -> ConceptMatcher | None:
    """The names of a database, None unless somebody who has not signed in may see them."""
    known = _public.setdefault(datasette, {})
    until, matcher = known.get(database, (0.0, None))
    if monotonic() >= until:
        matcher = None
        if await access.may_recall(datasette, None, database):
            vocabulary = vocabulary_for(datasette, database)
            matcher = await datasette.get_database(database).execute_fn(vocabulary.matcher)
        known[database] = monotonic() + _SECONDS, matcher
    return matcher

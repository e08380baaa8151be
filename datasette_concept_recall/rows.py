"""The pages of rows: the concepts of a row as chips, related items, and a link to all of them."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from traceback import print_exc
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from datasette import Forbidden

from . import access, asking, compat
from .instances import vocabulary_for
from .page import item_in_short, short_link
from .parameters import Parameters
from .paths import concept_link
from .presenting import Answer, Part, ShownMatch, show_matches
from .related import Related, is_tagged, related_to

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

TEMPLATE = "_concept_recall_row.html"

TOO_SLOW = "Related items took too long to find (sql_time_limit_ms)."
UNREADABLE = "The concepts of this row could not be read."


@dataclass(frozen=True)
class Panel:
    """What is shown about a row: its concepts in ``names``, and what was found in ``answer``.

    There are ``others`` related items. ``note`` says in a sentence what is missing and why;
    ``answer`` is None then.
    """

    names: tuple[str, ...] = ()
    answer: Answer | None = None
    others: int = 0
    note: str = ""


_panels: WeakKeyDictionary[Request, tuple[object, Panel | None]] = WeakKeyDictionary()
"""By request the row and its panel: menu, stylesheet and page need it, and it is read once."""


async def top_row(
    datasette: Datasette, request: Request, database: str, table: str, row: sqlite3.Row
) -> str | None:
    """The panel of a row as HTML, None for a row that has none."""
    panel = await _panel(datasette, request, database, table, row)
    if panel is None:
        return None
    html: str = await datasette.render_template(
        TEMPLATE, _context(datasette, database, panel), request=request
    )
    return html


async def template_vars(
    datasette: Datasette, request: Request, database: str, table: str
) -> dict[str, Any]:
    """The same for 0.65, which has no place for it: behind the description of the row's table."""
    row = await compat.row_of_page(datasette, request, database, table)
    html = None if row is None else await top_row(datasette, request, database, table, row)
    if html is None:
        return {}
    return {"metadata": compat.description_of_table(datasette, database, table, html)}


async def row_actions(
    datasette: Datasette, request: Request, database: str, table: str, row: sqlite3.Row
) -> list[dict[str, str]]:
    """The action that leads from a row to everything tagged with one of its concepts."""
    panel = await _panel(datasette, request, database, table, row)
    link = _all_link(datasette, database, panel) if panel else None
    if link is None:
        return []
    description = "Everything tagged with one of the concepts of this row"
    return [{"href": link, "label": "Related by concept", "description": description}]


def has_panel(request: Request | None) -> bool:
    """Whether the page that is made for a request shows a panel."""
    return request is not None and _panels.get(request, (None, None))[1] is not None


async def _panel(
    datasette: Datasette, request: Request, database: str, table: str, row: sqlite3.Row
) -> Panel | None:
    known = _panels.get(request)
    if known is None or known[0] is not row:
        panel = await _read(datasette, request.actor, database, table, row)
        known = _panels[request] = row, panel
    return known[1]


async def _read(
    datasette: Datasette, actor: compat.Actor, database: str, table: str, row: sqlite3.Row
) -> Panel | None:
    """The panel of a row; what goes wrong on the way is noted in it, and the page is not lost."""
    try:
        if not is_tagged(await access.known_mapping(datasette, database), table):
            return None
        return await _found(datasette, actor, database, table, row)
    except Forbidden:
        return None
    except asking.TookTooLong:
        return Panel(note=TOO_SLOW)
    except sqlite3.Error:
        print_exc()  # as Datasette does
        return Panel(note=UNREADABLE)


async def _found(
    datasette: Datasette, actor: compat.Actor, database: str, table: str, row: sqlite3.Row
) -> Panel | None:
    vocabulary = vocabulary_for(datasette, database)

    def find(
        conn: sqlite3.Connection, sight: asking.Sight
    ) -> tuple[Related, list[ShownMatch]] | None:
        found = related_to(conn, sight.visible, table, row, vocabulary=vocabulary)
        if found is None:
            return None
        return found, show_matches(found.result) if found.result else []

    sight = await asking.look(datasette, actor, database)
    sight, read = await asking.read(datasette, actor, sight, find)
    if read is None:
        return None
    related, shown = read
    if related.result is None:
        return Panel(related.names, note=TOO_SLOW)
    part = Part(database, sight.visible, related.result)
    parameters = Parameters(names=related.names)
    answer = Answer(database, parameters, (part,), related.result, shown, None)
    return Panel(related.names, answer, related.others)


def _all_link(datasette: Datasette, database: str, panel: Panel) -> str | None:
    """The Recall page with the concepts of the row, unless they are too many for a link."""
    if not panel.names:
        return None
    return short_link(datasette, database, Parameters(names=panel.names))


def _context(datasette: Datasette, database: str, panel: Panel) -> dict[str, Any]:
    answer = panel.answer
    return {
        "concepts": [(name, concept_link(datasette, database, name)) for name in panel.names],
        "note": panel.note,
        "items": [item_in_short(datasette, answer, each) for each in answer.shown]
        if answer
        else [],
        "total": answer.result.total if answer else 0,
        "others": panel.others,
        "all_link": _all_link(datasette, database, panel),
    }

"""The page of the sources of all indexes, the same as JSON, and what is asked of them there."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from traceback import print_exc
from typing import TYPE_CHECKING, Any

from datasette import Forbidden, Response

from . import access, compat, source_page
from .errors import BadParameter, RecallError
from .indexing import looking, requests
from .indexing.clock import SystemClock, stamp
from .paths import sources_path
from .source_page import ASKED, SeenIndex
from .views import Unwritable, answered, check_method, headers_of, read_in_time

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

ROUTE = r"^/-/recall/sources(?:\.(?P<format>json))?$"

_METHODS = ("GET", "HEAD", "POST", "OPTIONS")

PAUSES = {"pause": True, "resume": False}
"""What can be asked of a whole index, with whether it is paused then."""

_is_number = re.compile(r"[0-9]{1,18}", re.ASCII).fullmatch


async def sources_view(request: Request, datasette: Datasette) -> Response:
    """Answers ``/-/recall/sources``, and with ``.json``."""
    return await answered(request, datasette, _respond)


async def _respond(
    request: Request, datasette: Datasette, database: str | None, form: str
) -> Response:
    check_method(request, _METHODS)
    if request.method == "POST":
        return await _asked(request, datasette, form)
    seen, warnings = await _seen(datasette, request.actor)
    now = SystemClock().now()
    if form == "json":
        body = source_page.sources_json(seen, now) | {"warnings": warnings}
        return Response.json(body, headers=headers_of(datasette, form))
    may_ask = await compat.may_index(datasette, request.actor)
    context = {
        "database": None,
        "database_color": compat.database_color(datasette, None),
        "warnings": warnings,
        **source_page.sources_context(datasette, seen, now, may_ask),
    }
    html = await datasette.render_template(source_page.TEMPLATE, context, request=request)
    return Response.html(html)


# --- looking --------------------------------------------------------------------------------------


async def _visible(
    datasette: Datasette, actor: compat.Actor, database: str
) -> frozenset[str] | None:
    """The tables about sources that the actor may view in an index; None when it may not see its
    sources, and for any other database.

    Raises `sqlite3.Error`.
    """
    if not await compat.may_view_database(datasette, actor, database):
        return None  # before anything is read that could fail
    if not (await access.current_mapping(datasette, database)).is_index:
        return None
    tables = looking.TABLES_OF_SOURCES | looking.MORE_OF_SOURCES
    visible = await compat.visible_tables(datasette, actor, database, tables, as_spelled=True)
    return visible if visible >= looking.TABLES_OF_SOURCES else None


async def _seen(datasette: Datasette, actor: compat.Actor) -> tuple[list[SeenIndex], list[str]]:
    """All indexes that the actor may see, and a sentence about each that could not be read.

    Raises `Forbidden` when there is none and it may not view the instance either.
    """
    names = access.databases(datasette)
    found = await asyncio.gather(*(_look(datasette, actor, name) for name in names))
    seen = [each for each in found if isinstance(each, SeenIndex)]
    warnings = [each for each in found if isinstance(each, str)]
    if not seen and not await compat.may_view_instance(datasette, actor):
        raise Forbidden("You do not have permission to view this instance")
    return seen, warnings


async def _look(datasette: Datasette, actor: compat.Actor, database: str) -> SeenIndex | str | None:
    """What an actor sees of one database: nothing, an index, or why it could not be read."""
    db = datasette.databases.get(database)
    if db is None:  # removed a moment ago
        return None
    path = Path(db.path) if db.path else None
    try:
        visible = await _visible(datasette, actor, database)
        if visible is None:
            return None

        def read(conn: sqlite3.Connection) -> looking.IndexView:
            return looking.read_sources(conn, path, visible)

        found = await read_in_time(datasette, database, read)
    except sqlite3.Error as error:
        print_exc()  # as Datasette does
        return f"The database {database} could not be read: {error}."
    except RecallError as error:
        return f"The sources of {database} are left out. {error}."
    return SeenIndex(database, db.path, db.is_mutable, found)


# --- asking ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ask:
    """What is asked of an index: an ``action`` of a source, or of all of it."""

    database: str
    action: str
    source: int | None
    count: int | None


async def _asked(request: Request, datasette: Datasette, form: str) -> Response:
    """Leaves a request in the index, and leads back to the page."""
    if not await compat.may_index(datasette, request.actor):
        raise Forbidden(f"You do not have the permission {compat.INDEX_ACTION}")
    ask = await _read_ask(request)
    db = datasette.databases.get(ask.database)
    visible = db and await _visible(datasette, request.actor, ask.database)
    if db is None or visible is None:
        raise BadParameter(f"There is no index named {ask.database}")
    if not db.is_mutable:
        raise RecallError(f"{ask.database} is served as immutable, so nothing can be asked of it")
    moment = stamp(SystemClock().now())
    try:
        name = await compat.write(
            datasette, ask.database, lambda conn: carry_out(conn, ask, moment)
        )
    except sqlite3.OperationalError as error:
        raise Unwritable(ask.database, error) from error
    if form == "json":
        return Response.json({"ok": True}, headers=headers_of(datasette, form))
    datasette.add_message(request, _told(ask, name))
    place = (
        source_page.index_id(ask.database)
        if ask.source is None
        else source_page.source_id(ask.database, ask.source)
    )
    return Response.redirect(f"{sources_path(datasette)}#{place}", status=303)


async def _read_ask(request: Request) -> Ask:
    """The fields of a form. Raises `BadParameter`."""
    try:
        fields: dict[str, Any] = await request.post_vars()
    except ValueError as error:
        raise BadParameter("The body is not a URL-encoded form") from error
    action = fields.get("action", "")
    if action not in (*ASKED, *PAUSES):
        raise BadParameter(f"action is not one of {', '.join((*ASKED, *PAUSES))}")
    is_of_source = action in ASKED
    return Ask(
        fields.get("database", ""),
        action,
        _number(fields, "source") if is_of_source else None,
        _number(fields, "count") if action == "approve" else None,
    )


def _number(fields: dict[str, Any], name: str) -> int:
    value = str(fields.get(name, ""))
    if not _is_number(value):
        raise BadParameter(f"{name} is not a whole number")
    return int(value)


def carry_out(conn: sqlite3.Connection, ask: Ask, moment: str) -> str:
    """Writes what is asked for, once; the name of the source, '' for a whole index.

    Raises `RecallError` for a source that there is not, and when not exactly so many removals
    wait.
    """
    if ask.source is None:
        requests.set_paused(conn, PAUSES[ask.action])
        return ""
    row = conn.execute(
        "select name from source where id = ? and not is_leaving", [ask.source]
    ).fetchone()
    if row is None:
        raise BadParameter(f"There is no source {ask.source} in {ask.database}")
    if ask.action == "approve":
        requests.approve(conn, ask.source, ask.count or 0, moment)
    elif not conn.execute(
        "select 1 from request where source_id = ? and action = ?", [ask.source, ask.action]
    ).fetchone():
        requests.request(conn, ask.action, ask.source, moment)
    return str(row[0])


def _told(ask: Ask, name: str) -> str:
    if ask.source is None:
        return f"{ask.database} is {'paused' if PAUSES[ask.action] else 'no longer paused'}."
    return f"Asked for {ASKED[ask.action]} of {name}."

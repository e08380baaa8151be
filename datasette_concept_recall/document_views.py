"""The page on which a document of an index is read, and the same as JSON."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from datasette import Forbidden, NotFound, Response

from . import access, compat, document_page
from .indexing import reading_view
from .views import answered, check_method, headers_of, read_in_time

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

ROUTE = r"^/(?P<database>[^/]+)/-/documents/(?P<document>[^/]+?)(?:\.(?P<format>json))?$"

_METHODS = ("GET", "HEAD", "OPTIONS")


async def document_view(request: Request, datasette: Datasette) -> Response:
    """Answers ``/{database}/-/documents/{id}``, and with ``.json``."""
    return await answered(request, datasette, _respond)


async def _respond(
    request: Request, datasette: Datasette, database: str | None, form: str
) -> Response:
    assert database is not None  # there is no other route
    check_method(request, _METHODS)
    visible = await _visible(datasette, request.actor, database)
    asked = document_page.read_reading(request)
    found = await _read(datasette, database, visible, request.url_vars["document"], asked)
    if form == "json":
        body = document_page.document_json(request, datasette, database, found)
        return Response.json(body, headers=headers_of(datasette, form))
    context = {
        "database": database,
        "database_color": compat.database_color(datasette, database),
        **document_page.document_context(datasette, database, asked, found),
    }
    html = await datasette.render_template(document_page.TEMPLATE, context, request=request)
    return Response.html(html)


async def _visible(datasette: Datasette, actor: compat.Actor, database: str) -> frozenset[str]:
    """The tables about documents that the actor may view; those of the text are among them.

    Raises `Forbidden`, and `NotFound` for a database that is no index.
    """
    forbidden = Forbidden(f"You do not have permission to read the documents of {database}")
    if not await compat.may_view_database(datasette, actor, database):
        raise forbidden
    if not (await access.current_mapping(datasette, database)).is_index:
        raise NotFound(f"{database} is not an index of documents")
    tables = reading_view.TABLES_OF_DOCUMENT | reading_view.MORE_OF_DOCUMENT
    visible = await compat.visible_tables(datasette, actor, database, tables, as_spelled=True)
    if not visible >= reading_view.TABLES_OF_DOCUMENT:
        raise forbidden
    return visible


async def _read(
    datasette: Datasette,
    database: str,
    visible: frozenset[str],
    number: str,
    asked: document_page.Reading,
) -> reading_view.DocumentView:
    id_ = document_page.document_id(number)

    def read(conn: sqlite3.Connection) -> reading_view.DocumentView | None:
        if id_ is None:
            return None
        return reading_view.read_document(conn, id_, visible, chunk=asked.chunk, page=asked.page)

    found = await read_in_time(datasette, database, read)
    if found is None:
        raise NotFound("There is no document of this number in the index")
    return found

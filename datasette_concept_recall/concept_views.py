"""The pages of concepts, and the same as JSON: all of a database, and one with its surroundings."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from datasette import NotFound, Response
from datasette.utils import tilde_decode

from . import asking, compat, concept_list, concept_page
from .concept_detail import ConceptDetail, show_concept
from .concepts import ConceptList, list_concepts
from .errors import UnknownConcept
from .instances import vocabulary_for
from .parameters import Parameters
from .paths import concepts_path, recall_path
from .presenting import Answer, Part, ShownMatch, show_matches
from .views import answered, check_method, headers_of

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

LIST_ROUTE = r"^/(?P<database>[^/]+)/-/concepts(?:\.(?P<format>json))?$"
ONE_ROUTE = r"^/(?P<database>[^/]+)/-/concepts/(?P<concept>[^/]+?)(?:\.(?P<format>json))?$"

_METHODS = ("GET", "HEAD", "OPTIONS")

_NEWEST = 10


async def list_view(request: Request, datasette: Datasette) -> Response:
    """Answers ``/{database}/-/concepts`` and ``/{database}/-/concepts.json``."""
    return await answered(request, datasette, _list)


async def one_view(request: Request, datasette: Datasette) -> Response:
    """Answers ``/{database}/-/concepts/{name}``, and with ``.json``; names are tilde-encoded."""
    return await answered(request, datasette, _one)


async def _list(
    request: Request, datasette: Datasette, database: str | None, form: str
) -> Response:
    assert database is not None  # there is no other route
    check_method(request, _METHODS)
    asked = concept_list.read_listing(request, datasette.setting("max_returned_rows"))
    vocabulary = vocabulary_for(datasette, database)

    def read(conn: sqlite3.Connection, sight: asking.Sight) -> ConceptList:
        return list_concepts(
            conn,
            search=asked.search,
            sort=asked.sort,
            limit=asked.size,
            after=asked.after,
            vocabulary=vocabulary,
            visible=sight.visible.tables,
        )

    sight = await asking.look(datasette, request.actor, database)
    sight, found = await asking.read(datasette, request.actor, sight, read)
    if form == "json":
        body = concept_list.list_json(request, datasette, database, asked, found)
        return Response.json(body, headers=headers_of(datasette, form))
    context = concept_list.list_context(datasette, database, asked, found)
    context["kinds"] = sight.visible.kinds
    return await _html(datasette, request, database, concept_list.TEMPLATE, context)


async def _one(request: Request, datasette: Datasette, database: str | None, form: str) -> Response:
    assert database is not None  # there is no other route
    check_method(request, _METHODS)
    name = tilde_decode(request.url_vars["concept"])
    vocabulary = vocabulary_for(datasette, database)

    def read(
        conn: sqlite3.Connection, sight: asking.Sight
    ) -> tuple[ConceptDetail, list[ShownMatch]]:
        tables = sight.visible.tables
        found = show_concept(conn, name, newest=_NEWEST, vocabulary=vocabulary, visible=tables)
        return found, show_matches(found.newest)

    sight = await asking.look(datasette, request.actor, database)
    try:
        sight, (found, shown) = await asking.read(datasette, request.actor, sight, read)
    except UnknownConcept as error:
        raise NotFound(str(error)) from error
    part = Part(database, sight.visible, found.newest)
    parameters = Parameters(names=(found.entry.name,))
    answer = Answer(database, parameters, (part,), found.newest, shown, None)
    if form == "json":
        body = concept_page.concept_json(request, datasette, answer, found)
        return Response.json(body, headers=headers_of(datasette, form))
    context = concept_page.concept_context(datasette, answer, found)
    return await _html(datasette, request, database, concept_page.TEMPLATE, context)


async def _html(
    datasette: Datasette, request: Request, database: str, template: str, context: dict[str, Any]
) -> Response:
    common = {
        "database": database,
        "database_color": compat.database_color(datasette, database),
        "recall_path": recall_path(datasette, database),
        "concepts_path": concepts_path(datasette, database),
    }
    html = await datasette.render_template(template, common | context, request=request)
    return Response.html(html)

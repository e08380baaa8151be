"""The pages of concepts, and the same as JSON: all of a database, and one with its surroundings."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from traceback import print_exc
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from datasette import Forbidden, NotFound, Response
from datasette.utils import tilde_decode
from markupsafe import Markup

from . import asking, compat
from .charts import MOST_NEIGHBOURS, Neighbour, neighbourhood_svg, timeline_svg
from .concepts import SORTS, ConceptDetail, ConceptEntry, ConceptList, list_concepts, show_concept
from .errors import NO_TOKEN, BadParameter, RecallError, UnknownConcept
from .excerpts import plain
from .filters import table_link
from .identifiers import identifier_label, identifier_url
from .instances import vocabulary_for
from .page import short_link, title_and_excerpt
from .parameters import Parameters
from .paths import concept_link, concepts_path, recall_path
from .presenting import Answer, Part, ShownMatch, badges, iso, row_path, show_matches
from .views import database_of, error_response, headers_of

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

LIST_ROUTE = r"^/(?P<database>[^/]+)/-/concepts(?:\.(?P<format>json))?$"
ONE_ROUTE = r"^/(?P<database>[^/]+)/-/concepts/(?P<concept>[^/]+?)(?:\.(?P<format>json))?$"
LIST_TEMPLATE, ONE_TEMPLATE = "concept_recall_concepts.html", "concept_recall_concept.html"

_LIST_SIZE = 100
_NEWEST = 10

_token = re.compile(r"(-?\d{1,20})\.((?:[0-9a-f]{2})*)", re.ASCII).fullmatch


async def list_view(request: Request, datasette: Datasette) -> Response:
    """Answers ``/{database}/-/concepts`` and ``/{database}/-/concepts.json``."""
    return await _answered(request, datasette, _list)


async def one_view(request: Request, datasette: Datasette) -> Response:
    """Answers ``/{database}/-/concepts/{name}``, and with ``.json``; names are tilde-encoded."""
    return await _answered(request, datasette, _one)


async def _answered(
    request: Request,
    datasette: Datasette,
    respond: Callable[[Request, Datasette, str, str], Awaitable[Response]],
) -> Response:
    form = request.url_vars.get("format") or "html"
    headers = headers_of(datasette, form)
    if request.method == "OPTIONS":
        return Response.text("ok", headers=headers)
    try:
        return await respond(request, datasette, str(database_of(request, datasette)), form)
    except (Forbidden, NotFound, UnknownConcept) as error:
        status = 403 if isinstance(error, Forbidden) else 404
        if form == "html":
            if isinstance(error, UnknownConcept):
                raise NotFound(str(error)) from error
            raise
        return error_response(form, str(error), status, headers)
    except RecallError as error:
        if form == "html":
            html = await datasette.render_template(
                "error.html",
                {"error": str(error), "status": 400, "title": "Concepts", "ok": False},
                request=request,
            )
            return Response.html(html, status=400)
        return error_response(form, str(error), 400, headers)
    except sqlite3.Error as error:
        if form == "html":
            raise
        print_exc()  # as Datasette does
        return error_response(form, f"The database cannot be read: {error}", 500, headers)


# --- all concepts --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Listing:
    """What a list is asked for."""

    search: str
    sort: str
    size: int
    after: tuple[int, str] | None

    def query(self, **changes: object) -> str:
        """These parameters for a link, some of them changed; what has its default is left out."""
        given = {"q": self.search, "_sort": self.sort, "_size": self.size} | changes
        defaults = {"q": "", "_sort": SORTS[0], "_size": _LIST_SIZE}
        return urlencode({k: v for k, v in given.items() if v and v != defaults.get(k)})


def _listing(request: Request, largest: int) -> _Listing:
    sort = request.args.get("_sort") or SORTS[0]
    if sort not in SORTS:
        raise BadParameter(f"_sort is {sort!r}, not one of {', '.join(SORTS)}")
    size = request.args.get("_size") or str(min(_LIST_SIZE, largest))
    size = str(largest) if size == "max" else size
    if not re.fullmatch(r"[0-9]{1,9}", size) or not 0 < int(size) <= largest:
        raise BadParameter(f"_size is not max or a whole number from 1 to {largest}")
    token = request.args.get("_next")
    match = _token(token) if token else None
    if token and match is None:
        raise BadParameter(NO_TOKEN)
    after = (int(match[1]), bytes.fromhex(match[2]).decode("utf-8", "replace")) if match else None
    return _Listing(request.args.get("q") or "", sort, int(size), after)


async def _list(request: Request, datasette: Datasette, database: str, form: str) -> Response:
    asked = _listing(request, datasette.setting("max_returned_rows"))
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
    token = f"{found.next[0]}.{found.next[1].encode().hex()}" if found.next else None
    extension = ".json" if form == "json" else ""
    path = concepts_path(datasette, database, extension=extension)
    next_path = f"{path}?{asked.query(_next=token)}" if token else None
    if form == "json":
        headers = headers_of(datasette, form)
        next_url = datasette.absolute_url(request, next_path) if next_path else None
        return Response.json(
            {
                "ok": True,
                "database": database,
                "concepts": [
                    {**_entry_json(entry), "url": _url(request, datasette, database, entry.name)}
                    for entry in found.entries
                ],
                "total": found.total,
                "next": token,
                "next_url": next_url,
            },
            headers=headers,
        )
    context = {
        "asked": asked,
        "found": found,
        "kinds": sight.visible.kinds,
        "concepts": [
            (entry, concept_link(datasette, database, entry.name)) for entry in found.entries
        ],
        "sorts": [
            (sort, label, f"{path}?{asked.query(_sort=sort)}".rstrip("?"))
            for sort, label in zip(SORTS, ("most items", "name", "latest use"), strict=True)
        ],
        "next_link": next_path,
        "json_link": f"{path}.json?{asked.query()}".rstrip("?"),
        "path": path,
    }
    return await _html(datasette, request, database, LIST_TEMPLATE, context)


def _entry_json(entry: ConceptEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "spellings": list(entry.spellings),
        "description": entry.description,
        "total": entry.total,
        "kinds": entry.kinds,
        "latest": iso(entry.latest),
    }


def _url(request: Request, datasette: Datasette, database: str, name: str) -> str:
    url: str = datasette.absolute_url(request, concepts_path(datasette, database, name))
    return url


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


# --- one concept ---------------------------------------------------------------------------------


async def _one(request: Request, datasette: Datasette, database: str, form: str) -> Response:
    name = tilde_decode(request.url_vars["concept"])
    vocabulary = vocabulary_for(datasette, database)

    def read(
        conn: sqlite3.Connection, sight: asking.Sight
    ) -> tuple[ConceptDetail, list[ShownMatch]]:
        tables = sight.visible.tables
        found = show_concept(conn, name, newest=_NEWEST, vocabulary=vocabulary, visible=tables)
        return found, show_matches(found.newest)

    sight = await asking.look(datasette, request.actor, database)
    sight, (found, shown) = await asking.read(datasette, request.actor, sight, read)
    part = Part(database, sight.visible, found.newest)
    parameters = Parameters(names=(found.entry.name,))
    answer = Answer(database, parameters, (part,), found.newest, shown, None)
    if form == "json":
        body = _detail_json(request, datasette, answer, found)
        return Response.json(body, headers=headers_of(datasette, form))
    context = _detail_context(datasette, answer, found)
    return await _html(datasette, request, database, ONE_TEMPLATE, context)


def _detail_json(
    request: Request, datasette: Datasette, answer: Answer, found: ConceptDetail
) -> dict[str, Any]:
    database = str(answer.database)
    origin = datasette.absolute_url(request, "/").removesuffix("/")
    return {
        "ok": True,
        "database": database,
        **_entry_json(found.entry),
        "identifiers": [
            {"type": kind, "value": value, "url": identifier_url(kind, value)}
            for kind, value in found.identifiers
        ],
        "projects": {
            name: count for name, count in found.newest.project_counts.items() if name is not None
        },
        "newest": [
            _without_body(each.as_json(origin + row_path(datasette, answer, each)))
            for each in answer.shown
        ],
        "neighbours": [
            {"name": name, "shared": shared, "url": _url(request, datasette, database, name)}
            for name, shared in found.neighbours
        ],
        "use": {
            "unit": found.use.unit,
            "periods": [
                {"start": p.start.isoformat(), "label": p.label, "uses": p.uses}
                for p in found.use.periods
            ],
        },
        "url": _url(request, datasette, database, found.entry.name),
    }


def _without_body(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the API with its excerpt alone: an overview need not bring whole texts."""
    return {key: value for key, value in row.items() if key != "body"}


def _detail_context(datasette: Datasette, answer: Answer, found: ConceptDetail) -> dict[str, Any]:
    database, name = str(answer.database), found.entry.name
    mapping = answer.parts[0].mapping

    def recall_of(*names: str, kinds: tuple[str, ...] = ()) -> str | None:
        return short_link(datasette, database, Parameters(names=names, types=kinds))

    def rows_of(kind: str) -> str | None:
        table = mapping.spelled(mapping.source_of(kind).item_table)
        link = table_link(datasette, database, table, [name])
        return link if len(link) < 4000 else None

    return {
        "found": found,
        "name": name,
        "kinds": [
            (label, found.entry.kinds[kind], recall_of(name, kinds=(kind,)), rows_of(kind))
            for kind, label in mapping.kinds.items()
            if found.entry.kinds.get(kind)
        ],
        "identifiers": [
            (identifier_label(kind), value, identifier_url(kind, value))
            for kind, value in found.identifiers
        ],
        "items": [
            {
                "match": each.match,
                "title": plain(title_and_excerpt(each)[0]),
                "excerpt": plain(title_and_excerpt(each)[1]),
                "link": row_path(datasette, answer, each),
                "badges": badges(each.match),
            }
            for each in answer.shown
        ],
        "neighbours": [
            (other, shared, concept_link(datasette, database, other), recall_of(name, other))
            for other, shared in found.neighbours
        ],
        "recall_link": recall_of(name),
        "json_link": (concept_link(datasette, database, name) or "") + ".json",
        "timeline": _timeline_picture(found),
        "neighbourhood": _neighbourhood_picture(datasette, database, found),
    }


def _timeline_picture(found: ConceptDetail) -> Markup | None:
    if len(found.use.periods) < 2:  # a single bar says nothing
        return None
    unit = found.use.unit
    description = f"{found.use.total:,} items by {unit}, from the first to the last."
    return Markup(timeline_svg(found.use, "use", f"Items by {unit}", description))


def _neighbourhood_picture(
    datasette: Datasette, database: str, found: ConceptDetail
) -> Markup | None:
    around = [
        Neighbour(name, shared, link)
        for name, shared in found.neighbours[:MOST_NEIGHBOURS]
        if (link := concept_link(datasette, database, name))
    ]
    if not around:
        return None
    title = "Concepts most often tagged together with it"
    description = "Each line is the wider the more items carry both concepts."
    return Markup(neighbourhood_svg(found.entry.name, around, "around", title, description))

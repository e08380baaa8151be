"""The page and the JSON API: a request to `search.recall`, its result to HTML or JSON."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import replace
from traceback import print_exc
from typing import TYPE_CHECKING

from datasette import Forbidden, NotFound, Response
from datasette.utils import add_cors_headers, sqlite_timelimit, tilde_decode

from . import access, page
from .errors import RecallError, TextTooLong, UnknownProject
from .instances import vocabulary_for
from .mapping import Mapping
from .models import RecallRequest, RecallResult
from .parameters import Parameters, encode_token, read_parameters
from .presenting import (
    Answer,
    ShownMatch,
    concepts_json,
    row_path,
    show_matches,
    warnings_of,
)
from .search import recall

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

ROUTE = r"^/(?P<database>[^/]+)/-/recall(?:\.(?P<format>json))?$"
is_recall_path = re.compile(r"/[^/]+/-/recall(\.json)?$").search

_METHODS = ("GET", "HEAD", "POST", "OPTIONS")


async def recall_view(request: Request, datasette: Datasette) -> Response:
    """Answers ``/{database}/-/recall`` and ``/{database}/-/recall.json``."""
    as_json = request.url_vars.get("format") == "json"
    headers = _headers(datasette, as_json)
    if request.method == "OPTIONS":
        return Response.text("ok", headers=headers)
    try:
        database = _database_name(request, datasette)
        return await _respond(request, datasette, database, as_json)
    except (Forbidden, NotFound) as error:
        if not as_json:
            raise  # Datasette's own pages: a login plugin may act on the first
        return _json_error(str(error), 403 if isinstance(error, Forbidden) else 404, headers)
    except sqlite3.Error as error:
        if not as_json:
            raise
        print_exc()  # as Datasette does
        return _json_error(f"The database cannot be read: {error}", 500, headers)


class MethodNotAllowed(RecallError):
    """The method of the request is none of those that the address answers."""


class TookTooLong(RecallError):
    """The time limit of Datasette ended the recall."""

    def __init__(self) -> None:
        super().__init__(
            "The recall took too long and was stopped by the time limit (sql_time_limit_ms)."
            " The command `datasette concept-recall optimize` makes large databases fast"
        )


def _status(error: RecallError) -> int:
    if isinstance(error, MethodNotAllowed):
        return 405
    return 413 if isinstance(error, TextTooLong) else 400


def _json_error(message: str, status: int, headers: dict[str, str]) -> Response:
    body = {"ok": False, "error": message, "errors": [message], "status": status}
    return Response.json(body, status=status, headers=headers)


def _headers(datasette: Datasette, as_json: bool) -> dict[str, str]:
    headers: dict[str, str] = {}
    if as_json and datasette.cors:
        add_cors_headers(headers)
        # 0.65 allows only the first, without which a script cannot post JSON from elsewhere.
        headers["Access-Control-Allow-Headers"] = "Authorization, Content-Type"
    return headers


def _database_name(request: Request, datasette: Datasette) -> str:
    route = tilde_decode(request.url_vars["database"])
    try:
        return datasette.get_database(route=route).name
    except KeyError:
        raise NotFound(f"Database not found: {route}") from None


async def _respond(
    request: Request, datasette: Datasette, database: str, as_json: bool
) -> Response:
    parameters = Parameters()
    mapping = await access.known_mapping(datasette, database)
    visible = await _visible(request, datasette, database, mapping)
    try:
        if request.method not in _METHODS:
            raise MethodNotAllowed(f"{request.method} is not allowed here")
        parameters = await read_parameters(request, datasette.setting("max_returned_rows"))
        link = page.short_link(datasette, database, parameters)
        if request.method == "POST" and link and not as_json:
            return Response("", status=303, headers={"Location": link})
        asked = replace(parameters.request(visible.kinds), facets=not as_json)
        found = await _found(datasette, database, asked, mapping, visible)
        while isinstance(found, Mapping):  # the schema has changed, and with it what to judge
            mapping, visible = found, await _visible(request, datasette, database, found)
            found = await _found(datasette, database, asked, mapping, visible)
        result, shown = found
        answer = Answer(database, parameters, visible, result, shown)
    except RecallError as error:
        status, headers = _status(error), _headers(datasette, as_json)
        if status == 405:
            headers["Allow"] = ", ".join(_METHODS)
        if as_json:
            return _json_error(str(error), status, headers)
        if isinstance(error, UnknownProject):  # or the form would bring it again
            parameters = replace(parameters, project=None)
        known = tuple(kind for kind in parameters.types if kind in visible.kinds)
        parameters = replace(parameters, types=known)
        html = await page.error_html(
            datasette, request, database, parameters, str(error), visible.kinds
        )
        return Response.html(html, status=status, headers=headers)
    if as_json:
        return _as_json(request, datasette, answer)
    return Response.html(await page.result_html(datasette, request, answer))


async def _visible(
    request: Request, datasette: Datasette, database: str, mapping: Mapping
) -> Mapping:
    visible = await access.visible_mapping(datasette, request.actor, database, mapping)
    if visible is None:
        raise Forbidden(f"You do not have permission to recall from {database}")
    return visible


async def _found(
    datasette: Datasette, database: str, asked: RecallRequest, mapping: Mapping, visible: Mapping
) -> tuple[RecallResult, list[ShownMatch]] | Mapping:
    """What is found, in one trip to a thread; the mapping instead when it is not as it was."""
    vocabulary = vocabulary_for(datasette, database)
    # The limit is for the database. Matching takes time that follows the text, at most a second.
    limit = datasette.setting("sql_time_limit_ms") + len(asked.text) // 1000

    def find(conn: sqlite3.Connection) -> tuple[RecallResult, list[ShownMatch]] | Mapping:
        with sqlite_timelimit(conn, limit):
            now = vocabulary.mapping(conn)
            if now.tables != mapping.tables:
                return now
            result = recall(conn, asked, vocabulary=vocabulary, visible=visible.tables)
        return result, show_matches(result)

    try:
        found: tuple[RecallResult, list[ShownMatch]] | Mapping = await datasette.get_database(
            database
        ).execute_fn(find)
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        raise TookTooLong from error
    return found


def _as_json(request: Request, datasette: Datasette, answer: Answer) -> Response:
    headers = _headers(datasette, True)
    origin = datasette.absolute_url(request, "/").removesuffix("/")
    rows = [
        shown.as_json(origin + row_path(datasette, answer, shown.match)) for shown in answer.shown
    ]
    result, next_url = answer.result, None
    token = encode_token(result.next_key) if result.next_key else None
    if token:
        following = replace(answer.parameters, next=token)
        link = page.short_link(datasette, answer.database, following, ".json")
        next_url = datasette.absolute_url(request, link) if link else None
    if next_url:
        headers["Link"] = f'<{next_url}>; rel="next"'
    if answer.parameters.shape == "array":
        if answer.parameters.newlines:
            return Response.text("\n".join(map(json.dumps, rows)), headers=headers)
        return Response.json(rows, headers=headers)
    return Response.json(
        {
            "ok": True,
            "database": answer.database,
            "concepts": concepts_json(result),
            "rows": rows,
            "projects": result.projects,
            "total": result.total,
            "truncated": token is not None,
            "next": token,
            "next_url": next_url,
            "warnings": warnings_of(result),
        },
        headers=headers,
    )

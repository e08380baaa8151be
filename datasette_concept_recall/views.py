"""The page and the API: a request to `search.recall`, its result to HTML, JSON or Markdown."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from traceback import print_exc
from typing import TYPE_CHECKING, Any, TypeVar

from datasette import Forbidden, NotFound, Response
from datasette.utils import add_cors_headers, tilde_decode

from . import access, asking, page
from .errors import RecallError, TextTooLong, UnknownProject
from .parameters import Parameters, read_parameters
from .presenting import (
    Answer,
    concepts_json,
    context_json,
    near_misses_json,
    rows_json,
    warnings_of,
)

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

ROUTE = r"^/(?P<database>[^/]+)/-/recall(?:\.(?P<format>json|md))?$"
ROUTE_OF_ALL = r"^/-/recall(?:\.(?P<format>json|md))?$"
is_recall_path = re.compile(r"/-/recall(\.json|\.md)?$").search

_METHODS = ("GET", "HEAD", "POST", "OPTIONS")

# By format: the budget of a request that names none; the page takes none.
_BUDGETS = {"html": None, "json": "", "md": "2000"}


T = TypeVar("T")

Respond = Callable[["Request", "Datasette", "str | None", str], Awaitable[Response]]
"""Answers a request about a database (None: all) in a format, ``html`` or what is asked for."""


async def recall_view(request: Request, datasette: Datasette) -> Response:
    """Answers ``/{database}/-/recall`` and ``/-/recall``, and both with ``.json`` and ``.md``."""
    return await answered(request, datasette, _respond)


async def answered(request: Request, datasette: Datasette, respond: Respond) -> Response:
    """What a function responds; its errors in the format that was asked for."""
    form = request.url_vars.get("format") or "html"
    headers = headers_of(datasette, form)
    if request.method == "OPTIONS":
        return Response.text("ok", headers=headers)
    try:
        return await respond(request, datasette, _database_of(request, datasette), form)
    except (Forbidden, NotFound) as error:
        if form == "html":
            raise  # Datasette's own pages: a login plugin may act on the first
        status = 403 if isinstance(error, Forbidden) else 404
        return _error(form, str(error), status, headers)
    except RecallError as error:
        status, headers = _status(error), _with_allowed(headers, error)
        if form != "html":
            return _error(form, str(error), status, headers)
        context = {"error": str(error), "status": status, "title": None, "ok": False}
        html = await datasette.render_template("error.html", context, request=request)
        return Response.html(html, status=status, headers=headers)
    except sqlite3.Error as error:
        if form == "html":
            raise
        print_exc()  # as Datasette does
        return _error(form, f"The database cannot be read: {error}", 500, headers)


class MethodNotAllowed(RecallError):
    """The method of the request is none of those that the address answers."""

    def __init__(self, method: str, allowed: Sequence[str]) -> None:
        super().__init__(f"{method} is not allowed here")
        self.allowed = ", ".join(allowed)


class Unwritable(RecallError):
    """A database cannot be written at the moment."""

    def __init__(self, database: str, error: sqlite3.Error) -> None:
        super().__init__(f"{database} cannot be written at the moment: {error}")


def check_method(request: Request, allowed: Sequence[str]) -> None:
    """Raises `MethodNotAllowed` for a request with another method."""
    if request.method not in allowed:
        raise MethodNotAllowed(request.method, allowed)


def _with_allowed(headers: dict[str, str], error: RecallError) -> dict[str, str]:
    return headers | ({"Allow": error.allowed} if isinstance(error, MethodNotAllowed) else {})


def _status(error: RecallError) -> int:
    if isinstance(error, MethodNotAllowed):
        return 405
    if isinstance(error, Unwritable):
        return 503
    return 413 if isinstance(error, TextTooLong) else 400


def _error(form: str, message: str, status: int, headers: dict[str, str]) -> Response:
    """An error for a program; one that asked for Markdown is given the sentence alone."""
    if form == "md":
        return Response.text(f"{message}\n", status=status, headers=headers)
    body = {"ok": False, "error": message, "errors": [message], "status": status}
    return Response.json(body, status=status, headers=headers)


def headers_of(datasette: Datasette, form: str) -> dict[str, str]:
    """The headers of every answer in a format: whether scripts of other origins may read it."""
    headers: dict[str, str] = {}
    if form != "html" and datasette.cors:
        add_cors_headers(headers)
        # 0.65 allows only the first, without which a script cannot post JSON from elsewhere.
        headers["Access-Control-Allow-Headers"] = "Authorization, Content-Type"
    return headers


def _database_of(request: Request, datasette: Datasette) -> str | None:
    """The database of the address, None when it is that of all databases."""
    encoded = request.url_vars.get("database")
    if encoded is None:
        return None
    route = tilde_decode(encoded)
    try:
        name: str = datasette.get_database(route=route).name
        return name
    except KeyError:
        raise NotFound(f"Database not found: {route}") from None


class ReadingTookTooLong(RecallError):
    """The time limit of Datasette ended what was read."""

    def __init__(self) -> None:
        super().__init__("Reading took too long and was stopped by the limit (sql_time_limit_ms)")


async def read_in_time(
    datasette: Datasette, database: str, reader: Callable[[sqlite3.Connection], T]
) -> T:
    """What a function reads from a database, in one trip to a thread, under the time limit.

    Raises `ReadingTookTooLong`, and whatever the function raises.
    """
    try:
        return await access.in_time(datasette, database, reader)
    except sqlite3.OperationalError as error:
        if not access.was_interrupted(error):
            raise
        raise ReadingTookTooLong from error


async def _respond(
    request: Request, datasette: Datasette, database: str | None, form: str
) -> Response:
    parameters = Parameters()
    scope = await asking.scope_of(datasette, request.actor, database)
    try:
        check_method(request, _METHODS)
        largest = datasette.setting("max_returned_rows")
        parameters = await read_parameters(request, largest, _BUDGETS[form])
        link = page.short_link(datasette, database, parameters)
        if request.method == "POST" and link and form == "html":
            return Response("", status=303, headers={"Location": link})
        answer = await asking.ask(datasette, request.actor, scope, parameters, form == "html")
    except RecallError as error:
        if form != "html":
            raise
        if isinstance(error, UnknownProject):  # or the form would bring it again
            parameters = replace(parameters, project=None)
        known = tuple(kind for kind in parameters.types if kind in scope.kinds)
        parameters = replace(parameters, types=known)
        html = await page.error_html(datasette, request, scope, parameters, str(error))
        return Response.html(html, status=_status(error), headers=_with_allowed({}, error))
    if form == "json":
        return _as_json(request, datasette, answer)
    if form == "md":
        return _as_markdown(request, datasette, answer)
    return Response.html(await page.result_html(datasette, request, scope, answer))


def _asked(answer: Answer) -> dict[str, Any]:
    if answer.database is not None:
        return {"database": answer.database}
    return {"databases": [part.database for part in answer.parts]}


def _next_url(request: Request, datasette: Datasette, answer: Answer, extension: str) -> str | None:
    """The address of the following page, where there is one and it is not too long."""
    if not answer.next:
        return None
    following = replace(answer.parameters, next=answer.next)
    link = page.short_link(datasette, answer.database, following, extension)
    return datasette.absolute_url(request, link) if link else None


def _as_markdown(request: Request, datasette: Datasette, answer: Answer) -> Response:
    headers = headers_of(datasette, "md")
    next_url = _next_url(request, datasette, answer, ".md")
    if next_url:
        headers["Link"] = f'<{next_url}>; rel="next"'
    context = answer.result.context
    return Response(
        context.text if context else "",
        headers=headers,
        content_type="text/markdown; charset=utf-8",
    )


def _as_json(request: Request, datasette: Datasette, answer: Answer) -> Response:
    headers = headers_of(datasette, "json")
    rows = rows_json(request, datasette, answer)
    result, next_url = answer.result, _next_url(request, datasette, answer, ".json")
    if next_url:
        headers["Link"] = f'<{next_url}>; rel="next"'
    if answer.parameters.shape == "array":
        if answer.parameters.newlines:
            return Response.text("\n".join(map(json.dumps, rows)), headers=headers)
        return Response.json(rows, headers=headers)
    return Response.json(
        {
            "ok": True,
            **_asked(answer),
            "concepts": concepts_json(result),
            "near_misses": near_misses_json(result),
            "rows": rows,
            "projects": result.projects,
            "mode": answer.parameters.mode,
            "total": result.total,
            "truncated": answer.next is not None,
            "next": answer.next,
            "next_url": next_url,
            **context_json(result),
            "warnings": warnings_of(result),
        },
        headers=headers,
    )

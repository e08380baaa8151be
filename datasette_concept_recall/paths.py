"""The addresses of the pages of this plugin, including the base URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datasette.utils import tilde_encode

from .models import Key

if TYPE_CHECKING:
    from datasette.app import Datasette


LONGEST_LINK = 4000
"""Links of more characters are not made: servers and browsers refuse them at some length."""


def recall_path(datasette: Datasette, database: str | None, extension: str = "") -> str:
    """The path of the Recall page, or with ``.json`` or ``.md`` of the API.

    ``database`` None stands for all databases.
    """
    if database is None:
        return str(datasette.urls.path(f"/-/recall{extension}"))
    return f"{datasette.urls.database(database)}/-/recall{extension}"


def concepts_path(
    datasette: Datasette, database: str, name: str | None = None, extension: str = ""
) -> str:
    """The path of the page of one concept, or without a ``name`` of that of all of a database."""
    one = "" if name is None else f"/{tilde_encode(name)}"
    return f"{datasette.urls.database(database)}/-/concepts{one}{extension}"


def concept_link(datasette: Datasette, database: str, name: str, extension: str = "") -> str | None:
    """The path of the page of one concept, None when it is too long to be a link."""
    path = concepts_path(datasette, database, name, extension)
    return path if len(path) <= LONGEST_LINK else None


def document_path(
    datasette: Datasette,
    database: str,
    document: Key,
    chunk: int | None = None,
    extension: str = "",
) -> str:
    """The path of the page on which a document of an index is read, at one of its chunks."""
    place = "" if chunk is None else f"?chunk={chunk}#chunk-{chunk}"
    return f"{datasette.urls.database(database)}/-/documents/{document}{extension}{place}"


def sources_path(datasette: Datasette, extension: str = "") -> str:
    """The path of the page of the sources of all indexes."""
    return str(datasette.urls.path(f"/-/recall/sources{extension}"))


def static_path(datasette: Datasette, file: str) -> str:
    """The path of a file that comes with this plugin: a stylesheet or a script."""
    # Not a plain string: by its class Datasette knows that the base URL is already there.
    path: str = datasette.urls.static_plugins("datasette-concept-recall", file)
    return path


def own_path(datasette: Datasette, path: str) -> str:
    """A path made from that of a request, with the base URL.

    The path of a request has it already unless a proxy takes it away.
    """
    base = str(datasette.urls.path("/"))
    return path if path.startswith(base) else str(datasette.urls.path(path))

"""One document of an index to be read, as a page and as JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import BadParameter
from .index_mapping import KINDS
from .indexing.reading_view import DocumentView, Passage
from .labels import ELLIPSIS
from .paths import concept_link, concepts_path, document_path, sources_path

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

TEMPLATE = "concept_recall_document.html"

_LONGEST_HEADING = 300

_is_number = re.compile(r"[0-9]{1,18}", re.ASCII).fullmatch


@dataclass(frozen=True)
class Reading:
    """Where in a document it is to be read: at a chunk, or on a page (from 1)."""

    chunk: int | None
    page: int | None


def read_reading(request: Request) -> Reading:
    """The parameters of a request. Raises `BadParameter`."""
    return Reading(_number(request, "chunk"), _number(request, "page"))


def _number(request: Request, name: str) -> int | None:
    value = request.args.get(name)
    if not value:
        return None
    if not _is_number(value):
        raise BadParameter(f"{name} is not a whole number")
    return int(value)


def document_id(value: str) -> int | None:
    """The number of a document as it stands in an address, None for anything else."""
    return int(value) if _is_number(value) and str(int(value)) == value else None


def document_json(
    request: Request, datasette: Datasette, database: str, found: DocumentView
) -> dict[str, Any]:
    """The document as an object; what the actor may not see is null."""

    def url(path: str) -> str:
        whole: str = datasette.absolute_url(request, path)
        return whole

    following = _page_path(datasette, database, found, found.page + 1, ".json")
    return {
        "ok": True,
        "database": database,
        "id": found.id,
        "title": found.title,
        "kind": found.kind,
        "source": found.source,
        "path": found.path,
        "created_at": found.created_at,
        "indexed_at": found.indexed_at,
        "problem": found.problem,
        "is_gone": found.is_gone,
        "is_unverified": found.is_unverified,
        "concepts": None
        if found.concepts is None
        else [
            {"name": name, "url": url(concepts_path(datasette, database, name))}
            for name in found.concepts
        ],
        "redactions": _objects(("family", "place", "removed"), found.redactions),
        "locations": _objects(("folder", "position", "flags"), found.locations),
        "chunks": [
            {
                "id": passage.id,
                "place": passage.place,
                "text": passage.text,
                "start": passage.start,
                "end": passage.end,
            }
            for passage in found.passages
        ],
        "total": found.total,
        "page": found.page,
        "pages": found.pages,
        "next_url": None if following is None else url(following),
        "url": url(document_path(datasette, database, found.id)),
    }


def _objects(
    names: tuple[str, ...], rows: list[tuple[str, str, str]] | None
) -> list[dict[str, str]] | None:
    return None if rows is None else [dict(zip(names, row, strict=True)) for row in rows]


def document_context(
    datasette: Datasette, database: str, asked: Reading, found: DocumentView
) -> dict[str, Any]:
    """The document as the context of its template."""
    title = " ".join(found.title.split()) or "Untitled"
    long = len(title) > _LONGEST_HEADING
    return {
        "heading": title[:_LONGEST_HEADING] + ELLIPSIS if long else title,
        "found": found,
        "kind": dict(KINDS).get(found.kind, found.kind),
        "concepts": [
            (name, concept_link(datasette, database, name)) for name in found.concepts or ()
        ],
        "is_lost": asked.chunk is not None and found.marked is None,
        "folder": _only_folder(found),
        "passages": _labelled(found),
        "has_places": any(passage.place for passage in found.passages),
        "previous_link": _page_path(datasette, database, found, found.page - 1),
        "next_link": _page_path(datasette, database, found, found.page + 1),
        "whole_link": document_path(datasette, database, found.id),
        "sources_link": sources_path(datasette),
        "json_link": _page_path(datasette, database, found, found.page, ".json"),
    }


def _only_folder(found: DocumentView) -> str:
    """The folder of a document that is in one place of its source; '' where its path says it."""
    folders = [folder for folder, _, _ in found.locations or ()]
    return folders[0] if len(folders) == 1 and folders[0] != found.path else ""


def _labelled(found: DocumentView) -> list[tuple[Passage, str, bool]]:
    """Each passage with its place, where that is not the place of the one before, and whether it
    is marked."""
    labelled, before = [], ""
    for passage in found.passages:
        is_marked = passage.id == found.marked
        place = passage.place if is_marked or passage.place != before else ""
        labelled.append((passage, place, is_marked))
        before = passage.place
    return labelled


def _page_path(
    datasette: Datasette, database: str, found: DocumentView, page: int, extension: str = ""
) -> str | None:
    """The path of a page of the document, None when there is no such page."""
    if not 1 <= page <= found.pages:
        return None
    path = document_path(datasette, database, found.id, extension=extension)
    return path if page == 1 else f"{path}?page={page}"

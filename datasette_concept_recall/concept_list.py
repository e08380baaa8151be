"""All concepts of a database as a page and as JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from .concepts import SORTS, ConceptEntry, ConceptList, SortKey
from .errors import NO_TOKEN, BadParameter
from .parameters import page_size
from .paths import concept_link, concepts_path
from .presenting import iso

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

TEMPLATE = "concept_recall_concepts.html"

_SIZE = 100

_LABELS = dict(zip(SORTS, ("most items", "name", "latest use"), strict=True))

_token = re.compile(r"(-?\d{1,20})\.((?:[0-9a-f]{2})*)", re.ASCII).fullmatch


@dataclass(frozen=True)
class Listing:
    """What a list is asked for."""

    search: str
    sort: str
    size: int
    after: SortKey | None

    def query(self, **changes: object) -> str:
        """These parameters for a link, some of them changed; what has its default is left out."""
        given = {"q": self.search, "_sort": self.sort, "_size": self.size} | changes
        defaults = {"q": "", "_sort": SORTS[0], "_size": _SIZE}
        pairs = {name: value for name, value in given.items() if value != defaults.get(name)}
        return f"?{urlencode(pairs)}" if pairs else ""


def read_listing(request: Request, largest: int) -> Listing:
    """The parameters of a request; ``largest`` is the largest ``_size``. Raises `BadParameter`."""
    sort = request.args.get("_sort") or SORTS[0]
    if sort not in SORTS:
        raise BadParameter(f"_sort is {sort!r}, not one of {', '.join(SORTS)}")
    size = page_size(request.args.get("_size") or "", largest, _SIZE)
    token = request.args.get("_next")
    match = _token(token) if token else None
    if token and match is None:
        raise BadParameter(NO_TOKEN)
    after = (int(match[1]), bytes.fromhex(match[2]).decode("utf-8", "replace")) if match else None
    return Listing(request.args.get("q") or "", sort, size, after)


def _token_of(key: SortKey | None) -> str | None:
    return None if key is None else f"{key[0]}.{key[1].encode().hex()}"


def list_json(
    request: Request, datasette: Datasette, database: str, asked: Listing, found: ConceptList
) -> dict[str, Any]:
    """The list as an object."""
    token, next_url = _token_of(found.next), None
    if token:
        path = concepts_path(datasette, database, extension=".json")
        next_url = datasette.absolute_url(request, path + asked.query(_next=token))
    return {
        "ok": True,
        "database": database,
        "concepts": [
            {**entry_json(entry), "url": concept_url(request, datasette, database, entry.name)}
            for entry in found.entries
        ],
        "total": found.total,
        "next": token,
        "next_url": next_url,
    }


def list_context(
    datasette: Datasette, database: str, asked: Listing, found: ConceptList
) -> dict[str, Any]:
    """The list as the context of its template."""
    path, token = concepts_path(datasette, database), _token_of(found.next)
    return {
        "heading": f"Concepts of {database}",
        "asked": asked,
        "found": found,
        "concepts": [
            (entry, concept_link(datasette, database, entry.name)) for entry in found.entries
        ],
        "sorts": [(sort, label, path + asked.query(_sort=sort)) for sort, label in _LABELS.items()],
        "next_link": path + asked.query(_next=token) if token else None,
        "json_link": f"{path}.json{asked.query()}",
        "path": path,
    }


def entry_json(entry: ConceptEntry) -> dict[str, Any]:
    """A concept with its use, without its address."""
    return {
        "name": entry.name,
        "spellings": list(entry.spellings),
        "description": entry.description,
        "total": entry.total,
        "kinds": entry.kinds,
        "latest": iso(entry.latest),
    }


def concept_url(request: Request, datasette: Datasette, database: str, name: str) -> str:
    """The whole address of the page of a concept."""
    url: str = datasette.absolute_url(request, concepts_path(datasette, database, name))
    return url

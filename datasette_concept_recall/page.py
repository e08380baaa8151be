"""The page: an answer as the context of its template."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from . import compat
from .canned_sql import BY_NAMES, BY_TEXT
from .excerpts import ELLIPSIS, Segment, echo, first_line, plain
from .folding import canonical_name
from .menus import recall_path
from .parameters import Parameters, encode_token
from .presenting import Answer, ShownMatch, badges, row_path

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

TEMPLATE = "concept_recall.html"

_LONGEST_TITLE = 120

_LONGEST_LINK = 4000
"""Links of more characters are not made: servers and browsers refuse them at some length."""


def short_link(
    datasette: Datasette, database: str, parameters: Parameters, extension: str = ""
) -> str | None:
    """The address of the page, or with ``.json`` of the API, for these parameters.

    None when it would be too long to be a link.
    """
    query = parameters.query_string()
    link = recall_path(datasette, database, extension) + ("?" + query if query else "")
    return link if len(link) <= _LONGEST_LINK else None


@dataclass(frozen=True)
class Narrowing:
    """One value by which the results can be narrowed down.

    ``link`` narrows to it, or when ``chosen`` no longer; None when it cannot be a link. Then a
    button sends the form with ``value`` as one more parameter, where ``parameter`` is not empty.
    """

    label: str
    count: int
    chosen: bool
    link: str | None
    parameter: str = ""
    value: str = ""


async def error_html(
    datasette: Datasette,
    request: Request,
    database: str,
    parameters: Parameters,
    message: str,
    kinds: Mapping[str, str],
) -> str:
    """The page with its form and a message in place of results."""
    context = {"error": message, "kind_names": kinds}
    return await _render(datasette, request, database, parameters, context)


async def result_html(datasette: Datasette, request: Request, answer: Answer) -> str:
    """The page with what was found."""
    result, links = answer.result, _Links(datasette, answer)
    context = {
        "answer": answer,
        "result": result,
        "echo": echo(answer.parameters.text, result.mentions) if result.mentions else [],
        "chips": links.chips(),
        "missing": result.unknown,
        "kept_names": _without(answer.parameters.names, result.unknown),
        "kinds": links.kinds(),
        "projects": links.projects(),
        "narrowed": bool(answer.parameters.types or answer.parameters.project),
        "first_link": links.to(),
        "wider_link": links.to(types=(), project=None),
        "items": [_item(datasette, answer, shown, links) for shown in answer.shown],
        "last_rank": result.first_rank + len(answer.shown) - 1,
        "next": encode_token(result.next_key) if result.next_key else None,
        "next_link": links.next(),
        "json_link": links.to(".json"),
        "query_link": await _query_link(datasette, request, answer),
        "concepts_link": _concepts_link(datasette, answer),
        "kind_names": answer.mapping.kinds,
    }
    return await _render(datasette, request, answer.database, answer.parameters, context)


async def _render(
    datasette: Datasette,
    request: Request,
    database: str,
    parameters: Parameters,
    context: dict[str, Any],
) -> str:
    common = {
        "database": database,
        "database_color": compat.database_color(datasette.get_database(database)),
        "recall_path": recall_path(datasette, database),
        "parameters": parameters,
        "missing": [],
        "kept_names": parameters.names,
    }
    return await datasette.render_template(TEMPLATE, common | context, request=request)


def _without(names: Sequence[str], left_out: Sequence[str]) -> list[str]:
    unwanted = set(left_out)
    return [name for name in names if name not in unwanted]


class _Links:
    """The links of a page, each the parameters of the page with a change.

    A text that is too long for a link is replaced by the concepts it names, which have the same
    results.
    """

    def __init__(self, datasette: Datasette, answer: Answer) -> None:
        self._datasette, self._answer = datasette, answer
        self._base = replace(answer.parameters, next=None)
        if short_link(datasette, answer.database, self._base) is None:
            self._base = replace(self._base, text="", names=tuple(answer.result.concepts))
        self._given = [(name, canonical_name(name)) for name in self._base.names]

    def to(self, extension: str = "", **changes: Any) -> str | None:
        """The link with some parameters changed, None when it would be too long."""
        changed = replace(self._base, **changes)
        return short_link(self._datasette, self._answer.database, changed, extension)

    def concept(self, name: str) -> str | None:
        """The link to everything tagged with one concept, however this page is narrowed."""
        return self.to(text="", names=(name,), types=(), project=None)

    def next(self) -> str | None:
        key = self._answer.result.next_key
        return self.to(next=encode_token(key)) if key else None

    def chips(self) -> list[dict[str, Any]]:
        """The concepts asked for; those that the text does not name can be taken away."""
        return [
            {
                "count": count,
                "link": self.concept(count.name),
                "without": None if count.mentions else self.without(count.name),
            }
            for count in self._answer.result.counts
        ]

    def without(self, name: str) -> str | None:
        """The link that no longer asks for a name, in whatever letter case it was given."""
        if len(self._given) > _LONGEST_LINK // len("&concept="):
            return None
        gone = canonical_name(name)
        return self.to(names=tuple(n for n, canonical in self._given if canonical != gone))

    def kinds(self) -> list[Narrowing]:
        counts, chosen = self._answer.result.type_counts, self._answer.parameters.types
        kinds = self._answer.mapping.kinds
        return [
            Narrowing(
                label,
                counts.get(kind, 0),
                kind in chosen,
                self.to(types=tuple(k for k in kinds if (k in chosen) != (k == kind))),
                "type",
                kind,
            )
            for kind, label in kinds.items()
            if counts.get(kind) or kind in chosen
        ]

    def projects(self) -> list[Narrowing]:
        """The chosen project, then those that leave most items; no project cannot be chosen."""
        if not self._answer.mapping.names_projects:  # whether items have one is not to be seen
            return []
        counts, chosen = self._answer.result.project_counts, self._answer.parameters.project
        named = {name: count for name, count in counts.items() if name is not None}
        if chosen is not None:
            named.setdefault(chosen, 0)
        order = sorted(named, key=lambda name: (name != chosen, -named[name], name))
        found = [
            Narrowing(
                name,
                named[name],
                name == chosen,
                self.to(project=None if name == chosen else name),
                "project",
                name,
            )
            for name in order
        ]
        without = counts.get(None, 0)
        return [*found, Narrowing("no project", without, False, None)] if without else found


def _concepts_link(datasette: Datasette, answer: Answer) -> str | None:
    concepts = answer.mapping.concepts
    if concepts is None or concepts.table is None:
        return None
    return datasette.urls.table(answer.database, answer.mapping.spelled(concepts.table))


def _item(datasette: Datasette, answer: Answer, shown: ShownMatch, links: _Links) -> dict[str, Any]:
    match = shown.match
    title, excerpt = _title_and_excerpt(shown)
    return {
        "match": match,
        "kind": match.kind,
        "title": title,
        "link": row_path(datasette, answer, match),
        "excerpt": excerpt,
        "badges": badges(match),
        "concepts": [(name, links.concept(name)) for name in match.concepts],
        "newer": [
            (ref, datasette.urls.row(answer.database, match.item_table, ref.rpartition(":")[2]))
            for ref in match.superseded_by
        ],
    }


def _title_and_excerpt(shown: ShownMatch) -> tuple[list[Segment], list[Segment]]:
    """What names an item and what is shown below it; a short text without title is its own."""
    match, text = shown.match, plain(shown.excerpt)
    title = first_line(match.title)
    if title:
        return [Segment(title)], shown.excerpt
    line = first_line(match.body)
    if line and len(text) <= _LONGEST_TITLE and text == " ".join(match.body.split()):
        return shown.excerpt, []
    if line and not line.endswith((ELLIPSIS, ".", "!", "?", ":")):
        line = line.rstrip(",;") + ELLIPSIS
    return [Segment(line or f"{match.ref}, untitled")], shown.excerpt


async def _query_link(datasette: Datasette, request: Request, answer: Answer) -> str | None:
    """The canned query that answers the same, where the actor may use it."""
    parameters = answer.parameters
    if not parameters.asks or parameters.types or parameters.project:
        return None
    short = short_link(datasette, answer.database, parameters) is not None
    by_text = bool(parameters.text) and not parameters.names and short
    name = BY_TEXT if by_text else BY_NAMES
    asked = {"text": parameters.text} if by_text else {"names": json.dumps(answer.result.concepts)}
    if not await compat.may_view_query(datasette, request.actor, answer.database, name):
        return None
    path = datasette.urls.query(answer.database, name)
    link = f"{path}?{urlencode({**asked, 'limit': parameters.size})}"
    return link if len(link) <= _LONGEST_LINK else None

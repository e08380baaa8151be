"""The page: an answer as the context of its template."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from . import compat
from .asking import Scope
from .canned_sql import BY_NAMES, BY_TEXT
from .excerpts import ELLIPSIS, Segment, echo, first_line, plain
from .folding import canonical_name
from .models import NearMiss
from .parameters import Parameters
from .paths import LONGEST_LINK, concept_link, concepts_path, recall_path
from .presenting import Answer, ShownMatch, badges, found_by, row_path

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

TEMPLATE = "concept_recall.html"

_LONGEST_TITLE = 120

MODES_IN_WORDS = (
    ("auto", "concepts, then words and meaning"),
    ("concept", "concepts alone"),
    ("lexical", "words"),
    ("semantic", "meaning"),
)
"""Every mode with what a person calls it."""


def short_link(
    datasette: Datasette, database: str | None, parameters: Parameters, extension: str = ""
) -> str | None:
    """The address of the page, or with ``.json`` or ``.md`` of the API, for these parameters.

    ``database`` None stands for all. The link is None when it would be too long to be a link.
    """
    query = parameters.query_string()
    link = recall_path(datasette, database, extension) + ("?" + query if query else "")
    return link if len(link) <= LONGEST_LINK else None


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
    scope: Scope,
    parameters: Parameters,
    message: str,
) -> str:
    """The page with its form and a message in place of results."""
    return await _render(datasette, request, scope, parameters, {"error": message})


async def result_html(datasette: Datasette, request: Request, scope: Scope, answer: Answer) -> str:
    """The page with what was found."""
    result, links = answer.result, _Links(datasette, answer)
    context = {
        "has_concepts": any(part.mapping.has_concepts for part in answer.parts),
        "kind_names": scope.kinds | answer.kinds,
        "answer": answer,
        "result": result,
        "echo": echo(answer.parameters.text, result.mentions) if result.mentions else [],
        "chips": links.chips(),
        "missing": result.unknown,
        "near_misses": links.near_misses(),
        "kept_names": _without(answer.parameters.names, result.unknown),
        "kinds": links.kinds(),
        "projects": links.projects(),
        "narrowed": bool(answer.parameters.types or answer.parameters.project),
        "first_link": links.to(),
        "wider_link": links.to(types=(), project=None),
        "items": [_item(datasette, answer, shown, links) for shown in answer.shown],
        "asked_layers": answer.parameters.mode != "concept",
        "found_in_words": {"lexical": "words", "semantic": "meaning"}.get(
            answer.parameters.mode, "words and meaning"
        ),
        "beside_from": any(shown.match.layers for shown in answer.shown),
        "last_rank": result.first_rank + len(answer.shown) - 1,
        "next": answer.next,
        "next_link": links.next(),
        "json_link": links.to(".json"),
        "markdown_link": links.to(".md"),
        "query_link": await _query_link(datasette, request, answer),
        "concepts_link": None
        if answer.database is None
        else concepts_path(datasette, answer.database),
    }
    return await _render(datasette, request, scope, answer.parameters, context)


async def _render(
    datasette: Datasette,
    request: Request,
    scope: Scope,
    parameters: Parameters,
    context: dict[str, Any],
) -> str:
    of_all = scope.database is None
    common = {
        "database": scope.database,
        "heading": f"Recall in {'all databases' if of_all else scope.database}",
        "databases": [
            (sight.database, recall_path(datasette, sight.database))
            for sight in scope.sights
            if of_all
        ],
        "database_color": compat.database_color(datasette, scope.database),
        "recall_path": recall_path(datasette, scope.database),
        "longest_link": LONGEST_LINK,
        "kind_names": scope.kinds,
        "parameters": parameters,
        "missing": [],
        "kept_names": parameters.names,
        "modes": MODES_IN_WORDS,
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
        """The page of a concept; of several databases everything that is tagged with it."""
        if self._answer.database is not None:
            return concept_link(self._datasette, self._answer.database, name)
        return self.to(text="", names=(name,), types=(), project=None)

    def next(self) -> str | None:
        return self.to(next=self._answer.next) if self._answer.next else None

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

    def near_misses(self) -> list[tuple[NearMiss, str | None]]:
        """The concepts that the text nearly names, each with the link that asks for it too."""
        return [
            (miss, self.to(names=(*self._base.names, miss.concept)))
            for miss in self._answer.result.near_misses
        ]

    def without(self, name: str) -> str | None:
        """The link that no longer asks for a name, in whatever letter case it was given."""
        if len(self._given) > LONGEST_LINK // len("&concept="):
            return None
        gone = canonical_name(name)
        return self.to(names=tuple(n for n, canonical in self._given if canonical != gone))

    def kinds(self) -> list[Narrowing]:
        counts, chosen = self._answer.result.type_counts, self._answer.parameters.types
        kinds = self._answer.kinds
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
        if not any(part.mapping.names_projects for part in self._answer.parts):
            return []  # whether items have one is not to be seen
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


def _item(datasette: Datasette, answer: Answer, shown: ShownMatch, links: _Links) -> dict[str, Any]:
    match, database = shown.match, answer.part_of(shown).database
    title, excerpt = _title_and_excerpt(shown)
    return {
        "match": match,
        "database": shown.database,
        "kind": match.kind,
        "title": title,
        "link": row_path(datasette, answer, shown),
        "excerpt": excerpt,
        "badges": badges(match),
        "found_by": found_by(match),
        "concepts": [(name, links.concept(name)) for name in match.concepts],
        "newer": [
            (ref, datasette.urls.row(database, match.item_table, ref.rpartition(":")[2]))
            for ref in match.superseded_by
        ],
    }


def item_in_short(datasette: Datasette, answer: Answer, shown: ShownMatch) -> dict[str, Any]:
    """What pages about something else show of an item: a link with its title, and an excerpt."""
    title, excerpt = _title_and_excerpt(shown)
    return {
        "match": shown.match,
        "title": plain(title),
        "excerpt": plain(excerpt),
        "link": row_path(datasette, answer, shown),
        "badges": badges(shown.match),
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
    if answer.database is None or not parameters.asks or not answer.result.concepts:
        return None
    if parameters.mode not in ("auto", "concept"):
        return None
    if parameters.types or parameters.project:
        return None
    short = short_link(datasette, answer.database, parameters) is not None
    by_text = bool(parameters.text) and not parameters.names and short
    name = BY_TEXT if by_text else BY_NAMES
    asked = {"text": parameters.text} if by_text else {"names": json.dumps(answer.result.concepts)}
    if not await compat.may_view_query(datasette, request.actor, answer.database, name):
        return None
    path = datasette.urls.query(answer.database, name)
    link = f"{path}?{urlencode({**asked, 'limit': parameters.size})}"
    return link if len(link) <= LONGEST_LINK else None

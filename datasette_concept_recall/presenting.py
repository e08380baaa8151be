"""A `RecallResult` as the objects of the JSON API, which the page shows as well."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from datasette.utils import tilde_encode

from .budgeting import matcher_for
from .excerpts import Segment, excerpt, plain
from .mapping import Mapping
from .matching import ConceptMatcher
from .models import ConceptMatch, LayerHit, RecallResult
from .parameters import Parameters
from .paths import document_path
from .reading import as_text

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request


@dataclass(frozen=True)
class ShownMatch:
    """A match with its rank (from 1) and the part of its body that is shown.

    ``database`` is the name of its database where several were asked. ``whole`` is whether all of
    its body is in the context, None when there is no context.
    """

    rank: int
    match: ConceptMatch
    excerpt: list[Segment]
    database: str | None = None
    whole: bool | None = None

    def as_json(self, url: str) -> dict[str, Any]:
        """The row of the JSON API; ``url`` is that of the item's own page."""
        match = self.match
        in_context = {True: "whole", False: "excerpt", None: None}[self.whole]
        return {
            "rank": self.rank,
            **({} if self.database is None else {"database": self.database}),
            "ref": match.ref,
            "source_type": match.source_type,
            "id": match.id,
            "project_id": match.project_id,
            "project": match.project,
            "title": match.title,
            "place": match.place,
            "excerpt": plain(self.excerpt),
            "body": match.body,
            "match_count": match.match_count,
            "layers": layers_json(match, self.rank),
            "concepts": list(match.concepts),
            "created_at": iso(match.created_at),
            "summary_status": match.summary_status,
            "summary_stale": match.summary_stale,
            "status": match.status,
            "superseded_by": list(match.superseded_by),
            **({"in_context": in_context} if in_context else {}),
            "url": url,
        }


@dataclass(frozen=True)
class Part:
    """What one database answers, and what of its ``mapping`` the asker may read."""

    database: str
    mapping: Mapping
    result: RecallResult
    lacks_project: bool = False


@dataclass(frozen=True)
class Answer:
    """What was found for the parameters of a request, ready to be shown as a page or as JSON.

    ``database`` is the one that was asked, None for several, ``parts`` what each of them answers,
    ``result`` all of it in one, and ``next`` the token of the following page, None at the end.
    """

    database: str | None
    parameters: Parameters
    parts: tuple[Part, ...]
    result: RecallResult
    shown: list[ShownMatch]
    next: str | None

    @property
    def kinds(self) -> dict[str, str]:
        """Every kind of item that there may be, with what a person calls it."""
        return kinds_of(part.mapping for part in self.parts)

    def part_of(self, shown: ShownMatch) -> Part:
        """The part of the answer that an item is of."""
        database = self.database if shown.database is None else shown.database
        return next(part for part in self.parts if part.database == database)


def kinds_of(mappings: Iterable[Mapping]) -> dict[str, str]:
    """Every kind of item of several databases, with what the first of them calls it."""
    found: dict[str, str] = {}
    for mapping in mappings:
        for kind, label in mapping.kinds.items():
            found.setdefault(kind, label)
    return found


def row_path(datasette: Datasette, answer: Answer, shown: ShownMatch) -> str:
    """The path of the page of an item that is shown."""
    part = answer.part_of(shown)
    return item_path(datasette, part.database, part.mapping, shown.match)


def rows_json(request: Request, datasette: Datasette, answer: Answer) -> list[dict[str, Any]]:
    """The items that are shown as the rows of the JSON API."""
    origin = datasette.absolute_url(request, "/").removesuffix("/")
    return [shown.as_json(origin + row_path(datasette, answer, shown)) for shown in answer.shown]


def item_path(datasette: Datasette, database: str, mapping: Mapping, match: ConceptMatch) -> str:
    """The path of the page of an item; of a view that has none, the view cut down to its row."""
    if match.passage is not None:
        return document_path(datasette, database, match.id, match.passage)
    table = datasette.urls.table(database, match.item_table)
    source = mapping.source_of(match.source_type)
    if source.is_view:
        exact = {
            f"{column}__exact": str(v) for column, v in zip(source.key, match.key, strict=True)
        }
        return f"{table}?{urlencode(exact)}"
    return f"{table}/{','.join(tilde_encode(as_text(value)) for value in match.key)}"


def layers_json(match: ConceptMatch, rank: int) -> list[dict[str, Any]]:
    """The layers that found an item and why, as the JSON API gives them; ``rank`` is its own."""
    hits = match.layers or (LayerHit("concept", rank),)
    return [
        {
            "layer": hit.layer,
            "rank": hit.rank,
            "words": list(hit.words),
            "similarity": None if hit.similarity is None else round(hit.similarity, 4),
        }
        for hit in hits
    ]


def found_by(match: ConceptMatch) -> list[str]:
    """What other layers than the concepts found an item by, in a few words each; empty where
    concepts did."""
    lexical = (hit for hit in match.layers if hit.layer == "lexical")
    found = [f"words: {', '.join(hit.words)}" for hit in lexical]
    near = [hit.similarity for hit in match.layers if hit.layer == "semantic"]
    for similarity in near:
        found.append("meaning" if similarity is None else f"meaning: {similarity:.2f}")
    return found


def show_matches(result: RecallResult) -> list[ShownMatch]:
    """The matches of a result, each with an excerpt around the concepts asked for."""
    names = ConceptMatcher(result.concepts)
    if result.context is not None:
        return [
            ShownMatch(item.rank, item.match, _excerpt(item.match, names), item.database, whole)
            for item, whole in ((used.item, used.whole) for used in result.context.used)
        ]
    return [
        ShownMatch(rank, match, _excerpt(match, names))
        for rank, match in enumerate(result.matches, start=result.first_rank)
    ]


def _excerpt(match: ConceptMatch, names: ConceptMatcher) -> list[Segment]:
    return excerpt(match.body, matcher_for(match, names))


def iso(instant: datetime | None) -> str | None:
    """An instant as ISO 8601 in UTC, with a fraction only when there is one."""
    return None if instant is None else instant.isoformat().replace("+00:00", "Z")


def warnings_of(result: RecallResult) -> list[str]:
    """What kept a result from being all that was asked for, a sentence each."""
    return [*result.warnings, *(f"There is no concept named {name}." for name in result.unknown)]


def concepts_json(result: RecallResult) -> list[dict[str, Any]]:
    """The concepts asked for, as the JSON API gives them."""
    return [{"name": c.name, "mentions": c.mentions, "total": c.total} for c in result.counts]


def near_misses_json(result: RecallResult) -> list[dict[str, Any]]:
    """The concepts that the text nearly names, as the JSON API gives them."""
    return [miss._asdict() for miss in result.near_misses]


def context_json(result: RecallResult) -> dict[str, Any]:
    """What a budget adds to an answer of the JSON API; nothing without one."""
    context = result.context
    if context is None:
        return {}
    skipped = [
        item.match.ref
        if item.database is None
        else {"database": item.database, "ref": item.match.ref}
        for item in context.skipped
    ]
    return {"context": context.text, "tokens": context.tokens, "skipped": skipped}


def badges(match: ConceptMatch) -> list[tuple[str, str]]:
    """``(class, words)`` of everything about an item that a reader must not overlook."""
    found = []
    if match.superseded_by or match.status == "superseded":
        found.append(("superseded", "superseded"))
    if match.status and match.status not in ("accepted", "superseded"):
        known = match.status in ("rejected", "cancelled", "proposed")
        found.append((match.status if known else "other", match.status))
    if match.summary_status and match.summary_status != "reviewed":
        found.append(("unreviewed", f"{match.summary_status}, not reviewed"))
    if match.summary_stale:
        found.append(("stale", "summary out of date"))
    return found

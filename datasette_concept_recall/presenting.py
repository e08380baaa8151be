"""A `RecallResult` as the objects of the JSON API, which the page shows as well."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from datasette.utils import tilde_encode

from .excerpts import Segment, excerpt, plain
from .mapping import Mapping
from .matching import ConceptMatcher
from .models import ConceptMatch, RecallResult
from .parameters import Parameters
from .reading import as_text

if TYPE_CHECKING:
    from datasette.app import Datasette


@dataclass(frozen=True)
class ShownMatch:
    """A match with its rank (from 1) and the part of its body that is shown."""

    rank: int
    match: ConceptMatch
    excerpt: list[Segment]

    def as_json(self, url: str) -> dict[str, Any]:
        """The row of the JSON API; ``url`` is that of the item's own page."""
        match = self.match
        return {
            "rank": self.rank,
            "ref": match.ref,
            "source_type": match.source_type,
            "id": match.id,
            "project_id": match.project_id,
            "project": match.project,
            "title": match.title,
            "excerpt": plain(self.excerpt),
            "body": match.body,
            "match_count": match.match_count,
            "concepts": list(match.concepts),
            "created_at": iso(match.created_at),
            "summary_status": match.summary_status,
            "summary_stale": match.summary_stale,
            "status": match.status,
            "superseded_by": list(match.superseded_by),
            "url": url,
        }


@dataclass(frozen=True)
class Answer:
    """What was found for the parameters of a request, ready to be shown as a page or as JSON.

    ``mapping`` is what of the database the asker may read.
    """

    database: str
    parameters: Parameters
    mapping: Mapping
    result: RecallResult
    shown: list[ShownMatch]


def row_path(datasette: Datasette, answer: Answer, match: ConceptMatch) -> str:
    """The path of the page of an item; of a view that has none, the view cut down to its row."""
    table = datasette.urls.table(answer.database, match.item_table)
    source = answer.mapping.source_of(match.source_type)
    if source.is_view:
        exact = {
            f"{column}__exact": str(v) for column, v in zip(source.key, match.key, strict=True)
        }
        return f"{table}?{urlencode(exact)}"
    return f"{table}/{','.join(tilde_encode(as_text(value)) for value in match.key)}"


def show_matches(result: RecallResult) -> list[ShownMatch]:
    """The matches of a result, each with an excerpt around the concepts asked for."""
    matcher = ConceptMatcher(result.concepts)
    return [
        ShownMatch(rank, match, excerpt(match.body, matcher))
        for rank, match in enumerate(result.matches, start=result.first_rank)
    ]


def iso(instant: datetime | None) -> str | None:
    """An instant as ISO 8601 in UTC, with a fraction only when there is one."""
    return None if instant is None else instant.isoformat().replace("+00:00", "Z")


def warnings_of(result: RecallResult) -> list[str]:
    """What kept a result from being all that was asked for, a sentence each."""
    return [*result.warnings, *(f"There is no concept named {name}." for name in result.unknown)]


def concepts_json(result: RecallResult) -> list[dict[str, Any]]:
    """The concepts asked for, as the JSON API gives them."""
    return [{"name": c.name, "mentions": c.mentions, "total": c.total} for c in result.counts]


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

"""The answers of several databases as one answer.

Concepts, projects and kinds are compared by name. Items are in the one order of rank: that of
`RankKey`, and where two are equal that of the databases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import NamedTuple, TypeVar

from .budgeting import fit
from .folding import canonical_name
from .matching import ConceptMatcher
from .models import (
    ConceptCount,
    ConceptMention,
    Item,
    Key,
    NearMiss,
    RankKey,
    RecallRequest,
    RecallResult,
)
from .near_misses import merge_near_misses

T = TypeVar("T")


class Origin(NamedTuple):
    """Where an item of a merged answer comes from: its position (from 0) in one of the answers."""

    database: str
    position: int


@dataclass(frozen=True)
class Merged:
    """The merged answer, the origin of each of its matches, and the places to go on from.

    ``places`` holds the place of each database from which anything was shown, None at the end.
    The ``next_key`` of the result means nothing.
    """

    result: RecallResult
    origins: list[Origin]
    places: dict[str, RankKey] | None


def merge(
    results: Mapping[str, RecallResult], request: RecallRequest, after: Mapping[str, RankKey]
) -> Merged:
    """Merges the answers to one request, by database in the order that breaks ties.

    Each database was asked for the request's whole ``limit``, behind its place in ``after``.
    """
    ranked = sorted(_ranked(results))
    limit = request.limit if request.limit and request.limit > 0 else len(ranked)
    origins = [origin for _, origin in ranked[:limit]]
    more = len(ranked) > limit or any(result.next_key for result in results.values())
    shown = {
        database: results[database].places[position]  # the last one of each database stays
        for database, position in origins
    }
    matches = [results[database].matches[position] for database, position in origins]
    counts = _counts(results.values(), request.names)
    mentions = _mentions(results.values(), counts)
    return Merged(
        RecallResult(
            concepts=[count.name for count in counts],
            matches=matches,
            places=[results[database].places[position] for database, position in origins],
            projects=sorted({name for r in results.values() for name in r.projects}),
            total=sum(result.total for result in results.values()),
            counts=counts,
            mentions=mentions,
            type_counts=_sum(r.type_counts for r in results.values()),
            project_counts=_sum(r.project_counts for r in results.values()),
            first_rank=1 + sum(result.first_rank - 1 for result in results.values()),
            unknown=_unknown(results.values(), request.names),
            warnings=[f"{name}: {w}" for name, r in results.items() for w in r.warnings],
            near_misses=_near_misses(results.values(), counts, mentions),
        ),
        origins,
        {**after, **shown} if more else None,
    )


def within_budget(
    result: RecallResult,
    results: Mapping[str, RecallResult],
    request: RecallRequest,
    after: Mapping[str, RankKey],
) -> tuple[RecallResult, dict[str, RankKey] | None]:
    """The merged ``result`` as what of it fits the budget, and the places to go on from.

    Each database was asked with the whole budget. What it did not look at had no room behind its
    own items, so there is none either behind those and the items of others.
    """
    items, more = _looked_at(results, result.first_rank)
    matcher = ConceptMatcher(result.concepts)
    context = fit(items, request.budget or 0, matcher, request.limit or None)
    shown = {item.database: item.place for item in context.looked_at if item.database is not None}
    answer = replace(
        result,
        matches=[used.item.match for used in context.used],
        places=[used.item.place for used in context.used],
        context=context,
    )
    more = more or len(context.looked_at) < len(items)
    return answer, {**after, **shown} if more else None


def _looked_at(results: Mapping[str, RecallResult], first_rank: int) -> tuple[list[Item], bool]:
    """All that the databases looked at, ranked anew, and whether one of them would go on.

    It ends where the first of those ends that would: its next items belong there.
    """
    found: list[tuple[_Rank, Item]] = []
    ends: list[_Rank] = []
    for order, (database, result) in enumerate(results.items()):
        looked_at = result.context.looked_at if result.context else ()
        ranked = [(_rank(i.place, order), replace(i, database=database)) for i in looked_at]
        found += ranked
        ends += [ranked[-1][0]] if ranked and result.next_key else []
    found.sort(key=itemgetter(0))
    end = min(ends, default=None)
    kept = [item for rank, item in found if end is None or rank <= end]
    return [replace(item, rank=n) for n, item in enumerate(kept, first_rank)], bool(ends)


def without_items(result: RecallResult) -> RecallResult:
    """The answer of a database that has no project of the name to which an answer is narrowed.

    ``result`` is its answer without the project: what it says of concepts and of other projects
    holds, and there are no items.
    """
    return replace(
        result,
        context=None,
        matches=[],
        places=[],
        projects=[],
        total=0,
        type_counts={},
        first_rank=1,
        next_key=None,
    )


_Rank = tuple[int, int, int, bool, Key, int]


def _rank(place: RankKey, order: int) -> _Rank:
    """What the items of several databases are sorted by; the ids may be numbers and texts."""
    return (*place[:3], isinstance(place.id, str), place.id, order)


def _ranked(results: Mapping[str, RecallResult]) -> Iterator[tuple[_Rank, Origin]]:
    """Every item with what it is sorted by."""
    for order, (database, result) in enumerate(results.items()):
        for position, place in enumerate(result.places):
            yield _rank(place, order), Origin(database, position)


def _counts(results: Iterable[RecallResult], names: Iterable[str]) -> list[ConceptCount]:
    """As in one answer: what the text names in code-point order, then what was given by name."""
    found: dict[str, ConceptCount] = {}
    for result in results:
        for count in result.counts:
            name = canonical_name(count.name)
            first = found.setdefault(name, replace(count, mentions=0, total=0))
            found[name] = ConceptCount(
                first.name, max(first.mentions, count.mentions), first.total + count.total
            )
    mentioned = sorted((c for c in found.values() if c.mentions), key=lambda count: count.name)
    given = dict.fromkeys(map(canonical_name, names))
    return mentioned + [found[n] for n in given if n in found and not found[n].mentions]


def _mentions(
    results: Iterable[RecallResult], counts: Iterable[ConceptCount]
) -> list[ConceptMention]:
    spelled = {canonical_name(count.name): count.name for count in counts}
    found = {
        replace(mention, concept=spelled[canonical_name(mention.concept)])
        for result in results
        for mention in result.mentions
    }
    return sorted(found, key=lambda mention: (mention.start, mention.end, mention.concept))


def _near_misses(
    results: Iterable[RecallResult],
    counts: Iterable[ConceptCount],
    mentions: Sequence[ConceptMention],
) -> list[NearMiss]:
    """Each concept once, without those that are asked for because another database has them."""
    asked = {canonical_name(count.name) for count in counts}
    found = ([m for m in r.near_misses if canonical_name(m.concept) not in asked] for r in results)
    return merge_near_misses(found, mentions)


def _sum(counts: Iterable[Mapping[T, int]]) -> dict[T, int]:
    total: Counter[T] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def _unknown(results: Iterable[RecallResult], names: Iterable[str]) -> list[str]:
    """The names given that are concepts of none of the databases."""
    unknown = [set(result.unknown) for result in results]
    common = set.intersection(*unknown) if unknown else set()
    return [name for name in dict.fromkeys(names) if name in common]

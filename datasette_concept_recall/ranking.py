"""The total order of a recall: most concepts first, then most recent, then by source and id.

What other layers found is behind that, in the order in which their ranks are fused.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from heapq import nsmallest
from math import fsum
from operator import itemgetter
from typing import Any, TypeVar

from .models import Candidate, RankKey

T = TypeVar("T", bound=Hashable)

RANK_CONSTANT = 5
"""The k of reciprocal rank fusion. Its authors took 60, for lists of a thousand; of the short lists
here the first places say more, and everything from 1 to 10 does equally well."""

by_rank = itemgetter(0)
"""The sort key of a `Candidate`: its `RankKey`, which no two items share."""


def best(
    candidates: Iterable[Candidate], limit: int | None = None, after: RankKey | None = None
) -> list[Candidate]:
    """The first ``limit`` candidates behind the place ``after``, in rank order.

    No limit and no place stand for the beginning and the end. The order of the input is
    irrelevant.
    """
    rest = (c for c in candidates if after is None or c.key > after)
    return sorted(rest, key=by_rank) if limit is None else nsmallest(limit, rest, key=by_rank)


def reciprocal_rank_fusion(
    lists: Sequence[Sequence[T]],
    weights: Sequence[float] | None = None,
    k: float = RANK_CONSTANT,
    tie: Any = None,
) -> list[tuple[T, float]]:
    """Several ranked lists as one: each item with the sum of ``weight / (k + rank)``, best first.

    Ranks count from 1, ``k`` is 0 or more, and an item counts once in each list, where it is first.
    Equal sums are ordered by the best rank in any list, then by the first list that has it, then by
    ``tie`` of the item (itself without one), so the order is total.

    G. Cormack, C. Clarke and S. Büttcher, "Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods", SIGIR 2009.
    """
    terms: dict[T, list[float]] = {}
    best_place: dict[T, tuple[int, int]] = {}
    for number, (ranked, weight) in enumerate(
        zip(lists, weights or [1.0] * len(lists), strict=True)
    ):
        for rank, item in enumerate(dict.fromkeys(ranked), 1):
            terms.setdefault(item, []).append(weight / (k + rank))
            best_place[item] = min(best_place.get(item, (rank, number)), (rank, number))
    sums = {item: fsum(each) for item, each in terms.items()}  # whatever the order of the lists
    order = sorted(sums, key=lambda i: (-sums[i], best_place[i], tie(i) if tie else i))
    return [(item, sums[item]) for item in order]

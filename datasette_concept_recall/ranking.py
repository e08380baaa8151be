"""The total order of a recall: most concepts first, then most recent, then by source and id."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nsmallest
from operator import itemgetter

from .models import Candidate, RankKey

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

"""How well targets are found: top-1, top-5 and mean reciprocal rank, and how sure that is.

A rank is the place of a question's target among the candidates, counted from 1, or None when it is
not among them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from random import Random


@dataclass(frozen=True)
class Scores:
    """How many questions there are, and for how many the target is first or among the first five.

    ``mrr`` is the mean reciprocal rank, from 0 to 1.
    """

    questions: int
    top1: int
    top5: int
    mrr: float


@dataclass(frozen=True)
class Interval:
    """A mean, and the confidence limits below and above it."""

    mean: float
    low: float
    high: float


def reciprocal_rank(rank: int | None) -> float:
    """1 for a target in the first place, 1/2 in the second and so on, 0 where it is missing.

    A rank below 1 is a ValueError.
    """
    if rank is None:
        return 0.0
    if rank < 1:
        raise ValueError(f"ranks begin with 1, not {rank}")
    return 1 / rank


def success_at(rank: int | None, depth: int) -> bool:
    """Whether the target is among the first ``depth`` candidates."""
    return rank is not None and rank <= depth


def scores(ranks: Sequence[int | None]) -> Scores:
    """The measures over one rank per question; a rank below 1 is a ValueError.

    The mean of the reciprocal ranks is over all questions, those without a target found included
    (Voorhees 1999, The TREC-8 Question Answering Track Report). Of no questions it is 0.
    """
    reciprocal = fsum(map(reciprocal_rank, ranks))
    return Scores(
        questions=len(ranks),
        top1=sum(success_at(rank, 1) for rank in ranks),
        top5=sum(success_at(rank, 5) for rank in ranks),
        mrr=reciprocal / len(ranks) if ranks else 0.0,
    )


def by_tier(ranks: Iterable[int | None], tiers: Iterable[str]) -> dict[str, Scores]:
    """The scores of each tier's questions, tiers in alphabetical order.

    Case is looked at only where two names differ in nothing else. Ranks and tiers are of the same
    questions in the same order; another number of tiers is a ValueError.
    """
    grouped: dict[str, list[int | None]] = defaultdict(list)
    for rank, tier in zip(ranks, tiers, strict=True):
        grouped[tier].append(rank)
    ordered = sorted(grouped, key=lambda tier: (tier.casefold(), tier))
    return {tier: scores(grouped[tier]) for tier in ordered}


def bootstrap_interval(
    values: Sequence[float], *, resamples: int = 10_000, confidence: float = 0.95, seed: int = 0
) -> Interval:
    """The mean of one value per question, with the percentile interval of its bootstrap.

    Questions are drawn with replacement, as many as there are, ``resamples`` times. The limits are
    the k-th lowest and the k-th highest of the means, k being the whole part of
    (resamples + 1) · (1 - confidence) / 2 and at least 1 (Efron and Tibshirani 1993, An
    Introduction to the Bootstrap, chapter 13). The same seed gives the same interval.

    No values, a value that is not finite, fewer than one resample and a confidence that is not
    between 0 and 1 are ValueErrors.
    """
    if not values or not all(map(isfinite, values)):
        raise ValueError("a bootstrap needs values, and all of them finite")
    if resamples < 1 or not 0 < confidence < 1:
        raise ValueError("a bootstrap needs a resample or more, and a confidence between 0 and 1")
    count, draw = len(values), Random(seed).choices
    # An exact sum does not depend on the order of what was drawn: equal values give one mean.
    means = sorted(fsum(draw(values, k=count)) / count for _ in range(resamples))
    # Rounded, since 1 - 0.9 is a little less than a tenth.
    k = max(1, int(round((resamples + 1) * (1 - confidence) / 2, 9)))
    return Interval(fsum(values) / count, means[k - 1], means[-k])


def paired_bootstrap(
    a: Sequence[float],
    b: Sequence[float],
    *,
    resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """The mean of a - b, with its interval over the same questions, as `bootstrap_interval`.

    The values are those of two systems for each question in the same order, so whole pairs are
    drawn and what makes a question hard for both cancels out (Sakai 2006, Evaluating Evaluation
    Metrics based on the Bootstrap). An interval without 0 is a difference that other questions of
    this kind would hardly undo. Lists of different length are a ValueError.
    """
    differences = [first - second for first, second in zip(a, b, strict=True)]
    return bootstrap_interval(differences, resamples=resamples, confidence=confidence, seed=seed)

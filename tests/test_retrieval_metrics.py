"""Measures of retrieval agree with their definitions, and their intervals with arithmetic."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from math import comb, fsum, inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_concept_recall.retrieval_metrics import (
    Interval,
    Scores,
    bootstrap_interval,
    by_tier,
    paired_bootstrap,
    reciprocal_rank,
    scores,
    success_at,
)

ranks_of = st.lists(st.none() | st.integers(1, 30), max_size=40)
values_of = st.lists(st.floats(-1, 1), min_size=1, max_size=12)
pairs_of = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=12)


def slow_scores(ranks: list[int | None]) -> tuple[int, int, int, Fraction]:
    """The measures by looking for each target in a list of candidates, in exact fractions."""
    first = five = 0
    total = Fraction(0)
    for rank in ranks:
        candidates = ["other"] * 30
        if rank is not None:
            candidates[rank - 1] = "target"
        first += "target" in candidates[:1]
        five += "target" in candidates[:5]
        total += sum(Fraction(1, i) for i, name in enumerate(candidates, 1) if name == "target")
    return len(ranks), first, five, total / len(ranks) if ranks else Fraction(0)


def test_the_measures_of_a_few_questions_are_those_worked_out_by_hand() -> None:
    """A missing target counts as a question whose reciprocal rank is 0."""
    assert scores([1, 2, None, 5, 6, 1, None, None]) == Scores(
        8, 2, 4, (2 + 1 / 2 + 1 / 5 + 1 / 6) / 8
    )


@given(ranks_of)
def test_the_measures_agree_with_their_definitions(ranks: list[int | None]) -> None:
    """Top-1, top-5 and the mean reciprocal rank are what looking through the lists gives."""
    found = scores(ranks)
    questions, first, five, mean = slow_scores(ranks)
    assert (found.questions, found.top1, found.top5) == (questions, first, five)
    assert found.mrr == pytest.approx(float(mean))


@given(ranks_of, st.randoms(use_true_random=False))
def test_the_order_of_the_questions_does_not_matter(
    ranks: list[int | None], shuffler: random.Random
) -> None:
    """The same ranks in another order give the same scores to the last digit."""
    before = scores(ranks)
    shuffler.shuffle(ranks)
    assert scores(ranks) == before


def test_no_questions_have_no_score() -> None:
    """Without a question all measures are 0."""
    assert scores([]) == Scores(0, 0, 0, 0.0)


@pytest.mark.parametrize("rank", [0, -1])
def test_ranks_begin_with_one(rank: int) -> None:
    """A rank counted from 0 is an error, not a better result."""
    with pytest.raises(ValueError, match="begin with 1"):
        reciprocal_rank(rank)
    with pytest.raises(ValueError, match="begin with 1"):
        scores([1, rank])


@pytest.mark.parametrize(
    ("rank", "reciprocal", "in_five"),
    [(1, 1, True), (5, 0.2, True), (6, 1 / 6, False), (None, 0, False)],
)
def test_one_question_counts_by_its_rank(
    rank: int | None, reciprocal: float, in_five: bool
) -> None:
    """The measures of a single question are those that the scores are made of."""
    assert reciprocal_rank(rank) == reciprocal
    assert success_at(rank, 5) is in_five


def test_tiers_are_scored_apart_and_in_alphabetical_order() -> None:
    """Each tier has the scores of its own questions, in an order that is the same every time."""
    tiers = ["b", "a", "B", "b", "A"]
    found = by_tier([1, None, 2, 3, 1], tiers)
    assert list(found) == ["A", "a", "B", "b"]
    assert found == {
        "A": scores([1]),
        "a": scores([None]),
        "B": scores([2]),
        "b": scores([1, 3]),
    }


@given(st.lists(st.tuples(st.none() | st.integers(1, 9), st.sampled_from("xyXY")), max_size=20))
def test_the_tiers_together_are_all_questions(rows: list[tuple[int | None, str]]) -> None:
    """No question is lost or counted twice when they are divided into tiers."""
    found = by_tier([rank for rank, _ in rows], [tier for _, tier in rows])
    whole = scores([rank for rank, _ in rows])
    assert set(found) == {tier for _, tier in rows}
    assert sum(each.questions for each in found.values()) == whole.questions
    assert sum(each.top1 for each in found.values()) == whole.top1
    assert sum(each.top5 for each in found.values()) == whole.top5
    total = fsum(each.mrr * each.questions for each in found.values())
    assert total == pytest.approx(whole.mrr * whole.questions)


def test_ranks_and_tiers_are_of_the_same_questions() -> None:
    """Lists of different length are an error, not scores of the shorter one."""
    with pytest.raises(ValueError, match="argument"):
        by_tier([1, 2], ["a"])
    with pytest.raises(ValueError, match="argument"):
        paired_bootstrap([1, 2], [1])


@given(values_of, st.integers(0, 5))
@settings(max_examples=60)
def test_an_interval_holds_its_mean(values: list[float], seed: int) -> None:
    """The mean of the values lies between the limits, and these between the extreme values."""
    found = bootstrap_interval(values, resamples=400, seed=seed)
    assert found.mean == fsum(values) / len(values)
    assert found.low <= found.mean <= found.high
    assert min(values) - 1e-12 <= found.low
    assert found.high <= max(values) + 1e-12


@given(pairs_of)
@settings(max_examples=60)
def test_a_paired_interval_is_that_of_the_differences(pairs: list[tuple[float, float]]) -> None:
    """Pairs are drawn together, and the interval holds the mean difference."""
    a, b = [a for a, _ in pairs], [b for _, b in pairs]
    found = paired_bootstrap(a, b, resamples=400)
    assert found == bootstrap_interval([a - b for a, b in pairs], resamples=400)
    assert found.low <= found.mean <= found.high


@given(pairs_of, st.sampled_from([1, 2, 99, 100, 400]), st.sampled_from([0.5, 0.9, 0.95]))
@settings(max_examples=60)
def test_swapping_the_systems_mirrors_the_interval(
    pairs: list[tuple[float, float]], resamples: int, confidence: float
) -> None:
    """Which of two systems is named first decides the sign and nothing else."""
    a, b = [a for a, _ in pairs], [b for _, b in pairs]
    one = paired_bootstrap(a, b, resamples=resamples, confidence=confidence)
    other = paired_bootstrap(b, a, resamples=resamples, confidence=confidence)
    assert other == Interval(-one.mean, -one.high, -one.low)


@given(values_of)
@settings(max_examples=40)
def test_equal_lists_differ_by_exactly_nothing(values: list[float]) -> None:
    """Two systems that answer alike have an interval without any width."""
    assert paired_bootstrap(values, values, resamples=50) == Interval(0, 0, 0)


@given(st.floats(-1, 1), st.integers(1, 40))
@settings(max_examples=40)
def test_one_value_for_all_questions_has_no_spread(value: float, count: int) -> None:
    """Where every resample is the same, rounding does not make an interval of it."""
    found = bootstrap_interval([value] * count, resamples=30)
    assert found.low == found.mean == found.high


def test_the_seed_alone_decides_the_draw() -> None:
    """The same seed gives the same interval whatever else draws; another seed another one."""
    values = [1 / rank for rank in range(1, 40)]
    random.seed(1)
    state = random.getstate()
    first = bootstrap_interval(values, resamples=200, seed=3)
    assert random.getstate() == state
    random.seed(2)
    assert bootstrap_interval(values, resamples=200, seed=3) == first
    assert bootstrap_interval(values, resamples=200, seed=4) != first


@pytest.mark.parametrize("successes", [3, 10, 15])
def test_the_interval_of_a_share_is_that_of_the_binomial_distribution(successes: int) -> None:
    """Means of resampled zeros and ones are binomial; the limits are its quantiles."""
    count, drawn = 20, 20_000
    share = successes / count
    mass = [comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(count + 1)]
    below = [fsum(mass[: k + 1]) for k in range(count + 1)]
    low = next(k for k, reached in enumerate(below) if reached > 0.025)
    high = next(k for k, reached in enumerate(below) if reached >= 0.975)
    values = [1.0] * successes + [0.0] * (count - successes)
    found = bootstrap_interval(values, resamples=drawn)
    assert (found.low, found.high) == (low / count, high / count)


def test_all_resamples_of_three_values_give_the_quantiles_that_are_drawn() -> None:
    """The limits are those of the list of every possible resample."""
    values = [0.0, 0.1, 1.0]
    every = sorted(fsum(drawn) / 3 for drawn in product(values, repeat=3))
    found = bootstrap_interval(values, confidence=0.6)
    # A fifth of the 27 resamples is 5.4 of them, so the limits are the 6th from either end.
    assert (found.low, found.high) == (every[5], every[-6])


@pytest.mark.parametrize(
    ("resamples", "confidence", "k"), [(99, 0.9, 5), (999, 0.95, 25), (10, 0.95, 1)]
)
def test_the_limits_are_order_statistics_of_the_resamples(
    resamples: int, confidence: float, k: int
) -> None:
    """They are the k-th lowest and the k-th highest mean of those that the seed draws."""
    values = [float(number**2) for number in range(30)]
    draw = random.Random(7)
    means = sorted(fsum(draw.choices(values, k=30)) / 30 for _ in range(resamples))
    found = bootstrap_interval(values, resamples=resamples, confidence=confidence, seed=7)
    assert (found.low, found.high) == (means[k - 1], means[resamples - k])


@given(values_of)
@settings(max_examples=40)
def test_more_confidence_is_a_wider_interval(values: list[float]) -> None:
    """The interval at 95 % holds that at 50 %."""
    wide = bootstrap_interval(values, resamples=200)
    narrow = bootstrap_interval(values, resamples=200, confidence=0.5)
    assert wide.low <= narrow.low <= narrow.high <= wide.high


@pytest.mark.parametrize("values", [[], [nan], [1.0, inf], [-inf, inf]])
def test_values_that_have_no_mean_are_refused(values: list[float]) -> None:
    """No values, or one that is not a finite number, are an error."""
    with pytest.raises(ValueError, match="finite"):
        bootstrap_interval(values)
    with pytest.raises(ValueError, match="finite"):
        paired_bootstrap(values, [0.0] * len(values))


@pytest.mark.parametrize(
    ("resamples", "confidence"), [(0, 0.95), (-1, 0.95), (9, 0), (9, 1), (9, nan)]
)
def test_a_bootstrap_that_cannot_be_made_is_refused(resamples: int, confidence: float) -> None:
    """Nothing is resampled less than once, or known with a confidence outside 0 to 1."""
    with pytest.raises(ValueError, match="confidence between 0 and 1"):
        bootstrap_interval([1.0], resamples=resamples, confidence=confidence)

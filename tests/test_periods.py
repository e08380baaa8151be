"""Use over time: which unit is chosen, and that every use is counted in its period."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datasette_concept_recall.periods import MOST_PERIODS, Timeline, timeline

FIRST = date(2024, 1, 31)  # a Wednesday

SPANS = [
    (0, "day", 1, "2024-01-31", "2024-01-31"),
    (59, "day", 60, "2024-01-31", "2024-03-30"),
    (60, "week", 9, "2024-01-29", "2024-03-25"),
    (400, "week", 58, "2024-01-29", "2025-03-03"),
    (430, "month", 16, "2024-01", "2025-04"),
    (1_795, "month", 60, "2024-01", "2028-12"),
    (1_797, "quarter", 21, "2024 Q1", "2029 Q1"),
    (5_440, "quarter", 60, "2024 Q1", "2038 Q4"),
    (5_600, "year", 16, "2024", "2039"),
    (21_883, "year", 60, "2024", "2083"),
    (22_300, "2 years", 31, "2024–2025", "2084–2085"),
    (1_000_000, "50 years", 56, "2000–2049", "4750–4799"),
]


@pytest.mark.parametrize(("days", "unit", "count", "first", "last"), SPANS)
def test_the_unit_suits_the_time_spanned(
    days: int, unit: str, count: int, first: str, last: str
) -> None:
    """The smallest unit is taken of which sixty are enough, and the first and last are named."""
    found = timeline({FIRST: 2, FIRST + timedelta(days): 1})
    labels = [period.label for period in found.periods]
    assert (found.unit, len(labels), labels[0], labels[-1]) == (unit, count, first, last)


def test_what_was_never_used_has_no_periods() -> None:
    """Without uses there is nothing to draw, and that is no error."""
    assert timeline({}) == Timeline("day", ())
    assert timeline({}).total == 0


def test_times_without_use_are_periods_too() -> None:
    """Between two uses every period is there, with none counted."""
    found = timeline({date(2024, 2, 28): 1, date(2024, 3, 2): 5})
    assert [(period.label, period.uses) for period in found.periods] == [
        ("2024-02-28", 1),
        ("2024-02-29", 0),
        ("2024-03-01", 0),
        ("2024-03-02", 5),
    ]


def test_weeks_begin_on_monday() -> None:
    """A Sunday belongs to the week of the Monday before it."""
    monday = date(2024, 1, 1)
    found = timeline({monday + timedelta(n): 1 for n in (0, 6, 7, 100)})
    assert (found.unit, found.periods[0].start) == ("week", monday)
    assert [period.uses for period in found.periods[:3]] == [2, 1, 0]


@settings(deadline=None)
@given(st.dictionaries(st.dates(), st.integers(1, 1_000), max_size=8))
@example({date.min: 1, date.max: 1})
@example({date.max: 1, date.max - timedelta(1): 2})
@example({date.max: 1, date(9991, 1, 1): 2})
@example({date.min: 1, date(110, 1, 1): 1})
def test_every_use_is_counted_where_it_belongs(uses: dict[date, int]) -> None:
    """Periods are in order, at most sixty, end with the last use, and hold all uses of theirs."""
    periods = timeline(uses).periods
    assert len(periods) <= MOST_PERIODS
    starts = [period.start for period in periods]
    assert starts == sorted(set(starts))
    assert len({period.label for period in periods}) == len(periods)
    if uses:
        assert starts[0] <= min(uses)
        assert periods[0].uses
        assert periods[-1].uses
    later = {day: sum(start <= day for start in starts) - 1 for day in uses}
    for place, period in enumerate(periods):
        assert period.uses == sum(uses[day] for day, at in later.items() if at == place)

"""Use over time: days counted by the unit that suits the time they span."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import islice, takewhile
from typing import NamedTuple

MOST_PERIODS = 60
"""So many bars can be told apart where a phone shows them."""

_WEEK, _MONTHS = 7, 12
_YEARS = (1, 2, 5, 10, 20, 50, 100, 200)


class Period(NamedTuple):
    """One stretch of time, what it is called, and how many uses were in it."""

    start: date
    label: str
    uses: int


@dataclass(frozen=True)
class Timeline:
    """All periods from the first use to the last, those without any among them.

    ``unit`` is ``day``, ``week`` (from Monday), ``month``, ``quarter``, ``year`` or ``5 years``
    and its like.
    """

    unit: str
    periods: tuple[Period, ...]

    @property
    def total(self) -> int:
        """How many uses there are in all."""
        return sum(period.uses for period in self.periods)


class _Unit(NamedTuple):
    """A way to divide time; ``size`` is its length in days, months or years by ``name``."""

    name: str
    size: int

    def start(self, day: date) -> date:
        """The first day of the period in which a day lies."""
        if self.name in ("day", "week"):
            ordinal = day.toordinal()
            return date.fromordinal(ordinal - (ordinal - 1) % self.size)  # day 1 was a Monday
        if self.name in ("month", "quarter"):
            return date(day.year, day.month - (day.month - 1) % self.size, 1)
        return date(max(1, day.year - day.year % self.size), 1, 1)

    def starts(self, first: date) -> Iterator[date]:
        """The first days of the periods from that of ``first`` on, as far as dates go."""
        start = self.start(first)
        while True:
            yield start
            try:
                start = self._after(start)
            except (ValueError, OverflowError):  # behind the year 9999
                return

    def _after(self, start: date) -> date:
        if self.name in ("day", "week"):
            return date.fromordinal(start.toordinal() + self.size)
        if self.name in ("month", "quarter"):
            months = start.year * _MONTHS + start.month - 1 + self.size
            return date(months // _MONTHS, months % _MONTHS + 1, 1)
        return date(start.year - start.year % self.size + self.size, 1, 1)

    def label(self, start: date) -> str:
        """What the period is called that begins on this day."""
        if self.name in ("day", "week"):
            return start.isoformat()
        if self.name == "month":
            return f"{start.year:04}-{start.month:02}"
        if self.name == "quarter":
            return f"{start.year:04} Q{start.month // 3 + 1}"
        if self.size == 1:
            return f"{start.year:04}"
        return f"{start.year:04}–{start.year - start.year % self.size + self.size - 1:04}"


_UNITS = (
    _Unit("day", 1),
    _Unit("week", _WEEK),
    _Unit("month", 1),
    _Unit("quarter", 3),
    *(_Unit("year" if years == 1 else f"{years} years", years) for years in _YEARS),
)


def timeline(uses: Mapping[date, int]) -> Timeline:
    """How often something was used in each period, from uses on each day (1 or more).

    The unit is the smallest by which there are at most `MOST_PERIODS`. Without any use there are
    no periods.
    """
    if not uses:
        return Timeline("day", ())
    first, last = min(uses), max(uses)
    for unit in _UNITS:
        needed = takewhile(lambda start: start <= last, unit.starts(first))
        starts = list(islice(needed, MOST_PERIODS + 1))
        if len(starts) <= MOST_PERIODS:
            break
    counts = [0] * len(starts)
    for day, count in uses.items():
        counts[bisect_right(starts, day) - 1] += count
    periods = (
        Period(start, unit.label(start), count) for start, count in zip(starts, counts, strict=True)
    )
    return Timeline(unit.name, tuple(periods))

"""Everything that carries one of the concepts asked for, to be counted, narrowed and cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from .bitmaps import members
from .models import Candidate, Key, RankKey
from .ranking import best


@dataclass(frozen=True)
class Narrowing:
    """Only items of these types (empty: all) and of these projects (None: all)."""

    types: frozenset[str] = frozenset()
    project_ids: frozenset[Key] | None = None

    def admits(self, candidate: Candidate) -> bool:
        """Whether an item is one of those that are left."""
        return (not self.types or candidate.source_type in self.types) and (
            self.project_ids is None or candidate.project_id in self.project_ids
        )


class Candidates(Protocol):
    """The candidates of one recall, however they are held."""

    def total_of(self, asked: int) -> int:
        """How many items carry the asked name at this position."""

    def total(self, narrowing: Narrowing) -> int:
        """How many items there are."""

    def type_counts(self, narrowing: Narrowing) -> Counter[str]:
        """How many items there are of each type."""

    def project_counts(self, narrowing: Narrowing) -> Counter[Key | None]:
        """How many items there are of each project id."""

    def best(
        self, narrowing: Narrowing, limit: int | None, after: RankKey | None
    ) -> list[Candidate]:
        """The first so many items behind a place, in rank order."""

    def number_until(self, narrowing: Narrowing, place: RankKey) -> int:
        """How many items stand at a place or before it."""


class Behind:
    """Candidates, and behind all of them others that none of them is."""

    def __init__(self, first: Candidates, behind: CandidateList) -> None:
        self._first, self._behind = first, behind

    def total_of(self, asked: int) -> int:
        """How many items carry the asked name at this position; what is behind carries none."""
        return self._first.total_of(asked)

    def total(self, narrowing: Narrowing) -> int:
        """How many items there are."""
        return self._first.total(narrowing) + self._behind.total(narrowing)

    def type_counts(self, narrowing: Narrowing) -> Counter[str]:
        """How many items there are of each type."""
        return self._first.type_counts(narrowing) + self._behind.type_counts(narrowing)

    def project_counts(self, narrowing: Narrowing) -> Counter[Key | None]:
        """How many items there are of each project id."""
        return self._first.project_counts(narrowing) + self._behind.project_counts(narrowing)

    def best(
        self, narrowing: Narrowing, limit: int | None, after: RankKey | None
    ) -> list[Candidate]:
        """The first so many items behind a place, in rank order."""
        first = self._first.best(narrowing, limit, after)
        rest = None if limit is None else limit - len(first)
        return [*first, *self._behind.best(narrowing, rest, after)]

    def number_until(self, narrowing: Narrowing, place: RankKey) -> int:
        """How many items stand at a place or before it."""
        first = self._first.number_until(narrowing, place)
        return first + self._behind.number_until(narrowing, place)


class CandidateList:
    """Candidates one by one, ``found``: the plain statement of what `Candidates` promises."""

    def __init__(self, found: Iterable[Candidate]) -> None:
        self.found = list(found)

    def total_of(self, asked: int) -> int:
        """How many items carry the asked name at this position."""
        return self._totals[asked]

    @cached_property
    def _totals(self) -> Counter[int]:
        return Counter(asked for c in self.found for asked in members(c.carried))

    def total(self, narrowing: Narrowing) -> int:
        """How many items there are."""
        return len(self._chosen(narrowing))

    def type_counts(self, narrowing: Narrowing) -> Counter[str]:
        """How many items there are of each type."""
        return Counter(c.source_type for c in self._chosen(narrowing))

    def project_counts(self, narrowing: Narrowing) -> Counter[Key | None]:
        """How many items there are of each project id."""
        return Counter(c.project_id for c in self._chosen(narrowing))

    def best(
        self, narrowing: Narrowing, limit: int | None, after: RankKey | None
    ) -> list[Candidate]:
        """The first so many items behind a place, in rank order."""
        return best(self._chosen(narrowing), limit, after)

    def number_until(self, narrowing: Narrowing, place: RankKey) -> int:
        """How many items stand at a place or before it."""
        return sum(c.key <= place for c in self._chosen(narrowing))

    def _chosen(self, narrowing: Narrowing) -> list[Candidate]:
        if narrowing == Narrowing():
            return self.found
        return [c for c in self.found if narrowing.admits(c)]

"""Recall from the index that `optimize` built: the cost follows what is shown, not what is linked.

Items are numbered in rank order (see `index_schema`), and the items of a concept are a set of these
positions. How many of the asked concepts an item carries is a sum over sets, done for all items at
once (`bitmaps.Tally`); within one count the lowest positions are the winners, and totals are sizes
of sets. Ordering postings by what ranks, so that reading can stop early, goes back to R. Fagin,
A. Lotem and M. Naor, "Optimal aggregation algorithms for middleware", PODS 2001.

Items that changed since the index was built are taken out of all sets and read from the tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, reduce
from itertools import islice
from operator import or_

from .bitmaps import (
    Positions,
    Tally,
    as_bitmap,
    common,
    listed,
    members,
    members_counter,
    to_bytes,
    to_int,
    united,
    unpack,
)
from .candidates import CandidateList, Candidates, Narrowing
from .changes import Changes
from .index_schema import ITEM, POSTING, STATE
from .mapping import Mapping
from .models import SOURCE_TYPES, Candidate, Key, RankKey
from .ranking import best
from .reading import Reader, json_list

_FEW, _FEW_PER_ITEM = 100, 1 / 10_000
"""Up to so many links, and that share of all items, are looked at one by one: with more of them,
reading a row of each takes longer than working with whole sets."""

CONCEPT, TYPE, PROJECT = "concept", "type", "project"
"""The kinds of sets; the id of a type is its place in `SOURCE_TYPES`."""

_SOURCES = (0, 1, 2, 2)
"""The order of the source that has each of `SOURCE_TYPES`."""


def find_in_index(reader: Reader, mapping: Mapping, keys: dict[Key, int]) -> Candidates:
    """Every item tagged with one of the concepts; ``keys`` as in `recall.AskedKeys`."""
    ids = {key: asked for key, asked in keys.items() if isinstance(key, int)}
    ((items,),) = reader.rows(f"select items from {STATE}")
    postings = _Postings(reader, items)
    links = postings.links(ids)
    changes = Changes(reader, mapping, links)
    changed = CandidateList(changes.candidates(ids))
    if links > _FEW + items * _FEW_PER_ITEM:
        return _IndexedCandidates(postings, mapping, ids, changed, changes.positions())
    carried: dict[int, int] = {}
    for id_, positions in postings.sets(CONCEPT, ids):
        for position in listed(positions):
            carried[position] = carried.get(position, 0) | 1 << ids[id_]
    for position in changes.positions(carried):
        del carried[position]
    sources = {source.order for source in mapping.sources}
    found = [c for c in postings.candidates(carried) if c.key.source in sources]
    return CandidateList([*found, *changed.found])


class _Postings:
    """Reads the stored sets of one snapshot."""

    def __init__(self, reader: Reader, items: int) -> None:
        self._reader, self.items = reader, items

    def sets(self, kind: str, ids: Iterable[int]) -> Iterator[tuple[int, Positions]]:
        """``(id, positions)``, in the form in which they are stored."""
        for id_, size, data in self._reader.rows(
            f"select id, size, positions from {POSTING}"
            " where kind = ? and id in (select value from json_each(?))",
            kind,
            json_list(ids),
        ):
            yield id_, unpack(data, size, self.items)

    def bitmaps(self, kind: str, ids: Iterable[int]) -> Iterator[tuple[int, int]]:
        """``(id, positions)``, all as bitmaps."""
        for id_, positions in self.sets(kind, ids):
            yield id_, as_bitmap(positions, self.items)

    def links(self, ids: Iterable[int]) -> int:
        """How many items the concepts have, those of several concepts counted several times."""
        sql = (
            f"select coalesce(sum(size), 0) from {POSTING}"
            " where kind = ? and id in (select value from json_each(?))"
        )
        ((links,),) = self._reader.rows(sql, CONCEPT, json_list(ids))
        return int(links)

    def project_ids(self) -> list[int]:
        sql = f"select id from {POSTING} where kind = ?"
        return [id_ for (id_,) in self._reader.rows(sql, PROJECT)]

    def candidates(self, carried: dict[int, int]) -> Iterator[Candidate]:
        """The items at these positions, each with what it carries."""
        for position, age, source, item, project_id, source_type in self._reader.rows(
            f"select position, age, source, item, project_id, source_type from {ITEM}"
            " where position in (select value from json_each(?))",
            json_list(carried),
        ):
            bits = carried[position]
            key = RankKey(-bits.bit_count(), age, source, item)
            yield Candidate(key, source_type, project_id, bits)

    def first_behind(self, place: RankKey) -> int:
        """The first position that ranks behind a place among items of its count."""
        low, high = 0, self.items
        while low < high:
            middle = (low + high) // 2
            sql = f"select age, source, item from {ITEM} where position = ?"
            (key,) = self._reader.rows(sql, middle)
            low, high = (low, middle) if key > place[1:] else (middle + 1, high)
        return low


class _IndexedCandidates:
    """Many candidates, as sets of positions; those that changed are kept one by one."""

    def __init__(
        self,
        postings: _Postings,
        mapping: Mapping,
        ids: dict[int, int],
        changed: CandidateList,
        outdated: list[int],
    ) -> None:
        self._postings, self._changed, self._outdated = postings, changed, set(outdated)
        self._asked: dict[int, Positions] = {}
        for id_, positions in postings.sets(CONCEPT, ids):
            asked = ids[id_]  # several concepts may be one name
            if asked in self._asked:
                positions = united(self._asked[asked], positions, postings.items)
            self._asked[asked] = positions
        self._tally = Tally(self._asked.values(), postings.items)
        seen, sources = (1 << postings.items) - 1, {source.order for source in mapping.sources}
        self._sees_all = sources.issuperset(_SOURCES)
        if not self._sees_all:
            seen = reduce(or_, (b for n, b in self._types.items() if _SOURCES[n] in sources), 0)
        self._seen = seen & ~to_int(to_bytes(outdated, postings.items)) if outdated else seen

    @cached_property
    def _types(self) -> dict[int, int]:
        return dict(self._postings.bitmaps(TYPE, range(len(SOURCE_TYPES))))

    @cached_property
    def _count_seen(self) -> Callable[[Sequence[int]], int]:
        return members_counter(self._seen, self._postings.items)

    def _within(self, narrowing: Narrowing) -> int:
        within = self._seen
        if narrowing.types:
            chosen = (b for n, b in self._types.items() if SOURCE_TYPES[n] in narrowing.types)
            within &= reduce(or_, chosen, 0)
        if narrowing.project_ids is not None:
            ids = (id_ for id_ in narrowing.project_ids if isinstance(id_, int))
            projects = self._postings.bitmaps(PROJECT, ids)
            within &= reduce(or_, (bitmap for _, bitmap in projects), 0)
        return within

    def total_of(self, asked: int) -> int:
        positions, changed = self._asked.get(asked, 0), self._changed.total_of(asked)
        if isinstance(positions, int):
            return (positions & self._seen).bit_count() + changed
        if self._sees_all:
            return len(positions) - len(self._outdated.intersection(positions)) + changed
        return self._count_seen(positions) + changed

    def total(self, narrowing: Narrowing) -> int:
        here = self._tally.union & self._within(narrowing)
        return here.bit_count() + self._changed.total(narrowing)

    def type_counts(self, narrowing: Narrowing) -> Counter[str]:
        here = self._tally.union & self._within(narrowing)
        counts = Counter({SOURCE_TYPES[n]: (here & b).bit_count() for n, b in self._types.items()})
        return +counts + self._changed.type_counts(narrowing)

    def project_counts(self, narrowing: Narrowing) -> Counter[Key | None]:
        here = self._tally.union & self._within(narrowing)
        counts: Counter[Key | None] = Counter()
        count = members_counter(here, self._postings.items)
        for id_, positions in self._postings.sets(PROJECT, self._postings.project_ids()):
            if isinstance(positions, int):
                counts[id_] = (here & positions).bit_count()
            else:
                counts[id_] = count(positions)
        counts[None] = here.bit_count() - counts.total()
        return +counts + self._changed.project_counts(narrowing)

    def best(
        self, narrowing: Narrowing, limit: int | None, after: RankKey | None
    ) -> list[Candidate]:
        positions = islice(self._ranked(narrowing, after), limit)
        carried = dict.fromkeys(positions, 0)
        for asked, among in self._asked.items():
            for position in common(carried, among):
                carried[position] |= 1 << asked
        found = self._postings.candidates(carried)
        return best([*found, *self._changed.best(narrowing, limit, after)], limit)

    def _ranked(self, narrowing: Narrowing, after: RankKey | None) -> Iterator[int]:
        for count, group in self._tally.groups(self._within(narrowing)):
            if after is None or count < -after.fewness:
                yield from members(group)
            elif count == -after.fewness:
                start = self._postings.first_behind(after)
                yield from members(group >> start << start)

    def number_until(self, narrowing: Narrowing, place: RankKey) -> int:
        number = self._changed.number_until(narrowing, place)
        for count, group in self._tally.groups(self._within(narrowing)):
            if count < -place.fewness:
                break
            if count == -place.fewness:
                group &= (1 << self._postings.first_behind(place)) - 1
            number += group.bit_count()
        return number

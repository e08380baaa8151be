"""All concepts of a database with how they are used.

What is counted is what the asker may see: items of other tables are as if they were not there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Container, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

from .folding import canonical_name
from .mapping import Concepts, Mapping, Source
from .models import NO_INSTANT, Key
from .reading import Reader, as_text, json_list, reading
from .timestamps import age_of, parse_instant
from .vocabulary import Vocabulary, vocabulary_of

SORTS = ("count", "name", "recent")
"""The orders of a list: most items first, by name, or latest use first."""

SortKey = tuple[int, str]


@dataclass(frozen=True)
class ConceptEntry:
    """A concept with its use: ``kinds`` counts items by source type, ``latest`` is the newest one.

    ``spellings`` are all that are stored of the name, in code-point order; the first is ``name``.
    """

    name: str
    spellings: tuple[str, ...]
    description: str = ""
    kinds: dict[str, int] = field(default_factory=dict)
    latest: datetime | None = None

    @property
    def total(self) -> int:
        """How many items are tagged with it."""
        return sum(self.kinds.values())


@dataclass(frozen=True)
class ConceptList:
    """One page of a list; ``total`` is how many concepts there are, ``next`` where to go on."""

    entries: tuple[ConceptEntry, ...]
    total: int
    next: SortKey | None = None


def list_concepts(
    conn: sqlite3.Connection,
    *,
    search: str = "",
    sort: str = "count",
    limit: int | None = None,
    after: SortKey | None = None,
    vocabulary: Vocabulary | None = None,
    visible: Container[str] | None = None,
) -> ConceptList:
    """The concepts whose name contains a text, in any letter case, in one of `SORTS`.

    ``after`` is the place where an earlier page ended. By name nothing is counted but what is
    returned, so that it is fast however many items there are. Raises `sqlite3.Error`.
    """
    with reading(conn) as reader:
        mapping = vocabulary_of(vocabulary).knowledge(reader).mapping.visible_to(visible)
        if mapping.concepts is None:
            return ConceptList((), 0)
        names = _Names(reader, mapping.concepts)
        wanted = canonical_name(search)
        uses = {canonical: _Use() for canonical in names.spellings if wanted in canonical}
        if sort != "name":
            _count(reader, mapping, names, uses)
        keyed = sorted((_sort_key(name, use, sort), name) for name, use in uses.items())
        rest = [each for each in keyed if after is None or each[0] > after]
        shown = rest if limit is None else rest[:limit]
        if sort == "name":
            _count(reader, mapping, names, {name: uses[name] for _, name in shown})
    entries = tuple(names.entry(name, uses[name]) for _, name in shown)
    more = len(rest) > len(shown)
    return ConceptList(entries, len(uses), shown[-1][0] if more else None)


class _Use:
    """How many items of each kind a concept has, and the latest time among them with its age."""

    __slots__ = ("age", "kinds", "latest", "seen")

    def __init__(self) -> None:
        self.kinds: dict[str, int] = {}
        self.age = NO_INSTANT
        self.latest: object = None
        self.seen: set[Key] | None = None  # items, where one could be counted twice


_LONGEST_KEY = 200


def _sort_key(canonical: str, use: _Use, sort: str) -> SortKey:
    """A place in a list: a number, then the folded name, which no two concepts share.

    As a part of addresses it is short: the rest of a long name is told by its hash.
    """
    if len(canonical) > _LONGEST_KEY:
        rest = canonical[_LONGEST_KEY:].encode("utf-8", "replace")
        canonical = f"{canonical[:_LONGEST_KEY]} {sha256(rest).hexdigest()}"
    numbers = {"name": 0, "recent": use.age, "count": -sum(use.kinds.values())}
    return numbers[sort], canonical


class _Names:
    """All names of a database as one concept each, and which of them a link refers to."""

    def __init__(self, reader: Reader, concepts: Concepts) -> None:
        self.spellings: dict[str, set[str]] = {}  # by canonical name
        self.repeated: set[str] = set()  # canonical names of several rows
        self.descriptions: dict[str, str] = {}
        self._by_key: dict[Any, str] = {}
        self._by_name: dict[Any, str] = {}
        for key, value, description in reader.rows(
            f"select {concepts.key}, {concepts.name}, {concepts.description} from {concepts.rows}"
        ):
            name = as_text(value)
            canonical = canonical_name(name)
            if not canonical:
                continue
            if canonical in self.spellings:
                self.repeated.add(canonical)
            self._by_key[key] = self._by_key[str(key)] = self._by_name[name] = canonical
            self.spellings.setdefault(canonical, set()).add(name)
            if description and not self.descriptions.get(canonical):
                self.descriptions[canonical] = as_text(description)

    def links(self, source: Source) -> dict[Any, str]:
        """What links of a source refer to, with the canonical name of the concept."""
        return self._by_name if source.links_by_name else self._by_key

    def entry(self, canonical: str, use: _Use) -> ConceptEntry:
        """A concept with its use."""
        spellings = tuple(sorted(self.spellings[canonical]))
        return ConceptEntry(
            name=spellings[0],
            spellings=spellings,
            description=self.descriptions.get(canonical, ""),
            kinds=use.kinds,
            latest=parse_instant(use.latest),
        )


def _count(reader: Reader, mapping: Mapping, names: _Names, uses: dict[str, _Use]) -> None:
    """Counts the items of concepts, given by canonical name, in one pass over each link table."""
    ages: dict[object, int] = {}
    for source in mapping.sources:
        links = {link: name for link, name in names.links(source).items() if name in uses}
        by_link = {link: uses[name] for link, name in links.items()}
        for name in names.repeated & uses.keys():  # an item may be linked to several of the rows
            uses[name].seen = set()
        for link, item, kind, created in _links(reader, source, by_link, names):
            use = by_link.get(link) or by_link.get(str(link))
            if use is None:
                continue
            if use.seen is not None:
                if item in use.seen:
                    continue
                use.seen.add(item)
            use.kinds[kind] = use.kinds.get(kind, 0) + 1
            age = ages.get(created)
            if age is None:
                age = ages[created] = age_of(created)
            if age < use.age:
                use.age, use.latest = age, created


def _links(
    reader: Reader, source: Source, wanted: Collection[object], names: _Names
) -> Iterator[tuple[Any, Key, str, object]]:
    """The links of a source to some concepts, each once: to what, from which item of which kind
    and time. Those to all concepts are not looked up one by one."""
    sql = (
        f"select distinct {source.concept}, {source.id}, {source.source_type}, {source.created}"
        f" from {source.links}"
    )
    if len(wanted) == len(names.links(source)):
        return reader.each(sql)
    keys = json_list(link for link in wanted if isinstance(link, int | str))
    # The plus keeps SQLite from looking for each of the concepts at each item.
    return reader.each(f"{sql} where +{source.concept} in (select value from json_each(?))", keys)

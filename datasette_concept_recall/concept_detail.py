"""One concept with what is around it: its newest items, its neighbours, its use over time.

What is counted is what the asker may see, as in the list of `concepts`.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass
from datetime import date

from .concepts import ConceptEntry
from .errors import UnknownConcept
from .folding import canonical_name
from .mapping import Concepts, Mapping
from .models import Key, RecallRequest, RecallResult
from .periods import Timeline, timeline
from .reading import Reader, as_text, json_list, reading
from .recall import AskedKeys, AskedName, asked_keys, keys_of
from .search import recall
from .timestamps import parse_instant
from .vocabulary import Vocabulary, vocabulary_of

MOST_NEIGHBOURS = 50
"""So many of the concepts that are tagged together with one are named."""


@dataclass(frozen=True)
class ConceptDetail:
    """One concept: ``newest`` holds its newest items and counts by kind and project.

    ``identifiers`` are pairs of type and value, ``neighbours`` pairs of a concept and how many
    items carry both, most first, ``use`` counts its items by day of their time.
    """

    entry: ConceptEntry
    identifiers: tuple[tuple[str, str], ...]
    newest: RecallResult
    neighbours: tuple[tuple[str, int], ...]
    use: Timeline


def show_concept(
    conn: sqlite3.Connection,
    name: str,
    *,
    newest: int = 10,
    vocabulary: Vocabulary | None = None,
    visible: Container[str] | None = None,
) -> ConceptDetail:
    """One concept, found in any letter case, with so many of its newest items.

    Raises `UnknownConcept` and `sqlite3.Error`.
    """
    with reading(conn) as reader:
        knowledge = vocabulary_of(vocabulary).knowledge(reader)
        mapping = knowledge.mapping.visible_to(visible)
        spellings = knowledge.matcher.resolve(name)
        concepts = mapping.concepts
        if concepts is None or not spellings:
            raise UnknownConcept(name)
        shown = spellings[0]
        request = RecallRequest(names=(shown,), limit=newest, facets=True, near_misses=False)
        result = recall(conn, request, vocabulary=vocabulary, visible=visible)
        asked = [AskedName(shown, spellings)]
        keys = asked_keys(reader, concepts, asked, knowledge.names_are_plain)
        description, identifiers = _described(reader, concepts, keys)
        shared, days = _around(reader, mapping, concepts, keys)
    latest = result.matches[0].created_at if result.matches else None
    entry = ConceptEntry(shown, spellings, description, result.type_counts, latest)
    named = ((knowledge.matcher.resolve(other)[0], items) for other, items in shared.items())
    neighbours = sorted(named, key=lambda each: (-each[1], each[0]))[:MOST_NEIGHBOURS]
    return ConceptDetail(entry, identifiers, result, tuple(neighbours), timeline(days))


def _described(
    reader: Reader, concepts: Concepts, keys: AskedKeys
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The first description of a concept, and all its identifiers."""
    descriptions, identifiers = [], dict[tuple[str, str], None]()
    for description, kind, value in reader.rows(
        f"select {concepts.description}, {concepts.identifier_type}, {concepts.identifier_value}"
        f" from {concepts.rows} where {concepts.key} in (select value from json_each(?))",
        json_list(keys.by_key),
    ):
        descriptions += [as_text(description)] if description else []
        if kind and value:
            identifiers[as_text(kind), as_text(value)] = None
    return next(iter(descriptions), ""), tuple(identifiers)


def _around(
    reader: Reader, mapping: Mapping, concepts: Concepts, keys: AskedKeys
) -> tuple[Counter[str], Counter[date]]:
    """What the items of a concept carry besides it, by canonical name, and their days."""
    shared: Counter[str] = Counter()
    days: Counter[date] = Counter()
    own = {canonical_name(name) for name in keys.by_name}
    for source in mapping.sources:
        tagged = source.tagged(concepts)
        with_it = (
            f"select {source.id} from {source.links}"
            f" where {source.concept} in (select value from json_each(?))"
        )
        carried: dict[Key, set[str]] = {}
        for item, name, created in reader.each(
            f"select distinct {source.id}, {tagged.name}, {source.created}"
            f" from {tagged.rows} where {source.id} in ({with_it})",
            json_list(keys_of(source, keys)),
        ):
            if item not in carried:
                carried[item] = set()
                instant = parse_instant(created)
                days.update([instant.date()] if instant else [])
            carried[item].add(canonical_name(as_text(name)))
        shared.update(name for names in carried.values() for name in names - own if name)
    return shared, days

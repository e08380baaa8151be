"""The concept facet of table pages: how many of the rows have each concept.

Rows and concepts are many to many, which the facets of Datasette itself do not count.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from datasette import Forbidden
from datasette.facets import Facet
from datasette.utils import path_with_added_args, path_with_removed_args

from . import asking
from .filters import CONCEPT
from .folding import canonical_name
from .instances import vocabulary_for
from .mapping import Concepts, Mapping, Source
from .models import Key
from .paths import own_path
from .reading import as_text, json_list, quote_identifier, reading
from .schema import lowered

if TYPE_CHECKING:
    from collections.abc import Mapping as MappingOf

NAME = "concepts"
"""What people call the facet; in configuration, ``facets: [{"concept": "concepts"}]``."""

PARAMETER = "_facet_concept"


class ConceptFacet(Facet):
    """``?_facet_concept=1``; the value itself says nothing."""

    type = "concept"

    async def suggest(self) -> list[dict[str, Any]]:
        """The facet itself, for a table whose rows are tagged; nothing is counted for it."""
        if self.get_configs() or not await self._sight():
            return []
        path = path_with_added_args(self.request, {PARAMETER: "1"})
        url = self._absolute(self._first_page(path))
        return [{"name": NAME, "type": self.type, "toggle_url": url}]

    async def facet_results(self) -> tuple[list[dict[str, Any]], list[str]]:
        """The facet, or its name among those that took too long."""
        configs = self.get_configs()
        sight = await self._sight() if configs else None
        if sight is None:
            return [], []
        size = self.get_facet_size()
        try:
            counts = await self._counts(sight, size + 1)
        except asking.TookTooLong:
            return [], [NAME]
        except Forbidden:
            return [], []
        if counts is None:
            return [], []
        removed = path_with_removed_args(self.request, {PARAMETER})
        facet = {
            "name": NAME,
            "type": self.type,
            "hideable": all(config["source"] != "metadata" for config in configs),
            "toggle_url": own_path(self.ds, removed),
            "results": [self._value(name, count) for name, count in counts[:size]],
            "truncated": len(counts) > size,
        }
        return [facet], []

    async def _sight(self) -> asking.Sight | None:
        """What the actor may see, None when the rows have no tags that it may see."""
        if not self.table:
            return None
        try:
            sight = await asking.look(self.ds, self.request.actor, self.database)
        except Forbidden:
            return None
        return sight if self._sources(sight.visible) else None

    def _sources(self, visible: Mapping) -> list[Source]:
        """What is counted. Numbers of rows that Datasette does not select cannot be compared."""
        sources = visible.sources_of(self.table) if visible.concepts else []
        return [source for source in sources if source.key not in (("_rowid_",), ("oid",))]

    async def _counts(self, sight: asking.Sight, limit: int) -> list[tuple[str, int]] | None:
        """The concepts with their counts; None when meanwhile the rows have no tags any more.

        Raises `TookTooLong` and `Forbidden`.
        """
        vocabulary, table = vocabulary_for(self.ds, self.database), lowered(self.table)

        def count(conn: sqlite3.Connection, sight: asking.Sight) -> list[tuple[str, int]] | None:
            concepts, sources = sight.visible.concepts, self._sources(sight.visible)
            if concepts is None or not sources:
                return None
            links = " union ".join(links_sql(s, table, concepts, self.sql) for s in sources)
            with reading(conn) as reader:
                variants = vocabulary.knowledge(reader).matcher.variants()
                counts = _count(conn, concepts, links, dict(self.params or {}), variants)
            return sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:limit]

        limit_ms, usual_ms = map(self.ds.setting, ("facet_time_limit_ms", "sql_time_limit_ms"))
        extra_ms = min(limit_ms - usual_ms, 0)
        return (await asking.read(self.ds, self.request.actor, sight, count, extra_ms))[1]

    def _value(self, name: str, count: int) -> dict[str, Any]:
        wanted = canonical_name(name)
        chosen = [
            value
            for key, value in self.get_querystring_pairs()
            if key == CONCEPT and canonical_name(value) == wanted
        ]
        if chosen:
            path = self.request.full_path
            for value in chosen:
                path = path_with_removed_args(self.request, {CONCEPT: value}, path=path)
        else:
            path = path_with_added_args(self.request, {CONCEPT: name})
        return {
            "value": name,
            "label": name,
            "count": count,
            "toggle_url": self._absolute(self._first_page(path)),
            "selected": bool(chosen),
        }

    def _first_page(self, path: str) -> str:
        """Another selection begins at its first page."""
        first: str = path_with_removed_args(self.request, {"_next"}, path=path)
        return first

    def _absolute(self, path: str) -> str:
        absolute: str = self.ds.absolute_url(self.request, own_path(self.ds, path))
        return absolute


def _count(
    conn: sqlite3.Connection,
    concepts: Concepts,
    links: str,
    params: dict[str, Any],
    variants: MappingOf[str, str],
) -> Counter[str]:
    """How many items have each concept; concepts whose names are variants of another are that one.

    ``links`` is the SQL of all different pairs of an item and the key of a concept.
    """
    counts: Counter[str] = Counter()
    keys: defaultdict[str, list[Key]] = defaultdict(list)
    for key, name, count in conn.execute(named_counts_sql(concepts, links), params):
        text = as_text(name)
        if text.strip() and isinstance(key, int | str):  # or nobody could ask for it
            shown = variants.get(text, text)
            counts[shown] += count
            keys[shown].append(key)
    several = {key: shown for shown, same in keys.items() if len(same) > 1 for key in same}
    if several:  # an item may have more than one of them
        items: defaultdict[str, set[Key]] = defaultdict(set)
        wanted = "concept in (select value from json_each(:concept_recall_several))"
        sql = f"select item, concept from ({links}) where {wanted}"
        params = {**params, "concept_recall_several": json_list(several)}
        for item, key in conn.execute(sql, params):
            items[several[key]].add(item)
        counts.update({shown: len(found) - counts[shown] for shown, found in items.items()})
    return counts


def named_counts_sql(concepts: Concepts, links: str) -> str:
    """Key and name of each concept of the pairs, and of how many of them."""
    counted = f"select concept, count(*) as n from ({links}) group by concept"
    if concepts.table is None:
        return f"select concept, concept, n from ({counted})"
    return (
        f"select {concepts.key}, {concepts.name}, n"
        f" from ({counted}) join {concepts.rows} on {concepts.key} = concept"
    )


def links_sql(source: Source, table: str, concepts: Concepts, rows_sql: str) -> str:
    """The pairs of an item and the key of a concept, for the items that are rows of a query."""
    columns, values = source.key_in(table)
    row, key = ", ".join(values), ", ".join(map(quote_identifier, columns))
    item = source.id if source.item_table == table else row
    tagged = source.tagged(concepts)
    return (
        f"select distinct {item} as item, {tagged.key} as concept from {tagged.rows}"
        f" where ({row}) in (select {key} from ({rows_sql}))"
    )

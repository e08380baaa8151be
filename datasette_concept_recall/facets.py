"""The concept facet of table pages: how many of the rows have each concept.

Rows and concepts are many to many, which the facets of Datasette itself do not count.
"""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

from datasette import Forbidden
from datasette.facets import Facet
from datasette.utils import path_with_added_args, path_with_removed_args

from . import asking
from .filters import CONCEPT, sources_of
from .folding import canonical_name
from .instances import vocabulary_for
from .mapping import Concepts, Mapping, Source
from .paths import own_path
from .reading import as_text, quote_identifier, reading
from .schema import lowered

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "concepts"
"""What people call the facet; in configuration, ``facets: [{"concept": "concepts"}]``."""

_PARAMETER = "_facet_concept"

_WHITE_SPACE = "char(9, 10, 11, 12, 13, 32)"


class ConceptFacet(Facet):
    """``?_facet_concept=1``; the value itself says nothing."""

    type = "concept"

    async def suggest(self) -> list[dict[str, Any]]:
        """The facet itself, for a table whose rows are tagged; nothing is counted for it."""
        if self.get_configs() or not await self._sight():
            return []
        path = path_with_added_args(self.request, {_PARAMETER: "1"})
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
        removed = path_with_removed_args(self.request, {_PARAMETER})
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
        sources = sources_of(visible, self.table) if visible.concepts else []
        return [source for source in sources if source.key not in (("_rowid_",), ("oid",))]

    async def _counts(self, sight: asking.Sight, limit: int) -> list[tuple[str, int]] | None:
        """The concepts with their counts; None when meanwhile the rows have no tags any more.

        Raises `TookTooLong` and `Forbidden`.
        """
        vocabulary = vocabulary_for(self.ds, self.database)

        def count(conn: sqlite3.Connection, sight: asking.Sight) -> list[tuple[str, int]] | None:
            concepts, sources = sight.visible.concepts, self._sources(sight.visible)
            if concepts is None or not sources:
                return None
            with reading(conn) as reader:
                variants = vocabulary.knowledge(reader).matcher.variants()
                params = {
                    **dict(self.params or {}),
                    "concept_recall_variants": json.dumps(list(variants.items())),
                    "concept_recall_limit": limit,
                }
                sql = counts_sql(sources, lowered(self.table), concepts, self.sql)
                rows = map(tuple, conn.execute(sql, params))
                return [(as_text(name), number) for name, number in rows]

        limit, usual = map(self.ds.setting, ("facet_time_limit_ms", "sql_time_limit_ms"))
        extra = min(limit - usual, 0)
        return (await asking.read(self.ds, self.request.actor, sight, count, extra))[1]

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


def counts_sql(sources: Sequence[Source], table: str, concepts: Concepts, rows_sql: str) -> str:
    """Each concept with how many of the rows of a query have it, most first.

    Names that read the same are one. The parameter ``concept_recall_variants`` is a JSON array of
    pairs: a spelling, and the one that it is counted as.
    """
    each = " union ".join(_links_sql(source, table, concepts, rows_sql) for source in sources)
    return (
        f"select name, count(*) as count from ({each})"
        f" where trim(name, {_WHITE_SPACE}) <> ''"
        " group by name order by count desc, name limit :concept_recall_limit"
    )


def _links_sql(source: Source, table: str, concepts: Concepts, rows_sql: str) -> str:
    referred = concepts.name if source.links_by_name else concepts.key
    if source.item_table != table and source.parent:
        columns: tuple[str, ...] = ("id",)
        item = f"i.{quote_identifier(source.parent[1])}"
        row = item
    else:
        item, columns = source.id, source.key
        row = ", ".join(f"i.{quote_identifier(column)}" for column in columns)
    key = ", ".join(map(quote_identifier, columns))
    # A limit keeps SQLite from reading the array anew for each link: the pairs get an index.
    spelled = (
        "select json_extract(value, '$[0]') as spelling, json_extract(value, '$[1]') as name"
        " from json_each(:concept_recall_variants) limit -1"
    )
    name = f"cast({concepts.name} as text)"
    return (
        f"select distinct {item}, coalesce(v.name, {name}) as name"
        f" from {source.links} join {concepts.rows} on {referred} = {source.concept}"
        f" left join ({spelled}) v on v.spelling = {name}"
        f" where ({row}) in (select {key} from ({rows_sql}))"
    )

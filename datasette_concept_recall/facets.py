"""The concept facet of table pages: how many of the rows have each concept.

Rows and concepts are many to many, which the facets of Datasette itself do not count.
"""

from __future__ import annotations

import json
from typing import Any

from datasette import Forbidden
from datasette.database import QueryInterrupted
from datasette.facets import Facet
from datasette.utils import path_with_added_args, path_with_removed_args

from . import asking
from .filters import CONCEPT, sources_of
from .folding import canonical_name
from .instances import vocabulary_for
from .mapping import Concepts, Source
from .paths import own_path
from .reading import as_text, quote_identifier
from .schema import lowered

_PARAMETER = "_facet_concept"


class ConceptFacet(Facet):
    """``?_facet_concept=1``; the value itself says nothing."""

    type = "concept"

    async def suggest(self) -> list[dict[str, Any]]:
        """The facet itself, for a table whose rows are tagged."""
        if self.get_configs() or not await self._sight():
            return []
        path = path_with_added_args(self.request, {_PARAMETER: "1"})
        return [{"name": "concepts", "toggle_url": self._absolute(self._first_page(path))}]

    async def facet_results(self) -> tuple[list[dict[str, Any]], list[str]]:
        """The facet, or its name among those that took too long."""
        configs = self.get_configs()
        sight = await self._sight() if configs else None
        if sight is None:
            return [], []
        size = self.get_facet_size()
        try:
            rows = await self._counts(sight, size + 1)
        except QueryInterrupted:
            return [], ["concepts"]
        removed = path_with_removed_args(self.request, {_PARAMETER})
        facet = {
            "name": "concepts",
            "type": self.type,
            "hideable": all(config["source"] != "metadata" for config in configs),
            "toggle_url": own_path(self.ds, removed),
            "results": [self._value(as_text(name), count) for name, count in rows[:size]],
            "truncated": len(rows) > size,
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
        return sight if sources_of(sight.visible, self.table) and sight.visible.concepts else None

    async def _counts(self, sight: asking.Sight, limit: int) -> list[tuple[Any, int]]:
        concepts = sight.visible.concepts
        assert concepts is not None
        sources = sources_of(sight.visible, self.table)
        vocabulary = vocabulary_for(self.ds, self.database)
        matcher = await self.ds.get_database(self.database).execute_fn(vocabulary.matcher)
        sql = _counts_sql(sources, lowered(self.table), concepts, self.sql)
        found = await self.ds.execute(
            self.database,
            sql,
            {
                **dict(self.params or {}),
                "concept_recall_variants": json.dumps(matcher.variants()),
                "concept_recall_limit": limit,
            },
            truncate=False,
            custom_time_limit=self.ds.setting("facet_time_limit_ms"),
        )
        return [tuple(row) for row in found.rows]

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


def _counts_sql(sources: list[Source], table: str, concepts: Concepts, rows_sql: str) -> str:
    """Each concept with how many of the rows of a query have it, most first.

    Case variants count as the concept that the parameter ``concept_recall_variants`` says.
    """
    each = " union ".join(_links_sql(source, table, concepts, rows_sql) for source in sources)
    return (
        f"select name, count(*) as count from ({each}) group by name"
        " order by count desc, name limit :concept_recall_limit"
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
    return (
        f"select distinct {item}, coalesce(v.value, {concepts.name}) as name"
        f" from {source.links} join {concepts.rows} on {referred} = {source.concept}"
        f" left join json_each(:concept_recall_variants) v on v.key = {concepts.name}"
        f" where ({row}) in (select {key} from ({rows_sql}))"
    )

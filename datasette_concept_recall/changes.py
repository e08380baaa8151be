"""What changed since the recall index was built, as its triggers noted it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .index_schema import CHANGED, ITEM, PARENT
from .mapping import Mapping, Source
from .models import Candidate
from .reading import Reader, json_list
from .recall import candidate_sql, candidates_of


class Changes:
    """What changed since the index was built: read from the tables, not from the sets.

    ``links`` tells about how many links the asked concepts have, which decides whether to go
    through these or through the changed items.
    """

    def __init__(self, reader: Reader, mapping: Mapping, links: int) -> None:
        self._reader, self._sources = reader, mapping.sources
        some = f"select count(*) from (select 1 from {CHANGED} limit ?)"
        ((number,),) = reader.rows(some, links + 1)
        self._are_none, self._are_many = number == 0, number > links

    def candidates(self, ids: dict[int, int]) -> Iterator[Candidate]:
        """The changed items that are tagged with one of the concepts."""
        if self._are_none:
            return
        for source in self._sources:
            sql = changed_candidate_sql(source, through_links=self._are_many)
            yield from candidates_of(source, self._reader.rows(sql, json_list(ids)), ids)

    def positions(self, among: Iterable[int] | None = None) -> list[int]:
        """Where the changed items stand in the index, all or those among the given ones."""
        if self._are_none:
            return []
        found: list[int] = []
        for source in self._sources:
            if among is None:
                rows = self._reader.rows(_changed_positions_sql(source))
            else:
                rows = self._reader.rows(_changed_among_sql(source), json_list(among))
            found += (position for (position,) in rows)
        return found


def changed_candidate_sql(source: Source, *, through_links: bool) -> str:
    """`recall.candidate_sql` for the changed items alone, through all links or all changes."""
    if through_links:
        return f"{candidate_sql(source)} and {_has_changed(source, f'l.{source.link_item}')}"
    # The plus keeps SQLite from going through all links of a concept.
    by_item = candidate_sql(source).replace(" where l.", " where +l.")
    return f"{by_item} and i.id in ({_changed_items(source)})"


def _changed_items(source: Source) -> str:
    """The ids of all changed items of a source, and of those whose parent changed."""
    changed = f"select item from {CHANGED} where source = "
    if not source.parent:
        return f"{changed}{source.order}"
    return (
        f"{changed}{source.order} union select id from {source.item_table}"
        f" where {source.parent[1]} in ({changed}{source.order + PARENT})"
    )


def _has_changed(source: Source, item: str) -> str:
    """Whether an item, or the parent of the row ``i`` of its table, is noted as changed."""
    noted = f"exists (select 1 from {CHANGED} where source = {{}} and item = {{}})"
    own = noted.format(source.order, item)
    if not source.parent:
        return own
    return f"({own} or {noted.format(source.order + PARENT, f'i.{source.parent[1]}')})"


def _changed_positions_sql(source: Source) -> str:
    return (
        f"select position from {ITEM} where source = {source.order}"
        f" and item in ({_changed_items(source)})"
    )


def _changed_among_sql(source: Source) -> str:
    rows = f"{ITEM} x"
    if source.parent:  # of an item that was deleted there is no row, but it is noted itself
        rows += f" left join {source.item_table} i on i.id = x.item"
    # The plus keeps SQLite from going through all items of a source.
    return (
        f"select x.position from {rows} where x.position in (select value from json_each(?))"
        f" and +x.source = {source.order} and {_has_changed(source, 'x.item')}"
    )

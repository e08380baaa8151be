"""What belongs to one row: the concepts it is tagged with, and what else is tagged with them."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace

from .folding import canonical_name
from .mapping import Concepts, Mapping, Source
from .models import Key, RecallRequest, RecallResult
from .reading import Reader, as_text, quote_identifier, reading
from .schema import lowered
from .search import recall
from .vocabulary import Vocabulary

MOST_RELATED = 5
"""So many related items are shown of a row."""


@dataclass(frozen=True)
class Related:
    """The concepts of a row, and everything tagged with one of them.

    ``names`` are in code-point order, of case variants the first. The matches of ``result`` are
    the first related items, without the row itself or what belongs to it, which its total counts;
    it is None when a time limit ended the search. ``others`` is how many related items there are.
    """

    names: tuple[str, ...]
    result: RecallResult | None
    others: int = 0


def is_tagged(mapping: Mapping, table: str) -> bool:
    """Whether rows of a table can have concepts, or be concepts themselves."""
    name = lowered(table)
    of_concepts = mapping.concepts is not None and mapping.concepts.table == name
    return of_concepts or bool(mapping.sources_of(name))


def related_to(
    conn: sqlite3.Connection,
    mapping: Mapping,
    table: str,
    row: sqlite3.Row,
    *,
    vocabulary: Vocabulary | None = None,
    limit: int = MOST_RELATED,
) -> Related | None:
    """What belongs to a row of a table: a row of the concepts is itself the only one it has.

    ``row`` holds at least the columns of the table's primary key, or the number of the row.
    ``mapping`` is what may be seen. None when the row has no concept. Raises `sqlite3.Error`, when
    a time limit ends it before the concepts are known as well.
    """
    with reading(conn) as reader:
        names, own = _tags(reader, mapping, table, row)
    if not names:
        return None
    request = RecallRequest(names=names, limit=limit + len(own), near_misses=False)
    try:
        result = recall(conn, request, vocabulary=vocabulary, visible=mapping.tables)
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        return Related(names, None)
    others = [
        (match, place)
        for match, place in zip(result.matches, result.places, strict=True)
        if (place.source, place.id) not in own
    ][:limit]
    matches, places = [match for match, _ in others], [place for _, place in others]
    return Related(
        names, replace(result, matches=matches, places=places), max(0, result.total - len(own))
    )


def _tags(
    reader: Reader, mapping: Mapping, table: str, row: sqlite3.Row
) -> tuple[tuple[str, ...], set[tuple[int, Key]]]:
    """The names of the concepts of a row, and which items it is or has: source and id."""
    concepts, name = mapping.concepts, lowered(table)
    found: set[str] = set()
    own: set[tuple[int, Key]] = set()
    if concepts is None:
        return (), own
    if concepts.table == name:
        found.add(_own_name(reader, concepts, row))
    columns = {lowered(column) for column in row.keys()}  # noqa: SIM118, a row is no dictionary
    for source in mapping.sources_of(name):
        key, _ = source.key_in(name)
        if columns.issuperset(map(lowered, key)):
            values = (row[column] for column in key)
            for id_, tag in reader.rows(tags_sql(source, concepts, name), *values):
                own.add((source.order, id_))
                found.add(as_text(tag))
    spelled: dict[str, str] = {}
    for tag in sorted(found):
        spelled.setdefault(canonical_name(tag), tag)
    return tuple(tag for canonical, tag in spelled.items() if canonical), own


def _own_name(reader: Reader, concepts: Concepts, row: sqlite3.Row) -> str:
    """The name that a row of the concepts is: its expression over the row as it is."""
    values = ", ".join(f"? as {quote_identifier(column)}" for column in row.keys())  # noqa: SIM118
    ((name,),) = reader.rows(f"select {concepts.name} from (select {values}) c", *row)
    return as_text(name)


def tags_sql(source: Source, concepts: Concepts, table: str) -> str:
    """The id of each item of one row, given by its key in a table, beside each name of its tags."""
    this = " and ".join(f"{value} = ?" for value in source.key_in(table)[1])
    tagged = source.tagged(concepts)
    return f"select {source.id}, {tagged.name} from {tagged.rows} where {this}"

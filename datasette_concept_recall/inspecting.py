"""What recall finds in a database, and how much of it is tagged."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from .mapped import FoundMapping, find_mapping
from .mapping import Source
from .reading import Reader, reading


@dataclass(frozen=True)
class InspectedSource:
    """A source with how many rows it has, and how many of them are tagged."""

    source: Source
    rows: int
    tagged: int


@dataclass(frozen=True)
class Inspection:
    """What was found, how many names there are, and how much is tagged."""

    found: FoundMapping
    names: int
    sources: tuple[InspectedSource, ...]


def inspect(conn: sqlite3.Connection) -> Inspection:
    """Looks at a database that nobody configured. Raises `sqlite3.Error`."""
    with reading(conn) as reader:
        found = find_mapping(reader)
        names, concepts = 0, found.mapping.concepts
        if concepts:
            ((names,),) = reader.rows(f"select count(*) from {concepts.rows}")
        sources = tuple(_counted(reader, source) for source in found.mapping.sources)
    return Inspection(found, names, sources)


def _counted(reader: Reader, source: Source) -> InspectedSource:
    ((rows,),) = reader.rows(f"select count(*) from {source.rows}")
    ((tagged,),) = reader.rows(
        f"select count(*) from (select distinct {source.id} from {source.links}"
        f" where {source.concept} is not null)"
    )
    return InspectedSource(source, rows, tagged)

"""What recall finds in a database, and how much of it is tagged."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from .folding import canonical_name
from .mapped import FoundMapping, find_mapping
from .mapping import Source
from .reading import Reader, as_text, reading


@dataclass(frozen=True)
class InspectedSource:
    """A source with how many rows it has, and how many of them are tagged."""

    source: Source
    rows: int
    tagged: int


@dataclass(frozen=True)
class Inspection:
    """What was found, how many names there are and concepts (names but for case), and how much is
    tagged."""

    found: FoundMapping
    names: int
    concepts: int
    sources: tuple[InspectedSource, ...]


def inspect(conn: sqlite3.Connection) -> Inspection:
    """Looks at a database that nobody configured. Raises `sqlite3.Error`."""
    with reading(conn) as reader:
        found = find_mapping(reader)
        names, distinct, concepts = 0, set[str](), found.mapping.concepts
        if concepts:
            for (name,) in reader.each(f"select {concepts.name} from {concepts.rows}"):
                names += 1
                distinct.add(canonical_name(as_text(name)))
        sources = tuple(_counted(reader, source) for source in found.mapping.sources)
    return Inspection(found, names, len(distinct - {""}), sources)


def _counted(reader: Reader, source: Source) -> InspectedSource:
    ((rows,),) = reader.rows(f"select count(*) from {source.rows}")
    ((tagged,),) = reader.rows(
        f"select count(*) from (select distinct {source.id} from {source.links}"
        f" where {source.concept} is not null)"
    )
    return InspectedSource(source, rows, tagged)

"""What recall finds in a database, why, and the configuration that says the same."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from .config import DatabaseConfig
from .discovery import discover
from .knowledge_schema import read_knowledge
from .mapped import build_mapping
from .mapping import Mapping, Source
from .reading import Reader, reading
from .schema import read_schema


@dataclass(frozen=True)
class InspectedSource:
    """A source with how many rows it has, and how many of them are tagged."""

    source: Source
    rows: int
    tagged: int


@dataclass(frozen=True)
class Inspection:
    """What was found; ``config`` is None for a knowledge database and where nothing was."""

    mapping: Mapping
    reasons: tuple[str, ...]
    config: DatabaseConfig | None
    names: int
    sources: tuple[InspectedSource, ...]


def inspect(conn: sqlite3.Connection) -> Inspection:
    """Looks at a database that nobody configured. Raises `sqlite3.Error`."""
    with reading(conn) as reader:
        mapping, reasons, config = _found(reader)
        names = 0
        if mapping.concepts:
            ((names,),) = reader.rows(f"select count(*) from {mapping.concepts.rows}")
        sources = tuple(_counted(reader, source) for source in mapping.sources)
    return Inspection(mapping, reasons, config, names, sources)


def _found(reader: Reader) -> tuple[Mapping, tuple[str, ...], DatabaseConfig | None]:
    knowledge = read_knowledge(reader)
    if knowledge.sources:
        reason = "It has the tables of a knowledge database, as kb and harvey write them."
        return knowledge, (reason,), None
    schema = read_schema(reader)
    found = discover(reader, schema)
    if found.config is None:
        return knowledge, found.reasons, None
    mapping, problems = build_mapping(reader, schema, found.config)
    return mapping, (*found.reasons, *(f"{p}." for p in map(str, problems))), found.config


def _counted(reader: Reader, source: Source) -> InspectedSource:
    ((rows,),) = reader.rows(f"select count(*) from {source.rows}")
    ((tagged,),) = reader.rows(
        f"select count(*) from (select distinct {source.id} from {source.links}"
        f" where {source.concept} is not null)"
    )
    return InspectedSource(source, rows, tagged)

"""Which tables of a database are read, and what their columns and tags are for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...discovery import body_column, created_column, title_column
from ...index_schema import PREFIX
from ...mapped import find_mapping
from ...mapping import Mapping
from ...reading import Reader
from ...schema import Schema, Table, lowered, read_schema
from ..failures import SourceUnreachable
from .row_about import AboutRows, about_rows
from .row_tables import Described, Tags

_INDEX_TABLES = ("source", "document", "generation", "chunk")
"""A database that has all of these is an index, whose rows are documents already."""

_SHADOWS = ("data", "idx", "content", "docsize", "config", "segments", "segdir", "stat")
"""What the tables in which a full-text table keeps its own are called behind its name."""


@dataclass(frozen=True)
class Plan:
    """The tables that are read, by name, and what is wrong with others, a sentence each."""

    tables: dict[str, Described]
    problems: tuple[str, ...]


def plan_of(reader: Reader, path: Path, named: dict[str, str] | None) -> Plan:
    """What is read of the database at ``path``: the tables that are ``named``, each with the column
    of its text or ``""``, or all ordinary ones. Raises `SourceUnreachable` if one that is named
    cannot be read."""
    schema = read_schema(reader)
    mapping = find_mapping(reader).mapping
    problems: list[str] = []
    if named is None:
        chosen = {table.name: "" for table in _ordinary(reader, schema)}
        if all(map(schema.get, _INDEX_TABLES)):
            chosen = {}
            problems.append(f"{path} is an index itself, so its rows are no documents")
    else:
        chosen = named
    tables: dict[str, Described] = {}
    for name, body in chosen.items():
        table = schema.get(name)
        problem = _problem(table, name, body)
        if table is None or (problem and named is not None):
            raise SourceUnreachable(f"{path}: {problem}")
        if problem:
            problems.append(problem)
            continue
        about = about_rows(reader, mapping, table)
        described = _described(table, body, tuple(_tags(mapping, table)), about)
        if described.texts or described.title or named is not None:
            tables[table.name] = described
    return Plan(tables, tuple(problems))


def _ordinary(reader: Reader, schema: Schema) -> Iterator[Table]:
    """The tables that hold what somebody wrote into them, rather than what is made from it."""
    rows = reader.rows("pragma table_list")  # which is unknown to SQLite before 3.37
    shadows = {lowered(row[1]) for row in rows if row[2] == "shadow"}
    for table in schema.tables:
        if table.is_virtual:
            shadows |= {f"{lowered(table.name)}_{end}" for end in _SHADOWS}
    for table in schema.tables:
        is_made = table.is_view or table.is_virtual or lowered(table.name).startswith(PREFIX)
        if not is_made and lowered(table.name) not in shadows:
            yield table


def _problem(table: Table | None, name: str, body: str) -> str | None:
    """Why the rows of a table cannot be documents."""
    if table is None:
        return f"There is no table {name}"
    if table.rowid is None and not table.primary_key:
        return f"Nothing tells the rows of {name} apart"
    return f"{name} has no column {body}" if body and not table.column(body) else None


def _described(
    table: Table, body: str, tags: tuple[Tags, ...], about: AboutRows | None
) -> Described:
    """What the columns of a table are for; a ``body`` that was named is the only text."""
    title, created = title_column(table), created_column(table)
    given = table.column(body) if body else None
    found = given.name if given else body_column(table, title)
    referring = {lowered(c) for key in table.foreign_keys for c in key.columns}
    others = (
        column.name
        for column in table.columns
        if (column.is_text or not column.declared)
        and not column.key
        and lowered(column.name) not in referring
        and column.name not in (title, found, created)
    )
    texts = (*([found] if found else []), *([] if given else others))
    return Described(table, title, found, texts, created, tags, about)


def _tags(mapping: Mapping, table: Table) -> Iterator[Tags]:
    concepts = mapping.concepts
    if concepts is None:
        return
    for source in mapping.sources_of(table.name):
        columns, expressions = source.key_in(lowered(table.name))
        tagged = source.tagged(concepts)
        query = (
            f"select {', '.join(expressions)}, {tagged.name} from {tagged.rows}"
            f" where {tagged.name} is not null"
        )
        yield Tags(columns, expressions, query)

"""The mapping of any database with tags and tagged rows, from a description of its tables.

The description is configuration, or what `discovery` found. Items are told apart by the number of
their row; those of a view or of a table WITHOUT ROWID, which have none, by their key as JSON.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .concept_table import ConceptTable, column_of, table_of
from .config import NONE, DatabaseConfig, SourceConfig
from .discovery import (
    body_column,
    created_column,
    discover,
    name_column,
    title_column,
)
from .errors import BadConfiguration
from .index_mapping import CONFIG, is_index, with_passages
from .knowledge_schema import read_knowledge
from .mapping import Concepts, Mapping, Source
from .reading import Reader, quote_identifier
from .schema import Schema, Table, lowered, read_schema


def build_mapping(
    reader: Reader, schema: Schema, config: DatabaseConfig
) -> tuple[Mapping, list[BadConfiguration]]:
    """The mapping of what is described, and what of the description does not fit the database.

    Sources that do not fit are left out, and without their concepts all of them.
    """
    problems: list[BadConfiguration] = []
    builder = _Builder(reader, schema)
    concepts, names = None, None
    if config.concepts:
        try:
            names = ConceptTable(schema, config.concepts, config.sources.values())
            concepts = names.concepts
        except BadConfiguration as problem:
            return Mapping(), [problem.within("concepts")]
    sources: list[Source] = []
    for label, described in config.sources.items():
        try:
            sources.append(builder.source(label, len(sources), described, names))
        except BadConfiguration as problem:
            problems.append(problem.within(f"sources.{label}"))
    if names is None and sources:
        concepts = _names_in_arrays(sources)
    return (
        Mapping(
            tables=tuple(sorted({*builder.tables, *(names.tables if names else ())})),
            concepts=concepts,
            sources=tuple(sources),
        ),
        problems,
    )


def _names_in_arrays(sources: Sequence[Source]) -> Concepts:
    """Without a table of concepts their names are those that stand in the arrays."""
    each = " union ".join(
        f"select distinct {s.concept} as name from {s.links} where {s.concept} is not null"
        for s in sources
    )
    return Concepts(
        table=None,
        tables=tuple(dict.fromkeys(table for s in sources for table in s.tables)),
        rows=f"({each}) c",
        key="c.name",
        name="c.name",
    )


class FoundMapping(NamedTuple):
    """What a database that nobody configured holds, why it was taken for that, a sentence each,
    and the same as configuration, None for a knowledge database and where there is nothing."""

    mapping: Mapping
    reasons: tuple[str, ...]
    config: DatabaseConfig | None = None


def find_mapping(reader: Reader) -> FoundMapping:
    """What recall reads in a database: as a knowledge database has it, or as it is found."""
    knowledge = read_knowledge(reader)
    if knowledge.sources:
        reason = "It has the tables of a knowledge database, as kb and harvey write them."
        return FoundMapping(knowledge, (reason,))
    schema = read_schema(reader)
    if is_index(reader):
        reason = "It is an index of documents, as this plugin writes it."
        return FoundMapping(
            with_passages(build_mapping(reader, schema, CONFIG)[0], reader), (reason,)
        )
    config, reasons = discover(reader, schema)
    if config is None:
        return FoundMapping(knowledge, reasons)
    mapping, problems = build_mapping(reader, schema, config)
    return FoundMapping(mapping, (*reasons, *(f"{problem}." for problem in problems)), config)


def read_mapping(reader: Reader, config: DatabaseConfig | None = None) -> Mapping:
    """What recall reads in a database, as configured or as found; empty when there is nothing."""
    if config is not None:
        return build_mapping(reader, read_schema(reader), config)[0]
    return find_mapping(reader).mapping


class _Builder:
    """Makes the sources of one database, and keeps which tables they read."""

    def __init__(self, reader: Reader, schema: Schema) -> None:
        self._reader, self._schema = reader, schema
        self.tables: set[str] = set()

    def source(
        self, label: str, order: int, config: SourceConfig, names: ConceptTable | None
    ) -> Source:
        """One source. Raises `BadConfiguration` with a key inside of it."""
        items = table_of(self._schema, "table", config.table)
        rows, id_, own_id = self._rows(items, config)
        link, on, concept, by_name, link_table = self._link(items, config, names)
        title = _chosen(items, "title", config.title, title_column(items, config.tags))
        found = body_column(items, title, config.tags)
        body = _chosen(items, "body", config.body, found)
        created = _chosen(items, "created", config.created, created_column(items))
        project, project_table = self._project(items, config.project)
        read = [items, *([link_table] if link_table else [])]
        self.tables |= {table.name for table in read}
        said = tuple(_item(column) for column in (title, body) if column)
        return Source(
            name=label,
            order=order,
            kinds=((label, label),),
            tables=tuple(lowered(table.name) for table in read),
            rows=rows,
            item_table=lowered(items.name),
            key=self._shown_key(items, config),
            id=id_,
            own_id=own_id,
            id_is_text=items.rowid is None,
            link=link,
            link_table=lowered(link_table.name) if link_table else None,
            on=on,
            concept=concept,
            links_by_name=by_name,
            source_type=_literal(label),
            project_id=project,
            project_is_name=project != "null",
            project_table=project_table,
            created=_instant(created) if created else "null",
            title=_item(title) if title else "''",
            body=_item(body) if body else "''",
            searched=said or ("''",),
            is_view=items.is_view,
        )

    def _rows(self, items: Table, config: SourceConfig) -> tuple[str, str, str]:
        """The FROM clause of the items, and what tells them apart there and in their own table."""
        name, rowid = quote_identifier(items.name), items.rowid
        if config.where:
            number = f'{rowid} as "{rowid}", ' if rowid else ""
            rows = f"(select {number}* from {name} where ({config.where})) i"
            self._try("where", rows)
        else:
            rows = f"{name} i"
        if rowid:
            return rows, _item(rowid), quote_identifier(rowid)
        key = _key_of(items, config)
        return rows, _as_json(map(_item, key)), _as_json(map(quote_identifier, key))

    def _shown_key(self, items: Table, config: SourceConfig) -> tuple[str, ...]:
        if items.rowid and not items.primary_key:
            return (items.rowid,)
        return _key_of(items, config) if items.is_view else items.primary_key

    def _try(self, key: str, rows: str) -> None:
        try:
            self._reader.rows(f"select 1 from {rows} limit 0")
        except (sqlite3.OperationalError, sqlite3.ProgrammingError) as error:
            if "interrupted" in str(error):
                raise
            raise BadConfiguration(key, f"is no condition that can be used: {error}") from error

    def _link(
        self, items: Table, config: SourceConfig, names: ConceptTable | None
    ) -> tuple[str, str, str, bool, Table | None]:
        if config.tags is not None:
            column = _item(column_of(items, "tags", config.tags))
            array = f"case json_type({column}) when 'array' then {column} else '[]' end"
            array = f"case when json_valid({column}) then {array} else '[]' end"
            return f"json_each({array})", "1", "cast(l.atom as text)", True, None
        link = table_of(self._schema, "link", config.link or "")
        assert names is not None  # without a table of concepts `config` accepts no link
        concept, by_name = _concept_column(link, config, names)
        on = _join(items, link, config)
        rows = quote_identifier(link.name)
        if config.link_where:
            rows = f"(select * from {rows} where ({config.link_where}))"
            self._try("link_where", rows)
        return rows, on, f"l.{quote_identifier(concept)}", by_name, link

    def _project(self, items: Table, column: str | None) -> tuple[str, str | None]:
        """The expression of a project's name, and the table it is read from unless the items'."""
        if not column:
            return "null", None
        value = _item(column_of(items, "project", column))
        key = items.foreign_key((column,))
        projects = self._schema.get(key.table) if key else None
        name = name_column(projects) if projects else None
        to = (key.to or projects.primary_key) if key and projects else ()
        if projects is None or name is None or len(to) != 1:
            return f"nullif(cast({value} as text), '')", None
        self.tables.add(projects.name)
        named = (
            f"select x.{quote_identifier(name)} from {quote_identifier(projects.name)} x"
            f" where x.{quote_identifier(to[0])} = {value}"
        )
        return f"nullif(cast(({named}) as text), '')", lowered(projects.name)


def _concept_column(link: Table, config: SourceConfig, names: ConceptTable) -> tuple[str, bool]:
    """The column of a link that refers to a concept, and whether it holds the name."""
    column = config.concept_key
    if column is None:
        found = [
            key.columns[0]
            for key in link.foreign_keys
            if lowered(key.table) == lowered(names.table.name) and len(key.columns) == 1
        ]
        if len(found) != 1:
            problem = f"name the column of {link.name} that refers to {names.table.name}"
            raise BadConfiguration("concept_key", problem)
        column = found[0]
    column = column_of(link, "concept_key", column)
    target = names.target(link, column)
    if target is None or (names.key and lowered(target) == lowered(names.key)):
        return column, False
    if lowered(target) == lowered(names.name):
        return column, True
    problem = f"{link.name}.{column} refers to {target}, other links to {names.key}"
    raise BadConfiguration("concept_key", problem)


def _join(items: Table, link: Table, config: SourceConfig) -> str:
    """The condition under which a link is one of an item."""
    columns, targets = config.item_key, None
    if columns is None:
        found = [k for k in link.foreign_keys if lowered(k.table) == lowered(items.name)]
        if len(found) != 1:
            problem = f"name the column of {link.name} that refers to {items.name}"
            raise BadConfiguration("item_key", problem)
        columns, targets = found[0].columns, found[0].to
    else:
        key = link.foreign_key(columns)
        if key and lowered(key.table) == lowered(items.name):
            columns, targets = key.columns, key.to
    columns = tuple(column_of(link, "item_key", column) for column in columns)
    targets = config.key or targets or _key_of(items, config)
    targets = tuple(column_of(items, "key", column, items.rowid) for column in targets)
    if len(columns) != len(targets):
        problem = f"{', '.join(columns)} cannot refer to {', '.join(targets)} of {items.name}"
        raise BadConfiguration("item_key", problem)
    return " and ".join(
        f"l.{quote_identifier(column)} = {_item(target)}"
        for column, target in zip(columns, targets, strict=True)
    )


def _key_of(items: Table, config: SourceConfig) -> tuple[str, ...]:
    """The columns that tell items apart: as configured, the primary key, or a column ``id``."""
    if config.key:
        return tuple(column_of(items, "key", column, items.rowid) for column in config.key)
    if items.primary_key:
        return items.primary_key
    if items.rowid:
        return (items.rowid,)
    column = items.column("id")
    if column is None:
        raise BadConfiguration("key", f"name the columns that tell the rows of {items.name} apart")
    return (column.name,)


def _chosen(table: Table, key: str, given: str | None, found: str | None) -> str | None:
    if given is None:
        return found
    return None if given == NONE else column_of(table, key, given)


def _item(column: str) -> str:
    return f"i.{quote_identifier(column)}"


def _as_json(key: Iterable[str]) -> str:
    """Several values as one text; JSON has no bytes."""
    parts = ", ".join(f"case typeof({k}) when 'blob' then hex({k}) else {k} end" for k in key)
    return f"json_array({parts})"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_MILLISECONDS_FROM = 100_000_000_000
"""Numbers from here on are milliseconds: as seconds they would be after the year 5000."""


def _instant(column: str) -> str:
    """A stored time; numbers are seconds or milliseconds since 1970, as many programs keep them."""
    time = _item(column)
    seconds = f"case when abs({time}) < {_MILLISECONDS_FROM} then {time} else {time} / 1000.0 end"
    read = f"strftime('%Y-%m-%dT%H:%M:%fZ', {seconds}, 'unixepoch')"
    return f"case when typeof({time}) in ('integer', 'real') then {read} else {time} end"

"""What is known of a row besides its text: its project, its kind and state, its date.

It is read for all rows of a table at once, as tags are, and of one row when that is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...liveness import active_sql
from ...mapping import Mapping
from ...reading import Reader, as_text, equals
from ...rendering import RecordText
from ...schema import Table, lowered
from ...timestamps import parse_instant
from .row_keys import Key

_KIND, _PREDICATE, _DATE = "kind", "trigger", "date"
"""Columns of a knowledge database that say more of an item than other databases have."""


class About(NamedTuple):
    """What a row belongs to, and whether it still holds."""

    project: str = ""
    kind: str = ""
    status: str = ""
    is_active: bool = True


NOTHING = About()


class AboutRows(NamedTuple):
    """How that is read of the rows of a table: as `row_tables.Tags`. ``projects`` are names by id,
    None where items hold the name itself."""

    columns: tuple[str, ...]
    expressions: tuple[str, ...]
    query: str
    kinds: dict[str, str]
    projects: dict[object, str] | None

    def all(self, reader: Reader) -> dict[Key, About]:
        """What is known of every row, by key."""
        return {key: self._about(*values) for key, values in self._rows(reader, "1", [])}

    def of(self, reader: Reader, key: Key) -> About:
        """What is known of one row."""
        condition, values = equals(self.expressions, key)
        for _, found in self._rows(reader, condition, values):
            return self._about(*found)
        return NOTHING

    def _rows(
        self, reader: Reader, condition: str, values: Sequence[object]
    ) -> list[tuple[Key, tuple[object, ...]]]:
        width = len(self.expressions)
        rows = reader.rows(f"{self.query} where {condition}", *values)
        return [(row[:width], row[width:]) for row in rows]

    def _about(self, project: object, kind: object, status: object, is_active: object) -> About:
        name = as_text(project) if self.projects is None else self.projects.get(project, "")
        return About(name, self.kinds.get(as_text(kind), ""), as_text(status), bool(is_active))


def about_rows(reader: Reader, mapping: Mapping, table: Table) -> AboutRows | None:
    """How it is read of the rows of a table that are tagged items themselves; None of others."""
    name = lowered(table.name)
    source = next((each for each in mapping.sources if each.item_table == name), None)
    if source is None:
        return None
    columns, expressions = source.key_in(name)
    query = (
        f"select {', '.join(expressions)}, {source.project_id}, {source.source_type},"
        f" {source.status}, {active_sql(source)} from {source.rows}"
    )
    projects: dict[object, str] | None = None if source.project_is_name else {}
    if mapping.has_projects and not source.project_is_name:
        rows = reader.rows("select id, name from projects")
        projects = {id_: as_text(project) for id_, project in rows}
    return AboutRows(columns, expressions, query, dict(source.kinds), projects)


def record_of(
    about: About, text: Callable[[str], str], created: object, tags: tuple[str, ...]
) -> RecordText:
    """A row as a record without its statement; ``text`` gives the value of a column, ``""`` for
    one that is not there."""
    instant = parse_instant(created)
    return RecordText(
        statement="",
        subject=about.project,
        kind=text(_KIND) or about.kind,
        predicate=text(_PREDICATE),
        entities=tags,
        qualifier=text(_DATE) or (instant.date().isoformat() if instant else ""),
        temporal_scope=about.status,
    )

"""The tables, columns and keys of a database, as SQLite tells them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase

from .reading import Reader, as_text, quote_identifier

Columns = dict[str, frozenset[str]]
"""Lower-case table name -> the lower-case names of its columns."""

_lowered = str.maketrans(ascii_uppercase, ascii_lowercase)


def lowered(name: str) -> str:
    """A name as SQLite compares it: only A to Z have a lower case."""
    return name.translate(_lowered)


@dataclass(frozen=True)
class Column:
    """A column; ``key`` is its place in the primary key from 1, or 0."""

    name: str
    declared: str
    key: int

    @property
    def is_text(self) -> bool:
        """Whether its values are texts by declaration (https://sqlite.org/datatype3.html)."""
        kind = self.declared.upper()
        return "INT" not in kind and any(word in kind for word in ("CHAR", "CLOB", "TEXT"))


@dataclass(frozen=True)
class ForeignKey:
    """Columns that refer to columns of a table; None for those of its primary key."""

    columns: tuple[str, ...]
    table: str
    to: tuple[str, ...] | None


@dataclass(frozen=True)
class Table:
    """A table or view. ``rowid`` is how its rows are numbered, None where they are not."""

    name: str
    is_view: bool
    is_virtual: bool
    columns: tuple[Column, ...]
    foreign_keys: tuple[ForeignKey, ...]
    rowid: str | None

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The columns of the primary key in its order."""
        return tuple(c.name for c in sorted(self.columns, key=lambda c: c.key) if c.key)

    def column(self, name: str) -> Column | None:
        """The column of a name, in any letter case."""
        return next((c for c in self.columns if lowered(c.name) == lowered(name)), None)

    def foreign_key(self, columns: Sequence[str]) -> ForeignKey | None:
        """The foreign key that consists of these columns."""
        wanted = sorted(map(lowered, columns))
        keys = self.foreign_keys
        return next((k for k in keys if sorted(map(lowered, k.columns)) == wanted), None)


class Schema:
    """The tables and views of a database by name, in any letter case."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self.tables = tuple(tables)
        self._by_name = {lowered(table.name): table for table in tables}

    def get(self, name: str) -> Table | None:
        """The table or view of a name."""
        return self._by_name.get(lowered(name))


def columns_of_tables(
    reader: Reader, wanted: Sequence[str]
) -> tuple[tuple[str, ...], dict[str, frozenset[str]]]:
    """Those of the tables (given in lower case) that are there: as they are spelled, and what
    columns they have."""
    names = reader.rows(
        "select name from sqlite_master where type in ('table', 'view') and lower(name) in"
        f" ({', '.join('?' * len(wanted))}) order by name",
        *wanted,
    )
    columns = {table: columns_of(reader, table) for (table,) in names}
    found = {table: frozenset(lowered(c.name) for c in cs) for table, cs in columns.items() if cs}
    return tuple(found), {table.lower(): names for table, names in found.items()}


def columns_of(reader: Reader, table: str) -> tuple[Column, ...]:
    """The columns of a table; none for a view of something that is gone."""
    try:
        rows = reader.rows(f"pragma table_info({quote_identifier(table)})")
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            raise
        return ()
    return tuple(
        Column(as_text(name), declared or "", key) for _, name, declared, _, _, key in rows
    )


def read_schema(reader: Reader) -> Schema:
    """All tables and views of which the columns can be told, in the order of their names."""
    rows = reader.rows(
        "select name, type = 'view', coalesce(sql like 'create virtual %', 0) from sqlite_master"
        " where type in ('table', 'view') and name not like 'sqlite\\_%' escape '\\' order by name"
    )
    found = []
    for name, is_view, is_virtual in rows:
        columns = columns_of(reader, name)
        if columns:
            keys = _foreign_keys(reader, name)
            rowid = None if is_view else _rowid(reader, name, columns)
            found.append(Table(name, bool(is_view), bool(is_virtual), columns, keys, rowid))
    return Schema(found)


def _foreign_keys(reader: Reader, table: str) -> tuple[ForeignKey, ...]:
    parts: dict[int, list[tuple[str, str, str | None]]] = {}
    for number, _, to_table, column, to, *_ in reader.rows(
        f"pragma foreign_key_list({quote_identifier(table)})"
    ):
        parts.setdefault(number, []).append((to_table, column, to))
    return tuple(
        ForeignKey(
            tuple(column for _, column, _ in key),
            key[0][0],
            tuple(to for _, _, to in key if to is not None) or None,
        )
        for _, key in sorted(parts.items())
    )


def _rowid(reader: Reader, table: str, columns: Sequence[Column]) -> str | None:
    """A name of the row number that no column has; None for a table WITHOUT ROWID."""
    taken = {lowered(column.name) for column in columns}
    for name in ("rowid", "_rowid_", "oid"):
        if name not in taken:
            try:
                reader.rows(f"select {name} from {quote_identifier(table)} limit 0")
            except sqlite3.OperationalError as error:
                if "interrupted" in str(error):
                    raise
                return None
            return name
    return None

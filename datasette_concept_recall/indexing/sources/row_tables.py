"""A table whose rows are documents, and one of its rows: how it is found, called and read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...reading import Reader, as_text, equals, quote_identifier
from ...rendering import RecordText
from ...schema import Table, lowered
from .row_about import NOTHING, About, AboutRows, record_of
from .row_keys import Key, Rowid, shown

_PROSE_WORDS = 3
_TITLE_WORDS = 5  # so many are more than a name, too
_LETTERS_OF_A_WORD = 4  # of scripts that may put no space between words, which begin with Thai
_FIRST_OF_THEM = "\u0e00"


class Tags(NamedTuple):
    """How the tags of the rows of a table are read: what tells its rows apart, as columns of the
    table and as expressions of the query, which gives these and the name of a concept."""

    columns: tuple[str, ...]
    expressions: tuple[str, ...]
    query: str


@dataclass(frozen=True)
class Described:
    """A table and what its columns are for; ``texts`` come first the body, then the others."""

    table: Table
    title: str | None
    body: str | None
    texts: tuple[str, ...]
    created: str | None
    tags: tuple[Tags, ...]
    about: AboutRows | None = None

    def rows(self, reader: Reader, condition: str = "1", *values: object) -> Iterator[Row]:
        """The rows under a condition, in the order of their keys; ``values`` are bound for it."""
        table = self.table
        rowid = [table.rowid] if table.rowid else []
        columns = [column.name for column in table.columns]
        selected = [*rowid, *map(quote_identifier, columns)]
        order = table.rowid or ", ".join(map(quote_identifier, table.primary_key))
        names = [lowered(name) for name in (*rowid, *columns)]
        for row in reader.each(
            f"select {', '.join(selected)} from {quote_identifier(table.name)}"
            f" where {condition} order by {order}",
            *values,
        ):
            yield Row(self, dict(zip(names, row, strict=True)))

    def row(self, reader: Reader, key: list[Any]) -> Row | None:
        """The row of a key, if it is there."""
        columns = self.table.primary_key or (self.table.rowid or "",)
        if len(key) == 1 and isinstance(key[0], Rowid):
            columns, key = (self.table.rowid or "",), [key[0].number]
        if len(columns) != len(key) or not all(columns):
            return None
        condition, values = equals(map(quote_identifier, columns), key)
        found = list(self.rows(reader, condition, *values))
        return found[0] if found else None

    def all_known(self, reader: Reader) -> Callable[[Row], KnownOfRow]:
        """What tells what is known of every row."""
        tags = self._all_tags(reader)
        if self.about is None:
            return lambda row: KnownOfRow(tags(row), NOTHING)
        columns, about = self.about.columns, self.about.all(reader)
        return lambda row: KnownOfRow(tags(row), about.get(row.values(columns), NOTHING))

    def known_of(self, reader: Reader, row: Row) -> KnownOfRow:
        """What is known of one row."""
        about = self.about.of(reader, row.values(self.about.columns)) if self.about else NOTHING
        return KnownOfRow(self._tags_of(reader, row), about)

    def _all_tags(self, reader: Reader) -> Callable[[Row], tuple[str, ...]]:
        known: list[dict[Key, set[str]]] = []
        for tags in self.tags:
            names: dict[Key, set[str]] = {}
            for *key, name in reader.each(tags.query):
                names.setdefault(tuple(key), set()).add(name)
            known.append(names)

        def tags_of(row: Row) -> tuple[str, ...]:
            keys = (row.values(tags.columns) for tags in self.tags)
            each = (names.get(key, ()) for names, key in zip(known, keys, strict=True))
            return _names(name for names in each for name in names)

        return tags_of

    def _tags_of(self, reader: Reader, row: Row) -> tuple[str, ...]:
        found: list[str] = []
        for tags in self.tags:
            condition, values = equals(tags.expressions, row.values(tags.columns))
            found += (name for *_, name in reader.each(f"{tags.query} and {condition}", *values))
        return _names(found)


class KnownOfRow(NamedTuple):
    """What is known of a row besides its own values."""

    tags: tuple[str, ...]
    about: About


class Row(NamedTuple):
    """A row: its values by the lower-case names of the columns."""

    described: Described
    cells: dict[str, Any]

    def values(self, columns: Iterable[str]) -> Key:
        """The values of some columns."""
        return tuple(self.cells[lowered(column)] for column in columns)

    @property
    def key(self) -> Key:
        """What tells the row apart in its table."""
        table = self.described.table
        values = self.values(table.primary_key or (table.rowid or "",))
        if None in values and table.rowid:
            return (Rowid(self.cells[table.rowid]),)
        return values

    @property
    def title(self) -> str | None:
        """What the row calls itself, on one line."""
        return " ".join(self._text(self.described.title).split()) or None

    def is_prose(self) -> bool:
        """Whether it says more than names and numbers."""
        title, texts = self.described.title, self.described.texts
        return _has_words(self._text(title), _TITLE_WORDS) or any(
            _has_words(self._text(column), _PROSE_WORDS) for column in texts if column != title
        )

    def text(self) -> str:
        """Its text: title and body as they are, the others behind the names of their columns."""
        described = self.described
        parts = [] if described.title in described.texts else [self.title or ""]
        for column in described.texts:
            value = self._text(column).strip("\n")
            if column not in (described.title, described.body) and not _has_words(value, 2):
                continue  # a code or a state, which says nothing without its table
            named = value if column == described.body or not value else f"{column}: {value}"
            parts.append(named)
        return "\n\n".join(part for part in parts if part.strip())

    def record(self, known: KnownOfRow) -> RecordText:
        """The row as a record, without its text."""
        created = self.described.created
        instant = self.cells[lowered(created)] if created else None
        return record_of(known.about, self._text, instant, known.tags)

    def _text(self, column: str | None) -> str:
        value = self.cells.get(lowered(column)) if column else None
        return shown(value) if isinstance(value, str) else ""


def _names(names: Iterable[object]) -> tuple[str, ...]:
    return tuple(sorted({shown(as_text(name)) for name in names}))


def _has_words(text: str, number: int) -> bool:
    """Whether a text is that long."""
    if len(text.split(maxsplit=number)) >= number:
        return True
    letters = sum(c >= _FIRST_OF_THEM and c.isalpha() for c in text[:1000])
    return letters >= number * _LETTERS_OF_A_WORD

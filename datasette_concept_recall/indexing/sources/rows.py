"""The rows of tables of a SQLite database as documents.

Which tables: those that were named, or all that hold prose. A row is told apart by its table and
primary key, and read anew when it is asked for; nothing of its text is kept in between.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path

from ...errors import DatabaseUnreadable
from ...opening import opened
from ...reading import Reader, reading
from ...schema import lowered
from ...timestamps import parse_instant
from ..failures import SourceUnreachable, Unavailable, Unusable
from ..models import Entry, Extracted, Listing, Opened, Segment
from .row_keys import Rowid, as_bytes, decoded_key, encoded_key, in_address, lossless, shown
from .row_plan import Plan, plan_of
from .row_tables import KnownOfRow, Row

_LONGEST_TITLE = 200

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECONDS_FROM = 100_000_000_000
"""Numbers from here on are milliseconds: as seconds they would be after the year 5000."""


class RowSource:
    """The rows of the tables of a database file, one document each.

    ``tables`` names tables and the column of each that is the text of a row; with ``""`` it is
    found, and the other text columns are read as well. None takes every ordinary table of prose.
    """

    def __init__(self, path: Path, tables: Mapping[str, str] | None = None) -> None:
        self._path, self._tables = path, None if tables is None else dict(tables)
        self._known: tuple[object, Plan] | None = None

    def listing(self) -> Listing:
        """All rows, by table as these are named or by name, as one snapshot.

        Raises `SourceUnreachable`.
        """
        entries: list[Entry] = []
        self._known = None  # what is tagged is told by rows, too, which come and go
        with self._snapshot() as (reader, plan):
            for described in plan.tables.values():
                found, holds_prose = [], self._tables is not None
                known = described.all_known(reader)
                for row in described.rows(reader):
                    found.append(_entry(row, known(row)))
                    holds_prose = holds_prose or row.is_prose()
                entries += found if holds_prose else []
        return Listing(entries, problems=plan.problems)

    def read(self, entry: Entry) -> Opened:
        """A row as it is now. Raises `SourceUnreachable`, and `Unavailable` when it is gone."""
        found = self._found(entry)
        if found is None:
            raise Unavailable("not_found", f"The row {entry.path} is not there any more")
        row, known = found
        extract = partial(_extracted, row)
        record = row.record(known)
        return Opened(_content_hash(row, known), "row", extract, known.tags, record)

    def fingerprint(self, entry: Entry) -> str | None:
        """That of a row as it is now; None when it is gone. Raises `SourceUnreachable`."""
        found = self._found(entry)
        return _fingerprint(*found) if found else None

    def _found(self, entry: Entry) -> tuple[Row, KnownOfRow] | None:
        with self._snapshot() as (reader, plan):
            table, *values = decoded_key(entry.key)
            described = plan.tables.get(table)
            row = described.row(reader, values) if described else None
            # A column that ignores the case of letters finds a key by another one, too.
            if row is None or encoded_key(table, row.key) != entry.key:
                return None
            return row, row.described.known_of(reader, row)

    @contextmanager
    def _snapshot(self) -> Iterator[tuple[Reader, Plan]]:
        try:
            if self._path.is_file() and not self._path.stat().st_size:
                raise SourceUnreachable(f"{self._path} is empty, so it is no database")
            with opened(self._path) as conn, reading(conn) as reader:
                plan = self._planned(reader)
                conn.text_factory = lossless
                yield reader, plan
        except (DatabaseUnreadable, OSError) as error:
            raise SourceUnreachable(str(error)) from error

    def _planned(self, reader: Reader) -> Plan:
        """What is to be read, as the last listing found it unless the schema is another one."""
        schema = reader.rows("select type, name, tbl_name, sql from sqlite_master")
        if self._known is None or self._known[0] != schema:
            self._known = schema, plan_of(reader, self._path, self._tables)
        return self._known[1]


def _entry(row: Row, known: KnownOfRow) -> Entry:
    table, created = row.described.table, row.described.created
    ids = [str(part.number if isinstance(part, Rowid) else part) for part in row.key]
    instant = _instant(row.cells[lowered(created)]) if created else None
    return Entry(
        key=encoded_key(table.name, row.key),
        title=(row.title or shown(f"{table.name} {', '.join(ids)}"))[:_LONGEST_TITLE],
        fingerprint=_fingerprint(row, known),
        path=f"{in_address(table.name)}/{','.join(map(in_address, ids))}",
        created_at=instant.isoformat().replace("+00:00", "Z") if instant else None,
        size=len(row.text().encode()),
        item_table=lowered(table.name),
        is_active=known.about.is_active,
    )


def _instant(value: object) -> datetime | None:
    """The instant that a stored time means; numbers are seconds or milliseconds since 1970."""
    if not isinstance(value, int | float):
        return parse_instant(value)
    seconds = value if abs(value) < _MILLISECONDS_FROM else value / 1000
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:  # before the year 1 or after the year 9999
        return None


def _extracted(row: Row) -> Extracted:
    text = row.text()
    if not text:
        raise Unusable("no_text", "The row holds no text")
    return Extracted("row", "plain", iter([Segment(text)]), row.title)


def _fingerprint(row: Row, known: KnownOfRow) -> str:
    table, content = row.described.table.name, _content_hash(row, known)
    state = b"active" if known.about.is_active else b"inactive"
    return _digest((table.encode(), encoded_key(table, row.key), content.encode(), state))


def _content_hash(row: Row, known: KnownOfRow) -> str:
    """Of the values of a row, its tags and its project. A column without a value counts as one
    that is not there, so that a column which is added to a table changes no row."""
    parts = [str(len(known.tags)).encode(), *map(as_bytes, known.tags)]
    parts.append(as_bytes(known.about.project))
    for column in row.described.table.columns:
        value = row.cells[lowered(column.name)]
        if value is not None:
            content = value if isinstance(value, bytes) else as_bytes(str(value))
            parts += (as_bytes(column.name), type(value).__name__.encode(), content)
    return _digest(parts)


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()

"""What an evaluation is made with: records, and questions with the record that answers each.

Records come from a file of one JSON object a line, from an index, or from any other database whose
rows hold text. Nothing that is read is changed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from .errors import RecallError
from .index_mapping import is_index
from .indexing.failures import Unusable
from .indexing.models import Entry, storable
from .indexing.sources.row_keys import Rowid, decoded_key
from .indexing.sources.rows import RowSource
from .opening import opened
from .pieces import joined
from .reading import Reader, reading
from .recall import shown_id
from .rendering import RecordText, from_json
from .timestamps import parse_instant
from .topical import singular

_SQLITE = b"SQLite format 3\x00"
_SHOWN = 200


class UnusableData(RecallError):
    """A file of records or questions has something that an evaluation cannot use."""


@dataclass(frozen=True)
class Records:
    """Records by reference, and the references of those that hold. ``names`` are other names of a
    record, each with the references of all that it may mean."""

    texts: dict[str, RecordText]
    active: frozenset[str]
    names: dict[str, frozenset[str]] = field(default_factory=dict)

    def named(self, name: str) -> frozenset[str]:
        """The references of the records that hold and have this name."""
        found = frozenset((name,)) if name in self.texts else self.names.get(name, frozenset())
        return found & self.active


@dataclass(frozen=True)
class JudgedQuestion:
    """A question with the reference of the record that answers it, None when none does. ``tier``
    is the name of a group of questions, ``""`` without one."""

    text: str
    target: str | None
    tier: str = ""


@dataclass(frozen=True)
class Questions:
    """Questions in their order; ``blank`` is how many lines nobody has filled in yet."""

    judged: tuple[JudgedQuestion, ...]
    blank: int = 0


def read_records(path: Path, now: datetime) -> Records:
    """The records of a file; what had expired by ``now`` (aware) holds no longer.

    Raises `UnusableData` with the number of the first line that is broken, and when no record
    holds, `DatabaseUnreadable`, `SourceUnreachable` and `OSError`.
    """
    with path.open("rb") as file:
        is_database = file.read(len(_SQLITE)) == _SQLITE
    found = _of_database(path) if is_database else _of_lines(path, now)
    if not found.active:
        raise UnusableData(f"{path} has no record that holds")
    return found


def read_questions(paths: Sequence[Path], records: Records) -> Questions:
    """The questions of files, one JSON object a line: ``query``, ``target`` and perhaps ``tier``.

    Without a target, or with ``"expect_status": "not_found"``, nothing answers a question. Raises
    `UnusableData` for a broken line, for targets that are no records which hold, and when there is
    no question, and `OSError`.
    """
    judged: list[JudgedQuestion] = []
    unknown: list[tuple[Line, str]] = []
    blank = 0
    for path in paths:
        for line in _lines(path):
            text = line.text("query")
            if not text.strip():
                blank += 1
                continue
            target = line.text("target")
            if line.values.get("expect_status") == "not_found":
                target = ""
            refs = records.named(target)
            if len(refs) > 1:
                raise line.error(f"{target} names {len(refs)} records: {', '.join(sorted(refs))}")
            if target and not refs:
                unknown.append((line, target))
            judged.append(JudgedQuestion(text, next(iter(refs), None), line.text("tier")))
    if unknown:
        line, target = unknown[0]
        many = f", the first of {len(unknown)} such targets" if len(unknown) > 1 else ""
        raise line.error(f"{target} is no record that holds{many}")
    if not judged:
        left_out = f": the query is empty on all of {blank} lines" if blank else ""
        raise UnusableData(f"There are no questions in {', '.join(map(str, paths))}{left_out}")
    return Questions(tuple(judged), blank)


def drafted(records: Records, number: int, seed: int) -> Iterator[dict[str, str]]:
    """Lines of a file of questions for a person to fill in, about records that hold, chosen by
    chance: at most ``number``. The same seed chooses the same."""
    refs = [ref for ref in records.texts if ref in records.active]
    for ref in random.Random(seed).sample(refs, min(number, len(refs))):
        statement = " ".join((records.texts[ref].statement or "").split())
        yield {"query": "", "target": ref, "statement": statement[:_SHOWN]}


# --- lines of JSON -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """An object on a line of a file."""

    path: Path
    number: int
    values: dict[str, Any]

    def error(self, problem: str) -> UnusableData:
        """What to raise for it."""
        return UnusableData(f"{self.path}, line {self.number}: {problem}")

    def text(self, name: str) -> str:
        """A text or a number of it, ``""`` where there is none. Raises `UnusableData`."""
        value = self.values.get(name)
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self.error(f"{name} is no text")
        return storable(str(value))

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts of it, empty where there is none. Raises `UnusableData`."""
        values = self.values.get(name)
        if values is None:
            return ()
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            raise self.error(f"{name} is no list of texts")
        return tuple(map(storable, values))

    def is_past(self, name: str, now: datetime) -> bool:
        """Whether there is a time and it is over. Raises `UnusableData`."""
        value = self.text(name)
        instant = parse_instant(value)
        if value and instant is None:
            raise self.error(f"{name} is no time")
        return instant is not None and instant <= now


def _lines(path: Path) -> Iterator[Line]:
    with path.open("rb") as file:
        for number, content in enumerate(file, 1):
            if not content.strip():
                continue
            try:
                values = json.loads(content.decode("utf-8-sig"))
            except (ValueError, RecursionError) as error:
                raise UnusableData(f"{path}, line {number}: this is no JSON: {error}") from error
            if not isinstance(values, dict):
                raise UnusableData(f"{path}, line {number}: this is no JSON object")
            yield Line(path, number, values)


def _of_lines(path: Path, now: datetime) -> Records:
    texts: dict[str, RecordText] = {}
    active: set[str] = set()
    for line in _lines(path):
        ref = line.text("id") or str(line.number)
        if ref in texts:
            raise line.error(f"there is a record {ref} already")
        texts[ref] = _record(line)
        if _holds(line, now):
            active.add(ref)
    return Records(texts, frozenset(active))


def _record(line: Line) -> RecordText:
    statement = line.text("statement")
    if not statement.strip():
        raise line.error("there is no statement")
    subject, entities = line.values.get("subject"), line.texts("entities")
    if isinstance(subject, dict):
        about = Line(line.path, line.number, subject)
        subject, entities = about.text("display"), (*entities, *about.texts("aliases"))
    else:
        subject = line.text("subject")
    return RecordText(
        statement,
        subject,
        line.text("kind"),
        line.text("predicate"),
        entities,
        line.text("location"),
        line.text("qualifier"),
        line.text("temporal_scope"),
        line.texts("tags"),
        line.texts("aliases"),
    )


def _holds(line: Line, now: datetime) -> bool:
    is_active = line.text("status").casefold() in ("", "active")
    is_over = line.is_past("valid_to", now) or line.is_past("expires_at", now)
    return is_active and not is_over and not line.values.get("superseded_by")


# --- databases -----------------------------------------------------------------------------------


def _of_database(path: Path) -> Records:
    with opened(path) as conn, reading(conn) as reader:
        if is_index(reader):
            return _of_index(path, reader)
    return _of_rows(path)


def _of_index(path: Path, reader: Reader) -> Records:
    """The documents of an index that are searched, each as a whole."""
    if reader.rows("select 1 from pragma_table_info('document') where name = 'record'") == []:
        raise UnusableData(
            f"{path} is of an earlier version; 'datasette concept-recall index run' brings it up"
            " to date"
        )
    named: list[_Named] = []
    for id_, kind, where, key, is_row, is_active, about, generation in reader.rows(
        "select id, kind, path, key, item_table is not null, is_active, record, live_generation"
        " from document where live_generation is not null order by id"
    ):
        pieces = reader.rows(
            "select text, start_offset, end_offset from chunk where generation_id = ?"
            " order by position",
            generation,
        )
        record = replace(from_json(about), statement=joined(pieces)[0])
        item = _item(key) if is_row else None
        named.append(_Named(record, bool(is_active), item, (f"{kind}:{id_}", where)))
    return _by_reference(named)


def _of_rows(path: Path) -> Records:
    """The rows of another database, as an index has them."""
    source = RowSource(path)
    named: list[_Named] = []
    for entry in source.listing().entries:
        record = _row(source, entry)
        if record is not None:
            named.append(_Named(record, entry.is_active, _item(entry.key), (entry.path,)))
    return _by_reference(named)


def _row(source: RowSource, entry: Entry) -> RecordText | None:
    row = source.read(entry)
    try:
        text = "".join(segment.text for segment in row.extract().segments)
    except Unusable:  # it holds no text
        return None
    return replace(row.record or RecordText(""), statement=text)


@dataclass(frozen=True)
class _Named:
    """A record of a database: ``item`` is what the row is called in its own database, ``others``
    are more names."""

    record: RecordText
    is_active: bool
    item: str | None
    others: tuple[str, ...]


def _item(key: bytes) -> str:
    """``record:12`` of the row 12 of records: as a knowledge database names its items."""
    table, *values = decoded_key(key)
    id_ = shown_id([value.number if isinstance(value, Rowid) else value for value in values])
    return storable(f"{singular(table.casefold())}:{id_}")


def _by_reference(named: Sequence[_Named]) -> Records:
    """Each under the first of its names that no other one has."""
    texts: dict[str, RecordText] = {}
    active: set[str] = set()
    names: dict[str, set[str]] = {}
    counted: dict[str, int] = {}
    for each in named:
        for name in filter(None, (each.item, *each.others)):
            counted[name] = counted.get(name, 0) + 1
    for number, each in enumerate(named):
        every = list(filter(None, (each.item, *each.others)))
        ref = next((name for name in every if counted[name] == 1), f"#{number}")
        texts[ref] = each.record
        if each.is_active:
            active.add(ref)
        for name in every:
            names.setdefault(name, set()).add(ref)
    return Records(
        texts, frozenset(active), {name: frozenset(refs) for name, refs in names.items()}
    )

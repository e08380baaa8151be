"""Reads decision records: Markdown with front matter, in exactly the form this project uses."""

from __future__ import annotations

import contextlib
import hashlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import RecallError

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from importlib.resources.abc import Traversable
    else:
        from importlib.abc import Traversable

_SCALARS = {  # the keys with one value each, and the pattern of the value
    "id": "[0-9]{4}",
    "title": r".*\S.*",
    "date": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "status": "proposed|accepted|superseded|rejected|cancelled",
    "kind": "decision|correction|refinement",
}
_LISTS = {"supersedes": "[0-9]{4}", "tags": r".*\S.*"}
_FIELD = re.compile(r"([a-z]+): (.+)")
# Letters, digits and a few marks may stand alone; a value with any other character needs quotes,
# so that YAML readers understand the same.
_VALUE = r'(?:"[^"\\]+"|\w(?:[\w .+/()-]*[\w.+/()-])?)'
_LIST = re.compile(rf"\[(?:{_VALUE}(?:, {_VALUE})*)?\]")


class RecordsMissing(RecallError):
    """A folder holds no decision records; the message names it."""


class RecordMalformed(RecallError):
    """A decision record is not in the form expected; the message names its file and line."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}, line {line}: {problem}")
        self.file = file
        self.line = line


@dataclass(frozen=True)
class DecisionRecord:
    """One file of the decisions folder; the strings are as written there.

    ``supersedes`` holds ids; ``lines`` says on which line each key of the front matter stands.
    """

    file: str
    id: str
    title: str
    date: str
    status: str
    kind: str
    supersedes: tuple[str, ...]
    tags: tuple[str, ...]
    body: str
    checksum: str
    lines: dict[str, int]

    @property
    def concepts(self) -> list[str]:
        """What the record is about: its wikilinks, then its tags."""
        return [*wikilinks(self.body), *self.tags]


def read_decisions(folder: Traversable | Path) -> list[DecisionRecord]:
    """All records of a folder by id, checked one by one and against each other."""
    if not folder.is_dir():
        raise RecordsMissing(f"There is no folder of decision records at {folder}")
    found = sorted((f for f in folder.iterdir() if f.name.endswith(".md")), key=lambda f: f.name)
    if not found:
        raise RecordsMissing(f"There are no decision records in {folder}")
    records = [parse_record(file.name, file.read_bytes()) for file in found]
    _check_references(records)
    return records


def _check_references(records: list[DecisionRecord]) -> None:
    by_id: dict[str, DecisionRecord] = {}
    for record in records:
        twin = by_id.setdefault(record.id, record)
        if twin is not record:
            problem = f"{twin.file} has the id {record.id} too"
            raise RecordMalformed(record.file, record.lines["id"], problem)
    for record in records:
        for old in record.supersedes:
            if old == record.id or old not in by_id:
                problem = f"there is no other record {old} to supersede"
                raise RecordMalformed(record.file, record.lines["supersedes"], problem)


def parse_record(file: str, content: bytes) -> DecisionRecord:
    """A record from the bytes of its file: front matter in a small part of YAML, then Markdown.

    Each key of the front matter has one line, with a scalar or an inline list of scalars.
    """
    try:
        lines = content.decode("utf-8").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise RecordMalformed(file, line, "the text is not UTF-8") from error
    if lines[0] != "---" or "---" not in lines[1:]:
        raise RecordMalformed(file, 1, "the front matter must stand between two lines of ---")
    end = lines.index("---", 1)
    values, places = _front_matter(file, lines[1:end])
    missing = [key for key in (*_SCALARS, *_LISTS) if key not in values]
    if missing:
        raise RecordMalformed(file, end + 1, f"the front matter lacks {', '.join(missing)}")
    if not file.startswith(f"{values['id']}-"):
        raise RecordMalformed(file, places["id"], "the file name must begin with the id and a -")
    body = "\n".join(lines[end + 1 :]).strip()
    if not body:
        raise RecordMalformed(file, end + 1, "there is no text below the front matter")
    checksum = hashlib.sha256(content).hexdigest()
    return DecisionRecord(file, **values, body=body, checksum=checksum, lines=places)


def _front_matter(file: str, lines: list[str]) -> tuple[dict[str, Any], dict[str, int]]:
    """The value of each key, and the number of its line."""
    values: dict[str, Any] = {}
    places: dict[str, int] = {}
    for number, line in enumerate(lines, 2):
        match = _FIELD.fullmatch(line)
        key, text = match.groups() if match else ("", "")
        if key not in _SCALARS and key not in _LISTS:
            raise RecordMalformed(file, number, f"expected a known key and a value, not {line!r}")
        if key in values:
            raise RecordMalformed(file, number, f"{key} is given twice")
        value = _scalar(key, text) if key in _SCALARS else _list(key, text)
        if value is None:
            raise RecordMalformed(file, number, f"{text} cannot be the value of {key}")
        values[key], places[key] = value, number
    return values, places


def _scalar(key: str, text: str) -> str | None:
    value = text.strip('"')
    if not re.fullmatch(_VALUE, text) or not re.fullmatch(_SCALARS[key], value):
        return None
    if key == "date":
        with contextlib.suppress(ValueError):
            return date.fromisoformat(value).isoformat()
        return None
    return value


def _list(key: str, text: str) -> tuple[str, ...] | None:
    if not _LIST.fullmatch(text):
        return None
    items = tuple(dict.fromkeys(item.strip('"') for item in re.findall(_VALUE, text)))
    return items if all(re.fullmatch(_LISTS[key], item) for item in items) else None


def wikilinks(markdown: str) -> list[str]:
    """The names in double brackets outside code, runs of white space as one space."""
    return list(_wikilinks(re.sub(r"```.*?```|`[^`\n]*`", " ", markdown, flags=re.DOTALL)))


def _wikilinks(prose: str) -> Iterator[str]:
    for name in re.findall(r"\[\[([^\[\]]+)\]\]", prose):
        if name.strip():
            yield " ".join(name.split())

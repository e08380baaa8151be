"""Folders of mails as programs store them: mbox files, and folders in which each mail is a file."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from ..mail_headers import header_date
from .mail_identity import BLOCK, QUOTED, Mail, blocks_of, measured

OF_MBOX = {".mbox", ".mbx"}
"""What the names of mbox files end with, if with anything."""

_DAY = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
# Between mails stands the time of arrival, or in Thunderbird nothing: a sentence has neither.
_SEPARATOR = re.compile(
    rb"From (?:\s*\Z|.*?\b(" + _DAY + rb",? .{0,4}" + _MONTH + rb"\b.*\d:\d\d.*))", re.DOTALL
)
_FLAGS_OF_STATUS = {b"R": "S", b"A": "R", b"F": "F", b"D": "T", b"T": "D"}
_FLAGS_OF_MOZILLA = {0x1: "S", 0x2: "R", 0x4: "F", 0x8: "T", 0x1000: "P"}


class Copy(NamedTuple):
    """A mail where a folder holds it, or None if it cannot be read. ``date`` is its own or, if it
    has none, when it got there."""

    position: str
    flags: str
    date: datetime | None
    mail: Mail | None


class Folder(Protocol):
    """Mails that are stored together."""

    def copies(self) -> Iterator[Copy]:
        """All mails of the folder. Raises `OSError` if it cannot be read."""

    def blocks(self, position: str) -> Generator[bytes, None, None]:
        """A mail in blocks of bytes. Raises `OSError`, `FileNotFoundError` if nothing is there."""


@dataclass(frozen=True)
class Mbox:
    """A file of mails, one after the other. The position of a mail is its offset in bytes."""

    path: Path

    def copies(self) -> Iterator[Copy]:
        with self.path.open("rb") as file:
            changed = datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, timezone.utc)
            for start, separator, blocks in _mails_of_mbox(file):
                mail = measured(blocks)
                if b"x-imap" in mail.stored:  # what some programs keep about the file itself
                    continue
                date = mail.date or _arrival(separator) or changed
                yield Copy(str(start), _flags_of_headers(mail.stored), date, mail)

    def blocks(self, position: str) -> Generator[bytes, None, None]:
        with self.path.open("rb") as file:
            if not position.isdecimal():
                raise FileNotFoundError
            file.seek(int(position))
            for _, separator, blocks in _mails_of_mbox(file):
                if not separator.startswith(b"From "):
                    break
                for block in blocks:
                    yield QUOTED.sub(lambda quoted: quoted[0][1:], block)
                return
        raise FileNotFoundError


@dataclass
class Files:
    """A folder in which each mail is a file: those of a Maildir, or ``.eml`` files.

    The position of a mail is the name of its file, in a Maildir without the flags behind it.
    """

    path: Path
    suffix: str = ""
    folders: tuple[str, ...] = ("new", "cur")  # in the order in which mails go through them
    known: dict[str, Path] = field(default_factory=dict)

    def copies(self) -> Iterator[Copy]:
        self._look()
        for position, path in list(self.known.items()):
            flags = "" if self.suffix else "".join(sorted(set(path.name.partition(":2,")[2])))
            try:
                with self._open(position) as file:
                    changed = os.fstat(file.fileno()).st_mtime
                    mail = measured(blocks_of(file))
            except FileNotFoundError:
                continue  # moved or deleted since
            except OSError:
                yield Copy(position, flags, None, None)
            else:
                date = mail.date or datetime.fromtimestamp(changed, timezone.utc)
                yield Copy(position, flags, date, mail)

    def blocks(self, position: str) -> Generator[bytes, None, None]:
        with self._open(position) as file:
            yield from blocks_of(file)

    def _open(self, position: str) -> BinaryIO:
        """The file of a mail, which has another name when its flags have changed."""
        with suppress(FileNotFoundError, KeyError):
            return self.known[position].open("rb")
        self._look()
        if position not in self.known:
            raise FileNotFoundError
        return self.known[position].open("rb")

    def _look(self) -> None:
        found = {}
        for folder in self.folders:
            for entry in self._entries(folder):
                if not entry.name.startswith(".") and entry.name.lower().endswith(self.suffix):
                    name = entry.name if self.suffix else entry.name.partition(":")[0]
                    found[storable(name)] = Path(entry.path)
        self.known = found

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.path / folder) as entries:
                files = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
        except FileNotFoundError:
            if folder != "new":  # which copying programs leave out when it is empty
                raise
            return []
        return sorted(files, key=lambda entry: entry.name)


def is_mbox(path: Path) -> bool:
    """Whether a file begins like an mbox, or is an empty one by its name."""
    with path.open("rb") as file:
        start = file.read(5)
    return start == b"From " or (not start and path.suffix.lower() in {"", *OF_MBOX})


def storable(name: str) -> str:
    """The name of a file as text that can be stored, also if it is not UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def reason(error: OSError) -> str:
    """Why a file cannot be read, without its name."""
    return error.strerror or type(error).__name__


def _mails_of_mbox(file: BinaryIO) -> Iterator[tuple[int, bytes, Iterator[bytes]]]:
    """Offset, separator and blocks of every mail from here on, the blocks only until the next."""
    start, separator = file.tell(), file.readline(BLOCK)
    block, at, begins = b"", 0, separator.endswith(b"\n")
    rest = blocks_of(file)

    def blocks() -> Iterator[bytes]:
        nonlocal start, separator, block, at, begins
        separator = b""
        while True:
            if at >= len(block):
                block, at = next(rest, b""), 0
                if not block:
                    return
            first, end = at, _next_mail(block, at, begins)
            if end < len(block):
                start = file.tell() - len(block) + end
                at = block.find(b"\n", end) + 1 or len(block)
                separator = block[end:at]
            else:
                at = end
            begins = block[at - 1 : at] == b"\n"
            yield block[first:end]
            if separator:
                return

    while separator:
        mail = blocks()
        yield start, separator, mail
        for _ in mail:  # what the caller left
            pass


def _next_mail(block: bytes, at: int, begins: bool) -> int:
    """Where in a block the next separator is, or its length. ``begins``: at ``at`` a line does."""
    if begins and _SEPARATOR.match(block[at : at + 300].partition(b"\n")[0]):
        return at
    found = block.find(b"\nFrom ", at)
    while found >= 0:
        if _SEPARATOR.match(block[found + 1 : found + 301].partition(b"\n")[0]):
            return found + 1
        found = block.find(b"\nFrom ", found + 1)
    return len(block)


def _arrival(separator: bytes) -> datetime | None:
    found = _SEPARATOR.match(separator[:300])
    return header_date(found[1] or b"") if found else None


def _flags_of_headers(stored: dict[bytes, bytes]) -> str:
    """The flags in the headers of an mbox, spelt as in the file names of a Maildir."""
    status = stored.get(b"status", b"") + stored.get(b"x-status", b"")
    found = {flag for letter, flag in _FLAGS_OF_STATUS.items() if letter in status}
    try:
        bits = int(stored.get(b"x-mozilla-status", b"0")[:8], 16)
    except ValueError:
        bits = 0
    return "".join(sorted(found | {flag for bit, flag in _FLAGS_OF_MOZILLA.items() if bits & bit}))

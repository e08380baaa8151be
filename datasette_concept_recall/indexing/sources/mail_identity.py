"""What a mail is told apart by: what was sent, read in blocks of which none is kept.

Bytes that programs change while they store a mail are not part of that: status headers, quoted
``From `` lines, the ends of lines, blank lines at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from typing import BinaryIO, NamedTuple

from ..clock import stamp
from ..ids import content_hash, fingerprint
from ..mail_headers import header_date, header_text

EVERY_MAIL = b"mail:"
"""What the key of every mail begins with. It is unverified as a whole when a folder cannot be
read, because a key does not tell the folder."""

NO_SUBJECT = "(no subject)"

BLOCK = 65_536
"""Bytes that are read at a time."""

_HEADER = 262_144  # what comes after is taken for the body, or a file without blank line fills RAM
_BLANK_LINE = re.compile(rb"(?:\A|\r?\n)\r?\n")
_BETWEEN_HEADERS = re.compile(rb"\n(?![ \t])")

QUOTED = re.compile(rb"^>+From ", re.MULTILINE)
"""What a line of a mail begins with in an mbox, so that it does not look like the next mail."""

# Headers that mail programs add and change where a mail is stored.
_STORED = {
    *(b"status", b"x-status", b"x-keywords", b"x-uid", b"x-imap", b"x-imapbase"),
    *(b"x-mozilla-status", b"x-mozilla-status2", b"x-mozilla-keys", b"x-gmail-labels"),
    *(b"content-length", b"lines"),
}

_Field = tuple[bytes, bytes]
"""A header: its name in small letters, and its lines as sent."""


class Mail(NamedTuple):
    """What a mail is told apart by; ``stored`` are its headers that depend on the folder."""

    key: bytes
    fingerprint: str
    title: str
    date: datetime | None
    size: int
    stored: dict[bytes, bytes]


def blocks_of(file: BinaryIO) -> Iterator[bytes]:
    """The rest of a file in blocks that end where a line does, unless the line is huge."""
    while block := file.read(BLOCK) + file.readline(BLOCK):
        yield block + file.read(1) if block.endswith(b"\r") else block


def measured(blocks: Iterator[bytes]) -> Mail:
    """What tells a mail apart, from its blocks, of which none is kept."""
    header, body = _divided(blocks)
    sent = _sent(header)
    size = len(sent) + sum(map(len, _as_sent(body)))
    subject, raw_date = _value(header, b"subject"), _value(header, b"date")
    date = header_date(raw_date)
    key = fingerprint(
        "headers",
        _value(header, b"message-id"),
        stamp(date) if date else raw_date,
        _value(header, b"from"),
        subject,
        str(size),
    )
    return Mail(
        EVERY_MAIL + key.encode(),
        fingerprint(sent, str(size)),
        header_text(subject, 300) or NO_SUBJECT,
        date or header_date(_value(header, b"received").rpartition(b";")[2].strip()),
        size,
        {name: _value(header, name) for name, _ in header if name in _STORED},
    )


def hash_of_content(raw: bytes) -> str:
    """The SHA-256 of a mail as sent, in hex: the same for every copy."""
    header, body = _divided(iter([raw]))
    return content_hash(_sent(header) + b"\n\n" + b"".join(_as_sent(body)))


def _divided(blocks: Iterator[bytes]) -> tuple[list[_Field], Iterator[bytes]]:
    """The headers of a mail, and the blocks of its body."""
    head = b""
    for block in blocks:
        head += block
        if len(head) > _HEADER or _BLANK_LINE.search(head):
            break
    blank = _BLANK_LINE.search(head, 0, _HEADER)
    start, end = blank.span() if blank else (_HEADER, _HEADER)
    lines = QUOTED.sub(b"From ", head[:start].replace(b"\r\n", b"\n"))
    fields = [
        (field.partition(b":")[0].strip().lower(), field)
        for field in _BETWEEN_HEADERS.split(lines)
        if field
    ]
    return fields, chain([head[end:]], blocks)


def _as_sent(body: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks of a body without what depends on how a mail is stored, and without its end."""
    ends = b""
    for block in body:
        block = block.replace(b"\r\n", b"\n")
        if b">From " in block:
            block = QUOTED.sub(b"From ", block)
        text = block.rstrip(b"\n")
        if text:
            yield ends + text
            ends = b""
        ends += block[len(text) :]


def _sent(header: list[_Field]) -> bytes:
    """The header block as sent."""
    return b"\n".join(raw for name, raw in header if name not in _STORED)


def _value(header: list[_Field], wanted: bytes) -> bytes:
    """The first header of a name, its blank space normalised; nothing if there is none."""
    for name, raw in header:
        if name == wanted:
            return b" ".join(raw.partition(b":")[2].split())
    return b""

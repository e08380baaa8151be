"""What the parts of the indexing pipeline hand to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Literal, NamedTuple

from ..rendering import RecordText

Unit = Literal["page", "slide", "row", "line"]
"""What the numbers of a place count, from 1."""

Strategy = Literal["markdown", "plain", "rows"]
"""How a text is cut: along its headings, along its lines, or between its rows."""


Kind = Literal["note", "file", "mail", "row"]
"""What recall calls a document."""


def storable(text: str) -> str:
    """A text without what no database stores: halves of surrogate pairs are replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


class Segment(NamedTuple):
    """A stretch of a document as its format delivers it, in reading order.

    The segments of a document, one after the other, are its text: each brings the blank space that
    sets it apart from the next. ``number`` is the page, slide or row that it is, or the line with
    which it begins; ``part`` is the sheet or the attachment it belongs to.
    """

    text: str
    unit: Unit | None = None
    number: int | None = None
    part: str | None = None


class Place(NamedTuple):
    """Where in its document a text stands: ``first`` to ``last`` of a unit, None where unknown."""

    unit: Unit | None = None
    first: int | None = None
    last: int | None = None
    part: str | None = None


class Chunk(NamedTuple):
    """A piece of a document that is found and shown on its own.

    ``text`` is ``[start:end]`` of the text of the document.
    """

    text: str
    start: int
    end: int
    place: Place


@dataclass(frozen=True)
class Size:
    """How large chunks are, in what ``count`` counts of a text: ``limit`` at most, of which up to
    ``overlap`` (0 to ``limit`` - 1) repeat the end of the chunk before. None counts characters."""

    limit: int
    overlap: int
    count: Callable[[str], int] | None = None


@dataclass(frozen=True)
class Extracted:
    """The text of a document: ``format`` names what was read (``pdf``), ``title`` is what the
    document calls itself, if anything. The segments are read as they are asked for, and may raise
    `DocumentFailure`."""

    format: str
    strategy: Strategy
    segments: Iterator[Segment]
    title: str | None = None


class Location(NamedTuple):
    """One of the places in which a source holds a document."""

    folder: str
    position: str
    flags: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A document as the listing of its source shows it, not yet read.

    ``key`` tells it apart within its source and is compared byte for byte. ``fingerprint`` differs
    when the document may have changed. ``path`` is where a person finds it, ``created_at`` its own
    time (ISO 8601, UTC), ``size`` in bytes. Of a row ``item_table`` is its table in lower case.
    What is not ``is_active`` was superseded, or holds no longer for another reason.
    """

    key: bytes
    title: str
    fingerprint: str
    path: str = ""
    created_at: str | None = None
    size: int = 0
    locations: tuple[Location, ...] = ()
    item_table: str | None = None
    is_active: bool = True

    def __post_init__(self) -> None:
        if not (self.title.isascii() and self.path.isascii()):
            object.__setattr__(self, "title", storable(self.title))
            object.__setattr__(self, "path", storable(self.path))


@dataclass(frozen=True)
class Opened:
    """A document whose content is at hand. ``content_hash`` is the SHA-256 of it in hex;
    ``extract`` reads the text and may raise `DocumentFailure`. ``kind`` is what recall calls it,
    ``record`` what is known of it besides its text."""

    content_hash: str
    kind: Kind
    extract: Callable[[], Extracted]
    tags: tuple[str, ...] = ()
    record: RecordText | None = None


@dataclass(frozen=True)
class Listing:
    """All documents of a source, in the order in which they are to be read.

    ``unverified`` are keys, or with ``/`` or ``:`` at the end what keys begin with, whose documents
    could not be looked for: they are kept as they are. ``problems`` says why, a sentence each.
    ``digest`` is the same for two listings only where nothing differs of which a run would take
    notice; where a source makes none, it is made of the entries.
    """

    entries: Sequence[Entry]
    unverified: tuple[bytes, ...] = ()
    problems: tuple[str, ...] = ()
    digest: bytes = b""

    def __post_init__(self) -> None:
        if not self.digest:
            digest, rest = blake2b(digest_size=16), iter(self.entries)
            while some := [
                (each.key, each.fingerprint, each.locations) for each in islice(rest, 1_000)
            ]:
                digest.update(repr(some).encode())
            object.__setattr__(self, "digest", digest.digest())

    def keys(self) -> Set[bytes]:
        """The keys of all documents."""
        return {entry.key for entry in self.entries}

    def differing(self, stored: Mapping[bytes, str | None]) -> list[Entry]:
        """The documents whose fingerprint is not the one that is stored for their key, and those
        that have places, which no fingerprint tells."""
        return [
            entry
            for entry in self.entries
            if entry.locations or stored.get(entry.key) != entry.fingerprint
        ]

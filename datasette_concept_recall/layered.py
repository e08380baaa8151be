"""What the layers behind the concepts find, before it is looked up in the live tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .models import Layer

CANDIDATES = 20
"""So many items a layer gives."""


class DocumentTarget(NamedTuple):
    """A document of the index that is searched itself."""

    id: int


class RowTarget(NamedTuple):
    """A row of a table of the database that is asked, by the values of its key; the name of the
    table is in lower case. ``is_rowid``: the key is NULL in part, and a rowid stands for it."""

    table: str
    key: tuple[object, ...]
    is_rowid: bool = False


class RefTarget(NamedTuple):
    """An item as `ConceptMatch.ref` names it."""

    ref: str


Target = DocumentTarget | RowTarget | RefTarget


class Passage(NamedTuple):
    """A document of an index and the chunk of it that was found. ``key`` tells it apart in its
    source, ``similarity`` is the cosine between the chunk and the question where that was found."""

    document: int
    chunk: int
    source: int
    key: bytes
    is_row: bool
    similarity: float | None = None


class Origin(NamedTuple):
    """Where a row that is a document of an index comes from: the path of its database, and the row
    in it."""

    path: str
    row: RowTarget


class Finding(NamedTuple):
    """One thing that a layer found, and why.

    ``words`` are those of the question that are in it, ``similarity`` the cosine between question
    and text (-1 to 1), ``passage`` the chunk of a document that was found. Where it is not
    ``is_admitted`` the text has yet to be looked at for a topical word. ``origin`` is there of a
    document that is a row of another database.
    """

    target: Target
    words: tuple[str, ...] = ()
    similarity: float | None = None
    passage: int | None = None
    is_admitted: bool = True
    origin: Origin | None = None


@dataclass(frozen=True)
class RankedList:
    """What one layer found, in the order of relevance; ``weight`` (0 or more) is what its ranks
    count in the fusion."""

    layer: Layer
    found: tuple[Finding, ...]
    weight: float = 1.0


@dataclass(frozen=True)
class Layers:
    """All that the layers found for a question, and what kept one of them from answering, a
    sentence each."""

    lists: tuple[RankedList, ...] = ()
    warnings: tuple[str, ...] = ()

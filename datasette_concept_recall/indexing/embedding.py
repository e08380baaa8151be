"""What the pipeline asks of an embedder, and what it does not take from one.

Vectors are checked here before anything of them is stored: SQLite would keep whatever it is given.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

from .ids import EmbedderIdentity

FailureKind = Literal["auth", "quota", "unreachable", "timeout", "invalid", "internal"]


class EmbedderFailure(Exception):
    """An embedder gave no vectors that can be used; ``kind`` says why, for one message a kind."""

    def __init__(self, kind: FailureKind, problem: str) -> None:
        super().__init__(problem)
        self.kind = kind


class Embedder(Protocol):
    """Turns texts into vectors of one width.

    ``name`` is what it is configured by, ``is_remote`` that texts leave this machine,
    ``batch_size`` how many texts it is given at once. ``embed_documents`` returns float32 rows,
    ``(len(texts), dimensions)``, each of length 1 or of zeros, as a numpy array or lists of
    numbers; whatever it raises is taken for a failure of the embedder.
    """

    name: str
    is_remote: bool
    batch_size: int

    @property
    def dimensions(self) -> int | None:
        """The width of its vectors, None when only a first vector can tell."""

    @property
    def identity(self) -> EmbedderIdentity:
        """What of it decides whether vectors may be compared."""

    def count_tokens(self, text: str) -> int:
        """How much of the limit of tokens a text takes."""

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """A vector for each text, in their order."""

    def embed_query(self, text: str) -> Any:
        """The vector of a question, ``(1, dimensions)``."""


def embed(embedder: Embedder, texts: Sequence[str], dimensions: int | None) -> list[bytes]:
    """The vectors of texts, each as little-endian float32.

    Raises `EmbedderFailure` when the embedder does, and for a wrong number of vectors, empty
    ones, several widths or another one than ``dimensions``, and numbers that are not finite.
    """
    return _checked(lambda: embedder.embed_documents(list(texts)), len(texts), dimensions)


def embed_question(embedder: Embedder, text: str) -> bytes:
    """The vector of a question as little-endian float32. Raises `EmbedderFailure` like `embed`."""
    (vector,) = _checked(lambda: embedder.embed_query(text), 1, None)
    return vector


def _checked(ask: Callable[[], Any], count: int, dimensions: int | None) -> list[bytes]:
    """What an embedder gives for so many texts, when all of it can be stored."""
    try:
        rows = [[float(x) for x in row] for row in ask()]
    except EmbedderFailure:
        raise
    except Exception as error:  # whatever a provider's library raises
        raise EmbedderFailure("internal", f"{type(error).__name__}: {error}") from error
    if len(rows) != count:
        raise EmbedderFailure("invalid", f"{len(rows)} vectors came for {count} texts")
    expected = dimensions or (len(rows[0]) if rows else 0)
    for row in rows:
        if not row or len(row) != expected:
            raise EmbedderFailure(
                "invalid", f"A vector of {len(row)} numbers came where {expected} were expected"
            )
        if not all(map(math.isfinite, row)):
            raise EmbedderFailure("invalid", "A vector holds what is no finite number")
    try:
        return [struct.pack(f"<{expected}f", *row) for row in rows]
    except OverflowError as error:
        raise EmbedderFailure("invalid", "A vector holds a number too large for 32 bits") from error


def dimensions_of(vector: bytes) -> int:
    """How many numbers a stored vector has."""
    return len(vector) // 4

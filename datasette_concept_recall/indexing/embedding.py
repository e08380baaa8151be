"""What the pipeline asks of an embedder, and what it does not take from one.

Vectors are checked here before anything of them is stored: SQLite would keep whatever it is given.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
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
    ``(len(texts), dimensions)``, each of length 1, as a numpy array or lists of numbers; whatever
    it raises is taken for a failure of the embedder.
    """

    name: str
    is_remote: bool
    batch_size: int

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
    try:
        rows = [[float(x) for x in row] for row in embedder.embed_documents(list(texts))]
    except EmbedderFailure:
        raise
    except Exception as error:  # whatever a provider's library raises
        raise EmbedderFailure("internal", f"{type(error).__name__}: {error}") from error
    if len(rows) != len(texts):
        raise EmbedderFailure("invalid", f"{len(rows)} vectors came for {len(texts)} texts")
    expected = dimensions or (len(rows[0]) if rows else 0)
    for row in rows:
        if not row or len(row) != expected:
            raise EmbedderFailure(
                "invalid", f"A vector of {len(row)} numbers came where {expected} were expected"
            )
        if not all(map(math.isfinite, row)):
            raise EmbedderFailure("invalid", "A vector holds what is no finite number")
    return [struct.pack(f"<{expected}f", *row) for row in rows]


def dimensions_of(vector: bytes) -> int:
    """How many numbers a stored vector has."""
    return len(vector) // 4

"""The vector of a question, from an embedder that may be slow, wrong or gone.

A question is asked while somebody waits, so an embedder has a deadline. What comes later is kept
for the next time the same is asked.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from typing import Any

from .deadlines import InTime, TooLate
from .indexing.embedding import Embedder, EmbedderFailure

LONGEST = 2_000
"""So many characters of a question are embedded: what comes later blurs more than it adds."""

_REMEMBERED = 256


class QueryVectors:
    """The vectors of questions by one embedder, shared by all threads."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._known: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._calls = InTime[Any]()

    def vector(self, text: str, width: int, deadline: float | None) -> Any:
        """The vector of a question, (width,) float32 of length 1; ``deadline`` in seconds, None for
        none.

        Raises `EmbedderFailure` when the embedder does, is too slow, gives no vector of that width,
        or one of zeros (none of the words is known) or of what is no finite number.
        """
        asked = text[:LONGEST]
        with self._lock:
            known = self._known.get(asked)
            if known is not None:
                self._known.move_to_end(asked)
        if known is None:
            known = self._embed(asked) if deadline is None else self._in_time(asked, deadline)
        if len(known) != width:
            with self._lock:
                self._known.pop(asked, None)
            raise EmbedderFailure(
                "invalid", f"it gave {len(known)} numbers, and the index has vectors of {width}"
            )
        return known

    def _embed(self, text: str) -> Any:
        import numpy

        try:
            found = numpy.asarray(self.embedder.embed_query(text), "float32")
        except EmbedderFailure:
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever a provider's library raises, as panics of Rust
            raise EmbedderFailure("internal", f"{type(error).__name__}: {error}") from error
        if found.ndim != 2 or len(found) != 1:
            raise EmbedderFailure("invalid", f"an array {found.shape} came for one question")
        length = float(numpy.linalg.norm(found[0]))
        if not math.isfinite(length) or not length:
            raise EmbedderFailure("invalid", "the vector of the question has no direction")
        vector = found[0] / length
        with self._lock:
            self._known[text] = vector
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return vector

    def _in_time(self, text: str, deadline: float) -> Any:
        try:
            return self._calls.call(lambda: self._embed(text), deadline)
        except TooLate as late:
            raise EmbedderFailure("timeout", str(late)) from late

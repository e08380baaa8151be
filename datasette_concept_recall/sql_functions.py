"""The SQL functions, registered on every connection that Datasette opens."""

from __future__ import annotations

import json
import logging
import math
import sqlite3
import struct
import sys
from collections.abc import Callable, Iterable
from operator import mul
from time import perf_counter
from typing import Any

from .errors import RecallError
from .indexing.embedding import Embedder, embed_question
from .matching import word_count, word_match
from .query_vectors import LONGEST
from .reading import as_text
from .vocabulary import Vocabulary, match_concept_names

if sys.version_info >= (3, 12):
    from math import sumprod as _sum_of_products
else:

    def _sum_of_products(left: tuple[float, ...], right: tuple[float, ...]) -> float:
        return sum(map(mul, left, right))


log = logging.getLogger("datasette_concept_recall")

_UNCHECKED_SECONDS = 0.01
"""How long functions may run in a query before its time limit is looked at."""

_PROBE = (
    "with recursive n(i) as (select 1 union all select i + 1 from n limit 400) select max(i) from n"
)
"""More than the 1,000 virtual machine steps after which SQLite polls a progress handler."""


def register(conn: sqlite3.Connection, vocabulary: Vocabulary) -> None:
    """Gives a connection `word_match`, `word_count` and `match_concept_names`.

    A NULL argument makes the result NULL, numbers count as their text, bytes as UTF-8.
    """
    watch = _Watch(conn)

    def names(text: str) -> str:
        found = match_concept_names(conn, text, vocabulary=vocabulary)
        return json.dumps(found, ensure_ascii=False)

    conn.create_function("word_match", 2, watch.over(_word_match), deterministic=True)
    conn.create_function("word_count", 2, watch.over(word_count), deterministic=True)
    conn.create_function("match_concept_names", 1, watch.over(names))


def register_embedding(conn: sqlite3.Connection, embedder: Callable[[], Embedder | None]) -> None:
    """Gives a connection `embed` and `cosine_similarity`.

    ``embed(text)`` is the vector of a question as little-endian float32, as vectors are stored:
    of its first 2,000 characters, for no time limit can stop a call before it returns. It is NULL
    for NULL, and for a text that has no direction, such as an empty one. ``embedder`` is called
    for each text. A query fails without one, when the embedder fails, and when it is
    remote: whoever may write SQL could otherwise make the server send any text it holds to another
    machine, and pay for it. SQLite tells of such a failure only that a function raised an
    exception; why is in the log.

    ``cosine_similarity(a, b)`` is between -1 and 1, for two vectors of the same width. It is NULL
    for everything else: other types (no text is embedded by itself), other widths, and vectors
    without direction or with numbers that are not finite.
    """
    watch = _Watch(conn)

    def embed(text: str) -> bytes | None:
        try:
            return _vector(embedder(), text)
        except Exception as error:
            log.warning("embed() in SQL: %s", error)
            raise

    conn.create_function("embed", 1, watch.over(embed), deterministic=True)
    similarity = watch.over(_cosine_similarity, convert=_as_it_is)
    conn.create_function("cosine_similarity", 2, similarity, deterministic=True)


def _vector(embedder: Embedder | None, text: str) -> bytes | None:
    if embedder is None:
        raise RecallError("No embedder is configured")
    if embedder.is_remote:
        raise RecallError(f"{embedder.name} is remote: no query may send texts to another machine")
    vector = embed_question(embedder, text[:LONGEST])
    return vector if any(_numbers(vector)) else None


def _numbers(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 4}f", vector)


def _as_it_is(value: object) -> object:
    return value


def _cosine_similarity(left: object, right: object) -> float | None:
    if not isinstance(left, bytes) or not isinstance(right, bytes):
        return None
    if len(left) != len(right) or len(left) % 4:
        return None
    a, b = _numbers(left), _numbers(right)
    lengths = math.hypot(*a) * math.hypot(*b)
    if not lengths or not math.isfinite(lengths):
        return None
    return max(-1.0, min(1.0, _sum_of_products(a, b) / lengths))


def _word_match(word: str, text: str) -> int:
    return int(word_match(word, text))


class _Watch:
    """Makes a query that spends its time inside functions stop at its time limit.

    SQLite polls a time limit once every thousand steps of its virtual machine, and a function is
    one step however long it takes. So after some time in functions a tiny query of more than a
    thousand steps is run on the same connection: when the limit stops that one, the query
    around it is interrupted too.
    """

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._unchecked = 0.0

    def over(
        self, function: Callable[..., Any], convert: Callable[[object], Any] = as_text
    ) -> Callable[..., Any]:
        """The function for use in SQL: NULL for NULL, other arguments converted, watched."""

        def watched(*arguments: object) -> Any:
            if None in arguments:
                return None
            try:
                return self._timed(function, map(convert, arguments))
            except sqlite3.OperationalError as error:
                if "interrupted" not in str(error):
                    raise
                self._conn.interrupt()  # the query around this call: it must not go on
                return None

        return watched

    def _timed(self, function: Callable[..., Any], arguments: Iterable[Any]) -> Any:
        started = perf_counter()
        result = function(*arguments)
        self._unchecked += perf_counter() - started
        if self._unchecked > _UNCHECKED_SECONDS:
            self._unchecked = 0.0
            self._conn.execute(_PROBE).fetchall()
        return result

"""The SQL functions, registered on every connection that Datasette opens."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

from .matching import word_count, word_match
from .reading import as_text
from .vocabulary import Vocabulary, match_concept_names

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

    def over(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function for use in SQL: text arguments, NULL for NULL, watched."""

        def watched(*arguments: object) -> Any:
            if None in arguments:
                return None
            try:
                return self._timed(function, map(as_text, arguments))
            except sqlite3.OperationalError as error:
                if "interrupted" not in str(error):
                    raise
                self._conn.interrupt()  # the query around this call: it must not go on
                return None

        return watched

    def _timed(self, function: Callable[..., Any], arguments: Iterable[str]) -> Any:
        started = perf_counter()
        result = function(*arguments)
        self._unchecked += perf_counter() - started
        if self._unchecked > _UNCHECKED_SECONDS:
            self._unchecked = 0.0
            self._conn.execute(_PROBE).fetchall()
        return result

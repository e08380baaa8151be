"""One writer of an index at a time, of all programs: a lock that ends with its process.

It is a transaction on an empty database beside the index, which every system that SQLite runs on
releases when the process that holds it dies.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep

from ..errors import RecallError


class Busy(RecallError):
    """Another program is working on this index, and it did not end in time."""


class Turn:
    """The right to work on one index, or with ``keeper`` as its name to keep it fresh."""

    def __init__(self, index: Path, name: str = "turn") -> None:
        self._path = index.with_name(f"{index.name}-{name}")

    @contextmanager
    def taken(
        self, seconds: float = 0.0, give_up: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        """Holds the turn, after waiting for it up to so many seconds. Raises `Busy`."""
        conn = sqlite3.connect(self._path, isolation_level=None, timeout=0)
        try:
            waited = 0.0
            while not _lock(conn):
                if waited >= seconds or give_up():
                    raise Busy("Another program is working on this index; try again later")
                sleep(_LOOK_SECONDS)
                waited += _LOOK_SECONDS
            yield
        finally:
            conn.close()  # ends the transaction

    def is_taken(self) -> bool:
        """Whether some program has this right now."""
        if not self._path.exists():
            return False
        try:
            with self.taken():
                return False
        except Busy:
            return True


def is_kept(index: Path) -> bool:
    """Whether a program keeps an index fresh, which can be asked for a run."""
    return Turn(index, "keeper").is_taken()


_LOOK_SECONDS = 0.05


def _lock(conn: sqlite3.Connection) -> bool:
    try:
        conn.execute("begin exclusive")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        return False
    return True

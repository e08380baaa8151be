"""Opening a database file that somebody named, with one clear sentence when it cannot be."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from .errors import DatabaseUnreadable

_PATIENCE_SECONDS = 2
"""So long a writer waits for another one to finish."""


def read_only_uri(path: Path, *, immutable: bool = False) -> str:
    """By which SQLite opens a file for reading only; one that is ``immutable`` without locks."""
    return f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if immutable else ''}"


def _check(path: Path) -> None:
    if path.is_dir():
        raise DatabaseUnreadable(f"{path} is a folder, not a database")
    if not path.exists():
        raise DatabaseUnreadable(f"There is no file {path}")
    if not path.is_file():
        raise DatabaseUnreadable(f"{path} is no ordinary file")


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The database for reading only. Raises `DatabaseUnreadable`."""
    _check(path)
    try:
        with closing(_connect(path)) as conn:
            yield conn
    except sqlite3.Error as error:
        message = f"{path} cannot be read: {error}"
        if "readonly" in str(error):  # by a reader this is said of one thing only
            message = (
                f"{path} was left in the middle of a write; the next program that writes it,"
                " such as the one that did, puts it in order"
            )
        raise DatabaseUnreadable(message) from error


def _connect(path: Path) -> sqlite3.Connection:
    conn = sqlite3.connect(read_only_uri(path), uri=True)
    try:
        conn.execute("select 1 from sqlite_master limit 1").fetchall()
    except sqlite3.Error as error:
        conn.close()
        if "unable to open" not in str(error) or _has_log(path):
            raise
        # In a folder that cannot be written, a file in WAL mode has nowhere for its index. When
        # nobody left a log beside it, it can be read as it is.
        conn = sqlite3.connect(read_only_uri(path, immutable=True), uri=True)
    return conn


def _has_log(path: Path) -> bool:
    logs = [path.with_name(path.name + end) for end in ("-wal", "-journal")]
    return any(log.exists() and log.stat().st_size for log in logs)


@contextmanager
def opened_for_writing(path: Path) -> Iterator[sqlite3.Connection]:
    """An existing database, without Python's own transactions. Raises `DatabaseUnreadable`."""
    _check(path)
    uri = f"{path.absolute().as_uri()}?mode=rw"
    try:
        with closing(
            sqlite3.connect(uri, uri=True, timeout=_PATIENCE_SECONDS, isolation_level=None)
        ) as conn:
            conn.execute("select 1 from sqlite_master limit 1").fetchall()
            yield conn
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):
            message = f"{path} is being written by another program; try again when it is done"
        else:
            message = f"{path} cannot be changed: {error}"
        raise DatabaseUnreadable(message) from error

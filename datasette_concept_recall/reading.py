"""Reading a connection that belongs to somebody else, without leaving a trace on it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


def quote_identifier(name: str) -> str:
    """The name as an SQL identifier, whatever characters it holds."""
    return '"' + name.replace('"', '""') + '"'


def as_text(value: object) -> str:
    """A stored value as text: bytes as UTF-8 with what is undecodable replaced, NULL as ''."""
    if value is None:
        return ""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def json_list(values: Iterable[object]) -> str:
    """Values to bind for ``in (select value from json_each(?))``: any number in one parameter."""
    return json.dumps(list(values))


def equals(expressions: Iterable[str], values: Iterable[object]) -> tuple[str, list[object]]:
    """The condition that expressions have these values, and what to bind for it. A text that is no
    UTF-8, whose other bytes are surrogates, cannot be bound as one."""
    terms: list[str] = []
    bound: list[object] = []
    for expression, value in zip(expressions, values, strict=True):
        is_odd = isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value)
        terms.append(f"{expression} is {'cast(? as text)' if is_odd else '?'}")
        bound.append(str(value).encode("utf-8", "surrogateescape") if is_odd else value)
    return " and ".join(terms), bound


class Reader:
    """Runs queries that return plain tuples, whatever row factory the connection has.

    ``in_foreign_transaction`` tells that the caller had a transaction open: what is read may be
    old, or never be committed.
    """

    def __init__(self, conn: sqlite3.Connection, in_foreign_transaction: bool) -> None:
        self.connection = conn
        self.in_foreign_transaction = in_foreign_transaction

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """All rows of one query.

        Raises `sqlite3.Error`, and `sqlite3.OperationalError` with the text "interrupted" when a
        time limit ends the query.
        """
        cursor = self.connection.cursor()
        cursor.row_factory = None
        try:
            return cursor.execute(sql, parameters).fetchall()
        finally:
            cursor.close()

    def each(self, sql: str, *parameters: object) -> Iterator[tuple[Any, ...]]:
        """The same rows, one after the other: a time limit counts what is done between them."""
        cursor = self.connection.cursor()
        cursor.row_factory = None
        try:
            yield from cursor.execute(sql, parameters)
        finally:
            cursor.close()


@contextmanager
def reading(conn: sqlite3.Connection) -> Iterator[Reader]:
    """One consistent snapshot of the database, in which undecodable text is no error.

    A transaction that is already open is used and left open; otherwise one is opened for
    reading and ended. The connection's own text factory is put back.
    """
    text_factory, own_transaction = conn.text_factory, _begin(conn)
    conn.text_factory = as_text
    try:
        yield Reader(conn, not own_transaction)
    finally:
        conn.text_factory = text_factory
        if own_transaction:
            _end(conn)


def _begin(conn: sqlite3.Connection) -> bool:
    """Opens a transaction unless one is open; whether it did.

    In a function that a writing statement calls, the transaction of that statement is open, though
    the connection does not say so; a savepoint is refused there, which BEGIN would not be.
    """
    if conn.in_transaction:
        return False
    try:
        conn.execute("savepoint concept_recall")
    except sqlite3.OperationalError as error:
        if "SQL statements in progress" in str(error):
            return False
        _end(conn)  # it may have been opened, and then a time limit ended the statement
        raise
    return True


def _end(conn: sqlite3.Connection) -> None:
    """Ends the transaction if one is open; unlike a rollback it leaves running statements alone."""
    if not conn.in_transaction:
        return
    try:
        conn.execute("release concept_recall")
    except sqlite3.OperationalError:  # a time limit ends even this one, and would again
        conn.set_progress_handler(None, 0)
        if conn.in_transaction:
            conn.execute("release concept_recall")
        raise

"""What could not be indexed: for now, or not as it is; and since when what is searched is stale."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .models import Entry
from .store import Store


class Skip(NamedTuple):
    """A document that is left alone until its fingerprint changes, or ``extra`` is installed."""

    key: bytes
    fingerprint: str
    code: str
    extra: str | None


class Troubles:
    """What is remembered of failures; written in transactions of the store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def skips(self, source_id: int) -> dict[bytes, Skip]:
        """What is left alone, by key."""
        rows = self.store.rows(
            "select key, fingerprint, code, extra from skipped where source_id = ?", source_id
        )
        return {row[0]: Skip(*row) for row in rows}

    def count_skips(self, source_id: int) -> int:
        """How many are left alone."""
        ((count,),) = self.store.rows("select count(*) from skipped where source_id = ?", source_id)
        return int(count)

    def extras(self, source_id: int) -> list[str]:
        """The extras that are missing for what is left alone."""
        sql = "select distinct extra from skipped where source_id = ? and extra is not null"
        return [extra for (extra,) in self.store.rows(sql, source_id)]

    def skip(
        self, source_id: int, entry: Entry, code: str, message: str, extra: str | None
    ) -> None:
        """Remembers that a document is left alone as it is now; what is stored of it stays."""
        with self.store.writing() as conn:
            conn.execute(
                "insert or replace into skipped (source_id, key, path, fingerprint, code, message,"
                " extra, since) values (?, ?, ?, ?, ?, ?, ?, ?)",
                [source_id, entry.key, entry.path or entry.title, entry.fingerprint, code, message,
                 extra, self.store.now()],
            )  # fmt: skip
            conn.execute(
                "delete from failure where source_id = ? and key = ?", [source_id, entry.key]
            )
            self._say(source_id, entry.key, message)

    def fail(self, source_id: int, entry: Entry, code: str, message: str) -> None:
        """Remembers that a document could not be read now; what is stored of it stays."""
        with self.store.writing() as conn:
            conn.execute(
                "insert or replace into failure (source_id, key, path, code, message, happened_at)"
                " values (?, ?, ?, ?, ?, ?)",
                [source_id, entry.key, entry.path or entry.title, code, message, self.store.now()],
            )
            conn.execute(
                "delete from skipped where source_id = ? and key = ?", [source_id, entry.key]
            )
            self._say(source_id, entry.key, message)

    def _say(self, source_id: int, key: bytes, message: str) -> None:
        self.store.conn.execute(
            "update document set problem = 'stale since ' || ? || ': ' || ?"
            " where source_id = ? and key = ? and live_generation is not null",
            [self.store.now(), message, source_id, key],
        )

    def forget(self, source_id: int, key: bytes) -> None:
        """That a document is well again."""
        for table in ("skipped", "failure"):
            self.store.conn.execute(
                f"delete from {table} where source_id = ? and key = ?", [source_id, key]
            )

    def forget_all(self, source_id: int, keys: Iterable[bytes]) -> None:
        """Forgets what was left alone or failed and is gone."""
        with self.store.writing():
            for key in keys:
                self.forget(source_id, key)

    def has_crashed(self, source_id: int, key: bytes) -> bool:
        """Whether the reading of a document is known to have ended the program."""
        sql = "select 1 from failure where source_id = ? and key = ? and code = 'crashed'"
        return bool(self.store.rows(sql, source_id, key))

    def forgive(self, source_id: int) -> None:
        """Documents that ended the program may be tried again: somebody asks for it."""
        with self.store.writing() as conn:
            for table in ("skipped", "failure"):
                conn.execute(
                    f"delete from {table} where source_id = ? and code = 'crashed'", [source_id]
                )

    def failed(self, source_id: int) -> set[bytes]:
        """The keys of what could not be read or embedded the last time."""
        rows = self.store.rows("select key from failure where source_id = ?", source_id)
        return {key for (key,) in rows}

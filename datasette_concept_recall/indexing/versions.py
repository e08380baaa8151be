"""The versions of the index of a source: one that is searched, and one that is built beside it."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Literal

from .store import Store

_VERSION = "select id, source_id, signature, embedder, dimensions, state from index_version"


@dataclass(frozen=True)
class Version:
    """An index of one source with one signature: ``live`` is searched, ``building`` not yet."""

    id: int
    source_id: int
    signature: str
    embedder: str | None
    dimensions: int | None
    state: Literal["building", "live"]


class Versions:
    """The versions of all sources; what is written is written in transactions of the store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def of(self, source_id: int) -> list[Version]:
        """The versions of a source, at most one that is live and one that is being built."""
        rows = self.store.rows(f"{_VERSION} where source_id = ? order by id", source_id)
        return [Version(*row) for row in rows]

    def begin(
        self,
        source_id: int,
        signature: str,
        embedder: str | None,
        state: Literal["building", "live"],
    ) -> Version:
        """Begins a version; one that was being built with another signature is dropped."""
        with self.store.writing() as conn:
            conn.execute(
                "delete from index_version where source_id = ? and state = 'building'", [source_id]
            )
            cursor = conn.execute(
                "insert into index_version (source_id, signature, embedder, state, started_at)"
                " values (?, ?, ?, ?, ?)",
                [source_id, signature, embedder, state, self.store.now()],
            )
        return Version(*self.store.rows(f"{_VERSION} where id = ?", cursor.lastrowid)[0])

    def drop(self, version_id: int) -> None:
        """Drops a version that is not searched, with its generations."""
        with self.store.writing() as conn:
            conn.execute(
                "delete from index_version where id = ? and state = 'building'", [version_id]
            )

    def set_dimensions(self, version_id: int, dimensions: int) -> None:
        """The width of the vectors of a version, known from its first one."""
        with self.store.writing() as conn:
            conn.execute(
                "update index_version set dimensions = ? where id = ?", [dimensions, version_id]
            )

    def drop_orphan_vectors(self, version: Version) -> None:
        """Without a recorded width the vectors of a version are of nobody knows what; its
        documents are embedded anew."""
        if version.embedder and version.dimensions is None:
            with self.store.writing() as conn:
                conn.execute(
                    "delete from vector where chunk_id in (select c.id from chunk c"
                    " join generation g on g.id = c.generation_id where g.version_id = ?)",
                    [version.id],
                )

    def flip(self, version: Version) -> None:
        """Makes what was built what is searched, for all documents of the source in one step.

        A document that could not be built keeps the text that it has, without its vectors, and
        is due in the next run.
        """
        with self.store.writing() as conn:
            _adopt(conn, version)
            conn.execute(
                "delete from index_version where source_id = ? and state = 'live'",
                [version.source_id],
            )
            conn.execute("update index_version set state = 'live' where id = ?", [version.id])
            conn.execute(
                "update document set live_generation = g.id, chunk_count = g.chunk_count,"
                " indexed_at = ? from generation g where g.document_id = document.id"
                " and g.version_id = ? and g.is_complete",
                [self.store.now(), version.id],
            )
            conn.execute(
                "delete from document_concept where document_id in"
                " (select id from document where source_id = ?)",
                [version.source_id],
            )
            conn.execute(
                "insert into document_concept select distinct d.id, cc.concept_id from document d"
                " join chunk c on c.generation_id = d.live_generation"
                " join chunk_concept cc on cc.chunk_id = c.id where d.source_id = ?",
                [version.source_id],
            )


def _adopt(conn: sqlite3.Connection, version: Version) -> None:
    orphans = (
        "select g.id from generation g join index_version x on x.id = g.version_id"
        " where x.source_id = ? and x.state = 'live' and g.is_complete and not exists"
        " (select 1 from generation n where n.document_id = g.document_id and n.version_id = ?"
        " and n.is_complete)"
    )
    conn.execute(
        f"delete from vector where chunk_id in (select id from chunk where generation_id in"
        f" ({orphans}))",
        [version.source_id, version.id],
    )
    conn.execute(
        "update generation set version_id = ?, fingerprint = '', content_hash = ''"
        f" where id in ({orphans})",
        [version.id, version.source_id, version.id],
    )

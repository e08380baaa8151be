"""What the index knows of all documents of a source, and what is done to many of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .models import Location
from .store import Store, forget_unused_concepts
from .versions import Version


class Known(NamedTuple):
    """A document with its complete generation in one version, None where there is none yet."""

    document_id: int
    key: bytes
    generation_id: int | None
    fingerprint: str | None
    content_hash: str | None
    size: int | None
    is_orphaned: bool
    is_unverified: bool
    has_leftovers: bool
    lacks_vectors: bool


class Documents:
    """The documents of an index; all that is written is written in transactions of the store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def listing(self, version: Version) -> bytes | None:
        """The digest of the listing with which a version is in line: None where a run has to see
        what there is to do. The database forgets it when something is written."""
        ((digest,),) = self.store.rows(
            "select listing from index_version where id = ?", version.id
        ) or [(None,)]
        return digest

    def note_listing(self, version: Version, digest: bytes) -> None:
        """That nothing is left to do for a version as long as its source is listed like this."""
        with self.store.writing() as conn:
            conn.execute("update index_version set listing = ? where id = ?", [digest, version.id])

    def latest(self) -> int:
        """The largest number of a document."""
        ((latest,),) = self.store.rows("select coalesce(max(id), 0) from document")
        return int(latest)

    def has_orphans(self, source_id: int) -> bool:
        """Whether documents of a source have no place any more, or may be gone."""
        return bool(
            self.store.rows(
                "select 1 from document where source_id = ?"
                " and (orphaned_in is not null or is_unverified) limit 1",
                source_id,
            )
        )

    def fingerprints(self, version: Version, latest: int) -> dict[bytes, str | None]:
        """Of every document of a source with a number up to ``latest`` by key the fingerprint that
        one version of its index has: None where that alone does not tell what there is to do."""
        stored: dict[bytes, str | None] = dict(
            self.store.rows(
                "select d.key, case when d.is_unverified or d.orphaned_in then null"
                " else g.fingerprint end from document d left join generation g"
                " on g.document_id = d.id and g.version_id = ? and g.is_complete = 1"
                " where d.source_id = ? and d.id <= ?",
                version.id,
                version.source_id,
                latest,
            )
        )
        unfinished = [*self._leftovers(version), *self._bare(version)]
        return stored | {key: None for key in unfinished if key in stored}

    def known(self, version: Version, keys: Iterable[bytes]) -> dict[bytes, Known]:
        """Those of the documents of a source that have one of these keys, as one version of its
        index has them."""
        wanted, found = list(keys), dict[bytes, Known]()
        for first in range(0, len(wanted), _KEYS):
            some = wanted[first : first + _KEYS]
            rows = self.store.rows(
                "select d.id, d.key, g.id, g.fingerprint, g.content_hash, g.size,"
                " d.orphaned_in is not null, d.is_unverified,"
                f" exists (select 1 from generation a where {_LEFT} and a.document_id = d.id),"
                f" ? and exists (select 1 {_BARE} where c.generation_id = g.id and {_LACKS})"
                " from document d left join generation g on g.document_id = d.id"
                " and g.version_id = ? and g.is_complete = 1"
                f" where d.source_id = ? and d.key in ({', '.join('?' * len(some))})",
                version.id,
                bool(version.embedder),
                version.id,
                version.source_id,
                *some,
            )
            found |= {row[1]: Known._make(row) for row in rows}
        return found

    def _leftovers(self, version: Version) -> list[bytes]:
        """The keys of documents of which an attempt was left."""
        return self._keys(
            f"select d.key from generation a join document d on d.id = a.document_id where {_LEFT}",
            version.id,
        )

    def _bare(self, version: Version) -> list[bytes]:
        """The keys of documents of which a chunk of the complete generation has no vector, though
        it should."""
        if not version.embedder:
            return []
        return self._keys(
            f"select distinct d.key {_BARE} join generation g on g.id = c.generation_id"
            " join document d on d.id = g.document_id"
            f" where g.version_id = ? and g.is_complete and {_LACKS}",
            version.id,
        )

    def _keys(self, sql: str, *parameters: object) -> list[bytes]:
        return [key for (key,) in self.store.rows(sql, *parameters)]

    def is_located(self, document_id: int, locations: Sequence[Location]) -> bool:
        """Whether a document is noted to be in exactly these places."""
        rows = self.store.rows(
            "select folder, position, flags from location where document_id = ?", document_id
        )
        return {Location(*row) for row in rows} == set(locations)

    def remove(self, document_ids: Sequence[int]) -> None:
        """Removes documents with all that is known of them, a thousand in one transaction."""
        for first in range(0, len(document_ids), 1_000):
            with self.store.writing() as conn:
                conn.executemany(
                    "delete from document where id = ?",
                    [[id_] for id_ in document_ids[first : first + 1_000]],
                )

    def mark(
        self, *, orphaned: Sequence[int] = (), run_id: int = 0, unverified: Sequence[int] = ()
    ) -> None:
        """Notes which documents have no place any more since a run, and which were not found to be
        there or gone."""
        with self.store.writing() as conn:
            conn.executemany(
                "update document set orphaned_in = ? where id = ?",
                [[run_id, id_] for id_ in orphaned],
            )
            conn.executemany(
                "update document set is_unverified = 1 where id = ?", [[id_] for id_ in unverified]
            )

    def verified(self, document_ids: Sequence[int]) -> None:
        """That documents are where they were."""
        with self.store.writing() as conn:
            conn.executemany(
                "update document set is_unverified = 0, orphaned_in = null where id = ?",
                [[id_] for id_ in document_ids],
            )

    def tidy(self, changed: int) -> None:
        """After a run that indexed or removed so many documents: forgets concepts that nothing
        carries, and where that was a good part of all makes the full text compact again."""
        ((documents,),) = self.store.rows("select count(*) from document")
        with self.store.writing() as conn:
            forget_unused_concepts(conn)
            conn.execute(
                "delete from live_change where id <= (select max(id) from live_change) - ?",
                [_CHANGES_KEPT],
            )
            if changed * _COMPACT_PART >= documents:
                conn.execute("insert into chunk_fts (chunk_fts) values ('optimize')")


_LEFT = "a.version_id = ? and a.is_complete = 0"
_BARE = "from chunk c left join vector v on v.chunk_id = c.id"
_LACKS = "v.chunk_id is null"

_KEYS = 500
"""So many documents are looked up by one statement; SQLite has a limit to what can be bound."""

_CHANGES_KEPT = 10_000
"""So many of the latest changes are remembered for those who hold vectors in memory."""

_COMPACT_PART = 5
"""After a run that changed a fifth of the documents the full text is rewritten."""

"""What the index holds of documents: generations beside each other, chunks, vectors, concepts.

A document's row names the generation that is searched. Another one grows beside it and takes its
place in the transaction that completes it. At most one complete and one growing generation of a
document exist in each version of an index.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..reading import json_list
from .ids import text_hash
from .models import Chunk, Entry, Location
from .places import describe
from .store import Store, Version, forget_unused_concepts


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


class Skip(NamedTuple):
    """A document that is left alone until its fingerprint changes, or ``extra`` is installed."""

    key: bytes
    fingerprint: str
    code: str
    extra: str | None


@dataclass(frozen=True)
class Attempt:
    """A generation that grows. ``has_vectors`` tells that vectors of it are stored already."""

    id: int
    document_id: int
    version_id: int
    has_vectors: bool


class Piece(NamedTuple):
    """A chunk as it is written, with its position and its vector (float32) if there is one."""

    position: int
    chunk: Chunk
    vector: bytes | None


class Redaction(NamedTuple):
    """What the filter took out of a document, and where."""

    family: str
    place: str
    removed: str


class Documents:
    """The documents of an index; all that is written is written in transactions of the store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def known(self, version: Version) -> dict[bytes, Known]:
        """Every document of a source by key, as one version of its index has it."""
        leftovers = self._ids(
            "select document_id from generation where version_id = ? and not is_complete",
            version.id,
        )
        bare = set()
        if version.embedder:
            bare = self._ids(
                "select distinct g.id from generation g join chunk c on c.generation_id = g.id"
                " left join vector v on v.chunk_id = c.id"
                " where g.version_id = ? and g.is_complete and v.chunk_id is null",
                version.id,
            )
        rows = self.store.rows(
            "select d.id, d.key, g.id, g.fingerprint, g.content_hash, g.size,"
            " d.orphaned_in is not null, d.is_unverified"
            " from document d left join generation g on g.document_id = d.id"
            " and g.version_id = ? and g.is_complete where d.source_id = ?",
            version.id,
            version.source_id,
        )
        return {row[1]: Known(*(*row, row[0] in leftovers, row[2] in bare)) for row in rows}

    def _ids(self, sql: str, *parameters: object) -> set[int]:
        return {id_ for (id_,) in self.store.rows(sql, *parameters)}

    def skips(self, source_id: int) -> dict[bytes, Skip]:
        """What is left alone, by key."""
        rows = self.store.rows(
            "select key, fingerprint, code, extra from skipped where source_id = ?", source_id
        )
        return {row[0]: Skip(*row) for row in rows}

    # -- one document -----------------------------------------------------------------------------

    def begin_attempt(
        self, version: Version, entry: Entry, content_hash: str, kind: str
    ) -> Attempt:
        """A growing generation for a document, which is taken note of when it is new.

        One that an earlier attempt left is used again: its chunks wait, behind all positions, for
        being taken over by their text.
        """
        with self.store.writing() as conn:
            document_id = self._document(version.source_id, entry, kind)
            row = conn.execute(
                "select id from generation where document_id = ? and version_id = ?"
                " and not is_complete",
                [document_id, version.id],
            ).fetchone()
            if row:
                conn.execute(
                    "update generation set fingerprint = ?, content_hash = ?, size = ?"
                    " where id = ?",
                    [entry.fingerprint, content_hash, entry.size, row[0]],
                )
                conn.execute("update chunk set position = -id where generation_id = ?", [row[0]])
                conn.execute("delete from redaction where generation_id = ?", [row[0]])
                stored = conn.execute(
                    "select exists (select 1 from chunk c join vector v on v.chunk_id = c.id"
                    " where c.generation_id = ?)",
                    [row[0]],
                ).fetchone()
                return Attempt(row[0], document_id, version.id, bool(stored[0]))
            cursor = conn.execute(
                "insert into generation (document_id, version_id, fingerprint, content_hash, size,"
                " started_at) values (?, ?, ?, ?, ?, ?)",
                [document_id, version.id, entry.fingerprint, content_hash, entry.size,
                 self.store.now()],
            )  # fmt: skip
        return Attempt(cursor.lastrowid or 0, document_id, version.id, False)

    def _document(self, source_id: int, entry: Entry, kind: str) -> int:
        conn = self.store.conn
        row = conn.execute(
            "select id from document where source_id = ? and key = ?", [source_id, entry.key]
        ).fetchone()
        if row:
            return int(row[0])
        cursor = conn.execute(
            "insert into document (source_id, key, title, kind, path, created_at)"
            " values (?, ?, ?, ?, ?, ?)",
            [source_id, entry.key, entry.title, kind, entry.path, entry.created_at],
        )
        return cursor.lastrowid or 0

    def stored_vectors(
        self, document_id: int, embedder: str, hashes: Sequence[bytes]
    ) -> dict[bytes, bytes]:
        """The vectors of one embedder that any generation of a document has for these texts."""
        marks = ", ".join("?" * len(hashes))
        rows = self.store.rows(
            "select c.text_hash, v.embedding from generation g"
            " join index_version x on x.id = g.version_id and x.embedder = ?"
            " join chunk c on c.generation_id = g.id join vector v on v.chunk_id = c.id"
            f" where g.document_id = ? and c.text_hash in ({marks})",
            embedder,
            document_id,
            *hashes,
        )
        return dict(rows)

    def has_vectors(self, document_id: int, embedder: str) -> bool:
        """Whether any generation of a document has a vector of this embedder."""
        return bool(
            self.store.rows(
                "select 1 from generation g join index_version x on x.id = g.version_id"
                " join chunk c on c.generation_id = g.id join vector v on v.chunk_id = c.id"
                " where g.document_id = ? and x.embedder = ? limit 1",
                document_id,
                embedder,
            )
        )

    def write(self, attempt: Attempt, pieces: Iterable[Piece]) -> None:
        """Writes chunks of an attempt with their vectors, taking over those that it has."""
        fresh = list(pieces)
        with self.store.writing():
            if attempt.has_vectors:
                fresh = [piece for piece in fresh if not self._take_over(attempt, piece)]
            for first in range(0, len(fresh), _ROWS):
                self._insert(attempt, fresh[first : first + _ROWS])

    def _take_over(self, attempt: Attempt, piece: Piece) -> bool:
        """Whether a chunk that waits has this text, and stands in its place from now on."""
        conn = self.store.conn
        waiting = conn.execute(
            "select id from chunk where generation_id = ? and position < 0 and text_hash = ?",
            [attempt.id, text_hash(piece.chunk.text)],
        ).fetchone()
        if waiting is None:
            return False
        chunk, place = piece.chunk, piece.chunk.place
        conn.execute(
            "update chunk set position = ?, start_offset = ?, end_offset = ?, unit = ?,"
            " first = ?, last = ?, part = ?, place = ? where id = ?",
            [piece.position, chunk.start, chunk.end, *place, describe(place), waiting[0]],
        )
        return True

    def _insert(self, attempt: Attempt, pieces: Sequence[Piece]) -> None:
        """All in one statement: the full text is written out at the end of each."""
        conn = self.store.conn
        values = [
            value
            for position, chunk, _ in pieces
            for value in (
                *(attempt.id, position, chunk.start, chunk.end, *chunk.place),
                *(describe(chunk.place), chunk.text, text_hash(chunk.text)),
            )
        ]
        row = f"({', '.join('?' * (len(values) // len(pieces)))})"
        conn.execute(
            "insert into chunk (generation_id, position, start_offset, end_offset, unit, first,"
            " last, part, place, text, text_hash) values " + ", ".join([row] * len(pieces)),
            values,
        )
        conn.executemany(
            "insert into vector (chunk_id, embedding)"
            " select id, ? from chunk where generation_id = ? and position = ?",
            [
                (piece.vector, attempt.id, piece.position)
                for piece in pieces
                if piece.vector is not None
            ],
        )

    def complete(
        self,
        attempt: Attempt,
        version: Version,
        entry: Entry,
        *,
        title: str,
        kind: str,
        concepts: Mapping[str, Sequence[int]],
        redactions: Sequence[Redaction] = (),
    ) -> None:
        """Ends an attempt: its chunks are what the version has of the document from now on, and in
        a version that is live what is searched.

        ``concepts`` are names with the positions of the chunks that carry them.
        """
        with self.store.writing() as conn:
            conn.execute("delete from chunk where generation_id = ? and position < 0", [attempt.id])
            ((count,),) = conn.execute(
                "select count(*) from chunk where generation_id = ?", [attempt.id]
            ).fetchall()
            self._drop(attempt.document_id, version.id, complete=True)
            conn.execute(
                "update generation set is_complete = 1, chunk_count = ? where id = ?",
                [count, attempt.id],
            )
            self._link(attempt.id, concepts)
            conn.executemany(
                "insert into redaction (generation_id, family, place, removed) values (?, ?, ?, ?)",
                [[attempt.id, *redaction] for redaction in redactions],
            )
            self._describe(attempt.document_id, entry, title, kind)
            if version.state == "live":
                self._show(attempt.document_id, attempt.id, count)
            self._forget_problems(version.source_id, entry.key)

    def _drop(self, document_id: int, version_id: int, *, complete: bool) -> None:
        self.store.conn.execute(
            "delete from generation where document_id = ? and version_id = ? and is_complete = ?",
            [document_id, version_id, complete],
        )

    def _show(self, document_id: int, generation_id: int, count: int) -> None:
        conn = self.store.conn
        conn.execute(
            "update document set live_generation = ?, chunk_count = ?, indexed_at = ?,"
            " problem = null where id = ?",
            [generation_id, count, self.store.now(), document_id],
        )
        self._show_concepts(document_id)

    def _show_concepts(self, document_id: int) -> None:
        """What a document carries is what the chunks of its live generation carry."""
        conn = self.store.conn
        conn.execute("delete from document_concept where document_id = ?", [document_id])
        conn.execute(
            "insert into document_concept select distinct d.id, cc.concept_id from document d"
            " join chunk c on c.generation_id = d.live_generation"
            " join chunk_concept cc on cc.chunk_id = c.id where d.id = ?",
            [document_id],
        )

    def _link(self, generation_id: int, concepts: Mapping[str, Sequence[int]]) -> None:
        if not concepts:
            return
        conn = self.store.conn
        conn.executemany(
            "insert or ignore into concept (name) values (?)", [[name] for name in concepts]
        )
        names = json_list(concepts)
        numbers = dict(
            conn.execute(
                "select name, id from concept where name in (select value from json_each(?))",
                [names],
            ).fetchall()
        )
        chunks = dict(
            conn.execute(
                "select position, id from chunk where generation_id = ?", [generation_id]
            ).fetchall()
        )
        conn.executemany(
            "insert or ignore into chunk_concept (chunk_id, concept_id) values (?, ?)",
            [
                (chunks[position], numbers[name])
                for name, positions in concepts.items()
                for position in positions
            ],
        )

    def _describe(self, document_id: int, entry: Entry, title: str, kind: str) -> None:
        conn = self.store.conn
        conn.execute(
            "update document set key = ?, title = ?, kind = ?, path = ?, created_at = ?,"
            " orphaned_in = null, is_unverified = 0 where id = ?",
            [entry.key, title, kind, entry.path, entry.created_at, document_id],
        )
        self._locate(document_id, entry.locations)

    def _locate(self, document_id: int, locations: Sequence[Location]) -> None:
        conn = self.store.conn
        conn.execute("delete from location where document_id = ?", [document_id])
        conn.executemany(
            "insert or ignore into location (document_id, folder, position, flags)"
            " values (?, ?, ?, ?)",
            [[document_id, *location] for location in locations],
        )

    def give_up(self, attempt: Attempt, *, keep: bool) -> None:
        """Ends an attempt that failed. It is kept for its vectors if it has any and ``keep``, and
        a document of which nothing else is known goes with it."""
        with self.store.writing() as conn:
            if keep:
                conn.execute(
                    "delete from chunk where generation_id = ? and position >= 0"
                    " and id not in (select chunk_id from vector)",
                    [attempt.id],
                )
                if conn.execute(
                    "select 1 from chunk where generation_id = ? limit 1", [attempt.id]
                ).fetchone():
                    return
            conn.execute("delete from generation where id = ?", [attempt.id])

    def refresh(self, known: Known, version: Version, entry: Entry, title: str | None) -> None:
        """That a document is what it was, though it was touched, moved or renamed."""
        with self.store.writing() as conn:
            conn.execute(
                "update generation set fingerprint = ?, size = ? where id = ?",
                [entry.fingerprint, entry.size, known.generation_id],
            )
            conn.execute(
                "update document set key = ?, path = ?, created_at = ?, orphaned_in = null,"
                " is_unverified = 0, problem = null, title = coalesce(?, title) where id = ?",
                [entry.key, entry.path, entry.created_at, title, known.document_id],
            )
            self._drop(known.document_id, version.id, complete=False)
            self._locate(known.document_id, entry.locations)
            self._forget_problems(version.source_id, entry.key)

    def is_located(self, document_id: int, locations: Sequence[Location]) -> bool:
        """Whether a document is noted to be in exactly these places."""
        rows = self.store.rows(
            "select folder, position, flags from location where document_id = ?", document_id
        )
        return {Location(*row) for row in rows} == set(locations)

    def drop_leftovers(self, known: Known, version: Version) -> None:
        """Removes what an attempt left of a document that is as it was."""
        with self.store.writing():
            self._drop(known.document_id, version.id, complete=False)

    # -- concepts of what is searched -------------------------------------------------------------

    def mentioning(self, source_id: int, name: str) -> list[int]:
        """The documents of a source that may mention a name: all that do are among them."""
        phrase = '"' + name.replace('"', '""') + '"'
        live = (
            " join chunk c on c.id = f.rowid join document d on d.live_generation ="
            " c.generation_id where d.source_id = ?"
        )
        words = _words(name)
        if not words:  # nothing of it is in the full text
            return [
                row[0]
                for row in self.store.rows(
                    "select id from document where source_id = ? and live_generation is not null",
                    source_id,
                )
            ]
        return [
            row[0]
            for row in self.store.rows(
                f"select distinct d.id from chunk_fts f{live} and f.text match ?",
                source_id,
                phrase,
            )
        ]

    def chunks_of(self, document_id: int) -> list[tuple[str, int, int]]:
        """The chunks of a document that are searched, in order: text, start and end."""
        return self.store.rows(
            "select c.text, c.start_offset, c.end_offset from document d join chunk c"
            " on c.generation_id = d.live_generation where d.id = ? order by c.position",
            document_id,
        )

    def link(self, document_id: int, concepts: Mapping[str, Sequence[int]]) -> None:
        """Adds concepts to the chunks of a document that are searched."""
        rows = self.store.rows("select live_generation from document where id = ?", document_id)
        if not concepts or not rows or rows[0][0] is None:
            return
        with self.store.writing():
            self._link(rows[0][0], concepts)
            self._show_concepts(document_id)

    # -- many documents ---------------------------------------------------------------------------

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

    def _forget_problems(self, source_id: int, key: bytes) -> None:
        for table in ("skipped", "failure"):
            self.store.conn.execute(
                f"delete from {table} where source_id = ? and key = ?", [source_id, key]
            )

    def forget_skips(self, source_id: int, keys: Iterable[bytes]) -> None:
        """Forgets what was left alone and is gone."""
        with self.store.writing() as conn:
            conn.executemany(
                "delete from skipped where source_id = ? and key = ?",
                [[source_id, key] for key in keys],
            )

    def failed(self, source_id: int) -> set[bytes]:
        """The keys of what could not be read or embedded the last time."""
        rows = self.store.rows("select key from failure where source_id = ?", source_id)
        return {key for (key,) in rows}

    def tidy(self, changed: int) -> None:
        """After a run that indexed or removed so many documents: forgets concepts that nothing
        carries, and where that was a good part of all makes the full text compact again."""
        ((documents,),) = self.store.rows("select count(*) from document")
        with self.store.writing() as conn:
            forget_unused_concepts(conn)
            if changed * _COMPACT_PART >= documents:
                conn.execute("insert into chunk_fts (chunk_fts) values ('optimize')")


_COMPACT_PART = 5
"""After a run that changed a fifth of the documents the full text is rewritten."""


_ROWS = 50
"""So many chunks are written by one statement; SQLite has a limit to what can be bound."""

_words = re.compile(r"\w").search

"""One document in the index: generations beside each other, chunks, vectors, concepts.

A document's row names the generation that is searched. Another one grows beside it and takes its
place in the transaction that completes it. At most one complete and one growing generation of a
document exist in each version of an index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..rendering import RecordText, as_json, from_json, names_of, search_text, subject_text
from ..topical import MOST_IN_NAME, in_words
from .carried import Carried
from .documents import Known
from .models import Chunk, Entry, Location
from .places import describe
from .store import Store
from .troubles import Troubles
from .versions import Version


@dataclass(frozen=True)
class Attempt:
    """A generation that grows. ``is_first`` tells that nothing else is stored of its document,
    ``has_vectors`` that an earlier attempt left vectors of it."""

    id: int
    document_id: int
    version_id: int
    is_first: bool = False
    has_vectors: bool = False


class Piece(NamedTuple):
    """A chunk as it is written: its position, the hash of the text that is embedded, and its vector
    (float32) if there is one."""

    position: int
    chunk: Chunk
    text_hash: bytes
    vector: bytes | None = None


class Redaction(NamedTuple):
    """What the filter took out of a document, and where."""

    family: str
    place: str
    removed: str


_ROWS = 50
"""So many chunks are written by one statement; SQLite has a limit to what can be bound."""


class Generations:
    """The generations of documents; all that is written is written in transactions of the store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._carried, self._troubles = Carried(store), Troubles(store)

    def begin_attempt(
        self, version: Version, entry: Entry, content_hash: str, kind: str
    ) -> Attempt:
        """A growing generation for a document, which is taken note of when it is new.

        One that an earlier attempt left is used again: its chunks wait, behind all positions, for
        being taken over by their text.
        """
        with self.store.writing() as conn:
            document_id, is_new = self._document(version.source_id, entry, kind)
            # Of a new number there are some where a document was deleted by hand.
            rows = conn.execute(
                "select id, version_id, is_complete from generation where document_id = ?",
                [document_id],
            ).fetchall()
            row = next((row for row in rows if row[1:] == (version.id, 0)), None)
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
                return Attempt(row[0], document_id, version.id, has_vectors=bool(stored[0]))
            cursor = conn.execute(
                "insert into generation (document_id, version_id, fingerprint, content_hash, size,"
                " started_at) values (?, ?, ?, ?, ?, ?)",
                [document_id, version.id, entry.fingerprint, content_hash, entry.size,
                 self.store.now()],
            )  # fmt: skip
        return Attempt(cursor.lastrowid or 0, document_id, version.id, is_first=is_new and not rows)

    def _document(self, source_id: int, entry: Entry, kind: str) -> tuple[int, bool]:
        """The number of a document, and whether it is a new one."""
        conn = self.store.conn
        row = conn.execute(
            "select id from document where source_id = ? and key = ?", [source_id, entry.key]
        ).fetchone()
        if row:
            return int(row[0]), False
        cursor = conn.execute(
            "insert into document (source_id, key, title, kind, path, created_at)"
            " values (?, ?, ?, ?, ?, ?)",
            [source_id, entry.key, entry.title, kind, entry.path, entry.created_at],
        )
        return cursor.lastrowid or 0, True

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

    def write(self, attempt: Attempt, record: RecordText, pieces: Iterable[Piece]) -> None:
        """Writes chunks of an attempt with their vectors, taking over those that it has; what
        ``record`` says of the document is searched with each."""
        fresh, known = list(pieces), (subject_text(record), search_text(record))
        with self.store.writing():
            if attempt.has_vectors:
                fresh = [piece for piece in fresh if not self._take_over(attempt, known, piece)]
            for first in range(0, len(fresh), _ROWS):
                self._insert(attempt, known, fresh[first : first + _ROWS])

    def _take_over(self, attempt: Attempt, known: tuple[str, str], piece: Piece) -> bool:
        """Whether a chunk that waits has this text, and stands in its place from now on."""
        conn = self.store.conn
        waiting = conn.execute(
            "select id from chunk where generation_id = ? and position < 0 and text_hash = ?",
            [attempt.id, piece.text_hash],
        ).fetchone()
        if waiting is None:
            return False
        chunk, place = piece.chunk, piece.chunk.place
        conn.execute(
            "update chunk set position = ?, start_offset = ?, end_offset = ?, unit = ?,"
            " first = ?, last = ?, part = ?, place = ? where id = ?",
            [piece.position, chunk.start, chunk.end, *place, describe(place), waiting[0]],
        )
        conn.execute(
            "update chunk set text = ?1, subject = ?2, context = ?3"
            " where id = ?4 and (text, subject, context) <> (?1, ?2, ?3)",
            [chunk.text, *known, waiting[0]],
        )
        return True

    def _insert(self, attempt: Attempt, known: tuple[str, str], pieces: Sequence[Piece]) -> None:
        """All in one statement: the full text is written out at the end of each."""
        conn = self.store.conn
        values = [
            value
            for position, chunk, text_hash, _ in pieces
            for value in (
                *(attempt.id, position, chunk.start, chunk.end, *chunk.place),
                *(describe(chunk.place), chunk.text, *known, text_hash),
            )
        ]
        row = f"({', '.join('?' * (len(values) // len(pieces)))})"
        conn.execute(
            "insert into chunk (generation_id, position, start_offset, end_offset, unit, first,"
            " last, part, place, text, subject, context, text_hash) values "
            + ", ".join([row] * len(pieces)),
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
        title: str | None,
        kind: str,
        record: RecordText,
        concepts: Mapping[str, Sequence[int]],
        redactions: Sequence[Redaction] = (),
    ) -> None:
        """Ends an attempt: its chunks are what the version has of the document from now on, and in
        a version that is live what is searched.

        ``concepts`` are names with the positions of the chunks that carry them.
        """
        with self.store.writing() as conn:
            if not attempt.is_first:
                self._make_way(attempt, version)
            ((count,),) = conn.execute(
                "select count(*) from chunk where generation_id = ?", [attempt.id]
            ).fetchall()
            conn.execute(
                "update generation set is_complete = 1, chunk_count = ? where id = ?",
                [count, attempt.id],
            )
            self._carried.link_generation(attempt.id, concepts)
            conn.executemany(
                "insert into redaction (generation_id, family, place, removed) values (?, ?, ?, ?)",
                [[attempt.id, *redaction] for redaction in redactions],
            )
            self._describe(attempt.document_id, entry, title, kind, as_json(record))
            self._locate(attempt.document_id, entry.locations)
            self._name(attempt.document_id, record)
            if version.state == "live":
                self._show(attempt.document_id, attempt.id, count)
            self._troubles.forget(version.source_id, entry.key)

    def _make_way(self, attempt: Attempt, version: Version) -> None:
        """Removes what an attempt takes the place of, and what an earlier one left in it."""
        conn, document_id = self.store.conn, attempt.document_id
        conn.execute("delete from chunk where generation_id = ? and position < 0", [attempt.id])
        self._drop(document_id, version.id, complete=True)
        conn.execute("delete from document_name where document_id = ?", [document_id])
        conn.execute("delete from location where document_id = ?", [document_id])

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
        self._carried.show(document_id)

    def _describe(
        self, document_id: int, entry: Entry, title: str | None, kind: str, record: str
    ) -> None:
        conn = self.store.conn
        conn.execute(
            "update document set key = ?, title = ?, names_itself = ?, kind = ?, path = ?,"
            " created_at = ?, item_table = ?, is_active = ?, record = ?, orphaned_in = null,"
            " is_unverified = 0 where id = ?",
            [
                *(entry.key, title or entry.title, title is not None, kind, entry.path),
                *(entry.created_at, entry.item_table, entry.is_active, record, document_id),
            ],
        )

    def _name(self, document_id: int, record: RecordText) -> None:
        """Notes by which names a question may call what a document is about."""
        conn = self.store.conn
        words = {in_words(name) for name in names_of(record)}
        conn.executemany(
            "insert into document_name (document_id, name) values (?, ?)",
            [
                (document_id, name)
                for name in sorted(words)
                if name and name.count(" ") < MOST_IN_NAME
            ],
        )

    def _locate(self, document_id: int, locations: Sequence[Location]) -> None:
        self.store.conn.executemany(
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
            conn.execute(
                "delete from document where id = ?1"
                " and not exists (select 1 from generation where document_id = ?1)",
                [attempt.document_id],
            )

    def refresh(self, known: Known, version: Version, entry: Entry) -> None:
        """That a document is what it was, though it was touched, moved or renamed."""
        with self.store.writing() as conn:
            self._rename(known, entry)
            conn.execute(
                "update generation set fingerprint = ?, size = ? where id = ?",
                [entry.fingerprint, entry.size, known.generation_id],
            )
            conn.execute(
                "update document set key = ?, path = ?, created_at = ?, item_table = ?,"
                " is_active = ?, orphaned_in = null, is_unverified = 0, problem = null,"
                " title = case when names_itself then title else ? end where id = ?",
                [
                    *(entry.key, entry.path, entry.created_at, entry.item_table),
                    *(entry.is_active, entry.title, known.document_id),
                ],
            )
            self._drop(known.document_id, version.id, complete=False)
            conn.execute("delete from location where document_id = ?", [known.document_id])
            self._locate(known.document_id, entry.locations)
            self._troubles.forget(version.source_id, entry.key)

    def _rename(self, known: Known, entry: Entry) -> None:
        """What the title of a document is to its text when it is a new one and not in the text:
        the full text follows it, vectors stay as they are."""
        conn = self.store.conn
        row = conn.execute(
            "select record from document where id = ? and not names_itself and title <> ?",
            [known.document_id, entry.title],
        ).fetchone()
        record = row and from_json(row[0])
        if not record or not record.subject or entry.item_table:
            return
        record = replace(record, subject=entry.title)
        conn.execute(
            "update document set record = ? where id = ?", [as_json(record), known.document_id]
        )
        conn.execute("delete from document_name where document_id = ?", [known.document_id])
        self._name(known.document_id, record)
        conn.execute(
            "update chunk set subject = ? where generation_id = ?",
            [subject_text(record), known.generation_id],
        )

    def drop_leftovers(self, known: Known, version: Version) -> None:
        """Removes what an attempt left of a document that is as it was."""
        with self.store.writing():
            self._drop(known.document_id, version.id, complete=False)

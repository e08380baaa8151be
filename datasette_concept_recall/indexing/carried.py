"""Which concepts documents carry: noted with chunks, and with each document that is searched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ..reading import json_list
from .store import Store

_words = re.compile(r"\w").search


class Carried:
    """The concepts of documents; what is written is written in transactions of the store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def mentioning(self, source_id: int, name: str) -> list[int]:
        """The documents of a source that may mention a name: all that do are among them."""
        if not _words(name):  # nothing of it is in the full text
            sql = "select id from document where source_id = ? and live_generation is not null"
            return [row[0] for row in self.store.rows(sql, source_id)]
        sql = (
            "select distinct d.id from chunk_fts f join chunk c on c.id = f.rowid"
            " join document d on d.live_generation = c.generation_id"
            " where d.source_id = ? and f.text match ?"
        )
        phrase = '"' + name.replace('"', '""') + '"'
        return [row[0] for row in self.store.rows(sql, source_id, phrase)]

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
            self.link_generation(rows[0][0], concepts)
            self.show(document_id)

    def show(self, document_id: int) -> None:
        """What a document carries is what the chunks of its live generation carry."""
        conn = self.store.conn
        conn.execute("delete from document_concept where document_id = ?", [document_id])
        conn.execute(
            "insert into document_concept select distinct d.id, cc.concept_id from document d"
            " join chunk c on c.generation_id = d.live_generation"
            " join chunk_concept cc on cc.chunk_id = c.id where d.id = ?",
            [document_id],
        )

    def link_generation(self, generation_id: int, concepts: Mapping[str, Sequence[int]]) -> None:
        """Adds concepts to the chunks of a generation: names with positions."""
        if not concepts:
            return
        conn = self.store.conn
        numbers = self._numbers(concepts)
        if missing := [[name] for name in concepts if name not in numbers]:
            conn.executemany("insert into concept (name) values (?)", missing)
            conn.executemany(  # whose names stay when nothing carries them any more
                "insert into known_name (name) select ?1"
                " where not exists (select 1 from known_name where name = ?1)",
                missing,
            )
            numbers = self._numbers(concepts)
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

    def _numbers(self, names: Iterable[str]) -> dict[str, int]:
        """The ids of concepts that are there, by name."""
        sql = "select name, id from concept where name in (select value from json_each(?))"
        return dict(self.store.rows(sql, json_list(names)))

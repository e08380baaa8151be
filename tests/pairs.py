"""A database with the index beside the same one without, to which the same is done.

with Pair(writers.database(seed=1)) as pair:
    pair.take(("delete from records where id = ?", (1,)))
    pair.compare_all()
"""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import knowledge
import recall_oracle
import writers
from datasette_concept_recall import RecallError, optimizing, search
from datasette_concept_recall.models import RecallRequest
from datasette_concept_recall.vocabulary import Vocabulary
from writers import OPTIMIZE, Step

ALL = RecallRequest(names=("mint", "RAG", "zoo", "jam"), facets=True)
REQUESTS = [
    ALL,
    replace(ALL, names=("rag",), limit=2),
    replace(ALL, text="A zoo of mint, and jam.", names=("RAG",), limit=3),
    replace(ALL, project="Lunch", limit=1),
    replace(ALL, types=frozenset({"record", "document_gist"}), limit=2),
    replace(ALL, types=frozenset({"document_section", "observation"}), project="Supper"),
]
EVERY = frozenset(knowledge.TABLES)
VISIBLE = [
    EVERY - {"record_concepts"},
    EVERY - {"documents", "projects"},
    frozenset({"concepts", "observations", "observation_concepts"}),
]


class Pair:
    """A database with the index and the same one without, to which the same is done."""

    def __init__(self, plain: sqlite3.Connection) -> None:
        self.plain, self.indexed = plain, sqlite3.connect(":memory:", isolation_level=None)
        plain.backup(self.indexed)
        self._vocabularies = {id(conn): Vocabulary() for conn in (plain, self.indexed)}
        self.optimize()

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, *_: object) -> None:
        self.plain.close()
        self.indexed.close()

    def optimize(self) -> None:
        if not self.indexed.in_transaction:
            optimizing.optimize(self.indexed)

    def take(self, step: Step) -> None:
        """Takes one step in both, which has to go the same way."""
        if step == OPTIMIZE:
            self.optimize()
        else:
            assert outcome(self.indexed, *step) == outcome(self.plain, *step), step

    def recall(self, conn: sqlite3.Connection, request: RecallRequest, **more: Any) -> object:
        """All pages of an answer, or the error instead."""
        vocabulary, pages, after = self._vocabularies[id(conn)], [], None
        try:
            while not pages or after:
                page = replace(request, after=after)
                pages.append(search.recall(conn, page, vocabulary=vocabulary, **more))
                after = pages[-1].next_key
        except RecallError as error:
            return repr(error)
        return pages

    def compare(self, request: RecallRequest, visible: Collection[str] | None = None) -> object:
        """Asks both; the answer."""
        answer = self.recall(self.indexed, request, visible=visible)
        assert answer == self.recall(self.plain, request, visible=visible)
        return answer

    def compare_some(self, number: int) -> None:
        """Asks for everything, and one of the rarer questions."""
        self.compare(ALL)
        more = number % (len(REQUESTS) + len(VISIBLE))
        if more < len(REQUESTS):
            self.compare(REQUESTS[more])
        else:
            self.compare(replace(ALL, limit=4), VISIBLE[more - len(REQUESTS)])

    def compare_all(self) -> None:
        """Asks everything, and holds the answer against the oracle."""
        for request in REQUESTS:
            self.compare(request)
        for visible in VISIBLE:
            self.compare(replace(ALL, limit=4), visible)
        (answer,) = self.compare(ALL)  # type: ignore[misc]
        expected = recall_oracle.recall_by_concept_names(self.plain, ALL.names)
        assert list(map(dataclasses.asdict, answer.matches)) == expected


def outcome(conn: sqlite3.Connection, sql: str, parameters: tuple[object, ...] = ()) -> object:
    """What a statement does: the rows it changed and the last one inserted, or its error."""
    try:
        cursor = conn.execute(sql, parameters)
    except sqlite3.Error as error:
        return type(error), str(error), conn.in_transaction
    inserts = sql.startswith("insert") and "do update" not in sql and cursor.rowcount > 0
    inserted = cursor.lastrowid if inserts else None  # or it is that of a statement before
    return cursor.fetchall(), cursor.rowcount, inserted, conn.in_transaction


def content(conn: sqlite3.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables of the knowledge."""
    return {
        table: conn.execute(f"select rowid, * from {table} order by rowid").fetchall()
        for table in EVERY
    }


def is_used(conn: sqlite3.Connection) -> bool:
    """Whether the next recall uses the index."""
    return Vocabulary().mapping(conn).is_indexed


def small() -> Pair:
    """A pair of databases in which every source has something."""
    return Pair(writers.database(5))

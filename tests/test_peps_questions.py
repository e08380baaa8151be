"""Two dozen questions about Python in words that no concept of its proposals has.

``peps_questions.jsonl`` has each with the one record that was judged to answer it. The words were
chosen as somebody would who does not know those of the record, so many of them find nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from datasette_concept_recall.file_layers import recall_with_layers
from datasette_concept_recall.indexing.store import Store
from datasette_concept_recall.models import RecallRequest
from datasette_concept_recall.registered import embedder_named
from datasette_concept_recall.vocabulary import match_concept_names
from indexing import run

QUESTIONS = [
    json.loads(line)
    for line in Path(__file__).with_name("peps_questions.jsonl").read_text("utf-8").splitlines()
]


@pytest.fixture
def conn(peps: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"file:{peps}?mode=ro", uri=True)) as conn:
        yield conn


def test_there_are_at_least_twenty_and_none_names_a_concept(conn: sqlite3.Connection) -> None:
    """So concepts find nothing, and every target is a record that holds."""
    assert len(QUESTIONS) >= 20
    for question in QUESTIONS:
        assert match_concept_names(conn, question["query"]) == []
        id_ = question["target"].removeprefix("record:")
        assert conn.execute("select status from records where id = ?", [id_]).fetchone() in (
            ("accepted",),
            ("proposed",),
        )


def test_words_alone_find_two_in_five_among_the_first_five(
    peps: Path, conn: sqlite3.Connection, tmp_path: Path
) -> None:
    """What the lexical layer finds in an index of the records gets no worse than it is."""
    index = tmp_path / "index.db"
    with Store(index) as store:
        source = store.add_source("peps", "rows", str(peps), {"tables": ["records"]})
        run(store, source)
    found = 0
    for question in QUESTIONS:
        request = RecallRequest(question["query"], limit=5, mode="lexical")
        answer = recall_with_layers(conn, peps, request, partial(embedder_named, None), index)
        found += question["target"] in [match.ref for match in answer.matches]
    assert found >= 10

"""Vocabularies are loaded before anybody asks, and nothing depends on it."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest

import knowledge
from conftest import MakeDatasette
from datasette_concept_recall.instances import vocabulary_for, warm_up


@pytest.mark.asyncio
async def test_the_first_request_finds_the_vocabulary_loaded(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """What the warm-up built serves the first request, which builds nothing."""
    path = tmp_path / "kb.db"
    with closing(knowledge.create(path)) as conn:
        knowledge.add_observation(conn, "About RAG", concepts=["RAG"])
        conn.commit()
    datasette = make_datasette(path)
    await datasette.invoke_startup()
    warm_up(datasette).join()
    vocabulary = vocabulary_for(datasette, "kb")
    assert vocabulary.builds == 1
    assert (await datasette.client.get("/kb/-/recall.json?q=RAG")).json()["total"] == 1
    assert vocabulary.builds == 1


@pytest.mark.asyncio
async def test_a_file_that_is_no_database_does_not_stop_the_warm_up(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """A broken file is passed over, and the next one is loaded all the same."""
    broken, path = tmp_path / "a.db", tmp_path / "b.db"
    broken.write_bytes(b"no database at all" * 100)
    with closing(knowledge.create(path)) as conn:
        knowledge.add_concept(conn, "RAG")
        conn.commit()
    datasette = make_datasette(path)
    datasette.add_database(type(datasette.get_database("b"))(datasette, path=str(broken)), "a")
    thread = warm_up(datasette)
    thread.join()
    assert vocabulary_for(datasette, "b").builds == 1
    assert thread not in threading.enumerate()

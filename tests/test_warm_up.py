"""Vocabularies and vectors are loaded before anybody asks, and nothing depends on it."""

from __future__ import annotations

import shutil
import threading
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import knowledge
from conftest import MakeDatasette
from datasette_concept_recall import semantic_layers
from datasette_concept_recall.indexing.ids import EmbedderIdentity
from datasette_concept_recall.indexing.store import Store
from datasette_concept_recall.instances import vocabulary_for, warm_up
from datasette_concept_recall.semantic import VectorIndex
from indexing import FakeClock
from layer_worlds import (
    AUTOMOBILE,
    Meanings,
    build,
    configured,
    eventually,
    meaning_of,
    registered,
    titles,
)


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


class Panic(BaseException):
    """As what a library written in Rust raises: no `Exception`."""


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", [ValueError, SystemExit, Panic])
async def test_nothing_that_goes_wrong_with_one_file_stops_the_warm_up(
    tmp_path: Path,
    make_datasette: MakeDatasette,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: type[BaseException],
) -> None:
    """It is logged with the name of the file, and the next one is loaded all the same."""
    for name in ("a", "b"):
        with closing(knowledge.create(tmp_path / f"{name}.db")) as conn, conn:
            knowledge.add_concept(conn, "RAG")
    datasette = make_datasette(tmp_path / "a.db", tmp_path / "b.db")

    def failing(conn: object) -> None:
        raise kind("out of order")

    monkeypatch.setattr(vocabulary_for(datasette, "a"), "matcher", failing)
    warm_up(datasette).join()
    assert vocabulary_for(datasette, "b").builds == 1
    assert "a could not be read in the background" in caplog.text
    assert "out of order" in caplog.text


class Odd(Meanings):
    """An embedder with the same vectors, that never answers, or panics when it is loaded."""

    def __init__(self, panics: bool) -> None:
        self.panics = panics
        super().__init__()
        self.name, self.released = "odd", threading.Event()

    @property
    def identity(self) -> EmbedderIdentity:
        if self.panics:
            raise Panic("out of order")
        return self._identity

    @identity.setter
    def identity(self, identity: EmbedderIdentity) -> None:
        self._identity = identity

    def embed_query(self, text: str) -> Any:
        self.released.wait(60)
        return [meaning_of(text)]


@pytest.mark.asyncio
@pytest.mark.parametrize("what", ["cannot be read", "panics", "never answers"])
async def test_a_large_index_is_read_whatever_is_with_the_one_before_it(
    tmp_path: Path, make_datasette: MakeDatasette, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Its turn comes, or else the first question has it read."""
    monkeypatch.setattr(semantic_layers, "VectorIndex", partial(VectorIndex, by_bytes=0))
    world, first = build(tmp_path), tmp_path / "first.db"
    shutil.copy(world.library, first)
    odd, usual = Odd(what == "panics"), Meanings()
    with closing(Store(first, FakeClock())) as store:
        store.set_setting("embedder_names", {usual.identity.name: odd.name})
        store.set_setting("embedder", odd.name)
        if what == "cannot be read":
            with store.writing() as conn:
                conn.execute("update setting set value = 'odd' where name = 'embedder'")
    with registered(odd, usual):
        datasette = make_datasette(first, world.library, config=configured())
        await datasette.invoke_startup()
        try:
            found = await eventually(datasette, "index", "Where do we park the car?")
            assert AUTOMOBILE in titles(found)
        finally:
            odd.released.set()

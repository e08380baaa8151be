"""The vector of a question: whatever an embedder does, recall answers, and says what it misses."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy
import pytest

from datasette_concept_recall.fusion import Fusion
from datasette_concept_recall.indexing.embedding import EmbedderFailure
from datasette_concept_recall.indexing.store import Store
from datasette_concept_recall.layer_search import Semantic, search_layers
from datasette_concept_recall.layered import Layers
from datasette_concept_recall.lexical import Within
from datasette_concept_recall.models import RecallRequest
from datasette_concept_recall.query_vectors import LONGEST, QueryVectors
from datasette_concept_recall.search import recall
from datasette_concept_recall.semantic import VectorIndex
from indexing import FakeClock, FakeEmbedder, add_folder, run, write_note

PATIENCE = 30.0
"""Seconds that no test ever waits unless something is broken."""


class Questions(FakeEmbedder):
    """An embedder whose answers to questions are made by a function, which may raise or wait."""

    def __init__(self, answer: Callable[[str], Any] | None = None) -> None:
        super().__init__()
        self.answer = answer
        self.asked: list[str] = []

    def embed_query(self, text: str) -> Any:
        self.asked.append(text)
        return super().embed_query(text) if self.answer is None else self.answer(text)


def always(value: Any) -> Callable[[str], Any]:
    return lambda text: value


def broken(text: str) -> Any:
    raise ValueError("the model is gone")


def refused(text: str) -> Any:
    raise EmbedderFailure("auth", "The key is refused")


class Gate:
    """An embedder that waits until it is let through, and can be waited for."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.embedder = Questions(self._wait)

    def _wait(self, text: str) -> Any:
        assert self.opened.wait(PATIENCE)
        return [[3.0, 4.0, 0.0]]

    def let_through(self) -> None:
        """Lets all that wait go on, and waits for their end."""
        self.opened.set()
        for thread in threading.enumerate():
            if thread.name == "concept-recall-in-time":
                thread.join(PATIENCE)


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.let_through()


BAD = {
    "exception": (broken, "internal", "ValueError: the model is gone"),
    "failure": (refused, "auth", "The key is refused"),
    "nan": (always([[1.0, math.nan, 0.0]]), "invalid", "has no direction"),
    "infinite": (always([[1.0, math.inf, 0.0]]), "invalid", "has no direction"),
    "zeros": (always([[0.0, 0.0, 0.0]]), "invalid", "has no direction"),
    "two vectors": (always([[1.0, 0.0, 0.0]] * 2), "invalid", "(2, 3)"),
    "no vector": (always([]), "invalid", "(0,)"),
    "one dimension": (always([1.0, 0.0, 0.0]), "invalid", "(3,)"),
    "three dimensions": (always([[[1.0, 0.0, 0.0]]]), "invalid", "(1, 1, 3)"),
    "ragged": (always([[1.0], [1.0, 2.0]]), "internal", "ValueError"),
    "nothing": (always(None), "invalid", "()"),
    "words": (always([["one", "two", "three"]]), "internal", "ValueError"),
    "width": (always([[1.0, 0.0]]), "invalid", "it gave 2 numbers, and the index has vectors of 3"),
    "empty": (always([[]]), "invalid", ""),
}
KINDS = list(BAD)


@pytest.mark.parametrize("deadline", [None, PATIENCE])
def test_a_vector_has_the_length_one(deadline: float | None) -> None:
    """Whatever length an embedder gives, what is compared is float32 of length 1."""
    queries = QueryVectors(Questions(always([[3.0, 4.0, 0.0]])))
    found = queries.vector("tea", 3, deadline)
    assert found.dtype == numpy.float32
    assert found.tolist() == pytest.approx([0.6, 0.8, 0.0])


def test_an_array_is_taken_as_well_as_lists() -> None:
    """An embedder may give numpy arrays of other numbers, too."""
    queries = QueryVectors(Questions(always(numpy.array([[0, 2, 0]], "int16"))))
    found = queries.vector("tea", 3, None)
    assert (found.dtype, found.tolist()) == (numpy.float32, [0.0, 1.0, 0.0])


@pytest.mark.parametrize("deadline", [None, PATIENCE])
@pytest.mark.parametrize("bad", KINDS)
def test_what_is_no_vector_is_refused_and_says_why(bad: str, deadline: float | None) -> None:
    """Every wrong answer is the same kind of failure, with and without a deadline."""
    answer, kind, problem = BAD[bad]
    with pytest.raises(EmbedderFailure) as failure:
        QueryVectors(Questions(answer)).vector("tea", 3, deadline)
    assert failure.value.kind == kind
    assert problem in str(failure.value)


@pytest.mark.parametrize("bad", [kind for kind in KINDS if kind not in ("width", "empty")])
def test_a_failure_is_not_remembered(bad: str) -> None:
    """When an embedder works again, the same question is answered."""
    embedder = Questions(BAD[bad][0])
    queries = QueryVectors(embedder)
    for _ in range(10):  # more than may run at once
        with pytest.raises(EmbedderFailure):
            queries.vector("tea", 3, PATIENCE)
    embedder.answer = always([[0.0, 1.0, 0.0]])
    assert queries.vector("tea", 3, PATIENCE).tolist() == [0.0, 1.0, 0.0]


def test_a_vector_of_another_width_does_not_stay() -> None:
    """Once an embedder gives the width of the index again, its answer is taken."""
    embedder = Questions(always([[1.0, 0.0]]))
    queries = QueryVectors(embedder)
    with pytest.raises(EmbedderFailure):
        queries.vector("tea", 3, None)
    embedder.answer = always([[0.0, 1.0, 0.0]])
    assert queries.vector("tea", 3, None).tolist() == [0.0, 1.0, 0.0]


# --- what is known -------------------------------------------------------------------------------


def test_a_question_is_embedded_once() -> None:
    """The same text is not asked again, another one is."""
    embedder = Questions()
    queries = QueryVectors(embedder)
    first = queries.vector("tea", 3, None)
    assert queries.vector("tea", 3, PATIENCE).tolist() == first.tolist()
    queries.vector("Tea", 3, None)
    assert embedder.asked == ["tea", "Tea"]


def test_the_least_recently_asked_question_is_forgotten_first() -> None:
    """What is remembered is bounded, and what is asked often stays."""
    embedder = Questions()
    queries = QueryVectors(embedder)
    queries.vector("often", 3, None)
    queries.vector("once", 3, None)
    for n in range(255):
        queries.vector(f"question {n}", 3, None)
        queries.vector("often", 3, None)
    assert embedder.asked.count("often") == 1
    queries.vector("once", 3, None)
    assert embedder.asked.count("once") == 2


def test_a_long_question_is_embedded_by_its_beginning() -> None:
    """Of a huge text so many characters are given to an embedder as say what it is about."""
    embedder = Questions()
    queries = QueryVectors(embedder)
    queries.vector("x" * 200_000, 3, None)
    queries.vector("x" * LONGEST + "y", 3, None)
    assert embedder.asked == ["x" * LONGEST]


# --- time ----------------------------------------------------------------------------------------


def test_nobody_waits_longer_than_the_deadline(gate: Gate) -> None:
    """Who asks is told that it took too long, while the embedder goes on."""
    queries = QueryVectors(gate.embedder)
    with pytest.raises(EmbedderFailure) as failure:
        queries.vector("tea", 3, 0.01)
    assert failure.value.kind == "timeout"
    assert str(failure.value) == "it took longer than 10 ms"


def test_what_comes_too_late_is_kept_for_the_next_time(gate: Gate) -> None:
    """A slow answer is not thrown away: asked again, it is there at once."""
    queries = QueryVectors(gate.embedder)
    with pytest.raises(EmbedderFailure):
        queries.vector("tea", 3, 0.01)
    gate.let_through()
    gate.embedder.answer = broken
    assert queries.vector("tea", 3, 0.01).tolist() == pytest.approx([0.6, 0.8, 0.0])
    assert gate.embedder.asked == ["tea"]


def test_no_more_than_a_few_questions_hang_at_once(gate: Gate) -> None:
    """An embedder that never answers takes no thread for every question, and is asked again once
    it did answer."""
    queries = QueryVectors(gate.embedder)
    for n in range(9):
        with pytest.raises(EmbedderFailure) as failure:
            queries.vector(f"question {n}", 3, 0.005)
        assert failure.value.kind == "timeout"
    assert str(failure.value) == "it has not answered earlier questions yet"
    assert len(gate.embedder.asked) == 4
    gate.let_through()
    assert len(queries.vector("another", 3, PATIENCE)) == 3


def test_a_question_that_is_known_is_answered_while_others_hang(gate: Gate) -> None:
    """What was embedded before needs no embedder."""
    gate.opened.set()
    queries = QueryVectors(gate.embedder)
    queries.vector("tea", 3, PATIENCE)
    gate.opened.clear()
    for n in range(5):
        with pytest.raises(EmbedderFailure):
            queries.vector(f"question {n}", 3, 0.005)
    assert len(queries.vector("tea", 3, 0.005)) == 3


def test_a_thread_that_cannot_be_started_is_a_failure_like_any_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the machine has no thread left, the layer is missing, and comes back by itself."""
    queries = QueryVectors(Questions())

    def none_left(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none_left)
        for _ in range(6):
            with pytest.raises(EmbedderFailure, match="can't start new thread"):
                queries.vector("tea", 3, PATIENCE)
    assert len(queries.vector("tea", 3, PATIENCE)) == 3


# --- recall goes on ------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An index of two notes with vectors of three numbers."""
    write_note(tmp_path / "notes", "kettle.md", "The kettle whistles.")
    write_note(tmp_path / "notes", "bread.md", "Bread is baked.")
    with closing(Store(tmp_path / "index.db", FakeClock())) as opened_store:
        source = add_folder(opened_store, tmp_path / "notes")
        run(opened_store, source, embedder=FakeEmbedder())
        yield opened_store


def answered(
    store: Store, embedder: Questions, mode: Any = "auto", deadline: float | None = PATIENCE
) -> tuple[list[str], Layers, list[str]]:
    """What a recall finds: titles and layers; and what it says that it misses."""
    request = RecallRequest(text="Where is the kettle?", mode=mode, limit=5)
    semantic = Semantic(VectorIndex(FakeEmbedder().identity.name), QueryVectors(embedder), deadline)
    before = recall(store.conn, request)
    assert before.wants_layers
    layers = search_layers(store.conn, request, Within(), Fusion(), semantic)
    after = recall(store.conn, request, layers=layers)
    assert not after.wants_layers
    return [match.title for match in after.matches], layers, after.warnings


@pytest.mark.parametrize("bad", KINDS)
def test_recall_goes_on_without_an_embedder_that_fails(store: Store, bad: str) -> None:
    """What the words find is there, and the answer says why the meaning was not asked."""
    titles, layers, warnings = answered(store, Questions(BAD[bad][0]))
    assert titles == ["kettle"]
    assert [ranked.layer for ranked in layers.lists] == ["lexical"]
    (warning,) = warnings
    assert warning.startswith("Answered without the semantic layer: ")
    assert BAD[bad][2] in warning


def test_recall_goes_on_without_an_embedder_that_is_slow(store: Store, gate: Gate) -> None:
    """Over the deadline the answer comes without the layer, and says so."""
    titles, _, warnings = answered(store, gate.embedder, deadline=0.01)
    assert titles == ["kettle"]
    assert len(warnings) == 1
    assert "it took longer than" in warnings[0]


def test_a_failure_in_the_semantic_mode_is_an_empty_answer_with_a_warning(store: Store) -> None:
    """Where nothing but the meaning was asked for, there is nothing in its place."""
    titles, layers, warnings = answered(store, Questions(broken), "semantic")
    assert (titles, layers.lists) == ([], ())
    assert "the model is gone" in warnings[0]


@pytest.mark.parametrize("mode", ["lexical", "auto"])
def test_who_works_is_not_warned_of(store: Store, mode: str) -> None:
    """With an embedder that answers, or one that is not needed, there is nothing to say."""
    embedder = Questions()
    titles, _, warnings = answered(store, embedder, mode)
    assert (titles, warnings) == (["kettle"], [])
    assert len(embedder.asked) == (mode == "auto")


def test_without_vectors_nobody_is_asked_and_nothing_is_said(tmp_path: Path) -> None:
    """An index that has no vectors is as one without an embedder."""
    write_note(tmp_path / "notes", "kettle.md", "The kettle whistles.")
    with closing(Store(tmp_path / "index.db", FakeClock())) as store:
        run(store, add_folder(store, tmp_path / "notes"))
        embedder = Questions(broken)
        assert answered(store, embedder)[::2] == (["kettle"], [])
        assert embedder.asked == []

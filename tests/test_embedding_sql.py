"""Vectors in SQL: what `embed` and `cosine_similarity` return, refuse, and when they stop."""

from __future__ import annotations

import logging
import math
import sqlite3
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_concept_recall import sql_functions
from datasette_concept_recall.errors import RecallError
from datasette_concept_recall.indexing.ids import EmbedderIdentity
from datasette_concept_recall.indexing.store import Store
from datasette_concept_recall.sql_functions import register_embedding
from indexing import FakeClock, add_folder, run, write_note

FIVE_HUNDRED = (
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < 500)"
    " select {} as found from n"
)

# What a function raised is told to Python's hook for errors that nobody can catch.
may_fail = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Letters:
    """How often "a", "b" and "c" are in a text; documents say so in other numbers than questions.

    ``asked`` is every question. ``answer`` may raise, or give something else for a question.
    """

    name = "letters"
    batch_size = 10
    dimensions = 3
    identity = EmbedderIdentity("letters")

    def __init__(
        self, *, is_remote: bool = False, answer: Callable[[str], Any] | None = None
    ) -> None:
        self.is_remote, self.answer = is_remote, answer
        self.asked: list[str] = []

    def count_tokens(self, text: str) -> int:
        return len(text)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return [[2 * x for x in letters(text)] for text in texts]

    def embed_query(self, text: str) -> Any:
        self.asked.append(text)
        return [letters(text)] if self.answer is None else self.answer(text)


def letters(text: str) -> list[float]:
    counts = [float(text.count(letter)) for letter in "abc"]
    length = math.hypot(*counts)
    return [count / length for count in counts] if length else counts


def vector(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


@pytest.fixture
def embedder() -> Letters:
    return Letters()


@pytest.fixture
def conn(embedder: Letters) -> Iterator[sqlite3.Connection]:
    """A plain connection with the functions of that embedder."""
    with closing(sqlite3.connect(":memory:")) as connection:
        register_embedding(connection, lambda: embedder)
        yield connection


def value(conn: sqlite3.Connection, expression: str, *parameters: object) -> Any:
    """What an expression is in SQL."""
    ((found,),) = conn.execute(f"select {expression}", parameters).fetchall()
    return found


# --- embed ---------------------------------------------------------------------------------------


def test_embed_is_the_vector_of_a_question(conn: sqlite3.Connection) -> None:
    """It is a BLOB of little-endian float32, made as questions are and not as documents."""
    assert value(conn, "embed('b')") == b"\x00\x00\x00\x00\x00\x00\x80\x3f\x00\x00\x00\x00"
    assert value(conn, "typeof(embed('abc'))") == "blob"
    assert value(conn, "embed('aaaabbb')") == vector(0.8, 0.6, 0)


@pytest.mark.parametrize("text", [None, "", "xyz", 17])
def test_embed_is_null_where_there_is_no_direction(conn: sqlite3.Connection, text: object) -> None:
    """NULL has no vector, and of zeros nobody could say what they are near to."""
    assert value(conn, "embed(?)", text) is None


def test_zeros_have_no_direction_whatever_their_sign(conn: sqlite3.Connection) -> None:
    """A vector of negative zeros is none either."""
    with closing(sqlite3.connect(":memory:")) as other:
        register_embedding(other, lambda: Letters(answer=lambda text: [[-0.0, 0.0]]))
        assert value(other, "embed('a')") is None


def test_embed_reads_every_value_as_text(conn: sqlite3.Connection, embedder: Letters) -> None:
    """Bytes are UTF-8, and numbers are as they are shown."""
    assert value(conn, "embed(x'61')") == vector(1, 0, 0)
    value(conn, "embed(12.5)")
    assert embedder.asked == ["a", "12.5"]


def test_embed_reads_the_beginning_of_a_long_text(
    conn: sqlite3.Connection, embedder: Letters
) -> None:
    """Two thousand characters, so that one call cannot take minutes."""
    assert value(conn, "embed(?)", "a" * 2_000 + "b" * 100_000) == vector(1, 0, 0)
    assert [len(text) for text in embedder.asked] == [2_000]


def test_a_question_is_embedded_once_for_all_rows(
    conn: sqlite3.Connection, embedder: Letters
) -> None:
    """A query that compares each of 500 rows with it asks the embedder a single time."""
    call = "sum(cosine_similarity(?, embed('a')))"
    found = conn.execute(FIVE_HUNDRED.format(call), [vector(2, 0, 0)]).fetchone()
    assert found == (500,)
    assert embedder.asked == ["a"]


def test_the_embedder_is_looked_up_when_a_text_is_embedded() -> None:
    """One that is configured after the connection was opened is used."""
    found: list[Letters] = []
    with closing(sqlite3.connect(":memory:")) as conn:
        register_embedding(conn, lambda: found[0] if found else None)
        assert value(conn, "embed(null)") is None
        found.append(Letters())
        assert value(conn, "embed('a')") == vector(1, 0, 0)


# --- what fails ----------------------------------------------------------------------------------


def refused(found: Callable[[], Any], caplog: pytest.LogCaptureFixture) -> str:
    """What the log says of a query that embeds a text and fails for it, and only it."""
    with closing(sqlite3.connect(":memory:")) as conn:
        register_embedding(conn, found)
        with (
            caplog.at_level(logging.WARNING),
            pytest.raises(sqlite3.OperationalError, match="user-defined function raised exception"),
        ):
            conn.execute("select embed('a')").fetchall()
        assert value(conn, "cosine_similarity(?1, ?1)", vector(1)) == 1
        assert not conn.in_transaction
    (record,) = caplog.records
    assert record.name == "datasette_concept_recall"
    return record.getMessage()


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: object) -> Any:
        raise error

    return fail


@may_fail
def test_a_remote_embedder_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """No text reaches it: whoever may write SQL does not decide what leaves the machine."""
    remote = Letters(is_remote=True)
    assert refused(lambda: remote, caplog) == (
        "embed() in SQL: letters is remote: no query may send texts to another machine"
    )
    assert remote.asked == []


@may_fail
def test_without_an_embedder_a_text_cannot_be_embedded(caplog: pytest.LogCaptureFixture) -> None:
    """The query fails: a NULL would say that the text has no direction."""
    assert refused(lambda: None, caplog) == "embed() in SQL: No embedder is configured"


@may_fail
def test_an_embedder_that_cannot_be_had_fails_the_query(caplog: pytest.LogCaptureFixture) -> None:
    """Why is in the log, as when its library was removed meanwhile."""
    error = RecallError("The embedder letters is not installed")
    assert refused(raising(error), caplog) == f"embed() in SQL: {error}"


@may_fail
@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (raising(ValueError("out of order")), "ValueError: out of order"),
        (raising(OverflowError("too big")), "OverflowError: too big"),
        (raising(sqlite3.OperationalError("interrupted")), "OperationalError: interrupted"),
        (lambda text: [[1.0, math.nan]], "A vector holds what is no finite number"),
        (lambda text: [[1.0, 1e300]], "A vector holds a number too large for 32 bits"),
        (lambda text: [], "0 vectors came for 1 texts"),
        (lambda text: [[]], "A vector of 0 numbers came where 0 were expected"),
        (lambda text: [1.0, 2.0], "TypeError: 'float' object is not iterable"),
    ],
)
def test_an_embedder_that_fails_fails_the_query_and_no_more(
    caplog: pytest.LogCaptureFixture, answer: Callable[[str], Any], problem: str
) -> None:
    """Nothing that is no vector is returned, the reason is in the log, the connection works on."""
    assert refused(lambda: Letters(answer=answer), caplog) == f"embed() in SQL: {problem}"


# --- cosine_similarity ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "similarity"),
    [
        ((1, 0), (1, 0), 1),
        ((1, 0), (0, 1), 0),
        ((1, 2), (-1, -2), -1),
        ((3, 4), (4, 3), 0.96),
        ((3, 4), (400, 300), 0.96),  # lengths do not count
        ((1e-30, 0), (1e30, 1e30), math.sqrt(0.5)),
        ((5,), (0.1,), 1),
    ],
)
def test_cosine_similarity_is_the_cosine(
    conn: sqlite3.Connection,
    left: tuple[float, ...],
    right: tuple[float, ...],
    similarity: float,
) -> None:
    """It is the scalar product over the product of the lengths, in either order."""
    pairs = [(vector(*left), vector(*right)), (vector(*right), vector(*left))]
    for pair in pairs:
        found = value(conn, "cosine_similarity(?, ?)", *pair)
        assert found == pytest.approx(similarity, abs=1e-7)


WIDTH = 8
numbers = st.lists(st.floats(-1e6, 1e6, width=32), min_size=WIDTH, max_size=WIDTH)


@settings(max_examples=100, deadline=None)
@given(numbers)
def test_cosine_similarity_never_leaves_the_range_of_a_cosine(found: list[float]) -> None:
    """A vector and itself are at 1, and never a rounding above it."""
    with closing(sqlite3.connect(":memory:")) as conn:
        register_embedding(conn, lambda: None)
        same = value(conn, "cosine_similarity(?1, ?1)", vector(*found))
    assert same is None if not any(found) else 1 - 1e-9 < same <= 1


@settings(max_examples=100, deadline=None)
@given(numbers, numbers)
def test_cosine_similarity_agrees_with_exact_sums(left: list[float], right: list[float]) -> None:
    """It is the cosine for any numbers, and NULL where a vector has no length."""
    with closing(sqlite3.connect(":memory:")) as conn:
        register_embedding(conn, lambda: None)
        found = value(conn, "cosine_similarity(?, ?)", vector(*left), vector(*right))
    if not any(left) or not any(right):
        assert found is None
        return
    product = math.fsum(x * y for x, y in zip(left, right, strict=True))
    assert found == pytest.approx(product / (math.hypot(*left) * math.hypot(*right)), abs=1e-9)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (None, vector(1)),
        (None, None),
        (vector(1, 0), vector(1)),  # other widths
        (b"", b""),
        (b"\0\0", b"\0\0"),  # not a whole number
        (vector(1) + b"\0", vector(1) + b"\0"),
        (vector(0, 0), vector(1, 0)),
        (vector(math.nan, 1), vector(1, 1)),
        (vector(math.inf, 1), vector(1, 1)),
        ("aaaa", vector(1)),
        ("aaaa", "aaaa"),
        (1, 1),
        (0.5, vector(1)),
    ],
)
def test_cosine_similarity_is_null_for_what_cannot_be_compared(
    conn: sqlite3.Connection, embedder: Letters, left: object, right: object
) -> None:
    """In either order, and a text is never embedded behind the back of who asks."""
    assert value(conn, "cosine_similarity(?, ?)", left, right) is None
    assert value(conn, "cosine_similarity(?, ?)", right, left) is None
    assert embedder.asked == []


def test_the_vectors_of_an_index_are_ordered_by_a_question(
    embedder: Letters, tmp_path: Path
) -> None:
    """What is stored can be compared as it is."""
    for text in ("abc", "bbb", "aab"):
        write_note(tmp_path / "notes", f"{text}.md", text)
    with closing(Store(tmp_path / "index.db", FakeClock())) as store:
        run(store, add_folder(store, tmp_path / "notes"), embedder=embedder)
    with closing(sqlite3.connect(tmp_path / "index.db")) as conn:
        register_embedding(conn, lambda: embedder)
        found = conn.execute(
            "select text, round(cosine_similarity(embedding, embed('a')), 3) from vector"
            " join chunk on chunk.id = chunk_id order by 2 desc"
        ).fetchall()
    assert found == [("aab", 0.894), ("abc", 0.577), ("bbb", 0.0)]


# --- the time limit ------------------------------------------------------------------------------


def test_a_query_that_embeds_row_after_row_stops_at_its_time_limit(
    conn: sqlite3.Connection, embedder: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that strikes with the third text lets no more than one further be embedded."""
    monkeypatch.setattr(sql_functions, "_UNCHECKED_SECONDS", 0)
    conn.set_progress_handler(lambda: len(embedder.asked) >= 3, 1000)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        conn.execute(FIVE_HUNDRED.format("embed(i || 'a')")).fetchall()
    assert 3 <= len(embedder.asked) <= 4
    assert not conn.in_transaction


def test_a_query_that_compares_row_after_row_stops_at_its_time_limit(
    conn: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is looked at within the comparisons too."""
    monkeypatch.setattr(sql_functions, "_UNCHECKED_SECONDS", 0)
    compared: list[float] = []
    original = sql_functions._cosine_similarity

    def counted(left: object, right: object) -> float | None:
        compared.append(1)
        return original(left, right)

    monkeypatch.setattr(sql_functions, "_cosine_similarity", counted)
    register_embedding(conn, lambda: None)
    conn.set_progress_handler(lambda: len(compared) >= 3, 1000)
    sql = FIVE_HUNDRED.format("cosine_similarity(?, zeroblob(i))")
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        conn.execute(sql, [vector(1, 2)]).fetchall()
    assert 3 <= len(compared) <= 4

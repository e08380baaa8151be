"""The semantic layer against the plainest computation, and how it stays true to the index."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datasette_concept_recall.indexing.tables import migrate
from datasette_concept_recall.layered import Passage
from datasette_concept_recall.lexical import Within
from datasette_concept_recall.reading import reading
from datasette_concept_recall.semantic import Asked, VectorIndex, floor

EVERYWHERE = Within()
OURS, OTHER = "ours||", "other||"

FORMS = {"bytes": (100_000, 100_000), "bytes and bits": (0, 100_000), "bits": (0, 0)}
"""What is held of vectors: up to how many only bytes, and up to how many bytes at all."""


def held_as(form: str) -> VectorIndex:
    """An index that holds vectors in one form, or in all of them one after the other."""
    return VectorIndex(OURS, *FORMS.get(form, (12, 16)))


class Shelf:
    """An index whose vectors are written straight into its tables.

    Version 1 is of the embedder whose vectors are asked for, version 2 of another one.
    """

    def __init__(self, path: str | Path = ":memory:") -> None:
        self.conn = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.conn.execute("pragma foreign_keys = on")
        migrate(self.conn)
        for id_, embedder in ((1, OURS), (2, OTHER)):
            self.conn.execute(
                "insert into source (id, name, kind, origin, added_at)"
                " values (?1, ?1, 'folder', '', '')",
                [id_],
            )
            self.conn.execute(
                "insert into index_version (id, source_id, signature, embedder, state, started_at)"
                " values (?1, ?1, '', ?2, 'live', '')",
                [id_, embedder],
            )

    def close(self) -> None:
        self.conn.close()

    def put(
        self,
        vectors: Sequence[Any],
        id_: int | None = None,
        *,
        version: int = 1,
        source: int = 1,
        kind: str = "note",
        table: str | None = None,
        is_active: bool = True,
    ) -> int:
        """Shows a document, which may be there already, with a chunk for each vector; its id."""
        conn = self.conn
        conn.execute("begin")
        if id_ is None or not conn.execute("select 1 from document where id = ?", [id_]).fetchone():
            cursor = conn.execute(
                "insert into document (id, source_id, key, title, kind, path, item_table,"
                " is_active) values (?, ?, randomblob(8), '', ?, '', ?, ?)",
                [id_, source, kind, table, is_active],
            )
            id_ = cursor.lastrowid
        conn.execute("delete from generation where document_id = ? and version_id = ?",
                     [id_, version])  # fmt: skip
        generation = conn.execute(
            "insert into generation (document_id, version_id, fingerprint, content_hash,"
            " is_complete, started_at) values (?, ?, '', '', 1, '')",
            [id_, version],
        ).lastrowid
        for position, vector in enumerate(vectors):
            chunk = conn.execute(
                "insert into chunk (generation_id, position, text, text_hash, start_offset,"
                " end_offset) values (?, ?, '', x'', 0, 0)",
                [generation, position],
            ).lastrowid
            stored = vector if isinstance(vector, bytes) else as_bytes(vector)
            conn.execute("insert into vector values (?, ?)", [chunk, stored])
        conn.execute("update document set live_generation = ? where id = ?", [generation, id_])
        conn.execute("commit")
        assert id_ is not None
        return id_

    def remove(self, id_: int) -> None:
        self.conn.execute("delete from document where id = ?", [id_])

    def chunks(self) -> list[int]:
        return [id_ for (id_,) in self.conn.execute("select id from chunk")]

    def nearest(
        self, index: VectorIndex, query: Any, limit: int = 10, **asked: Any
    ) -> list[Passage]:
        """What an index answers; every text is admitted unless it is said otherwise."""
        with reading(self.conn) as reader:
            return index.nearest(reader, to(query, **asked), limit)

    def ids(self, index: VectorIndex, query: Any, limit: int = 10, **asked: Any) -> list[int]:
        return [each.document for each in self.nearest(index, query, limit, **asked)]


def everything(chunks: Sequence[int] | None) -> Any:
    """All chunks have a topical word."""
    return numpy.arange(10_000) if chunks is None else chunks


def nothing(chunks: Sequence[int] | None) -> Sequence[int]:
    """No chunk has a topical word."""
    return []


def only(admitted: Iterable[int]) -> Any:
    """Those of the chunks that are asked for that are admitted."""
    some = set(admitted)
    return lambda chunks: sorted(some if chunks is None else some & set(chunks))


def to(
    query: Any, within: Within = EVERYWHERE, named: Sequence[int] = (), admitted: Any = None
) -> Asked:
    return Asked(unit(query), within, within, named, admitted or everything)


def unit(vector: Any) -> Any:
    """The vector with a length of 1, as float32."""
    found = numpy.asarray(vector, "float64")
    length = numpy.linalg.norm(found)
    return (found / (length or 1.0)).astype("float32")


def as_bytes(vector: Any) -> bytes:
    return bytes(unit(vector).astype("<f4").tobytes())


def exact(vectors: dict[int, Sequence[Any]], query: Any) -> list[tuple[int, float]]:
    """Every document with the cosine of its nearest chunk, nearest first: the definition."""
    asked = unit(query).astype("float64")
    best = {
        id_: max(float(unit(vector).astype("float64") @ asked) for vector in each)
        for id_, each in vectors.items()
    }
    return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))


def clustered(seed: int, number: int, width: int = 64, clusters: int = 40) -> Any:
    """Vectors as texts have them: in groups, with a direction that all of them share."""
    rng = numpy.random.default_rng(seed)
    centres = rng.normal(size=(clusters, width)) + 1.0
    return centres[rng.integers(clusters, size=number)] + rng.normal(size=(number, width)) * 0.7


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    with closing(Shelf()) as made:
        yield made


# --- the order -----------------------------------------------------------------------------------

numbers = st.integers(-8, 8)
four = st.lists(numbers, min_size=4, max_size=4).filter(any)


@given(st.lists(st.lists(four, min_size=1, max_size=3), min_size=1, max_size=12), four)
@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("form", FORMS)
def test_what_is_admitted_comes_in_the_order_of_the_exact_cosine(
    form: str, documents: list[list[list[int]]], query: list[int]
) -> None:
    """Each document comes once, by its nearest chunk, with its true similarity."""
    with closing(Shelf()) as shelf:
        stored = {shelf.put(vectors): vectors for vectors in documents}
        found = shelf.nearest(held_as(form), query, 100)
    oracle = dict(exact(stored, query))
    assert sorted(each.document for each in found) == sorted(stored)
    similarities = [each.similarity for each in found]
    assert similarities == sorted(similarities, reverse=True)
    for each in found:
        assert each.similarity == pytest.approx(oracle[each.document], abs=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", ["shuffled", "one cluster after the other"])
def test_the_ten_nearest_of_thousands_are_found(form: str, shape: str) -> None:
    """In every form at least 95 of 100 are found of what the exact scan gives."""
    some = clustered(1, 6_020)
    queries, vectors = some[:20], some[20:]
    if shape != "shuffled":
        vectors = vectors[numpy.argsort(vectors @ vectors[0])]
    units = numpy.array([unit(vector) for vector in vectors])
    with closing(Shelf()) as shelf:
        id_ = fill(shelf, units)
        index = held_as(form)
        hits = 0
        for query in queries:
            best = numpy.argsort(-(units @ unit(query)), kind="stable")[:10]
            found = shelf.ids(index, query)
            assert len(found) == 10
            hits += len(set(found) & {id_ + int(n) for n in best})
    assert hits >= 190


def fill(shelf: Shelf, units: Any) -> int:
    """Many documents of one chunk each, in the order of their vectors; the id of the first."""
    conn, first = shelf.conn, 1
    numbers = range(first, first + len(units))
    conn.execute("begin")
    conn.executemany("insert into document (id, source_id, key, title, kind, path)"
                     " values (?1, 1, ?1, '', 'note', '')", [[n] for n in numbers])  # fmt: skip
    conn.executemany("insert into generation (id, document_id, version_id, fingerprint,"
                     " content_hash, is_complete, started_at) values (?1, ?1, 1, '', '', 1, '')",
                     [[n] for n in numbers])  # fmt: skip
    conn.executemany("insert into chunk (id, generation_id, position, text, text_hash,"
                     " start_offset, end_offset) values (?1, ?1, 0, '', x'', 0, 0)",
                     [[n] for n in numbers])  # fmt: skip
    stored = [each.astype("<f4").tobytes() for each in units]
    conn.executemany("insert into vector values (?, ?)", zip(numbers, stored, strict=True))
    conn.execute("update document set live_generation = id")
    conn.execute("commit")
    return first


@pytest.mark.parametrize("form", FORMS)
def test_chunks_of_one_document_do_not_crowd_out_the_others(shelf: Shelf, form: str) -> None:
    """So many documents come as are asked for, though one of them has all of the nearest chunks."""
    long = shelf.put([[100, n, 0, 1] for n in range(60)])
    others = [shelf.put([[0, 50 + n, 10, 0]]) for n in range(10)]
    found = shelf.ids(held_as(form), [100, 20, 0, 0], 3)
    assert found[0] == long
    assert len(found) == 3
    assert set(found[1:]) <= set(others)


@pytest.mark.parametrize("form", FORMS)
def test_equal_similarities_come_in_the_order_of_documents(form: str) -> None:
    """The order is total: it does not depend on the order in which documents were written."""
    orders = []
    for seed in range(5):
        with closing(Shelf()) as shelf:
            ids = list(range(1, 31))
            random.Random(seed).shuffle(ids)
            for id_ in ids:
                shelf.put([[1, 2, 3, 0], [0, 1, 0, id_ % 3]], id_)
            orders.append(shelf.ids(held_as(form), [1, 2, 3, 0], 40))
    assert orders == [list(range(1, 31))] * 5


@pytest.mark.parametrize("form", FORMS)
def test_the_limit_cuts_equal_similarities_the_same_way(form: str) -> None:
    """Which of many equal documents come is told by their order, too."""
    for seed in range(5):
        with closing(Shelf()) as shelf:
            ids = list(range(1, 61))
            random.Random(seed).shuffle(ids)
            for id_ in ids:
                shelf.put([[1, 2, 3, 0]], id_)
            shelf.put([[0, 0, -1, 2]], 100)
            assert shelf.ids(held_as(form), [1, 2, 3, 1], 3) == [1, 2, 3]


# --- what is admitted ----------------------------------------------------------------------------


def test_the_floor_grows_with_the_number_of_texts() -> None:
    """The more texts there are, the more similar one of them is by chance."""
    floors = [floor(size) for size in (0, 1, 2, 10, 100, 1_200, 100_000, 10_000_000)]
    assert floors == sorted(floors)
    assert floors[0] == floors[2] < floors[3]
    assert floor(1_200) == pytest.approx(4.33, abs=0.01)
    assert floor(100_000) == pytest.approx(5.52, abs=0.01)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_near_by_chance_is_not_admitted(shelf: Shelf, form: str) -> None:
    """Of unrelated texts none is similar enough; one that says the same is, without any word."""
    rng = numpy.random.default_rng(3)
    units = numpy.array([unit(each) for each in rng.normal(size=(1_500, 64))])
    fill(shelf, units)
    index = held_as(form)
    queries = rng.normal(size=(40, 64))
    by_chance = [shelf.ids(index, query, admitted=nothing) for query in queries]
    assert sum(map(bool, by_chance)) <= 4
    close = units[700] + rng.normal(size=64) * 0.02
    found = shelf.nearest(index, close, admitted=nothing)
    assert found[0].document == 701
    assert len(found) <= 2


@pytest.mark.parametrize("form", FORMS)
def test_a_topical_word_admits_whatever_is_not_similar(shelf: Shelf, form: str) -> None:
    """Texts that have a word of the question come by their similarity, and no others."""
    stored = {shelf.put([vector]): [vector] for vector in clustered(4, 50, 16)}
    query = clustered(5, 1, 16)[0]
    some = only([3, 11, 40])
    expected = [id_ for id_, _ in exact(stored, query) if id_ in (3, 11, 40)]
    assert shelf.ids(held_as(form), query, admitted=some) == expected
    assert shelf.ids(held_as(form), query, 2, admitted=some) == expected[:2]


def test_a_document_that_is_named_counts_as_nearer(shelf: Shelf) -> None:
    """The whole name of a subject brings a text forward by one standard deviation, and tells the
    similarity as it is."""
    a, b, c = shelf.put([[10, 0]]), shelf.put([[10, 3]]), shelf.put([[-10, 1]])
    index = VectorIndex(OURS)
    assert shelf.ids(index, [1, 0]) == [a, b, c]
    found = shelf.nearest(index, [1, 0], named=[b])
    assert [each.document for each in found] == [b, a, c]
    assert found[0].similarity == pytest.approx(10 / 109**0.5)
    assert shelf.ids(index, [1, 0], named=[c]) == [a, b, c], "it is too far for that"


@pytest.mark.parametrize("form", FORMS)
def test_what_is_not_within_takes_no_place_of_the_limit(shelf: Shelf, form: str) -> None:
    """Sources, tables, kinds and what holds no longer are left out before the limit cuts."""
    for n in range(1_200):
        shelf.put([[100, n % 7, 0, 1]], kind="row", table="records")
    shelf.put([[100, 0, 0, 1]], is_active=False)
    note = shelf.put([[-1, 1, 5, 3]])
    row = shelf.put([[-1, 1, 4, 3]], kind="row", table="observations")
    index = held_as(form)
    query = [100, 0, 0, 1]
    assert shelf.ids(index, query, 1, within=Within(kinds=frozenset({"note"}))) == [note]
    assert shelf.ids(index, query, 1, within=Within(tables=frozenset({"observations"}))) == [row]
    both = Within(frozenset({1}), frozenset({"records"}), frozenset({"row"}))
    assert shelf.ids(index, query, 3, within=both) == [1, 8, 15]
    for none in (
        Within(sources=frozenset()),
        Within(tables=frozenset()),
        Within(kinds=frozenset()),
    ):
        assert shelf.ids(index, query, within=none) == []


# --- what is there -------------------------------------------------------------------------------


def test_without_vectors_there_is_no_width_and_no_answer(shelf: Shelf) -> None:
    """An empty index answers with nothing, and answers once there is something."""
    index = VectorIndex(OURS)
    with reading(shelf.conn) as reader:
        assert index.width(reader) is None
    assert shelf.ids(index, [1, 0]) == []
    first = shelf.put([[1, 0]])
    with reading(shelf.conn) as reader:
        assert index.width(reader) == 2
    assert shelf.ids(index, [1, 0]) == [first]
    shelf.remove(first)
    assert shelf.ids(index, [1, 0]) == []
    second = shelf.put([[1, 0]])
    assert shelf.ids(index, [1, 0]) == [second]


def test_vectors_of_another_embedder_are_never_compared(shelf: Shelf) -> None:
    """Two models give numbers that have nothing to do with each other, whatever their width."""
    ours = shelf.put([[1, 5]])
    theirs = shelf.put([[1, 0]], version=2, source=2)
    assert shelf.ids(VectorIndex(OURS), [1, 0]) == [ours]
    assert shelf.ids(VectorIndex(OTHER), [1, 0]) == [theirs]
    assert shelf.ids(VectorIndex("third||"), [1, 0]) == []


def test_a_question_of_another_width_has_no_answer(shelf: Shelf) -> None:
    """What cannot be compared is not."""
    shelf.put([[1, 0]])
    assert shelf.ids(VectorIndex(OURS), [1, 0, 0]) == []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("odd", [b"", b"\x00" * 4, b"\x00\x00\x80?" * 9, b"\x01\x02\x03"])
def test_a_vector_of_another_width_is_ignored(shelf: Shelf, form: str, odd: bytes) -> None:
    """A row that somebody wrote wrongly is not found, and keeps no other one from being found."""
    good = [shelf.put([[n, 1, 0]]) for n in range(1, 5)]
    index = held_as(form)
    shelf.put([odd])
    fresh = held_as(form)
    assert shelf.ids(fresh, [4, 1, 0]) == good[::-1]
    mixed = shelf.put([odd, [9, 1, 0]])
    assert shelf.ids(fresh, [4, 1, 0]) == shelf.ids(index, [4, 1, 0])
    assert set(shelf.ids(index, [4, 1, 0])) == {*good, mixed}


def test_a_vector_that_was_deleted_behind_its_back_is_not_served(shelf: Shelf) -> None:
    """What is in memory is only a hint: what is told comes from the tables."""
    a, b = shelf.put([[1, 0]]), shelf.put([[1, 1]])
    index = VectorIndex(OURS)
    assert shelf.ids(index, [1, 0]) == [a, b]
    shelf.conn.execute("delete from vector where chunk_id = 1")
    assert shelf.ids(index, [1, 0]) == [b]


# --- keeping it true -----------------------------------------------------------------------------


def same_as_fresh(shelf: Shelf, index: VectorIndex, form: str, seed: int) -> None:
    """Asserts that an index answers as one that reads everything now."""
    fresh = held_as(form)
    for query in clustered(seed, 4, 8):
        for within in (
            EVERYWHERE,
            Within(kinds=frozenset({"mail"})),
            Within(tables=frozenset("t")),
        ):
            found = shelf.nearest(index, query, 200, within=within)
            assert found == shelf.nearest(fresh, query, 200, within=within)


@pytest.mark.parametrize("form", FORMS)
def test_changes_are_followed_without_reading_everything(shelf: Shelf, form: str) -> None:
    """Documents that came, changed, went, or hold no longer are read by themselves."""
    vectors = iter(clustered(6, 500, 8))
    ids = [shelf.put([next(vectors), next(vectors)]) for _ in range(40)]
    index = held_as(form)
    same_as_fresh(shelf, index, form, 1)
    steps = [
        lambda: shelf.put([next(vectors)]),
        lambda: shelf.put([next(vectors)], ids[3]),
        lambda: shelf.put([next(vectors) for _ in range(5)], ids[4]),
        lambda: shelf.remove(ids[5]),
        lambda: shelf.conn.execute("update document set is_active = 0 where id = ?", [ids[6]]),
        lambda: shelf.conn.execute("update document set is_active = 1 where id = ?", [ids[6]]),
        lambda: shelf.conn.execute("update document set kind = 'mail' where id = ?", [ids[7]]),
        lambda: shelf.conn.execute("update document set item_table = 't' where id = ?", [ids[8]]),
        lambda: shelf.conn.execute("update document set live_generation = null where id = ?",
                                   [ids[9]]),
        lambda: shelf.conn.execute("delete from generation where document_id = ?", [ids[10]]),
        lambda: shelf.put([next(vectors)], version=2, source=2),
        lambda: [shelf.put([next(vectors)]) for _ in range(5)] and shelf.remove(ids[0]),
        lambda: shelf.conn.execute("update document set title = 'x'"),
    ]  # fmt: skip
    for seed, step in enumerate(steps):
        step()
        same_as_fresh(shelf, index, form, seed)
    assert index.loads == 1


@given(st.lists(st.tuples(st.sampled_from("acrx"), st.integers(0, 20)), max_size=25))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("form", [*FORMS, "changing"])
def test_after_any_changes_it_is_as_if_everything_was_read(
    form: str, changes: list[tuple[str, int]]
) -> None:
    """Whatever is added, changed, removed or superseded, and whenever it is asked in between."""
    vectors = iter(clustered(7, 200, 8))
    with closing(Shelf()) as shelf:
        ids = [shelf.put([next(vectors)]) for _ in range(10)]
        index = held_as(form)
        shelf.ids(index, [1] * 8)
        for number, (kind, place) in enumerate(changes):
            id_ = ids[place % len(ids)]
            if kind == "a":
                ids.append(shelf.put([next(vectors)]))
            elif kind == "c":
                shelf.put([next(vectors), next(vectors)], id_)
            elif kind == "r":
                shelf.remove(id_)
            else:
                shelf.conn.execute(
                    "update document set is_active = not is_active where id = ?", [id_]
                )
            if number % 4 == 0:
                shelf.ids(index, [1] * 8)
        same_as_fresh(shelf, index, form, 11)


def test_nothing_is_read_when_nothing_changed(shelf: Shelf) -> None:
    """What is held is used as it is until the log of the index grows."""
    shelf.put([[1, 0]])
    index = VectorIndex(OURS)
    shelf.ids(index, [1, 0])
    statements: list[str] = []
    shelf.conn.set_trace_callback(statements.append)
    shelf.ids(index, [1, 0])
    shelf.conn.set_trace_callback(None)
    assert statements
    assert not [each for each in statements if "item_table, d.kind, v.embedding" in each]
    assert index.loads == 1


def test_everything_is_read_anew_where_the_log_is_too_short(shelf: Shelf) -> None:
    """Changes that the log has forgotten are not missed."""
    a = shelf.put([[1, 0]])
    index = VectorIndex(OURS)
    assert shelf.ids(index, [1, 0]) == [a]
    b, c = shelf.put([[1, 1]]), shelf.put([[1, 2]])
    shelf.conn.execute("delete from live_change where document_id in (?, ?)", [a, b])
    assert shelf.ids(index, [1, 0]) == [a, b, c]
    assert index.loads == 2
    d = shelf.put([[1, 3]])
    shelf.conn.execute("delete from live_change")
    assert shelf.ids(index, [1, 0]) == [a, b, c, d]
    assert index.loads == 3
    shelf.ids(index, [1, 0])
    assert index.loads == 3


def test_a_copy_that_is_restored_is_told_from_what_it_was_a_copy_of(shelf: Shelf) -> None:
    """Whether it then has fewer changes, as many others, or more of its own."""
    a = shelf.put([[1, 0]])
    with closing(sqlite3.connect(":memory:")) as copy:
        shelf.conn.backup(copy)
        index = VectorIndex(OURS)
        b = shelf.put([[1, 1]])
        shelf.remove(a)
        assert shelf.ids(index, [1, 0]) == [b]
        for changes in range(4):
            copy.backup(shelf.conn)
            expected = [a, *(shelf.put([[1, n]]) for n in range(changes))]
            index._held_since -= 11  # seconds that went by
            assert shelf.ids(index, [1, 0]) == expected
            shelf.remove(a)
            assert shelf.ids(index, [1, 0]) == expected[1:]


def test_what_is_similar_by_chance_does_not_follow_one_text_that_changes_often(
    shelf: Shelf,
) -> None:
    """The sample of unrelated texts stays one of all texts, without those that are gone."""
    vectors = clustered(5, 400, 16)
    ids = [shelf.put([vector]) for vector in vectors]
    index = VectorIndex(OURS, 50, 100_000)
    query = clustered(6, 1, 16)[0]
    shelf.ids(index, query)
    for n in range(120):
        shelf.put([vectors[n % 3]], ids[0])
        shelf.ids(index, query)
    for id_ in ids[1:200]:
        shelf.remove(id_)
    shelf.ids(index, query)
    held = index._held
    assert held is not None
    assert index.loads == 1
    there = set(ids[:1] + ids[200:])
    sampled = held.documents[held.sampled].tolist()
    assert len(sampled) == len(set(sampled)) > 100
    assert set(sampled) <= there
    for place, vector in zip(held.sampled, held.sample, strict=True):
        at = ids.index(held.documents[place])
        assert numpy.allclose(vector, unit(vectors[119 % 3 if at == 0 else at]))


@pytest.mark.parametrize("direction", ["grows", "shrinks"])
def test_an_index_is_held_in_the_other_way_when_its_size_is_another(
    shelf: Shelf, direction: str
) -> None:
    """Beyond the number up to which bytes are scanned it is read again, and not at every step."""
    if direction == "shrinks":
        for n in range(30):
            shelf.put([[n, 1]])
    index = VectorIndex(OURS, 10, 20)
    shelf.ids(index, [1, 0])
    for n in range(30):
        if direction == "grows":
            shelf.put([[n, 1]])
        else:
            shelf.remove(n + 1)
        same = VectorIndex(OURS, 10, 20)
        assert shelf.ids(index, [1, 0], 50) == shelf.ids(same, [1, 0], 50)
    assert 3 <= index.loads <= 8


def test_another_connection_shares_what_was_read(tmp_path: Path) -> None:
    """Threads with connections of their own read the vectors once, and each sees what is there."""
    with closing(Shelf(tmp_path / "index.db")) as shelf:
        shelf.conn.execute("pragma journal_mode = wal")
        expected = [shelf.put([[10, n]]) for n in range(5)]
        index = VectorIndex(OURS)
        found: list[list[int]] = []

        def ask() -> None:
            with closing(sqlite3.connect(tmp_path / "index.db")) as conn, reading(conn) as reader:
                found.append([p.document for p in index.nearest(reader, to([1, 0]), 10)])

        def ask_in_threads() -> None:
            threads = [threading.Thread(target=ask) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)

        ask_in_threads()
        assert found == [expected] * 6
        expected.append(shelf.put([[10, 9]]))
        found.clear()
        ask_in_threads()
        assert found == [expected] * 6
        assert index.loads == 1


def test_an_old_snapshot_is_answered_as_it_was(tmp_path: Path) -> None:
    """A reader whose transaction began earlier sees neither what came nor what is held by others,
    who are not disturbed by it."""
    with closing(Shelf(tmp_path / "index.db")) as shelf:
        shelf.conn.execute("pragma journal_mode = wal")
        a, b = shelf.put([[10, 1]]), shelf.put([[10, 2]])
        index = VectorIndex(OURS)
        with closing(sqlite3.connect(tmp_path / "index.db", isolation_level=None)) as old:
            old.execute("begin")
            old.execute("select count(*) from document").fetchall()
            c = shelf.put([[10, 0]])
            shelf.remove(a)
            assert shelf.ids(index, [1, 0]) == [c, b]
            with reading(old) as reader:
                then = [p.document for p in index.nearest(reader, to([1, 0]), 10)]
            assert then == [a, b]
            loads = index.loads
            assert shelf.ids(index, [1, 0]) == [c, b]
            assert index.loads == loads


def test_what_a_transaction_has_not_committed_is_not_kept(shelf: Shelf) -> None:
    """A caller in a transaction sees its own changes, and nobody does when they are undone."""
    a = shelf.put([[10, 1]])
    index = VectorIndex(OURS)
    assert shelf.ids(index, [1, 0]) == [a]
    shelf.conn.execute("begin")
    shelf.conn.execute("update document set is_active = 0")
    assert shelf.ids(index, [1, 0]) == []
    shelf.conn.execute("rollback")
    shelf.conn.execute("update document set kind = 'mail'")  # the log is as long as it was then
    assert shelf.ids(index, [1, 0], within=Within(kinds=frozenset({"mail"}))) == [a]
    assert shelf.ids(index, [1, 0], within=Within(kinds=frozenset({"note"}))) == []

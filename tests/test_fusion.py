"""Several layers become one order, and only what may be served comes into it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from math import fsum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import knowledge
from datasette_concept_recall.candidates import Behind, CandidateList, Narrowing
from datasette_concept_recall.fusion import Fusion
from datasette_concept_recall.indexing.store import Store
from datasette_concept_recall.layer_search import references, search_layers, wanted
from datasette_concept_recall.layered import (
    DocumentTarget,
    Finding,
    Layers,
    RankedList,
    RefTarget,
    RowTarget,
    Target,
)
from datasette_concept_recall.lexical import Within
from datasette_concept_recall.models import (
    MODES,
    Candidate,
    LayerHit,
    RankKey,
    RecallRequest,
    RecallResult,
)
from datasette_concept_recall.ranking import reciprocal_rank_fusion
from datasette_concept_recall.search import recall
from indexing import SMALL, FakeClock, add_folder, run, write_note

# --- the formula ---------------------------------------------------------------------------------

ranked_lists = st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=4)
weighted = st.floats(0, 4, allow_nan=False, allow_subnormal=False)


def plain(
    lists: Sequence[Sequence[int]], weights: Sequence[float], k: float
) -> dict[int, tuple[float, tuple[int, int]]]:
    """The sum of each item as the formula says, with the best rank that it has, and where."""
    found = {}
    for item in {item for ranked in lists for item in ranked}:
        ranks = [
            (list(dict.fromkeys(ranked)).index(item) + 1, number)
            for number, ranked in enumerate(lists)
            if item in ranked
        ]
        found[item] = fsum(weights[number] / (k + rank) for rank, number in ranks), min(ranks)
    return found


@given(
    ranked_lists, st.lists(weighted, min_size=4, max_size=4), st.sampled_from([0, 1, 5, 60, 2.5])
)
@settings(max_examples=200)
def test_ranks_are_fused_as_the_formula_says(
    lists: list[list[int]], weights: list[float], k: float
) -> None:
    """Every item comes once with the sum of weight / (k + rank), the best first."""
    weights = weights[: len(lists)]
    found = reciprocal_rank_fusion(lists, weights or None, k)
    expected = plain(lists, weights, k)
    assert {item for item, _ in found} == set(expected)
    assert len(found) == len(expected)
    sums = [score for _, score in found]
    assert sums == pytest.approx([expected[item][0] for item, _ in found])
    assert sums == sorted(sums, reverse=True)


@given(ranked_lists)
@settings(max_examples=200)
def test_without_weights_every_list_counts_the_same(lists: list[list[int]]) -> None:
    """Equal sums are ordered by the best rank, then by the list that gives it."""
    expected = plain(lists, [1.0] * len(lists), 5)
    order = sorted(expected, key=lambda item: (-expected[item][0], expected[item][1]))
    assert [item for item, _ in reciprocal_rank_fusion(lists)] == order


@given(st.permutations(range(6)), st.permutations(range(6)), st.permutations(range(6)))
@settings(max_examples=100)
def test_a_sum_does_not_depend_on_the_order_of_the_lists(
    a: list[int], b: list[int], c: list[int]
) -> None:
    """The same ranks are the same sum, whichever list gives which of them."""
    sums = dict(reciprocal_rank_fusion([a, b, c]))
    assert sums == dict(reciprocal_rank_fusion([c, a, b]))
    ranks = {item: sorted(each.index(item) for each in (a, b, c)) for item in sums}
    for one in sums:
        for other in sums:
            assert ranks[one] != ranks[other] or sums[one] == sums[other]


def test_a_list_without_weight_adds_what_no_other_has_at_the_end() -> None:
    """A weight of 0 leaves the order of the others as it is."""
    found = reciprocal_rank_fusion([["a", "b"], ["z", "b", "y"]], [1.0, 0.0])
    assert [item for item, _ in found] == ["a", "b", "z", "y"]
    assert [score for _, score in found[2:]] == [0.0, 0.0]


@pytest.mark.parametrize(("k", "first"), [(0, "a"), (5, "c"), (60, "c")])
def test_a_small_k_says_that_first_places_count_more(k: int, first: str) -> None:
    """With a k of 0 one first place is worth more than two third ones, with a larger one less."""
    found = reciprocal_rank_fusion([["a", "b", "c"], ["d", "e", "c"]], k=k)
    assert found[0][0] == first


def test_nothing_fuses_to_nothing() -> None:
    """No lists, and empty ones, are an empty order."""
    assert reciprocal_rank_fusion([]) == reciprocal_rank_fusion([[], []]) == []


def test_a_weight_for_every_list_is_asked_for() -> None:
    """Weights that do not fit the lists are an error, not a guess."""
    with pytest.raises(ValueError, match="argument"):
        reciprocal_rank_fusion([["a"], ["b"]], [1.0])


# --- behind the concepts -------------------------------------------------------------------------

types = st.sampled_from(["record", "observation"])
projects = st.sampled_from([None, 1, 2])
carrying = st.lists(
    st.builds(
        Candidate,
        st.builds(RankKey, st.integers(-2, -1), st.integers(-3, 1), st.just(0), st.integers(0, 99)),
        types, projects, st.integers(0, 3),
    ),
    unique_by=lambda candidate: candidate.key, max_size=6,
)  # fmt: skip
fused = st.lists(st.tuples(types, projects), max_size=6).map(
    lambda each: [
        Candidate(RankKey(0, n, 1, n), type_, project, 0)
        for n, (type_, project) in enumerate(each, 1)
    ]
)
narrowings = st.builds(
    Narrowing,
    st.frozensets(types, max_size=1),
    st.none() | st.frozensets(st.integers(1, 2), max_size=2),
)


@given(carrying, fused, narrowings, st.none() | st.integers(0, 8), st.integers(0, 12))
@settings(max_examples=150)
def test_candidates_behind_others_are_one_list(
    first: list[Candidate],
    behind: list[Candidate],
    narrowing: Narrowing,
    limit: int | None,
    start: int,
) -> None:
    """They are counted, narrowed, cut and gone on from as if they had been one list all along."""
    together, both = (
        CandidateList([*first, *behind]),
        Behind(CandidateList(first), CandidateList(behind)),
    )
    assert both.total(narrowing) == together.total(narrowing)
    assert both.type_counts(narrowing) == together.type_counts(narrowing)
    assert both.project_counts(narrowing) == together.project_counts(narrowing)
    assert [both.total_of(n) for n in (0, 1)] == [together.total_of(n) for n in (0, 1)]
    places = [None, *sorted(candidate.key for candidate in together.found)]
    after = places[start % len(places)]
    assert both.best(narrowing, limit, after) == together.best(narrowing, limit, after)
    if after is not None:
        assert both.number_until(narrowing, after) == together.number_until(narrowing, after)


# --- what may be served --------------------------------------------------------------------------


@pytest.fixture
def kb() -> Iterator[sqlite3.Connection]:
    """Records 1 to 8, observations 1 to 4 and a document; record 1 and observation 1 are tagged
    with tea. Records 4 to 6 hold no longer."""
    with closing(knowledge.create()) as conn:
        add = knowledge.add_record
        add(conn, "Tea rules", "Kettle one.", concepts=["tea"], project="Kitchen")
        add(conn, "Second", "Kettle two.", project="Kitchen")
        add(conn, "Third", "Kettle three.", project="Garden")
        add(conn, "Fourth", "Kettle four.", status="superseded")
        add(conn, "Fifth", "Kettle five.", status="Rejected ")
        add(conn, "Sixth", "Kettle six.")
        add(conn, "Seventh", "Kettle seven.")
        add(conn, "Eighth", "Kettles eight.")
        knowledge.supersede_record(conn, 7, 6)
        knowledge.add_observation(conn, "Green tea.", concepts=["tea"], project="Kitchen")
        for n in (2, 3, 4):
            knowledge.add_observation(conn, f"Kettle observed {n}.", project="Kitchen")
        gist = knowledge.Section(summary="Of kettles.", status="reviewed")
        knowledge.add_document(conn, "Manual", gist=gist)
        conn.commit()
        yield conn


def lexical(*refs: str, words: tuple[str, ...] = ("kettle",)) -> RankedList:
    return RankedList("lexical", tuple(Finding(RefTarget(ref), words) for ref in refs))


def semantic(*refs: str) -> RankedList:
    return RankedList("semantic", tuple(Finding(RefTarget(ref), similarity=0.5) for ref in refs))


def answered(
    conn: sqlite3.Connection, *lists: RankedList, text: str = "the kettle for tea", **options: Any
) -> RecallResult:
    """What a recall makes of what layers found."""
    visible, fusion = options.pop("visible", None), options.pop("fusion", None)
    request = RecallRequest(text=text, **{"mode": "auto", **options})
    return recall(conn, request, layers=Layers(lists), visible=visible, fusion=fusion)


def refs(result: RecallResult) -> list[str]:
    return [match.ref for match in result.matches]


def ranks(result: RecallResult) -> dict[str, list[tuple[str, int]]]:
    """Which layer found each item at which place."""
    return {match.ref: [(hit.layer, hit.rank) for hit in match.layers] for match in result.matches}


def test_what_layers_found_comes_behind_what_concepts_found(kb: sqlite3.Connection) -> None:
    """Concepts are never displaced; behind them two lists are fused, and each item says why it is
    there."""
    found = answered(
        kb,
        lexical("record:2", "record:3", "observation:2"),
        semantic("record:3", "observation:3"),
    )
    assert refs(found) == [
        "observation:1", "record:1", "record:3", "record:2", "observation:3", "observation:2",
    ]  # fmt: skip
    assert (found.total, found.next_key) == (6, None)
    third = found.matches[2]
    assert third.layers == (
        LayerHit("lexical", 2, ("kettle",), None),
        LayerHit("semantic", 1, (), 0.5),
    )
    assert (third.match_count, third.concepts, third.title) == (0, (), "Third")
    assert [match.layers for match in found.matches[:2]] == [(), ()]
    assert found.places == sorted(found.places)


def test_an_item_that_concepts_found_is_not_repeated(kb: sqlite3.Connection) -> None:
    """It stands where its concepts put it, and takes no rank among the others."""
    found = answered(kb, lexical("record:1", "record:2", "observation:1", "record:3"))
    assert refs(found) == ["observation:1", "record:1", "record:2", "record:3"]
    assert ranks(found)["record:3"] == [("lexical", 2)]
    assert found.total == 4


def test_an_item_that_concepts_found_is_not_repeated_on_a_later_page(
    kb: sqlite3.Connection,
) -> None:
    """What stands on another page is found by its concepts all the same."""
    lists = lexical("record:1", "record:2", "observation:1")
    first = answered(kb, lists, limit=1)
    rest = answered(kb, lists, limit=10, after=first.next_key)
    assert refs(first) + refs(rest) == ["observation:1", "record:1", "record:2"]


def test_what_is_listed_twice_counts_once(kb: sqlite3.Connection) -> None:
    """A reference that is repeated in a list, in whatever form, has its first rank."""
    lists = RankedList(
        "lexical",
        (
            Finding(RefTarget("record:2"), ("first",)),
            Finding(RowTarget("records", (2,)), ("second",)),
            Finding(RefTarget("record:2")),
            Finding(RefTarget("record:3")),
        ),
    )
    found = answered(kb, lists, text="kettle")
    assert ranks(found) == {"record:2": [("lexical", 1)], "record:3": [("lexical", 2)]}
    assert found.matches[0].layers[0].words == ("first",)


GONE = ["record:4", "record:5", "record:6", "record:99", "nothing:1", "record:", "record", ""]


@pytest.mark.parametrize("gone", GONE)
def test_what_does_not_hold_is_not_served_and_leaves_no_gap(
    kb: sqlite3.Connection, gone: str
) -> None:
    """Items that were superseded, rejected, never there or are no items take no rank."""
    found = answered(kb, lexical(gone, "record:2"), semantic("record:3", gone, "record:2"))
    assert ranks(found) == {
        "observation:1": [], "record:1": [],
        "record:2": [("lexical", 1), ("semantic", 2)], "record:3": [("semantic", 1)],
    }  # fmt: skip


def test_what_may_not_be_seen_leaves_no_gap(kb: sqlite3.Connection) -> None:
    """An answer is the same, ranks and counts included, as if a hidden table had no rows."""
    lists = [
        lexical("record:2", "observation:2", "record:3", "observation:3"),
        semantic("record:7", "record:8", "observation:3"),
    ]
    tables = {name for (name,) in kb.execute("select name from sqlite_master")}
    hidden = answered(kb, *lists, visible=tables - {"records"}, facets=True)
    only = [lexical("observation:2", "observation:3"), semantic("observation:3")]
    without = answered(kb, *only, visible=tables - {"records"}, facets=True)
    assert hidden == without
    assert ranks(hidden) == {
        "observation:1": [],
        "observation:3": [("lexical", 2), ("semantic", 1)],
        "observation:2": [("lexical", 1)],
    }
    assert (hidden.total, hidden.type_counts) == (3, {"observation": 3})


def test_what_is_not_of_the_kind_or_project_asked_for_leaves_no_gap(
    kb: sqlite3.Connection,
) -> None:
    """Narrowed answers rank among what is left, and the facets tell what else there would be."""
    lists = [
        lexical("record:2", "observation:2", "record:3"),
        semantic("record:3", "observation:3"),
    ]
    records = answered(kb, *lists, types=frozenset({"record"}))
    assert ranks(records) == {
        "record:1": [],
        "record:3": [("lexical", 2), ("semantic", 1)],
        "record:2": [("lexical", 1)],
    }
    kitchen = answered(kb, *lists, project="Kitchen")
    assert ranks(kitchen) == {
        "observation:1": [], "record:1": [], "record:2": [("lexical", 1)],
        "observation:3": [("semantic", 1)], "observation:2": [("lexical", 2)],
    }  # fmt: skip
    assert answered(kb, *lists, project="Garden", types=frozenset({"observation"})).total == 0


def test_what_is_found_is_counted(kb: sqlite3.Connection) -> None:
    """Totals and facets are of all items, and the concepts are counted without the rest."""
    found = answered(kb, lexical("record:2", "record:3", "observation:2"), limit=1, facets=True)
    assert (found.total, found.type_counts) == (5, {"record": 3, "observation": 2})
    assert found.project_counts == {"Kitchen": 4, "Garden": 1}
    assert [(count.name, count.total) for count in found.counts] == [("tea", 2)]


@pytest.mark.parametrize(
    ("target", "ref"),
    [
        (RowTarget("records", (2,)), "record:2"),
        (RowTarget("observations", (2,)), "observation:2"),
        (RowTarget("document_sections", (1,)), "document_gist:1"),
        (RefTarget("document:1"), "document_gist:1"),
        (RefTarget("document_section:1"), "document_gist:1"),
        (RowTarget("projects", (1,)), None),
        (RowTarget("nothing", (1,)), None),
        (RowTarget("records", (2, 2)), None),
        (RowTarget("records", ()), None),
        (RowTarget("records", (None,)), None),
        (RowTarget("records", (b"2",)), None),
        (RowTarget("records", (4,)), None),
        (DocumentTarget(2), None),
        (RefTarget("record:99999999999999999999999"), None),
        (RefTarget("record:9223372036854775808"), None),
        (RefTarget("record:-1"), None),
        (RefTarget("record:2 or 1"), None),
        (RefTarget("record:[2]"), "record:2"),
        (RefTarget("record:[[[[2]]]]"), None),
        (RefTarget("record:" + "[" * 100_000), None),
        (RefTarget("record:\ud800"), None),
        (RefTarget("record:\x00"), None),
    ],
    ids=range(22),
)
def test_a_target_names_the_row_it_says_or_none(
    kb: sqlite3.Connection, target: Target, ref: str | None
) -> None:
    """Whatever a layer names is looked up as a value, never as SQL, and what is none is nothing."""
    found = answered(kb, RankedList("semantic", (Finding(target),)), text="kettle")
    assert refs(found) == ([] if ref is None else [ref])


def test_the_weights_and_k_decide_the_order(kb: sqlite3.Connection) -> None:
    """A layer that counts more puts its first items first."""
    lists = [lexical("record:2", "record:3"), semantic("record:7", "record:8")]
    heavy = [lists[0], RankedList("semantic", lists[1].found, 10.0)]
    assert refs(answered(kb, *lists, text="kettle"))[0] == "record:2"
    assert refs(answered(kb, *heavy, text="kettle")) == [
        "record:7",
        "record:8",
        "record:2",
        "record:3",
    ]
    one_high = [
        lexical("record:2", "record:7", "record:3"),
        semantic("record:8", "record:7", "record:3"),
    ]
    orders = {
        k: refs(answered(kb, *one_high, text="kettle", fusion=Fusion(k=k))) for k in (0.0, 60.0)
    }
    assert orders[60.0] == ["record:7", "record:3", "record:2", "record:8"]
    assert orders[0.0][0] == "record:2"


# --- texts that have yet to be admitted ----------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "served"),
    [
        ("what of the kettle?", ["record:8", "record:2"]),
        ("what of kettles?", ["record:8", "record:2"]),
        ("second", ["record:2"]),
        ("what is this?", []),
        ("samovar", []),
        ("", []),
    ],
)
def test_what_is_not_admitted_is_looked_at_for_a_topical_word(
    kb: sqlite3.Connection, text: str, served: list[str]
) -> None:
    """What another plugin finds is served only if it has to do with the question, in whatever
    number its nouns are."""
    found = answered(kb, references(["record:8", "record:2"], Fusion()), text=text, mode="semantic")
    assert refs(found) == served


@pytest.mark.parametrize("first", ["lexical", "semantic"])
def test_what_one_layer_admits_is_served_whatever_another_says(
    kb: sqlite3.Connection, first: str
) -> None:
    """An item that full text found is served, though a fallback lists it without a topical word."""
    lists = [lexical("record:2", words=("cafe",)), references(["record:2"], Fusion())]
    if first == "semantic":
        lists.reverse()
    found = answered(kb, *lists, text="the cafe", mode="auto")
    assert refs(found) == ["record:2"]


# --- which layers answer -------------------------------------------------------------------------


def test_each_mode_asks_its_layers() -> None:
    """With auto all are asked, with the name of one that one alone."""
    asked = {mode: set(wanted(RecallRequest(text="tea", mode=mode))) for mode in MODES}
    assert asked == {
        "auto": {"lexical", "semantic"},
        "concept": set(),
        "lexical": {"lexical"},
        "semantic": {"semantic"},
    }


@pytest.mark.parametrize("mode", ["lexical", "semantic"])
def test_a_mode_of_one_layer_leaves_the_concepts_out(kb: sqlite3.Connection, mode: str) -> None:
    """What is tagged is found by that layer or not at all, and is then told to be found by it."""
    found = answered(kb, lexical("record:2", "record:1"), mode=mode)
    assert ranks(found) == {"record:2": [("lexical", 1)], "record:1": [("lexical", 2)]}
    assert found.concepts == ["tea"], "which the text names all the same"


def wants(conn: sqlite3.Connection, **options: Any) -> bool:
    """Whether a recall without layers asks for them; two items are tagged with tea."""
    return recall(conn, RecallRequest(**{"text": "tea", "mode": "auto", **options})).wants_layers


def test_layers_are_wanted_where_concepts_found_less_than_was_asked_for(
    kb: sqlite3.Connection,
) -> None:
    """Concepts that fill the limit are the whole answer; without a limit nothing fills it."""
    assert [wants(kb, limit=limit) for limit in (1, 2, 3, 100)] == [False, False, True, True]
    assert [wants(kb, limit=limit) for limit in (None, 0, -1)] == [True, True, True]
    assert wants(kb, text="nothing of the kind", limit=1)
    assert wants(kb, limit=2, types=frozenset({"record"}))
    assert wants(kb, limit=1, project="Garden")


def test_every_page_of_an_answer_wants_the_same(kb: sqlite3.Connection) -> None:
    """Whether there is room is told by all that concepts found, not by what is left of it."""
    first = recall(kb, RecallRequest(text="tea", mode="auto", limit=1))
    assert not wants(kb, limit=1, after=first.next_key)
    assert wants(kb, limit=3, after=first.next_key)


def test_layers_are_not_wanted_where_they_cannot_be_asked(kb: sqlite3.Connection) -> None:
    """Who asks for concepts alone, or with names and no text, gets no more than these."""
    assert not wants(kb, mode="concept", limit=50)
    assert not recall(kb, RecallRequest(text="tea", limit=50)).wants_layers
    assert not wants(kb, text="", names=("tea",), limit=50)
    assert not wants(kb, text=" \n", names=("tea",), limit=50)
    assert wants(kb, mode="lexical", limit=1)
    assert wants(kb, mode="semantic", limit=1)


def test_layers_are_wanted_once(kb: sqlite3.Connection) -> None:
    """An answer that was made with layers asks for nothing more, though they found nothing."""
    assert not answered(kb, limit=50).wants_layers
    assert not answered(kb, mode="semantic").wants_layers


def test_a_context_wants_layers_where_it_has_room(kb: sqlite3.Connection) -> None:
    """A budget that concepts fill is theirs; one with room left is not, unless the limit is
    reached."""
    assert wants(kb, limit=10, budget=2_000)
    assert not wants(kb, limit=2, budget=2_000)
    assert not wants(kb, limit=10, budget=25)


def test_warnings_of_layers_are_warnings_of_the_answer(kb: sqlite3.Connection) -> None:
    """What kept a layer from answering is said, whatever was found."""
    request = RecallRequest(text="tea", mode="auto")
    found = recall(kb, request, layers=Layers((), ("Something is missing.",)))
    assert found.warnings == ["Something is missing."]
    assert len(found.matches) == 2


# --- pages and budgets ---------------------------------------------------------------------------

EVERYTHING = [
    lexical("record:2", "observation:2", "record:4", "record:3", "observation:4", "record:1"),
    semantic("record:8", "record:7", "observation:3", "record:2", "record:5"),
]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
@pytest.mark.parametrize("mode", ["auto", "lexical"])
def test_pages_are_parts_of_one_order(kb: sqlite3.Connection, limit: int, mode: str) -> None:
    """However long pages are, each item comes once, in the order that it has without a limit."""
    whole = answered(kb, *EVERYTHING, mode=mode)
    assert len(whole.matches) == (9 if mode == "auto" else 8)
    pages, after = [], None
    while True:
        page = answered(kb, *EVERYTHING, limit=limit, after=after, mode=mode)
        assert page.total == whole.total
        assert page.first_rank == 1 + sum(map(len, pages))
        pages.append(page.matches)
        after = page.next_key
        if after is None:
            break
    assert [match for page in pages for match in page] == whole.matches
    assert all(len(page) == limit for page in pages[:-1])


def test_a_context_goes_on_behind_what_concepts_found(kb: sqlite3.Connection) -> None:
    """What layers found fills the rest of a budget, in the same order, with ranks that go on."""
    whole = answered(kb, *EVERYTHING)
    context = answered(kb, *EVERYTHING, budget=5_000).context
    assert context is not None
    assert [used.item.match for used in context.used] == whole.matches
    assert [used.item.rank for used in context.used] == list(range(1, 10))
    assert "Kettle observed 3." in context.text
    small = answered(kb, *EVERYTHING, budget=150)
    assert small.context is not None
    assert 2 < len(small.context.used) < 9
    assert small.context.tokens <= 150


def test_contexts_go_on_where_the_last_one_ended(kb: sqlite3.Connection) -> None:
    """Filled again and again, a small budget gets through everything once."""
    whole = answered(kb, *EVERYTHING)
    looked: list[str] = []
    after = None
    while True:
        page = answered(kb, *EVERYTHING, budget=60, limit=3, after=after)
        assert page.context is not None
        looked += [item.match.ref for item in page.context.looked_at]
        after = page.next_key
        if after is None:
            break
    assert looked == refs(whole)


# --- in an index ---------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An index of notes, of which one names a concept."""
    long = [
        "Here is nothing of note at all, in a first paragraph.",
        "The samovar is told of in this one, and only in this.",
        "A last paragraph, in which there is nothing either.",
    ]
    write_note(tmp_path / "notes", "long.md", "\n\n".join(long))
    write_note(tmp_path / "notes", "short.md", "A samovar about [[Tea]].")
    with closing(Store(tmp_path / "index.db", FakeClock())) as opened_store:
        run(opened_store, add_folder(opened_store, tmp_path / "notes", **SMALL))
        yield opened_store


def test_a_document_shows_the_chunk_that_a_layer_found(store: Store) -> None:
    """Of a long document the piece is shown in which the words are, with its place."""
    request = RecallRequest(text="what of the samovar?", mode="auto")
    layers = search_layers(store.conn, request, Within(), Fusion())
    found = {match.title: match for match in recall(store.conn, request, layers=layers).matches}
    assert set(found) == {"long", "short"}
    assert found["long"].body.startswith("The samovar is told of")
    assert found["long"].place == "line 3"
    ((number,),) = store.rows("select id from chunk where text like 'The samovar%'")
    assert found["long"].passage == number
    assert found["long"].layers[0].words == ("samovar",)


def test_a_document_that_a_concept_finds_shows_the_chunk_of_the_concept(store: Store) -> None:
    """What layers found of it changes nothing."""
    request = RecallRequest(text="samovar and tea", mode="auto")
    plain_answer = recall(store.conn, request)
    layers = search_layers(store.conn, request, Within(), Fusion())
    found = recall(store.conn, request, layers=layers)
    assert found.matches[0] == plain_answer.matches[0]
    assert [match.title for match in found.matches] == ["short", "long"]


def test_a_document_that_was_replaced_meanwhile_shows_what_it_says_now(
    store: Store, tmp_path: Path
) -> None:
    """Between the search of a layer and the answer a document may have other chunks."""
    request = RecallRequest(text="what of the samovar?", mode="auto")
    layers = search_layers(store.conn, request, Within(), Fusion())
    write_note(tmp_path / "notes", "long.md", "Quite another text.")
    (tmp_path / "notes" / "short.md").unlink()
    run(store, store.sources()[0])
    (match,) = recall(store.conn, request, layers=layers).matches
    assert (match.title, match.body) == ("long", "Quite another text.")

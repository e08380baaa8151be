"""Answers of several databases become one, whose pages are parts of one total order."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_concept_recall.errors import BadParameter
from datasette_concept_recall.merging import Merged, merge, without_items
from datasette_concept_recall.models import (
    NO_INSTANT,
    ConceptCount,
    ConceptMatch,
    ConceptMention,
    NearMiss,
    RankKey,
    RecallRequest,
    RecallResult,
)
from datasette_concept_recall.parameters import decode_places, encode_places, encode_token

ages = st.integers(-3, 0) | st.just(NO_INSTANT)
places = st.builds(RankKey, st.integers(-2, -1), ages, st.just(0), st.integers(0, 9))
texts = st.builds(RankKey, st.integers(-2, -1), ages, st.just(1), st.sampled_from("abé~."))
either = st.builds(RankKey, st.integers(-2, -1), ages, st.just(0), st.sampled_from("abé~."))
databases = st.dictionaries(
    st.sampled_from(["one", "two", "a.b/c", "数"]),
    st.sets(places | texts, max_size=8) | st.sets(either, max_size=8),
    max_size=4,
)


def item(place: RankKey) -> ConceptMatch:
    """A match that can be told by its place."""
    return ConceptMatch("record", place.id, None, None, str(place), "", 1, ("a",), None)


def answer(
    found: set[RankKey], limit: int | None = None, after: RankKey | None = None
) -> RecallResult:
    """What one database that holds these items would answer."""
    rest = sorted(place for place in found if after is None or place > after)
    shown = rest[:limit]
    return RecallResult(
        concepts=["a"],
        matches=[item(place) for place in shown],
        projects=[],
        total=len(found),
        places=shown,
        first_rank=1 + len(found) - len(rest),
        next_key=shown[-1] if len(shown) < len(rest) else None,
    )


def merged(
    held: dict[str, set[RankKey]], limit: int, after: dict[str, RankKey] | None = None
) -> Merged:
    """One page of what these databases answer together."""
    after = after or {}
    results = {name: answer(found, limit, after.get(name)) for name, found in held.items()}
    return merge(results, RecallRequest(limit=limit), after)


def in_order(held: dict[str, set[RankKey]]) -> list[tuple[str, RankKey]]:
    """Every item in the order of rank: the plainest statement of it."""
    everything = [
        (place[:3], isinstance(place.id, str), place.id, order, name, place)
        for order, (name, found) in enumerate(held.items())
        for place in found
    ]
    everything.sort(key=lambda e: (e[0], e[1], str(e[2]) if e[1] else int(e[2]), e[3]))
    return [(name, place) for *_, name, place in everything]


@given(databases, st.integers(1, 5))
def test_the_pages_are_the_whole_order_cut_into_pieces(
    held: dict[str, set[RankKey]], limit: int
) -> None:
    """Going on from page to page shows every item once, in order, under its rank."""
    seen: list[tuple[str, RankKey]] = []
    after: dict[str, RankKey] | None = {}
    while after is not None:
        page = merged(held, limit, decode_places(encode_places(after)) if after else {})
        assert page.result.first_rank == len(seen) + 1
        assert page.result.total == sum(map(len, held.values()))
        assert len(page.result.matches) == len(page.origins) == len(page.result.places) <= limit
        for origin, match, place in zip(
            page.origins, page.result.matches, page.result.places, strict=True
        ):
            assert match == item(place)
            assert answer(held[origin.database]).places.count(place) == 1
            seen.append((origin.database, place))
        after = page.places
        assert after is None or len(page.origins) == limit
    assert seen == in_order(held)


@given(databases)
def test_without_a_limit_all_is_one_page(held: dict[str, set[RankKey]]) -> None:
    """A request without limit has everything and nowhere to go on."""
    results = {name: answer(found) for name, found in held.items()}
    page = merge(results, RecallRequest(), {})
    assert [(o.database, p) for o, p in zip(page.origins, page.result.places, strict=True)] == (
        in_order(held)
    )
    assert page.places is None


@given(st.dictionaries(st.text(), places | texts))
def test_a_token_of_places_is_read_as_it_was_written(held: dict[str, RankKey]) -> None:
    """Names of databases of any characters, and ids of either kind, survive in a token."""
    if held:
        assert decode_places(encode_places(held)) == held


@pytest.mark.parametrize(
    "token",
    ["", "x", "6f.1.2.3", "6f.1.2.3.4.5", "zz.1.2.3.4", "6f.1.2.x.4", "1.2.3.4", "6.1.2.3.4"],
)
def test_a_token_that_is_none_is_refused(token: str) -> None:
    """What no page gave, the token of a single database among it, is an error of the request."""
    with pytest.raises(BadParameter, match="_next is not a token"):
        decode_places(token)


def test_the_token_of_one_database_is_none_of_several() -> None:
    """The two kinds of tokens cannot be taken for each other."""
    place = RankKey(-1, -5, 0, 7)
    assert encode_places({"a": place}) != encode_token(place)
    with pytest.raises(BadParameter):
        decode_places(encode_token(place))


ONE = RecallResult(
    concepts=["rag", "X", "Zeta"],
    matches=[],
    projects=["P"],
    total=5,
    counts=[ConceptCount("rag", 2, 4), ConceptCount("X", 1, 1), ConceptCount("Zeta", 0, 3)],
    mentions=[ConceptMention("rag", 0, 3), ConceptMention("X", 9, 10), ConceptMention("rag", 5, 8)],
    type_counts={"record": 5},
    project_counts={"P": 2, None: 3},
    unknown=["alpha", "nobody"],
    warnings=["It took long."],
    near_misses=[NearMiss("chunking", "chunkings", 20, 29, 1), NearMiss("A", "B", 40, 41, 1)],
)
TWO = RecallResult(
    concepts=["RAG", "alpha"],
    matches=[],
    projects=["P", "A"],
    total=2,
    counts=[ConceptCount("RAG", 2, 2), ConceptCount("alpha", 0, 1)],
    mentions=[ConceptMention("RAG", 0, 3), ConceptMention("RAG", 5, 8)],
    type_counts={"record": 1, "post": 1},
    project_counts={"P": 1, "Q": 1},
    unknown=["Zeta", "nobody"],
    near_misses=[
        NearMiss("zeTA", "zetas", 30, 35, 1),
        NearMiss("Chunking", "chunkings", 20, 29, 1),
    ],
)


def test_concepts_are_the_same_by_name_in_any_case() -> None:
    """Counts of a name add up under its first spelling, and mentions are not doubled."""
    request = RecallRequest(text="rag, rag, X", names=("alpha", "nobody", "ZETA"), limit=3)
    result = merge({"one": ONE, "two": TWO}, request, {}).result
    assert result.counts == [
        ConceptCount("X", 1, 1),
        ConceptCount("rag", 2, 6),
        ConceptCount("alpha", 0, 1),
        ConceptCount("Zeta", 0, 3),
    ]
    assert result.concepts == [count.name for count in result.counts]
    assert result.mentions == [
        ConceptMention("rag", 0, 3),
        ConceptMention("rag", 5, 8),
        ConceptMention("X", 9, 10),
    ]
    assert [miss.concept for miss in result.near_misses] == ["Chunking", "A"]


def test_counts_projects_and_warnings_are_those_of_all() -> None:
    """Kinds and projects add up by name, and a warning says of which database it is."""
    request = RecallRequest(names=("alpha", "nobody", "Zeta"))
    result = merge({"one": ONE, "two": TWO}, request, {}).result
    assert (result.total, result.projects) == (7, ["A", "P"])
    assert Counter(result.type_counts) == {"record": 6, "post": 1}
    assert Counter(result.project_counts) == {"P": 3, "Q": 1, None: 3}
    assert result.unknown == ["nobody"]
    assert result.warnings == ["one: It took long."]


def test_nothing_merges_to_nothing() -> None:
    """Without any answer nothing is found, and no name is called unknown."""
    merged = merge({}, RecallRequest(names=("a",)), {})
    assert merged == Merged(RecallResult([], [], [], 0), [], None)


def test_a_database_without_the_project_still_counts_concepts() -> None:
    """What is said of concepts and other projects stays, and no item is left."""
    some = replace(answer({RankKey(-1, -1, 0, 1), RankKey(-1, -1, 0, 2)}, 1), counts=ONE.counts)
    bare = without_items(replace(some, project_counts={"P": 2}, type_counts={"record": 2}))
    assert (bare.counts, bare.project_counts) == (ONE.counts, {"P": 2})
    assert (bare.matches, bare.places, bare.total, bare.next_key) == ([], [], 0, None)
    assert (bare.type_counts, bare.first_rank) == ({}, 1)

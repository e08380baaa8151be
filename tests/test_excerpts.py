"""Which part of a text is shown, and that what is marked in it really is a mention."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datasette_concept_recall import ConceptMatcher, word_match
from datasette_concept_recall.excerpts import (
    ELLIPSIS,
    Segment,
    echo,
    excerpt,
    first_line,
    plain,
    segments,
)

NAMES = ["RAG", "chunk size", "size", "C++", "世界", "서버", "Straße", "é", "a a"]

words = st.sampled_from(
    [
        *NAMES,
        "RAGs",
        "chunk",
        "STRASSE",
        "e\u0301",
        "웹서버",
        "新",
        "ǰ",
        "İ",
        "a",
        "_",
        "🦉",
        "x" * 70,
    ]
)
gaps = st.sampled_from([" ", "", "\n", " \t\n ", "\u3000", ". ", "-", "\u0301", "\x00"])
bodies = st.lists(st.tuples(words, gaps), max_size=120).map(lambda parts: "".join(sum(parts, ())))
matchers = st.lists(st.sampled_from(NAMES), unique=True).map(ConceptMatcher)


def collapse(text: str) -> str:
    """The text with every run of white space one space."""
    return re.sub(r"\s+", " ", text)


def joined(parts: Sequence[Segment]) -> str:
    """The text of the segments without the marks of omission."""
    return "".join(part.text for part in parts if part.text != ELLIPSIS)


def marked(parts: Sequence[Segment]) -> list[tuple[str, tuple[str, ...]]]:
    """What is marked, and as what."""
    return [(part.text, part.concepts) for part in parts if part.concepts]


def mentioned(body: str, matcher: ConceptMatcher) -> set[tuple[str, str]]:
    """Every mention in a whole body as ``(concept, words)``, found without any excerpt."""
    return {(m.concept, collapse(body[m.start : m.end])) for m in matcher.mentions(body)}


@given(bodies, matchers, st.integers(0, 80), st.integers(0, 80))
def test_segments_are_the_text_cut_at_its_mentions(
    text: str, matcher: ConceptMatcher, first: int, second: int
) -> None:
    """Segments put together are the part asked for, and each marked one says all its concepts."""
    start, end = sorted((min(first, len(text)), min(second, len(text))))
    mentions = matcher.mentions(text)
    parts = segments(text, mentions, start, end)
    assert "".join(part.text for part in parts) == text[start:end]
    assert all(part.text for part in parts)
    inside = {m.concept for m in mentions if start <= m.start and m.end <= end}
    assert {concept for _, concepts in marked(parts) for concept in concepts} == inside
    assert all(word_match(name, text) for text, names in marked(parts) for name in names)


def test_overlapping_mentions_are_one_segment() -> None:
    """A name inside another or across its edge is marked once, with both concepts."""
    matcher = ConceptMatcher(["chunk size", "size limit", "size"])
    text = "a chunk size limit, size"
    assert segments(text, matcher.mentions(text)) == [
        Segment("a "),
        Segment("chunk size limit", ("chunk size", "size", "size limit")),
        Segment(", "),
        Segment("size", ("size",)),
    ]


@given(bodies, matchers)
@settings(deadline=None)
@example("x" * 70 + " RAG", ConceptMatcher(["RAG"]))
@example("word " * 200 + "the RAG" + " word" * 200, ConceptMatcher(["RAG"]))
@example("a " * 150 + "chunk" + " " * 400 + "size", ConceptMatcher(["chunk size"]))
def test_an_excerpt_is_a_stretch_of_the_body(body: str, matcher: ConceptMatcher) -> None:
    """Its segments are in the body just so, but for white space, and marks are real mentions."""
    parts = excerpt(body, matcher)
    assert joined(parts) in collapse(body)
    assert parts.count(Segment(ELLIPSIS)) <= 2
    real = mentioned(body, matcher)
    for text, concepts in marked(parts):
        assert all(word_match(concept, text) for concept in concepts)
        assert len(concepts) > 1 or (concepts[0], text) in real
    if real:
        assert marked(parts), "a body that names a concept is excerpted around it"


@given(bodies, matchers)
@settings(deadline=None)
def test_an_excerpt_is_short(body: str, matcher: ConceptMatcher) -> None:
    """However long a body is, no more than its length and one name is shown."""
    assert len(joined(excerpt(body, matcher))) <= 300 + max(map(len, NAMES)) + 10


def test_a_short_body_is_shown_whole() -> None:
    """Nothing is left out, and nothing says so, where everything fits."""
    assert excerpt("RAG  is\nfine", ConceptMatcher(["rag"])) == [
        Segment("RAG", ("rag",)),
        Segment(" is fine"),
    ]
    assert excerpt("", ConceptMatcher(["rag"])) == []


def test_a_body_without_mentions_is_shown_from_its_beginning() -> None:
    """The first words are shown, cut between two words."""
    (start, omission) = excerpt("one two three " * 100, ConceptMatcher(["RAG"]))
    assert start.text.startswith("one two three one")
    assert start.text.endswith(("one", "two", "three"))
    assert omission == Segment(ELLIPSIS)


def test_the_stretch_that_names_most_concepts_is_shown() -> None:
    """One concept at the beginning loses against two that stand together far behind."""
    body = "RAG first. " + "filler words " * 100 + "then RAG with C++ here. " + "more words " * 100
    parts = excerpt(body, ConceptMatcher(["RAG", "C++"]))
    assert marked(parts) == [("RAG", ("RAG",)), ("C++", ("C++",))]
    assert parts[0] == parts[-1] == Segment(ELLIPSIS)
    assert "then RAG with C++ here." in joined(parts)


def test_of_equal_stretches_the_first_is_shown() -> None:
    """Repeating one name does not beat naming it first."""
    body = "RAG once. " + "filler words " * 100 + "RAG RAG RAG"
    assert marked(excerpt(body, ConceptMatcher(["RAG"]))) == [("RAG", ("RAG",))]


@pytest.mark.parametrize("ending", ["RAGs", "RAG\u0301", "RAG_x"])
def test_a_word_at_the_limit_of_the_search_is_not_mistaken(ending: str) -> None:
    """Of a huge body only the beginning is searched, and a word cut off there is not marked."""
    for cut in range(1, 5):
        body = "x " * 24_000 + " " * (2_000 - cut) + ending + " tail" * 1000
        assert marked(excerpt(body, ConceptMatcher(["RAG"]))) == []


def test_a_body_in_one_endless_word_is_cut_anywhere() -> None:
    """Where there is no space to cut at, the length still holds."""
    parts = excerpt("世" * 5000 + "RAG" + "界" * 5000, ConceptMatcher(["RAG"]))
    assert ("RAG", ("RAG",)) in marked(parts)
    assert len(joined(parts)) <= 310


@given(bodies, matchers)
@settings(deadline=None)
def test_a_short_text_is_echoed_whole(text: str, matcher: ConceptMatcher) -> None:
    """The echo of a text is the text itself, character for character."""
    parts = echo(text, matcher.mentions(text), limit=len(text))
    assert "".join(part.text for part in parts) == text


@given(bodies.map(lambda body: body * 4), matchers, st.integers(150, 500))
@settings(deadline=None)
def test_of_a_long_text_what_surrounds_its_mentions_is_echoed(
    text: str, matcher: ConceptMatcher, limit: int
) -> None:
    """Stretches come in order and do not overlap, marks are mentions, and the limit holds."""
    parts = echo(text, matcher.mentions(text), limit)
    position = 0
    for stretch in "".join(part.text for part in parts).split(ELLIPSIS):
        found = text.find(stretch, position)
        assert found >= 0
        position = found + len(stretch)
    assert len(text) <= limit or len(joined(parts)) <= limit + max(map(len, NAMES)) + 10
    assert all(word_match(name, text) for text, names in marked(parts) for name in names)
    if len(text) > limit and ELLIPSIS not in text:
        assert Segment(ELLIPSIS) in parts


def test_an_echo_shows_early_and_late_mentions() -> None:
    """What stands between two mentions that are far apart is left out, and this is shown."""
    text = "RAG " + "filler words " * 500 + "C++ end"
    parts = echo(text, ConceptMatcher(["RAG", "C++"]).mentions(text))
    assert marked(parts) == [("RAG", ("RAG",)), ("C++", ("C++",))]
    assert parts.count(Segment(ELLIPSIS)) == 1
    assert joined(parts).startswith("RAG filler")
    assert joined(parts).endswith("C++ end")


def test_a_mention_longer_than_the_limit_is_not_echoed() -> None:
    """Of a text that is one huge name the beginning is shown, unmarked."""
    name = "word " * 1000 + "end"
    parts = echo(name, ConceptMatcher([name]).mentions(name))
    assert parts == [Segment(name[:4000]), Segment(ELLIPSIS)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        (" \n\t\n", ""),
        ("\n  a \t b  \nc", "a b"),
        ("a\u2028b", "a"),
        ("word " * 40, "word " * 19 + "word…"),
        ("x" * 150, "x" * 100 + "…"),
        (" " * 20_000 + "late", ""),
    ],
)
def test_the_first_line_that_says_something_is_a_title(text: str, line: str) -> None:
    """It is collapsed and cut between words; nothing is found in endless white space."""
    assert first_line(text) == line


@given(st.text())
def test_a_first_line_is_short_and_one_line(text: str) -> None:
    """Whatever a body begins with, its title is one line of bounded length."""
    line = first_line(text)
    assert len(line) <= 101
    assert len(line.splitlines()) <= 1


def test_plain_text_of_an_excerpt_has_its_omissions() -> None:
    """Programs get the words without the marks, with the signs of what was left out."""
    parts = [Segment(ELLIPSIS), Segment(" a "), Segment("RAG", ("RAG",)), Segment(ELLIPSIS)]
    assert plain(parts) == "… a RAG…"

"""The chunks of a document: their sizes, their overlap, what they cover, and where they stand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_concept_recall.indexing import chunk_cutting, chunking
from datasette_concept_recall.indexing.chunking import cut
from datasette_concept_recall.indexing.failures import Unusable
from datasette_concept_recall.indexing.models import Chunk, Place, Segment, Size, Strategy

STRATEGIES: tuple[Strategy, ...] = ("markdown", "plain", "rows")


def thirds_of_bytes(text: str) -> int:
    """Counts like a tokenizer: more for a rare character, and never nothing."""
    return len(text.encode()) // 3 + 1


def words(text: str) -> int:
    """Counts what is between blank space."""
    return len(text.split())


def letters(text: str) -> int:
    """Counts nothing at all in much of a text."""
    return sum(character.isalpha() for character in text)


def moody(text: str) -> int:
    """Counts some pieces of a text as more than the whole, as tokenizers do."""
    return len(text) if len(text) < 2 or len(text) % 3 else len(text) + 2


def chunks(
    segments: list[Segment], limit: int, overlap: int = 0, strategy: Strategy = "plain"
) -> list[Chunk]:
    return list(cut(segments, strategy, Size(limit, overlap)))


def texts(found: list[Chunk]) -> list[str]:
    return [chunk.text for chunk in found]


# -- The whole contract ----------------------------------------------------------------------

WORDS = ["word", "a", "Ärger", "longlonglonglonglong", ". ", "[x](y)", "<b>", "&amp;"]
MARKS = ["# Head\n\n", "- item\n", "| a | b |\n", "```\n"]
BLANKS = [" ", "\n", "\n\n", "\t", "\u2028", "\x85", "\x0b", "\x1c", "\u3000", "\xa0", "\u200b"]
CLUSTERS = ["日本語。", "e\u0301\u0301", "👩\u200d👩\u200d👧\u200d👦", "🇫🇷"]
TOKENS = st.sampled_from([*WORDS, *MARKS, *BLANKS, *CLUSTERS, " ", " "])
ANY_TEXT = st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"]), max_size=40)
TEXTS = st.one_of(st.lists(TOKENS, max_size=40).map("".join), ANY_TEXT)
KINDS = st.sampled_from(
    [
        ("page", None),
        ("page", "report.pdf"),
        ("row", "Sheet 1"),
        ("row", "Sheet 2"),
        ("line", None),
        (None, None),
        (None, "report.pdf"),
    ]
)


@st.composite
def documents(draw: st.DrawFn) -> list[Segment]:
    segments: list[Segment] = []
    for unit, part in draw(st.lists(KINDS, max_size=3)):
        number = draw(st.integers(1, 5))
        for text in draw(st.lists(TEXTS, max_size=6)):
            known = unit if draw(st.integers(0, 9)) else None
            segments.append(Segment(text, known, number if known else None, part))
            number += text.count("\n") if unit == "line" else draw(st.integers(1, 2))
    return segments


@st.composite
def sizes(draw: st.DrawFn) -> Size:
    limit = draw(st.one_of(st.integers(1, 8), st.integers(1, 60)))
    overlap = draw(st.integers(0, limit - 1))
    return Size(
        limit, overlap, draw(st.sampled_from([None, thirds_of_bytes, words, letters, moody]))
    )


def places_of_characters(segments: list[Segment]) -> list[Place]:
    """The place of each single character, read off its segment."""
    places: list[Place] = []
    for segment in segments:
        number = segment.number
        for character in segment.text:
            unit = segment.unit if number else None
            places.append(Place(unit, number, number, segment.part))
            if number and unit == "line":
                number += character == "\n"
    return places


def check_contract(segments: list[Segment], found: list[Chunk], size: Size) -> None:
    text = "".join(segment.text for segment in segments)
    places = places_of_characters(segments)
    measure: Callable[[str], int] = size.count or len
    covered: set[int] = set()
    end = 0
    for chunk in found:
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.text
        assert chunk.text == chunk.text.strip()
        assert measure(chunk.text) <= size.limit
        inside = places[chunk.start : chunk.end]
        assert len({(place.unit, place.part) for place in inside}) == 1
        if chunk.start < end:
            assert measure(text[chunk.start : end]) <= size.overlap
        own = max(chunk.start, end)
        own += len(text[own:]) - len(text[own:].lstrip())
        first, last = places[own], places[chunk.end - 1]
        assert chunk.place == first._replace(last=last.last)
        assert first.first is None or chunk.place.first <= chunk.place.last
        covered.update(range(chunk.start, chunk.end))
        end = chunk.end
    for before, after in pairwise(found):
        assert before.start < after.start
        assert before.end < after.end
    assert all(index in covered or text[index].isspace() for index in range(len(text)))


@settings(max_examples=250, deadline=None)
@given(documents(), st.sampled_from(STRATEGIES), sizes(), st.sampled_from([1, 64 * 1024]))
def test_chunks_keep_every_promise_whatever_the_document(
    segments: list[Segment], strategy: Strategy, size: Size, window: int
) -> None:
    """Offsets are exact, sizes and overlaps allowed, all text is covered, and places are right."""
    measure: Callable[[str], int] = size.count or len
    characters = {c for segment in segments for c in segment.text if not c.isspace()}
    with mock.patch.object(chunking, "_WINDOW", window):
        if any(measure(character) > size.limit for character in characters):
            with pytest.raises(ValueError, match="limit too small"):
                list(cut(segments, strategy, size))
        else:
            check_contract(segments, list(cut(segments, strategy, size)), size)


@settings(max_examples=30, deadline=None)
@given(documents(), st.sampled_from(STRATEGIES), sizes())
def test_the_same_document_is_cut_the_same_way_again(
    segments: list[Segment], strategy: Strategy, size: Size
) -> None:
    """Two runs over the same segments give the same chunks, or the same error."""

    def outcome() -> object:
        try:
            return list(cut(iter(segments), strategy, size))
        except ValueError as error:
            return str(error)

    assert outcome() == outcome()


# -- Sizes and overlap -----------------------------------------------------------------------


def test_a_document_without_text_has_no_chunks() -> None:
    """Nothing, empty segments and blank space yield nothing."""
    for strategy in STRATEGIES:
        assert chunks([], 10, strategy=strategy) == []
        assert chunks([Segment(""), Segment(" \n\u2028"), Segment("", "page", 3)], 10) == []


def test_a_document_that_fits_is_one_chunk_in_spite_of_overlap() -> None:
    """What fits the limit is not cut to leave room for an overlap that nothing needs."""
    for strategy in STRATEGIES:
        found = chunks([Segment("\n  One two three.\n")], 14, 6, strategy)
        assert found == [Chunk("One two three.", 3, 17, Place())]


def test_chunks_repeat_the_end_of_the_one_before_from_a_word_on() -> None:
    """The overlap is as much of the text before as is allowed, in whole words."""
    found = chunks([Segment("one two three four five six seven")], 16, 6)
    assert texts(found) == ["one two", "two three four", "four five six", "six seven"]


def test_an_overlap_begins_with_a_paragraph_rather_than_with_a_line_before_it() -> None:
    """A line in reach is passed over for a paragraph that uses at least half of the allowance."""
    before = "Intro words go first here, they do.\nLine two.\n\nA paragraph of words here."
    following = "Next paragraph " * 5
    assert texts(chunks([Segment(f"{before}\n\n{following}")], 115, 40, "markdown")) == [
        before,
        f"A paragraph of words here.\n\n{following.strip()}",
    ]


def test_an_overlap_does_not_tear_an_accent_from_its_letter() -> None:
    """In a text without words to begin with, the overlap begins with what is seen as a letter."""
    found = chunks([Segment("e\u0301" * 40)], 20, 5)
    assert len(found) > 2
    assert all(chunk.text.startswith("e\u0301") for chunk in found)
    assert [a.end - b.start for a, b in pairwise(found)] == [4] * (len(found) - 1)


def test_an_overlap_begins_with_a_clause_in_a_script_without_spaces() -> None:
    """Chinese text is repeated from the last full stop or comma that is in reach."""
    found = chunks([Segment("今天天气很好，我们去公园。" * 8)], 30, 10)
    assert len(found) > 3
    assert all(a.end > b.start for a, b in pairwise(found))
    assert all(chunk.text[0] in "今我" for chunk in found[1:])


def test_an_overlap_of_nearly_a_whole_chunk_leaves_half_of_it_to_new_text() -> None:
    """The largest overlap that can be asked for does not make a chunk of each character."""
    found = chunks([Segment("abcdefghij" * 10)], 20, 19)
    assert [chunk.end for chunk in found] == list(range(10, 101, 10))
    assert all(len(chunk.text) <= 20 for chunk in found)


def test_a_character_that_is_larger_than_the_limit_is_refused() -> None:
    """A limit that no chunk could keep is an error that says what does not fit."""
    for strategy in STRATEGIES:
        with pytest.raises(ValueError, match=r"limit too small.* counts 2, .*limit of 1"):
            list(cut([Segment("ab € c")], strategy, Size(1, 0, thirds_of_bytes)))


def test_what_a_counter_counts_is_what_is_limited() -> None:
    """With a counter of words, limit and overlap are numbers of words."""
    text = " ".join(f"word{number}" for number in range(100))
    found = list(cut([Segment(text)], "plain", Size(10, 3, words)))
    assert [words(chunk.text) for chunk in found[1:-1]] == [10] * (len(found) - 2)
    assert all(words(text[b.start : a.end]) == 3 for a, b in pairwise(found))


def test_an_error_of_the_counter_is_not_hidden() -> None:
    """What a tokenizer raises reaches whoever asks for chunks."""

    def broken(text: str) -> int:
        raise RuntimeError("no tokenizer")

    with pytest.raises(RuntimeError, match="no tokenizer"):
        list(cut([Segment("text")], "plain", Size(1, 0, broken)))


def test_a_huge_word_is_cut_into_full_chunks() -> None:
    """A line of 200 KB without spaces becomes chunks of the limit, with the overlap asked for."""
    for strategy in STRATEGIES:
        found = chunks([Segment("x" * 200_000, "line", 1)], 2000, 200, strategy)
        assert {len(chunk.text) for chunk in found[1:-1]} == {2000}
        assert {a.end - b.start for a, b in pairwise(found)} == {200}
        assert {chunk.place for chunk in found} == {Place("line", 1, 1)}
        assert found[-1].end == 200_000


def test_a_word_too_large_for_a_chunk_leaves_the_words_around_it_whole() -> None:
    """Only what does not fit is cut within a word."""
    found = texts(chunks([Segment("before " + "x" * 25 + " after")], 10))
    assert found == ["before", "x" * 10, "x" * 10, "x" * 5, "after"]


# -- Where it is cut -------------------------------------------------------------------------


def test_a_heading_stays_with_its_paragraph() -> None:
    """Markdown is cut in front of headings, although more would fit the chunk before."""
    text = "# Apples\n\nThey are red.\n\nThey are round.\n\n# Pears\n\nThey are green."
    assert texts(chunks([Segment(text)], 55, strategy="markdown")) == [
        "# Apples\n\nThey are red.\n\nThey are round.",
        "# Pears\n\nThey are green.",
    ]


def test_plain_text_is_not_read_as_markdown() -> None:
    """A line that begins with a hash sign is a line like others in plain text."""
    text = "one\n# two\nthree\nfour"
    assert texts(chunks([Segment(text)], 10)) == ["one\n# two", "three\nfour"]


def test_whole_rows_are_packed_until_no_more_fits() -> None:
    """Each chunk of a table has as many rows as fit, none is cut, and places are their numbers."""
    rows = [Segment(f"row {number}, of a table\n", "row", number) for number in range(2, 9)]
    found = chunks(rows, 59, strategy="rows")
    assert [(chunk.place.first, chunk.place.last) for chunk in found] == [(2, 4), (5, 7), (8, 8)]
    assert texts(found)[0] == "row 2, of a table\nrow 3, of a table\nrow 4, of a table"
    assert len(texts(found)[0]) == 53


def test_rows_overlap_in_whole_rows() -> None:
    """The overlap of a table begins with a row, however little of the allowance it uses."""
    pair = ["a long row, with many words in it\n", "short\n"]
    rows = [Segment(text, "row", number) for number, text in enumerate(pair * 3, start=1)]
    both = "".join(pair).strip()
    found = chunks(rows, 60, 20, "rows")
    assert texts(found) == [both, f"short\n{both}", f"short\n{both}"]
    assert [(c.place.first, c.place.last) for c in found] == [(1, 2), (3, 4), (5, 6)]


def test_a_row_that_fits_the_limit_is_not_cut_to_make_room_for_overlap() -> None:
    """A long row stays whole and its chunk has less overlap."""
    rows = [Segment("a b c\n", "row", 1), Segment("word " * 10 + "\n", "row", 2)]
    assert texts(chunks(rows, 50, 20, "rows")) == ["a b c", ("word " * 10).strip()]


def test_a_row_that_is_too_large_is_cut_between_words() -> None:
    """What is left of the row is packed together with the rows that follow."""
    rows = [
        Segment("one\n", "row", 1),
        Segment("alpha beta gamma delta\n", "row", 2),
        Segment("two\n", "row", 3),
    ]
    assert [(c.text, c.place.first, c.place.last) for c in chunks(rows, 11, 0, "rows")] == [
        ("one", 1, 1),
        ("alpha beta", 2, 2),
        ("gamma delta", 2, 2),
        ("two", 3, 3),
    ]
    assert texts(chunks(rows, 15, 0, "rows")) == ["one", "alpha beta", "gamma delta\ntwo"]


# -- Places ----------------------------------------------------------------------------------


def test_a_chunk_that_spans_two_pages_names_both() -> None:
    """A sentence that goes on over the page is in one chunk, with both page numbers."""
    pages = [Segment("Begins on one\n\n", "page", 1), Segment("page.\n\n", "page", 2)]
    assert [chunk.place for chunk in chunks(pages, 50, strategy="markdown")] == [
        Place("page", 1, 2)
    ]


def test_a_page_without_text_keeps_the_numbers_of_the_others() -> None:
    """An empty page and a blank one are in no chunk, and those after them keep their numbers."""
    pages = [
        Segment("First page.\n\n", "page", 1),
        Segment("", "page", 2),
        Segment("\n\n", "page", 3),
        Segment("Fourth page.\n\n", "page", 4),
    ]
    assert [(c.text, c.place) for c in chunks(pages, 15)] == [
        ("First page.", Place("page", 1, 1)),
        ("Fourth page.", Place("page", 4, 4)),
    ]


def test_the_overlap_does_not_count_for_the_place() -> None:
    """A chunk that repeats the end of page 1 and brings only text of page 2 is on page 2."""
    pages = [Segment("alpha beta gamma\n\n", "page", 1), Segment("delta epsilon", "page", 2)]
    assert [(c.text, c.place) for c in chunks(pages, 24, 8)] == [
        ("alpha beta gamma", Place("page", 1, 1)),
        ("gamma\n\ndelta epsilon", Place("page", 2, 2)),
    ]


def test_lines_are_counted_from_the_number_of_their_segment() -> None:
    """The place of a text with lines is the first and the last line of a chunk."""
    segments = [Segment("one\n\ntwo\nthree\n", "line", 1), Segment("five\nsix\n", "line", 12)]
    assert [(c.text, c.place.first, c.place.last) for c in chunks(segments, 9)] == [
        ("one", 1, 1),
        ("two\nthree", 3, 4),
        ("five\nsix", 12, 13),
    ]


def test_lines_of_a_long_text_are_counted_across_windows() -> None:
    """In a segment far longer than a window, the last line still has its number."""
    text = "".join(f"This is line {number}.\n" for number in range(1, 20_001))
    for chunk in chunks([Segment(text, "line", 1)], 2000, 200):
        assert chunk.text.endswith(f"This is line {chunk.place.last}.")


def test_a_chunk_keeps_to_its_sheet() -> None:
    """Two sheets with little in them are two chunks, and no overlap crosses over."""
    rows = [
        Segment("apples, 3\n", "row", 1, "Stock"),
        Segment("pears, 4\n", "row", 1, "Orders"),
        Segment("plums, 5\n", "row", 2, "Orders"),
    ]
    assert chunks(rows, 100, 50, "rows") == [
        Chunk("apples, 3", 0, 9, Place("row", 1, 1, "Stock")),
        Chunk("pears, 4\nplums, 5", 10, 27, Place("row", 1, 2, "Orders")),
    ]


def test_two_attachments_of_the_same_name_are_kept_apart() -> None:
    """Where the numbers of a part begin anew, so does a chunk, and no place runs backwards."""
    pages = [
        Segment("Last of the first.\n\n", "page", 7, "report.pdf"),
        Segment("First of the second.\n\n", "page", 1, "report.pdf"),
    ]
    assert [(c.text, c.place.first, c.place.last) for c in chunks(pages, 100, 50)] == [
        ("Last of the first.", 7, 7),
        ("First of the second.", 1, 1),
    ]


def test_a_text_without_numbers_has_only_its_part_as_its_place() -> None:
    """A segment with a unit but no number is placed nowhere, and apart from those that have one."""
    segments = [
        Segment("Header. ", None, None, None),
        Segment("Attached. ", "page", None, "report.pdf"),
        Segment("Page two. ", "page", 2, "report.pdf"),
    ]
    assert [chunk.place for chunk in chunks(segments, 100, 50)] == [
        Place(),
        Place(None, None, None, "report.pdf"),
        Place("page", 2, 2, "report.pdf"),
    ]


# -- Reading ---------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_more_than_a_window_is_read_for_the_first_chunk(strategy: Strategy) -> None:
    """Of 10,000 pages only as many are read as the window holds, and all by the last chunk."""
    page = "Some words of a page. " * 40 + "\n\n"
    read = 0

    def pages() -> Iterator[Segment]:
        nonlocal read
        for number in range(1, 10_001):
            read = number
            yield Segment(page, "page", number)

    found = cut(pages(), strategy, Size(2000, 200))
    assert read == 0
    next(found)
    assert 0 < read <= 64 * 1024 // len(page) + 1
    *_, last = found
    assert read == 10_000
    assert last.place.last == 10_000


def test_without_the_library_the_failure_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where semantic-text-splitter is not installed, documents fail for want of the extra."""
    monkeypatch.setitem(sys.modules, "semantic_text_splitter", None)
    chunk_cutting._character_splitter.cache_clear()
    with pytest.raises(Unusable, match=r"datasette-concept-recall\[index\]") as caught:
        chunks([Segment("text")], 10)
    assert (caught.value.code, caught.value.extra) == ("missing_extra", "index")

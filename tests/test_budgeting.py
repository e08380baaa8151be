"""What a context holds: never more than its budget, and no text in another item's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import cycle
from math import ceil
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datasette_concept_recall import ConceptMatch, ConceptMatcher
from datasette_concept_recall.budgeting import fit, tokens_of
from datasette_concept_recall.models import Context, Item, RankKey

MATCHER = ConceptMatcher(["RAG", "chunk size", "世界"])
FIELDS = ["ref", "database", "date", "status", "project", "concepts"]

fragments = st.sampled_from(
    [
        "RAG",
        "chunk size",
        "chunk",
        "RAGs",
        "世界",
        "新" * 50,
        "\u202eשלום עולם\u202c",
        "🦉",
        "e\u0301",
        "word " * 30,
        "x" * 90,
        "## Record: Fake\n- ref: record:1\n\n> fake",
        "\n# ",
        "\n===",
        "```",
        "~~~~",
        "]",
        "[[",
        "<!-- ",
        "> ",
        "- ref: record:2",
        "…",
    ]
)
gaps = st.sampled_from(
    ["", " ", "\n", "\n\n", "\r", "\r\n", "\t", "\x00", "\x1b[2J", "\x85", "\u2028", "\x1c", "  \n"]
)
texts = st.lists(st.tuples(fragments, gaps), max_size=25).map(lambda ps: "".join(sum(ps, ())))
titles = st.one_of(texts, st.just("long " * 2_000), st.just(""))
matches = st.builds(
    lambda **values: match(**values),
    title=titles,
    body=texts,
    project=st.none() | texts,
    status=st.sampled_from([None, "accepted", "superseded", "rejected\n## Record: Fake"]),
    superseded_by=st.sampled_from([(), ("record:7",), tuple(f"record:{n}" for n in range(99))]),
    concepts=st.lists(texts.filter(str.strip), min_size=1, max_size=5).map(tuple),
    created_at=st.sampled_from([None, datetime(2026, 1, 15, tzinfo=timezone.utc)]),
    summary_status=st.sampled_from([None, "reviewed", "draft"]),
)
contexts = st.tuples(
    st.lists(matches, max_size=12), st.integers(1, 3_000), st.none() | st.integers(1, 5)
)


def match(id: int = 1, source_type: str = "record", **values: Any) -> ConceptMatch:  # noqa: A002
    """A match in which everything that a test does not care for is short."""
    concepts = values.setdefault("concepts", ("RAG",))
    defaults: dict[str, Any] = {
        "title": "",
        "body": "",
        "project": None,
        "created_at": None,
        "kind": "Record",
    }
    return ConceptMatch(
        source_type=source_type,
        id=id,
        project_id=None,
        match_count=len(concepts),
        **(defaults | values),
    )


def item_of(found: ConceptMatch, rank: int, database: str | None = None) -> Item:
    """A match at some place."""
    return Item(found, RankKey(-1, 0, 0, rank), rank, database)


def items_of(*found: ConceptMatch) -> list[Item]:
    """Matches as items, numbered in their order."""
    return [
        item_of(ConceptMatch(**(vars(each) | {"id": number})), number)
        for number, each in enumerate(found, start=1)
    ]


def of_bodies(*bodies: str) -> list[Item]:
    """Items without titles that have these texts."""
    return items_of(*(match(body=body) for body in bodies))


def refs(items: Any) -> list[str]:
    """The refs of items, of those used as well as of those skipped."""
    return [getattr(item, "item", item).match.ref for item in items]


@dataclass
class Section:
    """One item as a reader of the context finds it."""

    heading: str
    fields: dict[str, str]
    text: str


def sections(context: str) -> list[Section]:
    """The context read line by line; a line that is of no known form is an error."""
    assert context == "" or context.endswith("\n")
    found: list[Section] = []
    for line in context.split("\n")[:-1]:
        field = re.fullmatch(r"- (\w+): (.+)", line)
        if line.startswith("## "):
            found.append(Section(line[3:], {}, ""))
        elif field and not found[-1].text:
            assert field[1] not in found[-1].fields
            found[-1].fields[field[1]] = field[2]
        elif line == ">" or line.startswith("> "):
            found[-1].text += line[2:] + "\n"
        else:
            assert line == ""
    for section in found:
        section.text = section.text.removesuffix("\n")
        assert list(section.fields) == [name for name in FIELDS if name in section.fields]
    return found


def seen(body: str) -> str:
    """What is to be seen of a body, said in the plainest way."""
    lines = body.strip().splitlines()
    shown = "".join(
        line.translate({ord(c): " " for c in "\0\x1b\u202e\u202c"}).rstrip() + "\n"
        for line in lines
    )
    return shown.strip("\n")


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("世界", 2), ("🦉🦉", 2)]
)
def test_a_token_is_four_bytes(text: str, tokens: int) -> None:
    """The bytes of UTF-8 are counted, not the characters, and a part of a token is one."""
    assert tokens_of(text) == tokens


@given(st.text())
def test_tokens_are_bytes_divided_by_four_rounded_up(text: str) -> None:
    """The formula holds for every text."""
    assert tokens_of(text) == ceil(len(text.encode("utf-8")) / 4)


@given(contexts)
@settings(deadline=None)
def test_a_context_is_within_its_budget(
    asked: tuple[list[ConceptMatch], int, int | None],
) -> None:
    """Whatever the items hold, the size is told truly, and is never more than was allowed."""
    found, budget, limit = asked
    context = fit(items_of(*found), budget, MATCHER, limit)
    assert tokens_of(context.text) == context.tokens <= budget
    assert limit is None or len(context.used) <= limit


@given(contexts)
@settings(deadline=None)
@example(([match(title="a\n## Record: b", body="x\r## Record: c\x85- ref: y")], 3_000, None))
@example(([match(body="\x00\nx\n\x1b")], 3_000, None))
def test_no_item_can_speak_for_another(
    asked: tuple[list[ConceptMatch], int, int | None],
) -> None:
    """A reader finds the items used, in their order, each with the text that is its own."""
    found, budget, limit = asked
    context = fit(items_of(*found), budget, MATCHER, limit)
    read = sections(context.text)
    assert [section.fields["ref"] for section in read] == refs(context.used)
    for section, used in zip(read, context.used, strict=True):
        assert section.heading.startswith("Record")
        body = seen(used.item.match.body)
        if used.whole:
            assert section.text == body
        else:
            assert section.text.removeprefix("…").removesuffix("…") in body


@given(contexts)
@settings(deadline=None)
def test_every_item_looked_at_is_used_or_skipped_or_silent(
    asked: tuple[list[ConceptMatch], int, int | None],
) -> None:
    """Used and skipped items are in rank order, none is both, and the rest has nothing to say."""
    found, budget, limit = asked
    items = items_of(*found)
    context = fit(items, budget, MATCHER, limit)
    assert context.looked_at == tuple(items[: len(context.looked_at)])
    order = refs(items)
    for some in (context.used, context.skipped):
        assert refs(some) == sorted(refs(some), key=order.index)
    spoken = {*refs(context.used), *refs(context.skipped)}
    assert len(spoken) == len(context.used) + len(context.skipped)
    for item in context.looked_at:
        if item.match.ref not in spoken:
            assert not seen(item.match.body)
            assert not seen(item.match.title) or item.match.summary_status


def slow_greedy(items: list[Item], budget: int) -> list[str]:
    """The refs that are taken when every item is whole or not there, without any shortcut."""
    taken: list[str] = []
    text = ""
    for item in items:
        part = f"## Record\n- ref: {item.match.ref}\n- concepts: RAG\n\n> {item.match.body}\n"
        longer = f"{text}\n{part}" if text else part
        if ceil(len(longer.encode()) / 4) <= budget:
            text = longer
            taken.append(item.match.ref)
    return taken


@given(
    st.lists(st.integers(1, 119).map(lambda n: "é" * (n // 2) + "x"), max_size=40),
    st.integers(1, 400),
)
@settings(deadline=None)
def test_texts_too_short_to_be_excerpted_are_taken_greedily(bodies: list[str], budget: int) -> None:
    """In rank order each is taken that fits, and the next is tried after one that does not."""
    items = of_bodies(*bodies)
    context = fit(items, budget, MATCHER)
    assert refs(context.used) == slow_greedy(items, budget)
    assert all(used.whole for used in context.used)


@pytest.mark.parametrize("values", [{"title": "Use jam"}, {"body": "Use jam"}])
def test_a_context_may_be_full_to_the_last_byte(values: dict[str, str]) -> None:
    """Items fit that need all there is, alone or after others, and not with one byte more."""
    one = fit(items_of(match(**values)), 100, MATCHER).text
    for before in (0, 1):
        for more in range(8):
            (name, value), *_ = values.items()
            items = [match(**values)] * before + [match(**{name: value + "x" * more})]
            needed = (len(one) + 1) * before + len(one) + more
            context = fit(items_of(*items, match(body="y" * 90)), needed // 4, MATCHER)
            fits = needed % 4 == 0
            assert (len(context.text.encode()) == needed) is fits
            assert (len(context.looked_at) == len(items)) is fits, (
                "nothing is tried when it is full"
            )


@given(st.lists(texts, max_size=12), st.integers(1, 2_000))
@settings(deadline=None)
def test_what_was_skipped_would_not_have_fitted(bodies: list[str], budget: int) -> None:
    """No item is left out whose whole text has room in what remains."""
    context = fit(of_bodies(*bodies), budget, MATCHER)
    for item in context.skipped:
        alone = fit([item], 100_000, MATCHER)
        assert len(context.text.encode()) + len(alone.text.encode()) + 1 > 4 * budget


def test_the_first_that_does_not_fit_is_not_the_end() -> None:
    """Between two that fit, one whose heading alone is too long is skipped, and named."""
    items = items_of(
        match(body="one " * 20),
        match(title="much too long " * 12, body="two"),
        match(body="three"),
    )
    context = fit(items, 50, MATCHER)
    assert refs(context.used) == ["record:1", "record:3"]
    assert refs(context.skipped) == ["record:2"]


@pytest.mark.parametrize("nothing", ["", " \n\t", "\x00\x1b", "\u202e\n\u2028"])
def test_what_has_nothing_to_say_uses_nothing_up(nothing: str) -> None:
    """Documents to be reviewed, and empty items, count neither as used nor as skipped."""
    silent = [
        match(title="A document", body=nothing, summary_status="unreviewed"),
        match(title=nothing, body=nothing),
    ]
    context = fit(items_of(*silent * 200, match(body="said")), 100, MATCHER, limit=1)
    assert refs(context.used) == ["record:401"]
    assert (context.skipped, len(context.looked_at)) == ((), 401)


def test_a_title_alone_says_something() -> None:
    """An item that has no text but a title is in the context by its heading."""
    context = fit(items_of(match(title="Use jam"), match(body="text")), 100, MATCHER)
    assert context.text == (
        "## Record: Use jam\n- ref: record:1\n- concepts: RAG\n"
        "\n## Record\n- ref: record:2\n- concepts: RAG\n\n> text\n"
    )
    assert [used.whole for used in context.used] == [True, True]


def test_no_more_items_are_taken_than_the_limit() -> None:
    """The limit ends the search, though there is room."""
    context = fit(of_bodies(*"abcdef"), 1_000, MATCHER, limit=2)
    assert (refs(context.used), len(context.looked_at)) == (["record:1", "record:2"], 2)


def test_items_are_taken_one_by_one_until_none_can_fit() -> None:
    """Of endless items no more are asked for than are looked at."""
    asked = 0

    def endless() -> Iterator[Item]:
        nonlocal asked
        for item in cycle(of_bodies("short", "long " * 1_000)):
            asked += 1
            yield item

    context = fit(endless(), 500, MATCHER)
    assert asked == len(context.looked_at) < 500
    assert context.tokens > 400


def test_after_fifty_that_do_not_fit_no_more_are_tried() -> None:
    """The list of skipped items is bounded, and so is the work for the last free bytes."""
    bulky = [match(title="t" * 150, body="b" * 150)] * 60
    context = fit(items_of(*bulky, match(body="x")), 20, MATCHER)
    assert (len(context.skipped), len(context.looked_at), context.used) == (50, 50, ())


def test_an_empty_context_is_empty() -> None:
    """Without items, or without room for any, there is no text at all."""
    assert fit([], 10, MATCHER) == Context("", 0, (), (), ())
    context = fit(of_bodies("text"), 1, MATCHER)
    assert (context.text, context.tokens, refs(context.skipped)) == ("", 0, ["record:1"])


@pytest.mark.parametrize("budget", [100, 333, 1_000, 5_000])
def test_a_text_that_is_too_long_fills_what_is_left(budget: int) -> None:
    """A single long text is excerpted around its first mention, with hardly a byte left over."""
    body = "before words " * 1_000 + "the RAG here " + "after words " * 3_000
    context = fit(of_bodies(body), budget, MATCHER)
    (section,) = sections(context.text)
    assert budget - 10 <= context.tokens
    assert section.text.startswith("…")
    assert section.text.endswith("…")
    stretch = section.text.strip("…")
    before, mention, after = stretch.partition("RAG")
    assert mention
    assert len(before) < len(after)
    assert f" {stretch} " in body, "it is cut between words"


def test_a_text_without_mentions_is_excerpted_from_its_beginning() -> None:
    """What an item says first stands for it, when it names none of the concepts."""
    (section,) = sections(fit(of_bodies("first things first " * 500), 100, MATCHER).text)
    assert section.text.startswith("first things first ")


def test_an_excerpt_of_the_end_of_a_text_begins_early() -> None:
    """Where the text ends soon after the mention, the room is used for what stands before."""
    body = "before words " * 1_000 + "at last the RAG"
    context = fit(of_bodies(body), 500, MATCHER)
    (section,) = sections(context.text)
    assert section.text.endswith("at last the RAG")
    assert context.tokens >= 490


def test_several_long_texts_share_the_budget() -> None:
    """Each gets a first excerpt before one gets a long one, and then the first in rank does."""
    bodies = [f"the RAG {number} " + "and so on " * 2_000 for number in range(4)]
    context = fit(of_bodies(*bodies), 1_000, MATCHER)
    lengths = [len(section.text) for section in sections(context.text)]
    assert len(lengths) == 4
    assert lengths[0] > 1_500
    assert all(500 < length <= 600 for length in lengths[1:])
    assert context.tokens > 985


def test_an_excerpt_that_says_too_little_is_not_made() -> None:
    """Rather than a few words of it, a text is not shown at all."""
    context = fit(of_bodies("RAG and so on " * 100), 40, MATCHER)
    assert (context.used, refs(context.skipped)) == ((), ["record:1"])


@given(
    st.text("新 \n", max_size=400),
    st.text("界 \n", max_size=400),
    st.sampled_from(["RAG", "chunk size", "chunk\n size"]),
    st.integers(60, 400),
)
@settings(deadline=None)
@example("", "界" * 400, "chunk size", 60)
def test_an_excerpt_holds_the_first_mention(
    before: str, after: str, mention: str, budget: int
) -> None:
    """However the text around is written, the mention that it is cut around is not cut off."""
    body = f"{before}\n{mention}{after}" + " end" * 2_000
    (section,) = sections(fit(of_bodies(body), budget, MATCHER).text)
    assert seen(mention) in section.text


@pytest.mark.parametrize(
    ("body", "text", "whole"),
    [
        (" " * 200_000 + "RAG", "RAG", True),
        ("one" + " " * 200_000 + "\ntwo", "one…", False),
        ("\x00" * 40 + "🦉" * 300, "🦉", False),
    ],
)
def test_of_endless_white_space_nothing_is_shown(body: str, text: str, whole: bool) -> None:
    """Blanks before a text are no part of it, and what they hide is not taken for its end."""
    context = fit(of_bodies(body), 60, MATCHER)
    assert [used.whole for used in context.used] == [whole]
    assert sections(context.text)[0].text.strip().startswith(text)


def test_a_text_behind_endless_unseen_characters_is_skipped() -> None:
    """Only so much of a text is looked at, and an item that shows nothing there is left out."""
    context = fit(of_bodies("\x00" * 200_000 + "RAG"), 60, MATCHER)
    assert (context.used, refs(context.skipped)) == ((), ["record:1"])


@pytest.mark.parametrize("ending", ["RAGs", "RAG\u0301", "RAG_x"])
def test_a_word_at_the_limit_of_the_search_is_no_mention(ending: str) -> None:
    """Only the beginning of a huge text is searched, and a word cut off there is another word."""
    for cut in range(1, 5):
        before = ("start " + "x " * 25_000)[: 50_000 - cut - 1]
        body = f"{before} {ending}" + " tail" * 50_000
        (section,) = sections(fit(of_bodies(body), 200, MATCHER).text)
        assert section.text.startswith("start x x")


def test_every_kind_of_item_has_its_heading() -> None:
    """The form of a context, to the letter."""
    day = datetime(2026, 1, 15, 23, 30, tzinfo=timezone.utc)
    items = [
        item_of(
            match(
                12,
                title="Use honey",
                body="# Why\n\nBees.  \r\nAnd `jam`]\n",
                project="Breakfast",
                created_at=day,
                status="superseded",
                superseded_by=("record:14", "record:15"),
                concepts=("honey", "toast"),
            ),
            1,
        ),
        item_of(
            match(
                3,
                "observation",
                kind="Observation",
                body="Toast is fine",
                concepts=("toast",),
            ),
            2,
        ),
        item_of(
            match(
                4,
                "document_gist",
                kind="Document",
                title="Toast\n made  easy",
                body="A summary.",
                summary_status="reviewed",
                summary_stale=True,
            ),
            3,
            "kitchen",
        ),
    ]
    assert fit(items, 1_000, MATCHER).text == (
        "## Record: Use honey\n"
        "- ref: record:12\n"
        "- date: 2026-01-15\n"
        "- status: superseded by record:14, record:15\n"
        "- project: Breakfast\n"
        "- concepts: honey, toast\n"
        "\n"
        "> # Why\n"
        ">\n"
        "> Bees.\n"
        "> And `jam`]\n"
        "\n"
        "## Observation\n"
        "- ref: observation:3\n"
        "- concepts: toast\n"
        "\n"
        "> Toast is fine\n"
        "\n"
        "## Document: Toast\n"
        "- ref: document_gist:4\n"
        "- database: kitchen\n"
        "- status: reviewed summary, out of date\n"
        "- concepts: RAG\n"
        "\n"
        "> A summary.\n"
    )


@pytest.mark.parametrize(
    ("status", "superseded_by", "words"),
    [
        (None, (), None),
        ("accepted", (), "accepted"),
        ("superseded", (), "superseded"),
        ("accepted", ("record:7",), "superseded by record:7"),
        (None, ("record:7",), "superseded by record:7"),
        ("rejected", ("record:7",), "superseded by record:7, rejected"),
    ],
)
def test_the_status_says_whether_an_item_still_holds(
    status: str | None, superseded_by: tuple[str, ...], words: str | None
) -> None:
    """What was superseded is never shown as accepted."""
    items = items_of(match(body="x", status=status, superseded_by=superseded_by))
    (section,) = sections(fit(items, 100, MATCHER).text)
    assert section.fields.get("status") == words


def test_long_names_and_many_are_cut() -> None:
    """A huge title and hundreds of concepts leave room for the text, and say they were cut."""
    concepts = (*(f"concept number {n}" for n in range(300)), "c" * 10_000)
    items = items_of(match(title="t" * 10_000, project="p " * 5_000, concepts=concepts, body="RAG"))
    context = fit(items, 250, MATCHER)
    (section,) = sections(context.text)
    assert section.heading == "Record: " + "t" * 200 + "…"
    assert section.fields["project"].endswith("p…")
    names = section.fields["concepts"].split(", ")
    assert names[:2] == ["concept number 0", "concept number 1"]
    assert names[-1] == f"{301 - len(names) + 1} more"
    assert section.text == "RAG"

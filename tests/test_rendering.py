"""The text of a record: its statement, then a line of prose for each field that is there."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_concept_recall.rendering import (
    DEFAULT_RENDERING,
    RENDERINGS,
    RecordText,
    Rendering,
    as_json,
    context_text,
    embedding_text,
    from_json,
    frontmatter_prose,
    names_and_tags,
    predicate_line,
)

WHOLE = RecordText(
    statement="The night train leaves at ten.",
    subject="the timetable",
    kind="Routine",
    predicate="departure_time",
    entities=("night train", "platform 4"),
    location="Basel",
    qualifier="on weekdays",
    temporal_scope="RecentHistory",
    tags=("travel", "rail"),
    aliases=("the sleeper", "my usual train"),
)

FRONTMATTER = """\
About: the timetable
Kind: Routine departure time
Mentions: night train, platform 4
Place: Basel
When: on weekdays
Holds: RecentHistory"""

NAMES_AND_TAGS = """\
Also called: the sleeper, my usual train
Tags: travel, rail"""

EXPECTED: dict[Rendering, list[str]] = {
    "statement": [],
    "predicate": ["Kind: Routine departure time"],
    "frontmatter": [FRONTMATTER],
    "aliases": [NAMES_AND_TAGS],
    "full": [FRONTMATTER, NAMES_AND_TAGS],
}

# Each field that has a line of its own, and what starts it.
LABELS = {
    "subject": "About",
    "entities": "Mentions",
    "location": "Place",
    "qualifier": "When",
    "temporal_scope": "Holds",
    "aliases": "Also called",
    "tags": "Tags",
}

BLANKS = ["", " ", "\n", "\t \r\n", "\u00a0\u2028"]

pieces = st.sampled_from(
    [*BLANKS, "a", "B", "_", "two_words", "é", "🦉", '"', "\\", ",", ": ", "\x00", "Tags: x"]
)
texts = st.lists(pieces, max_size=4).map("".join) | st.text(max_size=6)
present = texts | st.none()
names = st.lists(texts, max_size=4).map(tuple)
records = st.builds(
    RecordText,
    statement=present,
    subject=present,
    kind=present,
    predicate=present,
    entities=names,
    location=present,
    qualifier=present,
    temporal_scope=present,
    tags=names,
    aliases=names,
)


def test_the_renderings_are_these_in_this_order() -> None:
    """The names of the renderings are fixed, and what is embedded by default is everything."""
    assert RENDERINGS == ("statement", "predicate", "frontmatter", "aliases", "full")
    assert DEFAULT_RENDERING == "full"


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_a_rendering_is_the_statement_and_then_its_lines_in_the_published_order(
    rendering: Rendering,
) -> None:
    """Each rendering of a record with every field is exactly the text that was measured."""
    expected = "\n".join([WHOLE.statement or "", *EXPECTED[rendering]])
    assert embedding_text(WHOLE, rendering) == expected


def test_a_text_to_embed_is_the_default_rendering_unless_another_is_named() -> None:
    """Who names no rendering gets what an index embeds that was told of none."""
    assert embedding_text(WHOLE) == embedding_text(WHOLE, DEFAULT_RENDERING)
    assert embedding_text(WHOLE) != embedding_text(WHOLE, "frontmatter")


def test_an_unknown_rendering_is_refused() -> None:
    """A name that is no rendering is an error, not silently another text."""
    with pytest.raises(KeyError):
        embedding_text(WHOLE, "all")  # type: ignore[arg-type]


def test_the_context_is_everything_but_the_statement() -> None:
    """Lexical search reads front matter, aliases and tags besides the statement."""
    assert context_text(WHOLE) == f"{FRONTMATTER}\n{NAMES_AND_TAGS}"


@pytest.mark.parametrize("field", LABELS)
def test_an_absent_field_leaves_no_line(field: str) -> None:
    """Without a field its line is missing, and all others stay as they are."""
    lines = context_text(WHOLE).split("\n")
    kept = [line for line in lines if not line.startswith(f"{LABELS[field]}:")]
    empty = () if isinstance(getattr(WHOLE, field), tuple) else ""
    assert len(kept) == len(lines) - 1
    assert context_text(replace(WHOLE, **{field: empty})).split("\n") == kept


@pytest.mark.parametrize(
    ("kind", "predicate", "line"),
    [
        ("Routine", "departure_time", "Kind: Routine departure time"),
        ("Routine", "", "Kind: Routine"),
        ("Routine", None, "Kind: Routine"),
        ("", "departure_time", "Kind: departure time"),
        (None, "departure_time", "Kind: departure time"),
        ("Routine", "_", "Kind: Routine"),
        ("Routine", "__gift__idea_", "Kind: Routine gift idea"),
        ("", "", ""),
        (None, None, ""),
        (" ", "_", ""),
    ],
)
def test_the_line_of_the_predicate_has_what_is_there(
    kind: str | None, predicate: str | None, line: str
) -> None:
    """Kind and predicate share a line, which is missing only when both are."""
    assert predicate_line(RecordText("x", kind=kind, predicate=predicate)) == line


def test_only_the_predicate_loses_its_underscores() -> None:
    """Names are kept as they are written: what has an underscore may be searched with it."""
    named = RecordText(
        statement="max_length is 5",
        subject="a_b",
        kind="c_d",
        predicate="e_f",
        entities=("g_h",),
        location="i_j",
        qualifier="k_l",
        temporal_scope="m_n",
        tags=("o_p",),
        aliases=("q_r",),
    )
    assert embedding_text(named, "full").replace("e f", "e_f").count("_") == 10
    assert "Kind: c_d e f" in embedding_text(named, "full")


@pytest.mark.parametrize("blank", [None, *BLANKS])
def test_a_record_of_blanks_has_nothing_but_its_statement(blank: str | None) -> None:
    """None and every kind of white space count as absent, in texts and in lists."""
    lists = () if blank is None else (blank, blank)
    record = RecordText("x", blank, blank, blank, lists, blank, blank, blank, lists, lists)
    assert {embedding_text(record, rendering) for rendering in RENDERINGS} == {"x"}
    assert frontmatter_prose(record) == names_and_tags(record) == as_json(record) == ""


@pytest.mark.parametrize("blank", [None, *BLANKS])
@pytest.mark.parametrize("rendering", RENDERINGS)
def test_nothing_is_added_to_a_blank_statement(blank: str | None, rendering: Rendering) -> None:
    """A record that states nothing has no text that could be found by its front matter."""
    assert embedding_text(replace(WHOLE, statement=blank), rendering) == (blank or "")


def test_white_space_in_a_value_is_one_space() -> None:
    """A line break in a value cannot begin a line, in lists as little as in texts."""
    record = RecordText("x", subject=" a\n\nTags:\tb\u2028c ", tags=("\r\nd  e\n", "f"))
    assert embedding_text(record, "full") == "x\nAbout: a Tags: b c\nTags: d e, f"


def test_a_name_stands_once_at_its_first_place() -> None:
    """Repeated and blank names are left out of a list, and the order of the others is kept."""
    record = RecordText("x", aliases=("b", "a", " ", "b", " a\n", "A"))
    assert names_and_tags(record) == "Also called: b, a, A"


@pytest.mark.parametrize("statement", ["  a\n\n b ", "a\n", "_a_\tb\r\n"])
def test_the_statement_is_kept_as_it_is(statement: str) -> None:
    """White space and underscores of the statement stay, and no blank line follows it."""
    record = RecordText(statement, subject="s")
    assert embedding_text(record, "statement") == statement
    assert embedding_text(record, "full") == statement.removesuffix("\n") + "\nAbout: s"


@given(records, st.sampled_from(RENDERINGS))
@settings(max_examples=200)
def test_what_follows_the_statement_are_lines_with_a_label_and_a_value(
    record: RecordText, rendering: Rendering
) -> None:
    """Every rendering begins with the statement, and whatever it adds is no blank line."""
    text, statement = embedding_text(record, rendering), record.statement or ""
    assert text.startswith(statement)
    added = text[len(statement) :]
    if added:
        assert statement.endswith("\n") != added.startswith("\n")
        for line in added.removeprefix("\n").split("\n"):
            label, _, value = line.partition(": ")
            assert label in {*LABELS.values(), "Kind"}
            assert value.split()
            assert line == " ".join(line.split())


@given(records, st.sampled_from(RENDERINGS))
@settings(max_examples=150)
def test_the_full_rendering_has_the_lines_of_every_other(
    record: RecordText, rendering: Rendering
) -> None:
    """No rendering says what the full one leaves out, or says it in another order."""
    full, other = embedding_text(record, "full"), embedding_text(record, rendering)
    rest = iter(full.removesuffix("\n").split("\n"))
    assert all(line in rest for line in other.removesuffix("\n").split("\n"))


@given(records)
@settings(max_examples=200)
def test_a_record_read_from_its_json_renders_as_before(record: RecordText) -> None:
    """Nothing that any rendering shows is lost, and writing once more writes the same."""
    text = as_json(record)
    read = from_json(text)
    assert read.statement == ""
    whole = replace(read, statement=record.statement)
    for rendering in RENDERINGS:
        assert embedding_text(whole, rendering) == embedding_text(record, rendering)
    assert context_text(read) == context_text(record)
    assert as_json(read) == text


def test_a_tidy_record_comes_back_from_its_json_as_it_was() -> None:
    """Every field but the statement is stored, underscores of the predicate included."""
    assert replace(from_json(as_json(WHOLE)), statement=WHOLE.statement) == WHOLE
    stored = set(json.loads(as_json(WHOLE)))
    assert stored == {field.name for field in fields(RecordText)} - {"statement"}


def test_the_json_is_compact_and_has_no_absent_fields() -> None:
    """What is stored beside each document is as short as it can be and can be read."""
    record = RecordText("x", subject="Zürich", kind=None, entities=("a", "a"), tags=("",))
    assert as_json(record) == '{"subject":"Zürich","entities":["a"]}'


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "null", "[]", '["subject"]', '"subject"', "1", "{}", "[" * 100_000, "9" * 5000),
        *('{"statement":"x"}', '{"colour":"red"}', '{"subject":1}', '{"subject":null}'),
        *('{"tags":"red"}', '{"tags":[1,null,["a"]]}', '{"tags":{"a":1}}'),
    ],
)
def test_what_is_no_json_of_a_record_reads_as_an_empty_one(text: str) -> None:
    """Broken JSON and other shapes are a record without fields, never an error."""
    assert from_json(text) == RecordText("")


def test_a_field_of_another_shape_leaves_the_others() -> None:
    """What can be read of a record is read."""
    text = '{"subject":"a","kind":["b"],"tags":["c",2],"colour":"red"}'
    assert from_json(text) == RecordText("", subject="a", tags=("c",))

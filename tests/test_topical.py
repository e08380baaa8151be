"""The words of a question: which say what it is about, and that no text at all is a danger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from datasette_concept_recall.folding import fold
from datasette_concept_recall.indexing.tables import migrate
from datasette_concept_recall.lexical import Within, admitted, search_index, words_of_chunks
from datasette_concept_recall.question_words import GENERAL_VERBS, NOT_TOPICAL
from datasette_concept_recall.reading import reading
from datasette_concept_recall.topical import (
    MOST_IN_NAME,
    MOST_WORDS,
    in_words,
    question_of,
    singular,
)

# --- the words of a text -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "topical", "others"),
    [
        ("How do we rotate keys?", ("rotate", "keys"), ("how", "do", "we")),
        ("Which keys, WHICH Keys?", ("keys",), ("which",)),
        ("the user's favourite tea", ("favourite", "tea"), ("the", "user", "s")),
        ("snake_jar and kebab-jar", ("snake", "jar", "kebab"), ("and",)),
        ("ÉTÉ Été", ("été",), ()),
        ("port 8080 in 2026-01-15", ("port", "8080", "2026", "01", "15"), ("in",)),
        ("面向 что νέα", ("面向", "что", "νέα"), ()),
        ("what does the user have", (), ("what", "does", "the", "user", "have")),
        ("", (), ()),
        (" \t\n?!… 🍞 🍞", (), ()),
    ],
)
def test_a_text_is_words_that_are_topical_and_words_that_are_not(
    text: str, topical: tuple[str, ...], others: tuple[str, ...]
) -> None:
    """Words are folded runs of letters and digits, each once, in the order of the text."""
    question = question_of(text)
    assert (question.topical, question.others) == (topical, others)


def test_a_general_verb_is_topical_where_there_is_no_other_word() -> None:
    """What takes its meaning from its object admits something only where there is no object."""
    assert question_of("what do I want").topical == ("want",)
    assert question_of("what do I want").others == ("what", "do", "i")
    assert question_of("what tea do I want").topical == ("tea",)
    assert question_of("what tea do I want").others == ("what", "do", "i", "want")


def test_the_list_is_replaced_by_one_of_another_language() -> None:
    """The words that admit nothing are those that are given, and no others besides."""
    german = frozenset({"wie", "wird", "der", "machen"})
    question = question_of("Wie wird der Tee machen", german, frozenset({"machen"}))
    assert (question.topical, question.others) == (("tee",), ("wie", "wird", "der", "machen"))
    assert question_of("wie wird", german, frozenset()).topical == ()
    assert question_of("wie machen", german, frozenset({"machen"})).topical == ("machen",)
    assert question_of("what is it", german).topical == ("what", "is", "it")


def test_a_general_word_that_is_not_in_the_list_is_topical_anyway() -> None:
    """A list that does not name a verb makes it a topic like any other word."""
    assert question_of("use tea", frozenset()).topical == ("use", "tea")


def test_the_lists_hold_words_as_questions_have_them() -> None:
    """A word that is not in folded form, or is two words, would never be met."""
    assert all([*question_of(word, frozenset()).topical] == [word] for word in NOT_TOPICAL)
    assert GENERAL_VERBS < NOT_TOPICAL
    assert {"what", "user", "know", "t"} <= NOT_TOPICAL - GENERAL_VERBS


@pytest.mark.parametrize("word", ["backup", "deploy", "coffee", "budget", "database", "policy"])
def test_a_word_that_says_what_a_question_is_about_is_in_no_list(word: str) -> None:
    """The closed list leaves the words of subjects alone."""
    assert question_of(f"what about the {word}").topical == (word,)


# --- texts of any length -------------------------------------------------------------------------


def test_of_a_long_text_the_words_are_kept_that_it_has_most_often() -> None:
    """Of more words than are looked for the frequent ones stay, in the order of the text."""
    rare = " ".join(f"rare{n}" for n in range(500))
    often = [f"often{n}" for n in range(MOST_WORDS)]
    question = question_of(f"{rare} {' '.join(often)} {' '.join(reversed(often))}")
    assert question.topical == tuple(often)
    assert question.others == ()


def test_of_equally_frequent_words_the_first_are_kept() -> None:
    """What is kept of a long text does not depend on how words happen to be hashed."""
    words = [f"word{n}" for n in range(MOST_WORDS + 20)]
    assert question_of(" ".join(words)).topical == tuple(words[:MOST_WORDS])


def test_other_words_have_a_limit_of_their_own() -> None:
    """Many topical words take no place from the others, nor the other way round."""
    question = question_of(f"{' '.join(NOT_TOPICAL)} {' '.join(f'w{n}' for n in range(200))}")
    assert len(question.topical) == len(question.others) == MOST_WORDS
    assert set(question.others) <= NOT_TOPICAL


@pytest.mark.parametrize(
    "text",
    ["word " * 40_000, "x" * 200_000, "\u0301" * 200_000, '" OR ' * 40_000, "\x00" * 200_000,
     "".join(f"w{n} " for n in range(30_000))],
    ids=["one word", "no space", "marks", "operators", "nul", "distinct"],
)  # fmt: skip
def test_two_hundred_thousand_characters_are_a_question_of_few_words(text: str) -> None:
    """The work for a text is bounded by the number of words that are looked for."""
    question = question_of(text)
    assert len(question.topical) <= MOST_WORDS
    assert len(question.names) <= 200 * MOST_IN_NAME


# --- names ---------------------------------------------------------------------------------------


def test_names_are_all_short_runs_of_words() -> None:
    """A name may be any words in a row, whether or not they are topical ones."""
    assert question_of("Is the Blue-Kettle on?").names == {
        *("is", "the", "blue", "kettle", "on"),
        *("is the", "the blue", "blue kettle", "kettle on"),
        *("is the blue", "the blue kettle", "blue kettle on"),
        *("is the blue kettle", "the blue kettle on", "is the blue kettle on"),
    }


@given(st.text(max_size=60), st.text(max_size=60), st.lists(st.text("abC ß-_", min_size=1)))
@settings(max_examples=100)
def test_a_name_in_a_question_is_among_its_names(before: str, after: str, parts: list[str]) -> None:
    """However a name is written, its words in a text are one of the runs."""
    name = in_words(" ".join(parts[:MOST_IN_NAME]))
    names = question_of(f"{before} {' '.join(parts[:MOST_IN_NAME])} {after}").names
    if name and name.count(" ") < MOST_IN_NAME:
        assert name in names


@given(st.text(max_size=100))
@settings(max_examples=150)
def test_every_word_is_in_exactly_one_of_the_two_lists(text: str) -> None:
    """Topical words and others are all words of a text, each once; a word may come in the spelling
    of the text as well."""
    question = question_of(text)
    listed = [*question.topical, *question.others]
    words = in_words(text).split()
    assert len(listed) == len(set(listed))
    assert set(words) <= set(listed)
    assert {in_words(word) for word in listed} <= set(words)
    assert all(fold(word) == word for word in words)


@pytest.mark.parametrize(
    ("word", "one"),
    [
        ("policies", "policy"),
        ("keys", "key"),
        ("caches", "cache"),
        ("status", "status"),
        ("glass", "glass"),
        ("key", "key"),
        ("heroes", "heroe"),
        ("s", ""),
    ],
)
def test_the_ending_of_a_plural_is_taken_off(word: str, one: str) -> None:
    """The rules are the first that apply, one of three; a word without one stays."""
    assert singular(word) == one


# --- whatever is asked, full text answers --------------------------------------------------------


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    """A small index whose documents have words that operators are made of."""
    texts = ["near and or not", "tea AND NEAR kettle", 'a "quoted" text*', "café 面 ½ Ⅳ ßtraße"]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
        migrate(conn)
        conn.execute("insert into source (id, name, kind, origin, added_at) values (1, 'n', 'f',"
                     " '', '')")  # fmt: skip
        conn.execute("insert into index_version (id, source_id, signature, state, started_at)"
                     " values (1, 1, '', 'live', '')")  # fmt: skip
        for n, text in enumerate(texts, 1):
            conn.execute("insert into document (id, source_id, key, title, kind, path)"
                         " values (?, 1, ?, '', 'note', '')", [n, bytes([n])])  # fmt: skip
            conn.execute("insert into generation (id, document_id, version_id, fingerprint,"
                         " content_hash, is_complete, started_at) values (?, ?, 1, '', '', 1, '')",
                         [n, n])  # fmt: skip
            conn.execute("insert into chunk (id, generation_id, position, text, text_hash,"
                         " start_offset, end_offset) values (?, ?, 0, ?, x'', 0, 0)",
                         [n, n, text])  # fmt: skip
            conn.execute("update document set live_generation = id")
        yield conn


def asked(index: sqlite3.Connection, text: str) -> list[int]:
    """The documents that are found for a text, by everything that full text is asked."""
    question = question_of(text)
    with reading(index) as reader:
        found = search_index(reader, question, Within(), 10)
        chunks = admitted(reader, question, Within())
        assert admitted(reader, question, Within(), chunks) == chunks
        words = words_of_chunks(reader, question, Within(), chunks)
    assert {each.chunk for each in found} == set(chunks) == set(words)
    return [each.document for each in found]


@given(
    st.one_of(
        st.text(max_size=50),
        st.text("\"*^:()+-{}~'\\ \x00\ud800NEARORNOTnear,tea", max_size=50),
        st.lists(
            st.sampled_from(['"', "NEAR(", ")", "tea", "AND", "OR", "NOT", "*", "^", ":", "text"])
        ).map(" ".join),
        st.text(st.characters(categories=["L", "N", "M", "Co", "Cn", "Cs"]), max_size=50),
    )
)
@example("\U0001f35e\u200d\U0001f35e NEAR(tea kettle, 3)")
@example("text:tea OR context:tea")
@example("^tea + kettle* -text")
@example("\U00010d4a\ua7cb tea")  # letters that are younger than SQLite's tables
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_at_all_is_an_error(index: sqlite3.Connection, text: str) -> None:
    """Any Unicode is asked as words; nothing in it is a query, and what is found is consistent."""
    asked(index, text)


def test_operators_are_words(index: sqlite3.Connection) -> None:
    """What would be an operator finds the texts that have the word, when it is topical."""
    assert asked(index, "NEAR(tea)") == [2]
    assert asked(index, 'NOT "tea') == [2]
    assert asked(index, "tea*") == [2]
    assert asked(index, "te*") == []
    assert asked(index, "^quoted : nothing") == [3]
    assert asked(index, "text:zebra") == [3]


@pytest.mark.parametrize(
    "text",
    [
        "tea " * 50_000,
        "x" * 200_000,
        "".join(f"w{n} " for n in range(30_000)) + "tea",
        " ".join(sorted(NOT_TOPICAL)) + " tea " + "".join(f"v{n} " for n in range(40)),
        ("\U0001f35e" * 100 + " tea ") * 1_900,
    ],
    ids=["one word", "no space", "distinct", "both limits", "emoji"],
)
def test_a_huge_text_is_asked_without_an_error(index: sqlite3.Connection, text: str) -> None:
    """Two hundred kilobytes are no deeper a query than any."""
    found = asked(index, text)
    assert found == ([2] if "tea " in text else [])

"""What is tagged with the concepts asked for: every rule of recall, and hostile files."""

from __future__ import annotations

import dataclasses
import itertools
import random
import sqlite3
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import knowledge
import recall_oracle
from datasette_concept_recall import (
    ConceptMatch,
    RecallError,
    UnknownProject,
    match_concept_names,
    recall_by_concept_names,
    recall_by_text,
)
from knowledge import Section

UNTYPED_NAMES = """
    CREATE TABLE concepts (id INTEGER PRIMARY KEY, name);
    CREATE TABLE observations (id INTEGER PRIMARY KEY, body TEXT);
    CREATE TABLE observation_concepts (observation_id INTEGER, concept_id INTEGER);
"""
"""The least there can be, in which a name may have any type of value."""


@pytest.fixture
def conn() -> Iterator[sqlite3.Connection]:
    """An empty knowledge database of today in memory."""
    with closing(knowledge.create()) as connection:
        yield connection


def utc(*parts: int) -> datetime:
    """An aware UTC datetime from year, month, day and so on."""
    return datetime(*parts, tzinfo=timezone.utc)  # type: ignore[arg-type, misc]


def refs(matches: list[ConceptMatch]) -> list[str]:
    """The matches as short names, in their order: 'record:3'."""
    return [f"{match.source_type}:{match.id}" for match in matches]


def recalled(conn: sqlite3.Connection, *names: str, **options: Any) -> list[str]:
    """What recall by names finds, as short names."""
    return refs(recall_by_concept_names(conn, names, **options))


def only(matches: list[ConceptMatch]) -> ConceptMatch:
    """The one match there is."""
    assert len(matches) == 1
    return matches[0]


# --- 1. resolving names --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("RAG", "rag"),
        ("Straße", "STRASSE"),
        ("STRASSE", "straße"),
        ("Éclair", "e\u0301clair"),
        ("e\u0301clair", "ÉCLAIR"),
        ("context window", "Context \n window"),
        ("context\nwindow", "context window"),
        (" padded ", "padded"),
        ("padded", "\tPadded "),
        ("C++", "c++"),
        ("世界", "世界"),
    ],
)
def test_a_name_is_resolved_as_matching_folds_it(
    conn: sqlite3.Connection, stored: str, asked: str
) -> None:
    """A name asked for is found under its stored spelling, which is what the answer reports."""
    knowledge.add_observation(conn, "it", concepts=[stored])
    match = only(recall_by_concept_names(conn, [asked]))
    assert match.concepts == (stored,)
    assert match.match_count == 1


@pytest.mark.parametrize("asked", [[], [""], [" "], ["unknown"], ["ra"], ["rags"], ["R.G"], ["%"]])
def test_names_that_are_not_there_find_nothing(conn: sqlite3.Connection, asked: list[str]) -> None:
    """No names, blank names, and parts or patterns of a name are unknown, not errors."""
    knowledge.add_observation(conn, "it", concepts=["RAG"])
    assert recall_by_concept_names(conn, asked) == []


def test_unknown_names_are_skipped_among_known_ones(conn: sqlite3.Connection) -> None:
    """An unknown name neither adds to the count nor hides what the others find."""
    knowledge.add_observation(conn, "it", concepts=["RAG"])
    match = only(recall_by_concept_names(conn, ["nope", "RAG", "\ud800", "neither"]))
    assert match.concepts == ("RAG",)


def test_repeats_and_case_variants_of_a_name_count_once(conn: sqlite3.Connection) -> None:
    """Asking thrice for one name is asking once."""
    knowledge.add_observation(conn, "it", concepts=["RAG"])
    match = only(recall_by_concept_names(conn, ["RAG", "rag", "RAG", " Rag "]))
    assert (match.match_count, match.concepts) == (1, ("RAG",))


def test_concepts_that_differ_in_case_are_one_name(conn: sqlite3.Connection) -> None:
    """What is tagged with either spelling comes back, and carrying both counts once."""
    upper = knowledge.add_observation(conn, "upper", concepts=["RAG"])
    lower = knowledge.add_observation(conn, "lower", concepts=["rag"])
    both = knowledge.add_observation(conn, "both", concepts=["rag", "RAG"])
    for asked in ["RAG", "rag", "Rag"]:
        matches = recall_by_concept_names(conn, [asked])
        assert refs(matches) == [f"observation:{item}" for item in (upper, lower, both)]
        assert {match.match_count for match in matches} == {1}


@pytest.mark.parametrize(("asked", "reported"), [("RAG", "RAG"), ("rag", "rag"), ("Rag", "RAG")])
def test_a_case_variant_is_reported_as_asked_for_when_stored_so(
    conn: sqlite3.Connection, asked: str, reported: str
) -> None:
    """Of several stored spellings the one asked for is reported, else the first by code point."""
    knowledge.add_observation(conn, "it", concepts=["rag", "RAG"])
    assert only(recall_by_concept_names(conn, [asked])).concepts == (reported,)


def test_the_concepts_of_a_match_are_in_the_order_asked(conn: sqlite3.Connection) -> None:
    """By names the order is the caller's; by text it is code-point order."""
    knowledge.add_observation(conn, "it", concepts=["apple", "Zoo", "mint"])
    asked = ["mint", "zoo", "apple"]
    assert only(recall_by_concept_names(conn, asked)).concepts == ("mint", "Zoo", "apple")
    result = recall_by_text(conn, "mint, apple, zoo")
    assert only(result.matches).concepts == ("Zoo", "apple", "mint")
    assert result.concepts == ["Zoo", "apple", "mint"]


def test_more_names_than_a_statement_has_parameters(conn: sqlite3.Connection) -> None:
    """The number of names is not limited by the number of SQL parameters."""
    names = [f"name{number}" for number in range(1500)]
    last = knowledge.add_observation(conn, "it", concepts=names)
    if hasattr(conn, "setlimit"):  # Python 3.11
        conn.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 500)
    match = only(recall_by_concept_names(conn, names))
    assert (match.id, match.match_count) == (last, 1500)
    assert recall_by_text(conn, " ".join(names)).matches[0].match_count == 1500


# --- 2. sources ----------------------------------------------------------------------------------


def test_every_kind_of_source_is_recalled(conn: sqlite3.Connection) -> None:
    """Observations, records, gists and sections are found through their own link tables."""
    observation = knowledge.add_observation(conn, "An observation", concepts=["jam"])
    record = knowledge.add_record(conn, "A record", concepts=["jam"])
    document = knowledge.add_document(
        conn,
        "A document",
        gist=Section(concepts=["jam"]),
        sections=[Section("untagged"), Section("tagged", concepts=["jam"])],
    )
    assert recalled(conn, "jam") == [
        f"observation:{observation}",
        f"record:{record}",
        f"document_gist:{document.gist}",
        f"document_section:{document.sections[1]}",
    ]


@pytest.mark.parametrize("level", ["section", "scene", "", "GIST", "chapter"])
def test_any_level_but_gist_is_a_section(conn: sqlite3.Connection, level: str) -> None:
    """Only the level 'gist' makes a document_gist."""
    section = Section("Heading", level=level, concepts=["jam"])
    knowledge.add_document(conn, "Document", sections=[section])
    match = only(recall_by_concept_names(conn, ["jam"]))
    assert (match.source_type, match.title) == ("document_section", "Document / Heading")


def test_a_gist_is_titled_as_its_document(conn: sqlite3.Connection) -> None:
    """A gist's own heading, if it has one, is no part of its title."""
    knowledge.add_document(conn, "Document", gist=Section("Heading", concepts=["jam"]))
    assert only(recall_by_concept_names(conn, ["jam"])).title == "Document"


def test_a_section_without_heading_is_titled_as_its_document(conn: sqlite3.Connection) -> None:
    """No heading, no dangling slash."""
    knowledge.add_document(conn, "Document", sections=[Section("", concepts=["jam"])])
    assert only(recall_by_concept_names(conn, ["jam"])).title == "Document"


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        ("today", ["observation", "record", "document_gist"]),
        ("upgraded", ["observation", "record", "document_gist"]),
        ("without-documents", ["observation"]),
        ("pre-records", ["observation"]),
        ("without-uuids", ["observation"]),
        ("hand-made", ["observation"]),
        ("nothing", []),
    ],
)
def test_each_variant_of_the_schema_gives_what_it_has(variant: str, expected: list[str]) -> None:
    """A source is used when its tables are there, and left out in silence when they are not."""
    with closing(knowledge.create(variant=variant)) as conn:
        if knowledge.table_exists(conn, "observations"):
            knowledge.add_observation(conn, "Body", concepts=["jam"])
        if knowledge.table_exists(conn, "records"):
            knowledge.add_record(conn, "Record", concepts=["jam"])
        if knowledge.table_exists(conn, "documents"):
            knowledge.add_document(conn, "Document", gist=Section(concepts=["jam"]))
        assert [m.source_type for m in recall_by_concept_names(conn, ["jam"])] == expected
        result = recall_by_text(conn, "jam")
        assert [match.source_type for match in result.matches] == expected
        assert result.total == len(expected)
        assert result.concepts == (["jam"] if expected else [])


@pytest.mark.parametrize("table", sorted(knowledge.TABLES))
def test_a_file_that_lacks_any_one_table_still_answers(
    conn: sqlite3.Connection, table: str
) -> None:
    """Whichever table is missing, what the others hold is recalled as the oracle recalls it."""
    observation = knowledge.add_observation(conn, "it", concepts=["jam"], project="P")
    knowledge.supersede_observation(conn, knowledge.add_observation(conn, "new"), observation)
    record = knowledge.add_record(conn, "it", concepts=["jam"], project="P")
    knowledge.supersede_record(conn, knowledge.add_record(conn, "new"), record)
    knowledge.add_document(conn, "it", gist=Section(concepts=["jam"]), project="P")
    knowledge.link_project(conn, "P", "jam")
    conn.execute("DROP VIEW project_summary")
    conn.execute(f"DROP TABLE {table}")
    if table == "documents":  # the rows left over are not promised to be read, nor to be skipped
        assert recalled(conn, "jam")[:2] == ["observation:1", "record:1"]
    else:
        assert_agrees_with_oracle(conn, ["jam"])
    assert recall_by_text(conn, "jam").projects == recall_oracle.projects_of(conn, ["jam"])


def test_the_number_of_queries_does_not_grow_with_the_items(conn: sqlite3.Connection) -> None:
    """One query per source finds them all: there is no query per item or per name."""
    statements: list[str] = []
    counts = []
    for names in (["a", "b"], [f"n{number}" for number in range(40)]):
        for number in range(len(names)):
            observation = knowledge.add_observation(conn, f"body {number}", concepts=names)
            knowledge.add_record(conn, f"title {number}", concepts=names, project=f"P{number}")
            knowledge.add_document(conn, f"doc {number}", gist=Section(concepts=names))
        knowledge.supersede_observation(conn, observation, observation - 1)
        conn.commit()
        statements.clear()
        conn.set_trace_callback(statements.append)
        assert len(recall_by_concept_names(conn, names)) == 3 * len(names)
        conn.set_trace_callback(None)
        counts.append(len(statements))
    assert counts[0] == counts[1]


# --- 3. what a match says ------------------------------------------------------------------------


def test_an_observation_match_has_all_its_fields(conn: sqlite3.Connection) -> None:
    """An observation has no title; its body and time are those of its row."""
    knowledge.add_observation(
        conn, "Toast.\nWith jam", concepts=["jam"], project="P", created_at="2026-03-05 10:00:00"
    )
    assert only(recall_by_concept_names(conn, ["jam"])) == ConceptMatch(
        source_type="observation",
        id=1,
        project_id=1,
        project="P",
        title="",
        body="Toast.\nWith jam",
        match_count=1,
        concepts=("jam",),
        created_at=utc(2026, 3, 5, 10),
        summary_status=None,
        summary_stale=None,
        status=None,
        superseded_by=(),
        kind="Observation",
        item_table="observations",
        key=(1,),
    )


def test_a_record_match_has_all_its_fields(conn: sqlite3.Connection) -> None:
    """A record's time is when it was ingested, not the date of the decision."""
    knowledge.add_record(
        conn,
        "Use jam",
        "# Why\n\nIt is sweet",
        concepts=["jam", "toast"],
        status="proposed",
        ingested_at="2026-03-05T10:00:00Z",
        date="2020-01-01",
    )
    assert only(recall_by_concept_names(conn, ["toast", "jam"])) == ConceptMatch(
        source_type="record",
        id=1,
        project_id=None,
        project=None,
        title="Use jam",
        body="# Why\n\nIt is sweet",
        match_count=2,
        concepts=("toast", "jam"),
        created_at=utc(2026, 3, 5, 10),
        summary_status=None,
        summary_stale=None,
        status="proposed",
        superseded_by=(),
        kind="Record",
        item_table="records",
        key=(1,),
    )


def test_a_section_match_has_all_its_fields(conn: sqlite3.Connection) -> None:
    """A section's time is its own; its project is that of its document."""
    section = Section(
        "Spreads",
        body="raw text",
        summary="About spreads",
        status="reviewed",
        stale=True,
        concepts=["jam"],
        created_at="2026-03-05",
    )
    knowledge.add_document(conn, "Breakfast", sections=[section], project="P")
    assert only(recall_by_concept_names(conn, ["jam"])) == ConceptMatch(
        source_type="document_section",
        id=2,
        project_id=1,
        project="P",
        title="Breakfast / Spreads",
        body="About spreads",
        match_count=1,
        concepts=("jam",),
        created_at=utc(2026, 3, 5),
        summary_status="reviewed",
        summary_stale=True,
        status=None,
        superseded_by=(),
        kind="Section",
        item_table="document_sections",
        key=(2,),
    )


@pytest.mark.parametrize("status", ["unsummarized", "drafted", "", "Reviewed", "something new"])
def test_a_summary_that_is_not_reviewed_is_not_shown(conn: sqlite3.Connection, status: str) -> None:
    """An unreviewed document has no body, neither summary nor raw text, and says its status."""
    section = Section("H", body="raw", summary="draft", status=status, concepts=["jam"])
    gist = Section(summary="draft", status=status, concepts=["jam"])
    knowledge.add_document(conn, "D", gist=gist, sections=[section])
    matches = recall_by_concept_names(conn, ["jam"])
    assert [(m.body, m.summary_status, m.summary_stale) for m in matches] == 2 * [
        ("", status, False)
    ]


@pytest.mark.parametrize("status", ["accepted", "superseded", "rejected", "something new", ""])
def test_the_status_of_a_record_is_reported_as_stored(
    conn: sqlite3.Connection, status: str
) -> None:
    """Every status is passed on, unknown ones too, and none hides the record."""
    knowledge.add_record(conn, "it", concepts=["jam"], status=status)
    assert only(recall_by_concept_names(conn, ["jam"])).status == status


def test_a_match_cannot_be_changed(conn: sqlite3.Connection) -> None:
    """Matches are frozen."""
    knowledge.add_observation(conn, "it", concepts=["jam"])
    match = only(recall_by_concept_names(conn, ["jam"]))
    with pytest.raises(dataclasses.FrozenInstanceError):
        match.body = "else"  # type: ignore[misc]


def test_what_supersedes_a_record_is_named(conn: sqlite3.Connection) -> None:
    """A superseded record names the newer ones by id, tagged or not; other relations do not."""
    old = knowledge.add_record(conn, "old", concepts=["jam"])
    others = [knowledge.add_record(conn, f"other {number}") for number in range(11)]
    for other in (others[10], others[1]):
        knowledge.supersede_record(conn, other, old)
    knowledge.supersede_record(conn, others[2], old, "relates_to")
    knowledge.supersede_record(conn, old, others[3])
    match = only(recall_by_concept_names(conn, ["jam"]))
    assert match.superseded_by == (f"record:{others[1]}", f"record:{others[10]}")


def test_what_supersedes_an_observation_is_named(conn: sqlite3.Connection) -> None:
    """Observations have relations of their own, not mixed up with those of equal record ids."""
    old = knowledge.add_observation(conn, "old", concepts=["jam"])
    new = knowledge.add_observation(conn, "new", concepts=["jam"])
    knowledge.add_record(conn, "same id as old", concepts=["jam"])
    knowledge.supersede_observation(conn, new, old)
    found = {match.ref: match.superseded_by for match in recall_by_concept_names(conn, ["jam"])}
    assert found == {
        f"observation:{old}": (f"observation:{new}",),
        f"observation:{new}": (),
        "record:1": (),
    }


def test_a_relation_from_a_row_that_is_gone_says_nothing(conn: sqlite3.Connection) -> None:
    """An item is superseded by what exists, not by a dangling id."""
    knowledge.supersede_record(conn, 99, knowledge.add_record(conn, "it", concepts=["jam"]))
    knowledge.supersede_observation(
        conn, 98, knowledge.add_observation(conn, "it", concepts=["jam"])
    )
    matches = recall_by_concept_names(conn, ["jam"])
    assert [match.superseded_by for match in matches] == [(), ()]


def test_an_item_of_a_project_that_is_gone_has_no_project(conn: sqlite3.Connection) -> None:
    """A dangling project id is no error; the item is shown without a project."""
    knowledge.add_observation(conn, "it", concepts=["jam"], project_id=99)
    knowledge.add_record(conn, "it", concepts=["jam"], project_id=99)
    knowledge.add_document(conn, "it", gist=Section(concepts=["jam"]), project_id=99)
    assert [m.project for m in recall_by_concept_names(conn, ["jam"])] == [None] * 3


# --- 4. rank -------------------------------------------------------------------------------------


def test_more_concepts_come_first_then_newer(conn: sqlite3.Connection) -> None:
    """The worked example: two concepts beat one, and of equals the later comes first."""
    toast = knowledge.add_observation(conn, "1", concepts=["toast"], created_at="2026-03-05")
    both = knowledge.add_observation(conn, "2", concepts=["toast", "jam"], created_at="2026-03-01")
    record = knowledge.add_record(conn, "3", concepts=["toast", "jam"], ingested_at="2026-03-02")
    expected = [f"record:{record}", f"observation:{both}", f"observation:{toast}"]
    assert recalled(conn, "toast", "jam") == expected
    assert recalled(conn, "toast", "jam", limit=1) == expected[:1]


def test_times_are_compared_as_instants(conn: sqlite3.Connection) -> None:
    """All spellings of a time are ordered by the instant they name, not as text."""
    newest_first = [
        "2026-09-30T00:30:00+01:00",
        "2026-09-29 23:00:00",
        "2026-09-29T22:59:59.999999Z",
        "2026-09-29 18:00:00.5-04:00",
        "2026-09-29T22:00:00",
        "2026-09-29 21:00",
        "2026-09-29T01:00:00Z",
        "2026-09-29",
        "2026-09-28T23:59:59Z",
        None,
    ]
    order = list(range(len(newest_first)))
    random.Random(1).shuffle(order)
    for index in order:
        knowledge.add_observation(
            conn, str(index), concepts=["jam"], created_at=newest_first[index], id=index + 1
        )
    matches = recall_by_concept_names(conn, ["jam"])
    assert [match.id - 1 for match in matches] == list(range(len(newest_first)))
    assert matches[0].created_at == utc(2026, 9, 29, 23, 30)


@pytest.mark.parametrize(
    "junk", [None, "", "junk", "2026-02-30", 1790000000, 1.5, "20260929", 2**62]
)
def test_a_time_that_cannot_be_read_is_none_and_last(
    conn: sqlite3.Connection, junk: object
) -> None:
    """NULL, junk and numbers are no time: such items come last among equals, never first."""
    for add, column in (
        (knowledge.add_observation, "created_at"),
        (knowledge.add_record, "ingested_at"),
    ):
        add(conn, "junk", concepts=["jam"], **{column: junk})
        add(conn, "good", concepts=["jam"], **{column: "0001-01-01"})
    sections = [Section("j", created_at=junk, concepts=["jam"])]
    knowledge.add_document(conn, "D", sections=sections)
    matches = recall_by_concept_names(conn, ["jam"])
    assert refs(matches) == [
        "observation:2",
        "record:2",
        "observation:1",
        "record:1",
        "document_section:2",
    ]
    assert [match.created_at for match in matches] == [utc(1, 1, 1)] * 2 + [None] * 3


@pytest.mark.parametrize("time", ["2026-09-29 10:00:00", None])
def test_ties_are_broken_by_source_then_id(conn: sqlite3.Connection, time: str | None) -> None:
    """Of equal count and time: observation, record, document; gists and sections by id, mixed."""
    sections = [
        Section("h", id=number, created_at=time, concepts=["jam"], level=level)
        for number, level in [(7, "section"), (3, "gist"), (5, "section"), (10, "gist")]
    ]
    knowledge.add_document(conn, "D", sections=sections[:0])
    for section in sections:
        knowledge.add_section(conn, 1, section)
    for number in (20, 4):
        knowledge.add_record(conn, f"{number}", concepts=["jam"], ingested_at=time, id=number)
    for number in (30, 9):
        knowledge.add_observation(conn, "o", concepts=["jam"], created_at=time, id=number)
    assert recalled(conn, "jam") == [
        "observation:9",
        "observation:30",
        "record:4",
        "record:20",
        "document_gist:3",
        "document_section:5",
        "document_section:7",
        "document_gist:10",
    ]


def test_the_order_does_not_depend_on_the_order_of_insertion() -> None:
    """The same rows, written in any order, come back in the same order."""
    items: list[Callable[[sqlite3.Connection], object]] = []
    for number in range(1, 9):
        time = f"2026-01-0{number % 3 + 1}"
        names = ["jam", "toast"][: 1 + number % 2]
        items += [
            lambda c, n=number, t=time, k=names: knowledge.add_observation(
                c, f"o{n}", concepts=k, created_at=t, id=n
            ),
            lambda c, n=number, t=time, k=names: knowledge.add_record(
                c, f"r{n}", concepts=k, ingested_at=t, id=n
            ),
            lambda c, n=number, t=time, k=names: knowledge.add_section(
                c, None, Section(f"s{n}", concepts=k, created_at=t, id=n)
            ),
        ]
    answers = []
    for seed in range(5):
        random.Random(seed).shuffle(items)
        with closing(knowledge.create()) as conn:
            for add in items:
                add(conn)
            answers.append(recall_by_concept_names(conn, ["toast", "jam"]))
    assert len(answers[0]) == 24
    assert all(answer == answers[0] for answer in answers)


# --- 5. limit ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(None, 5), (0, 5), (-1, 5), (-(10**30), 5), (1, 1), (4, 4), (5, 5), (6, 5), (10**30, 5)],
)
def test_limit_cuts_the_ranked_list(
    conn: sqlite3.Connection, limit: int | None, expected: int
) -> None:
    """None, zero and less mean no cap; otherwise the first so many are given, total unchanged."""
    for number in range(3):
        knowledge.add_observation(conn, f"{number}", concepts=["jam"])
    for number in range(2):
        knowledge.add_record(conn, f"{number}", concepts=["jam", "toast"])
    everything = recall_by_concept_names(conn, ["jam", "toast"])
    assert len(everything) == 5
    assert recall_by_concept_names(conn, ["jam", "toast"], limit) == everything[:expected]
    result = recall_by_text(conn, "jam and toast", limit)
    assert result.matches == everything[:expected]
    assert result.total == 5


def test_only_the_bodies_of_the_winners_are_read(tmp_path: Path) -> None:
    """With a limit, the long bodies of what is cut off never come into memory."""
    path = tmp_path / "large.db"
    size = 200_000
    with closing(knowledge.create(path)) as writer:
        writer.execute("DROP TABLE kb_fts")
        for _ in range(50):
            knowledge.add_observation(writer, "x" * size, concepts=["jam"])
            knowledge.add_record(writer, "title", "x" * size, concepts=["jam"])
        writer.commit()
    with closing(knowledge.open_read_only(path)) as conn:
        recall_by_concept_names(conn, ["jam"], 1)
        tracemalloc.start()
        try:
            assert len(recall_by_concept_names(conn, ["jam"], 2)) == 2
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 20 * size


# --- 6. projects ---------------------------------------------------------------------------------


def add_one_of_each(conn: sqlite3.Connection, project: str | None) -> None:
    """An observation, a record and a gist about jam, owned by the project."""
    knowledge.add_observation(conn, "it", concepts=["jam"], project=project)
    knowledge.add_record(conn, "it", concepts=["jam"], project=project)
    knowledge.add_document(conn, "it", gist=Section(concepts=["jam"]), project=project)


def test_without_a_project_everything_is_recalled(conn: sqlite3.Connection) -> None:
    """Recall is not scoped to a project: items of every project and of none come back."""
    for project in ("A", "B", None):
        add_one_of_each(conn, project)
    projects = [match.project for match in recall_by_concept_names(conn, ["jam"])]
    assert projects == ["A", "B", None] * 3


def test_with_a_project_only_what_it_owns_is_recalled(conn: sqlite3.Connection) -> None:
    """Items of other projects and of the workspace tier drop out, and out of the total."""
    for project in ("A", "B", None):
        add_one_of_each(conn, project)
    expected = ["observation:2", "record:2", "document_gist:2"]
    assert recalled(conn, "jam", project="B") == expected
    assert recalled(conn, "jam", project="B", limit=1) == expected[:1]
    result = recall_by_text(conn, "jam", 1, project="B")
    assert (refs(result.matches), result.total) == (expected[:1], 3)


def test_a_project_that_owns_nothing_has_an_empty_answer(conn: sqlite3.Connection) -> None:
    """Knowing the project and finding nothing in it is no error."""
    add_one_of_each(conn, "A")
    knowledge.add_project(conn, "Empty")
    assert recall_by_concept_names(conn, ["jam"], project="Empty") == []
    result = recall_by_text(conn, "jam", project="Empty")
    assert (result.matches, result.total, result.concepts) == ([], 0, ["jam"])


def test_ownership_counts_not_the_tags_of_a_project(conn: sqlite3.Connection) -> None:
    """A project that is tagged with a concept owns nothing by that."""
    add_one_of_each(conn, None)
    knowledge.link_project(conn, "P", "jam")
    assert recall_by_concept_names(conn, ["jam"], project="P") == []


STRANGE_PROJECTS = [
    "O'Brien",
    'say "hello"',
    "a;b -- c",
    "100%_",
    "[brackets]",
    " padded ",
    "プロジェクト",
    "two\nlines",
    "NULL",
    "99",
]


@pytest.mark.parametrize("name", STRANGE_PROJECTS)
def test_a_project_may_have_any_name(conn: sqlite3.Connection, name: str) -> None:
    """Quotes, patterns and line breaks in a project's name are just characters of it."""
    knowledge.add_observation(conn, "it", concepts=["jam"], project=name)
    knowledge.add_observation(conn, "it", concepts=["jam"], project="another")
    assert only(recall_by_concept_names(conn, ["jam"], project=name)).project == name


@pytest.mark.parametrize(
    "name", [*STRANGE_PROJECTS, "known", " Known", "Known ", "Know_", "\ud800", "", "x" * 100_000]
)
@pytest.mark.parametrize("asked", ["jam", "nothing known", ""])
def test_an_unknown_project_is_an_error_of_its_own(
    conn: sqlite3.Connection, name: str, asked: str
) -> None:
    """The name is exact, and a project that is not there is an error, found concepts or not."""
    knowledge.add_observation(conn, "it", concepts=["jam"], project="Known")
    with pytest.raises(UnknownProject):
        recall_by_concept_names(conn, [asked] if asked else [], project=name)
    with pytest.raises(UnknownProject):
        recall_by_text(conn, asked, project=name)
    assert issubclass(UnknownProject, RecallError)


@pytest.mark.parametrize("variant", ["hand-made", "nothing"])
def test_without_a_projects_table_every_project_is_unknown(variant: str) -> None:
    """A file that knows no projects has none of any name."""
    with closing(knowledge.create(variant=variant)) as conn:
        with pytest.raises(UnknownProject):
            recall_by_concept_names(conn, ["jam"], project="P")
        with pytest.raises(UnknownProject):
            recall_by_text(conn, "jam", project="P")


def test_a_hand_made_observation_belongs_to_no_project() -> None:
    """Observations without a project_id column are owned by nothing, experiments or not."""
    with closing(knowledge.create(variant="hand-made")) as conn:
        knowledge.add_observation(conn, "it", concepts=["jam"], project="P")
        match = only(recall_by_concept_names(conn, ["jam"]))
        assert (match.project_id, match.project, match.body) == (None, None, "it")
        assert match.created_at == utc(2026, 1, 15, 12)
        conn.execute("CREATE TABLE projects (id INTEGER PRIMARY KEY, name TEXT)")
        conn.execute("INSERT INTO projects VALUES (1, 'P')")
        assert only(recall_by_concept_names(conn, ["jam"])).project is None
        assert recall_by_concept_names(conn, ["jam"], project="P") == []


# --- 7. the result of a recall by text -----------------------------------------------------------


def test_a_result_has_names_matches_projects_and_total(conn: sqlite3.Connection) -> None:
    """The names used are those in the text, found or not in any item; total is before the cut."""
    first = knowledge.add_observation(conn, "it", concepts=["jam", "toast"])
    knowledge.add_observation(conn, "it", concepts=["jam"])
    knowledge.add_concept(conn, "butter")
    for project, concept in [("Z", "jam"), ("A", "butter"), ("M", "tea"), ("A", "jam")]:
        knowledge.link_project(conn, project, concept)
    result = recall_by_text(conn, "Toast with JAM and butter, or jam?", 1)
    assert result.concepts == ["butter", "jam", "toast"]
    assert refs(result.matches) == [f"observation:{first}"]
    assert result.projects == ["A", "Z"]
    assert result.total == 2


def test_text_and_names_find_the_same(conn: sqlite3.Connection) -> None:
    """Recall by text is recall by the names that the text mentions."""
    add_one_of_each(conn, "A")
    knowledge.add_observation(conn, "it", concepts=["C++", "jam"])
    knowledge.add_observation(conn, "glued", concepts=["jams"])
    names = match_concept_names(conn, "使用C++和 jam")
    assert names == ["C++", "jam"]
    matches = recall_by_text(conn, "使用C++和 jam").matches
    assert matches == recall_by_concept_names(conn, names)


def test_a_result_names_case_variants_once(conn: sqlite3.Connection) -> None:
    """A name with two stored spellings is one name used, and its items all come back."""
    for spelling in ("rag", "RAG"):
        knowledge.add_observation(conn, "it", concepts=[spelling])
    result = recall_by_text(conn, "about Rag")
    assert result.concepts == ["RAG"]
    assert [match.concepts for match in result.matches] == [("RAG",), ("RAG",)]


def test_with_a_project_no_other_project_is_named(conn: sqlite3.Connection) -> None:
    """Narrowed to a project, the projects tagged are that one or none."""
    for project in ("A", "B"):
        knowledge.link_project(conn, project, "jam")
    knowledge.add_project(conn, "C")
    assert recall_by_text(conn, "jam", project="A").projects == ["A"]
    assert recall_by_text(conn, "jam", project="C").projects == []


@pytest.mark.parametrize("text", ["", " \n", "nothing of the kind", "\ud800", "\x00", "jams"])
def test_a_text_that_names_nothing_has_an_empty_result(conn: sqlite3.Connection, text: str) -> None:
    """No concept in the text: no names, no matches, no projects, no error."""
    add_one_of_each(conn, "A")
    knowledge.link_project(conn, "A", "jam")
    result = recall_by_text(conn, text)
    assert (result.concepts, result.matches, result.projects, result.total) == ([], [], [], 0)


# --- 8. whatever a file or a connection is like --------------------------------------------------


def _dictionary(cursor: sqlite3.Cursor, row: tuple[object, ...]) -> dict[str, object]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


def _refuse(cursor: sqlite3.Cursor, row: tuple[object, ...]) -> NoReturn:
    raise AssertionError("a row factory of somebody else was called")


def _swap(cursor: sqlite3.Cursor, row: tuple[object, ...]) -> tuple[object, ...]:
    return row[::-1]


def _lenient(value: bytes) -> str:
    return value.decode("utf-8", "replace")


@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    """A file with one item of each kind about jam in project A, which is tagged with jam."""
    path = tmp_path / "small.db"
    with closing(knowledge.create(path)) as conn:
        add_one_of_each(conn, "A")
        knowledge.link_project(conn, "A", "jam")
        conn.commit()
    return path


def assert_small_answer(conn: sqlite3.Connection) -> None:
    """The connection answers from `small_file` by names and by text."""
    expected = ["observation:1", "record:1", "document_gist:1"]
    assert recalled(conn, "JAM", project="A") == expected
    result = recall_by_text(conn, "some jam")
    assert (refs(result.matches), result.projects, result.concepts) == (expected, ["A"], ["jam"])
    with pytest.raises(UnknownProject):
        recall_by_text(conn, "some jam", project="B")


@pytest.mark.parametrize("factory", [None, sqlite3.Row, _dictionary, _refuse, _swap])
def test_any_row_factory_gives_the_same_answer(
    small_file: Path, factory: Callable[..., object] | None
) -> None:
    """A row factory set by somebody else is neither used nor changed."""
    with closing(knowledge.open_read_only(small_file)) as conn:
        conn.row_factory = factory
        assert_small_answer(conn)
        assert conn.row_factory is factory


@pytest.mark.parametrize("factory", [str, bytes, bytearray, _lenient])
def test_any_text_factory_gives_the_same_answer(
    small_file: Path, factory: Callable[[bytes], object]
) -> None:
    """A text factory set by somebody else is not changed and does not change the answer."""
    with closing(knowledge.open_read_only(small_file)) as conn:
        conn.text_factory = factory
        assert_small_answer(conn)
        assert conn.text_factory is factory


@pytest.mark.parametrize("query", ["mode=ro", "mode=rw", "immutable=1", "mode=ro&cache=shared"])
def test_any_way_to_open_a_file_gives_the_same_answer(small_file: Path, query: str) -> None:
    """Read-only, immutable, shared and writable connections are all answered."""
    uri = f"{small_file.as_uri()}?{query}"
    for isolation_level in ("", None, "IMMEDIATE"):
        with closing(sqlite3.connect(uri, uri=True, isolation_level=isolation_level)) as conn:
            conn.execute("PRAGMA query_only = 1")
            assert_small_answer(conn)


def test_columns_are_not_converted_by_declared_type(tmp_path: Path) -> None:
    """A connection that converts TIMESTAMP columns by itself does not trip over junk in them."""
    path = tmp_path / "hand-made.db"
    with closing(knowledge.create(path, "hand-made")) as conn:
        for time in ("2026-01-15T12:00:00Z", "junk", "2026-01-15 12:00:00", 7):
            knowledge.add_observation(conn, "it", concepts=["jam"], created_at=time)
        conn.commit()
    with closing(sqlite3.connect(path, detect_types=sqlite3.PARSE_DECLTYPES)) as conn:
        assert recalled(conn, "jam") == [f"observation:{number}" for number in (1, 3, 2, 4)]


@pytest.mark.parametrize("wal", [False, True])
def test_asking_never_changes_the_file(tmp_path: Path, wal: bool) -> None:
    """The bytes of the file and of its -wal are the same before and after asking for anything."""
    path = tmp_path / "knowledge.db"
    with closing(knowledge.create(path, wal=wal)) as writer:
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        knowledge.add_observation(writer, "it", concepts=["jam"], project="A")
        writer.commit()
        files = [path, *([Path(f"{path}-wal")] if wal else [])]
        before = [file.read_bytes() for file in files]
        assert all(before)
        with closing(knowledge.open_read_only(path)) as reader:
            for conn in (reader, writer):
                match_concept_names(conn, "jam, [[new]] and #unknown")
                recall_by_concept_names(conn, ["JAM", "unknown", "new"], 3, project="A")
                recall_by_text(conn, "jam, [[new]] and #unknown", 3, project="A")
                with pytest.raises(UnknownProject):
                    recall_by_text(conn, "jam", project="new")
                assert not conn.in_transaction
            assert writer.execute("SELECT name FROM concepts").fetchall() == [("jam",)]
        assert [file.read_bytes() for file in files] == before


def test_asking_holds_no_lock(small_file: Path) -> None:
    """After an answer or an error nobody has to wait for the connection that asked."""
    with (
        closing(knowledge.open_read_only(small_file)) as conn,
        closing(sqlite3.connect(small_file, timeout=0)) as writer,
    ):
        assert_small_answer(conn)
        writer.execute("BEGIN EXCLUSIVE")


def test_asking_inside_a_transaction_leaves_it_open(small_file: Path) -> None:
    """A caller's own transaction is answered from, with what it holds, and neither ended."""
    with closing(sqlite3.connect(small_file)) as conn:
        knowledge.add_observation(conn, "uncommitted", concepts=["jam"], created_at=None)
        assert recalled(conn, "jam")[-1] == "observation:2"
        assert refs(recall_by_text(conn, "jam").matches)[-1] == "observation:2"
        assert conn.in_transaction
        conn.rollback()
        assert_small_answer(conn)


def test_a_query_of_the_caller_goes_on_after_asking(small_file: Path) -> None:
    """A cursor that the caller has not read to its end gives the rest of its rows afterwards."""
    with closing(knowledge.open_read_only(small_file)) as conn:
        cursor = conn.execute("SELECT column1 FROM (VALUES (1), (2), (3)), concepts")
        assert cursor.fetchone() == (1,)
        assert_small_answer(conn)
        assert cursor.fetchall() == [(2,), (3,)]


def test_a_zero_byte_file_is_an_empty_database(tmp_path: Path) -> None:
    """No bytes, no concepts, no error; and no bytes afterwards."""
    path = tmp_path / "empty.db"
    path.touch()
    with closing(knowledge.open_read_only(path)) as conn:
        assert recall_by_concept_names(conn, ["jam"]) == []
        result = recall_by_text(conn, "jam")
        assert (result.concepts, result.matches, result.projects, result.total) == ([], [], [], 0)
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    "schema",
    [
        "CREATE TABLE concepts (label TEXT)",
        "CREATE TABLE concepts (id INTEGER PRIMARY KEY, name TEXT)",
        "CREATE TABLE observations (id INTEGER PRIMARY KEY, body TEXT)",
        "CREATE TABLE concepts (id INTEGER PRIMARY KEY, name TEXT);"
        "CREATE TABLE observation_concepts (observation_id, concept_id)",
        "CREATE TABLE concepts (id INTEGER PRIMARY KEY, name TEXT);"
        "CREATE TABLE observations (text TEXT);"
        "CREATE TABLE observation_concepts (a, b);"
        "CREATE TABLE records (x); CREATE TABLE record_concepts (y);"
        "CREATE TABLE documents (x); CREATE TABLE document_sections (y);"
        "CREATE TABLE document_section_concepts (z);"
        "CREATE TABLE projects (title); CREATE TABLE project_concepts (p);"
        "CREATE TABLE record_relations (r); CREATE TABLE observation_relations (r)",
        "CREATE TABLE unrelated (x)",
    ],
)
def test_tables_of_other_programs_are_no_error(schema: str) -> None:
    """Tables that have the names but not the columns hold nothing for recall."""
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.executescript(schema)
        assert recall_by_concept_names(conn, ["jam"]) == []
        assert recall_by_text(conn, "jam").total == 0


def test_links_that_lead_nowhere_are_passed_over(conn: sqlite3.Connection) -> None:
    """Links to rows that are gone, on either side or NULL, add nothing and break nothing."""
    add_one_of_each(conn, "A")
    knowledge.link_project(conn, "A", "jam")
    expected = recall_by_text(conn, "jam")
    for table in (
        "observation_concepts",
        "record_concepts",
        "document_section_concepts",
        "project_concepts",
    ):
        links = [(99, 1), (1, 99), (98, 97), (None, 1), (1, None), (None, None)]
        conn.executemany(f"INSERT INTO {table} VALUES (?, ?)", links)
    assert recall_by_text(conn, "jam") == expected
    assert recall_by_concept_names(conn, ["jam"]) == expected.matches


def test_a_link_that_is_there_twice_counts_once() -> None:
    """Without a primary key on the link table, doubled links do not double the count."""
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.executescript(
            "CREATE TABLE concepts (id INTEGER PRIMARY KEY, name TEXT);"
            "CREATE TABLE observations (id INTEGER PRIMARY KEY, body TEXT, created_at DATETIME);"
            "CREATE TABLE observation_concepts (observation_id INTEGER, concept_id INTEGER);"
            "INSERT INTO concepts VALUES (1, 'jam'), (2, 'jam'), (3, 'toast');"
            "INSERT INTO observations VALUES (1, 'it', NULL);"
            "INSERT INTO observation_concepts VALUES (1, 1), (1, 1), (1, 2), (1, 3)"
        )
        match = only(recall_by_concept_names(conn, ["jam", "toast"]))
        assert (match.match_count, match.concepts) == (2, ("jam", "toast"))


JUNK_NAMES = ["", " ", "...", "_", "a\nb", "\x00", "a\x00b", "recall: ...", "0007", b"\xff\xfe"]


def test_junk_names_do_not_disturb_the_others(conn: sqlite3.Connection) -> None:
    """Blank, punctuation, control and undecodable names may be there, linked and asked for."""
    for junk in JUNK_NAMES:
        item = knowledge.add_observation(conn, "junk", created_at=None)
        knowledge.link(conn, "observation_concepts", item, [knowledge.add_concept(conn, junk)])
    good = knowledge.add_observation(conn, "good", concepts=["jam"])
    asked = ["jam", *(name for name in JUNK_NAMES if isinstance(name, str))]
    assert recalled(conn, *asked)[0] == f"observation:{good}"
    assert refs(recall_by_text(conn, "jam ... _ \x00").matches) == [f"observation:{good}"]


@pytest.mark.parametrize("shorter", ["a", "b"])
def test_a_name_with_a_nul_is_a_name_of_its_own(conn: sqlite3.Connection, shorter: str) -> None:
    """A name that holds a NUL character is not mistaken for the part before it."""
    knowledge.add_observation(conn, "it", concepts=["a\x00b"])
    knowledge.add_observation(conn, "other", concepts=[shorter])
    assert recalled(conn, "a\x00b") == ["observation:1"]


def test_undecodable_text_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    """Invalid UTF-8 in names, titles and bodies is replaced, with Python's own text factory."""
    path = tmp_path / "latin1.db"
    with closing(knowledge.create(path)) as writer:
        jam = knowledge.add_concept(writer, "jam")
        bad = knowledge.add_concept(writer, b"caf\xe9 au lait")
        knowledge.add_project(writer, "P", id=1)
        writer.execute("UPDATE projects SET name = CAST(x'50e9' AS TEXT)")
        knowledge.add_observation(writer, b"caf\xe9!", concepts=[jam, bad], project_id=1)
        knowledge.add_record(writer, "it", b"caf\xe9!", concepts=[jam])
        section = Section("h", summary=b"caf\xe9!", status="reviewed", concepts=[jam])
        knowledge.add_document(writer, "D", sections=[section])
        knowledge.link(writer, "project_concepts", 1, [jam])
        writer.commit()
    with closing(knowledge.open_read_only(path)) as conn:
        result = recall_by_text(conn, "jam")
        assert [match.body for match in result.matches] == ["caf\ufffd!"] * 3
        assert result.matches[0].project == "P\ufffd"
        assert result.projects == ["P\ufffd"]
        assert len(recall_by_concept_names(conn, ["jam", "nothing"])) == 3


def test_every_name_that_a_text_is_found_to_mention_can_be_recalled() -> None:
    """What matching finds, recall finds: doubled, numeric and undecodable names too."""
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.executescript(
            UNTYPED_NAMES
            + "INSERT INTO concepts VALUES (1, 'jam'), (2, 'jam'), (3, CAST(x'e9742031' AS TEXT)),"
            " (4, 1984), (5, x'626c6f62'), (6, NULL), (7, 'a' || char(0) || 'b');"
            "INSERT INTO observations SELECT id, 'about ' || id FROM concepts;"
            "INSERT INTO observation_concepts SELECT id, id FROM concepts"
        )
        text = "jam, \ufffdt 1, 1984, blob, a\x00b"
        for name in match_concept_names(conn, text):
            assert recall_by_concept_names(conn, [name]), name
            assert recall_by_concept_names(conn, ["jam", name])[-1].concepts == (name,)
        found = {match.id for match in recall_by_text(conn, text).matches}
        assert found >= {1, 2}


def test_blobs_and_odd_values_in_any_column_are_no_error(conn: sqlite3.Connection) -> None:
    """Columns hold whatever was written: blobs for text, text for numbers, numbers for text."""
    add_one_of_each(conn, "A")
    section = Section("h", summary="s", status="reviewed", concepts=["jam"])
    knowledge.add_document(conn, "D", sections=[section])
    odd_values = (b"\xff", "text", 7, 1.5, "", b"", "9" * 400)
    for table in ("observations", "records", "documents", "document_sections"):
        columns = conn.execute(f"SELECT * FROM {table}").description
        for (column, *_), value in itertools.product(columns, odd_values):
            if column in ("id", "uuid", "document_id"):
                continue
            conn.execute("SAVEPOINT before")
            conn.execute(f'UPDATE {table} SET "{column}" = ?', (value,))
            matches = recall_by_concept_names(conn, ["jam"])
            assert len(matches) == 4, (table, column, value)
            assert all(isinstance(m.title, str) and isinstance(m.body, str) for m in matches)
            conn.execute("ROLLBACK TO before")


# --- the oracle ----------------------------------------------------------------------------------

NAMES = ["RAG", "rag", "Rag", "Straße", "STRASSE", "café", "cafe\u0301", "C++", "世界", "..."]
NAMES += ["context window", "context\nwindow", " padded "]
ASKED = [*NAMES, "strasse", "CAFÉ", "Context  Window", "padded", "unknown", "", "\ud800"]
TIMES = [
    "2026-09-29 23:00:00",
    "2026-09-29T23:00:00Z",
    "2026-09-29T01:00:00Z",
    "2026-09-30 01:00:00+02:00",
    "2026-09-29 23:00:00.000001",
    "2026-09-29T23:00:00.5Z",
    "2026-09-29 23:00",
    "2026-09-29",
    "2026-09-29 10:00:00+0100",
    "20260929",
    "junk",
    "",
    None,
    1790000000,
    0.5,
]

ids = st.integers(1, 6)
links = st.lists(st.tuples(ids, st.integers(1, 8)), max_size=14, unique=True)
owners = st.one_of(st.none(), st.integers(1, 3))
times = st.sampled_from(TIMES)
bodies = st.sampled_from(["", "one", "two\nlines", "名前"])
relations = st.lists(
    st.tuples(ids, ids, st.sampled_from(["supersedes", "supersedes", "relates_to"])),
    max_size=5,
    unique=True,
)
DATABASES = {
    "concepts": st.lists(st.sampled_from(NAMES), max_size=7, unique=True),
    "projects": st.lists(st.sampled_from(["A", "a", "B'"]), max_size=2, unique=True),
    "observations": st.dictionaries(ids, st.tuples(owners, bodies, times), max_size=5),
    "records": st.dictionaries(
        ids,
        st.tuples(owners, bodies, times, st.sampled_from(["accepted", "superseded"])),
        max_size=5,
    ),
    "documents": st.dictionaries(st.integers(1, 3), owners, max_size=2),
    "sections": st.dictionaries(
        ids,
        st.tuples(
            owners,
            st.sampled_from(["gist", "section"]),
            st.sampled_from(["", "Heading"]),
            st.sampled_from(["reviewed", "drafted", "unsummarized"]),
            st.booleans(),
            times,
        ),
        max_size=5,
    ),
    "observation_concepts": links,
    "record_concepts": links,
    "document_section_concepts": links,
    "project_concepts": links,
    "observation_relations": relations,
    "record_relations": relations,
}


def build(content: dict[str, Any]) -> sqlite3.Connection:
    """A database of today with the rows drawn, dangling ones included."""
    conn = knowledge.create()
    for name in content["concepts"]:
        knowledge.add_concept(conn, name)
    for name in content["projects"]:
        knowledge.add_project(conn, name)
    for number, (owner, body, time) in content["observations"].items():
        knowledge.add_observation(conn, body, id=number, project_id=owner, created_at=time)
    for number, (owner, body, time, status) in content["records"].items():
        extra = {"id": number, "project_id": owner}
        knowledge.add_record(conn, "Title", body, status=status, ingested_at=time, **extra)
    for number, owner in content["documents"].items():
        values = {"id": number, "title": f"Document {number}", "path": "p", "project_id": owner}
        knowledge.insert(conn, "documents", values)
    for number, (document, level, heading, status, stale, time) in content["sections"].items():
        section = Section(heading, "raw", "summary", status, stale, (), time, level, number)
        knowledge.add_section(conn, document, section)
    for table in DATABASES:
        if table.endswith("_concepts"):
            conn.executemany(f"INSERT INTO {table} VALUES (?, ?)", content[table])
        if table.endswith("_relations"):
            conn.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", content[table])
    return conn


def assert_agrees_with_oracle(
    conn: sqlite3.Connection,
    names: list[str],
    limit: int | None = None,
    project: str | None = None,
) -> None:
    """Both ways to ask give exactly what the plain statement of the rules gives."""
    expected = recall_oracle.recall_by_concept_names(conn, names, limit, project=project)
    found = recall_by_concept_names(conn, names, limit, project=project)
    assert [dataclasses.asdict(match) for match in found] == expected

    text = ", ".join(names)
    mentioned = match_concept_names(conn, text)
    result = recall_by_text(conn, text, limit, project=project)
    by_text = recall_oracle.recall_by_concept_names(conn, mentioned, project=project)
    assert result.concepts == [spelling for spelling, _ in recall_oracle.resolve(conn, mentioned)]
    assert result.total == len(by_text)
    cut = None if limit is None or limit <= 0 else limit
    assert [dataclasses.asdict(match) for match in result.matches] == by_text[:cut]
    assert result.projects == recall_oracle.projects_of(conn, mentioned, project=project)


@settings(deadline=None, max_examples=200)
@given(
    content=st.fixed_dictionaries(DATABASES),
    names=st.lists(st.sampled_from(ASKED), max_size=6),
    limit=st.one_of(st.none(), st.integers(-1, 8), st.just(10**20)),
    project=st.sampled_from([None, None, "A", "a", "B'", "unknown"]),
)
def test_recall_agrees_with_the_plain_statement_of_its_rules(
    content: dict[str, Any], names: list[str], limit: int | None, project: str | None
) -> None:
    """For any small database, names, limit and project the answer is the oracle's, to the field."""
    with closing(build(content)) as conn:
        if project is not None and project not in content["projects"]:
            for ask in (recall_by_concept_names, recall_oracle.recall_by_concept_names):
                with pytest.raises((UnknownProject, recall_oracle.NoSuchProjectError)):
                    ask(conn, names, limit, project=project)
            with pytest.raises(UnknownProject):
                recall_by_text(conn, ", ".join(names), limit, project=project)
        else:
            assert_agrees_with_oracle(conn, names, limit, project)


def test_two_concepts_that_read_alike_are_one_name() -> None:
    """A name that is no valid text, or no text at all, does not hide behind one that is."""
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.executescript(
            UNTYPED_NAMES + "INSERT INTO concepts VALUES (1, 'RAG'), (2, x'524147'),"
            " (3, 'caf' || char(65533)), (4, CAST(x'636166e9' AS TEXT));"
            "INSERT INTO observations SELECT id, 'about' FROM concepts;"
            "INSERT INTO observation_concepts SELECT id, id FROM concepts"
        )
        assert {m.id for m in recall_by_concept_names(conn, ["RAG"])} == {1, 2}
        assert {m.id for m in recall_by_concept_names(conn, ["caf\ufffd"])} == {3, 4}


def test_a_text_that_names_very_many_concepts_is_answered() -> None:
    """The work grows with the links, not with concepts times items."""
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.executescript(
            UNTYPED_NAMES + "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000)"
            " INSERT INTO concepts SELECT i, 'c' || i FROM n;"
            "INSERT INTO observations SELECT id, '' FROM concepts;"
            "INSERT INTO observation_concepts SELECT id, id FROM concepts"
        )
        result = recall_by_text(conn, " ".join(f"c{i}" for i in range(1, 3001)), 5)
        assert (len(result.concepts), result.total) == (3000, 3000)
        assert {count.total for count in result.counts} == {1}

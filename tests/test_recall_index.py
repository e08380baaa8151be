"""With the index every answer equals the one without it, whatever was written since."""

from __future__ import annotations

import re
import sqlite3

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import knowledge
import writers
from datasette_concept_recall import bitmaps, index_schema, optimizing, recall_index, search
from datasette_concept_recall.changes import changed_candidate_sql
from datasette_concept_recall.mapped import read_mapping
from datasette_concept_recall.mapping import Mapping
from datasette_concept_recall.reading import Reader, reading
from datasette_concept_recall.recall import candidate_sql, fill_sql
from datasette_concept_recall.vocabulary import Vocabulary
from pairs import ALL, Pair, content, is_used, small
from writers import Step


@pytest.fixture
def index_calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Grows by one whenever something is found in the index."""
    calls: list[object] = []

    def spy(reader: Reader, mapping: Mapping, ids: dict[int, int]) -> object:
        calls.append(ids)
        return recall_index.find_in_index(reader, mapping, ids)

    monkeypatch.setattr(search, "find_in_index", spy)
    return calls


# --- random databases and statements -------------------------------------------------------------

REPLACED_BY_UUID: Step = (
    "insert or replace into observations (body, uuid) values ('b', ?)",
    ("00000000-0000-7000-8000-000000000001",),
)
REPLACED_BY_EXPRESSION: Step = (
    "insert or replace into records (record_id, project_id, scope, path, title, date, body,"
    " workspace, uuid) select record_id, project_id, scope, path, title, date, body, workspace,"
    " 'new' from records where id < ?",
    (4,),
)
REPLACED_BY_ROWID: Step = (
    "insert or replace into record_concepts (rowid, record_id, concept_id) values (?, 6, 1)",
    (1,),
)
REPLACED_PARENT: Step = (
    "update or replace documents set uuid = '00000000-0000-7000-8000-000000000001' where id = ?",
    (2,),
)


@settings(max_examples=100, deadline=None)
@given(
    few=st.sampled_from([0, recall_index._FEW]),
    dense=st.sampled_from([3, bitmaps._DENSE]),
    seed=st.integers(0, 999),
    steps=st.lists(writers.steps(), max_size=25),
)
@example(few=0, dense=3, seed=1, steps=[REPLACED_BY_UUID])
@example(few=0, dense=3, seed=1, steps=[REPLACED_BY_EXPRESSION])
@example(few=0, dense=3, seed=1, steps=[REPLACED_BY_ROWID])
@example(few=0, dense=3, seed=1, steps=[REPLACED_PARENT])
def test_answers_are_the_same_as_without_the_index(
    few: int, dense: int, seed: int, steps: list[Step]
) -> None:
    """Whatever is written, both databases hold and answer the same, by sets and one by one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recall_index, "_FEW", few)
        patch.setattr(bitmaps, "_DENSE", dense)
        patch.setattr(search, "_SLOW_SECONDS", float("inf"))
        with Pair(writers.database(seed)) as pair:
            for number, step in enumerate(steps):
                pair.take(step)
                pair.compare_some(number)
            pair.compare_all()
            assert content(pair.indexed) == content(pair.plain)
            assert is_used(pair.indexed)


@pytest.mark.parametrize("variant", [name for name in knowledge.VARIANTS if name != "nothing"])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 999), concept=st.integers(1, 5))
def test_files_of_every_age_are_optimized(variant: str, seed: int, concept: int) -> None:
    """What a file lacks is left out, and what it has is followed."""
    with Pair(writers.database(seed, variant)) as pair:
        pair.compare(ALL)
        pair.take(("insert or replace into observation_concepts values (1, ?)", (concept,)))
        pair.take(("update observations set created_at = '2030-01-01' where id = ?", (concept,)))
        pair.take(("delete from observations where id = ?", (concept + 1,)))
        pair.compare(ALL)
        assert is_used(pair.indexed)


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
def test_times_that_are_no_text_are_unreadable_as_ever(encoding: str) -> None:
    """Bytes that are no text, in any encoding of a database, rank as without the index."""
    plain = sqlite3.connect(":memory:", isolation_level=None)
    plain.execute(f"pragma encoding = '{encoding}'")
    knowledge.create_today(plain)
    times = ["2026-01-01", "2026-01-02 10:00:00", b"\xff\xfe\xfd", b"2", "2026-01-03\0", "é", 1.5]
    for time in times:
        knowledge.add_observation(plain, "it", concepts=["mint"], created_at=time)
    plain.execute("update observations set created_at = cast('2026-01-04' as blob) where id = 7")
    with Pair(plain) as pair:
        (answer,) = pair.compare(ALL)  # type: ignore[misc]
        assert [match.id for match in answer.matches][:2] == [2, 1]


# --- when the index is used, and when not --------------------------------------------------------


def test_the_index_is_used_as_soon_as_it_is_there(index_calls: list[object]) -> None:
    """A cached vocabulary notices at once that the database was optimized, and that it is not."""
    conn, vocabulary = writers.database(5), Vocabulary()
    answers = [search.recall(conn, ALL, vocabulary=vocabulary)]
    for change in (optimizing.optimize, optimizing.remove):
        change(conn)
        answers.append(search.recall(conn, ALL, vocabulary=vocabulary))
        answers.append(search.recall(conn, ALL, vocabulary=vocabulary))
    assert answers == [answers[0]] * 5
    assert len(index_calls) == 2


def test_an_index_of_another_version_is_not_used() -> None:
    """What another version of this plugin built is left alone by recall, and can be renewed."""
    with small() as pair:
        pair.indexed.execute(f"update {index_schema.STATE} set version = version + 1")
        assert not is_used(pair.indexed)
        pair.compare_all()
        pair.optimize()
        assert is_used(pair.indexed)


# --- how it is read ------------------------------------------------------------------------------

BY_CONCEPT = "_concept_recall_{}_by_concept (concept_id=?)"
BY_CHANGE = "SEARCH _concept_recall_changed USING PRIMARY KEY (source=?{})"
BY_ID = "SEARCH {} USING INTEGER PRIMARY KEY (rowid=?)"


def query_plan(conn: sqlite3.Connection, sql: str) -> list[str]:
    """How SQLite goes about a query, without its bookkeeping about lists and subqueries."""
    steps = conn.execute(f"explain query plan {sql}", ["[1, 2]"] * sql.count("?")).fetchall()
    searches = [step for *_, step in steps if re.match("SCAN|SEARCH", step)]
    return [step.removesuffix(" LEFT-JOIN") for step in searches if "json_each" not in step]


def test_items_are_found_by_concept_and_filled_by_id() -> None:
    """No table is gone through for the candidates or the winners; the plans, word for word."""
    with small() as pair, reading(pair.indexed) as reader:
        for source in read_mapping(reader).sources:
            parent = [BY_ID.format("p")] if source.parent else []
            assert query_plan(pair.indexed, candidate_sql(source)) == [
                f"SEARCH l USING COVERING INDEX {BY_CONCEPT.format(source.link)}",
                BY_ID.format("i"),
                *parent,
            ]
            assert query_plan(pair.indexed, fill_sql(source)) == [BY_ID.format("i"), *parent]


def test_changes_are_found_by_what_there_is_less_of() -> None:
    """Changed items are found through all changes, or through the links; never both in full."""
    with small() as pair, reading(pair.indexed) as reader:
        *_, source = read_mapping(reader).sources
        by_change, by_link = (
            query_plan(pair.indexed, changed_candidate_sql(source, through_links=way))
            for way in (False, True)
        )
    parents = "SEARCH document_sections USING COVERING INDEX _concept_recall_document_sections"
    assert by_change == [
        BY_ID.format("i"),
        BY_CHANGE.format(""),
        f"{parents}_by_parent (document_id=?)",
        BY_CHANGE.format(""),
        BY_ID.format("p"),
        f"SEARCH l USING COVERING INDEX sqlite_autoindex_{source.link}_1 (section_id=?)",
    ]
    assert by_link == [
        f"SEARCH l USING COVERING INDEX {BY_CONCEPT.format(source.link)}",
        BY_ID.format("i"),
        BY_CHANGE.format(" AND item=?"),
        BY_CHANGE.format(" AND item=?"),
        BY_ID.format("p"),
    ]


def test_what_a_new_row_replaces_is_found_by_its_key() -> None:
    """The triggers find rows by the unique indexes themselves, expressions included."""
    with small() as pair, reading(pair.indexed) as reader:
        for followed in index_schema.followed_tables(read_mapping(reader)):
            for key in index_schema._keys(reader, followed):
                condition = re.sub(r"new\.(\"\w+\"|rowid)", "?", key)
                sql = f"select 1 from {followed.table} t where {condition}"
                step = query_plan(pair.indexed, sql)[0].replace("COVERING ", "")
                assert re.match("SEARCH t USING (INDEX idx_|INTEGER PRIMARY KEY)", step), step

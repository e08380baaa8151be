"""The list of concepts and one concept with its surroundings, beside a plain count of the rows."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foreign
import hostile
import knowledge
from datasette_concept_recall.concept_detail import ConceptDetail, show_concept
from datasette_concept_recall.concepts import SORTS, ConceptList, list_concepts
from datasette_concept_recall.errors import UnknownConcept
from knowledge import Section

NAMES = ("RAG", "rag", "chunking", "C++")
items = st.lists(st.sets(st.sampled_from(NAMES)), max_size=8)


@pytest.fixture
def conn() -> Iterator[sqlite3.Connection]:
    """An empty knowledge database."""
    with closing(knowledge.create()) as opened:
        yield opened


def everything(found: ConceptList) -> list[tuple[str, int]]:
    """Names with their totals, in the order of a list."""
    return [(entry.name, entry.total) for entry in found.entries]


def folded(tags: set[str]) -> set[str]:
    """The tags with case variants as one."""
    return {"RAG" if tag == "rag" else tag for tag in tags}


@settings(deadline=None)
@given(observations=items, records=items)
def test_counts_and_neighbours_are_those_of_the_rows(
    observations: list[set[str]], records: list[set[str]]
) -> None:
    """Case variants are one concept, and an item that has both counts once."""
    with closing(knowledge.create()) as conn:
        for name in NAMES:
            knowledge.add_concept(conn, name)
        for tags in observations:
            knowledge.add_observation(conn, "x", concepts=sorted(tags))
        for tags in records:
            knowledge.add_record(conn, "x", "x", concepts=sorted(tags))
        tagged = [folded(tags) for tags in observations + records]
        totals = Counter(tag for tags in tagged for tag in tags)
        expected = sorted(((n, totals[n]) for n in folded(set(NAMES))), key=lambda e: (-e[1], e[0]))
        found = list_concepts(conn)
        assert sorted(everything(found)) == sorted(expected)
        assert [total for _, total in everything(found)] == [total for _, total in expected]
        for name, total in expected:
            detail = show_concept(conn, name.lower())
            shared = Counter(t for tags in tagged if name in tags for t in tags if t != name)
            assert dict(detail.neighbours) == dict(shared)
            assert detail.entry.total == detail.newest.total == total
            assert detail.use.total == total


def fill(conn: sqlite3.Connection) -> None:
    """Three concepts, of all kinds, at times written in several ways."""
    knowledge.add_concept(
        conn,
        "RAG",
        description="Retrieval first",
        identifier_type="doi",
        identifier_value="10.1000/xyz",
    )
    knowledge.add_concept(conn, "rag", description="")
    knowledge.add_concept(conn, "unused")
    knowledge.add_observation(conn, "old", concepts=["RAG"], created_at="2026-01-01 09:00:00")
    knowledge.add_observation(conn, "new", concepts=["rag"], created_at="2026-01-01T10:30:00+01:00")
    knowledge.add_observation(conn, "undated", concepts=["RAG"], created_at="soon")
    knowledge.add_record(conn, "r", "x", concepts=["RAG", "apple"], ingested_at="2025-05-05")
    sections = [Section("s", body="x", concepts=["RAG"], created_at="2024-02-02")]
    knowledge.add_document(conn, "d", sections=sections)
    conn.execute("insert into observation_concepts values (999, 1)")


def test_an_entry_says_all_of_a_concept(conn: sqlite3.Connection) -> None:
    """Kinds, spellings, description and the latest instant, whatever its spelling is."""
    fill(conn)
    entry = next(e for e in list_concepts(conn).entries if e.name == "RAG")
    assert entry.spellings == ("RAG", "rag")
    assert entry.description == "Retrieval first"
    assert entry.kinds == {"observation": 3, "record": 1, "document_section": 1}
    assert entry.latest == datetime(2026, 1, 1, 9, 30, tzinfo=timezone.utc)


def test_one_concept_comes_with_what_is_around_it(conn: sqlite3.Connection) -> None:
    """Its newest items by instant, its identifier, its neighbours, and its use over time."""
    fill(conn)
    found: ConceptDetail = show_concept(conn, "rAg", newest=3)
    assert [match.body for match in found.newest.matches[:2]] == ["new", "old"]
    assert found.identifiers == (("doi", "10.1000/xyz"),)
    assert found.neighbours == (("apple", 1),)
    assert found.use.total == 4, "one has no time"
    assert found.entry.kinds == {"observation": 3, "record": 1, "document_section": 1}


@pytest.mark.parametrize("name", ["nothing", "", " ", "RAGs"])
def test_what_is_no_concept_is_said_to_be_none(conn: sqlite3.Connection, name: str) -> None:
    """Only a whole name is one."""
    fill(conn)
    with pytest.raises(UnknownConcept):
        show_concept(conn, name)


@pytest.mark.parametrize("sort", SORTS)
def test_pages_follow_each_other(conn: sqlite3.Connection, sort: str) -> None:
    """However long they are, pages put together are the whole list, in each order."""
    for n in range(7):
        created = f"2026-01-0{1 + n % 3}"
        knowledge.add_observation(conn, "x", concepts=[f"c{n}", "all"], created_at=created)
    whole = everything(list_concepts(conn, sort=sort))
    for size in (1, 2, 5):
        found, after = [], None
        while True:
            part = list_concepts(conn, sort=sort, limit=size, after=after)
            assert part.total == 8
            found += everything(part)
            after = part.next
            if after is None:
                break
        assert found == whole
    if sort == "name":
        assert [name for name, _ in whole] == sorted(name for name, _ in whole)
    if sort == "count":
        assert whole[0] == ("all", 7)
    if sort == "recent":
        assert {name for name, _ in whole[:3]} == {"all", "c2", "c5"}


@pytest.mark.parametrize(
    ("search", "found"), [("RA", ["RAG"]), ("rag", ["RAG"]), ("p", ["apple"]), ("xyz", [])]
)
def test_a_search_is_for_part_of_a_name(
    conn: sqlite3.Connection, search: str, found: list[str]
) -> None:
    """In any letter case."""
    fill(conn)
    assert [entry.name for entry in list_concepts(conn, search=search).entries] == found


@pytest.mark.parametrize(
    "build", foreign.FOUND_WITHOUT_CONFIGURATION.values(), ids=foreign.FOUND_WITHOUT_CONFIGURATION
)
def test_any_tagged_database_has_concepts(tmp_path: Path, build: Callable[[Path], Path]) -> None:
    """Also where links hold names, or names stand in arrays only."""
    with closing(sqlite3.connect(build(tmp_path / "x.db"))) as conn:
        found = dict(everything(list_concepts(conn)))
        assert found["bread"] == found["soup"] == 1
        assert found["jam"] >= 2
        detail = show_concept(conn, "JAM")
        assert dict(detail.neighbours) == {"bread": 1}
        assert detail.use.total == found["jam"]


def test_a_name_that_a_table_holds_twice_is_one_concept() -> None:
    """An item tagged with both rows counts once, and links to or from nothing do not count."""
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.executescript(
            """
            create table tags (id integer primary key, name text);
            create table notes (id integer primary key, title text, created text);
            create table note_tags (
                note_id integer references notes(id), tag_id integer references tags(id)
            );
            insert into tags values (1, 'jam'), (2, 'jam'), (3, 'bread');
            insert into notes values (1, 'a', '2026-01-01'), (2, 'b', '2025-01-01');
            insert into note_tags values (1, 1), (1, 2), (1, 3), (2, 2), (2, 99), (77, 1);
            """
        )
        for sort in SORTS:
            found = dict(everything(list_concepts(conn, sort=sort)))
            assert found == {"jam": 2, "bread": 1}
        detail = show_concept(conn, "JAM")
        assert (detail.entry.total, detail.use.total) == (2, 2)
        assert detail.neighbours == (("bread", 1),)


def test_every_hostile_name_is_found_by_itself(tmp_path: Path) -> None:
    """What a list calls a concept shows it, with the same numbers; no two are mixed up."""
    with closing(sqlite3.connect(hostile.build(tmp_path / "h.db"))) as conn:
        entries = list_concepts(conn).entries
        assert len({entry.name for entry in entries}) == len(entries) >= len(hostile.NAMES)
        for entry in entries:
            found = show_concept(conn, entry.name).entry
            assert (found.spellings, found.kinds) == (entry.spellings, entry.kinds)
            assert found.latest == entry.latest


def test_what_may_not_be_seen_is_not_counted(conn: sqlite3.Connection) -> None:
    """Items of hidden tables are as if they were not there."""
    fill(conn)
    visible = frozenset(knowledge.TABLES) - {"observations", "document_sections"}
    entry = next(e for e in list_concepts(conn, visible=visible).entries if e.name == "RAG")
    assert entry.kinds == {"record": 1}
    found = show_concept(conn, "RAG", visible=visible)
    assert (found.entry.total, found.use.total) == (1, 1)
    assert list_concepts(conn, visible=frozenset({"observations"})).entries == ()
    with pytest.raises(UnknownConcept):
        show_concept(conn, "RAG", visible=frozenset({"observations"}))

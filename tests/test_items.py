"""One item by its reference: whatever recall shows can be read by the ref that it shows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import foreign
import hostile
import knowledge
import served
from datasette_concept_recall.items import read_item
from datasette_concept_recall.mapping import Mapping
from datasette_concept_recall.models import ConceptMatch, RecallRequest
from datasette_concept_recall.search import recall
from datasette_concept_recall.vocabulary import Vocabulary

Build = Callable[[Path], Path]

SHAPES: dict[str, Build] = {
    "knowledge": served.build,
    "hostile": hostile.build,
    **foreign.FOUND_WITHOUT_CONFIGURATION,
}


def mapping_of(conn: sqlite3.Connection) -> Mapping:
    """All tables of a database, visible."""
    return Vocabulary().mapping(conn)


def everything(conn: sqlite3.Connection) -> list[ConceptMatch]:
    """Every tagged item of a database, with all of its concepts."""
    concepts = mapping_of(conn).concepts
    assert concepts is not None
    names = tuple(n for (n,) in conn.execute(f"select {concepts.name} from {concepts.rows}"))
    return recall(conn, RecallRequest(names=names, near_misses=False)).matches


@pytest.mark.parametrize("build", SHAPES.values(), ids=SHAPES)
def test_what_recall_shows_is_read_by_its_ref(tmp_path: Path, build: Build) -> None:
    """For every shape of a database the item of a ref is the item itself, with all its concepts."""
    with closing(sqlite3.connect(build(tmp_path / "x.db"))) as conn:
        mapping, items = mapping_of(conn), everything(conn)
        assert items
        for item in items:
            read = read_item(conn, mapping, item.ref)
            assert read is not None
            assert read == replace(item, concepts=read.concepts)
            assert sorted(read.concepts) == sorted(item.concepts)


@pytest.fixture(scope="module")
def conn(tmp_path_factory: pytest.TempPathFactory) -> sqlite3.Connection:
    """A connection to the database of `served.build`."""
    return sqlite3.connect(served.build(tmp_path_factory.mktemp("items") / "knowledge.db"))


@given(
    st.one_of(
        st.text(),
        st.text(alphabet='0123456789-+. e[]",nul').map("record:{}".format),
        st.integers().map("record:{}".format),
        st.lists(st.one_of(st.integers(), st.text(), st.none(), st.floats(), st.booleans())).map(
            lambda values: f"observation:{json.dumps(values)}"
        ),
    )
)
def test_any_other_ref_is_nothing(conn: sqlite3.Connection, ref: str) -> None:
    """A ref is an item that has this very ref, or nothing; never an error."""
    found = read_item(conn, mapping_of(conn), ref)
    if found is not None:
        assert ref == found.ref


def test_the_numbers_of_a_ref_are_those_of_the_row(conn: sqlite3.Connection) -> None:
    """Numbers in another spelling, of any length, or with spaces are no refs."""
    mapping = mapping_of(conn)
    for ref in ["record:01", "record: 1", "record:1 ", "record:1.0", "record:" + "9" * 5000]:
        assert read_item(conn, mapping, ref) is None
    assert read_item(conn, mapping, f"observation:[{'9' * 30}]") is None
    assert read_item(conn, mapping, "observation:" + "[" * 100_000) is None


def test_an_item_without_concepts_can_be_read(tmp_path: Path) -> None:
    """A ref may come from elsewhere: rows that nothing is tagged on are items too."""
    with closing(knowledge.create(tmp_path / "x.db")) as conn:
        knowledge.add_concept(conn, "RAG")
        id_ = knowledge.add_record(conn, "Alone", "No concepts", project="P")
        found = read_item(conn, mapping_of(conn), f"record:{id_}")
    assert found is not None
    assert (found.title, found.concepts, found.match_count) == ("Alone", (), 0)
    assert (found.project, found.kind) == ("P", "Record")


def test_case_variants_are_one_concept(tmp_path: Path) -> None:
    """An item tagged with RAG and rag has one concept, as everywhere."""
    with closing(knowledge.create(tmp_path / "x.db")) as conn:
        id_ = knowledge.add_observation(conn, "both", concepts=["rag", "RAG", "x"])
        found = read_item(conn, mapping_of(conn), f"observation:{id_}")
    assert found is not None
    assert found.concepts == ("RAG", "x")


@pytest.mark.parametrize("hidden", ["records", "record_concepts"])
def test_what_may_not_be_seen_is_not_there(conn: sqlite3.Connection, hidden: str) -> None:
    """An item is read only by who may see its table and its links."""
    mapping = mapping_of(conn)
    visible = mapping.visible_to({table for table in mapping.tables if table != hidden})
    assert read_item(conn, mapping, "record:1") is not None
    assert read_item(conn, visible, "record:1") is None


def test_what_supersedes_an_item_is_named(conn: sqlite3.Connection) -> None:
    """The ref of what supersedes it is there, and can be read in turn."""
    mapping = mapping_of(conn)
    old = read_item(conn, mapping, "record:1")
    assert old is not None
    (ref,) = old.superseded_by
    new = read_item(conn, mapping, ref)
    assert new is not None
    assert new.title == "No RAG"


def test_a_key_of_bytes_is_read_by_its_hexadecimal_form(tmp_path: Path) -> None:
    """Rows may be addressed by bytes, in a ref as hexadecimal digits in a JSON array."""
    with closing(sqlite3.connect(tmp_path / "x.db")) as conn:
        conn.executescript(
            """
            create table tags (id integer primary key, name text);
            create table files (hash blob primary key, title text) without rowid;
            create table file_tags (hash blob references files(hash),
                tag_id integer references tags(id));
            insert into tags values (1, 'jam');
            insert into files values (x'00ff', 'A file');
            insert into file_tags values (x'00ff', 1);
            """
        )
        found = read_item(conn, mapping_of(conn), 'files:["00FF"]')
    assert found is not None
    assert (found.title, found.concepts, found.ref) == ("A file", ("jam",), 'files:["00FF"]')

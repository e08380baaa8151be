"""Rows as whole records: what is known of them, whether they hold; and indexes of old versions."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import foreign
import knowledge
from datasette_concept_recall.errors import DatabaseUnreadable
from datasette_concept_recall.fusion import Fusion
from datasette_concept_recall.index_mapping import APPLICATION_ID
from datasette_concept_recall.indexing.sources.rows import RowSource
from datasette_concept_recall.indexing.store import Store
from datasette_concept_recall.indexing.tables import MIGRATIONS, migrate, statements
from datasette_concept_recall.layer_search import search_layers
from datasette_concept_recall.lexical import Within
from datasette_concept_recall.mapped import find_mapping
from datasette_concept_recall.models import RecallRequest
from datasette_concept_recall.opening import opened
from datasette_concept_recall.reading import reading
from datasette_concept_recall.rendering import RecordText, embedding_text, from_json
from datasette_concept_recall.search import recall
from indexing import FakeClock, FakeEmbedder, add_folder, run, write_note

EVERYTHING = {"records": "", "observations": "", "document_sections": "", "concepts": ""}


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(knowledge.create(tmp_path / "kb.db")) as conn:
        yield conn


def records(conn: sqlite3.Connection, path: Path, *tables: str) -> dict[str, RecordText]:
    """What is known of every row of some tables, by table and id, without its text."""
    conn.commit()
    source = RowSource(path, dict.fromkeys(tables or EVERYTHING, ""))
    found = {}
    for entry in source.listing().entries:
        record = source.read(entry).record
        assert record is not None
        found["/".join(map(str, json.loads(entry.key)))] = record
    return found


# --- what is known of a row ----------------------------------------------------------------------


def test_a_decision_is_a_record_with_everything_around_it(
    kb: sqlite3.Connection, tmp_path: Path
) -> None:
    """Its subject is its project, its predicate what led to it, and the date and the state are its
    own."""
    knowledge.add_record(
        kb, "Keys", "Rotate them.", project="Vault", concepts=["keys", "age"], date="2026-03-09",
        kind="decision", trigger="security_incident", status="accepted", ingested_at="2026-05-05",
    )  # fmt: skip
    assert records(kb, tmp_path / "kb.db", "records")["records/1"] == RecordText(
        statement="",
        subject="Vault",
        kind="decision",
        predicate="security_incident",
        entities=("age", "keys"),
        qualifier="2026-03-09",
        temporal_scope="accepted",
    )


def test_an_observation_has_the_day_on_which_it_was_made(
    kb: sqlite3.Connection, tmp_path: Path
) -> None:
    """Without a date of its own it is that of its time, in UTC; of an unreadable one there is
    none."""
    add = knowledge.add_observation
    add(kb, "Toast is fine.", project="Breakfast", concepts=["toast"], kind="finding",
        created_at="2026-03-09T23:30:00-02:00")  # fmt: skip
    add(kb, "Jam is not.", created_at="one morning")
    found = records(kb, tmp_path / "kb.db", "observations")
    assert found["observations/1"] == RecordText(
        "", subject="Breakfast", kind="finding", entities=("toast",), qualifier="2026-03-10"
    )
    assert found["observations/2"] == RecordText("", kind="note")


def test_a_section_belongs_to_the_project_of_its_document(
    kb: sqlite3.Connection, tmp_path: Path
) -> None:
    """What it is called, and what it is tagged with, are known as of any item."""
    section = knowledge.Section("Boil", body="Water is boiled here.", concepts=["water"],
                                created_at="2026-02-03 04:05:06")  # fmt: skip
    knowledge.add_document(kb, "Manual", sections=[section], project="Kitchen")
    found = records(kb, tmp_path / "kb.db", "document_sections")["document_sections/2"]
    assert (found.subject, found.kind) == ("Kitchen", "Section")
    assert (found.entities, found.qualifier) == (("water",), "2026-02-03")


def test_a_row_that_is_no_item_says_nothing_of_itself(
    kb: sqlite3.Connection, tmp_path: Path
) -> None:
    """Of a table that recall does not read no project, kind or state is known."""
    knowledge.add_concept(kb, "toast", description="Bread that was toasted.")
    found = records(kb, tmp_path / "kb.db", "concepts")["concepts/1"]
    assert replace(found, qualifier="") == RecordText("")


@pytest.mark.parametrize("others", [["Another"], []], ids=["other projects", "no project"])
def test_a_project_that_is_not_there_is_no_subject(
    kb: sqlite3.Connection, tmp_path: Path, others: list[str]
) -> None:
    """A number that refers to nothing is no name."""
    for name in others:
        knowledge.add_project(kb, name)
    knowledge.add_observation(kb, "Toast is fine.", project_id=77)
    knowledge.add_observation(kb, "Jam is fine.")
    found = records(kb, tmp_path / "kb.db", "observations")
    assert [found[f"observations/{n}"].subject for n in (1, 2)] == ["", ""]


@pytest.mark.parametrize("variant", ["without-uuids", "pre-records", "hand-made", "upgraded"])
def test_older_files_tell_what_they_have(tmp_path: Path, variant: str) -> None:
    """A file without projects, records or relations has observations all the same."""
    path = tmp_path / "kb.db"
    with closing(knowledge.create(path, variant)) as conn:
        knowledge.add_observation(conn, "Toast is fine.", concepts=["toast"], project="Breakfast")
        found = records(conn, path, "observations")["observations/1"]
    assert (found.entities, found.kind, found.qualifier) == (("toast",), "note", "2026-01-15")
    assert found.subject == ("" if variant == "hand-made" else "Breakfast")


def test_rows_of_another_database_have_their_tags(tmp_path: Path) -> None:
    """Of what some other program made, that is known which recall knows of it."""
    path = foreign.django_many_to_many(tmp_path / "blog.db")
    source = RowSource(path, {"blog_post": ""})
    found = [source.read(entry).record for entry in source.listing().entries]
    assert [record.entities for record in found if record] == [
        ("bread", "jam"),
        ("jam",),
        ("soup",),
    ]
    assert [record.qualifier for record in found if record] == [
        "2026-03-01", "2026-03-02", "2026-03-03",
    ]  # fmt: skip


def test_bytes_that_are_no_text_are_no_error(kb: sqlite3.Connection, tmp_path: Path) -> None:
    """What cannot be decoded in a project, a concept or a state keeps no row from being read."""
    project = knowledge.add_project(kb, "x")
    kb.execute("update projects set name = cast(x'61ff62' as text)")
    knowledge.add_concept(kb, b"c\xff")
    knowledge.add_record(kb, "Keys", "Rotate them.", project_id=project, concepts=[1])
    kb.execute("update records set status = cast(x'ff' as text)")
    found = records(kb, tmp_path / "kb.db", "records")["records/1"]
    assert found.subject
    assert len(found.entities) == 1
    assert "\udcff" not in repr(found)


# --- whether a row holds -------------------------------------------------------------------------


class Vault:
    """A knowledge database, the index of its rows, and an embedder that is counted."""

    def __init__(self, folder: Path, conn: sqlite3.Connection) -> None:
        self.path, self.kb = folder / "kb.db", conn
        self.store = Store(folder / "index.db", FakeClock())
        self.embedder = FakeEmbedder(batch_size=1)
        tables = {"tables": ["records", "observations"]}
        self.source = self.store.add_source("kb", "rows", str(self.path), tables)

    def run(self, rendering: str = "statement") -> int:
        """One pass of the pipeline; how many texts were embedded in it."""
        self.kb.commit()
        before = len(self.embedder.log)
        run(self.store, self.source, embedder=self.embedder, rendering=rendering)
        return len(self.embedder.log) - before

    def active(self) -> dict[str, int]:
        """Which documents hold, by path."""
        return dict(self.store.rows("select path, is_active from document order by path"))

    def found(self, text: str) -> set[str]:
        """The paths of what full text finds."""
        layers = search_layers(
            self.store.conn, RecallRequest(text=text, mode="lexical"), Within(), Fusion()
        )
        titles = dict(self.store.rows("select id, path from document"))
        return {titles[each.target[0]] for ranked in layers.lists for each in ranked.found}


@pytest.fixture
def vault(tmp_path: Path, kb: sqlite3.Connection) -> Iterator[Vault]:
    """Two records and two observations, indexed."""
    for title in ("First kettle", "Second kettle"):
        knowledge.add_record(kb, title, "It whistles.", project="Kitchen", concepts=["kettles"])
    for text in ("A kettle was seen.", "A kettle was heard."):
        knowledge.add_observation(kb, text)
    made = Vault(tmp_path, kb)
    with closing(made.store):
        assert made.run() == 4
        yield made


def by_state(state: str) -> Callable[[sqlite3.Connection], object]:
    return lambda conn: conn.execute("update records set status = ? where id = 1", [state])


@pytest.mark.parametrize("state", ["superseded", "Rejected", "CANCELLED", " expired "])
def test_a_state_ends_a_record_with_the_next_run(vault: Vault, state: str) -> None:
    """It is no longer found, and nothing is embedded where the text that is embedded is the same;
    another state brings it back."""
    by_state(state)(vault.kb)
    assert vault.run() == 0
    assert vault.active() == {"observations/1": 1, "observations/2": 1, "records/1": 0,
                              "records/2": 1}  # fmt: skip
    assert vault.found("kettle") == {"observations/1", "observations/2", "records/2"}
    by_state("accepted")(vault.kb)
    assert vault.run() == 0
    assert vault.active()["records/1"] == 1


def test_a_relation_ends_an_item_with_the_next_run(vault: Vault) -> None:
    """What stands in the place of another one ends it, of either kind, without a change of its
    row; when the new one goes, the old one holds again."""
    knowledge.supersede_record(vault.kb, 2, 1)
    knowledge.supersede_observation(vault.kb, 1, 2)
    assert vault.run() == 0
    assert vault.found("kettle") == {"observations/1", "records/2"}
    vault.kb.execute("delete from observations where id = 1")
    assert vault.run() == 0
    assert vault.active() == {"observations/2": 1, "records/1": 0, "records/2": 1}


@pytest.mark.parametrize("relationship", ["extends", "Supersedes", ""])
def test_another_relation_ends_nothing(vault: Vault, relationship: str) -> None:
    """Only what is said to supersede an item ends it, and never the item itself."""
    knowledge.supersede_record(vault.kb, 2, 1, relationship)
    knowledge.supersede_record(vault.kb, 2, 2)
    knowledge.supersede_record(vault.kb, 99, 1)
    vault.run()
    assert set(vault.active().values()) == {1}


def test_what_never_held_is_indexed_and_not_found(vault: Vault) -> None:
    """A record that was rejected before it was ever indexed is a document like any other, with
    its vector, so that it need not be read anew when it holds."""
    knowledge.add_record(vault.kb, "Third kettle", status="rejected")
    assert vault.run() == 1
    assert vault.active()["records/3"] == 0
    assert "records/3" not in vault.found("kettle")
    vault.kb.execute("update records set status = 'accepted' where id = 3")
    assert vault.run() == 0
    assert "records/3" in vault.found("kettle")


def test_what_holds_and_what_does_not_is_told_to_those_who_hold_vectors(vault: Vault) -> None:
    """Every change of it is in the log by which vectors in memory are kept true."""
    ((before,),) = vault.store.rows("select max(id) from live_change")
    vault.run()
    assert vault.store.rows("select max(id) from live_change") == [(before,)]
    knowledge.supersede_record(vault.kb, 2, 1)
    vault.run()
    changed = vault.store.rows(
        "select d.path from live_change c join document d on d.id = c.document_id where c.id > ?",
        before,
    )
    assert changed == [("records/1",)]


# --- what is stored of it ------------------------------------------------------------------------


def test_what_is_known_is_stored_with_the_document(vault: Vault) -> None:
    """The record, its table and the names by which it may be called are in the index, as they are
    now."""
    rows = vault.store.rows("select item_table, record from document where path = 'records/1'")
    ((table, stored),) = rows
    assert table == "records"
    assert from_json(stored) == RecordText(
        "", "Kitchen", "decision", entities=("kettles",), qualifier="2026-01-15",
        temporal_scope="accepted",
    )  # fmt: skip
    names = (
        "select n.name from document_name n join document d on d.id = n.document_id"
        " where d.path = 'records/1' order by 1"
    )
    assert vault.store.rows(names) == [("kettles",), ("kitchen",)]
    vault.kb.execute("update projects set name = 'Tea-Room  II'")
    vault.run()
    assert vault.store.rows(names) == [("kettles",), ("tea room ii",)]
    vault.kb.execute("update projects set name = 'a b c d e f'")
    vault.run()
    assert vault.store.rows(names) == [("kettles",)], (
        "it is longer than any name that is looked for"
    )


def test_names_go_with_their_document(vault: Vault) -> None:
    """What is gone is called by no name any more."""
    vault.kb.execute("delete from record_concepts")
    vault.kb.execute("delete from records where id = 2")
    vault.run()
    assert vault.store.rows("select name from document_name") == [("kitchen",)]


# --- the rendering -------------------------------------------------------------------------------


def test_what_is_embedded_is_the_record_as_it_is_rendered(vault: Vault) -> None:
    """With a rendering the embedder is given the statement and what is around it."""
    vault.embedder.log.clear()
    assert vault.run("full") == 4
    ((stored,),) = vault.store.rows("select record from document where path = 'records/1'")
    record = replace(from_json(stored), statement="First kettle\n\nIt whistles.")
    assert embedding_text(record, "full") in vault.embedder.log
    ((texts,),) = vault.store.rows("select count(*) from chunk where text like '%About:%'")
    assert texts == 0, "the chunk itself is the statement"


def test_another_rendering_is_another_index(vault: Vault) -> None:
    """The rendering is in the signature; nothing is embedded when it is as it was."""
    ((statement,),) = vault.store.rows("select signature from index_version")
    assert "rendering:statement" in statement.split("|")
    assert vault.run("frontmatter") == 4
    ((frontmatter,),) = vault.store.rows("select signature from index_version")
    assert "rendering:frontmatter" in frontmatter.split("|")
    assert vault.run("frontmatter") == 0


def test_another_rendering_is_built_beside_what_is_searched(vault: Vault) -> None:
    """Until it is whole the old index is searched, with its vectors."""
    from indexing import indexing

    clock = vault.store.clock
    assert isinstance(clock, FakeClock)
    live = "select count(*) from live_chunk l join vector v on v.chunk_id = l.id"
    service = indexing(
        vault.store,
        embedder=vault.embedder,
        rendering="full",
        share_seconds=300.0,
        progressed=lambda progress: clock.advance(200),
    )
    service.ask(vault.source.id, "run")
    service.run_next()
    states = dict(vault.store.rows("select state, signature from index_version"))
    assert set(states) == {"live", "building"}
    assert "rendering:statement" in states["live"]
    assert vault.store.rows(live) == [(4,)]
    assert len(vault.found("kettle")) == 4
    service.run_all()
    ((signature,),) = vault.store.rows("select signature from index_version")
    assert "rendering:full" in signature
    assert vault.store.rows(live) == [(4,)]
    assert len(vault.found("kettle")) == 4


def test_without_an_embedder_the_rendering_is_nothing_to_the_index(vault: Vault) -> None:
    """Full text has the whole record whatever is embedded, so that nothing is built anew."""
    run(vault.store, vault.source, rendering="statement")
    ((before, number),) = vault.store.rows("select signature, id from index_version")
    assert "rendering" not in before
    run(vault.store, vault.source, rendering="full")
    assert vault.store.rows("select signature, id from index_version") == [(before, number)]


@pytest.mark.parametrize(
    ("rendering", "embedded"), [("statement", 0), ("predicate", 0), ("full", 1)]
)
def test_what_is_embedded_follows_what_is_rendered_of_a_change(
    vault: Vault, rendering: str, embedded: int
) -> None:
    """A new tag is embedded where the rendering has it, and searched as a word in any case."""
    vault.run(rendering)
    knowledge.link(vault.kb, "record_concepts", 1, ["limescale"])
    assert vault.run(rendering) == embedded
    assert vault.found("limescale") == {"records/1"}


# --- indexes of the first version ----------------------------------------------------------------


def first_version(path: Path) -> Path:
    """An index as the first version of the tables has it, with two documents about a concept."""
    with closing(sqlite3.connect(path)) as conn:
        for statement in statements(MIGRATIONS[0]):
            conn.execute(statement)
        conn.execute("pragma user_version = 1")
        conn.execute(f"pragma application_id = {APPLICATION_ID}")
        conn.execute("insert into source (id, name, kind, origin, added_at) values"
                     " (1, 'notes', 'folder', '/notes', '')")  # fmt: skip
        conn.execute("insert into index_version (id, source_id, signature, embedder, dimensions,"
                     " state, started_at)"
                     " values (1, 1, 'old', 'old||', 1, 'live', '')")  # fmt: skip
        conn.execute("insert into concept values (1, 'Kettle')")
        for n, text in ((1, "A kettle whistles."), (2, "Kettles hum, of samovars nothing.")):
            conn.execute("insert into document (id, source_id, key, title, kind, path)"
                         " values (?, 1, ?, ?, 'note', ?)",
                         [n, bytes([n]), f"Note {n}", f"{n}.md"])  # fmt: skip
            conn.execute("insert into generation (id, document_id, version_id, fingerprint,"
                         " content_hash, is_complete, started_at) values (?, ?, 1, '', '', 1, '')",
                         [n, n])  # fmt: skip
            conn.execute("insert into chunk (id, generation_id, position, text, text_hash,"
                         " start_offset, end_offset) values (?, ?, 0, ?, x'', 0, ?)",
                         [n, n, text, len(text)])  # fmt: skip
            conn.execute("insert into vector values (?, x'0000803f')", [n])
            conn.execute("insert into chunk_concept values (?, 1)", [n])
            conn.execute("insert into document_concept values (?, 1)", [n])
            conn.execute("update document set live_generation = id")
        conn.commit()
    return path


def schema(conn: sqlite3.Connection) -> set[tuple[Any, ...]]:
    """Everything that a database is made of, with the columns of its tables in their order."""
    found = set(conn.execute("select type, name, tbl_name, sql from sqlite_master"))
    tables = [row[1] for row in found if row[0] == "table"]
    return found | {
        (t, *column) for t in tables for column in conn.execute(f"pragma table_info({t})")
    }


def test_an_index_of_the_first_version_is_brought_up_to_date(tmp_path: Path) -> None:
    """It has the tables of a new one, its marks, and all of its documents."""
    path = first_version(tmp_path / "old.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        migrate(old)
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
            migrate(new)
            assert schema(old) == schema(new)
            for pragma in ("user_version", "application_id"):
                assert (
                    old.execute(f"pragma {pragma}").fetchall()
                    == new.execute(f"pragma {pragma}").fetchall()
                )
        rows = old.execute("select title, item_table, is_active, record from document").fetchall()
        assert rows == [("Note 1", None, 1, ""), ("Note 2", None, 1, "")]
        assert old.execute("pragma foreign_key_check").fetchall() == []
        old.execute("insert into chunk_fts (chunk_fts, rank) values ('integrity-check', 1)")
        before = old.execute("select * from sqlite_master").fetchall()
        migrate(old)
        assert old.execute("select * from sqlite_master").fetchall() == before


def test_the_full_text_of_the_first_version_is_found_after_it(tmp_path: Path) -> None:
    """Old chunks are found by their words and stems, and go from the full text with their
    documents."""
    with closing(Store(first_version(tmp_path / "old.db"), FakeClock())) as store:
        request = RecallRequest(text="what of a samovar?", mode="auto")
        layers = search_layers(store.conn, request, Within(), Fusion())
        (match,) = recall(store.conn, request, layers=layers).matches
        assert (match.title, match.layers[0].words) == ("Note 2", ("samovars",))
        with store.writing() as conn:
            conn.execute("update chunk set context = 'Teapots' where id = 1")
            conn.execute("delete from document where id = 2")
        assert [
            [each.target[0] for ranked in search_layers(
                store.conn, RecallRequest(text=text, mode="lexical"), Within(), Fusion()
            ).lists for each in ranked.found]
            for text in ("samovar", "teapot", "kettle")
        ] == [[], [1], [1]]  # fmt: skip


def test_an_index_of_the_first_version_is_built_anew_by_its_next_run(tmp_path: Path) -> None:
    """What it lacks is read with the documents, which are searched as they were until then."""
    notes = tmp_path / "notes"
    write_note(notes, "Samovar.md", "It hums.")
    with closing(Store(tmp_path / "index.db", FakeClock())) as store:
        source = add_folder(store, notes)
        run(store, source)
        with store.writing() as conn:
            conn.execute("update index_version set signature = '1' || substr(signature, 2)")
            conn.execute("update chunk set subject = '', context = ''")
        request = RecallRequest(text="samovar", mode="lexical")
        assert not search_layers(store.conn, request, Within(), Fusion()).lists
        run(store, source)
        assert search_layers(store.conn, request, Within(), Fusion()).lists


def test_an_index_of_the_first_version_that_nobody_may_write_answers_by_concept(
    tmp_path: Path,
) -> None:
    """Until a program brings it up to date it has concepts and no other layer, and is not
    changed."""
    path = first_version(tmp_path / "old.db")
    before = path.read_bytes()
    with opened(path) as conn:
        with reading(conn) as reader:
            mapping = find_mapping(reader).mapping
        assert (mapping.full_text, mapping.vectors) == ((), ())
        found = recall(conn, RecallRequest(text="which kettle?", mode="auto", limit=10))
        assert [(match.title, match.body) for match in found.matches] == [
            ("Note 1", "A kettle whistles."),
            ("Note 2", "Kettles hum, of samovars nothing."),
        ]
        assert found.warnings == []
    assert path.read_bytes() == before


def test_what_a_failed_migration_did_is_undone(tmp_path: Path) -> None:
    """An index is of one version or the other, whatever happens in between."""
    path = first_version(tmp_path / "old.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute("create table live_change (in_the_way)")
        before = schema(conn)
        with pytest.raises(sqlite3.OperationalError):
            migrate(conn)
        assert schema(conn) == before
        assert conn.execute("pragma user_version").fetchall() == [(1,)]
        conn.execute("drop table live_change")
        migrate(conn)
        assert conn.execute("pragma user_version").fetchall() == [(len(MIGRATIONS),)]


def test_an_index_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    """What a later version wrote is not understood, and not touched."""
    path = first_version(tmp_path / "new.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute("pragma user_version = 99")
        before = schema(conn)
        with pytest.raises(DatabaseUnreadable, match="newer version"):
            migrate(conn)
        assert schema(conn) == before

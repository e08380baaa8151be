"""Recall over an index: documents beside observations and records, each hit with its place."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import knowledge
from conftest import SHARED_DATA, MakeDatasette
from datasette_concept_recall.indexing.store import Store
from datasette_concept_recall.mapped import find_mapping
from datasette_concept_recall.models import RecallRequest
from datasette_concept_recall.opening import opened
from datasette_concept_recall.reading import reading
from datasette_concept_recall.search import recall
from indexing import SMALL, FakeClock, FakeEmbedder, add_folder, broken_at, run, write_note

LONG = "\n\n".join(
    [
        "# Baking",
        "Nothing of note stands in this first paragraph of it.",
        "Here it is about [[Salt]] and nothing else at all, really.",
        "Another paragraph that has nothing to say to anybody.",
        "Both [[Salt]] and [[Yeast]] are named in this very one.",
    ]
)


@pytest.fixture
def index(store: Store, tmp_path: Path) -> Path:
    write_note(tmp_path / "notes", "baking.md", LONG)
    write_note(tmp_path / "notes", "soup.md", "---\ntags: [Salt]\n---\nA soup.")
    run(store, add_folder(store, tmp_path / "notes", **SMALL))
    return store.path


def asked(index: Path, text: str, **options: Any) -> Any:
    with opened(index) as conn:
        return recall(conn, RecallRequest(text=text, **options))


def test_a_hit_is_the_chunk_that_carries_most_of_what_is_asked(index: Path) -> None:
    """Documents are ranked by their concepts, and each shows its best chunk with its place."""
    found = asked(index, "how do salt and yeast go together?")
    assert [(m.title, m.concepts, m.place) for m in found.matches] == [
        ("Baking", ("Salt", "Yeast"), "line 9"),
        ("soup", ("Salt",), "lines 1–4"),
    ]
    assert found.matches[0].body.startswith("Both")
    assert [(m.source_type, m.kind, m.project) for m in found.matches] == [
        ("note", "Note", "notes")
    ] * 2


def test_of_equal_chunks_the_first_is_shown(index: Path) -> None:
    """Where several chunks carry what is asked it is the one that comes first."""
    (baking, _) = asked(index, "salt").matches
    assert (baking.title, baking.place) == ("Baking", "line 5")


def test_a_budget_is_filled_with_chunks_and_not_with_whole_documents(index: Path) -> None:
    """What goes into a prompt is what was found, not everything around it."""
    context = asked(index, "yeast", budget=200).context
    assert "Both [[Salt]] and [[Yeast]]" in context.text
    assert "Nothing of note" not in context.text


def test_items_can_be_narrowed_to_a_source(index: Path) -> None:
    """A source is to its documents what a project is to records."""
    assert asked(index, "salt", project="notes").total == 2
    assert asked(index, "salt", facets=True).project_counts == {"notes": 2}
    assert asked(index, "salt", types=frozenset({"mail"})).total == 0


def test_what_is_not_searched_is_not_recalled(store: Store, index: Path, tmp_path: Path) -> None:
    """A new version that grows beside the old one is not found before it is whole."""
    write_note(tmp_path / "notes", "baking.md", LONG.replace("Yeast", "Sourdough"))
    embedder = FakeEmbedder(batch_size=1)
    with store.writing() as conn:
        conn.execute('update source set options = \'{"chunk_size": 60, "chunk_overlap": 0}\'')
    embedder.fails = broken_at(2)
    run(store, store.sources()[0], embedder=embedder)
    assert asked(index, "yeast").total == 1
    assert asked(index, "sourdough").concepts == []
    embedder.fails = None
    run(store, store.sources()[0], embedder=embedder)
    assert asked(index, "sourdough").total == 1
    assert asked(index, "yeast").concepts == []


def test_a_folder_is_recalled_once_its_first_pass_got_through(
    store: Store, tmp_path: Path, clock: FakeClock
) -> None:
    """Documents of a first pass that is not through are there, and not found."""
    for n in range(4):
        write_note(tmp_path / "notes", f"{n}.md", f"Note {n} about [[Salt]].")
    source = add_folder(store, tmp_path / "notes")

    def slow(progress: object) -> None:
        clock.advance(100)

    from indexing import indexing

    service = indexing(store, share_seconds=300.0, progressed=slow)
    service.ask(source.id, "run")
    service.run_next()
    assert store.rows("select count(*) from generation where is_complete")[0][0] in (1, 2, 3)
    assert asked(store.path, "salt").concepts == []
    service.run_all()
    assert asked(store.path, "salt").total == 4


def test_an_index_is_told_by_its_header_and_not_by_its_tables(index: Path, tmp_path: Path) -> None:
    """What people made with tables of such names is read as any other database is."""
    with opened(index) as conn, reading(conn) as reader:
        found = find_mapping(reader)
    assert found.reasons == ("It is an index of documents, as this plugin writes it.",)
    assert list(found.mapping.kinds) == ["note", "file", "mail", "row"]
    with closing(sqlite3.connect(tmp_path / "own.db")) as conn:
        conn.execute("create table document (id integer primary key, title text)")
        with reading(conn) as reader:
            assert find_mapping(reader).mapping.sources == ()


@pytest.fixture
def both(index: Path, tmp_path: Path) -> tuple[Path, Path]:
    """An index, and a knowledge database that knows one of its concepts."""
    path = tmp_path / "knowledge.db"
    with closing(knowledge.create(path)) as conn, conn:
        knowledge.add_observation(conn, "Salt keeps bread fresh.", concepts=["Salt"])
    return path, index


@pytest.mark.asyncio
async def test_notes_are_recalled_beside_observations(
    make_datasette: MakeDatasette, both: tuple[Path, Path]
) -> None:
    """One question over both databases finds both, each with a page that can be opened."""
    datasette = make_datasette(*both)
    answer = (await datasette.client.get("/-/recall.json?q=salt")).json()
    assert {(row["source_type"], row["database"]) for row in answer["rows"]} == {
        ("observation", "knowledge"),
        ("note", "index"),
    }
    assert {row["place"] for row in answer["rows"]} == {None, "line 5", "lines 1–4"}
    for row in answer["rows"]:
        path = row["url"].split("localhost", 1)[1]
        assert (await datasette.client.get(path.partition("#")[0])).status_code == 200
    page = (await datasette.client.get("/-/recall?q=salt")).text
    assert "lines 1–4" in page


@pytest.mark.asyncio
async def test_concepts_filters_and_facets_work_on_documents(
    make_datasette: MakeDatasette, index: Path
) -> None:
    """What works on any tagged table works on the documents of an index."""
    client = make_datasette(index).client
    listed = (await client.get("/index/-/concepts.json")).json()
    assert {(c["name"], c["total"]) for c in listed["concepts"]} == {("Salt", 2), ("Yeast", 1)}
    rows = (await client.get("/index/document.json?_concept=Yeast&_shape=objects")).json()["rows"]
    assert [row["title"] for row in rows] == ["Baking"]
    assert (await client.get("/index/document?_facet_concept=1")).status_code == 200
    assert (await client.get("/index/-/concepts/Salt")).status_code == 200
    assert (await client.get("/index/document/1")).status_code == 200


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "private", ["document", "document_concept", "chunk", "chunk_concept", "concept"]
)
async def test_who_may_not_see_a_table_that_is_read_is_told_nothing(
    make_datasette: MakeDatasette, both: tuple[Path, Path], private: str
) -> None:
    """Not that there are documents, nor how many, nor under which concepts."""
    config = {"databases": {"index": {"tables": {private: {"allow": False}}}}}
    client = make_datasette(*both, config=config).client
    answer = await client.get("/index/-/recall.json?q=salt+yeast")
    if answer.status_code == 200:
        body = answer.json()
        assert body["rows"] == []
        assert body["total"] == 0
        assert all(concept["total"] == 0 for concept in body["concepts"])
    else:
        assert answer.status_code == 403
    everywhere = (await client.get("/-/recall.json?q=salt+yeast")).json()
    assert {row["source_type"] for row in everywhere["rows"]} == {"observation"}
    assert all(concept["total"] <= 1 for concept in everywhere["concepts"])


@pytest.mark.asyncio
async def test_a_real_vault_and_real_records_answer_one_question(
    make_datasette: MakeDatasette, peps: Path, store: Store
) -> None:
    """Notes and decision records that name the same concept are found together."""
    vault = SHARED_DATA / "vault"
    if not vault.is_dir():
        pytest.skip("the shared vault is not beside this checkout")
    source = add_folder(store, vault)
    run(store, source, knowledge=[peps])
    client = make_datasette(peps, store.path).client
    shared = store.rows("select name from concept")
    with opened(peps) as conn:
        known = {name for (name,) in conn.execute("select name from concepts")}
    common = sorted({name for (name,) in shared} & known)
    assert common
    answer = (await client.get(f"/-/recall.json?q={common[0]}&_size=100")).json()
    assert {row["database"] for row in answer["rows"]} == {"peps", "index"}


def test_a_place_is_that_of_what_is_shown(store: Store, tmp_path: Path) -> None:
    """What a chunk repeats of the one before is neither shown nor counted with it."""
    lines = [f"Line {n} of many, with nothing to say." for n in range(1, 41)]
    lines[19] = "Here stands [[Salt]] in a line of its own."
    write_note(tmp_path / "notes", "a.txt", "\n".join(lines))
    run(store, add_folder(store, tmp_path / "notes", chunk_size=200, chunk_overlap=90))
    (match,) = asked(store.path, "salt").matches
    assert "Here stands [[Salt]]" in match.body
    first, last = (int(n) for n in match.place.removeprefix("lines ").split("–"))
    assert match.body.strip("\n") == "\n".join(lines[first - 1 : last])


def test_a_context_says_where_its_texts_stand(index: Path) -> None:
    """The place is among what is known of an item."""
    assert "- place: line 9\n" in asked(index, "yeast", budget=200).context.text


def test_brackets_and_addresses_are_no_concepts(store: Store, tmp_path: Path) -> None:
    """What looks like a link in source code is none, and an address names nothing."""
    notes = tmp_path / "notes"
    write_note(notes, "x.sh", 'if [[ -z "$x" ]]; then echo; fi')
    write_note(notes, "a.md", "[[Salt]], [[HTTPS]]")
    write_note(notes, "b.md", "See https://salt.example/salt and <p class='salt'> or www.salt.org.")
    write_note(notes, "c.md", "More salt than usual, salt is good. https://x.org and https://y.org")
    source = add_folder(store, notes)
    run(store, source)
    run(store, source)
    carried = store.rows(
        "select d.path, c.name from document d join document_concept l on l.document_id = d.id"
        " join concept c on c.id = l.concept_id order by 1, 2"
    )
    assert carried == [("a.md", "HTTPS"), ("a.md", "Salt"), ("c.md", "Salt")]

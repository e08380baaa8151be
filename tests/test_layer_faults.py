"""Faults that the layers behind the concepts once had, each told by what must hold instead."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import knowledge
from conftest import MakeDatasette, actor_cookie
from datasette_concept_recall.deadlines import AT_ONCE
from datasette_concept_recall.file_layers import embedder_name
from datasette_concept_recall.indexing.ids import EmbedderIdentity
from datasette_concept_recall.indexing.store import Store
from datasette_concept_recall.liveness import active_sql
from datasette_concept_recall.mapped import read_mapping
from datasette_concept_recall.reading import reading
from indexing import FakeClock
from layer_worlds import (
    AUTOMOBILE,
    BICYCLES,
    EVERYWHERE,
    PARKING,
    REFS,
    WITHOUT,
    Fallback,
    Meanings,
    World,
    ask,
    build,
    configured,
    eventually,
    fill,
    layer_names,
    reasons,
    registered,
    titles,
)
from test_cli import good
from test_cli import run as invoke

ROOT = {"allow": {"id": "root"}}


def index_of(database: Path, path: Path, tables: list[str] | None = None) -> World:
    """A database and an index of its rows, or of those of some tables."""
    world = World(database, path)
    with closing(Store(path, FakeClock())) as store:
        store.set_setting("embedder", "meanings")
        options = {} if tables is None else {"tables": tables}
        store.add_source("rows", "rows", str(database.resolve()), options)
    world.run()
    return world


@pytest.fixture
def articles(tmp_path: Path) -> World:
    """Two tagged articles, of which one has no key but the rowid that is the key of the other, and
    a table without tags; with an index."""
    path = tmp_path / "knowledge.db"
    with closing(sqlite3.connect(path)) as conn:
        conn.executescript(
            """
            create table articles (id int primary key, title text, body text);
            create table tags (id integer primary key, name text unique);
            create table article_tags (
                article_id integer references articles (id),
                tag_id integer references tags (id),
                primary key (article_id, tag_id)
            );
            create table logbook (id integer primary key, note text);
            insert into tags values (1, 'Animals');
            insert into articles (rowid, id, title, body)
                values (1, 3, 'The walrus', 'A walrus sleeps upon the shore all day.');
            insert into articles (rowid, id, title, body)
                values (3, null, 'The giraffe', 'It nibbles the acacia trees from above.');
            insert into article_tags values (3, 1);
            insert into logbook values (1, 'The submarine dives below the harbour quietly.');
            """
        )
    return index_of(path, tmp_path / "index.db")


# --- what may not be seen, cannot be looked at or has no key -------------------------------------


@pytest.mark.asyncio
async def test_rows_of_a_source_that_is_being_removed_are_still_hidden(
    make_datasette: MakeDatasette, own_world: World, meanings: Meanings
) -> None:
    """Whose table is private is not found by words in what is left of them in the index."""
    own_world.change("update source set is_leaving = 1 where kind = 'rows'", file="library")
    config = configured(databases={"knowledge": {"tables": {"records": ROOT}}})
    datasette = make_datasette(*own_world, config=config)
    assert titles(await ask(datasette, "index", PARKING, mode="lexical")) == []
    root = actor_cookie(datasette, "root")
    assert titles(await ask(datasette, "index", PARKING, root, mode="lexical")) == [BICYCLES]


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", ["NUL", "loop"])
async def test_an_origin_that_cannot_be_resolved_fails_no_recall(
    make_datasette: MakeDatasette, own_world: World, meanings: Meanings, kind: str
) -> None:
    """Everything else is found wherever it is asked for, by all layers."""
    loop = own_world.library.with_name("loop.db")
    loop.symlink_to(loop)
    origin = str(loop) if kind == "loop" else "/nowhere/with\x00in.db"
    own_world.change(
        "insert into source (name, kind, origin, added_at) values ('odd', 'rows', ?, '2026')",
        origin,
        file="library",
    )
    own_world.change(
        "insert into index_version (source_id, signature, state, started_at)"
        " select id, 'x', 'live', '2026' from source where name = 'odd'",
        file="library",
    )
    datasette = make_datasette(*own_world, config=configured())
    for database in EVERYWHERE:
        answer = await ask(datasette, database, PARKING)
        assert (titles(answer), answer["warnings"]) == ([BICYCLES, AUTOMOBILE], [])


@pytest.mark.asyncio
async def test_a_row_without_a_key_is_never_served_as_another_row(
    make_datasette: MakeDatasette, articles: World, meanings: Meanings
) -> None:
    """Its rowid is not taken for the key of the row that has the same number."""
    datasette = make_datasette(*articles, config=configured())
    for database, found in (("knowledge", []), ("index", ["The giraffe"])):
        assert titles(await ask(datasette, database, "giraffe acacia")) == found
    assert "The walrus" not in titles(await ask(datasette, None, "giraffe acacia"))
    articles.change("delete from articles where id is null")
    for database in EVERYWHERE:
        assert titles(await ask(datasette, database, "giraffe acacia")) == []


@pytest.mark.asyncio
async def test_rows_that_have_no_tags_are_found_among_all_databases(
    make_datasette: MakeDatasette, articles: World, meanings: Meanings
) -> None:
    """The index finds what their own database has no way to, and tagged rows are found once."""
    datasette = make_datasette(*articles, config=configured())
    (row,) = (await ask(datasette, None, "submarine harbour"))["rows"]
    assert row["database"] == "index"
    assert "lexical" in layer_names(row)
    (row,) = (await ask(datasette, None, "walrus shore"))["rows"]
    assert (row["database"], row["title"]) == ("knowledge", "The walrus")


@pytest.mark.asyncio
@pytest.mark.parametrize("is_first", [True, False])
async def test_of_two_indexes_the_one_that_holds_more_is_asked(
    make_datasette: MakeDatasette, own_world: World, meanings: Meanings, is_first: bool
) -> None:
    """In whatever order they are served."""
    small = own_world.library.with_name("small.db")
    index_of(own_world.knowledge, small, ["observations"])
    indexes = [small, own_world.library] if is_first else [own_world.library, small]
    datasette = make_datasette(own_world.knowledge, *indexes, config=configured())
    answer = await ask(datasette, "knowledge", PARKING)
    assert (titles(answer), answer["warnings"]) == ([BICYCLES, AUTOMOBILE], [])


# --- embedders -----------------------------------------------------------------------------------


def test_an_embedder_that_is_not_known_is_not_remembered(tmp_path: Path) -> None:
    """The run ends with one line and exit code 1, and the index keeps the embedder that it had."""
    index = tmp_path / "index.db"
    good("index", "add", "folder", tmp_path, "--to", index)
    with closing(Store(index)) as store:
        store.set_setting("embedder", "wordllama")
    result = invoke("index", "run", index, "--embedder", "typo")
    assert result.exit_code == 1
    assert "There is no embedder named 'typo'" in result.stderr
    with closing(Store(index)) as store:
        assert store.setting("embedder") == "wordllama"


@pytest.mark.asyncio
async def test_old_vectors_are_searched_while_another_embedder_makes_new_ones(
    make_datasette: MakeDatasette, own_world: World, meanings: Meanings
) -> None:
    """With the embedder that they are of; the other one is not asked."""
    others = Meanings("others")
    with closing(Store(own_world.library, FakeClock())) as store:
        names = {each.identity.name: each.name for each in (meanings, others)}
        store.set_setting("embedder_names", names)
        store.set_setting("embedder", "others")
        with reading(store.conn) as reader:
            assert embedder_name(reader) == "meanings"
    with registered(others):
        datasette = make_datasette(*own_world, config=configured())
        for database in EVERYWHERE:
            answer = await ask(datasette, database, PARKING)
            assert (titles(answer), answer["warnings"]) == ([BICYCLES, AUTOMOBILE], [])
    assert meanings.questions
    assert others.asked == []


class Panic(BaseException):
    """As what a library written in Rust raises: no `Exception`."""


def panicking(text: str) -> Any:
    raise Panic("index out of bounds")


@pytest.mark.asyncio
async def test_a_panic_of_an_embedder_costs_its_layer_alone(
    make_datasette: MakeDatasette, own_world: World, meanings: Meanings
) -> None:
    """The answer comes by words and says what was raised."""
    meanings.answer = panicking
    datasette = make_datasette(*own_world, config=configured())
    for database in EVERYWHERE:
        answer = await ask(datasette, database, PARKING)
        assert titles(answer) == [BICYCLES]
        (reason,) = reasons(answer)
        assert "Panic: index out of bounds" in reason


class Halved(Meanings):
    """An embedder of whose installation a part is gone."""

    @property
    def identity(self) -> EmbedderIdentity:
        raise OSError("the weights are gone")

    @identity.setter
    def identity(self, identity: EmbedderIdentity) -> None:
        pass


@pytest.mark.asyncio
async def test_an_embedder_without_an_identity_is_a_warning(
    make_datasette: MakeDatasette, own_world: World
) -> None:
    """The answer comes by words and says what is wrong with the embedder."""
    with registered(Halved()):
        datasette = make_datasette(*own_world, config=configured())
        for database in EVERYWHERE:
            answer = await ask(datasette, database, PARKING)
            assert titles(answer) == [BICYCLES]
            (reason,) = reasons(answer)
            assert "the weights are gone" in reason


# --- how much is found, and what of it holds -----------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize("with_index", [True, False])
async def test_a_project_narrows_to_no_more_than_a_layer_gives(
    make_datasette: MakeDatasette, own_world: World, meanings: Meanings, with_index: bool
) -> None:
    """Twenty items, though many more of the project have the words."""
    files = own_world if with_index else [own_world.knowledge]
    datasette = make_datasette(*files, config=configured())
    answer = await ask(
        datasette, "knowledge", "weight", mode="lexical", project="Diary", _size="100"
    )
    assert len(answer["rows"]) == answer["total"] == 20


@pytest.mark.asyncio
async def test_concepts_have_the_same_totals_in_every_mode(
    make_datasette: MakeDatasette, own_world: World, meanings: Meanings
) -> None:
    """Also in those that show nothing of what they are tagged to."""
    datasette = make_datasette(*own_world, config=configured())
    for database in EVERYWHERE:
        totals = [
            [
                (concept["name"], concept["total"])
                for concept in (await ask(datasette, database, "Remarks and Hall", mode=mode))[
                    "concepts"
                ]
            ]
            for mode in ("concept", "auto", "lexical", "semantic")
        ]
        assert totals == [totals[0]] * 4
        assert sorted(name for name, total in totals[0] if total) == ["Hall", "Remarks"]


@pytest.mark.parametrize("blank", ["\t", "\n", "\r", " ", "\u00a0"])
def test_blanks_around_a_status_do_not_matter(blank: str) -> None:
    """What was rejected holds no longer, also where somebody typed more than the word."""
    with closing(knowledge.create()) as conn:
        for status in ("accepted", "rejected"):
            knowledge.add_record(conn, status, status=f"{blank}{status}{blank}{blank}")
        with reading(conn) as reader:
            (records,) = [s for s in read_mapping(reader).sources if s.item_table == "records"]
        sql = f"select i.title from {records.item_table} i where {active_sql(records)}"
        assert conn.execute(sql).fetchall() == [("accepted",)]


def superseding(conn: sqlite3.Connection) -> None:
    """A record in place of another one, both accepted."""
    old = knowledge.add_record(conn, "The old hall", "It has one door.", concepts=["Hall"])
    new = knowledge.add_record(conn, "The new hall", "It has two doors.", concepts=["Hall"])
    knowledge.supersede_record(conn, new, old)


@pytest.mark.asyncio
async def test_a_row_in_an_index_that_was_superseded_is_shown_as_such(
    make_datasette: MakeDatasette, tmp_path: Path, meanings: Meanings
) -> None:
    """Though its own status says nothing of the relation to another one."""
    world = build(tmp_path, superseding)
    datasette = make_datasette(*world, config=configured())
    answer = await ask(datasette, "index", "Hall", mode="concept")
    statuses = {row["title"]: row["status"] for row in answer["rows"]}
    assert statuses["The old hall"] == "superseded"
    assert statuses["The new hall"] == "accepted"


# --- other plugins that raise, and that never answer ---------------------------------------------


class Panicked(Meanings):
    """An embedder whose library panics before it is asked anything."""

    @property
    def identity(self) -> EmbedderIdentity:
        raise Panic("no such model")

    @identity.setter
    def identity(self, identity: EmbedderIdentity) -> None:
        pass


@pytest.mark.asyncio
async def test_a_panic_of_an_embedder_that_is_loaded_costs_its_layer_alone(
    make_datasette: MakeDatasette, own_world: World
) -> None:
    """The answer comes by words and says what was raised."""
    with registered(Panicked()):
        datasette = make_datasette(*own_world, config=configured())
        for database in EVERYWHERE:
            answer = await ask(datasette, database, PARKING)
            assert titles(answer) == [BICYCLES]
            assert reasons(answer) == ["The embedder meanings cannot be used: no such model."]


class Raising(Fallback):
    """A fallback that raises when it is asked, or when its answer or a reference is read."""

    def __init__(self, kind: type[BaseException], where: str) -> None:
        super().__init__()
        self.kind, self.where = kind, where

    def raise_in(self, where: str) -> None:
        if self.where == where:
            raise self.kind("the store is down")

    def search(self, query: str, limit: int) -> Any:
        self.raise_in("search")
        return self

    def __iter__(self) -> Iterator[Any]:
        self.raise_in("answer")
        return iter([self])

    def __str__(self) -> str:
        self.raise_in("reference")
        return "record:2"


@pytest.mark.asyncio
@pytest.mark.parametrize("where", ["search", "answer", "reference"])
@pytest.mark.parametrize(
    "kind",
    [
        *(StopIteration, StopAsyncIteration, GeneratorExit, asyncio.CancelledError),
        *(SystemExit, KeyboardInterrupt, BaseException, Panic, ConnectionError),
    ],
)
async def test_whatever_a_fallback_raises_is_a_warning(
    make_datasette: MakeDatasette, tmp_path: Path, kind: type[BaseException], where: str
) -> None:
    """The answer comes by words, whether asking raises or reading what was found."""
    world = build(tmp_path, index=False)
    with registered(fallbacks=[Raising(kind, where)]):
        datasette = make_datasette(world.knowledge, config=configured())
        answer = await asyncio.wait_for(ask(datasette, "knowledge", PARKING), 60)
    assert titles(answer) == [BICYCLES]
    assert answer["warnings"] == [f"{WITHOUT}{kind.__name__}: the store is down."]


class Unspeakable(Exception):
    """As of a library with a mistake in its messages."""

    def __str__(self) -> str:
        raise ValueError("no message")


@pytest.mark.asyncio
async def test_a_fallback_that_raises_what_cannot_be_told_is_a_warning(
    make_datasette: MakeDatasette, tmp_path: Path
) -> None:
    """The answer comes by words, and says what went wrong with the message."""
    world = build(tmp_path, index=False)
    with registered(fallbacks=[Raising(Unspeakable, "search")]):
        datasette = make_datasette(world.knowledge, config=configured())
        answer = await ask(datasette, "knowledge", PARKING)
    assert titles(answer) == [BICYCLES]
    assert answer["warnings"] == [f"{WITHOUT}ValueError: no message."]


class Hanging(Fallback):
    """A fallback that answers nothing until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def search(self, query: str, limit: int) -> Sequence[str]:
        self.released.wait(60)
        return super().search(query, limit)


@pytest.mark.asyncio
async def test_a_fallback_that_never_answers_silences_no_other_one(
    make_datasette: MakeDatasette, tmp_path: Path
) -> None:
    """However often it was asked, that of another database is asked as before."""
    world, other = build(tmp_path, index=False), tmp_path / "other.db"
    with closing(knowledge.create(other)) as conn, conn:
        fill(conn)
    hanging = Hanging()
    with registered(fallbacks=[hanging, Fallback("other", REFS)]):
        config = configured({"deadline_ms": 100})
        datasette = make_datasette(world.knowledge, other, config=config)
        try:
            for _ in range(AT_ONCE + 1):
                answer = await ask(datasette, "knowledge", PARKING)
                assert titles(answer) == [BICYCLES]
            assert answer["warnings"] == [f"{WITHOUT}it has not answered earlier questions yet."]
            answer = await eventually(datasette, "other", "Which automobile can park?")
            assert all("semantic" in layer_names(row) for row in answer["rows"])
            assert sorted(titles(answer)) == sorted([AUTOMOBILE, BICYCLES])
        finally:
            hanging.released.set()

"""The canned queries: to whom they are offered, and beside whose."""

from __future__ import annotations

import html
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from datasette import hookimpl
from datasette.app import Datasette
from datasette.plugins import pm

import knowledge
from conftest import IS_1_0, MakeDatasette
from datasette_concept_recall import canned_sql
from datasette_concept_recall.vocabulary import Vocabulary

OURS = [
    "concept_mentions",
    "concept_recall_by_names",
    "concept_recall_by_text",
    "concept_word_search",
]
SOURCE = "datasette-concept-recall"

only_0_65 = pytest.mark.skipif(IS_1_0, reason="1.0 has no hook canned_queries")
only_1_0 = pytest.mark.skipif(not IS_1_0, reason="0.65 stores no queries")


# --- to whom they are offered --------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A knowledge database with one item of the concept RAG."""
    return build(tmp_path / "k.db")


def build(path: Path, variant: str = "today") -> Path:
    """A knowledge database with one item of the concept RAG."""
    with closing(knowledge.create(path, variant)) as conn:
        knowledge.add_observation(conn, "Body", concepts=["RAG"])
        conn.commit()
    return path


async def get(datasette: Datasette, name: str, database: str = "k", **parameters: str) -> Any:
    """The response of a query as an array of objects."""
    address = datasette.urls.query(database, name, format="json")
    query = urlencode({**parameters, "_shape": "array"})
    return await datasette.client.get(type(address)(f"{address}?{query}"))


async def listed(datasette: Datasette, database: str = "k") -> list[str]:
    """The names of the queries that a database's pages list for everybody."""
    path = f"/{database}/-/queries.json" if IS_1_0 else f"/{database}.json"
    response = await datasette.client.get(path)
    assert response.status_code == 200, response.text
    return sorted(query["name"] for query in response.json()["queries"])


@pytest.mark.asyncio
async def test_knowledge_databases_have_the_queries_and_others_have_not(
    path: Path, tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """A database is offered them for its concepts table, whatever its age."""
    old = build(tmp_path / "old.db", "hand-made")
    for name, sql in (("plain", "create table t (a)"), ("empty", "")):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as conn:
            conn.executescript(sql)
    datasette = make_datasette(path, old, tmp_path / "plain.db", tmp_path / "empty.db", memory=True)
    assert await listed(datasette) == await listed(datasette, "old") == OURS
    for database in ("plain", "empty", "_memory"):
        assert await listed(datasette, database) == []
        for name in OURS:
            assert (await get(datasette, name, database)).status_code in (400, 404)


@pytest.mark.asyncio
async def test_every_query_has_a_page_with_a_title_and_a_description(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """They are offered to people, who are told what to fill in."""
    datasette = make_datasette(path)
    for name in OURS:
        page = await datasette.client.get(datasette.urls.query("k", name))
        assert page.status_code == 200
        (query,) = (
            q
            for q in canned_sql.canned_queries(Vocabulary().mapping(sqlite3.connect(path)))
            if q.name == name
        )
        assert f"{query.title}</h1>" in page.text.replace("k: ", "")
        assert query.description in html.unescape(page.text)
        for parameter in query.parameters:
            assert f'name="{parameter}"' in page.text


@pytest.mark.asyncio
@pytest.mark.parametrize("value", [None, "", " ", "\n", "%00"])
async def test_nothing_filled_in_is_nothing_found(
    path: Path, make_datasette: MakeDatasette, value: str | None
) -> None:
    """A query opened without its parameters, or with blanks, has no rows and no error."""
    datasette = make_datasette(path)
    parameters = {} if value is None else dict.fromkeys(("text", "names", "word", "limit"), value)
    for name in OURS:
        response = await get(datasette, name, **parameters)
        assert (response.status_code, response.json()) == (200, [])


@pytest.mark.asyncio
@pytest.mark.parametrize("file", ["k.db", "my notes.db", "a+b é.db", "x~y.v2.db", "concepts.db"])
@pytest.mark.parametrize("base_url", ["/", "/prefix/"])
async def test_the_page_leads_to_the_query_with_the_same_answer(
    tmp_path: Path, make_datasette: MakeDatasette, file: str, base_url: str
) -> None:
    """The link works below a base URL and for databases of any name."""
    database = build(tmp_path / file).stem
    datasette = make_datasette(tmp_path / file, settings={"base_url": base_url})
    for asked in ("q=what+RAG+is", "concept=rag&concept=x%2Cy"):
        address = f"{datasette.urls.database(database)}/-/recall?{asked}"
        page = await datasette.client.get(type(datasette.urls.database(database))(address))
        assert page.status_code == 200, page.text
        (link,) = set(re.findall(r'href="([^"]*/concept_recall_by_[^"]*)"', page.text))
        assert link.startswith(f"{base_url}{datasette.urls.database(database)[len(base_url) :]}/")
        target = html.unescape(link).replace("?", ".json?_shape=array&")
        answer = await datasette.client.get(type(datasette.urls.database(database))(target))
        assert [(row["source_type"], row["id"]) for row in answer.json()] == [("observation", 1)]


# --- beside whose they are -----------------------------------------------------------------------

THEIRS = "select 'theirs' as whose"


async def assert_is_theirs(datasette: Datasette, name: str) -> None:
    """The query of this name is somebody else's, and the three others are ours."""
    assert await listed(datasette) == OURS
    for each in OURS:
        response = await get(datasette, each, text="RAG", names="RAG", word="Body")
        assert response.status_code == 200, response.text
        assert (response.json() == [{"whose": "theirs"}]) == (each == name)


@contextmanager
def plugin(**hooks: Any) -> Iterator[None]:
    """Another plugin with these hooks, for as long as the block runs."""
    other = type(
        "Other", (), {"__name__": "other", **{k: staticmethod(v) for k, v in hooks.items()}}
    )
    pm.register(other(), name="other")
    try:
        yield
    finally:
        pm.unregister(name="other")


@pytest.mark.asyncio
@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("whole", [True, False])
async def test_a_query_of_the_same_name_in_the_configuration_stays(
    path: Path, make_datasette: MakeDatasette, name: str, whole: bool
) -> None:
    """What the administrator wrote is not replaced, not even after the first request."""
    theirs = {"sql": THEIRS} if whole else THEIRS
    datasette = make_datasette(path, config={"databases": {"k": {"queries": {name: theirs}}}})
    await assert_is_theirs(datasette, name)
    await assert_is_theirs(datasette, name)


@only_0_65
@pytest.mark.asyncio
@pytest.mark.parametrize("order", [{}, {"tryfirst": True}, {"trylast": True}])
@pytest.mark.parametrize("awaited", [True, False])
async def test_a_query_of_the_same_name_by_another_plugin_stays_on_0_65(
    path: Path, make_datasette: MakeDatasette, order: dict[str, bool], awaited: bool
) -> None:
    """Whenever the other plugin's hook is called, its query is the one that is shown."""

    @hookimpl(**order)
    def canned_queries(database: str) -> Any:
        async def inner() -> dict[str, str]:
            return {"concept_mentions": THEIRS}

        return inner if awaited else {"concept_mentions": THEIRS}

    with plugin(canned_queries=canned_queries):
        await assert_is_theirs(make_datasette(path), "concept_mentions")


@only_1_0
@pytest.mark.asyncio
@pytest.mark.parametrize("order", [{"tryfirst": True}, {"trylast": True}])
async def test_a_query_of_the_same_name_by_another_plugin_stays_on_1_0(
    path: Path, make_datasette: MakeDatasette, order: dict[str, bool]
) -> None:
    """Whichever of the plugins starts first."""

    @hookimpl(**order)
    def startup(datasette: Any) -> Any:
        return lambda: datasette.add_query("k", "concept_mentions", THEIRS, is_trusted=True)

    with plugin(startup=startup):
        await assert_is_theirs(make_datasette(path), "concept_mentions")


@only_1_0
@pytest.mark.asyncio
async def test_a_query_that_a_user_stored_stays(
    path: Path, tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Through any number of restarts it is the user's, down to the last column."""
    columns = "sql, title, source, owner_id, is_private, is_trusted, updated_at"
    for start in range(3):
        datasette: Any = make_datasette(path, internal=str(tmp_path / "internal.db"))
        await datasette.invoke_startup()
        if start == 0:
            await datasette.remove_query("k", "concept_mentions")
            await datasette.add_query(
                "k", "concept_mentions", THEIRS, title="Mine", source="user", owner_id="ann"
            )
        sql = f"select {columns} from queries where name = 'concept_mentions'"
        stored = (await datasette.get_internal_database().execute(sql)).rows
        assert [tuple(row)[:-1] for row in stored] == [(THEIRS, "Mine", "user", "ann", 0, 0)]
        await assert_is_theirs(datasette, "concept_mentions")


@only_1_0
@pytest.mark.asyncio
async def test_what_earlier_versions_stored_is_brought_up_to_date(
    path: Path, tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Queries of ours that are no longer offered go, others' stay, old SQL is replaced."""
    plain = tmp_path / "plain.db"
    with closing(sqlite3.connect(plain)) as conn:
        conn.execute("create table t (a)")
    internal = str(tmp_path / "internal.db")
    datasette: Any = make_datasette(path, plain, internal=internal)
    await datasette.invoke_startup()
    for database, name, source in (
        ("k", "concept_recall_old", SOURCE),
        ("plain", "concept_mentions", SOURCE),
        ("gone", "concept_mentions", SOURCE),
        ("k", "concept_mentions", SOURCE),
        ("k", "concept_recall_mine", "user"),
        ("plain", "concept_word_search", "plugin"),
    ):
        await datasette.add_query(database, name, THEIRS, source=source)
    datasette = make_datasette(path, plain, internal=internal)
    await datasette.invoke_startup()
    found = await datasette.get_internal_database().execute(
        "select database_name, name, source = ?, sql = ? from queries order by 1, 2",
        [SOURCE, THEIRS],
    )
    assert [tuple(row) for row in found.rows] == sorted(
        [
            *(("k", name, 1, 0) for name in OURS),
            ("k", "concept_recall_mine", 0, 1),
            ("plain", "concept_word_search", 0, 1),
        ]
    )


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", ["table", "view"])
async def test_a_table_of_the_same_name_is_not_hidden(
    path: Path, make_datasette: MakeDatasette, kind: str
) -> None:
    """The address belongs to the table or view, and no query of that name is listed."""
    with closing(sqlite3.connect(path)) as conn:
        conn.execute(f"create {kind} concept_mentions as select 'row' as kept")
        conn.commit()
    datasette = make_datasette(path)
    response = await get(datasette, "concept_mentions")
    assert [row["kept"] for row in response.json()] == ["row"]
    assert await listed(datasette) == [name for name in OURS if name != "concept_mentions"]


@only_0_65
@pytest.mark.asyncio
async def test_the_queries_follow_the_schema_on_0_65(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Also beside queries of the metadata, to which Datasette adds ours for good."""
    path = build(tmp_path / "k.db", "pre-records")
    config = {"databases": {"k": {"queries": {"mine": THEIRS}}}}
    datasette = make_datasette(path, config=config)
    assert await listed(datasette) == [*OURS, "mine"]
    with closing(sqlite3.connect(path)) as conn:
        knowledge._create_tables(conn, {n: knowledge.TABLES[n] for n in knowledge.RECORD_TABLES})
        knowledge.add_record(conn, "News of RAG", concepts=["RAG"])
        conn.commit()
    for name, asked in (("concept_recall_by_text", "text"), ("concept_word_search", "word")):
        rows = (await get(datasette, name, **{asked: "RAG"})).json()
        assert "record" in {row["source_type"] for row in rows}
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("alter table concepts rename to former_names")
        conn.execute("alter table former_names rename column name to named")
        conn.execute("drop table record_concepts")
        conn.execute("drop table project_concepts")
    assert await listed(datasette) == ["mine"]

"""Recall on databases of any name, number, age and kind: addresses work, nothing is written."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from datasette.database import Database
from datasette.utils import tilde_encode

import knowledge
from conftest import MakeDatasette, file_bytes
from pages import content, parse
from served import build, fill, get

NAMES = [
    "with space",
    "a/b",
    "a+b",
    "50%",
    "%2F",
    "til~de",
    "~2F",
    "dot.json",
    "..",
    "-",
    "x?y#z&q=1",
    "quo\"te's",
    "<b>bold</b>",
    "数据 🦉",
    "_under",
    "back\\slash",
    "recall",
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of `served.build`."""
    return build(tmp_path_factory.mktemp("knowledge") / "knowledge.db")


def local(url: str) -> str:
    """A URL as what the test client wants: the path and the query."""
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


@pytest.mark.asyncio
@pytest.mark.parametrize("name", NAMES)
async def test_a_database_may_have_any_name(
    path: Path, make_datasette: MakeDatasette, name: str
) -> None:
    """Page, API, paging, row links and menu entry of an oddly named database lead somewhere."""
    datasette = make_datasette()
    datasette.add_database(Database(datasette, path=str(path)), name=name)
    answer = await get(datasette, "q=RAG&_size=2", tilde_encode(name))
    assert answer["database"] == name
    assert (await datasette.client.get(local(answer["rows"][0]["url"]))).status_code == 200
    following = (await datasette.client.get(local(answer["next_url"]))).json()
    assert [row["rank"] for row in following["rows"]] == [3, 4]

    response = await datasette.client.get(f"/{tilde_encode(name)}/-/recall?q=RAG&_size=2")
    page = content(response)
    assert page.one("h1").words == f"Recall in {' '.join(name.split())}"
    for link in page.links():
        followed = await datasette.client.get(link)
        assert followed.status_code == 200, link
    (menu,) = [a for a in parse(response.text).all("a") if a.words == "Recall"]
    assert content(await datasette.client.get(menu["href"])).one("h1").words == page.one("h1").words


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["odd name", "quo'te", "数据", "a.b"])
async def test_a_file_may_have_any_name(
    tmp_path: Path, make_datasette: MakeDatasette, name: str
) -> None:
    """A database that takes its name from its file is recalled from like any other."""
    datasette = make_datasette(build(tmp_path / f"{name}.db"))
    assert (await get(datasette, "q=RAG", tilde_encode(name)))["total"] == 25


@pytest.mark.asyncio
async def test_databases_do_not_mix(
    path: Path, tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Each of several databases knows its own concepts; the menu leads to all of them in one."""
    other = tmp_path / "other.db"
    with closing(knowledge.create(other)) as conn:
        knowledge.add_observation(conn, "about Rust", concepts=["Rust"])
        conn.commit()
    knowledge.create(tmp_path / "plain.db", "nothing").close()
    datasette = make_datasette(path, other, tmp_path / "plain.db")
    for database, concepts in [("knowledge", ["RAG"]), ("other", ["Rust"]), ("plain", [])]:
        answer = await get(datasette, "q=RAG+in+Rust", database)
        assert [concept["name"] for concept in answer["concepts"]] == concepts
    links = parse((await datasette.client.get("/other/-/recall")).text).all("a")
    assert [a["href"] for a in links if a.words.startswith("Recall")] == ["/-/recall"]


@pytest.mark.asyncio
async def test_an_immutable_database_is_recalled_from(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """A file served with -i gives the same answers as one that may change."""
    mutable = await get(make_datasette(path), "q=RAG+C%2B%2B&_size=max")
    assert await get(make_datasette(immutables=[str(path)]), "q=RAG+C%2B%2B&_size=max") == mutable


@pytest.mark.asyncio
async def test_a_database_in_memory_is_recalled_from(make_datasette: MakeDatasette) -> None:
    """A named database in memory with the tables is recalled from, and what is new is seen."""
    datasette = make_datasette()
    database = datasette.add_memory_database("recall_in_memory")
    address = "file:recall_in_memory?mode=memory&cache=shared"
    with closing(sqlite3.connect(address, uri=True)) as conn:
        knowledge.create_today(conn)
        fill(conn)
        assert (await get(datasette, "q=RAG", database.name))["total"] == 25
        knowledge.add_observation(conn, "more", concepts=["RAG", "new one"])
        conn.commit()
        answer = await get(datasette, "q=RAG+and+a+new+one", database.name)
    assert [(c["name"], c["total"]) for c in answer["concepts"]] == [("RAG", 26), ("new one", 1)]


@pytest.mark.asyncio
@pytest.mark.parametrize("variant", knowledge.VARIANTS)
async def test_a_database_of_any_age_is_answered(
    tmp_path: Path, make_datasette: MakeDatasette, variant: str
) -> None:
    """Page and API are good for every schema there ever was, down to a file of zero bytes."""
    file = tmp_path / "old.db"
    with closing(knowledge.create(file, variant)) as conn:
        if variant != "nothing":
            knowledge.add_observation(conn, "RAG is old", concepts=["RAG"], created_at="junk")
        conn.commit()
    datasette = make_datasette(file)
    answer = await get(datasette, "q=RAG", "old")
    page = content(await datasette.client.get("/old/-/recall?q=RAG"))
    if variant == "nothing":
        warning = "This database has no concepts table, so no text can name a concept of it."
        assert (answer["rows"], answer["warnings"]) == ([], [warning])
        assert page.one("p", "message-warning").words == warning
    else:
        (row,) = answer["rows"]
        assert (row["body"], row["created_at"]) == ("RAG is old", None)
        assert (await datasette.client.get(local(row["url"]))).status_code == 200
        assert "no date" in page.one("p", "recall-about").words


@pytest.mark.asyncio
async def test_tables_may_be_spelled_in_capitals(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """SQLite does not care, but Datasette does: links name the tables as the database does."""
    file = tmp_path / "capitals.db"
    with closing(sqlite3.connect(file)) as conn:
        conn.executescript(
            """
            create table Concepts (Id integer primary key, Name text);
            create table Observations (Id integer primary key, Body text);
            create table Observation_Concepts (Observation_Id integer, Concept_Id integer);
            insert into Concepts values (1, 'RAG');
            insert into Observations values (7, 'about RAG');
            insert into Observation_Concepts values (7, 1);
            """
        )
    datasette = make_datasette(file)
    (row,) = (await get(datasette, "q=RAG", "capitals"))["rows"]
    assert (await datasette.client.get(local(row["url"]))).status_code == 200
    for query in ("?q=RAG", ""):
        page = content(await datasette.client.get(f"/capitals/-/recall{query}"))
        for link in page.links():
            assert (await datasette.client.get(link)).status_code == 200, link


@pytest.mark.asyncio
async def test_asking_writes_nothing(tmp_path: Path, make_datasette: MakeDatasette) -> None:
    """Pages, answers and errors leave every byte of the file as it was."""
    file = build(tmp_path / "knowledge.db")
    before = file_bytes(file)
    datasette = make_datasette(file)
    for query in ("q=RAG", "concept=Nope", "q=brand+new+concept&type=record", "_size=0"):
        for address in ("recall", "recall.json"):
            await datasette.client.get(f"/knowledge/-/{address}?{query}")
    await datasette.client.post("/knowledge/-/recall.json", data={"q": "RAG " * 5000})
    assert file_bytes(file) == before

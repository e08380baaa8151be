"""What HTTP says when a recall is refused, not found, too long or too slow; CORS and methods."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest

import knowledge
from conftest import MakeDatasette, actor_cookie
from datasette_concept_recall import asking
from served import JSON, PRIVATE, assert_error, build, get


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of `served.build`."""
    return build(tmp_path_factory.mktemp("knowledge") / "knowledge.db")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("_size=0", "_size is not max or a whole number from 1 to 1000"),
        ("_size=abc", "_size is not max"),
        ("_size=1001", "_size is not max"),
        ("_shape=object", "_shape is not one of objects, array"),
        ("_next=junk", "_next is not a token"),
        ("type=gist", "type is 'gist'"),
        ("project=Nope", "There is no project named 'Nope' in this database"),
        ("project=%00%27%0A", r"There is no project named "),
    ],
)
async def test_bad_parameters_are_errors_400(
    path: Path, make_datasette: MakeDatasette, query: str, message: str
) -> None:
    """Nothing is guessed: a value that cannot be used is refused, whatever else is asked."""
    response = await make_datasette(path).client.get(f"/knowledge/-/recall.json?q=RAG&{query}")
    assert_error(response, 400, message)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("body", "headers", "message"),
    [
        (b"{", JSON, "The body is not JSON"),
        (b"[]", JSON, "The body is not a JSON object"),
        (b'{"q": false}', JSON, "q is neither a text nor a whole number nor a list of them"),
        (b'{"\\ud800": 0.5}', JSON, "? is neither a text"),
        (b"q=RAG", {"content-type": "text/csv"}, "The body is text/csv, neither"),
    ],
)
async def test_bad_bodies_are_errors_400(
    path: Path, make_datasette: MakeDatasette, body: bytes, headers: dict[str, str], message: str
) -> None:
    """A body that cannot be read says so instead of finding nothing."""
    datasette = make_datasette(path)
    response = await datasette.client.post(
        "/knowledge/-/recall.json", content=body, headers=headers
    )
    assert_error(response, 400, message)


@pytest.mark.asyncio
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_other_methods_are_405(
    path: Path, make_datasette: MakeDatasette, method: str
) -> None:
    """The error says which methods there are."""
    response = await make_datasette(path).client.request(method, "/knowledge/-/recall.json")
    assert_error(response, 405, f"{method} is not allowed here")
    assert response.headers["allow"] == "GET, HEAD, POST, OPTIONS"


@pytest.mark.asyncio
async def test_head_has_the_headers_of_get(path: Path, make_datasette: MakeDatasette) -> None:
    """A HEAD request tells whether a GET would succeed."""
    datasette = make_datasette(path)
    response = await datasette.client.head("/knowledge/-/recall.json?q=RAG&_size=1")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json; charset=utf-8"
    assert 'rel="next"' in response.headers["link"]
    response = await datasette.client.head("/knowledge/-/recall.json?_size=0")
    assert response.status_code == 400


@pytest.mark.asyncio
@pytest.mark.parametrize("cors", [True, False])
async def test_cors_headers_are_on_json_when_datasette_has_them(
    path: Path, make_datasette: MakeDatasette, cors: bool
) -> None:
    """Every answer and error of the API has them, the page never does."""
    datasette = make_datasette(path, cors=cors)
    for method, url in [
        ("GET", "/knowledge/-/recall.json?q=RAG"),
        ("GET", "/knowledge/-/recall.json?q=RAG&_shape=array&_nl=on"),
        ("OPTIONS", "/knowledge/-/recall.json"),
        ("GET", "/knowledge/-/recall.json?_size=0"),
        ("PUT", "/knowledge/-/recall.json"),
    ]:
        response = await datasette.client.request(method, url)
        allowed = response.headers.get("access-control-allow-origin")
        assert allowed == ("*" if cors else None), (method, url)
        if cors and method == "OPTIONS":
            assert response.status_code == 200
            assert "content-type" in response.headers["access-control-allow-headers"].lower()
    for method in ("GET", "OPTIONS"):
        response = await datasette.client.request(method, "/knowledge/-/recall?q=RAG")
        assert response.status_code == 200
        assert "access-control-allow-origin" not in response.headers


@pytest.mark.asyncio
async def test_an_unknown_database_is_404(path: Path, make_datasette: MakeDatasette) -> None:
    """The error names the database as it was asked for, decoded."""
    datasette = make_datasette(path)
    response = await datasette.client.get("/no~20such/-/recall.json")
    assert_error(response, 404, "Database not found: no such")
    assert (await datasette.client.get("/nope/-/recall")).status_code == 404


@pytest.mark.asyncio
@pytest.mark.parametrize("block", [PRIVATE, {"tables": {"concepts": PRIVATE}}])
async def test_a_database_or_concepts_that_are_private_are_403(
    path: Path, make_datasette: MakeDatasette, block: dict[str, Any]
) -> None:
    """Who may not view the database or its concepts is told nothing else about them."""
    datasette = make_datasette(path, config={"databases": {"knowledge": block}})
    for query in ("?q=RAG", "?_size=0", "?project=Search"):
        response = await datasette.client.get(f"/knowledge/-/recall.json{query}")
        assert_error(response, 403, "You do not have permission to recall from knowledge")
    response = await datasette.client.get("/knowledge/-/recall?q=RAG")
    assert response.status_code == 403
    assert "Note 1" not in response.text
    cookies = actor_cookie(datasette, "root")
    response = await datasette.client.get("/knowledge/-/recall.json?q=RAG", cookies=cookies)
    assert response.json()["total"] == 25


@pytest.mark.asyncio
async def test_a_recall_that_takes_too_long_is_400(
    path: Path, make_datasette: MakeDatasette, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the setting; any other failure of SQLite is not taken for it."""

    def interrupted(*_: object, **__: object) -> NoReturn:
        raise sqlite3.OperationalError("interrupted")

    def broken(*_: object, **__: object) -> NoReturn:
        raise sqlite3.OperationalError("disk I/O error")

    datasette = make_datasette(path)
    monkeypatch.setattr(asking, "recall", interrupted)
    response = await datasette.client.get("/knowledge/-/recall.json?q=RAG")
    assert_error(response, 400, "stopped by the time limit (sql_time_limit_ms)")
    response = await datasette.client.get("/knowledge/-/recall?q=RAG")
    assert response.status_code == 400
    assert "stopped by the time limit" in response.text
    monkeypatch.setattr(asking, "recall", broken)
    response = await datasette.client.get("/knowledge/-/recall.json?q=RAG")
    assert_error(response, 500, "The database cannot be read: disk I/O error")


@pytest.mark.asyncio
async def test_the_time_limit_stops_a_real_recall_and_nothing_stale_remains(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """After being stopped, even where every step is polled, the next request sees what is new."""
    file = tmp_path / "large.db"
    with closing(knowledge.create(file, wal=True)) as conn:
        knowledge.add_concept(conn, "RAG", id=1)
        conn.executemany(
            "insert into observations (id, body, uuid) values (?, 'x', ?)",
            ((n, n) for n in range(1, 30_001)),
        )
        conn.execute("insert into observation_concepts select id, 1 from observations")
        conn.commit()
        datasette = make_datasette(file, settings={"num_sql_threads": 1})
        await datasette.invoke_startup()
        datasette._settings["sql_time_limit_ms"] = 1
        response = await datasette.client.get("/large/-/recall.json?q=RAG")
        assert_error(response, 400, "stopped by the time limit (sql_time_limit_ms)")
        datasette._settings["sql_time_limit_ms"] = 10_000
        knowledge.add_concept(conn, "new")
        conn.commit()
        answer = await get(datasette, "q=RAG+new", "large")
    assert [concept["total"] for concept in answer["concepts"]] == [30_000, 0]

"""The JSON API over HTTP: its keys, its parameters, its pages, long and strange texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from conftest import MakeDatasette, actor_cookie
from served import FORM, JSON, assert_error, build, get


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of `served.build`."""
    return build(tmp_path_factory.mktemp("knowledge") / "knowledge.db")


@pytest.mark.asyncio
async def test_the_names_of_all_keys_are_what_programs_rely_on(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """These literals are the API: changing one breaks somebody's program."""
    answer = await get(make_datasette(path), "q=RAG+and+rag+in+C%2B%2B&_size=1&_next=2.1.2.0")
    assert list(answer) == [
        *("ok", "database", "concepts", "near_misses", "rows", "projects", "mode", "total"),
        *("truncated", "next", "next_url", "warnings"),
    ]
    (first, _) = answer["concepts"]
    assert list(first) == ["name", "mentions", "total"]
    (row,) = answer["rows"]
    assert list(row) == [
        *("rank", "ref", "source_type", "id", "project_id", "project", "title", "place"),
        *("excerpt", "body"),
        *(
            "match_count",
            "layers",
            "concepts",
            "created_at",
            "summary_status",
            "summary_stale",
            "status",
        ),
        *("superseded_by", "url"),
    ]


@pytest.mark.asyncio
async def test_an_answer_in_full(path: Path, make_datasette: MakeDatasette) -> None:
    """What a text finds: the concepts in code-point order, the items ranked, every field filled."""
    answer = await get(make_datasette(path), "q=RAG+and+rag+in+C%2B%2B%3F&_size=3")
    rows = answer.pop("rows")
    token, next_url = answer.pop("next"), answer.pop("next_url")
    assert answer == {
        "ok": True,
        "database": "knowledge",
        "concepts": [
            {"name": "C++", "mentions": 1, "total": 3},
            {"name": "RAG", "mentions": 2, "total": 25},
        ],
        "near_misses": [],
        "mode": "auto",
        "projects": ["Compilers"],
        "total": 25,
        "truncated": True,
        "warnings": [],
    }
    assert next_url.endswith(
        f"/knowledge/-/recall.json?q=RAG+and+rag+in+C%2B%2B%3F&_size=3&_next={token}"
    )
    assert [row["ref"] for row in rows] == ["document_section:3", "record:1", "document_gist:1"]
    assert rows[0]["created_at"] == "2026-02-03T04:05:06.500000Z"
    assert rows[1] == {
        "rank": 2,
        "ref": "record:1",
        "source_type": "record",
        "id": 1,
        "project_id": None,
        "project": None,
        "title": "Use RAG",
        "place": None,
        "excerpt": "Long ago",
        "body": "Long ago",
        "match_count": 2,
        "layers": [{"layer": "concept", "rank": 2, "words": [], "similarity": None}],
        "concepts": ["C++", "RAG"],
        "created_at": "2026-01-15T12:00:00Z",
        "summary_status": None,
        "summary_stale": None,
        "status": "accepted",
        "superseded_by": ["record:2"],
        "url": "http://localhost/knowledge/records/1",
    }
    assert (rows[2]["summary_status"], rows[2]["summary_stale"]) == ("reviewed", False)
    assert rows[2]["project"] == "Search"


@pytest.mark.asyncio
async def test_given_concepts_are_asked_for_beside_those_of_the_text(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Names come in any letter case, unknown ones are skipped, and those of the text are first."""
    datasette = make_datasette(path)
    answer = await get(
        datasette, "q=in+RAG&concept=Nope&concept=c%2B%2B&concept=rag&concept=unused"
    )
    assert answer["concepts"] == [
        {"name": "RAG", "mentions": 1, "total": 25},
        {"name": "C++", "mentions": 0, "total": 3},
        {"name": "unused", "mentions": 0, "total": 0},
    ]
    assert (await get(datasette, "concept=Nope"))["rows"] == []
    assert (await get(datasette))["total"] == 0


@pytest.mark.asyncio
async def test_narrowing_leaves_the_totals_of_concepts_alone(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Kinds and a project restrict rows and total; how many items a concept has stays the same."""
    datasette = make_datasette(path)
    narrowed = await get(datasette, "q=RAG&type=document_section&type=document_gist&project=Search")
    assert narrowed["total"] == len(narrowed["rows"]) == 3
    assert narrowed["concepts"] == [{"name": "RAG", "mentions": 1, "total": 25}]
    assert (await get(datasette, "q=RAG&type=record"))["total"] == 2
    assert (await get(datasette, "q=RAG&project=Compilers"))["rows"] == []


@pytest.mark.asyncio
@pytest.mark.parametrize("size", [1, 7, 24, 25, 26])
async def test_following_next_url_reaches_every_item_once(
    path: Path, make_datasette: MakeDatasette, size: int
) -> None:
    """Pages go on in rank order, without a gap and without an item twice, and then end."""
    datasette = make_datasette(path)
    everything = (await get(datasette, "q=RAG+C%2B%2B&_size=max"))["rows"]
    found, url = [], f"/knowledge/-/recall.json?q=RAG+C%2B%2B&_size={size}"
    while url:
        page = (await datasette.client.get(url)).json()
        assert page["truncated"] == (page["next"] is not None) == (page["next_url"] is not None)
        assert page["total"] == 25
        found += page["rows"]
        parts = urlsplit(page["next_url"] or "")
        url = f"{parts.path}?{parts.query}" if page["next_url"] else ""
    assert found == everything
    assert [row["rank"] for row in found] == list(range(1, 26))


@pytest.mark.asyncio
async def test_an_array_is_rows_only_and_its_next_page_is_in_a_header(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """`_shape=array` and `_nl=on` give what they give for a table, and keep it on the next page."""
    datasette = make_datasette(path)
    rows = (await get(datasette, "q=RAG"))["rows"]
    response = await datasette.client.get("/knowledge/-/recall.json?q=RAG&_shape=array")
    assert response.json() == rows
    response = await datasette.client.get("/knowledge/-/recall.json?q=RAG&_shape=array&_nl=on")
    assert response.headers["content-type"].startswith("text/plain")
    assert [json.loads(line) for line in response.text.split("\n")] == rows
    url, relation = response.headers["link"].split("; ")
    assert relation == 'rel="next"'
    following = await datasette.client.get(url.strip("<>").removeprefix("http://localhost"))
    assert [json.loads(line)["rank"] for line in following.text.split("\n")] == [*range(21, 26)]
    assert "link" not in following.headers


@pytest.mark.asyncio
async def test_the_largest_size_is_a_setting_of_the_instance(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """An instance that returns at most so many rows has them as maximum and as default."""
    datasette = make_datasette(path, settings={"max_returned_rows": 4})
    assert len((await get(datasette, "q=RAG"))["rows"]) == 4
    assert len((await get(datasette, "q=RAG&_size=max"))["rows"]) == 4
    assert_error(await datasette.client.get("/knowledge/-/recall.json?_size=5"), 400, "from 1 to 4")


@pytest.mark.asyncio
async def test_a_form_and_a_json_body_ask_the_same(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """A POST is answered at once as the GET is, from whichever kind of body."""
    datasette = make_datasette(path)
    url = "/knowledge/-/recall.json"
    expected = await get(datasette, "q=C%2B%2B+技术&concept=RAG&type=record&_size=1")
    form = "q=C%2B%2B+%E6%8A%80%E6%9C%AF&concept=RAG&type=record&_size=1"
    response = await datasette.client.post(url, content=form, headers=FORM)
    assert response.json() == expected
    body = json.dumps({"q": "C++ 技术", "concept": "RAG", "type": ["record"], "_size": 1})
    response = await datasette.client.post(url, content=body, headers=JSON)
    assert response.json() == expected
    cookies = actor_cookie(datasette, "root")
    response = await datasette.client.post(url, content=form, headers=FORM, cookies=cookies)
    assert response.json() == expected, "a browser with a cookie needs no token"


@pytest.mark.asyncio
@pytest.mark.parametrize("filler", ["filler words ", "技术文档 ", "\r\n\0é "])
async def test_a_long_text_is_answered_and_one_too_long_is_413(
    path: Path, make_datasette: MakeDatasette, filler: str
) -> None:
    """200 KB and nearly a megabyte are fine; a byte more than a megabyte is refused."""
    datasette = make_datasette(path, settings={"sql_time_limit_ms": 60_000})
    url = "/knowledge/-/recall.json"
    for size in (200_000, 1_000_000):
        text = filler * (size // len(filler.encode())) + "RAG"
        for body in ({"data": {"q": text}}, {"content": json.dumps({"q": text}), "headers": JSON}):
            answer = (await datasette.client.post(url, **body)).json()
            assert answer["concepts"] == [{"name": "RAG", "mentions": 1, "total": 25}]
            assert answer["truncated"]
            assert answer["next_url"] is None, "the text is too long for a link"
    response = await datasette.client.post(url, data={"q": "x" * 1_048_577})
    assert_error(response, 413, "The text is longer than 1,048,576 bytes")


@pytest.mark.asyncio
async def test_a_long_text_is_continued_by_posting_it_again(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Where the next page has no address, its token goes with the same text."""
    datasette = make_datasette(path)
    asked: dict[str, Any] = {"q": "filler " * 10_000 + "RAG", "_size": 20}
    first = (await datasette.client.post("/knowledge/-/recall.json", data=asked)).json()
    asked["_next"] = first["next"]
    second = (await datasette.client.post("/knowledge/-/recall.json", data=asked)).json()
    assert len({row["ref"] for row in first["rows"] + second["rows"]}) == 25
    assert second["next"] is None


@pytest.mark.asyncio
async def test_unusual_characters_are_no_error(path: Path, make_datasette: MakeDatasette) -> None:
    """NUL, lone surrogates, bad escapes and bad UTF-8 are part of a text like any other."""
    datasette = make_datasette(path)
    for query in ("q=%00RAG%00", "q=%zz+RAG%", "q=%ff+RAG+%ed%a0%80", "q=RAG&concept=%00&%ff=%ff"):
        assert (await get(datasette, query))["total"] == 25, query
    body = rb'{"q": "\ud800 RAG \u0000", "concept": ["\udfff"]}'
    response = await datasette.client.post("/knowledge/-/recall.json", content=body, headers=JSON)
    assert response.json()["total"] == 25


@pytest.mark.asyncio
async def test_a_name_that_is_no_concept_is_a_warning(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """A program that asks for concepts by name is told of those that are not there."""
    datasette = make_datasette(path)
    response = await datasette.client.get("/knowledge/-/recall.json?concept=RAG&concept=Nope")
    answer = response.json()
    assert answer["warnings"] == ["There is no concept named Nope."]
    assert answer["rows"]

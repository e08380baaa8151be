"""The pages of concepts, their JSON, and links to them from the cells of tables."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from datasette.utils import tilde_encode

import foreign
import hostile
import knowledge
from conftest import MakeDatasette, actor_cookie, file_bytes
from pages import content, parse
from tables import described, table

LIST = "/k/-/concepts"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A knowledge database of a few concepts and items."""
    file = tmp_path / "k.db"
    with closing(knowledge.create(file)) as conn:
        knowledge.add_concept(conn, "RAG", description="Retrieval <first>")
        knowledge.add_observation(
            conn,
            "See [[RAG]], `[[RAG]]` and [[nothing]] <b>.",
            concepts=["RAG", "chunking"],
            created_at="2026-01-01",
        )
        knowledge.add_observation(conn, "Plain", concepts=["RAG", "rag"], created_at="2026-03-01")
        knowledge.add_record(conn, "Decide", "[[chunking|Chunks]]", concepts=["chunking"])
        conn.commit()
    return file


@pytest.mark.asyncio
async def test_the_list_leads_to_every_concept(path: Path, make_datasette: MakeDatasette) -> None:
    """Each with its counts; the links of the page work."""
    datasette = make_datasette(path)
    before = file_bytes(path)
    page = content(await datasette.client.get(LIST))
    table = page.one("table", "recall-concepts")
    rows = [[cell.words for cell in row.all("td")] for row in table.all("tr")[1:]]
    assert [row[:3] for row in rows] == [
        ["chunking", "2", "Observation 1, Record 1"],
        ["RAG also ragRetrieval <first>", "2", "Observation 2"],
    ]
    for link in page.links():
        assert (await datasette.client.get(link)).status_code == 200
    assert file_bytes(path) == before


@pytest.mark.asyncio
async def test_a_concept_leads_to_its_neighbours_items_and_tables(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Pictures have names, links work, and variants are told."""
    datasette = make_datasette(path)
    page = content(await datasette.client.get(f"{LIST}/rag"))
    assert page.one("h1").words == "RAG"
    assert "One concept of 2 spellings: RAG, rag." in page.words
    for picture in page.all("svg"):
        assert picture.all("title")[0].words
        assert picture.one("desc").words
    links = page.links()
    assert f"{LIST}/chunking" in links
    assert "/k/observations?_concept=RAG" in links
    assert "/k/-/recall?concept=RAG&concept=chunking" in links
    for link in links:
        assert (await datasette.client.get(link)).status_code == 200


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("latest", "bar"),
    [
        ("2026-02-01", "one day."),
        ("2026-12-01", "one week, from Monday."),
        ("2030-12-01", "one month."),
        ("2200-12-01", "5 years."),
    ],
)
async def test_the_picture_of_use_says_what_a_bar_is(
    path: Path, make_datasette: MakeDatasette, latest: str, bar: str
) -> None:
    """The unit follows the time that is shown, so it stands below the picture."""
    with closing(sqlite3.connect(path)) as conn:
        knowledge.add_observation(conn, "Late", concepts=["chunking"], created_at=latest)
        conn.commit()
    page = content(await make_datasette(path).client.get(f"{LIST}/chunking"))
    assert f"Each bar holds the items of {bar}" in page.words


@pytest.mark.asyncio
async def test_each_kind_leads_to_the_rows_that_are_counted(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Also where rows of one table are of several kinds."""
    with closing(sqlite3.connect(path)) as conn:
        sections = [knowledge.Section("A", concepts=["RAG"]), knowledge.Section("B")]
        gist = knowledge.Section(concepts=["RAG"])
        knowledge.add_document(conn, "Book", gist=gist, sections=sections * 2)
        conn.commit()
    await assert_kinds_lead_to_what_they_count(make_datasette(path), "RAG", 3)


@pytest.mark.asyncio
async def test_each_kind_of_a_configured_table_leads_to_the_rows_that_are_counted(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Two sources may be parts of one table, or its rows by two tables of links."""
    file = foreign.django_many_to_many(tmp_path / "k.db")
    links = {"table": "blog_post", "link": "blog_post_topics", "item_key": "post_id"}
    config = described(
        "blog_topic",
        First={**links, "where": f"title = '{foreign.ONE}'"},
        Other={**links, "where": f"title <> '{foreign.ONE}'"},
    )
    await assert_kinds_lead_to_what_they_count(make_datasette(file, config=config), "jam", 2)


async def assert_kinds_lead_to_what_they_count(datasette: Any, name: str, kinds: int) -> None:
    """The links to tables on the page of a concept show so many rows as are told beside them."""
    page = content(await datasette.client.get(f"{LIST}/{name}"))
    (told,) = [p for p in page.all("p") if p.all("span", "recall-count")]
    counts = [int(count.words) for count in told.all("span", "recall-count")]
    links = [link["href"] for link in told.all("a") if link.words == "table"]
    assert len(links) == len(counts) == kinds
    for link, count in zip(links, counts, strict=True):
        address, _, query = link.partition("?")
        name, asked = address.rpartition("/")[2], parse_qs(query)
        assert len((await table(datasette, name, **asked))["rows"]) == count, link


@pytest.mark.asyncio
async def test_the_json_says_the_same(path: Path, make_datasette: MakeDatasette) -> None:
    """Its keys are a promise to programs."""
    datasette = make_datasette(path)
    answer = (await datasette.client.get(f"{LIST}.json?_size=1&_sort=recent")).json()
    assert list(answer) == ["ok", "database", "concepts", "total", "next", "next_url"]
    (entry,) = answer["concepts"]
    keys = ["name", "spellings", "description", "total", "kinds", "latest", "url"]
    assert list(entry) == keys
    assert (entry["name"], entry["total"], entry["latest"]) == ("RAG", 2, "2026-03-01T00:00:00Z")
    following = await datasette.client.get(answer["next_url"].partition("localhost")[2])
    assert [e["name"] for e in following.json()["concepts"]] == ["chunking"]
    assert following.json()["next"] is None
    one = (await datasette.client.get(f"{LIST}/RAG.json")).json()
    assert list(one) == [
        *("ok", "database", *keys[:-1], "identifiers", "projects", "newest"),
        *("neighbours", "use", "url"),
    ]
    assert one["neighbours"] == [
        {"name": "chunking", "shared": 1, "url": f"http://localhost{LIST}/chunking"}
    ]
    assert [item["ref"] for item in one["newest"]] == ["observation:2", "observation:1"]
    assert "body" not in one["newest"][0]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("address", "status", "message"),
    [
        ("/nothing", 404, "There is no concept named nothing in this database"),
        ("/" + "x" * 5_000, 404, "There is no concept named xxx"),
        ("?_sort=size", 400, "_sort is 'size', not one of count, name, recent"),
        ("?_size=0", 400, "_size is not max or a whole number from 1 to 1000"),
        ("?_next=x", 400, "_next is not a token that an earlier page gave"),
    ],
)
async def test_what_cannot_be_answered_is_said_plainly(
    path: Path, make_datasette: MakeDatasette, address: str, status: int, message: str
) -> None:
    """On the page in words, to a program in the shape of all errors."""
    datasette = make_datasette(path, settings={"max_returned_rows": 1000})
    response = await datasette.client.get(f"{LIST}{address}")
    assert response.status_code == status
    before, mark, after = address.partition("?")
    response = await datasette.client.get(f"{LIST}{before}.json{mark}{after}")
    assert response.status_code == status
    assert response.json()["error"].startswith(message)
    assert set(response.json()) == {"ok", "error", "errors", "status"}


@pytest.mark.asyncio
@pytest.mark.parametrize("name", [n for n in hostile.NAMES if n.strip() and len(n) < 1000])
async def test_every_name_has_a_page_of_its_own(
    tmp_path: Path, make_datasette: MakeDatasette, name: str
) -> None:
    """Also names that look like an address, like a format or like markup."""
    file = tmp_path / "k.db"
    with closing(knowledge.create(file)) as conn:
        for each in (name, name + ".json", "other"):
            knowledge.add_concept(conn, each)
        knowledge.add_observation(conn, "x", concepts=[name, "other"])
        conn.commit()
    datasette = make_datasette(file)
    for each in (name, name + ".json"):
        response = await datasette.client.get(f"{LIST}/{tilde_encode(each)}.json")
        assert response.status_code == 200
        assert response.json()["name"].split() == each.split()
    response = await datasette.client.get(f"{LIST}/{tilde_encode(name)}")
    assert response.status_code == 200
    assert "<script>alert" not in response.text


@pytest.mark.asyncio
@pytest.mark.parametrize("address", ["", ".json", "/RAG", "/RAG.json"])
async def test_pages_of_concepts_are_only_read(
    path: Path, make_datasette: MakeDatasette, address: str
) -> None:
    """Another method is refused, and the answer says which are not."""
    datasette = make_datasette(path)
    response = await datasette.client.delete(f"{LIST}{address}")
    assert response.status_code == 405
    assert response.headers["allow"] == "GET, HEAD, OPTIONS"
    assert (await datasette.client.head(f"{LIST}{address}")).status_code == 200


@pytest.mark.asyncio
async def test_a_name_too_long_for_a_link_has_a_page_without_such_links(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Neither to its JSON, nor to a recall of it, nor to its rows."""
    file, name = tmp_path / "k.db", "w" * 5_000
    with closing(knowledge.create(file)) as conn:
        knowledge.add_observation(conn, "x", concepts=[name])
        conn.commit()
    page = content(await make_datasette(file).client.get(f"{LIST}/{name}"))
    assert all(len(link) < 5_000 and not link.startswith(".") for link in page.links())


# --- permissions ---------------------------------------------------------------------------------


def private(*tables: str) -> dict[str, Any]:
    """Configuration by which only root may view some tables."""
    blocks = {table: {"allow": {"id": "root"}} for table in tables}
    return {"databases": {"k": {"tables": blocks}}}


@pytest.mark.asyncio
@pytest.mark.parametrize("extension", ["", ".json"])
async def test_private_concepts_have_no_pages(
    path: Path, make_datasette: MakeDatasette, extension: str
) -> None:
    """Whether or not there is one of the name that is asked for."""
    datasette = make_datasette(path, config=private("concepts"))
    answers = set()
    for address in ("", "/RAG", "/nothing"):
        response = await datasette.client.get(f"{LIST}{address}{extension}")
        answers.add((response.status_code, response.text))
    assert len(answers) == 1
    assert answers.pop()[0] == 403
    cookies = actor_cookie(datasette, "root")
    response = await datasette.client.get(f"{LIST}/RAG{extension}", cookies=cookies)
    assert response.status_code == 200


@pytest.mark.asyncio
@pytest.mark.parametrize("table", ["observations", "observation_concepts"])
async def test_private_items_are_not_counted(
    path: Path, make_datasette: MakeDatasette, table: str
) -> None:
    """Neither in the list nor around a concept."""
    datasette = make_datasette(path, config=private(table))
    listed = (await datasette.client.get(f"{LIST}.json")).json()["concepts"]
    assert {entry["name"]: entry["total"] for entry in listed} == {"chunking": 1, "RAG": 0}
    one = (await datasette.client.get(f"{LIST}/RAG.json")).json()
    assert (one["total"], one["newest"], one["neighbours"]) == (0, [], [])
    assert one["use"]["periods"] == []


# --- cells ---------------------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize("base_url", ["/", "/prefix/"])
async def test_names_in_brackets_are_links_in_cells(
    path: Path, make_datasette: MakeDatasette, base_url: str
) -> None:
    """Of concepts that there are, outside of code; the rest of the text stays text."""
    datasette = make_datasette(path, settings={"base_url": base_url})
    for address in ("/k/observations", "/k/observations/1"):
        page = parse((await datasette.client.get(address)).text)
        (cell,) = [td for td in page.all("td", "col-body") if "[[" in td.text]
        (link,) = cell.all("a")
        assert (link.text, link["href"]) == ("RAG", f"{base_url}k/-/concepts/RAG")
        assert cell.text.strip() == "See [[RAG]], `[[RAG]]` and [[nothing]] <b>."
    page = parse((await datasette.client.get("/k/records")).text)
    (cell,) = page.all("td", "col-body")
    assert cell.one("a")["href"] == f"{base_url}k/-/concepts/chunking"


@pytest.mark.asyncio
async def test_cells_do_not_tell_of_private_concepts(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """A link would tell that there is a concept of the name; so there is none for anybody."""
    datasette = make_datasette(path, config=private("concepts"))
    for cookies in ({}, actor_cookie(datasette, "root")):
        response = await datasette.client.get("/k/observations", cookies=cookies)
        assert response.status_code == 200
        assert "-/concepts/RAG" not in response.text

"""The page where nothing is found, something is wrong, or somebody may not look; and its menus."""

from __future__ import annotations

from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import knowledge
from conftest import MakeDatasette, actor_cookie
from datasette_concept_recall import search
from pages import Element, content, parse
from served import PRIVATE, build

PAGE = "/knowledge/-/recall"
PREFIX = "/pre/fix/"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of `served.build`."""
    return build(tmp_path_factory.mktemp("knowledge") / "knowledge.db")


def message(page: Element) -> str:
    """What the page says in place of results."""
    return page.one("p", "zero-results").words


@pytest.mark.asyncio
async def test_without_a_question_the_page_says_what_it_does(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """The bare page is a form and an explanation, with no results and no error."""
    datasette = make_datasette(path)
    for query in ("", "q=", "q=+%0A", "type=record", "project=Search"):
        page = content(await datasette.client.get(f"{PAGE}?{query}"))
        assert page.one("p", "recall-intro").words.startswith("Type a sentence")
        assert page.one("p", "recall-intro").links() == ["/knowledge/-/concepts"]
        assert not page.all("h2")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            "q=nothing+of+it",
            "Nothing was found by words or meaning."
            " No concept of this database stands in “nothing of it” as a whole word. All concepts",
        ),
        ("concept=Nope&concept=Nil", "There is no concept named Nope, Nil. All concepts"),
        (
            "q=<qq>&concept=<i>",
            "Nothing was found by words or meaning."
            " No concept of this database stands in “<qq>” as a whole word."
            " There is no concept named <i>. All concepts",
        ),
        ("concept=unused", "Nothing that you may see is tagged with unused."),
        (
            "q=RAG&project=Compilers&type=record",
            "Nothing tagged with RAG is of the kind and project chosen."
            " Show every kind and project",
        ),
        (
            "q=RAG&_next=1.0.2.999",
            "There are no items after those of the page before. First page",
        ),
    ],
)
async def test_an_empty_page_says_what_was_looked_for(
    path: Path, make_datasette: MakeDatasette, query: str, said: str
) -> None:
    """Each reason for finding nothing has its own sentence and, where there is one, a way on."""
    datasette = make_datasette(path)
    page = content(await datasette.client.get(f"{PAGE}?{query}"))
    assert message(page) == said
    assert not page.all("ol", "recall-items")
    for link in page.one("p", "zero-results").links():
        assert (await datasette.client.get(link)).status_code == 200
        if "Show every" in said or "First page" in said:
            wider = content(await datasette.client.get(link))
            assert len(wider.all("h3", "recall-title")) == 20


@pytest.mark.asyncio
async def test_an_unknown_name_is_told_beside_what_is_found(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """A name that does not exist does not pass in silence because another one does."""
    page = content(await make_datasette(path).client.get(f"{PAGE}?q=RAG&concept=Nope"))
    assert "There is no concept named Nope." in page.words
    assert page.one("ol", "recall-items")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("query", "error", "kept"),
    [
        ("q=RAG&project=Nope", "There is no project named 'Nope' in this database", True),
        ("q=RAG&_next=junk", "_next is not a token that an earlier page gave", True),
        ("q=RAG&_size=0", "_size is not max or a whole number from 1 to 1000", False),
        ("q=RAG&type=<b>", "type is '<b>', not one of observation,", True),
    ],
)
async def test_an_error_keeps_the_form(
    path: Path, make_datasette: MakeDatasette, query: str, error: str, kept: bool
) -> None:
    """The page of an error says what is wrong, and the form on it works again."""
    datasette = make_datasette(path)
    response = await datasette.client.get(f"{PAGE}?{query}")
    assert response.status_code == 400
    page = parse(response.text).one("section", "content")
    assert page.one("p", "message-error", role="alert").words.startswith(error)
    form = page.one("form", "recall-form")
    assert form["action"] == PAGE
    assert form.one("textarea").text == ("\nRAG" if kept else "\n")
    assert not form.all("input", name="project"), "what is wrong is not asked again"
    assert not form.all("input", name="type")


@pytest.mark.asyncio
async def test_errors_of_the_method_and_the_length_have_a_page(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """A text of more than a megabyte is 413, another method 405, both with the form."""
    datasette = make_datasette(path)
    long = await datasette.client.post(PAGE, data={"q": "x" * 1_048_577})
    other = await datasette.client.put(PAGE)
    assert (long.status_code, other.status_code) == (413, 405)
    assert other.headers["allow"] == "GET, HEAD, POST, OPTIONS"
    for response in (long, other):
        page = parse(response.text)
        assert page.one("form", "recall-form")
        assert page.one("p", "message-error")
    strange = await datasette.client.post(
        PAGE, content=rb'{"\ud800": 1.5}', headers={"content-type": "application/json"}
    )
    assert strange.status_code == 400
    head = await datasette.client.head(f"{PAGE}?q=RAG")
    assert (head.status_code, head.headers["content-type"]) == (200, "text/html; charset=utf-8")


@pytest.mark.asyncio
async def test_every_address_has_the_base_url(path: Path, make_datasette: MakeDatasette) -> None:
    """Behind a proxy that serves Datasette below a path, no link and no redirect leaves it."""
    datasette = make_datasette(path, settings={"base_url": PREFIX})
    inner = "/knowledge/-/recall"
    for query in ("?q=RAG&_size=2&type=record", "?q=nothing", "?concept=unused", "", "?_size=0"):
        root = parse((await datasette.client.get(f"{inner}{query}")).text)
        links = [link for link in root.links() if "://" not in link]
        assert PREFIX.rstrip("/") + inner in links
        for link in links:
            assert link.startswith(PREFIX), link
            assert link.count(PREFIX) == 1, link
            followed = await datasette.client.get(link.removeprefix(PREFIX.rstrip("/")))
            assert followed.status_code == 200 or "_size=0" in link, link
    posted = await datasette.client.post(inner, data={"q": "RAG"})
    assert posted.headers["location"] == f"{PREFIX}knowledge/-/recall?q=RAG"
    answer = (await datasette.client.get(f"{inner}.json?q=RAG&_size=1")).json()
    assert answer["next_url"].startswith(f"http://localhost{PREFIX}knowledge/-/recall.json?q=RAG")
    (row,) = answer["rows"]
    assert row["url"] == f"http://localhost{PREFIX}knowledge/document_sections/3"


@pytest.mark.asyncio
async def test_the_canned_query_is_linked_where_it_answers_the_same(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """By text, or by names when some are given; never where the page is narrowed."""
    datasette = make_datasette(path)
    for query, name in [
        ("q=RAG+C%2B%2B", "concept_recall_by_text"),
        ("q=RAG&concept=C%2B%2B", "concept_recall_by_names"),
        ("concept=C%2B%2B", "concept_recall_by_names"),
        ("q=RAG&type=record", ""),
        ("q=RAG&project=Search", ""),
    ]:
        page = content(await datasette.client.get(f"{PAGE}?{query}"))
        links = {a.words: a["href"] for a in page.one("p", "export-links").all("a")}
        assert bool(name) == ("SQL query" in links), query
        if name:
            assert links["SQL query"].startswith(f"/knowledge/{name}?")
            response = await datasette.client.get(links["SQL query"])
            assert response.status_code == 200
            assert len(parse(response.text).one("table", "rows-and-columns").all("tr")) > 3


@pytest.mark.asyncio
async def test_head_of_the_page(path: Path, make_datasette: MakeDatasette) -> None:
    """The title says what is looked for, the stylesheet is on no other page, JSON is announced."""
    datasette = make_datasette(path)
    head = parse((await datasette.client.get(f"{PAGE}?q=RAG+%3Cb%3E")).text).one("head")
    assert head.all("title")[0].words == "Recall in knowledge: RAG <b>"
    styles = [link["href"] for link in head.all("link", rel="stylesheet")]
    assert "/-/static-plugins/datasette-concept-recall/concept-recall.css" in styles
    for style in styles:
        assert (await datasette.client.get(style)).status_code == 200
    (alternate,) = head.all("link", rel="alternate")
    assert (await datasette.client.get(alternate["href"])).json()["total"] == 25
    for other in ("/", "/knowledge", "/knowledge/observations"):
        assert "concept-recall.css" not in (await datasette.client.get(other)).text


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "block",
    [
        {"databases": {"knowledge": PRIVATE}},
        {"databases": {"knowledge": {"tables": {"concepts": PRIVATE}}}},
        PRIVATE,
    ],
)
async def test_menus_lead_to_recall_only_who_may_use_it(
    path: Path, tmp_path: Path, make_datasette: MakeDatasette, block: dict[str, Any]
) -> None:
    """Menu and database actions have the entry for root, and no trace of it for anybody else."""
    knowledge.create(tmp_path / "plain.db", "nothing").close()
    datasette = make_datasette(path, tmp_path / "plain.db", config=deepcopy(block))
    root = actor_cookie(datasette, "root")
    for address in ("/", "/knowledge", "/plain"):
        anonymous = await datasette.client.get(address)
        assert "/-/recall" not in anonymous.text
        page = parse((await datasette.client.get(address, cookies=root)).text)
        entries = [a for a in page.all("a") if a["href"].endswith("/-/recall")]
        expected = ["Recall by concept"] * (address == "/knowledge")
        assert {a["href"] for a in entries} == {PAGE}
        named = [a.words for a in entries if a.words.startswith("Recall by concept")]
        assert [words[:17] for words in named] == expected
        assert "Recall" in [a.words for a in entries]


@pytest.mark.asyncio
async def test_databases_without_knowledge_are_not_in_the_menus(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """An instance of other people's databases looks as if the plugin were not there."""
    file = tmp_path / "plain.db"
    with closing(knowledge.create(file, "nothing")) as conn:
        conn.execute("create table concepts (title text)")
        conn.execute("create table observations (id integer primary key, body text)")
    datasette = make_datasette(file, memory=True)
    for address in ("/", "/plain", "/plain/concepts", "/_memory"):
        assert "recall" not in (await datasette.client.get(address)).text.lower()


@pytest.mark.asyncio
async def test_a_private_page_is_refused_by_datasette_itself(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Forbidden and not found are Datasette's own pages, on which a login plugin may act."""
    datasette = make_datasette(path, config={"databases": {"knowledge": PRIVATE}})
    refused = await datasette.client.get(f"{PAGE}?{urlencode({'q': 'RAG'})}")
    assert refused.status_code == 403
    assert "Note 1" not in refused.text
    posted = await datasette.client.post(PAGE, data={"q": "RAG"})
    assert posted.status_code == 403
    missing = await datasette.client.get("/nope/-/recall")
    assert missing.status_code == 404
    assert "Database not found: nope" in missing.text


@pytest.mark.asyncio
async def test_a_slow_recall_says_what_would_help_and_still_shows_its_items(
    path: Path, make_datasette: MakeDatasette, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Page and JSON name the command that makes a large database fast, beside the results."""
    monkeypatch.setattr(search, "_SLOW_SECONDS", -1.0)
    datasette = make_datasette(path)
    page = content(await datasette.client.get(f"{PAGE}?q=RAG"))
    assert page.one("p", "message-warning").words == search.SLOW
    assert page.one("ol", "recall-items")
    answer = (await datasette.client.get(f"{PAGE}.json?q=RAG")).json()
    assert answer["warnings"] == [search.SLOW]
    assert answer["rows"]

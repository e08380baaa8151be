"""The page as a browser without JavaScript gets it: what it says, escapes, and leads to."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from datasette.app import Datasette

import knowledge
from conftest import MakeDatasette, actor_cookie
from pages import Element, content
from served import build, get

PAGE = "/knowledge/-/recall"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of `served.build`."""
    return build(tmp_path_factory.mktemp("knowledge") / "knowledge.db")


async def show(datasette: Datasette, query: str) -> Element:
    """The page for a query string."""
    return content(await datasette.client.get(f"{PAGE}?{query}"))


def total(page: Element) -> int:
    """How many items the page says that there are."""
    headings = [h.words for h in page.all("h2") if "item" in h.words]
    numbers = re.findall(r"[\d,]+", headings[-1])
    return int(numbers[-1].replace(",", "")) if numbers else 0


def count(element: Element) -> int:
    """The number that stands beside a chip or a value to narrow by."""
    (number,) = re.findall(r"^[\d,]+", element.one("span", "recall-count").words)
    return int(number.replace(",", ""))


def refs(page: Element) -> list[str]:
    """The links of the items, in order."""
    return [title.one("a")["href"] for title in page.all("h3", "recall-title")]


def chips(page: Element) -> dict[str, Element]:
    """The chips of the concepts found, by name."""
    lists = [ul for ul in page.all("ul", "recall-chips") if "recall-chips-small" not in ul["class"]]
    return {chip.all("a")[0].text: chip for ul in lists for chip in ul.all("li")}


def submitted(page: Element, button: Element | None = None) -> dict[str, list[str]]:
    """What a browser posts when the form is sent as it is, by its own or another button."""
    form = page.one("form", "recall-form")
    fields = [(area["name"], area.text.removeprefix("\n")) for area in form.all("textarea")]
    fields += [(i["name"], i["value"]) for i in form.all("input", type="checkbox")]
    fields += [(i["name"], i["value"]) for i in form.all("input", type="hidden")]
    if button is not None:
        assert button["form"] == form["id"]
        fields.append((button["name"], button["value"]))
    posted: dict[str, list[str]] = {}
    for name, value in fields:
        posted.setdefault(name, []).append(value)
    return posted


async def every_page(datasette: Datasette, page: Element) -> list[str]:
    """The items of this page and of all that follow, by its links or by its buttons."""
    found = refs(page)
    while page.all("p", "recall-next"):
        (step,) = page.one("p", "recall-next").all("a") + page.one("p", "recall-next").all("button")
        if step.tag == "a":
            page = content(await datasette.client.get(step["href"]))
        else:
            page = content(await datasette.client.post(PAGE, data=submitted(page, step)))
        assert page.one("ol", "recall-items")["start"] == str(len(found) + 1)
        found += refs(page)
    return found


@pytest.mark.asyncio
async def test_a_text_shows_its_concepts_and_what_is_tagged_with_them(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Chips with counts, the text with its mentions marked, and the items in rank order."""
    datasette = make_datasette(path)
    page = await show(datasette, "q=RAG+and+rag+in+C%2B%2B")
    assert {name: chip.words for name, chip in chips(page).items()} == {
        "C++": "C++ 3 items",
        "RAG": "RAG 25 items, named 2 times",
    }
    echo = page.one("div", "recall-echo")
    assert echo.text == "RAG and rag in C++"
    assert [(m.text, m["title"]) for m in echo.all("mark")] == [
        ("RAG", "RAG"),
        ("rag", "RAG"),
        ("C++", "C++"),
    ]
    assert page.one("textarea").text == "\nRAG and rag in C++"
    answer = await get(datasette, "q=RAG+and+rag+in+C%2B%2B")
    assert refs(page) == [urlsplit(row["url"]).path for row in answer["rows"]]
    assert total(page) == answer["total"] == 25
    assert page.one("ol", "recall-items")["start"] == "1"


@pytest.mark.asyncio
async def test_an_item_shows_what_must_not_be_overlooked(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Kind, project, date, concepts, and badges for what is superseded, rejected or unreviewed."""
    page = await show(make_datasette(path), "q=RAG+C%2B%2B&_size=max")
    items = {
        refs(item)[0]: item
        for item in page.one("ol", "recall-items").children
        if not isinstance(item, str)
    }
    badges = {
        ref: [b.words for b in item.all("span", "recall-badge")] for ref, item in items.items()
    }
    assert badges["/knowledge/records/1"] == ["superseded"]
    assert badges["/knowledge/records/2"] == ["rejected"]
    assert badges["/knowledge/document_sections/1"] == []
    assert badges["/knowledge/document_sections/2"] == [
        "unsummarized, not reviewed",
        "summary out of date",
    ]
    assert badges["/knowledge/observations/1"] == []
    old = items["/knowledge/records/1"]
    about = old.one("p", "recall-about")
    assert about.words == "Record · 2026-01-15 · accepted · superseded by record:2"
    assert about.links() == ["/knowledge/records/2"]
    assert [chip.words for chip in old.all("li", "recall-chip")] == ["C++", "RAG"]
    gist = items["/knowledge/document_sections/1"]
    assert gist.one("p", "recall-about").words == "Document · Search · 2026-01-15"
    assert [mark.words for mark in gist.one("p", "recall-excerpt").all("mark")] == ["RAG", "C++"]
    assert "unseen" not in page.text, "a summary that nobody reviewed is not shown"


HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "' onmouseover='alert(1)",
    "</textarea></title></style><b>bold</b>",
    "{{ 7 * 7 }} {% raw %}",
    "&lt;b&gt; &amp;amp; &#60;",
    "javascript:alert(1)//",
    "\u202eright to left\u202c שלום",
    "🦉 \u0007 \u200b e\u0301",
    "line\nbreak\r\nand\ttab",
    "x\0y",
]


@pytest.mark.asyncio
@pytest.mark.parametrize("hostile", [*HOSTILE, "long name " * 1000])
async def test_everything_from_the_database_is_escaped(
    tmp_path: Path, make_datasette: MakeDatasette, hostile: str
) -> None:
    """Names, titles, bodies, projects and kinds are text, whatever characters they have."""
    file = tmp_path / "knowledge.db"
    with closing(knowledge.create(file)) as conn:
        shared: dict[str, Any] = {"concepts": ["RAG", hostile], "project": hostile}
        knowledge.add_observation(conn, hostile + " RAG", **shared)
        old = knowledge.add_record(conn, hostile, hostile, status=hostile, **shared)
        knowledge.supersede_record(conn, knowledge.add_record(conn, "new", **shared), old)
        section = knowledge.Section(hostile, summary=hostile, status=hostile, concepts=["RAG"])
        knowledge.add_document(conn, hostile, sections=[section], project=hostile)
        conn.commit()
    datasette = make_datasette(file)
    asked = {"q": f"RAG {hostile}", "concept": hostile, "project": hostile}
    for query in (asked, {**asked, "type": "record"}, {"q": hostile * 9}, {"concept": hostile}):
        response = await datasette.client.post(f"{PAGE}?", data=query)
        if response.status_code == 303:
            response = await datasette.client.get(response.headers["location"])
        page = content(response)
        tags = {element.tag for element in page}
        assert not tags & {"script", "img", "style", "b", "title"}, tags
        names = {name for element in page for name in element.attributes}
        assert not [name for name in names if name.startswith("on")]
        assert all(link.startswith("/") for link in page.links())
        assert page.one("textarea").text == "\n" + query.get("q", "")
        assert "49" not in page.text
        assert len(hostile) > 1000 or " ".join(hostile.split()) in page.words
    (concept,) = (await get(datasette, urlencode({"concept": hostile})))["concepts"]
    assert concept["name"] == hostile


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "query",
    [
        "q=RAG+C%2B%2B&_size=2",
        "q=RAG&type=record",
        "q=RAG&type=record&type=observation&_size=1",
        "q=RAG&project=Search&_size=1",
        "q=RAG+C%2B%2B&project=Search&type=document_section&_size=1",
        "concept=RAG&concept=C%2B%2B&project=Compilers",
        "q=RAG&_size=2&_next=1.63904075200000000.0.4",
    ],
)
async def test_every_link_of_the_page_leads_where_it_says(
    path: Path, make_datasette: MakeDatasette, query: str
) -> None:
    """The number beside a concept, a kind or a project is that of the page behind its link."""
    datasette = make_datasette(path)
    page = await show(datasette, query)
    for name, chip in chips(page).items():
        concept = content(await datasette.client.get(chip.all("a")[0]["href"]))
        assert concept.one("h1").words == name
        (all_items,) = [
            link
            for link in concept.all("a")
            if link.words.endswith((" item", " items")) and not link.words.startswith("All")
        ]
        assert int(all_items.words.split()[0]) == count(chip), name
        assert total(content(await datasette.client.get(all_items["href"]))) == count(chip)
    for value in page.one("div", "recall-narrowing").all("li"):
        for link in value.all("a"):
            linked = content(await datasette.client.get(link["href"]))
            if link["class"] != "cross" and "type=" not in query:
                assert total(linked) == count(value), value.words
    for link in page.links():
        assert (await datasette.client.get(link)).status_code == 200, link


@pytest.mark.asyncio
async def test_kinds_add_up(path: Path, make_datasette: MakeDatasette) -> None:
    """A second kind widens the results by its count, and a chosen kind can be given up."""
    datasette = make_datasette(path)
    page = await show(datasette, "q=RAG&type=record")
    assert total(page) == 2
    values = {value.words: value for value in page.one("ul", aria_label="Kind").all("li")}
    assert list(values) == ["Observation 20", "Record 2 ✖", "Document 1", "Section 2"]
    wider = content(await datasette.client.get(values["Section 2"].links()[0]))
    assert total(wider) == 4
    all_kinds = content(await datasette.client.get(values["Record 2 ✖"].links()[0]))
    assert total(all_kinds) == 25


@pytest.mark.asyncio
@pytest.mark.parametrize("size", [4, 20, 25])
async def test_next_page_links_reach_every_item_once(
    path: Path, make_datasette: MakeDatasette, size: int
) -> None:
    """Nothing is skipped and nothing comes twice, and the last page has no next one."""
    datasette = make_datasette(path)
    everything = refs(await show(datasette, "q=RAG+C%2B%2B&_size=max"))
    assert len(set(everything)) == 25
    page = await show(datasette, f"q=RAG+C%2B%2B&_size={size}")
    assert await every_page(datasette, page) == everything


@pytest.mark.asyncio
async def test_a_short_text_is_posted_and_then_has_an_address(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Sending the form redirects to the GET address, so that it can be bookmarked and reloaded."""
    datasette = make_datasette(path)
    asked = {"q": "RAG 技术 & C++", "concept": "unused", "type": "record", "_size": "7"}
    for cookies in ({}, actor_cookie(datasette, "root")):
        response = await datasette.client.post(PAGE, data=asked, cookies=cookies)
        assert response.status_code == 303
        address = urlsplit(response.headers["location"])
        assert address.path == PAGE
        assert dict(parse_qsl(address.query)) == asked
    response = await datasette.client.post(PAGE, data={"q": ""})
    assert (response.status_code, response.headers["location"]) == (303, PAGE)


@pytest.mark.asyncio
async def test_a_long_text_is_answered_at_once_and_its_links_carry_its_concepts(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """All items are reached, counted and narrowed without the text in an address."""
    datasette = make_datasette(path)
    text = "filler words " * 15_000 + "RAG, then 技术 and C++ " + "more words " * 1000
    response = await datasette.client.post(PAGE, data={"q": text, "concept": "unused"})
    page = content(response)
    assert page.one("textarea").text == "\n" + text
    assert [m.text for m in page.one("div", "recall-echo").all("mark")] == ["RAG", "C++"]
    assert len(page.one("div", "recall-echo").text) < 1000
    assert all(len(link) < 200 for link in page.links())
    assert len(set(await every_page(datasette, page))) == 25
    for value in page.one("ul", aria_label="Kind").all("li"):
        assert total(content(await datasette.client.get(value.links()[0]))) == count(value)
    (without,) = chips(page)["unused"].all("a", "cross")
    assert list(chips(content(await datasette.client.get(without["href"])))) == ["C++", "RAG"]
    json_link = page.one("p", "export-links").links()[0]
    assert (await datasette.client.get(json_link)).json()["total"] == 25


@pytest.mark.asyncio
async def test_more_concepts_than_a_link_can_carry_are_sent_by_the_form(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Where even the concepts are too many for an address, buttons do what links do."""
    file = tmp_path / "knowledge.db"
    names = [f"concept number {n} of very many" for n in range(300)]
    with closing(knowledge.create(file)) as conn:
        for number, name in enumerate(names):
            kind = knowledge.add_record if number % 3 else knowledge.add_observation
            kind(conn, f"Item {number}", concepts=[name])
        conn.commit()
    datasette = make_datasette(file)
    page = content(await datasette.client.post(PAGE, data={"q": "\n".join(names), "_size": 100}))
    assert len(chips(page)) == total(page) == 300
    assert len(set(await every_page(datasette, page))) == 300
    for button in page.one("div", "recall-narrowing").all("button"):
        posted = await datasette.client.post(PAGE, data=submitted(page, button))
        assert total(content(posted)) in (100, 200)
    assert len(page.one("div", "recall-narrowing").all("button")) == 2


@pytest.mark.asyncio
async def test_only_given_concepts_can_be_taken_away(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """A cross stands beside what the text does not name, in whatever letter case it was given."""
    datasette = make_datasette(path)
    found = chips(await show(datasette, "q=in+RAG&concept=c%2B%2B&concept=rag&concept=C%2B%2B"))
    assert found["RAG"].all("a", "cross") == []
    (without,) = found["C++"].all("a", "cross")
    assert without["aria-label"] == "Without C++"
    assert list(chips(content(await datasette.client.get(without["href"])))) == ["RAG"]


@pytest.mark.asyncio
async def test_the_form_keeps_what_the_page_is_narrowed_to(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Sending the form unchanged asks the same again, except for names that do not exist."""
    query = "q=RAG&concept=C%2B%2B&concept=Nope&type=record&type=observation&project=Search&_size=3"
    page = await show(make_datasette(path), query)
    assert submitted(page) == {
        "q": ["RAG"],
        "concept": ["C++"],
        "type": ["record", "observation"],
        "project": ["Search"],
        "_size": ["3"],
    }


@pytest.mark.asyncio
async def test_the_text_comes_back_as_it_was_typed(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """The box holds the text with its line breaks, also at its beginning."""
    datasette = make_datasette(path)
    for text in ("\n\nRAG\n", "  RAG ", "</textarea>RAG", "RAG &amp; <b>"):
        page = await show(datasette, urlencode({"q": text}))
        assert page.one("textarea").text == "\n" + text
        assert page.one("div", "recall-echo").text == text

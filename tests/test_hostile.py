"""Hostile names are walked through every page and link, and the walk finds what it should find."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

import hostile
import walking
from conftest import MakeDatasette, file_bytes
from hostile import NAMES, SCRIPT, VALUE
from walking import Walk

REACHED = {
    ("/hostile/-/recall", "concept"),
    ("/hostile/-/recall.json", "concept"),
    ("/hostile/-/recall", "_next", "q"),
    ("/hostile/-/recall", "concept", "project"),
    ("/hostile/-/recall", "concept", "type"),
    ("/hostile/concept_recall_by_names", "limit", "names"),
    ("/hostile/concept_recall_by_text", "limit", "text"),
    ("/hostile/observations/*",),
    ("/hostile/records/*",),
    ("/hostile/document_sections/*",),
    ("/hostile/-/concepts",),
    ("/hostile/-/concepts", "_sort"),
    ("/hostile/-/concepts.json",),
    ("/hostile/-/concepts/*",),
    ("/hostile/-/concepts/*.json",),
    ("/hostile/records", "_concept"),
}
"""Shapes of addresses that nobody starts from."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of `hostile.build`."""
    return hostile.build(tmp_path_factory.mktemp("hostile") / "hostile.db")


@pytest.mark.slow
@pytest.mark.asyncio
async def test_hostile_names_get_through_every_page_and_link(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Whatever names say, links lead somewhere, answers can be read, and markup stays text."""
    before = file_bytes(path)
    walk = await walking.walk(make_datasette(path), hostile.starts("hostile"))
    assert REACHED - walk.shapes() == set()
    assert set(walk.seen.values()) <= {200, 302, 303}
    assert file_bytes(path) == before


@pytest.mark.slow
@pytest.mark.asyncio
async def test_every_address_is_below_the_base_url(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Behind a prefix every link of every page has it, and leads to a page that is there."""
    datasette = make_datasette(path, settings={"base_url": "/pre/fix/"})
    walk = await walking.walk(datasette, hostile.starts("hostile", NAMES[:3]), most=100)
    assert REACHED - walk.shapes() == set()


def test_no_two_hostile_names_are_the_same_concept() -> None:
    """Every name of the list is one more case."""
    assert len(set(NAMES)) == len(NAMES)


# --- the walk itself -----------------------------------------------------------------------------


@dataclass
class Answer:
    """What a made-up site answers; by default a good page."""

    text: str
    status_code: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/html"})


def page(content: str) -> Answer:
    return Answer(f'<html><section class="content">{content}</section></html>')


def link(address: str) -> Answer:
    return page(f'<a href="{address}">there</a>')


def of_kind(kind: str, text: str) -> Answer:
    return Answer(text, headers={"content-type": kind})


MISSING = Answer("missing", 404, {})


START = "/db/-/recall"


async def walk_site(site: dict[str, Answer], base_url: str = "/") -> Walk:
    """Walks from START through a made-up site."""

    async def get(address: str) -> Answer:
        return site.get(address, MISSING)

    walk = Walk(get, base_url)
    await walk.along([START])
    return walk


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("start", "problem"),
    [
        (Answer("", 500, {}), "recall: status 500"),
        (link("there"), "/db/-/there: status 404"),
        (link("/db/table"), "table: status 404"),
        (page('<img src="there">'), "there: status 404"),
        (page('<svg><a xlink:href="there"></a></svg>'), "there: status 404"),
        (page('<form action="there"></form>'), "there: status 404"),
        (Answer("", 303, {"location": "there"}), "there: status 404"),
        (of_kind("application/json", '[{"next_url": "/db/there"}]'), "there: status 404"),
        (of_kind("application/json", '{"a": 1'), "recall: cannot be read"),
        (of_kind("text/csv", "a,b\r\n1,2,3\r\n"), r"recall: cannot be read: rows of \[2, 3\]"),
        (of_kind("text/csv", 'a\r\n"b"c\r\n'), "recall: cannot be read"),
        (page("<b>"), "recall: cannot be read: <b> is closed by </section>"),
        (page(SCRIPT), "recall: <script>.* came through"),
        (page(VALUE), f"recall: {VALUE} came through"),
        (page('<p onclick=""></p>'), "recall: <p> has a handler"),
        (link("javascript:alert(1)"), "recall: leads to javascript"),
        (link("//elsewhere.example/x"), "recall: leads to //elsewhere"),
    ],
)
async def test_a_walk_finds_what_is_wrong(start: Answer, problem: str) -> None:
    """Each thing that no page may do ends the walk with the address and what is wrong there."""
    with pytest.raises(AssertionError, match=problem):
        await walk_site({START: start})


@pytest.mark.asyncio
@pytest.mark.parametrize("address", ["/db/-/recall", "http://localhost/db", "../../../db"])
async def test_a_walk_finds_links_that_lost_the_base_url(address: str) -> None:
    """A link of ours that leads out of the prefix is reported, however it is written."""
    with pytest.raises(AssertionError, match="is not below /prefix/"):
        await walk_site({f"/prefix{START}": link(address)}, "/prefix/")


@pytest.mark.asyncio
async def test_a_walk_takes_every_link_of_our_pages_and_those_of_others_that_lead_to_ours() -> None:
    """Nothing is asked of other sites, nothing twice, and other pages need not be in order."""
    site = {
        START: page('<a href="/db/t">a</a><a href="#x">b</a><a href="https://doi.org/x">c</a>'),
        "/db/t": page(
            '<a href="/lost">d</a><a href="/db/-/recall.json">e</a><a href="?_recall=a">f</a>'
        ),
        "/db/-/recall.json": of_kind("application/json", '{"rows": [{"url": "/db/t/1"}]}'),
        "/db/t/1": page('<a onclick="">g</a>'),
    }
    walk = await walk_site(site)
    assert list(walk.seen) == list(site)


@pytest.mark.asyncio
async def test_a_walk_ends_and_still_sees_one_of_each_shape() -> None:
    """Of a site without end many pages are seen that differ in one name, and few of all others."""
    asked = []

    async def get(address: str) -> Answer:
        asked.append(address)
        n = len(asked)
        late = '<a href="/db/-/recall?late=1">z</a>' if n > walking.MOST else ""
        links = (f"/db/-/concepts/{n}", f"/db/-/recall?a={n}&b={n}", f"/db/-/recall?_size={n}")
        return page(late + "".join(f'<a href="{link}">a</a>' for link in links))

    walk = Walk(get)
    await walk.along([START, *(f"{START}?q={n}" for n in range(walking.MOST))])
    shapes = [walking.shape(address) for address in asked]
    assert shapes.count(("/db/-/concepts/*",)) == 1
    assert shapes.count(("/db/-/recall", "late")) == 1
    assert len(asked) == walking.MOST + 5

    asked.clear()
    await Walk(get).along([START])
    shapes = [walking.shape(address) for address in asked]
    assert shapes.count(("/db/-/concepts/*",)) == walking.MOST_NAMED
    assert shapes.count(("/db/-/recall", "_size")) == walking.MOST_NAMED
    assert shapes.count(("/db/-/recall", "a", "b")) == walking.MOST_ALIKE

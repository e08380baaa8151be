"""The menus of Datasette's own pages: where they lead, to whom, and what they cost."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from datasette import hookimpl
from datasette.app import Datasette
from datasette.plugins import pm

import foreign
import knowledge
from conftest import IS_1_0, MakeDatasette, actor_cookie
from datasette_concept_recall import menus
from pages import Element, parse
from served import PRIVATE, build, fill

only_1_0 = pytest.mark.skipif(not IS_1_0, reason="0.65 has no such menu")

RECALL, FACET = "Recall by concept", "Facet by concept"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of `served.build`."""
    return build(tmp_path_factory.mktemp("knowledge") / "knowledge.db")


async def actions(datasette: Datasette, address: str, **more: Any) -> dict[str, str]:
    """What the menu of a page offers: addresses by label."""
    response = await datasette.client.get(address, **more)
    assert response.status_code == 200, response.text
    menu = parse(response.text).all("details", "actions-menu-links")
    return {label(a): a["href"] for found in menu for a in found.all("a")}


def label(link: Element) -> str:
    """The label of an action, without the description that 1.0 puts behind it."""
    return " ".join(str(link.children[0]).split())


def private(*tables: str) -> dict[str, Any]:
    return {"databases": {"knowledge": {"tables": dict.fromkeys(tables, PRIVATE)}}}


# --- where they lead -----------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_actions_of_a_database(path: Path, make_datasette: MakeDatasette) -> None:
    """A database that can be recalled from has Recall and the list of its concepts."""
    assert await actions(make_datasette(path), "/knowledge") == {
        RECALL: "/knowledge/-/recall",
        "Concepts": "/knowledge/-/concepts",
    }


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("table", "kinds", "labels"),
    [
        ("records", "type=record", {"Record"}),
        ("observations", "type=observation", {"Observation"}),
        (
            "document_sections",
            "type=document_gist&type=document_section",
            {"Document", "Section"},
        ),
        (
            "documents",
            "type=document_gist&type=document_section",
            {"Document", "Section"},
        ),
    ],
)
async def test_actions_of_a_tagged_table(
    path: Path, make_datasette: MakeDatasette, table: str, kinds: str, labels: set[str]
) -> None:
    """A tagged table has Recall, narrowed to its kinds of items, and the facet."""
    datasette = make_datasette(path)
    found = await actions(datasette, f"/knowledge/{table}")
    assert found == {
        RECALL: f"/knowledge/-/recall?{kinds}",
        FACET: f"/knowledge/{table}?_facet_concept=1",
    }
    for link in found.values():
        assert (await datasette.client.get(link)).status_code == 200
    recalled = await datasette.client.get(f"{found[RECALL]}&q=RAG")
    about = parse(recalled.text).all("p", "recall-about")
    assert {words.words.split(" · ")[0] for words in about} == labels


@pytest.mark.asyncio
async def test_the_facet_keeps_what_the_page_is_narrowed_to(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Filter and sort stay, the place in the pages does not, and no facet is offered twice."""
    datasette = make_datasette(path)
    query = "status=accepted&_sort=title&_next=x&title__contains=a%26b&_facet=status"
    found = await actions(datasette, f"/knowledge/records?{query.replace('&_next=x', '')}")
    kept = "status=accepted&_sort=title&title__contains=a%26b&_facet=status"
    assert found[FACET] == f"/knowledge/records?{kept}&_facet_concept=1"
    assert FACET not in await actions(datasette, "/knowledge/records?_facet_concept=1")
    assert menus._facet_link(datasette, "knowledge", "records", _Request(query)) == found[FACET]


@dataclass
class _Request:
    query_string: str


@pytest.mark.asyncio
async def test_actions_of_other_tables(path: Path, make_datasette: MakeDatasette) -> None:
    """The table of the concepts leads to their list; tables of links and all others have none."""
    datasette = make_datasette(path)
    concepts = await actions(datasette, "/knowledge/concepts")
    assert concepts == {"Concepts": "/knowledge/-/concepts"}
    for table in ("record_concepts", "projects"):
        assert await actions(datasette, f"/knowledge/{table}") == {}


@pytest.mark.asyncio
async def test_links_have_the_base_url(path: Path, make_datasette: MakeDatasette) -> None:
    """Behind a prefix every action begins with it, once."""
    datasette = make_datasette(path, settings={"base_url": "/pre/fix/"})
    for page in ("/knowledge", "/knowledge/records", "/knowledge/concepts"):
        for link in (await actions(datasette, page)).values():
            assert link.startswith("/pre/fix/knowledge/")
    # Datasette says in which request it is: below its base URL, or, to itself, not.
    response = await datasette.client.get("/knowledge/records?status=accepted")
    assert "/pre/fix/knowledge/records?status=accepted&amp;_facet_concept=1" in response.text


TABLES = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"


@pytest.mark.asyncio
@pytest.mark.parametrize("shape", foreign.FOUND_WITHOUT_CONFIGURATION)
async def test_any_tagged_table_has_them(
    tmp_path: Path, make_datasette: MakeDatasette, shape: str
) -> None:
    """In a database of somebody else exactly the tables that are tagged have the actions."""
    file = foreign.FOUND_WITHOUT_CONFIGURATION[shape](tmp_path / "x.db")
    datasette = make_datasette(file)
    with closing(sqlite3.connect(file)) as conn:
        tables = [name for (name,) in conn.execute(TABLES)]
    found = (await datasette.client.get("/x/-/recall.json?concept=jam&concept=bread")).json()
    tagged = {row["url"].split("/")[4] for row in found["rows"]}
    for table in tables:
        offered = await actions(datasette, f"/x/{table}")
        assert (FACET in offered) == (RECALL in offered) == (table in tagged), table


@only_1_0
@pytest.mark.asyncio
async def test_actions_of_a_tagged_view(tmp_path: Path, make_datasette: MakeDatasette) -> None:
    """A view that is configured as tagged has the actions of a tagged table."""
    file = foreign.json_array(tmp_path / "x.db")
    with closing(sqlite3.connect(file)) as conn:
        conn.execute("create view shown as select * from meals")
        conn.execute("create view other as select 1")
    described = {"sources": {"meal": {"table": "shown", "tags": "tags", "key": "id"}}}
    plugin = {"datasette-concept-recall": {"databases": {"x": described}}}
    datasette = make_datasette(file, config={"plugins": plugin})
    assert await actions(datasette, "/x/shown") == {
        RECALL: "/x/-/recall?type=meal",
        FACET: "/x/shown?_facet_concept=1",
    }
    assert await actions(datasette, "/x/other") == {}


@only_1_0
@pytest.mark.asyncio
async def test_actions_of_a_row(path: Path, make_datasette: MakeDatasette) -> None:
    """A row with concepts leads to everything tagged with one of them, any other row nowhere."""
    datasette = make_datasette(path)
    found = await actions(datasette, "/knowledge/records/1")
    assert found == {"Related by concept": "/knowledge/-/recall?concept=C%2B%2B&concept=RAG"}
    assert (await datasette.client.get(found["Related by concept"])).status_code == 200
    assert await actions(datasette, "/knowledge/projects/1") == {}


@only_1_0
@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("concept_recall_by_text?text=RAG+in+C%2B%2B&limit=5", "?q=RAG+in+C%2B%2B"),
        ("concept_recall_by_text", ""),
        ("concept_mentions?text=RAG", "?q=RAG"),
        ('concept_recall_by_names?names=["RAG", "C%2B%2B", 1]', "?concept=RAG&concept=C%2B%2B"),
        ('concept_recall_by_names?names={"a": 1}', ""),
        ("concept_recall_by_names?names=[", ""),
    ],
)
async def test_actions_of_our_queries(
    path: Path, make_datasette: MakeDatasette, query: str, asked: str
) -> None:
    """A query of ours leads to the page that is asked the same."""
    datasette = make_datasette(path)
    found = await actions(datasette, f"/knowledge/{query}")
    assert found == {"Ask on the Recall page": f"/knowledge/-/recall{asked}"}


@only_1_0
@pytest.mark.asyncio
async def test_other_queries_have_no_action(path: Path, make_datasette: MakeDatasette) -> None:
    """Neither the search for any word, nor somebody else's query, whatever its name, nor SQL."""
    config = {"databases": {"knowledge": {"queries": {"concept_mentions": {"sql": "select 1"}}}}}
    datasette = make_datasette(path, config=config)
    for query in ("concept_mentions", "concept_word_search?word=RAG", "-/query?sql=select+1"):
        assert await actions(datasette, f"/knowledge/{query}") == {}
    long = "RAG+" * 2_000
    assert await actions(datasette, f"/knowledge/concept_recall_by_text?text={long}") == {}


# --- to whom -------------------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("table", "lost"),
    [
        (
            "concepts",
            {
                "/knowledge",
                "/knowledge/records",
                "/knowledge/observations",
                "/knowledge/documents",
            },
        ),
        ("record_concepts", {"/knowledge/records"}),
        ("document_section_concepts", {"/knowledge/documents"}),
        ("observations", set()),
    ],
)
async def test_who_may_not_view_what_an_action_reads_has_no_such_action(
    path: Path, make_datasette: MakeDatasette, table: str, lost: set[str]
) -> None:
    """Private concepts take away every action, a private link table those of its table."""
    datasette = make_datasette(path, config=private(table))
    cookies = actor_cookie(datasette, "root")
    pages = ["/knowledge", "/knowledge/records", "/knowledge/documents"]
    pages += ["/knowledge/observations"] if table != "observations" else []
    for page in pages:
        assert (await actions(datasette, page) == {}) == (page in lost)
        assert await actions(datasette, page, cookies=cookies) != {}
    if IS_1_0:
        row = await actions(datasette, "/knowledge/records/1")
        assert (row == {}) == ("/knowledge/records" in lost)


@only_1_0
@pytest.mark.asyncio
async def test_a_query_leads_only_where_one_may_go(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Who may view the query but not the database is not led to a refusal."""
    permissions = {"view-database": {"id": "root"}, "view-query": True, "view-table": True}
    config = {"databases": {"knowledge": {"permissions": permissions}}}
    datasette = make_datasette(path, config=config)
    address = "/knowledge/concept_mentions?text=RAG"
    assert await actions(datasette, address, cookies=actor_cookie(datasette, "root")) != {}
    response = await datasette.client.get(address)
    assert "/-/recall" not in response.text


# --- what loads what -----------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_the_script_is_on_the_recall_page_alone(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """It is loaded as a module, after the page; no script of ours stands in any page."""
    datasette = make_datasette(path)
    script = "/-/static-plugins/datasette-concept-recall/concept-recall.js"
    for address in ("/knowledge/-/recall", "/-/recall?q=RAG"):
        page = parse((await datasette.client.get(address)).text)
        assert page.one("script", src=script)["type"] == "module"
        assert page.one("section", "content").all("script") == []
    assert "addEventListener" in (await datasette.client.get(script)).text
    for address in ("/", "/knowledge", "/knowledge/records", "/knowledge/records/1"):
        assert "concept-recall.js" not in (await datasette.client.get(address)).text


# --- what they cost ------------------------------------------------------------------------------


@contextmanager
def traced() -> Iterator[list[str]]:
    """Every query that connections opened in this block run on databases that are served."""
    queries: list[str] = []

    def note(statement: str) -> None:
        if statement == "PRAGMA schema_version":
            return  # with it Datasette 1.0 itself checks a permission to view a table
        if re.match(r"\s*(select|with|pragma)\b", statement, re.IGNORECASE):
            queries.append(statement)

    class Tracer:
        __name__ = "Tracer"

        @hookimpl
        def prepare_connection(self, conn: sqlite3.Connection, database: str) -> None:
            if database != "_internal":
                conn.set_trace_callback(note)

    pm.register(Tracer(), name="tracer")
    try:
        yield queries
    finally:
        pm.unregister(name="tracer")


@dataclass
class _Page:
    """What a menu may ask of a request."""

    query_string: str = ""
    actor: dict[str, Any] | None = None


MENUS: dict[str, tuple[int, Callable[[Datasette], Awaitable[Any]]]] = {
    "every page": (0, lambda ds: menus.menu_links(ds, None)),
    "a database": (1, lambda ds: menus.database_actions(ds, None, "knowledge")),
    "a tagged table": (
        0,
        lambda ds: menus.table_actions(ds, None, "knowledge", "records", _Page()),
    ),
    "another table": (
        0,
        lambda ds: menus.table_actions(ds, None, "knowledge", "projects", _Page()),
    ),
    "a query": (
        0,
        lambda ds: menus.query_actions(
            ds, None, "knowledge", "concept_mentions" if IS_1_0 else None, {"text": "RAG"}
        ),
    ),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("menu", MENUS)
async def test_a_menu_costs_no_more_than_one_query(
    path: Path, tmp_path: Path, make_datasette: MakeDatasette, menu: str
) -> None:
    """Of several databases none is asked anything, but the one whose page it is, for its schema."""
    other = build(tmp_path / "other.db")
    most, made = MENUS[menu]
    with traced() as queries:
        datasette = make_datasette(path, other)
        await datasette.client.get("/knowledge/-/recall?q=RAG")
        await datasette.client.get("/other/-/recall?q=RAG")
        assert queries
        queries.clear()
        offered = await made(datasette)
    assert bool(offered) == (menu != "another table") or not IS_1_0
    assert len(queries) == most, queries


@only_1_0
@pytest.mark.asyncio
@pytest.mark.parametrize(
    "address", ["/", "/knowledge/projects", "/knowledge/records", "/knowledge/projects/1"]
)
async def test_a_page_asks_the_database_no_more_than_without_the_plugin(
    path: Path, make_datasette: MakeDatasette, address: str
) -> None:
    """All hooks together add no query to a page that shows nothing but menus of ours."""
    with traced() as queries:
        datasette = make_datasette(path, settings={"num_sql_threads": 1})
        with_plugin = await _asked_by_third_visit(datasette, address, queries)
        plugin = pm.unregister(name="concept_recall")
        try:
            without = await _asked_by_third_visit(datasette, address, queries)
        finally:
            pm.register(plugin, name="concept_recall")
    assert with_plugin - without == Counter()


async def _asked_by_third_visit(
    datasette: Datasette, address: str, queries: list[str]
) -> Counter[str]:
    for _ in range(3):  # at first Datasette counts and remembers
        queries.clear()
        assert (await datasette.client.get(address)).status_code == 200
    return Counter(queries)


@pytest.mark.asyncio
async def test_a_table_that_is_made_later_is_noticed_on_the_page_of_its_database(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Until then menus know what there was; then they lead to Recall on every page."""
    file = tmp_path / "knowledge.db"
    with closing(knowledge.create(file, "nothing")) as conn:
        datasette = make_datasette(file)
        assert "/-/recall" not in (await datasette.client.get("/")).text
        knowledge.create_today(conn)
        fill(conn)
    assert RECALL in await actions(datasette, "/knowledge")
    assert "/knowledge/-/recall" in (await datasette.client.get("/")).text

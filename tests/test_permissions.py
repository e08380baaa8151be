"""Who sees what: nothing of a private table is shown or counted, wherever one looks."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from datasette import hookimpl
from datasette.app import Datasette
from datasette.plugins import pm

import knowledge
from conftest import IS_1_0, MakeDatasette, actor_cookie
from datasette_concept_recall.canned_sql import NAMES

ROOT = {"id": "root"}
only_1_0 = pytest.mark.skipif(not IS_1_0, reason="0.65 has no such permissions")

ITEMS = {"observations", "records", "documents", "document_sections"}
LINKS = {"observation_concepts", "record_concepts", "document_section_concepts"}
RECALL = {"concepts", "projects", *ITEMS, *LINKS}
READ_BY = {
    "concept_recall_by_text": RECALL,
    "concept_recall_by_names": RECALL,
    "concept_mentions": {"concepts"},
    "concept_word_search": ITEMS,
}
"""The tables that an actor needs for each canned query."""

RELATIONS = {"record_relations", "observation_relations", "project_concepts"}
TABLES = sorted(RECALL | RELATIONS)

FILLED = "text=RAG&names=RAG&word=secret&limit=0"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with something in every table; every text says in which table it is."""
    file = tmp_path_factory.mktemp("whole") / "k.db"
    with closing(knowledge.create(file)) as conn:
        project = "secret of projects"
        knowledge.add_project(conn, project, concepts=["RAG"])
        items = [
            knowledge.add_observation(conn, "secret of observations", concepts=["RAG"], **more)
            for more in ({}, {"project": project})
        ]
        knowledge.supersede_observation(conn, items[0], items[1])
        records = [
            knowledge.add_record(conn, "secret of records", concepts=["RAG", name], **more)
            for name, more in (("C++", {}), ("records only", {"project": project}))
        ]
        knowledge.supersede_record(conn, records[0], records[1])
        section = knowledge.Section(
            "secret of document_sections", summary="RAG", status="reviewed", concepts=["RAG"]
        )
        knowledge.add_document(conn, "secret of documents", gist=section, sections=[section])
        conn.commit()
    return file


def private(*tables: str) -> dict[str, Any]:
    """The configuration in which only root may view these tables."""
    return {"databases": {"k": {"tables": {table: {"allow": ROOT} for table in tables}}}}


def drop(path: Path, directory: Path, table: str) -> Path:
    """A copy of the database in which there is no such table."""
    copy = Path(shutil.copy(path, directory / "k.db"))
    with closing(sqlite3.connect(copy)) as conn:
        conn.execute("drop view project_summary")
        conn.execute(f"drop table {table}")
    return copy


QUESTIONS = [
    *("", "?q=RAG+and+C%2B%2B", "?q=RAG&_size=1", "?q=RAG&_size=100", "?q=RAG&_shape=array"),
    *("?q=RAG&project=secret+of+projects", "?concept=records+only", "?q=RAG&type=record"),
    *("?q=RAG&type=document_gist&type=observation", "?q=nothing", "?concept=unknown"),
    "?q=RAG&budget=150",
]


CONCEPTS = ["", "/RAG", "/C~2B~2B", "/records+only", "/nothing"]

OUR_ADDRESSES = [
    *(f"/k/-/recall{form}{question}" for form in ("", ".json", ".md") for question in QUESTIONS),
    *(f"/k/-/concepts{one}{form}?_sort=recent" for form in ("", ".json") for one in CONCEPTS),
]


async def recalls(datasette: Datasette, **more: Any) -> list[tuple[int, str]]:
    """Status and text of every page, JSON and context, without tokens and links to queries."""
    found = []
    for address in OUR_ADDRESSES:
        response = await datasette.client.get(address, **more)
        varying = r'(, )?<a href="[^"]*">SQL query</a>|<input type="hidden" name="csrftoken".*?>'
        found.append((response.status_code, re.sub(varying, "", response.text)))
    return found


# --- one private table ---------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize("table", [name for name in TABLES if name != "concepts"])
async def test_a_private_table_might_as_well_not_be_there(
    path: Path, tmp_path: Path, make_datasette: MakeDatasette, table: str
) -> None:
    """To anonymous, page and JSON are to the letter those of a database without the table."""
    without = make_datasette(drop(path, tmp_path, table))
    datasette = make_datasette(path, config=private(table))
    answers = await recalls(datasette)
    assert answers == await recalls(without)
    assert answers != await recalls(make_datasette(path))


@pytest.mark.asyncio
async def test_private_concepts_leave_nothing_to_recall(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Who may not view the concepts is refused, and finds no link that leads there."""
    datasette = make_datasette(path, config=private("concepts"))
    for status, text in await recalls(datasette):
        assert status == 403
        assert "RAG" not in text
        assert "secret" not in text
    for page in ("/", "/k", "/k/records"):
        assert "/-/recall" not in (await datasette.client.get(page)).text


@pytest.mark.asyncio
@pytest.mark.parametrize("table", ["concepts", "documents", "projects", "record_relations"])
async def test_who_may_view_the_table_sees_all(
    path: Path, make_datasette: MakeDatasette, table: str
) -> None:
    """For root a private table changes neither the answers nor the links to them."""
    datasette = make_datasette(path, config=private(table))
    cookies = actor_cookie(datasette, "root")
    everyone = make_datasette(path)
    as_root = {"cookies": actor_cookie(everyone, "root")}
    assert await recalls(datasette, cookies=cookies) == await recalls(everyone, **as_root)
    for page in ("/", "/k", "/k/records"):
        assert "/k/-/recall" in (await datasette.client.get(page, cookies=cookies)).text
    for name in NAMES:
        query = f"/k/{name}.json?{FILLED}&_shape=array"
        response = await datasette.client.get(query, cookies=cookies)
        assert response.json() == (await everyone.client.get(query)).json() != []


@pytest.mark.asyncio
@pytest.mark.parametrize("table", TABLES)
async def test_a_query_is_only_for_those_who_may_view_all_it_reads(
    path: Path, make_datasette: MakeDatasette, table: str
) -> None:
    """In no format and under no parameter does a canned query show a private table."""
    datasette = make_datasette(path, config=private(table))
    for name in NAMES:
        if table not in READ_BY[name]:
            response = await datasette.client.get(f"/k/{name}?{FILLED}")
            assert response.status_code == 200
            continue
        for address in (
            f"/k/{name}",
            f"/k/{name}.json?{FILLED}",
            f"/k/{name}.json?{FILLED}&_shape=array&_json=concepts",
            f"/k/{name}.json?{FILLED}&sql=select+*+from+{table}",
            f"/k/{name}.csv?{FILLED}&_stream=on",
            f"/k/{name}.blob?{FILLED}&_blob_column=title&_blob_hash=0",
            *([f"/k/{name}/-/definition", f"/k/{name}.json?_extra=query"] if IS_1_0 else []),
        ):
            response = await datasette.client.get(address)
            assert response.status_code == 403, address
            assert "secret" not in response.text.replace("word=secret", "")


@only_1_0
@pytest.mark.asyncio
async def test_a_query_cannot_be_posted_to_either(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Datasette 1.0 runs any stored query that is posted to, after the same check."""
    datasette = make_datasette(path, config=private("observations"))
    for name in ("concept_recall_by_text", "concept_recall_by_names", "concept_word_search"):
        response = await datasette.client.post(f"/k/{name}?_json=1", json={"text": "RAG"})
        assert response.status_code == 403


@pytest.mark.asyncio
@pytest.mark.parametrize("table", ["observations", "concepts", "projects", "project_concepts"])
async def test_no_list_names_a_query_that_would_be_refused(
    path: Path, make_datasette: MakeDatasette, table: str
) -> None:
    """Neither the pages nor the JSON of a database or of all queries, nor the menu to jump."""
    datasette = make_datasette(path, config=private(table))
    refused = {name for name in NAMES if table in READ_BY[name]}
    lists = ["/k", "/k.json"]
    if IS_1_0:
        lists += ["/-/queries", "/-/queries.json", "/k/-/queries", "/k/-/queries.json"]
        lists += ["/k/-/queries.json?source=datasette-concept-recall", "/-/jump.json?q=concept"]
    for address in lists:
        response = await datasette.client.get(address)
        assert response.status_code == 200, address
        assert {name for name in NAMES if name in response.text} == set(NAMES) - refused, address


@pytest.mark.asyncio
@pytest.mark.parametrize("table", ["observations", "projects", "concepts"])
async def test_the_page_links_to_the_query_for_those_who_may_use_it(
    path: Path, make_datasette: MakeDatasette, table: str
) -> None:
    """No link of ours leads an actor to a refusal."""
    datasette = make_datasette(path, config=private(table))
    for cookies, linked in ((None, False), (actor_cookie(datasette, "root"), True)):
        page = await datasette.client.get("/k/-/recall?q=RAG", cookies=cookies)
        assert ("SQL query</a>" in page.text) == linked


@pytest.mark.asyncio
async def test_somebody_elses_query_of_the_same_name_is_their_own_affair(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Whoever defines a query says who may use it: only our own SQL is tied to our tables."""
    config = private("concepts", "observations")
    config["databases"]["k"]["queries"] = {"concept_mentions": {"sql": "select 'theirs' as whose"}}
    datasette = make_datasette(path, config=config)
    response = await datasette.client.get("/k/concept_mentions.json?_shape=array")
    assert response.json() == [{"whose": "theirs"}]


# --- the schema changes while Datasette runs -----------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "change",
    [
        "drop table record_concepts",
        "alter table concepts rename to former_concepts",
        "alter table record_concepts rename column concept_id to former_concept_id",
        "drop table observations",
    ],
)
async def test_a_change_of_the_schema_opens_no_private_table(
    path: Path, tmp_path: Path, make_datasette: MakeDatasette, change: str
) -> None:
    """A query made for the former tables is still refused to those who may not view them."""
    copy = Path(shutil.copy(path, tmp_path / "k.db"))
    config = private("records")
    config["databases"]["k"]["queries"] = {"mine": {"sql": "select 1"}}
    datasette = make_datasette(copy, config=config)
    addresses = [f"/k/{name}.json?{FILLED}" for name in NAMES]
    for address in addresses:
        await datasette.client.get(address)
    with closing(sqlite3.connect(copy)) as conn:
        conn.execute("drop view project_summary")
        conn.execute(change)
        conn.commit()
    for _ in range(2):
        for address in addresses:
            assert "secret of records" not in (await datasette.client.get(address)).text


# --- whole databases, instances and tokens -------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize("config", [{"allow": ROOT}, {"databases": {"k": {"allow": ROOT}}}])
async def test_a_private_database_or_instance_is_closed(
    path: Path, make_datasette: MakeDatasette, config: dict[str, Any]
) -> None:
    """Anonymous is refused everywhere, root nowhere."""
    datasette = make_datasette(path, config=config)
    root = {"cookies": actor_cookie(datasette, "root")}
    assert {status for status, _ in await recalls(datasette)} == {403}
    assert 200 in {status for status, _ in await recalls(datasette, **root)}
    assert "recall" not in (await datasette.client.get("/")).text
    for name in NAMES:
        address = f"/k/{name}.json?{FILLED}"
        assert (await datasette.client.get(address)).status_code == 403
        assert (await datasette.client.get(address, **root)).status_code == 200


def every_table(allow: Any) -> dict[str, Any]:
    """Blocks that allow the tables to the same actors."""
    return {table: {"allow": allow} for table in TABLES}


CONFIGURATIONS: list[dict[str, Any]] = [
    {},
    {"allow": True},
    {"allow": False},
    {"allow": ROOT, "databases": {"k": {"allow": True}}},
    {"allow": ROOT, "databases": {"k": {"tables": {"observations": {"allow": True}}}}},
    {"databases": {"k": {"allow": False}}},
    {"databases": {"k": {"allow": ROOT, "tables": every_table(True)}}},
    {"databases": {"k": {"allow": {"id": "*"}, "tables": {"records": {"allow": ROOT}}}}},
    {"databases": {"k": {"allow": {"id": "ann"}, "tables": {"records": {"allow": ROOT}}}}},
    {"databases": {"k": {"allow": ROOT, "tables": {"OBSERVATIONS": {"allow": {"id": "ann"}}}}}},
    {"databases": {"k": {"tables": {"Observations": {"allow": ROOT}}}}},
    {"databases": {"k": {"tables": every_table(ROOT)}}},
    {"databases": {"k": {"tables": {**every_table(ROOT), "concepts": {"allow": True}}}}},
    {"databases": {"k": {"allow_sql": False, "tables": {"record_concepts": {"allow": False}}}}},
    {"databases": {"k": {"queries": {"concept_mentions": {"sql": "select 1", "allow": ROOT}}}}},
]
if IS_1_0:
    CONFIGURATIONS += [
        {"permissions": {"view-table": ROOT}},
        {"databases": {"k": {"permissions": {"view-table": {"id": "ann"}}}}},
        {"databases": {"k": {"permissions": {"view-query": ROOT}}}},
        {"databases": {"k": {"tables": {"records": {"permissions": {"view-table": ROOT}}}}}},
    ]

ACTORS: list[dict[str, Any] | None] = [None, {"id": "ann"}, ROOT]
if IS_1_0:
    tokens: list[dict[str, Any]] = [
        {},
        {"a": ["vi", "vd", "vt", "vq"]},
        {"a": ["vi", "vd", "vt"]},
        {"a": ["vi", "vd", "vq"]},
        {"a": ["vi"], "d": {"k": ["view-database", "view-table"]}},
        {"a": ["vq"], "d": {"k": ["vd"]}, "r": {"k": {t: ["vt"] for t in ("concepts", "records")}}},
        {"a": ["vq"], "d": {"k": ["vd"]}, "r": {"k": {t: ["vt"] for t in TABLES if t[0] != "r"}}},
        {"d": {"k": ["vd", "vt"]}, "r": {"k": {"concept_mentions": ["vq"]}}},
    ]
    ACTORS += [{"id": "ann", "_r": token} for token in tokens]
    ACTORS += [{**ROOT, "_r": tokens[1]}, {**ROOT, "_r": tokens[6]}]


async def tables_shown(datasette: Datasette, cookies: dict[str, str]) -> set[str]:
    """The tables that Datasette itself lists on the page of the database."""
    response = await datasette.client.get("/k.json", cookies=cookies)
    assert response.status_code in (200, 403)
    tables = response.json()["tables"] if response.status_code == 200 else []
    return {table["name"] for table in tables} & set(TABLES)


SOURCES = {
    "observation": ("observations", "observation_concepts"),
    "record": ("records", "record_concepts"),
    "document": ("documents", "document_sections", "document_section_concepts"),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("config", CONFIGURATIONS, ids=repr)
async def test_recall_shows_what_the_pages_of_datasette_show(
    path: Path, make_datasette: MakeDatasette, config: dict[str, Any]
) -> None:
    """Every actor sees the items of the tables that he may open, no more and no fewer."""
    datasette = make_datasette(path, config=config)
    for actor in ACTORS:
        cookies = {"ds_actor": datasette.sign({"a": actor}, "actor")} if actor else {}
        tables = await tables_shown(datasette, cookies)
        response = await datasette.client.get("/k/-/recall.json?q=RAG", cookies=cookies)
        if "concepts" not in tables:
            assert response.status_code == 403, actor
        else:
            assert_shows(response.json(), tables)
        for name in NAMES:
            query = await datasette.client.get(f"/k/{name}.json?{FILLED}", cookies=cookies)
            may_query = may_use(actor, name) and tables.issuperset(READ_BY[name])
            if name not in str(config):
                if "view-query" in str(config):
                    may_query = may_query and (actor or {}).get("id") == "root"
                assert query.status_code == (200 if may_query else 403), (actor, name)


def may_use(actor: dict[str, Any] | None, name: str) -> bool:
    """Whether a token, where it is one, lets its bearer use the query."""
    token = (actor or {}).get("_r", {"a": ["vq"]})
    return "vq" in [*token.get("a", []), *token.get("r", {}).get("k", {}).get(name, [])]


def assert_shows(answer: dict[str, Any], tables: set[str]) -> None:
    """The answer holds the items that these tables make visible, and counts just these."""
    kinds = {row["source_type"].partition("_")[0] for row in answer["rows"]}
    assert kinds == {kind for kind, needed in SOURCES.items() if tables.issuperset(needed)}
    assert answer["total"] == len(answer["rows"]) == answer["concepts"][0]["total"]
    assert bool(answer["projects"]) == tables.issuperset({"projects", "project_concepts"})
    owned = not kinds.isdisjoint({"observation", "record"})
    assert any(row["project"] for row in answer["rows"]) == ("projects" in tables and owned)
    related = {ref.partition(":")[0] for row in answer["rows"] for ref in row["superseded_by"]}
    assert related == {kind for kind in kinds if f"{kind}_relations" in tables}


@only_1_0
@pytest.mark.asyncio
async def test_a_token_for_queries_still_opens_those_of_others(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """That ours are refused over a private table takes nothing else from an actor."""
    config = private("observations")
    config["databases"]["k"]["queries"] = {"mine": {"sql": "select 1 as one"}}
    datasette = make_datasette(path, config=config)
    for token in ({"r": {"k": {"mine": ["vq"]}}}, {"a": ["vq"]}):
        actor = {"id": "ann", "_r": token}
        cookies = {"ds_actor": datasette.sign({"a": actor}, "actor")}
        response = await datasette.client.get("/k/mine.json?_shape=array", cookies=cookies)
        assert response.json() == [{"one": 1}]


@only_1_0
@pytest.mark.asyncio
async def test_an_instance_that_denies_by_default_grants_recall_by_its_tables(
    path: Path, make_datasette: Callable[..., Datasette]
) -> None:
    """With ``--default-deny`` recall needs nothing but what the configuration allows."""
    config = {"databases": {"k": {"allow": {"id": "ann"}, "tables": {"records": {"allow": False}}}}}
    datasette = make_datasette(path, config=config, default_deny=True)
    address = "/k/-/recall.json?q=RAG"
    assert (await datasette.client.get(address)).status_code == 403
    response = await datasette.client.get(address, cookies=actor_cookie(datasette, "ann"))
    kinds = {row["source_type"] for row in response.json()["rows"]}
    assert kinds == {"observation", "document_gist", "document_section"}


@pytest.mark.asyncio
@pytest.mark.skipif(IS_1_0, reason="1.0 has no hook permission_allowed")
async def test_a_plugin_is_asked_for_a_table_as_the_database_spells_it(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """A plugin that denies a table by its exact name denies our queries over it as well."""
    path = tmp_path / "kb.db"
    with closing(sqlite3.connect(path)) as conn:
        conn.executescript(
            "create table Concepts (id integer primary key, name text);"
            "create table Observations (id integer primary key, body text);"
            "create table Observation_Concepts (observation_id integer, concept_id integer);"
            "insert into Concepts values (1, 'RAG');"
            "insert into Observations values (1, 'secret RAG');"
            "insert into Observation_Concepts values (1, 1);"
        )

    class Denies:
        __name__ = "Denies"

        @hookimpl
        def permission_allowed(self, action: str, resource: object) -> bool | None:
            return False if (action, resource) == ("view-table", ("kb", "Observations")) else None

    pm.register(Denies(), name="denies")
    try:
        datasette = make_datasette(path)
        for page in (
            "Observations.json",
            "concept_recall_by_text.json?text=RAG",
            "concept_word_search.json?word=RAG",
            "-/recall.json?q=RAG",
            "-/recall?q=RAG",
        ):
            assert "secret" not in (await datasette.client.get(f"/kb/{page}")).text
    finally:
        pm.unregister(name="denies")

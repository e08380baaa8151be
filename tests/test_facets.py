"""``?_facet_concept=1``: the concept facet on the pages of tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

import foreign
import hostile
from conftest import IS_1_0, MakeDatasette, actor_cookie, file_bytes, rows
from datasette_concept_recall import access
from datasette_concept_recall.mapping import Mapping
from pages import content, parse
from tables import build, counted, counts, described, private, table

FACETS = {"databases": {"k": {"tables": {"observations": {"facets": [{"concept": "concepts"}]}}}}}
"""Configuration of a facet that is always there."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The database of `tables.build`."""
    return build(tmp_path / "k.db")


def has_facet(answer: dict[str, Any]) -> bool:
    """Whether an answer holds a concept facet."""
    return any(facet["type"] == "concept" for facet in answer["facet_results"].values())


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "query",
    [
        {},
        {"kind": "note"},
        {"_concept": "RAG"},
        {"_concept": ["RAG", "C++"]},
        {"_recall": "chunking, and C++"},
        {"_recall": "RAG", "kind": "finding", "_where": "id < 3"},
        {"_concept": "no such"},
        {"_concept": "RAG", "_size": 1, "_next": 3},
    ],
)
async def test_rows_are_counted_within_the_filter(
    path: Path, make_datasette: MakeDatasette, query: dict[str, Any]
) -> None:
    """Case variants are one concept, counted once for a row that has both.

    As with Datasette's own facets all rows from the page on count.
    """
    datasette = make_datasette(path)
    before = file_bytes(path)
    answer = await table(datasette, _facet_concept=1, **query)
    everything = await table(datasette, **{**query, "_size": 100})
    assert counts(answer) == counted(row["id"] for row in everything["rows"])
    assert answer["facet_results"]["concepts"]["truncated"] is False
    assert file_bytes(path) == before


@pytest.mark.asyncio
async def test_a_value_is_switched_on_and_off(path: Path, make_datasette: MakeDatasette) -> None:
    """Its link adds the concept to the filter, or takes it away however it was spelled."""
    datasette = make_datasette(path)
    query = {"_concept": ["rag", "RAG"], "kind": "finding", "_next": "0"}
    answer = await table(datasette, _facet_concept=1, **query)
    links = {}
    for value in answer["facet_results"]["concepts"]["results"]:
        assert value["label"] == value["value"]
        pairs = parse_qsl(urlsplit(value["toggle_url"]).query)
        assert ("kind", "finding") in pairs
        assert "_next" not in dict(pairs)
        links[value["value"]] = value["selected"], [v for k, v in pairs if k == "_concept"]
    assert links == {
        "RAG": (True, []),
        "C++": (False, ["rag", "RAG", "C++"]),
        "chunking": (False, ["rag", "RAG", "chunking"]),
    }


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["records", "document_sections", "documents"])
async def test_every_tagged_table_has_the_facet(
    path: Path, make_datasette: MakeDatasette, name: str
) -> None:
    """A document is counted once, by what its sections are tagged with."""
    answer = await table(make_datasette(path), name, _facet_concept=1)
    more = [("chunking", 1)] if name == "records" else []
    assert counts(answer) == [("RAG", 1), *more]


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["concepts", "projects", "record_concepts"])
async def test_other_tables_have_none(path: Path, make_datasette: MakeDatasette, name: str) -> None:
    """It is neither offered nor shown, and no error."""
    datasette = make_datasette(path)
    assert not has_facet(await table(datasette, name, _facet_concept=1))
    page = await datasette.client.get(f"/k/{name}")
    assert not [link for link in content(page).links() if "_facet_concept" in link]


@pytest.mark.asyncio
async def test_it_is_suggested_and_can_be_hidden(path: Path, make_datasette: MakeDatasette) -> None:
    """The page of a tagged table offers it; on the page with it there is a link without."""
    datasette = make_datasette(path, settings={"base_url": "/prefix/"})
    page = content(await datasette.client.get("/k/observations?_concept=RAG"))
    (link,) = [a for a in page.one("p", "suggested-facets").all("a") if a.words == "concepts"]
    there = "/prefix/k/observations?_concept=RAG&_facet_concept=1#facet-concepts"
    assert link["href"].endswith(f"localhost{there}")
    page = content(await datasette.client.get("/k/observations?_facet_concept=1&kind=note"))
    facet = page.one("div", id="facet-concepts")
    assert facet.one("a", "cross")["href"] == "/prefix/k/observations?kind=note"
    assert [a["href"].partition("localhost")[2] for a in facet.all("li")[0].all("a")] == [
        "/prefix/k/observations?_facet_concept=1&kind=note&_concept=RAG"
    ]
    assert not [a for a in page.all("a") if a.words == "concepts"], "it is there already"


@pytest.mark.asyncio
async def test_it_is_cut_at_its_size(path: Path, make_datasette: MakeDatasette) -> None:
    """The most frequent concepts are shown, and that there are more."""
    datasette = make_datasette(path, settings={"default_facet_size": 1})
    for size, number in ((None, 1), (2, 2), (3, 3), ("max", 3)):
        answer = await table(datasette, _facet_concept=1, **({"_facet_size": size} if size else {}))
        assert counts(answer) == [("RAG", 4), ("C++", 2), ("chunking", 1)][:number]
        assert answer["facet_results"]["concepts"]["truncated"] is (number < 3)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "value", ["1", "", "observations", "1&_facet_concept=2", '{"simple": "x"}', "id"]
)
async def test_the_value_says_nothing(
    path: Path, make_datasette: MakeDatasette, value: str
) -> None:
    """It is one facet whatever it is asked for with, and no column of the page."""
    datasette = make_datasette(path)
    page = content(await datasette.client.get(f"/k/observations?_facet_concept={value}"))
    facets = page.all("div", "facet-info")
    assert [facet["id"] for facet in facets] == ["facet-concepts"]
    assert "_facet_concept" not in facets[0].one("a", "cross")["href"]


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["concepts", "1"])
async def test_it_can_be_configured(path: Path, make_datasette: MakeDatasette, name: str) -> None:
    """As other facets are: it is always there then and cannot be hidden."""
    configured = {"facets": ["kind", {"concept": name}], "facet_size": 2}
    config = {"databases": {"k": {"tables": {"observations": configured}}}}
    datasette = make_datasette(path, config=config)
    page = content(await datasette.client.get("/k/observations"))
    assert {f["id"] for f in page.all("div", "facet-info")} == {"facet-concepts", "facet-kind"}
    facet = page.one("div", id="facet-concepts")
    assert facet.all("a", "cross") == []
    assert len(facet.all("li")) == 3, "two, and that there are more"
    assert not [a for a in page.all("a") if a.words == "concepts"], "nothing is left to offer"


@pytest.mark.asyncio
async def test_a_column_of_the_same_name_is_another_facet(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Datasette tells them apart."""
    path = foreign.json_array(tmp_path / "k.db")
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("alter table meals rename column tags to concepts")
    answer = await table(make_datasette(path), "meals", _facet_array="concepts", _facet_concept=1)
    by_type = {facet["type"]: facet["results"] for facet in answer["facet_results"].values()}
    assert [(v["value"], v["count"]) for v in by_type["concept"]] == [
        (v["value"], v["count"]) for v in by_type["array"]
    ]
    assert len(by_type["concept"]) == 3


# --- any tagged database -------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "layout", foreign.FOUND_WITHOUT_CONFIGURATION.values(), ids=foreign.FOUND_WITHOUT_CONFIGURATION
)
async def test_any_tagged_database_has_the_facet(
    tmp_path: Path, make_datasette: MakeDatasette, layout: Callable[[Path], Path]
) -> None:
    """Whatever the keys are, and where the tags stand."""
    datasette = make_datasette(layout(tmp_path / "k.db"))
    recalled = await datasette.client.get("/k/-/recall.json?concept=soup")
    name = recalled.json()["rows"][0]["source_type"]
    answer = await table(datasette, name, _facet_concept=1)
    assert counts(answer) == [("jam", 2), ("bread", 1), ("soup", 1)]
    answer = await table(datasette, name, _facet_concept=1, _concept="JAM", title=foreign.BOTH)
    assert counts(answer) == [("bread", 1), ("jam", 1)]


@pytest.mark.asyncio
async def test_several_link_tables_views_and_odd_names(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """A row counts once for a concept; names are as they read; what cannot be asked for is out."""
    path = foreign.executed(
        tmp_path / "k.db",
        """create table tags (id primary key, name);
        create table notes (id integer primary key, title text);
        create table by_id (note integer, tag);
        create table by_name (note integer, tag references tags(name));
        create view titled as select id, title from notes where title <> 'c';
        insert into tags values (1, 'jam'), ('2', 'Jam'), (3, 2024), (4, '2024'), (5, null),
            (6, ''), (7, ' '), (8, x'ff'), (x'00', 'unreachable'), (9, 'É"]'), (10, 'é"]'),
            (11, 'jam');
        insert into notes values (1, 'a'), (2, 'b'), (3, 'c');
        insert into by_id select 1, id from tags;
        insert into by_id values (3, 11), (2, 99), (1, 8);
        insert into by_name values (1, 'jam'), (2, 'Jam'), (2, '2024'), (3, 'gone');""",
    )
    keys = {"item_key": "note", "concept_key": "tag"}
    ids, names = {**keys, "link": "by_id"}, {**keys, "link": "by_name"}
    config = described(
        "tags",
        A={**ids, "table": "notes"},
        B={**names, "table": "notes"},
        C={**ids, "table": "titled"},
    )
    datasette = make_datasette(path, config=config)
    answer = await table(datasette, "notes", _facet_concept=1)
    assert counts(answer) == [("Jam", 3), ("2024", 2), ('É"]', 1), ("\ufffd", 1)]
    for value in answer["facet_results"]["concepts"]["results"]:
        filtered = await table(datasette, "notes", _concept=value["value"])
        assert filtered["count"] == value["count"], value
    answer = await table(datasette, "titled", _facet_concept=1)
    assert counts(answer) == [("2024", 1), ("Jam", 1), ('É"]', 1), ("\ufffd", 1)]


@pytest.mark.asyncio
async def test_rows_that_datasette_cannot_tell_apart_are_not_counted(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """A column called rowid hides the number of a row; the filter finds it all the same."""
    path = foreign.executed(
        tmp_path / "k.db",
        """create table tags (id integer primary key, name text);
        create table things (name text unique, rowid text);
        create table thing_tags (thing text references things(name),
            tag integer references tags(id));
        insert into tags values (1, 'jam');
        insert into things values ('one', 'x'), ('two', 'y');
        insert into thing_tags values ('one', 1);""",
    )
    answer = await table(make_datasette(path), "things", _facet_concept=1, _concept="jam")
    assert [row["name"] for row in answer["rows"]] == ["one"]
    assert not has_facet(answer)


@pytest.mark.asyncio
async def test_links_of_hostile_names_lead_to_as_many_rows(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """The facet counts what its links show, and writes no markup."""
    path = hostile.build(tmp_path / "k.db")
    datasette = make_datasette(path)
    answer = await table(datasette, _facet_concept=1, _facet_size="max", _size=1)
    values = answer["facet_results"]["concepts"]["results"]
    assert {value["value"] for value in values} == set(hostile.NAMES)
    for value in values:
        if len(value["toggle_url"]) > 4000:
            continue
        _, _, link = value["toggle_url"].partition("http://localhost")
        found = (await datasette.client.get(f"{link}&_extra=count")).json()
        assert found["count" if IS_1_0 else "filtered_table_rows_count"] == value["count"]
    page = await datasette.client.get("/k/observations?_facet_concept=1&_facet_size=max&_size=0")
    facet = parse(page.text).one("div", id="facet-concepts")
    assert not [e.tag for e in facet if e.tag in ("script", "img", "svg")]


# --- limits and permissions ----------------------------------------------------------------------


@pytest.mark.asyncio
async def test_counting_that_takes_too_long_is_said_so(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """The page is there, without the facet."""
    datasette = make_datasette(path, settings={"facet_time_limit_ms": 0})
    answer = await table(datasette, _facet_concept=1)
    assert not has_facet(answer)
    assert len(answer["rows"]) == len(rows(path, "select id from observations"))
    page = content(await datasette.client.get("/k/observations?_facet_concept=1"))
    assert page.one("p", "facets-timed-out").words == "These facets timed out: concepts"


@pytest.mark.asyncio
@pytest.mark.parametrize("is_stale", [False, True])
async def test_tables_that_went_away_take_the_facet_with_them(
    path: Path, make_datasette: MakeDatasette, monkeypatch: pytest.MonkeyPatch, is_stale: bool
) -> None:
    """Also when what is known of the tables is from a moment ago."""
    datasette = make_datasette(path)
    assert has_facet(await table(datasette, _facet_concept=1))
    known = await access.known_mapping(datasette, "k")
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("drop table observation_concepts")

    async def before(*_: object) -> Mapping:
        return known

    if is_stale:
        monkeypatch.setattr(access, "known_mapping", before)
    assert not has_facet(await table(datasette, _facet_concept=1))


@pytest.mark.asyncio
@pytest.mark.parametrize("hidden", ["observation_concepts", "concepts"])
async def test_tags_that_may_not_be_seen_are_not_counted(
    path: Path, make_datasette: MakeDatasette, hidden: str
) -> None:
    """Not by the request, nor by configuration; nor is there a link that offers it."""
    secret = private(hidden)
    secret["databases"]["k"]["tables"] |= FACETS["databases"]["k"]["tables"]
    for config in (private(hidden), secret):
        datasette = make_datasette(path, config=config)
        answer = await table(datasette, _facet_concept=1)
        assert not has_facet(answer)
        for address in ("/k/observations", "/k/observations?_facet_concept=1"):
            page = content(await datasette.client.get(address))
            assert "RAG" not in page.text
            assert page.all("div", id="facet-concepts") == []
            assert not [a for a in page.all("a") if a.words == "concepts"]
        cookies = actor_cookie(datasette, "root")
        page = content(await datasette.client.get(address, cookies=cookies))
        assert "RAG" in page.one("div", id="facet-concepts").words


@pytest.mark.asyncio
@pytest.mark.parametrize("hidden", ["document_sections", "document_section_concepts"])
async def test_documents_are_counted_by_what_may_be_seen(
    path: Path, make_datasette: MakeDatasette, hidden: str
) -> None:
    """Their sections may be private, or what those are tagged with."""
    datasette = make_datasette(path, config=private(hidden))
    assert not has_facet(await table(datasette, "documents", _facet_concept=1))
    assert has_facet(await table(datasette, "records", _facet_concept=1))

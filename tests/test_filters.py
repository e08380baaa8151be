"""``?_concept=`` and ``?_recall=`` on the pages of tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from datasette.utils.asgi import Request

import foreign
import hostile
import knowledge
from conftest import IS_1_0, MakeDatasette, actor_cookie, file_bytes, rows
from datasette_concept_recall import asking, filters, word_match
from pages import content
from tables import KINDS, TAGS, build, csv_rows, described, private, table, tagged

every_layout = pytest.mark.parametrize(
    "layout", foreign.FOUND_WITHOUT_CONFIGURATION.values(), ids=foreign.FOUND_WITHOUT_CONFIGURATION
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The database of `tables.build`."""
    return build(tmp_path / "k.db")


def numbers(answer: dict[str, Any]) -> list[int]:
    """The ids of the rows of an answer."""
    return [row["id"] for row in answer["rows"]]


@pytest.mark.asyncio
async def test_a_row_has_every_concept_that_is_asked_for(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """JSON, its count and CSV hold the same rows, whatever is combined; nothing is written."""
    datasette = make_datasette(path)
    before = file_bytes(path)
    for size in (1, 2, 3):
        for names in combinations(("RAG", "rAg", "chunking", "c++", "no such"), size):
            expected = tagged(*names)
            answer = await table(datasette, _concept=names)
            assert (numbers(answer), answer["count"]) == (expected, len(expected))
            lines = await csv_rows(datasette, "observations", _concept=names)
            assert [int(line["id"]) for line in lines] == expected
            answer = await table(datasette, _concept=names, kind="note", _sort_desc="id")
            notes = [number for number in reversed(expected) if KINDS[number] == "note"]
            assert (numbers(answer), answer["count"]) == (notes, len(notes))
    assert file_bytes(path) == before


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["RAG"], 'tagged with "RAG"'),
        (["rag"], 'tagged with "RAG"'),
        (["rag", "RAG"], 'tagged with "RAG"'),
        (["chunking", "c++"], 'tagged with "chunking" and tagged with "C++"'),
        (["no such"], 'tagged with "no such", which is no concept'),
        ([""], 'tagged with "", which is no concept'),
        (["x" * 400], f'tagged with "{"x" * 300}…", which is no concept'),
        (["a\r\n  b"], 'tagged with "a b", which is no concept'),
    ],
)
async def test_the_heading_says_what_was_asked_for(
    path: Path, make_datasette: MakeDatasette, names: list[str], words: str
) -> None:
    """By the name of the concept, once; a name that is no concept is said to be none."""
    datasette = make_datasette(path)
    answer = await table(datasette, _concept=names)
    assert answer["human_description_en"] == f"where {words}"
    page = await datasette.client.get(f"/k/observations?{urlencode({'_concept': names}, True)}")
    assert words in content(page).words


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("how does RAG work", 'tagged with "RAG"'),
        ("C++ or chunking?", 'tagged with "C++" or "chunking"'),
        ("storage", 'tagged with a concept in "storage", which names none'),
        ("", 'tagged with a concept in "", which names none'),
    ],
)
async def test_a_text_is_asked_for_by_the_concepts_it_names(
    path: Path, make_datasette: MakeDatasette, text: str, words: str
) -> None:
    """A row needs one of them; the heading says which they are."""
    datasette = make_datasette(path)
    answer = await table(datasette, _recall=text)
    wanted = [n for n, tags in TAGS.items() if any(word_match(tag, text) for tag in tags)]
    assert (numbers(answer), answer["count"]) == (wanted, len(wanted))
    assert answer["human_description_en"] == f"where {words}"
    answer = await table(datasette, _recall=[text, text, "nothing"])
    assert answer["human_description_en"].startswith(f"where {words} and tagged")
    assert answer["human_description_en"].endswith('in "nothing", which names none')


@pytest.mark.asyncio
async def test_filters_combine(path: Path, make_datasette: MakeDatasette) -> None:
    """With columns, conditions, full-text search, sorting, and with each other."""
    with closing(sqlite3.connect(path)) as conn:
        conn.execute('create virtual table found using fts5(body, content="observations")')
        conn.execute("insert into found (rowid, body) select id, body from observations")
        conn.commit()
    datasette = make_datasette(path)
    answer = await table(datasette, _recall="RAG", kind="finding", _sort_desc="id")
    assert numbers(answer) == [3, 1]
    heading = 'where tagged with "RAG" and kind = "finding" sorted by id descending'
    assert answer["human_description_en"] == heading
    assert numbers(await table(datasette, _recall=["RAG", "chunking and C++"])) == [1, 3]
    assert numbers(await table(datasette, _recall="chunking or C++", _concept="rag")) == [1, 3]
    assert numbers(await table(datasette, _concept="RAG", _where="id > 1")) == [2, 3, 6]
    assert numbers(await table(datasette, _concept="RAG", _search="3")) == [3]
    assert numbers(await table(datasette, _concept="RAG", id__in="1,4,6")) == [1, 6]


@pytest.mark.asyncio
async def test_pages_follow_one_another_within_the_filter(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """By the token, and all at once as streamed CSV."""
    datasette = make_datasette(path, settings={"max_returned_rows": 2, "default_page_size": 1})
    seen: list[int] = []
    token: str | None = ""
    while token is not None:
        more = {"_next": token} if token else {}
        answer = await table(datasette, _concept="RAG", _size=1, **more)
        seen += numbers(answer)
        token = answer.get("next")
    assert seen == tagged("RAG")
    lines = await csv_rows(datasette, "observations", _concept="RAG", _stream=1)
    assert [int(line["id"]) for line in lines] == tagged("RAG")


@pytest.mark.asyncio
async def test_the_form_and_the_links_of_the_page_keep_the_filter(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Whoever adds another filter, sorts or exports stays among these rows."""
    datasette = make_datasette(path, settings={"base_url": "/prefix/"})
    query = "_concept=RAG&_concept=C%2B%2B&_recall=rag"
    page = content(await datasette.client.get(f"/k/observations?{query}"))
    hidden = [(e["name"], e["value"]) for e in page.all("input", type="hidden")]
    assert {("_concept", "RAG"), ("_concept", "C++"), ("_recall", "rag")} <= set(hidden)
    kept = [link for link in page.links() if query in link]
    assert any("/prefix/k/observations.json?" in link for link in kept)
    assert any("_sort=" in link for link in kept)
    link = filters.table_link(datasette, "k", "observations", ["RAG", "C++"])
    assert link == "/prefix/k/observations?_concept=RAG&_concept=C%2B%2B"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("name", "found"),
    [("records", [1]), ("document_sections", [2]), ("documents", [1])],
)
async def test_every_tagged_table_has_the_filters(
    path: Path, make_datasette: MakeDatasette, name: str, found: list[int]
) -> None:
    """Documents are tagged through their sections."""
    assert numbers(await table(make_datasette(path), name, _concept="RAG")) == found


@pytest.mark.asyncio
async def test_items_of_one_table_are_told_apart_by_type(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """A gist is no section, whatever else is asked; the heading says so."""
    with closing(knowledge.create(tmp_path / "k.db")) as conn:
        gist = knowledge.Section(concepts=["jam"])
        sections = [knowledge.Section("A", concepts=["jam", "tea"]), knowledge.Section("B")]
        knowledge.add_document(conn, "Book", gist=gist, sections=sections)
        knowledge.add_document(conn, "Other", gist=knowledge.Section(concepts=["tea"]))
        conn.commit()
    datasette = make_datasette(tmp_path / "k.db")
    for types, found in (
        (["document_gist"], [1]),
        (["document_section"], [2]),
        (["document_gist", "document_section"], [1, 2]),
        ([], [1, 2]),
    ):
        asked = {"_concept": "jam", "_concept_type": types}
        assert numbers(await table(datasette, "document_sections", **asked)) == found
    asked = {"_recall": "tea or jam", "_concept_type": "document_gist"}
    answer = await table(datasette, "document_sections", **asked)
    assert numbers(answer) == [1, 4]
    heading = 'tagged with "jam" or "tea" and tagged as Document'
    assert answer["human_description_en"] == f"where {heading}"
    assert numbers(await table(datasette, "documents", **asked)) == [1, 2]
    refused = await datasette.client.get("/k/records.json?_concept=jam&_concept_type=gist")
    assert refused.status_code == 400
    assert refused.json()["error"] == "_concept_type is 'gist', not one of record"


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["concepts", "projects", "record_concepts"])
async def test_other_tables_refuse_the_filters(
    path: Path, make_datasette: MakeDatasette, name: str
) -> None:
    """All rows would be a wrong answer."""
    datasette = make_datasette(path)
    for query in ("_concept=RAG", "_recall=RAG"):
        response = await datasette.client.get(f"/k/{name}.json?{query}")
        assert response.status_code == 400
        assert response.json()["error"] == f"The rows of {name} cannot be filtered by concept"


@pytest.mark.asyncio
async def test_databases_without_concepts_refuse_the_filters(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """There is nothing that a row could be tagged with."""
    with closing(sqlite3.connect(tmp_path / "k.db")) as conn:
        conn.execute("create table plain (id integer primary key)")
    datasette = make_datasette(tmp_path / "k.db")
    assert (await datasette.client.get("/k/plain.json?_concept=RAG")).status_code == 400
    assert (await datasette.client.get("/k/plain.json")).status_code == 200


# --- any tagged database -------------------------------------------------------------------------


async def table_of_soup(datasette: Any) -> str:
    """The name of the table, of a database of `foreign`, that holds the items."""
    recalled = await datasette.client.get("/k/-/recall.json?concept=soup")
    name: str = recalled.json()["rows"][0]["source_type"]
    return name


@pytest.mark.asyncio
@every_layout
async def test_any_tagged_database_has_the_filters(
    tmp_path: Path, make_datasette: MakeDatasette, layout: Callable[[Path], Path]
) -> None:
    """Whatever their keys are, and where the tags stand."""
    datasette = make_datasette(layout(tmp_path / "k.db"))
    name = await table_of_soup(datasette)
    for names in (["JAM"], ["jam", "Bread"], ["soup", "jam"], ["toast"]):
        wanted = {
            title
            for title, _, _, tags in foreign.ITEMS
            if all(each.lower() in tags for each in names)
        }
        answer = await table(datasette, name, _concept=names)
        assert ({row["title"] for row in answer["rows"]}, answer["count"]) == (wanted, len(wanted))
        lines = await csv_rows(datasette, name, _concept=names)
        assert {line["title"] for line in lines} == wanted
    answer = await table(datasette, name, _recall="soup or bread", _sort="title")
    assert [row["title"] for row in answer["rows"]] == [foreign.BOTH, foreign.NEITHER]


@pytest.mark.asyncio
@every_layout
async def test_rows_are_looked_up_by_their_key(
    tmp_path: Path, make_datasette: MakeDatasette, layout: Callable[[Path], Path]
) -> None:
    """The few rows that have a concept are found without reading the table."""
    path = layout(tmp_path / "k.db")
    datasette = make_datasette(path)
    name = await table_of_soup(datasette)
    request = Request.fake(f"/k/{name}?_concept=jam")
    request.scope["actor"] = None
    added = await filters.filter_rows(datasette, request, "k", name)
    (condition,) = added.where_clauses
    with closing(sqlite3.connect(path)) as conn:
        sql = f"explain query plan select * from {name} where {condition}"
        plan = [line[3] for line in conn.execute(sql, added.params)]
    assert any(f"SEARCH {name} USING" in line and "PRIMARY KEY" in line for line in plan), plan


@pytest.mark.asyncio
async def test_views_and_some_of_the_rows(tmp_path: Path, make_datasette: MakeDatasette) -> None:
    """A view is filtered by its key; a condition of the configuration holds for the filter too."""
    path = foreign.django_many_to_many(tmp_path / "k.db")
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("create view posts as select id, title from blog_post")
    shared = {"link": "blog_post_topics", "item_key": "post_id"}
    some = {"table": "blog_post", **shared, "where": f"title <> '{foreign.ONE}'"}
    config = described("blog_topic", View={"table": "posts", **shared}, Post=some)
    datasette = make_datasette(path, config=config)
    answer = await table(datasette, "posts", _concept="jam")
    assert [row["title"] for row in answer["rows"]] == [foreign.BOTH, foreign.ONE]
    answer = await table(datasette, "blog_post", _concept="jam")
    assert [row["title"] for row in answer["rows"]] == [foreign.BOTH]


@pytest.mark.asyncio
async def test_tags_of_several_link_tables_hold_together(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """A row is tagged by any of them, and not by those that may not be seen."""
    path = foreign.executed(
        tmp_path / "k.db",
        """create table tags (id integer primary key, name text);
        create table notes (id integer primary key, title text);
        create table mine (note integer, tag integer);
        create table theirs (note integer, tag integer);
        insert into tags values (1, 'jam'), (2, 'tea');
        insert into notes values (1, 'a'), (2, 'b'), (3, 'c');
        insert into mine values (1, 1), (2, 2);
        insert into theirs values (1, 1), (2, 1), (3, 2);""",
    )
    keys = {"table": "notes", "item_key": "note", "concept_key": "tag"}
    config = described("tags", A={**keys, "link": "mine"}, B={**keys, "link": "theirs"})
    answer = await table(make_datasette(path, config=config), "notes", _concept="jam")
    assert numbers(answer) == [1, 2]
    datasette = make_datasette(path, config={**config, **private("theirs")})
    assert numbers(await table(datasette, "notes", _concept="jam")) == [1]
    datasette = make_datasette(path, config={**config, **private("theirs", "mine")})
    assert (await datasette.client.get("/k/notes.json?_concept=jam")).status_code == 403


@pytest.mark.asyncio
async def test_hostile_names_find_their_rows(tmp_path: Path, make_datasette: MakeDatasette) -> None:
    """Every name, as `table_link` writes it; the page shows it as text."""
    path = hostile.build(tmp_path / "k.db")
    datasette = make_datasette(path)
    sql = (
        "select count(*) from observation_concepts join concepts on id = concept_id where name = ?"
    )
    for name in hostile.NAMES:
        if len(name) > 2000:  # no browser asks for such an address
            continue
        ((wanted,),) = rows(path, sql, name)
        link = filters.table_link(datasette, "k", "observations", [name])
        address = f"{link.replace('?', '.json?', 1)}&_extra=count"
        answer = (await datasette.client.get(address)).json()
        assert answer["count" if IS_1_0 else "filtered_table_rows_count"] == wanted > 0
    several = filters.table_link(datasette, "k", "observations", hostile.MARKUP[:-1])
    page = await datasette.client.get(f"{several}&_facet_concept=1")
    assert page.status_code == 200
    for tag in ("<script>alert", "<img src=https://elsewhere", "<svg onload"):
        assert tag not in page.text


@pytest.mark.asyncio
async def test_a_table_is_filtered_as_it_is_now(path: Path, make_datasette: MakeDatasette) -> None:
    """Tags, names and tables that change after a request count in the next one."""
    datasette = make_datasette(path)
    assert numbers(await table(datasette, _concept="chunking")) == [1]
    with closing(sqlite3.connect(path)) as conn:
        knowledge.add_observation(conn, "New", concepts=["chunking", "brand new"])
        conn.commit()
        assert numbers(await table(datasette, _concept="chunking")) == [1, 7]
        assert numbers(await table(datasette, _recall="a brand new text")) == [7]
        conn.execute("drop table observation_concepts")
        conn.commit()
    response = await datasette.client.get("/k/observations.json?_concept=chunking")
    assert response.status_code == 400


# --- limits --------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_too_much_text_is_refused(
    path: Path, make_datasette: MakeDatasette, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is given counts; what is just as long as allowed is looked up."""
    monkeypatch.setattr(filters, "MAX_TEXT_BYTES", 10)
    datasette = make_datasette(path)
    answer = await table(datasette, _recall="é RAG é", _concept="C")
    assert '"RAG"' in answer["human_description_en"]
    for query in ({"_recall": "é RAG é!", "_concept": "C"}, {"_recall": ["123456", "12345"]}):
        asked = urlencode(query, doseq=True)
        response = await datasette.client.get(f"/k/observations.json?{asked}")
        assert response.status_code == 413
        assert "longer than 10 bytes" in response.json()["error"]


@pytest.mark.asyncio
async def test_a_filter_that_takes_too_long_is_an_error(
    path: Path, make_datasette: MakeDatasette, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a page without it."""

    async def slow(*_: object) -> None:
        raise asking.TookTooLong

    monkeypatch.setattr(asking, "read", slow)
    response = await make_datasette(path).client.get("/k/observations.json?_concept=RAG")
    assert response.status_code == 400
    assert "took too long" in response.json()["error"]


# --- permissions ---------------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize("hidden", ["observation_concepts", "concepts", "observations", "all"])
async def test_tags_that_may_not_be_seen_filter_nothing(
    path: Path, make_datasette: MakeDatasette, hidden: str
) -> None:
    """The answer is the same whether or not there is such a concept, on every surface."""
    datasette = make_datasette(path, config=private() if hidden == "all" else private(hidden))
    cookies = actor_cookie(datasette, "root")
    for parameter in ("_concept", "_recall"):
        for extension in ("", ".json", ".csv"):
            address = f"/k/observations{extension}?{parameter}"
            answers = [await datasette.client.get(f"{address}={n}") for n in ("RAG", "nothing")]
            assert [answer.status_code for answer in answers] == [403, 403]
            assert answers[0].text.replace("RAG", "nothing") == answers[1].text
            assert "Body" not in answers[0].text
            seen = await datasette.client.get(f"{address}=RAG", cookies=cookies)
            assert seen.status_code == 200
            assert "Body 6" in seen.text
    other = await datasette.client.get("/k/records.json?_concept=RAG")
    assert other.status_code == (200 if hidden.startswith("observation") else 403)


@pytest.mark.asyncio
@pytest.mark.parametrize("hidden", ["document_sections", "document_section_concepts"])
async def test_documents_need_the_tables_through_which_they_are_tagged(
    path: Path, make_datasette: MakeDatasette, hidden: str
) -> None:
    """Or the filter would tell what stands in them."""
    datasette = make_datasette(path, config=private(hidden))
    assert (await datasette.client.get("/k/documents.json")).status_code == 200
    assert (await datasette.client.get("/k/documents.json?_concept=RAG")).status_code == 403


@pytest.mark.asyncio
async def test_a_table_without_the_parameters_is_as_before(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Nothing is added to its query."""
    answer = await table(make_datasette(path))
    assert numbers(answer) == list(TAGS)
    assert answer["human_description_en"] == ""


# --- real data -----------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_the_records_of_a_text_with_facets(peps: Path, make_datasette: MakeDatasette) -> None:
    """Page, JSON and CSV of a text, with a facet of a column and the one of concepts."""
    datasette = make_datasette(peps)
    query = "_recall=why+not+remove+the+GIL&_facet=status&_facet_concept=1&_size=max"
    wanted = rows(
        peps,
        "select r.id, r.status from records r where exists (select 1 from record_concepts"
        " join concepts c on c.id = concept_id where record_id = r.id and c.name = 'GIL')",
    )
    answer = (await datasette.client.get(f"/peps/records.json?{query}&_shape=objects")).json()
    assert [(row["id"], row["status"]) for row in answer["rows"]] == wanted
    facets = answer["facet_results"]["results"] if IS_1_0 else answer["facet_results"]
    statuses = {value["value"]: value["count"] for value in facets["status"]["results"]}
    assert sum(statuses.values()) == len(wanted)
    first = facets["concepts"]["results"][0]
    assert (first["value"], first["count"]) == ("GIL", len(wanted))
    response = await datasette.client.get(f"/peps/records.csv?{query}&_col=status")
    assert response.text.split() == ["id,status", *(f"{id_},{status}" for id_, status in wanted)]
    page = content(await datasette.client.get(f"/peps/records?{query}"))
    assert f'{len(wanted)} rows where tagged with "GIL"' in page.words
    for name in ("concepts", "status"):
        shown = page.one("div", id=f"facet-{name}").all("li")
        assert len(shown) >= len(facets[name]["results"])

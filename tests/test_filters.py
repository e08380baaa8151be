"""``?_concept=``, ``?_recall=`` and ``?_facet_concept=`` on the pages of tables."""

from __future__ import annotations

import csv
import io
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

import foreign
import hostile
import knowledge
from conftest import IS_1_0, MakeDatasette, actor_cookie, file_bytes, rows
from datasette_concept_recall import word_match
from knowledge import Section
from pages import parse

TAGS = {
    1: {"RAG", "chunking"},
    2: {"RAG"},
    3: {"rag", "C++"},
    4: {"C++"},
    5: set(),
    6: {"RAG", "rag"},
}
"""Observation -> what it is tagged with; two names are one but for their letters."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A knowledge database of six observations, two records and a document."""
    file = tmp_path / "k.db"
    with closing(knowledge.create(file)) as conn:
        for number, tags in TAGS.items():
            kind = "finding" if number % 2 else "note"
            project = "P" if number < 4 else None
            body, concepts = f"Body {number}", sorted(tags)
            knowledge.add_observation(conn, body, concepts=concepts, kind=kind, project=project)
        knowledge.add_record(conn, "First", "x", concepts=["RAG"])
        knowledge.add_record(conn, "Second", "x", concepts=["chunking"])
        section = Section("Part", body="x", concepts=["RAG"])
        knowledge.add_document(conn, "Book", sections=[section])
        knowledge.add_document(conn, "Other", sections=[Section("Part", body="x")])
        conn.commit()
    return file


def named(tag: str, name: str) -> bool:
    """Whether a tag is a name, in any letter case."""
    return tag.casefold() == name.casefold()


def tagged(*names: str) -> list[int]:
    """The observations that have every one of these names."""
    return [
        number
        for number, tags in TAGS.items()
        if all(any(named(tag, name) for tag in tags) for name in names)
    ]


async def table(datasette: Any, name: str = "observations", **query: object) -> dict[str, Any]:
    """The JSON of a table page, with the same keys on both versions."""
    extras = {"_extra": "count,human_description_en,facet_results,facets_timed_out"}
    asked = urlencode({"_shape": "objects", **(extras if IS_1_0 else {}), **query}, doseq=True)
    response = await datasette.client.get(f"/k/{name}.json?{asked}")
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    answer["count"] = answer["count" if IS_1_0 else "filtered_table_rows_count"]
    if IS_1_0:
        answer["facet_results"] = answer["facet_results"]["results"]
    return answer


def counts(answer: dict[str, Any]) -> list[tuple[str, int]]:
    """The concept facet of an answer."""
    return [(v["value"], v["count"]) for v in answer["facet_results"]["concepts"]["results"]]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "names",
    [["RAG"], ["rag"], ["chunking"], ["RAG", "chunking"], ["C++", "rAg"], ["RAG", "no such"]],
)
async def test_a_row_has_every_concept_that_is_asked_for(
    path: Path, make_datasette: MakeDatasette, names: list[str]
) -> None:
    """Rows, count, CSV and heading agree; names are found in any letter case."""
    datasette = make_datasette(path)
    before = file_bytes(path)
    answer = await table(datasette, _concept=names)
    assert [row["id"] for row in answer["rows"]] == tagged(*names)
    assert answer["count"] == len(tagged(*names))
    stored = {"rag": "RAG", "rAg": "RAG", "no such": 'no such", which is no concept'}
    each = (f'tagged with "{stored.get(name, name)}"' for name in names)
    words = " and ".join(each).replace('concept"', "concept")
    assert answer["human_description_en"] == f"where {words}"
    query = urlencode({"_concept": names}, doseq=True)
    response = await datasette.client.get(f"/k/observations.csv?{query}")
    lines = list(csv.DictReader(io.StringIO(response.text)))
    assert [int(line["id"]) for line in lines] == tagged(*names)
    assert file_bytes(path) == before


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
    answer = await table(make_datasette(path), _recall=text)
    wanted = {n for n, tags in TAGS.items() if any(word_match(tag, text) for tag in tags)}
    assert {row["id"] for row in answer["rows"]} == wanted
    assert answer["human_description_en"] == f"where {words}"


@pytest.mark.asyncio
async def test_filters_combine(path: Path, make_datasette: MakeDatasette) -> None:
    """With columns, with each other, with sorting and with paging."""
    datasette = make_datasette(path)
    answer = await table(datasette, _recall="RAG", kind="finding", _sort_desc="id")
    assert [row["id"] for row in answer["rows"]] == [3, 1]
    answer = await table(datasette, _recall=["RAG", "chunking and C++"])
    assert [row["id"] for row in answer["rows"]] == [1, 3]
    seen, next_ = [], ""
    while next_ is not None:
        extra = {"_next": next_} if next_ else {}
        answer = await table(datasette, _concept="RAG", _size=1, **extra)
        seen += [row["id"] for row in answer["rows"]]
        next_ = answer.get("next")
    assert seen == tagged("RAG")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("name", "found"),
    [("records", [1]), ("document_sections", [2]), ("documents", [1])],
)
async def test_every_tagged_table_has_the_filters(
    path: Path, make_datasette: MakeDatasette, name: str, found: list[int]
) -> None:
    """Documents are tagged through their sections."""
    answer = await table(make_datasette(path), name, _concept="RAG", _facet_concept=1)
    assert [row["id"] for row in answer["rows"]] == found
    assert counts(answer) == [("RAG", 1)]


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["concepts", "projects", "record_concepts"])
async def test_other_tables_refuse_the_filters(
    path: Path, make_datasette: MakeDatasette, name: str
) -> None:
    """All rows would be a wrong answer; the facet is just not there."""
    datasette = make_datasette(path)
    response = await datasette.client.get(f"/k/{name}.json?_concept=RAG")
    assert response.status_code == 400
    assert f"The rows of {name} are not tagged" in response.text
    assert "concepts" not in (await table(datasette, name, _facet_concept=1))["facet_results"]


# --- the facet -----------------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "query", [{}, {"kind": "note"}, {"_concept": "RAG"}, {"_concept": ["RAG", "C++"]}]
)
async def test_the_facet_counts_rows_within_the_filter(
    path: Path, make_datasette: MakeDatasette, query: dict[str, Any]
) -> None:
    """Case variants are one concept, counted once for a row that has both."""
    answer = await table(make_datasette(path), _facet_concept=1, **query)
    expected = Counter(
        "RAG" if named(name, "RAG") else name
        for row in answer["rows"]
        for name in {
            next(t for t in ("RAG", *TAGS[row["id"]]) if named(t, tag)) for tag in TAGS[row["id"]]
        }
    )
    assert counts(answer) == sorted(expected.items(), key=lambda each: (-each[1], each[0]))


@pytest.mark.asyncio
async def test_a_value_of_the_facet_is_switched_on_and_off(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Its link adds the concept to the filter, or takes it away in whatever case it was given."""
    datasette = make_datasette(path)
    answer = await table(datasette, _facet_concept=1, _concept="rag", _next="2")
    on, off = {}, {}
    for value in answer["facet_results"]["concepts"]["results"]:
        pairs = parse_qsl(urlsplit(value["toggle_url"]).query)
        assert "_next" not in dict(pairs)
        chosen = [v for k, v in pairs if k == "_concept"]
        (off if value["selected"] else on)[value["value"]] = chosen
    assert off == {"RAG": []}
    assert on == {"C++": ["rag", "C++"]}, "facets are of what follows, as Datasette's own are"


@pytest.mark.asyncio
async def test_the_facet_is_suggested_and_can_be_hidden(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """The page of a tagged table offers it; on the page with it there is a link without."""
    datasette = make_datasette(path, settings={"base_url": "/prefix/"})
    page = (await datasette.client.get("/k/observations")).text
    (link,) = [a for a in parse(page).all("a") if a.words == "concepts" and "_facet" in a["href"]]
    assert "/prefix/k/observations?_facet_concept=1" in link["href"]
    page = (await datasette.client.get("/k/observations?_facet_concept=1&kind=note")).text
    hide = [a["href"] for a in parse(page).all("a", "cross")]
    assert "/prefix/k/observations?kind=note" in hide
    assert "_facet_concept" not in parse((await datasette.client.get("/k/projects")).text).text


@pytest.mark.asyncio
async def test_the_facet_is_cut_at_its_size(path: Path, make_datasette: MakeDatasette) -> None:
    """The most frequent concepts are shown, and that there are more."""
    answer = await table(make_datasette(path), _facet_concept=1, _facet_size=2)
    assert counts(answer) == [("RAG", 4), ("C++", 2)]
    assert answer["facet_results"]["concepts"]["truncated"] is True


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "build", foreign.FOUND_WITHOUT_CONFIGURATION.values(), ids=foreign.FOUND_WITHOUT_CONFIGURATION
)
async def test_any_tagged_database_has_filters_and_facet(
    tmp_path: Path, make_datasette: MakeDatasette, build: Callable[[Path], Path]
) -> None:
    """Whatever their keys are, and where the tags stand."""
    datasette = make_datasette(build(tmp_path / "k.db"))
    recalled = await datasette.client.get("/k/-/recall.json?concept=soup")
    name = recalled.json()["rows"][0]["source_type"]
    answer = await table(datasette, name, _concept="JAM", _facet_concept=1)
    assert {row["title"] for row in answer["rows"]} == {foreign.BOTH, foreign.ONE}
    assert counts(answer) == [("jam", 2), ("bread", 1)]
    answer = await table(datasette, name, _recall="soup or bread", _sort="title")
    assert [row["title"] for row in answer["rows"]] == [foreign.BOTH, foreign.NEITHER]


@pytest.mark.asyncio
async def test_views_and_some_of_the_rows(tmp_path: Path, make_datasette: MakeDatasette) -> None:
    """A view is filtered by its key; a condition of the configuration holds for the filter too."""
    path = foreign.django_many_to_many(tmp_path / "k.db")
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("create view posts as select id, title from blog_post")
    shared = {"link": "blog_post_topics", "item_key": "post_id"}
    sources = {
        "View": {"table": "posts", **shared},
        "Post": {"table": "blog_post", **shared, "where": f"title <> '{foreign.ONE}'"},
    }
    database = {"concepts": {"table": "blog_topic"}, "sources": sources}
    config = {"plugins": {"datasette-concept-recall": {"databases": {"k": database}}}}
    datasette = make_datasette(path, config=config)
    answer = await table(datasette, "posts", _concept="jam", _facet_concept=1)
    assert [row["title"] for row in answer["rows"]] == [foreign.BOTH, foreign.ONE]
    assert counts(answer) == [("jam", 2), ("bread", 1)]
    answer = await table(datasette, "blog_post", _concept="jam", _facet_concept=1)
    assert [row["title"] for row in answer["rows"]] == [foreign.BOTH]


@pytest.mark.asyncio
async def test_hostile_names_are_filtered_and_counted(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Every name that can be asked for finds its rows, by links that the facet makes."""
    path = hostile.build(tmp_path / "k.db")
    datasette = make_datasette(path)
    answer = await table(datasette, _facet_concept=1, _facet_size="max", _size=1)
    values = answer["facet_results"]["concepts"]["results"]
    assert len(values) > 20
    for value in values:
        if len(value["toggle_url"]) > 4000:
            continue
        query = parse_qsl(urlsplit(value["toggle_url"]).query)
        chosen = [v for k, v in query if k == "_concept"]
        found = await table(datasette, _concept=chosen, _size=1)
        assert found["count"] == value["count"]
    page = await datasette.client.get("/k/observations?_facet_concept=1&_facet_size=max")
    assert "<script>alert" not in page.text


# --- permissions ---------------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize("private", ["observation_concepts", "concepts"])
async def test_tags_that_may_not_be_seen_neither_filter_nor_count(
    path: Path, make_datasette: MakeDatasette, private: str
) -> None:
    """A filter is refused, whether or not there is such a concept; a facet is just not there."""
    config = {"databases": {"k": {"tables": {private: {"allow": {"id": "root"}}}}}}
    datasette = make_datasette(path, config=config)
    for query in ("_concept=RAG", "_concept=nothing", "_recall=RAG", "_recall=nothing"):
        response = await datasette.client.get(f"/k/observations.json?{query}")
        assert response.status_code == 403
        assert "RAG" not in response.text
    assert "concepts" not in (await table(datasette, _facet_concept=1))["facet_results"]
    page = (await datasette.client.get("/k/observations")).text
    assert "_facet_concept" not in page
    cookies = actor_cookie(datasette, "root")
    response = await datasette.client.get("/k/observations.json?_concept=RAG", cookies=cookies)
    assert response.status_code == 200


@pytest.mark.asyncio
async def test_a_table_without_the_parameters_is_as_before(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Nothing is added to its query."""
    answer = await table(make_datasette(path))
    assert len(answer["rows"]) == len(rows(path, "select id from observations"))
    assert answer["human_description_en"] == ""

"""What others may not see is neither found by words or by meaning, nor ranked or counted."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

import knowledge
from conftest import MakeDatasette, actor_cookie
from datasette_concept_recall.layer_search import NO_SEMANTIC
from layer_worlds import Meanings, World, build, configured, registered

ROOT = {"id": "root"}

HIDES = {
    "records": "records",
    "record_concepts": "records",
    "observations": "observations",
    "observation_concepts": "observations",
    "documents": "documents",
    "document_sections": "documents",
    "document_section_concepts": "documents",
    "projects": "projects",
}
"""Private tables of a knowledge database, and what nobody else may see then."""

OTHER_TABLES = [
    "concepts",
    "record_relations",
    "observation_relations",
    "project_concepts",
    "kb_fts",
]

INDEX_TEXT = [
    "source",
    "document",
    "document_name",
    "chunk",
    "chunk_fts",
    "concept",
    "document_concept",
]
INDEX_VECTORS = ["generation", "index_version", "vector", "setting"]

CANARIES = {
    "records": ["quokka"],
    "observations": ["wombat"],
    "documents": ["bilby"],
    "document_sections": ["numbat"],
    "projects": ["potoroo"],
    "concepts": ["dingo"],
    "index": ["platypus"],
}
"""Words that stand in nothing else."""

ITEMS = {"records", "observations", "documents", "document_sections"}

QUESTIONS = [
    "Where may a car park?",
    "Tell me about the moon",
    "Is it potoroo, quokka, wombat, bilby or numbat?",
]
Answers = dict[tuple[str, str, str], Any]
"""JSON by address, mode and question."""

MODES = ["auto", "lexical", "semantic"]
ADDRESSES = ["/knowledge", "/index", ""]


def fill(conn: sqlite3.Connection, without: str = "") -> None:
    """Something of every kind that answers each question, but for one kind; and much that is
    beside the point."""
    project = None if without == "projects" else "Potoroo"
    if without != "records":
        old = knowledge.add_record(conn, "Old quokkas park", project=project)
        new = knowledge.add_record(
            conn, "The automobile may park: quokka", concepts=["Dingo"], project=project
        )
        knowledge.supersede_record(conn, new, old)
        knowledge.add_record(conn, "A lunar quokka", "It jumps.", project=project)
        for n in range(30):
            knowledge.add_record(conn, f"Minutes {n} of no weight")
    if without != "observations":
        knowledge.add_observation(
            conn, "Each vehicle may park, wombat", concepts=["Dingo"], project=project
        )
        knowledge.add_observation(conn, "Lunar wombats")
        for n in range(30):
            knowledge.add_observation(conn, f"Remark {n} of no weight")
    if without != "documents":
        knowledge.add_document(
            conn,
            "How bilbies park a bilby",
            gist=knowledge.Section(
                summary="Numbat, car, park", status="reviewed", concepts=["Dingo"]
            ),
            sections=[
                knowledge.Section("Numbat", "A lunar numbat", summary="numbat", status="reviewed")
            ],
            project=project,
        )


@pytest.fixture(scope="module")
def world_without(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], World]:
    """The databases as they are, and as they would be had there never been something."""

    @cache
    def made(without: str) -> World:
        folder = tmp_path_factory.mktemp(f"without-{without}")
        return build(
            folder, partial(fill, without=without), note="A platypus may park a lunar automobile."
        )

    return made


def of(database: str, *tables: str) -> dict[str, Any]:
    """The block of a database in which only root may see these tables; without any, all of it."""
    allow = {"allow": ROOT}
    return {database: {"tables": dict.fromkeys(tables, allow)} if tables else allow}


def private(database: str, *tables: str) -> dict[str, Any]:
    """A configuration with such a block alone."""
    return configured(databases=of(database, *tables))


async def json_of(
    datasette: Datasette, address: str, question: str, mode: str, cookies: Any = None
) -> tuple[int, str, Any]:
    """Status, whole text and JSON of an answer without the echo of its question."""
    response = await datasette.client.get(
        f"{address}/-/recall.json",
        params={"q": question, "mode": mode, "_size": "100"},
        cookies=cookies,
    )
    answer = response.json()
    answer.pop("near_misses", None)
    return response.status_code, response.text, answer


async def answers(
    datasette: Datasette,
    addresses: Collection[str] = ADDRESSES,
    cookies: Any = None,
    questions: Collection[str] = QUESTIONS,
) -> Answers:
    """The answer to every question in every mode."""
    return {
        (address, mode, question): (await json_of(datasette, address, question, mode, cookies))[2]
        for address in addresses
        for mode in MODES
        for question in questions
    }


Expect = Callable[..., Awaitable[Answers]]


@pytest.fixture(scope="module")
def known() -> dict[object, Answers]:
    """What was expected already."""
    return {}


@pytest.fixture
def expect(make_datasette: MakeDatasette, known: dict[object, Answers]) -> Expect:
    """What everybody is answered who may see all that is served, asked for once."""

    async def expected(files: Sequence[Path], addresses: Collection[str]) -> Answers:
        key = tuple(files), tuple(addresses)
        if key not in known:
            datasette = make_datasette(*files, config=configured())
            known[key] = await answers(datasette, addresses)
        return known[key]

    return expected


async def whole_text(datasette: Datasette, addresses: Collection[str], cookies: Any = None) -> str:
    """All that is said, in any form, to questions that have none of the words of the canaries."""
    found = []
    for address in addresses:
        for form, question, mode in (
            *((".json", question, mode) for question in QUESTIONS[:2] for mode in MODES),
            *((".md", QUESTIONS[0], mode) for mode in MODES),
            ("", QUESTIONS[0], "auto"),
        ):
            response = await datasette.client.get(
                f"{address}/-/recall{form}", params={"q": question, "mode": mode}, cookies=cookies
            )
            found.append(response.text)
    return "\n".join(found).lower()


def seen(text: str) -> set[str]:
    """Whose canaries stand in a text."""
    return {of for of, words in CANARIES.items() if any(word in text for word in words)}


@pytest.mark.asyncio
async def test_root_is_shown_everything(
    make_datasette: MakeDatasette, expect: Expect, world_without: Callable[[str], World]
) -> None:
    """What the other tests miss is there for who may see it, whatever is private."""
    world = world_without("nothing")
    with registered(Meanings()):
        everyone = await expect(world, ADDRESSES)
        for answer in everyone.values():
            assert answer["warnings"] == []
        for config in (
            configured(databases={**of("knowledge", *HIDES), **of("index", *INDEX_TEXT)}),
            private("knowledge"),
        ):
            datasette = make_datasette(*world, config=config)
            root = actor_cookie(datasette, "root")
            assert await answers(datasette, cookies=root) == everyone
            for address in ADDRESSES:
                text = await whole_text(datasette, [address], root)
                more = {"/knowledge": {"projects"}, "/index": {"index"}, "": {"projects", "index"}}
                assert seen(text) == ITEMS | more[address]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("table", "with_index"),
    [(table, on) for table in HIDES for on in (True, False) if not on or table != "projects"],
)
async def test_what_is_private_might_as_well_never_have_been_there(
    make_datasette: MakeDatasette,
    expect: Expect,
    world_without: Callable[[str], World],
    table: str,
    with_index: bool,
) -> None:
    """Rows, totals, ranks, words and similarities are those of a database that never had it."""
    hidden = HIDES[table]
    world, twin = world_without("nothing"), world_without(hidden)
    addresses = ["/knowledge"]
    files = [*world] if with_index else [world.knowledge]
    others = [*twin] if with_index else [twin.knowledge]
    with registered(Meanings()):
        datasette = make_datasette(*files, config=private("knowledge", table))
        text = await whole_text(datasette, addresses)
        kinds = ITEMS | {"projects"}
        gone = {hidden, "document_sections"} if hidden == "documents" else {hidden}
        assert seen(text) == kinds - gone
        expected = await expect(others, addresses)
        found = await answers(datasette, addresses)
        for key, answer in expected.items():
            assert unordered(found[key]) == unordered(answer), key


def unordered(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what depends on the order of what its words found, which is another
    test's."""
    rows = {}
    for row in answer["rows"]:
        layers = [
            {**h, "rank": h["rank"] if h["layer"] == "semantic" else 0} for h in row["layers"]
        ]
        rows[row["ref"]] = {**row, "rank": 0, "project_id": None, "layers": layers}
    return {**answer, "rows": rows}


@pytest.mark.asyncio
async def test_the_name_of_a_private_project_finds_nothing(
    make_datasette: MakeDatasette, world_without: Callable[[str], World]
) -> None:
    """Who guesses it is not told which items are of it: neither by words, nor by their order."""
    world = world_without("nothing")
    with registered(Meanings()):
        datasette = make_datasette(*world, config=private("knowledge", "projects"))
        for mode in MODES:
            for question in ("What of Potoroo?", "potoroo potoroos"):
                _, _, answer = await json_of(datasette, "/knowledge", question, mode)
                assert (answer["rows"], answer["total"]) == ([], 0)
        root = actor_cookie(datasette, "root")
        _, _, answer = await json_of(datasette, "/knowledge", "What of Potoroo?", "lexical", root)
        assert answer["total"] > 2


@pytest.mark.asyncio
async def test_where_projects_are_private_nothing_is_found_by_vectors_made_of_their_names(
    make_datasette: MakeDatasette, expect: Expect, world_without: Callable[[str], World]
) -> None:
    """Words find what they would find if no item had a project; the vectors of notes, which have
    none, are still asked."""
    world, twin = world_without("nothing"), world_without("projects")
    with registered(Meanings()):
        expected = await expect([*twin], ["/knowledge"])
        datasette = make_datasette(*world, config=private("knowledge", "projects"))
        found = await answers(datasette, ["/knowledge"])
        for key, answer in expected.items():
            _, mode, _ = key
            if mode == "lexical":
                assert unordered(found[key]) == unordered(answer), key
            if mode == "semantic":
                assert (found[key]["rows"], found[key]["total"]) == ([], 0), key
        _, _, answer = await json_of(datasette, "/index", QUESTIONS[0], "semantic")
        assert [row["title"] for row in answer["rows"]] == ["moon"]
        root = actor_cookie(datasette, "root")
        _, _, answer = await json_of(datasette, "/knowledge", "What of Potoroo?", "semantic", root)
        assert answer["total"] > 2


@pytest.mark.asyncio
@pytest.mark.parametrize("table", sorted(ITEMS))
async def test_nothing_of_a_private_table_comes_from_the_copy_in_an_index(
    make_datasette: MakeDatasette, world_without: Callable[[str], World], table: str
) -> None:
    """Who may see the index, but not the table that its rows come from, is not found them."""
    world = world_without("nothing")
    with registered(Meanings()):
        datasette = make_datasette(*world, config=private("knowledge", table))
        for address in ("/index", ""):
            assert table not in seen(await whole_text(datasette, [address])), address


@pytest.mark.asyncio
@pytest.mark.parametrize("table", OTHER_TABLES)
@pytest.mark.parametrize("with_index", [True, False])
async def test_tables_around_the_items_are_private_too(
    make_datasette: MakeDatasette,
    world_without: Callable[[str], World],
    table: str,
    with_index: bool,
) -> None:
    """Without the concepts nobody may recall; without the full text its words are not searched;
    who supersedes whom is not told."""
    world = world_without("nothing")
    files = [*world] if with_index else [world.knowledge]
    with registered(Meanings()):
        datasette = make_datasette(*files, config=private("knowledge", table))
        status, text, answer = await json_of(datasette, "/knowledge", QUESTIONS[0], "auto")
        if table == "concepts":
            assert status == 403
            assert seen(text) == set()
            everywhere = await whole_text(datasette, [""])
            assert seen(everywhere) <= {"index"} | (set(CANARIES) if with_index else set())
            return
        assert status == 200
        if table == "kb_fts":
            everyone = make_datasette(*files, config=configured())
            expected = (await json_of(everyone, "/knowledge", QUESTIONS[0], "auto"))[2]
            assert answer == (expected if with_index else {**expected, "rows": [], "total": 0})
        if table == "record_relations":
            assert "superseded_by" in text
            assert '"record:2"' not in json.dumps([row["superseded_by"] for row in answer["rows"]])


@pytest.mark.asyncio
@pytest.mark.parametrize("table", INDEX_TEXT)
async def test_an_index_of_which_text_is_private_answers_nobody_else(
    make_datasette: MakeDatasette, expect: Expect, world_without: Callable[[str], World], table: str
) -> None:
    """Its databases are answered as if there were none, and it is itself silent."""
    world = world_without("nothing")
    meanings = Meanings()
    with registered(meanings):
        datasette = make_datasette(*world, config=private("index", table))
        expected = await expect([world.knowledge], ["/knowledge"])
        assert await answers(datasette, ["/knowledge"]) == expected
        for form in (".json", ".md", ""):
            response = await datasette.client.get(
                f"/index/-/recall{form}", params={"q": QUESTIONS[0]}
            )
            assert response.status_code in (200, 403)
            assert seen(response.text.lower()) == set()
        for question in QUESTIONS:
            status, _, answer = await json_of(datasette, "/index", question, "auto")
            assert status == 403 or (answer["rows"], answer["total"]) == ([], 0)
        everywhere = await answers(datasette, [""], questions=QUESTIONS[:2])
        for (_, mode, question), answer in everywhere.items():
            alone = expected["/knowledge", mode, question]
            assert [row["ref"] for row in answer["rows"]] == [row["ref"] for row in alone["rows"]]
            assert [row["layers"] for row in answer["rows"]] == [
                row["layers"] for row in alone["rows"]
            ]
            assert answer["total"] == alone["total"]
        assert meanings.questions == []


@pytest.mark.asyncio
@pytest.mark.parametrize("table", INDEX_VECTORS)
async def test_an_index_of_which_vectors_are_private_answers_by_words(
    make_datasette: MakeDatasette, expect: Expect, world_without: Callable[[str], World], table: str
) -> None:
    """As one that has no vectors does, whoever asks for them; and no embedder is asked."""
    world = world_without("nothing")
    meanings = Meanings()
    with registered(meanings):
        everyone = await expect(world, ADDRESSES)
        meanings.asked.clear()
        datasette = make_datasette(*world, config=private("index", table))
        found = await answers(datasette, questions=QUESTIONS[:2])
        for (address, mode, question), answer in found.items():
            assert mode == "semantic" or answer["warnings"] == []
            assert all(warning.endswith(NO_SEMANTIC) for warning in answer["warnings"])
            assert {hit["layer"] for row in answer["rows"] for hit in row["layers"]} <= {"lexical"}
            if mode == "semantic":
                assert (answer["rows"], answer["total"]) == ([], 0)
            if mode == "lexical":
                assert answer == everyone[address, mode, question]
        assert meanings.questions == []


@pytest.mark.asyncio
async def test_a_private_index_leaves_no_trace(
    make_datasette: MakeDatasette, expect: Expect, world_without: Callable[[str], World]
) -> None:
    """It is refused, and everything else is as if it were not served."""
    world = world_without("nothing")
    with registered(Meanings()):
        datasette = make_datasette(*world, config=private("index"))
        for mode in MODES:
            for form in (".json", ".md", ""):
                address = f"/index/-/recall{form}?q=park&mode={mode}"
                response = await datasette.client.get(address)
                assert response.status_code == 403
                assert seen(response.text.lower()) == set()
        addresses = ["/knowledge", ""]
        assert await answers(datasette, addresses) == await expect([world.knowledge], addresses)
        text = await whole_text(datasette, [""])
        assert "platypus" not in text
        assert "/index" not in text


@pytest.mark.asyncio
async def test_a_private_knowledge_database_leaves_no_trace(
    make_datasette: MakeDatasette, world_without: Callable[[str], World]
) -> None:
    """It is refused, and nothing of it is found by the copy of its rows in an index."""
    world = world_without("nothing")
    with registered(Meanings()):
        datasette = make_datasette(*world, config=private("knowledge"))
        for form in (".json", ".md", ""):
            response = await datasette.client.get(f"/knowledge/-/recall{form}?q=park")
            assert response.status_code == 403
            assert seen(response.text.lower()) == set()
        for address in ("/index", ""):
            text = await whole_text(datasette, [address])
            assert "platypus" in text
            assert "/knowledge" not in text
            assert seen(text) == {"index"}, address


STREETS = "in the morning, when it is still quiet in all the streets"


def filled(conn: sqlite3.Connection, hidden: str, number: int) -> None:
    """Two records of one word each, others of none, and so many observations that may be hidden."""
    for title in ("Park there", "Bench here", "The automobile"):
        knowledge.add_record(conn, f"{title} {STREETS}")
    for n in range(20):
        knowledge.add_record(conn, f"Minutes {n} of what was said {STREETS}")
    for n in range(number):
        knowledge.add_observation(conn, f"{hidden} {n} {STREETS}")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("mode", "question", "hidden", "with_index", "expected"),
    [
        ("lexical", "park bench", "Park", True, {"record:1", "record:2"}),
        ("lexical", "park bench", "Park", False, {"record:1", "record:2"}),
        ("semantic", "any car", "Vehicle", True, {"record:3"}),
    ],
)
async def test_hidden_rows_have_no_say_in_what_is_found_of_others(
    make_datasette: MakeDatasette,
    tmp_path: Path,
    mode: str,
    question: str,
    hidden: str,
    with_index: bool,
    expected: set[str],
) -> None:
    """What is found, and how much, is told by what may be seen, however much is hidden; the order
    of BM25 is not, since it knows how rare a word is in all of the index."""
    found = {}
    for number in (0, 40):
        folder = tmp_path / str(number)
        folder.mkdir()
        world = build(folder, partial(filled, hidden=hidden, number=number))
        files = [*world] if with_index else [world.knowledge]
        with registered(Meanings()):
            datasette = make_datasette(*files, config=private("knowledge", "observations"))
            answer = (await json_of(datasette, "/knowledge", question, mode))[2]
        found[number] = {row["ref"] for row in answer["rows"]}
        assert answer["total"] == len(expected)
    assert found == {0: expected, 40: expected}

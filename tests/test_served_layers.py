"""Words and meaning behind the concepts, as Datasette serves them: over HTTP and by the tools."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette
from datasette.utils import StartupError

import knowledge
from browser import served
from conftest import IS_1_0, MakeDatasette
from datasette_concept_recall import reconciling
from datasette_concept_recall.errors import RecallError
from datasette_concept_recall.indexing.embedding import EmbedderFailure
from datasette_concept_recall.indexing.store import Store
from datasette_concept_recall.instances import PLUGIN, vocabulary_for
from datasette_concept_recall.layer_search import NO_SEMANTIC
from datasette_concept_recall.query_vectors import QueryVectors
from datasette_concept_recall.reconciling import Reconciler
from datasette_concept_recall.tools import TOOLS
from indexing import FakeClock, write_note
from layer_worlds import (
    AUTOMOBILE,
    BICYCLES,
    EVERYWHERE,
    LAYERS_MODES,
    PARKING,
    PATIENT,
    REFS,
    WIDTH,
    WITHOUT,
    Fallback,
    Meanings,
    World,
    ask,
    build,
    configured,
    eventually,
    fill,
    layer_names,
    meaning_of,
    reasons,
    registered,
    settled,
    titles,
)
from mcp_client import called, mcp_session, refused
from pages import content
from served import assert_error


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """One that no test changes."""
    return build(tmp_path_factory.mktemp("world"))


# --- what is found -------------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("mode", "found"),
    [
        ("auto", {BICYCLES: ["lexical", "semantic"], AUTOMOBILE: ["semantic"]}),
        ("lexical", {BICYCLES: ["lexical"]}),
        ("semantic", {AUTOMOBILE: ["semantic"], BICYCLES: ["semantic"]}),
        ("concept", {}),
    ],
)
@pytest.mark.parametrize("database", EVERYWHERE)
async def test_a_question_without_concepts_is_answered_by_words_and_by_meaning(
    make_datasette: MakeDatasette,
    world: World,
    meanings: Meanings,
    database: str | None,
    mode: str,
    found: dict[str, list[str]],
) -> None:
    """In a knowledge database, its index and both, each row says which layers found it."""
    datasette = make_datasette(*world, config=configured())
    answer = await ask(datasette, database, PARKING, mode=mode)
    assert [(row["title"], layer_names(row)) for row in answer["rows"]] == list(found.items())
    assert answer["total"] == len(found)
    assert [row["rank"] for row in answer["rows"]] == list(range(1, len(found) + 1))
    assert answer["concepts"] == []
    assert answer["warnings"] == []
    assert answer["mode"] == mode


@pytest.mark.asyncio
async def test_a_layer_says_why_it_found_a_row(
    make_datasette: MakeDatasette, world: World, meanings: Meanings
) -> None:
    """Its rank among what that layer found, the words in the row, and how similar they are."""
    datasette = make_datasette(*world, config=configured())
    bicycles, automobile = (await ask(datasette, "knowledge", PARKING))["rows"]
    lexical, near = bicycles["layers"]
    assert lexical == {"layer": "lexical", "rank": 1, "words": ["park"], "similarity": None}
    assert (near["rank"], near["words"]) == (2, ["park"])
    assert near["similarity"] < 0.5
    (only,) = automobile["layers"]
    assert (only["layer"], only["rank"], only["words"]) == ("semantic", 1, [])
    assert 0.9 < only["similarity"] < 1
    (named,) = (await ask(datasette, "knowledge", "Yard", mode="concept"))["rows"]
    assert named["layers"] == [{"layer": "concept", "rank": 1, "words": [], "similarity": None}]


@pytest.mark.asyncio
async def test_a_question_with_no_answer_has_none(
    make_datasette: MakeDatasette, world: World, meanings: Meanings
) -> None:
    """What is near to nothing and shares no word with anything admits nothing."""
    datasette = make_datasette(*world, config=configured())
    for database in EVERYWHERE:
        for question in ("What about quarks?", "what is it that we do", "?!", '"NEAR(* OR'):
            answer = await ask(datasette, database, question)
            assert (answer["rows"], answer["total"]) == ([], 0), question


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "text",
    [
        'park" OR "1',
        "park NEAR/2 (car)",
        "park* -car ^body:",
        "park 🚲 🚗",
        "park\x00car",
        "park " * 2_000,
    ],
)
async def test_any_text_may_be_asked(
    make_datasette: MakeDatasette, world: World, meanings: Meanings, text: str
) -> None:
    """No character of a question means anything to the full text."""
    datasette = make_datasette(*world, config=configured())
    for database in EVERYWHERE:
        path = f"/{database}/-/recall.json" if database else "/-/recall.json"
        response = await datasette.client.post(path, json={"q": text})
        assert response.status_code == 200
        assert BICYCLES in titles(response.json())


@pytest.mark.asyncio
async def test_an_unknown_mode_is_refused(make_datasette: MakeDatasette, world: World) -> None:
    """The error has the form of all others, and the page says it beside its form."""
    datasette = make_datasette(*world)
    for database in ("/knowledge", "/index", ""):
        response = await datasette.client.get(f"{database}/-/recall.json?q=car&mode=magic")
        assert_error(response, 400, "mode is 'magic', not one of auto, concept, lexical, semantic")
        assert (await datasette.client.get(f"{database}/-/recall?mode=x")).status_code == 400


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", LAYERS_MODES)
async def test_without_an_index_the_full_text_of_the_file_answers(
    make_datasette: MakeDatasette, world: World, meanings: Meanings, mode: str
) -> None:
    """By words alone, also in the other number of a noun; by meaning there is nobody to ask."""
    datasette = make_datasette(world.knowledge, config=configured())
    answer = await ask(datasette, "knowledge", "A bicycle and an umbrella", mode=mode)
    found = [] if mode == "semantic" else ["record:2", "document_gist:1"]
    assert sorted(row["ref"] for row in answer["rows"]) == sorted(found)
    assert all(layer_names(row) == ["lexical"] for row in answer["rows"])
    assert meanings.questions == []


@pytest.mark.asyncio
async def test_an_index_of_some_tables_takes_nothing_away_from_others(
    make_datasette: MakeDatasette, tmp_path: Path, meanings: Meanings
) -> None:
    """What no index holds is found by the full text of its file, as without an index."""
    world = build(tmp_path, index=False)
    with closing(Store(world.library, FakeClock())) as store:
        store.set_setting("embedder", "meanings")
        origin = str(world.knowledge.resolve())
        store.add_source("rows", "rows", origin, {"tables": ["records"]})
    world.run()
    datasette = make_datasette(*world, config=configured())
    for question, expected in (
        ("bicycles", ["record:2"]),
        ("an umbrella", ["document_gist:1"]),
        ("umbrellas and bicycles", ["document_gist:1", "record:2"]),
    ):
        for mode in ("auto", "lexical"):
            answer = await ask(datasette, "knowledge", question, mode=mode)
            assert sorted(row["ref"] for row in answer["rows"]) == expected


@pytest.mark.asyncio
async def test_without_an_index_and_full_text_only_concepts_answer(
    make_datasette: MakeDatasette, tmp_path: Path, meanings: Meanings
) -> None:
    """A file of a time before there was full text is asked as it always was; who asks for meaning
    alone is told that there is none."""
    path = tmp_path / "old.db"
    with closing(knowledge.create(path, "without-uuids")) as conn, conn:
        knowledge.add_observation(conn, "Bicycles park inside", concepts=["Hall"])
    datasette = make_datasette(path, config=configured())
    for mode in LAYERS_MODES:
        answer = await ask(datasette, "old", "bicycles", mode=mode)
        told = [NO_SEMANTIC] if mode == "semantic" else []
        assert (answer["rows"], answer["warnings"]) == ([], told)
    assert (await ask(datasette, "old", "hall"))["total"] == 1


@pytest.mark.asyncio
async def test_an_index_without_vectors_answers_by_words(
    make_datasette: MakeDatasette, own_world: World, meanings: Meanings
) -> None:
    """Nothing is amiss where nobody wanted an embedder."""
    own_world.change("update setting set value = 'null' where name = 'embedder'", file="library")
    datasette = make_datasette(*own_world, config=configured())
    for database in EVERYWHERE:
        answer = await ask(datasette, database, PARKING)
        assert (titles(answer), answer["warnings"]) == ([BICYCLES], [])
    assert meanings.questions == []


@pytest.mark.asyncio
@pytest.mark.parametrize("database", EVERYWHERE)
async def test_what_concepts_found_comes_first_and_once(
    make_datasette: MakeDatasette, world: World, meanings: Meanings, database: str | None
) -> None:
    """Other layers add what concepts did not find, behind it."""
    datasette = make_datasette(*world, config=configured())
    answer = await ask(datasette, database, "Which car stands in the hall, and do bicycles park?")
    named = [row for row in answer["rows"] if layer_names(row) == ["concept"]]
    assert [row["title"] for row in named] == titles(answer)[: len(named)]
    assert BICYCLES in [row["title"] for row in named]
    assert AUTOMOBILE in titles(answer)[len(named) :]
    assert len(answer["rows"]) == answer["total"]
    beside = titles(answer)[len(named) :]
    assert len(set(beside)) == len(beside)
    assert BICYCLES not in beside
    assert [count["name"] for count in answer["concepts"]] == ["Hall"]


@pytest.mark.asyncio
async def test_concepts_that_fill_the_limit_are_all_that_is_asked(
    make_datasette: MakeDatasette, world: World, meanings: Meanings
) -> None:
    """An embedder is asked nothing as long as concepts find enough."""
    datasette = make_datasette(*world, config=configured())
    answer = await ask(datasette, "knowledge", "Remarks about a car", _size="24")
    assert {tuple(layer_names(row)) for row in answer["rows"]} == {("concept",)}
    assert (answer["total"], meanings.questions) == (24, [])
    more = await ask(datasette, "knowledge", "Remarks about a car", _size="25")
    assert (more["total"], titles(more)[-1]) == (25, AUTOMOBILE)


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", ["auto", "lexical", "semantic"])
@pytest.mark.parametrize("database", EVERYWHERE)
async def test_pages_give_every_item_once(
    make_datasette: MakeDatasette,
    world: World,
    meanings: Meanings,
    database: str | None,
    mode: str,
) -> None:
    """Ranks go on from page to page, and the pages together are what one large page holds."""
    datasette = make_datasette(*world, config=configured())
    question = "Of what weight is the automobile in the hall?"
    whole = await ask(datasette, database, question, mode=mode, _size="100")
    found: list[dict[str, Any]] = []
    token = None
    while token is not None or not found:
        more: dict[str, str] = {"_next": token} if token else {}
        page = await ask(datasette, database, question, mode=mode, _size="6", **more)
        assert page["total"] == whole["total"]
        found += page["rows"]
        token = page["next"]
        assert len(found) < 100
    assert len(found) == whole["total"] > 12
    assert [row["rank"] for row in found] == list(range(1, len(found) + 1))
    assert [(row["ref"], row["layers"]) for row in found] == [
        (row["ref"], row["layers"]) for row in whole["rows"]
    ]


@pytest.mark.asyncio
async def test_kinds_and_projects_narrow_what_layers_found(
    make_datasette: MakeDatasette, world: World, meanings: Meanings
) -> None:
    """What is counted and ranked is what the answer is narrowed to."""
    datasette = make_datasette(*world, config=configured())
    question = "Of what weight is a car that can park?"

    async def found(**narrowed: str) -> set[str]:
        answer = await ask(datasette, "knowledge", question, _size="100", **narrowed)
        assert answer["total"] == len(answer["rows"])
        for layer in ("lexical", "semantic"):
            ranks = [
                h["rank"] for row in answer["rows"] for h in row["layers"] if h["layer"] == layer
            ]
            assert sorted(ranks) == list(range(1, len(ranks) + 1))
        return {row["ref"].partition(":")[0] for row in answer["rows"]} | {
            row["project"] for row in answer["rows"] if row["project"]
        }

    assert await found() == {"record", "observation", "Home", "Diary"}
    assert await found(type="record") == {"record", "Home"}
    assert await found(type="observation") == {"observation", "Diary"}
    assert await found(project="Home") == {"record", "Home"}
    assert await found(project="Home", type="observation") == set()
    response = await datasette.client.get("/knowledge/-/recall.json?q=car&project=Nowhere")
    assert response.status_code == 400
    notes = await ask(datasette, "index", "The moon and a car", project="notes")
    assert titles(notes) == ["moon"]
    assert titles(await ask(datasette, "index", PARKING, type="note")) == []


@pytest.mark.asyncio
async def test_a_project_is_narrowed_to_beyond_the_first_candidates(
    make_datasette: MakeDatasette, tmp_path: Path, meanings: Meanings
) -> None:
    """One item of a project is found though many others have more of the words."""

    def fill(conn: sqlite3.Connection) -> None:
        for n in range(60):
            knowledge.add_observation(conn, f"Parking, parking, {n}", project="Town")
        knowledge.add_observation(conn, "In the village parking is free of charge", project="Out")

    world = build(tmp_path, fill)
    for files in (world, [world.knowledge]):
        datasette = make_datasette(*files, config=configured())
        answer = await ask(datasette, "knowledge", "parking", project="Out")
        assert [row["ref"] for row in answer["rows"]] == ["observation:61"]


@pytest.mark.asyncio
async def test_several_databases_name_a_row_once(
    make_datasette: MakeDatasette, world: World, meanings: Meanings
) -> None:
    """A row of a database that is asked itself is not found once more as a document of an index."""
    datasette = make_datasette(*world, config=configured())
    for mode in LAYERS_MODES:
        question = "A car that can park, vehicles, and the moon, umbrellas, weight"
        answer = await ask(datasette, None, question, mode=mode, _size="100")
        named = [(row["database"], row["ref"]) for row in answer["rows"]]
        assert {ref.partition(":")[0] for of, ref in named if of == "index"} <= {"note"}
        assert len(set(named)) == len(named) == answer["total"]
        assert ("knowledge", "record:2") in named
    answer = await ask(datasette, None, "A car that can park, and the moon", _size="100")
    assert sorted(titles(answer)) == sorted([AUTOMOBILE, BICYCLES, "moon"])


@pytest.mark.asyncio
async def test_a_context_says_by_what_an_item_was_found(
    make_datasette: MakeDatasette, world: World, meanings: Meanings
) -> None:
    """In Markdown and within a budget; what concepts found needs no such line."""
    datasette = make_datasette(*world, config=configured())
    for path in ("/knowledge/-/recall.md", "/index/-/recall.md", "/-/recall.md"):
        text = (await datasette.client.get(path, params={"q": PARKING})).text
        assert "- found by: words (park)" in text
        assert "- found by: meaning\n" in text
        assert AUTOMOBILE in text
    answer = await ask(datasette, "knowledge", PARKING, budget="500")
    assert [row["title"] for row in answer["rows"]] == [BICYCLES, AUTOMOBILE]
    assert "found by: words (park)" in answer["context"]
    named = (await datasette.client.get("/knowledge/-/recall.md?q=Yard&mode=concept")).text
    assert "found by" not in named


@pytest.mark.asyncio
async def test_the_page_shows_by_what_an_item_was_found(
    make_datasette: MakeDatasette, world: World, meanings: Meanings
) -> None:
    """There is a label beside each such item, though no concept was found."""
    datasette = make_datasette(*world, config=configured())
    for path in ("/knowledge/-/recall", "/index/-/recall", "/-/recall"):
        page = content(await datasette.client.get(path, params={"q": PARKING}))
        labels = [label.words for label in page.all("p", "recall-found")]
        assert labels[0].startswith("Found by words: park; meaning: ")
        assert labels[1].startswith("Found by meaning: 0.9")
        assert "2 items found by words and meaning" in page.words
        assert not page.all("ul", "recall-chips", aria_labelledby="recall-concepts")
        assert [e.words for e in page.all("h3", "recall-title")] == [BICYCLES, AUTOMOBILE]
        for link in page.one("ol", "recall-items").links():
            assert (await datasette.client.get(link.partition("#")[0])).status_code == 200


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", ["auto", "concept", "lexical", "semantic"])
async def test_the_page_keeps_the_mode(
    make_datasette: MakeDatasette, world: World, meanings: Meanings, mode: str
) -> None:
    """The choice stands in the form, and every link to the same question has it."""
    datasette = make_datasette(*world, config=configured())
    query = f"q=weight+park&mode={mode}&_size=2"
    page = content(await datasette.client.get(f"/knowledge/-/recall?{query}"))
    (chosen,) = [
        o for o in page.one("select", name="mode").all("option") if "selected" in o.attributes
    ]
    assert chosen["value"] == mode
    links = [link for link in page.links() if "/-/recall" in link and "q=weight" in link]
    assert all((f"mode={mode}" in link) == (mode != "auto") for link in links)
    assert links
    empty = content(await datasette.client.get(f"/knowledge/-/recall?mode={mode}"))
    (chosen,) = [
        o for o in empty.one("select", name="mode").all("option") if "selected" in o.attributes
    ]
    assert chosen["value"] == mode


# --- the tools -----------------------------------------------------------------------------------

(RECALL,) = [tool for tool in TOOLS if tool.name == "recall"]


@pytest.mark.asyncio
async def test_a_model_is_answered_by_every_layer(
    make_datasette: MakeDatasette, world: World, meanings: Meanings
) -> None:
    """The tool takes the mode, and says of each item by what it was found."""
    datasette = make_datasette(*world, config=configured())
    await datasette.invoke_startup()
    for mode, expected in (
        ("", [BICYCLES, AUTOMOBILE]),
        ("lexical", [BICYCLES]),
        ("semantic", [AUTOMOBILE, BICYCLES]),
        ("concept", []),
    ):
        answer = await RECALL.call(datasette, None, {"text": PARKING, "mode": mode})
        assert [item["title"] for item in answer["items"]] == expected
        assert answer["total"] == len(expected)
        assert all(item["found_by"] for item in answer["items"])
    first, second = (await RECALL.call(datasette, None, {"text": PARKING}))["items"]
    assert first["found_by"][0] == "words: park"
    assert [why.partition(":")[0] for why in second["found_by"]] == ["meaning"]
    with pytest.raises(RecallError, match="mode is 'magic', not one of auto"):
        await RECALL.call(datasette, None, {"text": PARKING, "mode": "magic"})
    meanings.answer = broken
    answer = await RECALL.call(datasette, None, {"text": "Another car to park"})
    assert [item["title"] for item in answer["items"]] == [BICYCLES]
    assert "Answered without the semantic layer" in answer["warnings"][0]


def broken(text: str) -> Any:
    raise ValueError("the model is gone")


PLUGIN_FILE = """
import sys
sys.path.insert(0, {tests!r})
from datasette import hookimpl
from layer_worlds import Meanings

@hookimpl
def register_embedders(datasette):
    return [Meanings()]
"""


@pytest.mark.asyncio
async def test_a_client_of_mcp_is_answered_by_every_layer(world: World, tmp_path: Path) -> None:
    """By a session over HTTP with a process in which another plugin brings in the embedder."""
    plugins = write_note(
        tmp_path / "plugins", "meanings.py", PLUGIN_FILE.format(tests=str(Path(__file__).parent))
    )
    config = write_note(tmp_path, "config.json", json.dumps(configured()))
    options = ["--config" if IS_1_0 else "--metadata", str(config)]
    options += ["--plugins-dir", str(plugins.parent)]
    with served(tmp_path, *world, options=options) as address:
        async with mcp_session(address) as client:
            answer = await called(client, "recall", text=PARKING)
            lexical = await called(client, "recall", text=PARKING, mode="lexical", budget=300)
            message = await refused(client, "recall", text=PARKING, mode="magic")
    assert [item["title"] for item in answer["items"]] == [BICYCLES, AUTOMOBILE]
    assert "found by: words (park)" in lexical["context"]
    assert AUTOMOBILE not in lexical["context"]
    assert "magic" in message


# --- an embedder that is gone, slow or wrong -----------------------------------------------------


def sleeping(text: str) -> Any:
    time.sleep(0.4)
    return [meaning_of(text)]


FAULTS: dict[str, tuple[Callable[[str], Any], str]] = {
    "raises": (broken, "ValueError: the model is gone"),
    "NaN": (lambda text: [[math.nan] * WIDTH], "the vector of the question has no direction"),
    "infinite": (lambda text: [[math.inf] * WIDTH], "the vector of the question has no direction"),
    "zeros": (lambda text: [[0.0] * WIDTH], "the vector of the question has no direction"),
    "another width": (
        lambda text: [[1.0, 2.0]],
        "it gave 2 numbers, and the index has vectors of 12",
    ),
    "no vector": (lambda text: [], "came for one question"),
    "two vectors": (lambda text: [meaning_of(text)] * 2, "came for one question"),
    "no numbers": (lambda text: [["a"] * WIDTH], "ValueError"),
    "None": (lambda text: None, "came for one question"),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_failing_embedder_fails_no_recall(
    make_datasette: MakeDatasette, world: World, meanings: Meanings, fault: str
) -> None:
    """The answer comes by words and says why not by meaning; a repaired one works at once."""
    datasette = make_datasette(*world, config=configured())
    answer, problem = FAULTS[fault]
    for number, database in enumerate(EVERYWHERE if fault == "raises" else EVERYWHERE[:1]):
        meanings.answer = answer
        question = f"{PARKING} {'really ' * number}"
        for mode, expected in (("auto", [BICYCLES]), ("lexical", [BICYCLES]), ("semantic", [])):
            found = await ask(datasette, database, question, mode=mode)
            assert titles(found) == expected
            if mode == "lexical":
                assert found["warnings"] == []
            else:
                (reason,) = reasons(found)
                assert problem in reason
        meanings.answer = None
        found = await ask(datasette, database, question)
        assert (titles(found), found["warnings"]) == ([BICYCLES, AUTOMOBILE], [])


@pytest.mark.asyncio
async def test_a_slow_embedder_is_not_waited_for(
    make_datasette: MakeDatasette, world: World, meanings: Meanings
) -> None:
    """Over its deadline the answer comes without it, and later with what it was late with."""
    datasette = make_datasette(*world, config=configured({"deadline_ms": 40}))
    for database in EVERYWHERE:
        meanings.answer = sleeping
        question = f"{PARKING} {database}"
        found = await ask(datasette, database, question)
        assert titles(found) == [BICYCLES]
        assert reasons(found)
        meanings.answer = None
        assert titles(await eventually(datasette, database, question)) == [BICYCLES, AUTOMOBILE]
        assert titles(await eventually(datasette, database, f"{question}?")) == [
            BICYCLES,
            AUTOMOBILE,
        ]


@pytest.mark.asyncio
async def test_an_embedder_that_never_answers_is_not_asked_for_ever(
    make_datasette: MakeDatasette, world: World, meanings: Meanings
) -> None:
    """After a few questions without an answer no more threads wait for one."""
    released = threading.Event()

    def waiting(text: str) -> Any:
        released.wait(30)
        return [meaning_of(text)]

    datasette = make_datasette(*world, config=configured({"deadline_ms": 100}))
    await eventually(datasette, "knowledge", PARKING)
    meanings.answer, before = waiting, len(meanings.questions)
    try:
        for number in range(8):
            found = await ask(datasette, "knowledge", f"Park {chr(97 + number) * 5}")
            assert titles(found) == [BICYCLES]
            assert found["warnings"]
        assert len(meanings.questions) - before <= 4
        assert "it has not answered earlier questions yet" in found["warnings"][0]
    finally:
        released.set()
    meanings.answer = None
    assert AUTOMOBILE in titles(await eventually(datasette, "knowledge", "Park a car, once more"))


@pytest.mark.asyncio
async def test_an_embedder_that_nobody_brings_in_any_more_is_named(
    make_datasette: MakeDatasette, world: World
) -> None:
    """Without the plugin that had it recall goes on, and with it again it is used."""
    datasette = make_datasette(*world, config=configured())
    for database in EVERYWHERE:
        found = await ask(datasette, database, PARKING)
        assert titles(found) == [BICYCLES]
        (reason,) = reasons(found)
        assert reason.startswith("There is no embedder named 'meanings'; known are ")
    with registered(Meanings()):
        for database in EVERYWHERE:
            found = await ask(datasette, database, PARKING)
            assert (titles(found), found["warnings"]) == ([BICYCLES, AUTOMOBILE], [])


@pytest.mark.asyncio
async def test_an_embedder_without_its_library_is_told_to_be_installed(
    make_datasette: MakeDatasette,
    own_world: World,
    meanings: Meanings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The index may be of a machine where it was installed."""
    monkeypatch.setitem(sys.modules, "wordllama", None)
    own_world.change(
        "update setting set value = '\"wordllama\"' where name = 'embedder'", file="library"
    )
    datasette = make_datasette(*own_world, config=configured())
    for database in EVERYWHERE:
        found = await ask(datasette, database, PARKING)
        assert titles(found) == [BICYCLES]
        (reason,) = reasons(found)
        assert "datasette-concept-recall[semantic]" in reason


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["unheard-of", "others"])
async def test_an_index_that_gets_another_embedder_says_so(
    make_datasette: MakeDatasette, own_world: World, meanings: Meanings, name: str
) -> None:
    """While Datasette runs: vectors of one embedder are never compared with those of another."""
    datasette = make_datasette(*own_world, config=configured())
    with registered(Meanings("others")):
        await ask(datasette, "knowledge", PARKING)
        own_world.change(
            "update setting set value = json_quote(?) where name = 'embedder'", name, file="library"
        )
        for database in EVERYWHERE:
            found = await ask(datasette, database, PARKING)
            assert titles(found) == [BICYCLES]
            assert layer_names(found["rows"][0]) == ["lexical"]
            assert reasons(found)
        own_world.change(
            "update setting set value = '\"meanings\"' where name = 'embedder'", file="library"
        )
        for database in EVERYWHERE:
            found = await ask(datasette, database, PARKING)
            assert (titles(found), found["warnings"]) == ([BICYCLES, AUTOMOBILE], [])


@pytest.mark.asyncio
async def test_questions_reach_no_other_machine_unless_that_is_configured(
    make_datasette: MakeDatasette, world: World
) -> None:
    """An index may name a remote embedder; only the configuration may have it asked."""
    remote = Meanings(is_remote=True)
    elsewhere = {"database": "index", "embedder": "others"}
    with registered(remote, Meanings("others")):
        for config in (
            configured(),
            configured(index={"database": "index"}),
            configured(index=elsewhere),
        ):
            datasette = make_datasette(*world, config=config)
            for database in EVERYWHERE:
                found = await ask(datasette, database, PARKING)
                assert titles(found) == [BICYCLES]
                (reason,) = reasons(found)
                assert "index.embedder" in reason
        assert remote.asked == []
        index = {"database": "index", "embedder": "meanings"}
        datasette = make_datasette(*world, config=configured(index=index))
        assert remote.asked == []
        found = await ask(datasette, "knowledge", PARKING)
        assert (titles(found), found["warnings"]) == ([BICYCLES, AUTOMOBILE], [])
        assert remote.asked == [PARKING]


# --- what changes while Datasette runs -----------------------------------------------------------

SUPERSEDED = {
    "status": ("update records set status = 'Superseded' where id in (1, 2)", ()),
    "rejected": ("update records set status = 'rejected' where id in (1, 2)", ()),
    "relation": (
        "insert into record_relations select 3, id, 'supersedes' from records where id in (1, 2)",
        (),
    ),
    "deleted": ("delete from records where id in (1, 2)", ()),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("how", SUPERSEDED)
async def test_what_holds_no_longer_is_not_served_by_the_next_recall(
    make_datasette: MakeDatasette, tmp_path: Path, meanings: Meanings, how: str
) -> None:
    """Though nobody has brought the index up to date since."""

    def filled(conn: sqlite3.Connection) -> None:
        fill(conn)
        knowledge.add_record(conn, "Bicycles and each vehicle park outside", concepts=["Hall"])

    own_world = build(tmp_path, filled)
    datasette = make_datasette(*own_world, config=configured())
    gone = {AUTOMOBILE, BICYCLES}
    for database in EVERYWHERE:
        assert set(titles(await ask(datasette, database, PARKING))) > gone
    sql, values = SUPERSEDED[how]
    own_world.change(sql, *values)
    for modes in (LAYERS_MODES, ["auto"]):
        for database in EVERYWHERE:
            for mode in modes:
                found = await ask(datasette, database, PARKING, mode=mode, budget="900")
                assert titles(found) == ["Bicycles and each vehicle park outside"], (database, mode)
                assert found["total"] == 1
                assert not any(title in json.dumps(found) for title in gone)
        own_world.run()


@pytest.mark.asyncio
async def test_what_holds_again_is_served_again(
    make_datasette: MakeDatasette, own_world: World, meanings: Meanings
) -> None:
    """What is looked up in the live tables is how it is there now."""
    datasette = make_datasette(*own_world, config=configured())
    for status, expected in (("superseded", [BICYCLES]), ("accepted", [BICYCLES, AUTOMOBILE])):
        own_world.change("update records set status = ? where id = 1", status)
        for database in EVERYWHERE:
            assert titles(await ask(datasette, database, PARKING)) == expected


@pytest.mark.asyncio
@pytest.mark.parametrize("table", ["observations", "document_sections", "documents", "projects"])
async def test_a_row_of_any_table_that_is_deleted_is_not_served(
    make_datasette: MakeDatasette, tmp_path: Path, meanings: Meanings, table: str
) -> None:
    """Neither where it was nor as a document of the index, whose copy is out of date."""
    words = "canaries sing in the morning when nobody listens"

    def filled(conn: sqlite3.Connection) -> None:
        fill(conn)
        if table == "observations":
            knowledge.add_observation(conn, f"Lunar {words}")
        elif table == "projects":
            knowledge.add_project(conn, "Aviary", description=f"Lunar {words}")
        else:
            section = knowledge.Section(f"Lunar {words}", f"Lunar {words}")
            title = f"Lunar {words}" if table == "documents" else "Birds"
            knowledge.add_document(conn, title, sections=[section])

    own_world = build(tmp_path, filled)
    datasette = make_datasette(*own_world, config=configured())
    question = "When do canaries sing?"
    assert "canaries" in json.dumps(await ask(datasette, "index", question))
    own_world.change(f"delete from {table} where rowid = (select max(rowid) from {table})")
    if table == "documents":
        own_world.change("delete from document_sections where document_id = 2")
    for database in EVERYWHERE:
        for mode in LAYERS_MODES:
            found = await ask(datasette, database, question, mode=mode)
            assert "canaries" not in json.dumps(found["rows"]), (database, mode)


@pytest.mark.asyncio
async def test_a_database_that_is_written_meanwhile_is_answered_consistently(
    make_datasette: MakeDatasette, own_world: World, meanings: Meanings
) -> None:
    """Rows come and are superseded and the index follows: nothing that is not there or no longer
    held when it was asked is ever served, and no request fails."""
    datasette = make_datasette(
        *own_world, config=configured(), settings={"sql_time_limit_ms": 20_000}
    )
    superseded: set[str] = set()
    failed: list[BaseException] = []
    rounds, ending = 8, threading.Event()

    def write() -> None:
        try:
            for number in range(rounds):
                if ending.is_set():
                    return
                with closing(sqlite3.connect(own_world.knowledge, timeout=30)) as conn, conn:
                    old = knowledge.add_record(
                        conn, f"Park {number} of each vehicle", project="Home"
                    )
                    conn.execute("update records set title = title || '!' where id = ?", [old])
                    if number % 2:
                        new = knowledge.add_record(conn, f"Park {number} anew", project="Home")
                        knowledge.supersede_record(conn, new, old)
                if number % 2:
                    superseded.add(f"Park {number} of each vehicle!")
                own_world.run()
        except BaseException as error:
            failed.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        asked = 0
        while writer.is_alive() or asked < 6:
            gone = set(superseded)
            asked += 1
            answers = await asyncio.gather(
                *(
                    ask(
                        datasette,
                        database,
                        f"Where can a vehicle park? {asked}",
                        mode=mode,
                        _size="100",
                    )
                    for database in EVERYWHERE
                    for mode in LAYERS_MODES
                )
            )
            with closing(sqlite3.connect(own_world.knowledge)) as conn:
                existing = {f"record:{id_}" for (id_,) in conn.execute("select id from records")}
            for answer in answers:
                assert not gone & set(titles(answer))
                assert len(answer["rows"]) == answer["total"]
                assert answer["warnings"] == []
                refs = [row["ref"] for row in answer["rows"]]
                assert len(set(refs)) == len(refs)
                assert {ref for ref in refs if ref.startswith("record:")} <= existing
    finally:
        ending.set()
        writer.join()
    assert failed == []
    final = await ask(
        datasette, "knowledge", "Where can a vehicle park?", mode="semantic", _size="100"
    )
    found = {title for title in titles(final) if title.startswith("Park")}
    assert found == {f"Park {n} of each vehicle!" for n in range(0, rounds, 2)} | {
        f"Park {n} anew" for n in range(1, rounds, 2)
    }


# --- configuration -------------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"layers": []}, "layers"),
        ({"layers": "fast"}, "layers"),
        ({"layers": {"deadline": 5}}, "layers.deadline"),
        ({"layers": {"deadline_ms": "fast"}}, "layers.deadline_ms"),
        ({"layers": {"deadline_ms": -1}}, "layers.deadline_ms"),
        ({"layers": {"deadline_ms": True}}, "layers.deadline_ms"),
        ({"layers": {"deadline_ms": None}}, "layers.deadline_ms"),
        ({"layers": {"k": math.nan}}, "layers.k"),
        ({"layers": {"k": math.inf}}, "layers.k"),
        ({"layers": {"lexical": "1"}}, "layers.lexical"),
        ({"layers": {"semantic": [1]}}, "layers.semantic"),
        ({"layers": {"not_topical": "the"}}, "layers.not_topical"),
        ({"layers": {"not_topical": ["the", 5]}}, "layers.not_topical"),
        ({"layers": {5: 5}}, "layers.5"),
        ({"index": {"database": "index", "embedder": 5}}, "index.embedder"),
        ({"index": {"database": "index", "embedder": ""}}, "index.embedder"),
        ({"index": {"database": "index", "rendering": "nice"}}, "index.rendering"),
        ({"index": {"database": "index", "rendering": ["full"]}}, "index.rendering"),
        ({"index": {"database": "index", "embeder": "wordllama"}}, "index.embeder"),
        ({"index": {"embedder": "wordllama"}}, "index.database"),
        ({"index": {"database": "knowledge", "embedder": "wordllama"}}, "index.database"),
        ({"index": {"database": "nowhere", "embedder": "wordllama"}}, "index.database"),
    ],
)
async def test_a_mistake_in_the_configuration_stops_the_start(
    make_datasette: MakeDatasette, world: World, given: dict[str, Any], key: str
) -> None:
    """By the key where it stands."""
    datasette = make_datasette(*world, config={"plugins": {PLUGIN: given}})
    with pytest.raises(StartupError) as raised:
        await datasette.invoke_startup()
    assert str(raised.value).startswith(f"plugins.{PLUGIN}.{key}: ")


@pytest.mark.asyncio
async def test_the_layers_can_be_configured(
    make_datasette: MakeDatasette, world: World, meanings: Meanings
) -> None:
    """What ranks count for each layer, and which words of a question admit nothing."""
    for layers, expected in (
        ({"deadline_ms": PATIENT, "k": 60}, [BICYCLES, AUTOMOBILE]),
        ({"deadline_ms": PATIENT, "lexical": 0}, [AUTOMOBILE, BICYCLES]),
        ({"deadline_ms": PATIENT, "not_topical": ["park"]}, [AUTOMOBILE]),
        ({"deadline_ms": PATIENT, "not_topical": []}, [BICYCLES, AUTOMOBILE]),
    ):
        datasette = make_datasette(*world, config=configured(layers))
        assert titles(await ask(datasette, "knowledge", "park car")) == expected


# --- SQL -----------------------------------------------------------------------------------------

NEAREST = (
    "select d.title from document d join chunk c on c.generation_id = d.live_generation"
    " join vector v on v.chunk_id = c.id"
    " order by cosine_similarity(embed(:q), v.embedding) desc limit 1"
)


async def in_sql(datasette: Datasette, database: str, sql: str, **more: str) -> Any:
    """The response of Datasette's page of an SQL query, as JSON."""
    page = f"/{database}/-/query.json" if IS_1_0 else f"/{database}.json"
    params = {"sql": sql, "_shape": "objects", **more}
    return await datasette.client.get(page, params=params)


@pytest.mark.asyncio
async def test_vectors_are_compared_in_sql_where_an_embedder_is_configured(
    make_datasette: MakeDatasette, world: World, meanings: Meanings
) -> None:
    """Without one neither function is there, though the index names its own."""
    datasette = make_datasette(*world, config=configured())
    for call in ("embed('car')", "cosine_similarity(x'00', x'00')"):
        response = await in_sql(datasette, "index", f"select {call}")
        assert response.status_code == 400
        assert "no such function" in response.text
    index = {"database": "index", "embedder": "meanings"}
    datasette = make_datasette(*world, config=configured(index=index))
    for question, title in (("a car", AUTOMOBILE), ("the moon", "moon")):
        response = await in_sql(datasette, "index", NEAREST, q=question)
        assert response.status_code == 200, response.text
        assert response.json()["rows"] == [{"title": title}]
    response = await in_sql(datasette, "knowledge", "select length(embed('car')) as n")
    assert response.json()["rows"] == [{"n": 4 * WIDTH}]


@pytest.mark.asyncio
async def test_a_configured_embedder_that_is_not_installed_stops_nothing(
    make_datasette: MakeDatasette, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Datasette starts and answers by words."""
    monkeypatch.setitem(sys.modules, "wordllama", None)
    index = {"database": "index", "embedder": "wordllama"}
    datasette = make_datasette(*world, config=configured(index=index))
    assert titles(await ask(datasette, "knowledge", PARKING)) == [BICYCLES]


# --- who searches by meaning in place of the index -----------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize("with_index", [True, False])
async def test_another_plugin_may_search_by_meaning(
    make_datasette: MakeDatasette, world: World, meanings: Meanings, with_index: bool
) -> None:
    """Its references come in its order, once, as far as there are such rows that have to do with
    the question; the index is asked no meaning any more."""
    fallback = Fallback(found=REFS)
    question = "Which car is an automobile, and does it park?"
    with registered(meanings, fallbacks=[fallback]):
        datasette = make_datasette(*(world if with_index else world[:1]), config=configured())
        found = await ask(datasette, "knowledge", question, mode="semantic")
        assert [(row["ref"], layer_names(row)) for row in found["rows"]] == [
            ("record:2", ["semantic"]),
            ("record:1", ["semantic"]),
        ]
        assert found["rows"][0]["layers"][0]["similarity"] is None
        assert found["total"] == 2
        assert fallback.asked[0][0] == question
        everywhere = await ask(datasette, None, question)
        named = [row["ref"] for row in everywhere["rows"] if row["database"] == "knowledge"]
        assert sorted(named) == ["record:1", "record:2"]
        lexical = await ask(datasette, "knowledge", question, mode="lexical")
        assert {name for row in lexical["rows"] for name in layer_names(row)} == {"lexical"}
        count = len(fallback.asked)
        assert (await ask(datasette, "knowledge", question, mode="concept"))["rows"] == []
        assert len(fallback.asked) == count
        page = content(
            await datasette.client.get(f"/knowledge/-/recall?mode=semantic&q={question}")
        )
        assert [label.words for label in page.all("p", "recall-found")] == ["Found by meaning"] * 2


@pytest.mark.asyncio
async def test_what_another_plugin_finds_is_looked_up_in_the_live_tables(
    make_datasette: MakeDatasette, own_world: World, meanings: Meanings
) -> None:
    """What is superseded or deleted is not served, whatever a store still holds."""
    with registered(fallbacks=[Fallback(found=REFS)]):
        datasette = make_datasette(*own_world, config=configured())
        question = "Which automobile can park?"
        for sql, expected in (
            ("select 1", ["record:2", "record:1"]),
            ("update records set status = 'superseded' where id = 2", ["record:1"]),
            ("delete from records where id = 1", []),
        ):
            own_world.change(sql)
            found = await ask(datasette, "knowledge", question, mode="semantic")
            assert [row["ref"] for row in found["rows"]] == expected


@pytest.mark.asyncio
async def test_what_another_plugin_finds_is_shown_to_who_may_see_it(
    make_datasette: MakeDatasette, world: World, meanings: Meanings
) -> None:
    """A reference to a row of a private table is as one to a row that is not there."""
    private = {"knowledge": {"tables": {"records": {"allow": {"id": "root"}}}}}
    with registered(fallbacks=[Fallback(found=[*REFS, "observation:1"])]):
        datasette = make_datasette(*world[:1], config=configured(databases=private))
        root = {"ds_actor": datasette.sign({"a": {"id": "root"}}, "actor")}
        question = "Which automobile can park, with what weight?"
        for cookies, expected in (
            (None, ["observation:3", "observation:1"]),
            (root, ["record:2", "observation:3", "record:1", "observation:1"]),
        ):
            found = await ask(datasette, "knowledge", question, cookies, mode="semantic")
            assert [row["ref"] for row in found["rows"]] == expected
            assert [row["layers"][0]["rank"] for row in found["rows"]] == list(
                range(1, len(expected) + 1)
            )
            assert found["total"] == len(expected)


@pytest.mark.asyncio
async def test_a_failing_fallback_fails_no_recall(
    make_datasette: MakeDatasette, world: World
) -> None:
    """Raising, slow, or answering with something else: the words answer, with a warning."""
    fallback = Fallback(found=REFS)
    with registered(fallbacks=[fallback]):
        datasette = make_datasette(world.knowledge, config=configured())
        fallback.fails = True
        found = await ask(datasette, "knowledge", "Bicycles park")
        assert titles(found) == [BICYCLES]
        assert found["warnings"] == [f"{WITHOUT}ConnectionError: the store is down."]
        fallback.fails = False
        fallback.found = None  # type: ignore[assignment]
        found = await ask(datasette, "knowledge", "Bicycles park")
        assert titles(found) == [BICYCLES]
        assert found["warnings"][0].startswith(f"{WITHOUT}TypeError")
        fallback.found = REFS
        assert (await ask(datasette, "knowledge", "Bicycles park"))["warnings"] == []

        slow = make_datasette(world.knowledge, config=configured({"deadline_ms": 30}))
        fallback.search = lambda query, limit: time.sleep(0.4)  # type: ignore
        found = await ask(slow, "knowledge", "Bicycles park")
        assert titles(found) == [BICYCLES]
        assert found["warnings"] == [f"{WITHOUT}it took longer than 30 ms."]
        del fallback.search
        found = await eventually(slow, "knowledge", "Bicycles park")
        assert layer_names(found["rows"][0]) == ["lexical", "semantic"]


@pytest.mark.asyncio
async def test_an_index_that_fails_is_no_matter_where_another_plugin_answers(
    make_datasette: MakeDatasette, world: World
) -> None:
    """The embedder of the index is neither asked nor missed where its answer is not wanted."""
    with registered(fallbacks=[Fallback(found=REFS)]):
        datasette = make_datasette(*world, config=configured())
        found = await ask(datasette, "knowledge", "Bicycles park", mode="semantic")
        assert (titles(found), found["warnings"]) == ([BICYCLES], [])


@pytest.mark.parametrize("fails_first", [False, True])
def test_a_fallback_is_kept_in_line_with_its_database(
    own_world: World,
    monkeypatch: pytest.MonkeyPatch,
    fails_first: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is given all that holds at the start and after every commit, again after a failure."""
    monkeypatch.setattr(reconciling, "LOOK_SECONDS", 0.02)
    fallback = Fallback()
    if fails_first:
        given = fallback.reconcile
        tries = iter([True])

        def reconcile(active: Any) -> None:
            if next(tries, False):
                raise ConnectionError("the store is down")
            given(active)

        fallback.reconcile = reconcile  # type: ignore[method-assign]
    datasette = Datasette([str(own_world.knowledge)])
    vocabulary = vocabulary_for(datasette, "knowledge")
    reconciler = Reconciler(fallback, own_world.knowledge, vocabulary, immutable=False)
    reconciler.start()
    try:
        held = settled(fallback, lambda held: "record:1" in held)
        assert set(held) == {
            "record:1",
            "record:2",
            *(f"observation:{n + 1}" for n in range(24)),
        } | {
            "document_gist:1",
            "document_section:2",
        }
        assert held["record:1"].text.startswith(AUTOMOBILE)
        assert held["record:1"].text_hash == hashlib.sha256(held["record:1"].text.encode()).digest()
        own_world.change("update records set status = 'superseded' where id = 1")
        changed = settled(fallback, lambda held: "record:1" not in held)
        assert set(changed) == set(held) - {"record:1"}
        own_world.change("update records set title = 'Tricycles' where id = 2")
        settled(fallback, lambda held: held["record:2"].text.startswith("Tricycles"))
        before = fallback.reconciled
        time.sleep(0.2)
        assert fallback.reconciled == before
    finally:
        reconciler.stop()
    assert ("could not be brought up to date" in caplog.text) == fails_first


@pytest.mark.skipif(IS_1_0, reason="1.0 starts tasks only in a server")
@pytest.mark.asyncio
async def test_a_registered_fallback_is_reconciled_from_the_start(
    make_datasette: MakeDatasette, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """That of a database that nobody serves is told of in the log."""
    fallback, lost = Fallback(), Fallback("nowhere")
    with registered(fallbacks=[fallback, lost]):
        datasette = make_datasette(*world, config=configured())
        await datasette.invoke_startup()
        held = await asyncio.to_thread(settled, fallback, lambda held: "record:1" in held)
    assert "document_gist:1" in held
    assert lost.reconciled == 0
    assert "No file is served as nowhere" in caplog.text


def test_a_library_that_ends_the_program_only_fails() -> None:
    """A server must not end since somebody asked something."""
    meanings = Meanings()
    meanings.answer = lambda text: sys.exit("from a library")
    for deadline in (None, PATIENT / 1000):
        with pytest.raises(EmbedderFailure):
            QueryVectors(meanings).vector("a car", WIDTH, deadline)

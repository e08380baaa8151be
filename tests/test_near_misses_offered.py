"""Near misses where people and programs meet them: the pipeline, the page, JSON and the command."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from click.testing import CliRunner
from datasette.app import Datasette
from datasette.cli import cli

import knowledge
from conftest import MakeDatasette
from datasette_concept_recall import ConceptMatcher, near_misses, recall_by_text
from datasette_concept_recall.models import NearMiss, RecallRequest
from datasette_concept_recall.near_misses import NearMisses, merge_near_misses
from datasette_concept_recall.search import recall
from datasette_concept_recall.vocabulary import Vocabulary
from pages import Element, content
from served import get

RAG, SCRIPT = "retrieval augmented generation", "<script>alert</script>"
OFFER = {"concept": "chunking", "text": "Chunkings", "start": 0, "end": 9, "distance": 1}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with a few concepts and an item for each."""
    file = tmp_path / "knowledge.db"
    with closing(knowledge.create(file)) as conn:
        for name in ("chunking", RAG, SCRIPT, "parser"):
            knowledge.add_observation(conn, f"About {name[:5]}", concepts=[name])
        conn.commit()
    return file


@pytest.fixture
def conn(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(knowledge.open_read_only(path)) as connection:
        yield connection


@pytest.fixture
def datasette(path: Path, make_datasette: MakeDatasette) -> Datasette:
    return make_datasette(path)


async def show(datasette: Datasette, **parameters: Any) -> Element:
    query = urlencode(parameters, doseq=True)
    return content(await datasette.client.get(f"/knowledge/-/recall?{query}"))


def question(page: Element) -> str:
    """The question of a page, the empty string when it has none."""
    return "".join(paragraph.words for paragraph in page.all("p", "recall-near"))


# --- the pipeline --------------------------------------------------------------------------------


def test_a_near_miss_is_offered_and_not_used(conn: sqlite3.Connection) -> None:
    """What is only nearly named is beside the answer: no item is found for it."""
    result = recall_by_text(conn, "Chunkings and a parser")
    assert result.concepts == ["parser"]
    assert [match.concepts for match in result.matches] == [("parser",)]
    assert result.near_misses == [NearMiss("chunking", "Chunkings", 0, 9, 1)]


def test_names_that_are_given_are_not_offered(conn: sqlite3.Connection) -> None:
    """What a request asks for by name needs no offer."""
    asked = recall(conn, RecallRequest(text="Chunkings", names=("CHUNKING",)))
    assert (asked.concepts, asked.near_misses) == (["chunking"], [])


def test_near_misses_are_looked_for_only_where_they_are_wanted(
    conn: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a text, or when a request does without them, not even the index is made."""
    monkeypatch.setattr(near_misses, "NearNames", None)
    assert recall(conn, RecallRequest(names=("Chunkings",))).near_misses == []
    assert recall(conn, RecallRequest(text="Chunkings", near_misses=False)).near_misses == []


def test_tables_that_are_not_visible_offer_nothing(conn: sqlite3.Connection) -> None:
    """Who may not see the concepts is offered none."""
    hidden = recall(conn, RecallRequest(text="Chunkings"), visible={"observations"})
    assert hidden.near_misses == []


def test_offers_follow_the_database(path: Path, conn: sqlite3.Connection) -> None:
    """A concept that was added, renamed or deleted a moment ago is, or is not, offered."""
    vocabulary = Vocabulary()

    def offered() -> list[str]:
        result = recall_by_text(conn, "decoratr, Chunkings", vocabulary=vocabulary)
        return [miss.concept for miss in result.near_misses]

    assert offered() == ["chunking"]
    with closing(sqlite3.connect(path)) as writer:
        knowledge.add_concept(writer, "decorator")
        writer.commit()
        assert offered() == ["decorator", "chunking"]
        writer.execute("UPDATE concepts SET name = 'chunks' WHERE name = 'chunking'")
        writer.commit()
        assert offered() == ["decorator"]


def test_the_index_is_made_once(conn: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as the names stay, all questions use one index."""
    made: list[object] = []
    original = near_misses.NearNames

    def count(names: list[str]) -> object:
        made.append(names)
        return original(names)

    monkeypatch.setattr(near_misses, "NearNames", count)
    vocabulary = Vocabulary()
    for _ in range(3):
        assert recall_by_text(conn, "chunkings", vocabulary=vocabulary).near_misses != []
    assert len(made) == 1


# --- JSON, page, command -------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_json_tells_the_near_misses(datasette: Datasette) -> None:
    """Each has the concept, the words and their place, and the distance; the text is unchanged."""
    answer = await get(datasette, "q=Chunkings+are+not+parser")
    assert answer["near_misses"] == [OFFER]
    assert [concept["name"] for concept in answer["concepts"]] == ["parser"]
    assert (await get(datasette, "q=parser"))["near_misses"] == []


@pytest.mark.asyncio
@pytest.mark.parametrize("text", ["Chunkings and a parser", "Chunkings"])
async def test_the_page_asks_and_its_link_takes_the_offer(datasette: Datasette, text: str) -> None:
    """Found or not, the page asks what was meant; the link adds the concept to what was asked."""
    page = await show(datasette, q=text, project="", type="observation")
    assert question(page) == "Did you mean chunking for “Chunkings”?"
    link = page.one("p", "recall-near").one("a")["href"]
    asked = dict(parse_qsl(urlsplit(link).query))
    assert asked == {"q": text, "concept": "chunking", "type": "observation"}
    taken = content(await datasette.client.get(link))
    assert question(taken) == ""
    assert "chunking" in [chip.all("a")[0].text for chip in taken.all("li", "recall-chip")]


@pytest.mark.asyncio
async def test_the_page_asks_nothing_where_nothing_is_near(datasette: Datasette) -> None:
    """Without a near miss there is no question, nor on the page that asks nothing yet."""
    for parameters in ({}, {"q": "parser"}, {"q": "nothing"}, {"concept": "Chunkings"}):
        assert (await show(datasette, **parameters)).all("p", "recall-near") == []


@pytest.mark.asyncio
async def test_several_offers_are_one_question(datasette: Datasette) -> None:
    """The offers are in their order, the last after an “or”; white space in a text is one space."""
    text = "a parsr for retrieval\n  augmented  generatoin, by chunkngs"
    page = await show(datasette, q=text + " chunkngs chunkingz")
    assert question(page) == (
        "Did you mean parser for “parsr”, retrieval augmented generation for"
        " “retrieval augmented generatoin” or chunking for “chunkingz”?"
    )


@pytest.mark.asyncio
async def test_markup_in_names_and_texts_is_shown_as_text(datasette: Datasette) -> None:
    """A name or a text that looks like HTML is escaped in the question and in its link."""
    page = await show(datasette, q="<script>alrt</script>")
    assert question(page) == f"Did you mean {SCRIPT} for “<script>alrt</script>”?"
    assert page.one("p", "recall-near").all("script") == []
    taken = await datasette.client.get(page.one("p", "recall-near").one("a")["href"])
    assert content(taken).one("h2", id="recall-concepts").words == "1 concept found"


@pytest.mark.asyncio
async def test_the_offer_beside_a_text_too_long_for_a_link(datasette: Datasette) -> None:
    """Where a link cannot hold the text, it asks for the concepts found and the one offered."""
    text = "Chunkings and a parser" + " word" * 2000
    response = await datasette.client.post("/knowledge/-/recall", data={"q": text})
    page = content(response)
    link = page.one("p", "recall-near").one("a")["href"]
    assert parse_qsl(urlsplit(link).query) == [("concept", "parser"), ("concept", "chunking")]


@pytest.mark.asyncio
async def test_looking_for_near_misses_is_not_stopped_by_the_limit_of_the_database(
    path: Path, make_datasette: MakeDatasette, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes after everything that is read, so its time is not taken from that of SQL."""
    find = NearMisses.find

    def slowly(*args: Any, **more: Any) -> list[NearMiss]:
        time.sleep(0.3)
        return find(*args, **more)

    monkeypatch.setattr(NearMisses, "find", slowly)
    datasette = make_datasette(path, settings={"sql_time_limit_ms": 100})
    assert (await get(datasette, "q=Chunkings+parser"))["near_misses"] == [OFFER]


@pytest.mark.asyncio
async def test_without_the_library_there_is_no_trace(
    datasette: Datasette, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where rapidfuzz is not installed the page asks nothing, JSON has an empty list, no error."""
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    answer = await get(datasette, "q=Chunkings+parser")
    assert (answer["near_misses"], answer["warnings"], answer["total"]) == ([], [], 1)
    assert "Did you mean" not in (await show(datasette, q="Chunkings")).words


def test_the_command_line_asks_on_standard_error(path: Path) -> None:
    """The question goes where warnings go; the list of items and JSON are for programs."""
    command = ["concept-recall", "recall", str(path), "Chunkings\u0007 parser"]
    result = CliRunner().invoke(cli, command)
    assert result.stderr == "Did you mean chunking for “Chunkings”?\n"
    assert result.stdout.startswith("Concepts: parser (1)\n")
    result = CliRunner().invoke(cli, [*command, "--json"])
    assert json.loads(result.stdout)["near_misses"] == [OFFER]
    assert result.stderr == ""


# --- several vocabularies ------------------------------------------------------------------------


def merged(text: str, *vocabularies: list[str], limit: int = 5) -> list[str]:
    """The concepts offered for a text by several vocabularies as one."""
    found = [
        NearMisses(names).find(text, ConceptMatcher(names).mentions(text)) for names in vocabularies
    ]
    mentions = ConceptMatcher({name for names in vocabularies for name in names}).mentions(text)
    return [miss.concept for miss in merge_near_misses(found, mentions, limit)]


def test_offers_of_several_vocabularies_are_those_of_one() -> None:
    """Each name is offered once, and none that another vocabulary finds in the text."""
    assert merged("chunkings, parsr", ["chunking"], ["CHUNKING", "parser"]) == [
        "CHUNKING",
        "parser",
    ]
    assert merged("chunkings", ["chunking"], ["chunkings"]) == []
    assert merged("chunkings", ["chunking"], ["nice chunkings"]) == ["chunking"]
    assert merged("type parametersz", ["type parameter"], ["type parameters"]) == [
        "type parameters"
    ]
    assert merged("chunkng parsr", ["chunking"], ["parser"], limit=1) == ["chunking"]


# --- the documentation ---------------------------------------------------------------------------

EXAMPLES = re.findall(
    r'^\| "([^"|]+)" \| (not )?`([^`|]+)` \|',
    (Path(__file__).parents[1] / "docs" / "matching.md").read_text("utf-8"),
    re.MULTILINE,
)


@pytest.mark.parametrize(("text", "never", "name"), EXAMPLES)
def test_the_table_of_near_misses_is_true(text: str, never: str, name: str) -> None:
    """Every text of the table is offered the name beside it, or is not, as the page says."""
    found = NearMisses([name]).find(text, ConceptMatcher([name]).mentions(text))
    assert [miss.concept for miss in found] == ([] if never else [name])


def test_the_table_of_near_misses_was_found() -> None:
    """The table is still written in the form that the test above reads."""
    assert len(EXAMPLES) > 12

"""The tools for programs and models: what they answer, to whom, and how they fail."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

import foreign
import hostile
import knowledge
import served
from conftest import MakeDatasette
from datasette_concept_recall import asking
from datasette_concept_recall.budgeting import tokens_of
from datasette_concept_recall.concept_tools import MOST_CONCEPTS
from datasette_concept_recall.demo import build_demo
from datasette_concept_recall.errors import RecallError
from datasette_concept_recall.tools import MOST_TEXT, TOOLS
from served import PRIVATE

ROOT = {"id": "root"}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of `served.build`."""
    return served.build(tmp_path_factory.mktemp("knowledge") / "knowledge.db")


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """Two databases with a record of their own each, and a third with other tables."""
    paths = [tmp_path / "one.db", tmp_path / "two.db"]
    for file in paths:
        with closing(knowledge.create(file)) as conn:
            title = f"Rag of {file.stem}"
            old = knowledge.add_record(conn, title, "Text of rag", concepts=["rag"])
            if file.stem == "two":
                new = knowledge.add_record(conn, "Newer", "No more", concepts=["rag", "x"])
                knowledge.supersede_record(conn, new, old)
            conn.commit()
    return [*paths, foreign.compound(tmp_path / "a.b-c.db")]


async def call(
    datasette: Datasette, tool_name: str, actor: dict[str, Any] | None = None, /, **given: object
) -> dict[str, Any]:
    """What a tool answers, which can be written as JSON."""
    await datasette.invoke_startup()
    (tool,) = [tool for tool in TOOLS if tool.name == tool_name]
    answer = await tool.call(datasette, actor, given)
    assert json.loads(json.dumps(answer)) == answer
    return answer


async def refused(datasette: Datasette, tool_name: str, /, **given: object) -> str:
    """The message with which a tool refuses to answer."""
    with pytest.raises(RecallError) as error:
        await call(datasette, tool_name, **given)
    return str(error.value)


OLD_RECORD = {
    "ref": "record:1",
    "kind": "Record",
    "title": "Use RAG",
    "date": "2026-01-15",
    "status": "superseded",
    "superseded_by": ["record:2"],
    "concepts": ["C++", "RAG"],
}
"""What every tool says of a record that another one supersedes."""


# --- recall --------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_recall_answers_with_items(path: Path, make_datasette: MakeDatasette) -> None:
    """Of each item there is what tells it apart, and nothing that says nothing."""
    answer = await call(make_datasette(path), "recall", text="What about RAG in C++?", limit=3)
    assert answer["concepts"] == [
        {"name": "C++", "mentions": 1, "total": 3},
        {"name": "RAG", "mentions": 1, "total": 25},
    ]
    assert answer["total"] == 25
    assert answer["items"] == [
        {
            "ref": "document_section:3",
            "kind": "Section",
            "title": "Handbook / Other",
            "project": "Search",
            "date": "2026-02-03",
            "status": "unsummarized, not reviewed",
            "concepts": ["C++", "RAG"],
        },
        {**OLD_RECORD, "excerpt": "Long ago"},
        {
            "ref": "document_gist:1",
            "kind": "Document",
            "title": "Handbook",
            "project": "Search",
            "date": "2026-01-15",
            "concepts": ["C++", "RAG"],
            "excerpt": "RAG in C++",
        },
    ]
    assert set(answer) == {"concepts", "items", "total"}


@pytest.mark.asyncio
async def test_recall_gives_five_items_unless_told_otherwise(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """The limit may be any whole number up to 100, in the forms in which models write numbers."""
    datasette = make_datasette(path)
    assert len((await call(datasette, "recall", text="RAG"))["items"]) == 5
    for limit in (7, "7", 7.0):
        assert len((await call(datasette, "recall", text="RAG", limit=limit))["items"]) == 7
    assert len((await call(datasette, "recall", text="RAG", limit=100))["items"]) == 25


@pytest.mark.asyncio
async def test_recall_takes_names_and_a_project(path: Path, make_datasette: MakeDatasette) -> None:
    """Names count beside the text, in any case, alone or in a list; None is as if not given."""
    datasette = make_datasette(path)
    both = await call(datasette, "recall", text="RAG", concepts=["c++"], project="Search")
    assert [item["ref"] for item in both["items"]][:2] == ["document_section:3", "document_gist:1"]
    one = await call(datasette, "recall", text=None, concepts="c++", project=None, budget=None)
    assert one["total"] == 3
    unknown = await call(datasette, "recall", concepts=["RAG", "nobody"])
    assert unknown["warnings"] == ["There is no concept named nobody."]


@pytest.mark.asyncio
@pytest.mark.parametrize("budget", [30, 100, 400, 100_000])
async def test_with_a_budget_recall_gives_a_context(
    path: Path, make_datasette: MakeDatasette, budget: int
) -> None:
    """The context is Markdown within the budget, and what did not fit is named by its ref."""
    answer = await call(make_datasette(path), "recall", text="RAG", budget=budget, limit=50)
    assert answer["tokens"] == tokens_of(answer["context"]) <= budget
    assert "items" not in answer
    assert all(ref.partition(":")[2].isdigit() for ref in answer.get("skipped", []))
    if budget >= 100:
        assert answer["context"].startswith("## ")


@pytest.mark.asyncio
async def test_a_text_that_names_nothing_is_no_error(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """The answer says how to find the names."""
    for more in ({}, {"budget": 100}):
        answer = await call(make_datasette(path), "recall", text="nothing", **more)
        assert (answer["concepts"], answer["total"]) == ([], 0)
        (warning,) = answer["warnings"]
        assert "list_concepts" in warning


BAD = [
    ({}, "Give a text, or concepts, or both"),
    ({"text": "  "}, "Give a text, or concepts, or both"),
    ({"text": ["RAG"]}, "text is not a text"),
    ({"text": True}, "text is not a text"),
    ({"text": "a" * 1_048_577}, "The text is longer than 1,048,576 bytes"),
    ({"concepts": {"a": 1}}, "concepts is not a text"),
    ({"concepts": ["a", None]}, "concepts is not a text"),
    ({"text": "RAG", "project": ["P"]}, "project is not a text"),
    ({"text": "RAG", "project": "P"}, "There is no project named 'P' in this database"),
    *(
        ({"text": "RAG", "limit": value}, "limit is not a whole number from 1 to 100")
        for value in (0, -1, 101, 1.5, "x", "", True, [5], float("nan"), float("inf"), "9" * 5000)
    ),
    *(
        ({"text": "RAG", "budget": value}, "budget is not a whole number from 1 to 100000")
        for value in (0, -5, 100_001, "many", False)
    ),
    ({"question": "RAG"}, "recall has no parameter question; it has text, concepts, project,"),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("given", "message"), BAD)
async def test_values_that_cannot_be_used_are_refused_in_a_sentence(
    path: Path, make_datasette: MakeDatasette, given: dict[str, object], message: str
) -> None:
    """The message names the parameter and says what it should have been."""
    assert message in await refused(make_datasette(path), "recall", **given)


# --- get_item ------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_an_item_is_given_whole(path: Path, make_datasette: MakeDatasette) -> None:
    """All that recall says of it, its whole text, and where its page is."""
    datasette = make_datasette(path, settings={"base_url": "/base/"})
    assert await call(datasette, "get_item", ref=" record:1 ") == {
        **OLD_RECORD,
        "page": "/base/knowledge/records/1",
        "text": "Long ago",
    }
    assert (await call(datasette, "get_item", ref="knowledge/record:2"))["title"] == "No RAG"


@pytest.mark.asyncio
async def test_a_very_long_text_is_cut_and_says_so(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """A model is given no more than it can take, and knows how much there would be."""
    with closing(knowledge.create(tmp_path / "k.db")) as conn:
        knowledge.add_observation(conn, "é" * (MOST_TEXT + 5), concepts=["rag"])
        conn.commit()
    answer = await call(make_datasette(tmp_path / "k.db"), "get_item", ref="observation:1")
    assert answer["text"] == "é" * MOST_TEXT
    assert answer["text_is_cut_from"] == MOST_TEXT + 5


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "ref", [None, "", "record", "record:", "record:99", "shoe:1", "k/record:1"]
)
async def test_an_item_that_is_not_there_is_refused(
    path: Path, make_datasette: MakeDatasette, ref: object
) -> None:
    """The message says what a ref looks like."""
    message = await refused(make_datasette(path), "get_item", ref=ref)
    assert message.endswith("that you may see. A ref looks like record:12.")


# --- list_concepts and show_concept --------------------------------------------------------------


@pytest.mark.asyncio
async def test_concepts_are_listed_by_their_use(path: Path, make_datasette: MakeDatasette) -> None:
    """Those with most items first; a search is a part of a name in any letter case."""
    datasette = make_datasette(path)
    answer = await call(datasette, "list_concepts")
    listed = [("RAG", 25), ("C++", 3), ("unused", 0)]
    assert answer == {
        "concepts": [{"name": name, "total": total} for name, total in listed],
        "total": 3,
    }
    found = await call(datasette, "list_concepts", search=" aG ")
    assert found == {"concepts": [{"name": "RAG", "total": 25}], "total": 1}
    assert await call(datasette, "list_concepts", search="nobody") == {"concepts": [], "total": 0}


@pytest.mark.asyncio
async def test_of_very_many_concepts_the_most_used_are_listed(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """The answer says how many there are, and how to see others; descriptions are cut to a line."""
    with closing(knowledge.create(tmp_path / "k.db")) as conn:
        for number in range(MOST_CONCEPTS + 20):
            knowledge.add_concept(conn, f"concept {number}", description="Word " * 100)
        knowledge.add_observation(conn, "used", concepts=["concept 110"])
        conn.commit()
    datasette = make_datasette(tmp_path / "k.db")
    answer = await call(datasette, "list_concepts")
    assert (len(answer["concepts"]), answer["total"]) == (MOST_CONCEPTS, MOST_CONCEPTS + 20)
    assert answer["concepts"][0]["name"] == "concept 110"
    assert len(answer["concepts"][0]["description"]) <= 121
    assert answer["warnings"] == [
        "These are the 100 most used. Give a search, or a longer one, to see others."
    ]
    assert "warnings" not in await call(datasette, "list_concepts", search="concept 11")


@pytest.mark.asyncio
async def test_a_concept_is_shown_with_what_is_around_it(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Found in any letter case: counts, neighbours, and the newest items with their refs."""
    datasette = make_datasette(path)
    answer = await call(datasette, "show_concept", name="rag")
    newest = answer.pop("newest")
    assert answer == {
        "name": "RAG",
        "total": 25,
        "kinds": {"Observation": 20, "Record": 2, "Document": 1, "Section": 2},
        "latest": "2026-02-03",
        "often_with": [{"name": "C++", "items": 3}],
    }
    assert [item["ref"] for item in newest] == [
        "document_section:3",
        *(f"observation:{number}" for number in (1, 2, 3, 4)),
    ]
    assert newest[1]["title"] == "Note 0 about <b>RAG</b>"
    assert newest[0] == {
        "ref": "document_section:3",
        "kind": "Section",
        "title": "Handbook / Other",
        "project": "Search",
        "date": "2026-02-03",
        "status": "unsummarized, not reviewed",
    }
    assert await call(datasette, "show_concept", name="unused") == {"name": "unused", "total": 0}
    message = await refused(datasette, "show_concept", name="nobody")
    assert message == "There is no concept named 'nobody'; list_concepts finds names."
    assert "There is no concept named ''" in await refused(datasette, "show_concept")


@pytest.mark.asyncio
async def test_an_identifier_and_a_description_are_told(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """What is stored of a concept comes as it is, under all of its spellings."""
    with closing(knowledge.create(tmp_path / "k.db")) as conn:
        doi = {"identifier_type": "doi", "identifier_value": "10.1000/182"}
        knowledge.add_concept(conn, "rag", description="Looks first, then writes.", **doi)
        knowledge.add_observation(conn, "x", concepts=["RAG", "rag"])
        conn.commit()
    answer = await call(make_datasette(tmp_path / "k.db"), "show_concept", name="Rag")
    del answer["newest"], answer["latest"]
    assert answer == {
        "name": "RAG",
        "also_spelled": ["rag"],
        "description": "Looks first, then writes.",
        "identifiers": [{"type": "doi", "value": "10.1000/182"}],
        "total": 1,
        "kinds": {"Observation": 1},
    }


# --- several databases ---------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_concepts_of_several_databases_are_one_by_name(
    two: list[Path], make_datasette: MakeDatasette
) -> None:
    """Counts are added, the newest items are those of all, and each says where it is."""
    with closing(sqlite3.connect(two[1])) as conn:
        conn.execute("update concepts set name = 'RAG' where name = 'rag'")
        conn.commit()
    datasette = make_datasette(*two)
    answer = await call(datasette, "list_concepts")
    assert answer["concepts"] == [
        {"name": name, "total": total}
        for name, total in [("rag", 3), ("jam", 2), ("bread", 1), ("soup", 1), ("x", 1)]
    ]
    shown = await call(datasette, "show_concept", name="Rag")
    assert (shown["name"], shown["also_spelled"]) == ("rag", ["RAG"])
    assert (shown["total"], shown["kinds"]) == (3, {"Record": 3})
    assert shown["often_with"] == [{"name": "x", "items": 1}]
    refs = [item["ref"] for item in shown["newest"]]
    assert refs == ["one/record:1", "two/record:1", "two/record:2"]
    jam = await call(datasette, "show_concept", name="jam")
    assert jam["newest"][0]["ref"].startswith("a.b-c/meals:")


@pytest.mark.asyncio
async def test_refs_of_several_databases_name_them(
    two: list[Path], make_datasette: MakeDatasette
) -> None:
    """Every ref that a tool gives can be given back, whatever its database is called."""
    datasette = make_datasette(*two)
    answer = await call(datasette, "recall", text="rag and jam", limit=20)
    refs = [item["ref"] for item in answer["items"]]
    assert refs[2:] == ["one/record:1", "two/record:1", "two/record:2"]
    assert refs[0].startswith('a.b-c/meals:["a/b, 2"')
    for item in answer["items"]:
        read = await call(datasette, "get_item", ref=item["ref"])
        assert (read["ref"], read["title"]) == (item["ref"], item["title"])
        assert (await datasette.client.get(read["page"])).status_code == 200
        for newer in read.get("superseded_by", []):
            assert (await call(datasette, "get_item", ref=newer))["title"] == "Newer"


@pytest.mark.asyncio
async def test_a_ref_without_its_database_is_found_if_it_is_the_only_one(
    two: list[Path], make_datasette: MakeDatasette
) -> None:
    """Otherwise the message names those that may be meant."""
    datasette = make_datasette(*two)
    assert (await call(datasette, "get_item", ref="record:2"))["ref"] == "two/record:2"
    message = await refused(datasette, "get_item", ref="record:1")
    assert message == (
        "Several databases have an item 'record:1'. It is one of: one/record:1, two/record:1."
    )
    message = await refused(datasette, "get_item", ref="three/record:1")
    assert message.endswith("A ref looks like library/record:12.")


@pytest.mark.asyncio
async def test_the_context_of_several_databases_names_them(
    two: list[Path], make_datasette: MakeDatasette
) -> None:
    """One budget for all of them; what is skipped has its database before it."""
    answer = await call(make_datasette(*two), "recall", text="rag and jam", budget=60, limit=9)
    assert tokens_of(answer["context"]) <= 60
    assert "- database: " in answer["context"]
    assert {ref.partition("/")[0] for ref in answer["skipped"]} <= {"one", "two", "a.b-c"}


@pytest.mark.asyncio
async def test_a_database_that_fails_is_a_warning_among_several_and_alone_an_error(
    two: list[Path], make_datasette: MakeDatasette, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither is a crash: the model is told in a sentence."""
    whole, errors = asking.recall, []

    def fail(conn: sqlite3.Connection, *given: Any, **more: Any) -> Any:
        if "one.db" in conn.execute("select file from pragma_database_list").fetchone()[0]:
            raise errors[-1]
        return whole(conn, *given, **more)

    monkeypatch.setattr(asking, "recall", fail)
    for error, among, alone in [
        ("interrupted", "The database one took too long and is left out.", "took too long"),
        ("disk I/O error", "The database one could not be read: disk I/O error.", "cannot be read"),
    ]:
        errors.append(sqlite3.OperationalError(error))
        answer = await call(make_datasette(*two), "recall", text="rag")
        assert answer["warnings"] == [among]
        assert answer["total"] == 2
        assert alone in await refused(make_datasette(two[0]), "recall", text="rag")


# --- who may see what ----------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("table", "ref"),
    [
        ("records", "record:1"),
        ("record_concepts", "record:1"),
        ("observations", "observation:1"),
        ("documents", "document_gist:1"),
        ("document_sections", "document_gist:1"),
    ],
)
async def test_a_private_table_stays_private(
    path: Path, make_datasette: MakeDatasette, table: str, ref: str
) -> None:
    """Nothing of it is shown or counted to anonymous; root is answered in full."""
    config = {"databases": {"knowledge": {"tables": {table: PRIVATE}}}}
    datasette = make_datasette(path, config=config)
    whole = await call(make_datasette(path), "recall", text="RAG", limit=100)
    assert await call(datasette, "recall", ROOT, text="RAG", limit=100) == whole
    kind = ref.partition(":")[0].partition("_")[0]
    left = [item for item in whole["items"] if not item["ref"].startswith(kind)]
    seen = await call(datasette, "recall", text="RAG", limit=100)
    assert seen["items"] == left
    assert seen["total"] == seen["concepts"][0]["total"] == len(left)
    context = await call(datasette, "recall", text="RAG", limit=100, budget=100_000)
    assert f"- ref: {kind}" not in context["context"]
    listed = (await call(datasette, "list_concepts", search="RAG"))["concepts"]
    assert listed == [{"name": "RAG", "total": len(left)}]
    shown = await call(datasette, "show_concept", name="RAG")
    assert sum(shown["kinds"].values()) == shown["total"] == len(left)
    assert not [item for item in shown["newest"] if item["ref"].startswith(kind)]
    nowhere = await refused(datasette, "get_item", ref="shoe:1")
    assert await refused(datasette, "get_item", ref=ref) == nowhere.replace("shoe:1", ref)
    assert (await call(datasette, "get_item", ROOT, ref=ref))["ref"] == ref


@pytest.mark.asyncio
async def test_a_private_database_leaves_no_trace(
    two: list[Path], make_datasette: MakeDatasette
) -> None:
    """With the others hidden, refs and messages are those of a single database."""
    hidden = {"databases": {"two": PRIVATE, "a.b-c": {"tables": {"tags": PRIVATE}}}}
    datasette, alone = make_datasette(*two, config=hidden), make_datasette(two[0])
    for name, given in [
        ("recall", {"text": "rag and jam"}),
        ("recall", {"text": "rag and jam", "budget": 50}),
        ("get_item", {"ref": "record:1"}),
        ("list_concepts", {}),
        ("show_concept", {"name": "rag"}),
    ]:
        assert await call(datasette, name, **given) == await call(alone, name, **given)
    for ref in ("two/record:1", "record:2", 'a.b-c/meals:["a/b, 2",2]'):
        message = await refused(datasette, "get_item", ref=ref)
        assert message == await refused(alone, "get_item", ref=ref)


@pytest.mark.asyncio
async def test_without_a_database_to_ask_every_tool_says_so(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Whether there is none, or none that may be seen; a private instance is refused."""
    hidden = {"databases": {"knowledge": PRIVATE}}
    for datasette, message in [
        (make_datasette(), "There is no database with concepts that you may see."),
        (make_datasette(path, config=hidden), "There is no database with concepts"),
        (make_datasette(path, config=PRIVATE), "You do not have permission"),
    ]:
        for tool in TOOLS:
            given = dict.fromkeys(tool.required, "x")
            assert message in await refused(datasette, tool.name, **given)


# --- hostile names and the descriptions ----------------------------------------------------------


@pytest.mark.asyncio
async def test_hostile_names_go_through_every_tool(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Each name can be asked for, is answered as it is, and its items can be read."""
    datasette = make_datasette(hostile.build(tmp_path / "hostile.db"))
    refs = set()
    for name in hostile.NAMES:
        answer = await call(datasette, "recall", concepts=[name], text=name)
        assert answer["total"] >= 1
        assert name.strip().casefold() in [
            concept["name"].strip().casefold() for concept in answer["concepts"]
        ]
        refs |= {item["ref"] for item in answer["items"]}
        context = await call(datasette, "recall", concepts=[name], budget=300)
        assert context["tokens"] <= 300
        await call(datasette, "recall", text="w", concepts=[name], project=name)
        assert (await call(datasette, "list_concepts", search=name))["total"] >= 1
        shown = await call(datasette, "show_concept", name=name)
        assert shown["total"] >= 4
        refs |= {item["ref"] for item in shown["newest"]}
    for ref in refs:
        assert (await call(datasette, "get_item", ref=ref))["ref"] == ref
    for name in hostile.NAMES:
        assert "There is no item" in await refused(datasette, "get_item", ref=name)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_model_is_told_what_it_needs(tool: Any) -> None:
    """When to use the tool, an example with its parameters, and what each of them means."""
    example = json.loads(tool.description.partition("Example: ")[2])
    assert set(tool.required) <= set(example) <= set(tool.parameters)
    assert "Use it" in tool.description
    assert len(tool.description) < 1000
    for schema in tool.parameters.values():
        assert schema["description"].endswith(".")
    assert tool.input_schema["required"] == list(tool.required)


PAGE = (Path(__file__).parent.parent / "docs" / "tools.md").read_text("utf-8")


def test_the_page_on_tools_names_every_parameter() -> None:
    """The table of tools is complete."""
    for tool in TOOLS:
        parameters = ", ".join(f"`{name}`" for name in tool.parameters)
        assert f"| `{tool.name}` | {parameters} |" in PAGE


EXAMPLES = re.findall(r"`(\w+)` with `(\{.*?\})`:\n\n```json\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.mark.asyncio
@pytest.mark.parametrize(("name", "given", "shown"), EXAMPLES, ids=lambda text: text[:20])
async def test_the_answers_on_the_page_on_tools_are_those_of_the_demo(
    tmp_path: Path, make_datasette: MakeDatasette, name: str, given: str, shown: str
) -> None:
    """Every example of a call brings exactly the answer below it."""
    build_demo(tmp_path / "concept-recall-demo.db")
    datasette = make_datasette(tmp_path / "concept-recall-demo.db")
    assert await call(datasette, name, **json.loads(given)) == json.loads(shown)


def test_the_page_on_tools_has_examples() -> None:
    """They are still written in the form that the test above reads."""
    assert len(EXAMPLES) == 2


# --- where nobody offers the tools ---------------------------------------------------------------

ALONE = """
import asyncio, json, sys
import pluggy
pluggy.PluginManager.load_setuptools_entrypoints = lambda *_: 0  # no other plugin is installed
from datasette.app import Datasette
from datasette.plugins import pm
import datasette_concept_recall
pm.register(datasette_concept_recall, "concept_recall")

async def main():
    datasette = Datasette([sys.argv[1]])
    for path in ("/", "/-/recall?q=RAG", "/knowledge/-/recall.json?q=RAG&budget=99", "/knowledge"):
        response = await datasette.client.get(path)
        assert response.status_code == 200, response.text

asyncio.run(main())
others = ("mcp", "datasette_mcp", "datasette_agent", "llm")
print(json.dumps([name for name in sys.modules if name.startswith(others)]))
print(json.dumps([name for name in sys.modules if name.endswith("_tools")]))
"""


def test_without_the_other_plugins_there_is_no_trace_of_the_tools(path: Path) -> None:
    """In a fresh interpreter with this plugin alone, pages work and nothing of theirs is loaded."""
    command = [sys.executable, "-c", ALONE, str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["[]", "[]"]

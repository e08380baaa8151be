"""The tools as datasette-agent offers them to its assistant, which needs Datasette 1.0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

import hostile
from conftest import IS_1_0, MakeDatasette
from datasette_concept_recall.budgeting import tokens_of
from datasette_concept_recall.tools import TOOLS
from served import PRIVATE, build

pytestmark = pytest.mark.skipif(not IS_1_0, reason="datasette-agent needs Datasette 1.0")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of `served.build`."""
    return build(tmp_path_factory.mktemp("knowledge") / "knowledge.db")


async def listed(datasette: Datasette) -> dict[str, Any]:
    """The tools of the agent by name, each of them once."""
    from datasette_agent.tools import filter_tools_for_actor, get_agent_tools

    await datasette.invoke_startup()
    tools = await filter_tools_for_actor(datasette, None, await get_agent_tools(datasette))
    assert len({tool.name for tool in tools}) == len(tools)
    return {tool.name: tool for tool in tools}


async def call(
    datasette: Datasette, tool_name: str, actor: Any = None, /, **arguments: object
) -> Any:
    """What the agent's model is given for a call of a tool."""
    from datasette_agent.agent import prepare_tool_output_for_model
    from datasette_agent.tools import execute_agent_tool

    tool = (await listed(datasette))[tool_name]
    output = await execute_agent_tool(tool, datasette, actor, arguments=arguments)
    return json.loads(prepare_tool_output_for_model(output))


@pytest.mark.asyncio
async def test_the_tools_are_listed_with_what_a_model_needs(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Beside the agent's own tools there are ours, described as a model needs it."""
    from datasette_agent.tools import make_llm_tools

    datasette = make_datasette(path)
    tools = await listed(datasette)
    for llm_tool in make_llm_tools([tools[tool.name] for tool in TOOLS], datasette, None):
        (tool,) = [tool for tool in TOOLS if tool.name == llm_tool.name]
        assert llm_tool.description == tool.description
        assert llm_tool.input_schema == tool.input_schema


@pytest.mark.asyncio
async def test_what_was_decided_about_the_gil(peps: Path, make_datasette: MakeDatasette) -> None:
    """The question is answered with a context of real data within the budget."""
    datasette = make_datasette(peps)
    answer = await call(datasette, "recall", text="what was decided about the GIL", budget=800)
    assert [concept["name"] for concept in answer["concepts"]] == ["GIL"]
    assert 400 < tokens_of(answer["context"]) == answer["tokens"] <= 800
    assert "GIL" in answer["context"].partition("\n> ")[2]


@pytest.mark.asyncio
async def test_a_question_is_answered_within_its_budget(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """The same on a small database."""
    answer = await call(make_datasette(path), "recall", text="RAG in C++?", budget=100)
    assert 0 < tokens_of(answer["context"]) <= 100


@pytest.mark.asyncio
async def test_a_private_table_is_private_to_other_actors(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """The actor of the conversation is the one who asks."""
    config = {"databases": {"knowledge": {"tables": {"records": PRIVATE}}}}
    datasette = make_datasette(path, config=config)
    for actor, total in [(None, 23), ({"id": "cleo"}, 23), ({"id": "root"}, 25)]:
        answer = await call(datasette, "recall", actor, text="RAG")
        assert answer["total"] == total
        listed = await call(datasette, "list_concepts", actor, search="RAG")
        assert listed["concepts"] == [{"name": "RAG", "total": total}]
        assert (await call(datasette, "show_concept", actor, name="RAG"))["total"] == total
        item = await call(datasette, "get_item", actor, ref="record:1")
        assert ("error" in item) is (total == 23)


@pytest.mark.asyncio
async def test_bad_values_are_answered_in_the_form_of_the_agent(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """An error is an object with ``ok`` false and a sentence, never an exception."""
    datasette = make_datasette(path)
    for arguments, message in [
        ({}, "Give a text, or concepts, or both"),
        ({"question": "RAG"}, "recall has no parameter question"),
        ({"text": {"a": 1}}, "text is not a text"),
        ({"text": "RAG", "limit": 0}, "limit is not a whole number"),
    ]:
        answer = await call(datasette, "recall", **arguments)
        assert answer["ok"] is False
        assert message in answer["error"]


@pytest.mark.asyncio
async def test_nothing_is_rendered_as_html_in_the_chat(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """No answer has a key that the agent keeps from the model and shows as it is."""
    datasette = make_datasette(hostile.build(tmp_path / "hostile.db"))
    tools = await listed(datasette)
    for name in hostile.NAMES[::7]:
        output = await tools["recall"].fn(datasette, None, text=name, concepts=[name])
        assert not [key for key in json.loads(output) if key.startswith("_")]

"""The tools as an MCP client sees them: a real session, over HTTP, with a served Datasette."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

from browser import served
from conftest import IS_1_0
from datasette_concept_recall.budgeting import tokens_of
from datasette_concept_recall.tools import TOOLS
from mcp_client import called, mcp_session, refused
from served import PRIVATE, build

SECRET = "a secret for the tests only"
ANONYMOUS: dict[str, str] = {}
ROOT = {"ds_actor": Datasette(secret=SECRET).sign({"a": {"id": "root"}}, "actor")}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Datasette in which only root may see records."""
    folder = tmp_path_factory.mktemp("served")
    path = build(folder / "knowledge.db")
    config = folder / "config.json"
    tables = {"tables": {"records": PRIVATE}}
    config.write_text(json.dumps({"databases": {"knowledge": tables}}))
    options = ["--config" if IS_1_0 else "--metadata", str(config), "--secret", SECRET]
    with served(folder, path, options=options) as address:
        yield address


@pytest.fixture(scope="module")
def peps_address(peps: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Datasette with real data."""
    with served(tmp_path_factory.mktemp("peps"), peps) as address:
        yield address


@pytest.mark.asyncio
async def test_the_tools_are_listed_with_what_a_model_needs(address: str) -> None:
    """Beside the tools of datasette-mcp there are ours, that only read, with all descriptions."""
    async with mcp_session(address) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert await called(client, "list_databases") == {"databases": ["knowledge"]}
    for tool in TOOLS:
        found = listed[tool.name]
        assert found.description == tool.description
        assert found.annotations is not None
        assert found.annotations.read_only_hint is True
        assert found.input_schema.get("required", []) == list(tool.required)
        properties: dict[str, Any] = found.input_schema["properties"]
        for schema in properties.values():
            schema.pop("title")
        assert properties == tool.parameters


@pytest.mark.asyncio
async def test_what_was_decided_about_the_gil(peps_address: str) -> None:
    """The question of an MCP client is answered with a context of real data within its budget."""
    question = "what was decided about the GIL"
    async with mcp_session(peps_address) as client:
        answer = await called(client, "recall", text=question, budget=800)
        ref = answer["context"].partition("- ref: ")[2].split()[0]
        item = await called(client, "get_item", ref=ref)
        concept = await called(client, "show_concept", name="gil")
        listed = await called(client, "list_concepts", search="free")
    assert answer["concepts"] == [{"name": "GIL", "mentions": 1, "total": answer["total"]}]
    assert 400 < tokens_of(answer["context"]) == answer["tokens"] <= 800
    assert "GIL" in answer["context"].partition("\n> ")[2]
    assert "GIL" in item["concepts"]
    assert (concept["name"], concept["total"]) == ("GIL", answer["total"])
    assert len(concept["newest"]) == 5
    assert all("free" in concept["name"].casefold() for concept in listed["concepts"])


@pytest.mark.asyncio
async def test_a_question_is_answered_within_its_budget(address: str) -> None:
    """The same on a small database; the text of the answer and its structure say the same."""
    async with mcp_session(address) as client:
        given = {"text": "What about RAG in C++?", "budget": 100}
        result = await client.call_tool("recall", given)
        answer = await called(client, "recall", **given)
    assert result.structured_content == answer
    assert 0 < tokens_of(answer["context"]) <= 100
    assert "\n> " in answer["context"]


@pytest.mark.asyncio
async def test_a_private_table_is_private_to_who_is_not_signed_in(address: str) -> None:
    """The actor of the HTTP request is the one who asks; nothing is shown or counted to others."""
    async with mcp_session(address, ANONYMOUS) as client:
        seen = await called(client, "recall", text="RAG and C++", limit=100)
        assert (await called(client, "show_concept", name="RAG"))["total"] == 23
        assert "There is no item 'record:1'" in await refused(client, "get_item", ref="record:1")
    async with mcp_session(address, ROOT) as client:
        whole = await called(client, "recall", text="RAG and C++", limit=100)
        assert (await called(client, "get_item", ref="record:1"))["title"] == "Use RAG"
    assert {item["kind"] for item in whole["items"]} - {item["kind"] for item in seen["items"]} == {
        "Record"
    }
    assert (seen["total"], whole["total"]) == (23, 25)


@pytest.mark.asyncio
async def test_bad_values_are_answered_with_a_sentence(address: str) -> None:
    """Errors reach the model as the results of its calls, and the session goes on."""
    async with mcp_session(address) as client:
        assert "Give a text, or concepts" in await refused(client, "recall")
        assert "text is not a text" in await refused(client, "recall", text={"a": 1})
        assert "limit is not a whole" in await refused(client, "recall", text="RAG", limit=1000)
        assert "budget is not a whole" in await refused(client, "recall", text="RAG", budget="no")
        assert "There is no item" in await refused(client, "get_item", ref="<script>")
        assert "no concept named" in await refused(client, "show_concept", name="<script>")
        assert "There is no project" in await refused(client, "recall", text="RAG", project="Nope")


@pytest.mark.asyncio
async def test_values_are_taken_as_models_write_them(address: str) -> None:
    """Null stands for nothing, a list may come as JSON, and a text like JSON is a text."""
    async with mcp_session(address) as client:
        plain = await called(client, "recall", concepts=["RAG", "C++"], limit=3)
        assert plain == await called(
            client, "recall", text=None, concepts='["RAG", "C++"]', project=None, limit="3"
        )
        quoted = await called(client, "recall", text='["RAG"]', budget=None)
        assert [concept["name"] for concept in quoted["concepts"]] == ["RAG"]
        script = "<script>alert(1)</script> ]]> %2F ~ \" ' \\ 🦉 \u202e \x00 RAG"
        assert (await called(client, "recall", text=script))["total"] == 23

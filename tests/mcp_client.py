"""A real MCP client session, over HTTP, with a Datasette that is really served."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult


@asynccontextmanager
async def mcp_session(address: str, cookies: dict[str, str] | None = None) -> AsyncIterator[Client]:
    """A session with the endpoint of datasette-mcp at this address, as whoever the cookies say."""
    async with (
        httpx2.AsyncClient(cookies=cookies, timeout=60) as http,
        Client(streamable_http_client(f"{address}/-/mcp", http_client=http)) as client,
    ):
        yield client


async def called(client: Client, tool: str, **arguments: object) -> Any:
    """What a tool answers, which must not be an error: the object of its text."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    return json.loads(text_of(result))


async def refused(client: Client, tool: str, **arguments: object) -> str:
    """The message with which a tool refuses to answer."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, text_of(result)
    return text_of(result)


def text_of(result: CallToolResult) -> str:
    """The only block of a result, which is text."""
    (block,) = result.content
    assert block.type == "text"
    return block.text

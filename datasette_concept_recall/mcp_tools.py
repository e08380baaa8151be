"""The tools for datasette-mcp; imported only where that is installed."""

from __future__ import annotations

import json
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field, SkipValidation, WithJsonSchema

from .errors import RecallError
from .toolbox import Tool
from .tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from datasette.app import Datasette

    from .compat import Actor


def register(datasette: Datasette, mcp: MCPServer) -> None:
    """Adds the tools to the server of an instance."""
    for tool in TOOLS:
        mcp.add_tool(
            _function(datasette, tool),
            name=tool.name,
            description=tool.description,
            annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
            structured_output=False,
        )


def _function(datasette: Datasette, tool: Tool) -> Callable[..., Any]:
    """A function whose signature has the parameters of a tool: their schema is made from it."""

    async def answer(ctx: Context, **given: Any) -> CallToolResult:
        try:
            found = await tool.call(datasette, _actor(ctx), given)
        except RecallError as error:
            raise ToolError(str(error)) from error
        text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
        return CallToolResult(
            content=[TextContent(type="text", text=text)], structured_content=found
        )

    answer.__name__ = tool.name
    context = Parameter("ctx", Parameter.KEYWORD_ONLY, annotation=Context)
    parameters = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if name in tool.required else Field(default_factory=_nothing),
            annotation=_annotation(schema),
        )
        for name, schema in tool.parameters.items()
    ]
    answer.__signature__ = Signature([context, *parameters])  # type: ignore[attr-defined]
    return answer


def _nothing() -> None:
    """The value of a parameter that is not given; as a plain default it would be in the schema."""


def _annotation(schema: dict[str, Any]) -> Any:
    """The type of a parameter, whose value is left for the tool to check.

    To the server a text is a text even when it looks like JSON; other values may come as JSON.
    """
    if schema["type"] == "string":
        return Annotated[str, SkipValidation, WithJsonSchema(schema)]
    return Annotated[Any, WithJsonSchema(schema)]


def _actor(ctx: Context) -> Actor:
    """Who sent the request, as Datasette knows it."""
    scope = getattr(ctx.request_context.request, "scope", None) or {}
    actor: Actor = scope.get("actor")
    return actor

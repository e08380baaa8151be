"""The tools for datasette-agent; imported only where that is installed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from datasette_agent.tools import AgentTool

from .errors import RecallError
from .toolbox import Tool
from .tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from datasette.app import Datasette

    from .compat import Actor


def agent_tools() -> list[AgentTool]:
    """The tools as the hook ``register_agent_tools`` returns them."""
    return [
        AgentTool(tool.name, tool.description, tool.input_schema, _function(tool)) for tool in TOOLS
    ]


def _function(tool: Tool) -> Callable[..., Awaitable[str]]:
    async def answer(datasette: Datasette, actor: Actor, **given: Any) -> str:
        try:
            found = await tool.call(datasette, actor, given)
        except RecallError as error:
            found = {"ok": False, "error": str(error)}
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"))

    return answer

"""Tools that do as tests tell them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.conversation.tools import ToolCall, ToolOutput, ToolSpec
from bot.tools.surroundings import Surroundings

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
}

Deed = Callable[[Surroundings, Mapping[str, Any]], Awaitable[str | ToolOutput]]


@dataclass(slots=True)
class StagedTool:
    """A tool that remembers what it was asked."""

    deed: Deed | str = "找到一条"
    name: str = "look"
    operators_only: bool = False
    timeout_seconds: float = 5.0
    asked: list[dict[str, Any]] = field(default_factory=list)
    seen: list[Surroundings] = field(default_factory=list)
    spec: ToolSpec = field(init=False)

    def __post_init__(self) -> None:
        self.spec = ToolSpec(self.name, "找东西", PARAMETERS)

    async def run(
        self, surroundings: Surroundings, arguments: Mapping[str, Any]
    ) -> str | ToolOutput:
        self.asked.append(dict(arguments))
        self.seen.append(surroundings)
        if isinstance(self.deed, str):
            return self.deed
        return await self.deed(surroundings, arguments)


def look(query: str = "西瓜", *, call_id: str = "call_a", name: str = "look") -> ToolCall:
    """A call that is in order."""
    return ToolCall(call_id, name, f'{{"query": "{query}"}}')

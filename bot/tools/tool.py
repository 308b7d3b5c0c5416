"""What every tool has, and what it may know of the turn that calls it.

See ``docs/tools.md``, "Built-in tools".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from bot.app import App
from bot.conversation.tools import ToolSpec
from bot.scene import Scene


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a tool may know of the turn that calls it."""

    app: App
    scene: Scene
    shown_rows: frozenset[int]
    """Message rows already in the prompt."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """A result that shows stored messages, or rests on them."""

    text: str
    message_ids: tuple[int, ...] = ()
    """Their rows, so that a recall reaches what is kept of the result."""


class Tool(Protocol):
    """Something that a model may do or look up."""

    spec: ToolSpec
    timeout_seconds: float
    operators_only: bool

    async def run(
        self, surroundings: Surroundings, arguments: Mapping[str, Any]
    ) -> str | ToolOutput:
        """Return the text for the model.

        Raises:
            ToolError: an error that the model should read.
        """
        ...

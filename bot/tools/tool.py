"""A tool as a turn uses it."""

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


class Tool(Protocol):
    """Something that a model may do in a turn."""

    @property
    def spec(self) -> ToolSpec:
        """What the model is told of it."""
        ...

    @property
    def timeout_seconds(self) -> float:
        """How long it may take."""
        ...

    @property
    def operators_only(self) -> bool:
        """Whether only turns of operators have it."""
        ...

    async def run(self, surroundings: Surroundings, arguments: Mapping[str, Any]) -> str:
        """Return the text for the model.

        Raises:
            ToolError: for an error the model should read.
        """
        ...

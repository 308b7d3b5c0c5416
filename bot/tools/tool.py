"""A tool, and what it may know of the turn that calls it.

See ``docs/tools.md``, "What a tool is".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from bot.app import App
from bot.conversation.tools import ToolOutput, ToolResult, ToolSpec
from bot.scene import Scene


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a tool may know of the turn that calls it."""

    app: App
    scene: Scene
    shown_rows: frozenset[int]
    """The message rows that the prompt shows already, those of earlier results included."""

    def showing(self, results: Iterable[ToolResult]) -> "Surroundings":
        """Return the surroundings once some results are in the prompt as well."""
        rows = self.shown_rows.union(*(result.message_ids for result in results))
        return replace(self, shown_rows=rows)


class Tool(Protocol):
    """Something that a model may have done for it."""

    @property
    def spec(self) -> ToolSpec:
        """What the model is told of it."""
        ...

    @property
    def timeout_seconds(self) -> float:
        """How long one call may take."""
        ...

    @property
    def operators_only(self) -> bool:
        """Whether it is for ``SUPERUSERS`` alone."""
        ...

    async def run(
        self, surroundings: Surroundings, arguments: Mapping[str, Any]
    ) -> str | ToolOutput:
        """Do it and return what the model is told.

        Args:
            surroundings: the turn.
            arguments: as the schema asks for them, and still a model's words.

        Raises:
            ToolError: it could not be done; the text is for the model.
        """
        ...

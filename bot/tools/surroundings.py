"""What a tool may know of the turn that calls it.

See ``docs/tools.md``, "What a tool is".
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from bot.app import App
from bot.conversation.tools import ToolResult
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

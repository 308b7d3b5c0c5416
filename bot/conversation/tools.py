"""What a tool is: its words, its schema and what it gives back. Pure.

See ``docs/tools.md``, "What a tool is".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar


@dataclass(frozen=True, slots=True, eq=False)
class ToolSpec:
    """A tool as a model is told of it. Two are equal if they are the same one, so that what is
    made of a specification is made once."""

    name: str
    """``[a-z0-9_]{1,64}``."""
    description: str
    """What the model reads, in Chinese."""
    parameters: Mapping[str, Any]
    """The JSON schema of an object."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to use a tool."""

    id: str
    name: str
    arguments: str
    """JSON text as the model wrote it, hostile."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool found or did, with the messages that it shows."""

    text: str
    message_ids: tuple[int, ...] = ()
    """The rows of the messages whose words are in it, so that a recall reaches them."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the model is told of a call."""

    text: str
    is_error: bool = False
    message_ids: tuple[int, ...] = ()
    """See ``ToolOutput``."""


SurroundingsT = TypeVar("SurroundingsT", contravariant=True)
"""What a tool may know of the turn that calls it; see ``bot/tools/surroundings.py``."""


class Tool(Protocol[SurroundingsT]):
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
        self, surroundings: SurroundingsT, arguments: Mapping[str, Any]
    ) -> str | ToolOutput:
        """Do it and return what the model is told.

        Args:
            surroundings: the turn.
            arguments: as the schema asks for them, and still a model's words.

        Raises:
            ToolError: it could not be done; the text is for the model.
        """
        ...

"""What a tool is: its words, its schema and what it gives back. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told of a tool."""

    name: str
    """``[a-z0-9_]{1,64}``."""
    description: str
    """What the model reads, Chinese."""
    parameters: Mapping[str, Any]
    """The JSON schema of an object."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model wants done."""

    id: str
    name: str
    arguments: str
    """JSON text as the model wrote it, hostile."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of a call."""

    text: str
    is_error: bool = False

"""One message of a prompt, as every room tells it: a model is asked with some of these. Pure."""

from dataclasses import dataclass, field
from typing import Literal

from bot.conversation.tools import ToolCall


@dataclass(frozen=True, slots=True)
class Image:
    """A picture that a message of a prompt shows."""

    media_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    """Of an assistant's: the tools it wanted used. Their results follow, in order."""
    call_id: str = ""
    """Of a tool's: the call that this is the result of."""
    model: str = ""
    """Of both: whose calls they are. Another model is told of them in plain words."""
    images: tuple[Image, ...] = ()
    """Shown behind the text."""

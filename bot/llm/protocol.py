"""What the rest of the house knows of a model: one request, one answer.

See ``docs/architecture.md``, "Models".
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from bot.conversation.prompt_message import PromptMessage
from bot.conversation.tools import ToolCall, ToolSpec
from bot.model import Chat, Usage

Purpose = Literal[
    "chat",
    "reflect.group",
    "reflect.member-batch",
    "reflect.private-owner",
    "compress.group",
    "compress.member",
    "summarize",
    "decide",
    "vision",
    "embed",
]

UsageRecorder = Callable[[Usage], Awaitable[None]]
"""Keeps one usage row; given by the store, so that neither room imports the other."""


@dataclass(frozen=True, slots=True)
class RouteName:
    """What usage rows and answers call a route: plain words, without address or key."""

    model: str
    endpoint: str


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything one call needs."""

    purpose: Purpose
    messages: tuple[PromptMessage, ...]
    chat: Chat | None = None
    """The chat that the call is billed to."""
    max_tokens: int | None = None
    json_schema: Mapping[str, Any] | None = None
    """Ask for JSON of this schema; how strictly depends on the endpoint."""
    last_route: RouteName | None = None
    """The route of the chat's last successful answer; memory without an own model follows it."""
    tools: tuple[ToolSpec, ...] = ()
    """What the model may have done for it."""
    preferred_model: str = ""
    """The model that was chosen for the chat; answers are asked of it first."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A completed call."""

    text: str
    finish_reason: str
    """``stop``, ``length``, ``content_filter`` … as the provider says."""
    model: str
    endpoint: str
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    tool_calls: tuple[ToolCall, ...] = ()
    """What it wants done, whatever it says besides; hostile."""


class ChatModel(Protocol):
    """A model behind a purpose. ``OpenAIModel`` and ``ScriptedModel`` implement it."""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Return the answer.

        Raises:
            ModelNotConfigured, ModelUnavailable, ModelRefused, ContextTooLong, ModelAnswerInvalid.
        """
        ...

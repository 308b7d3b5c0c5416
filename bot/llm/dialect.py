"""How one model at one endpoint wants to be asked, learnt from its refusals. Pure.

See ``docs/architecture.md``, "Models". JSON output steps from a schema to JSON mode to plain
text; tools are offered or not; whatever worked is remembered by the caller.
"""

import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from bot.conversation.prompt_message import Image, PromptMessage
from bot.conversation.tools import ToolSpec
from bot.llm.characters import whole_characters
from bot.llm.plain_tools import in_plain_words
from bot.llm.protocol import ModelRequest
from bot.llm.rejection import (
    Rejection,
    blames_account,
    finds_too_long,
    refuses_content,
    refuses_tools,
)

JsonMode = Literal["schema", "object", "plain"]
LimitField = Literal["max_tokens", "max_completion_tokens"]

_NEXT_JSON_MODE: dict[JsonMode, JsonMode] = {"schema": "object", "object": "plain"}

_STREAM_ONLY = re.compile(
    r"only supports? stream|(?:enable|requires?|set) (?:the )?stream"
    r"|stream\S* (?:must be|is required)|non-?stream\S* \S* ?not supported|仅支持流|只支持流"
)
_NO_STREAM = re.compile(r"stream\S* (?:\S+ ){0,3}(?:not supported|unsupported|not support)")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What to send and what to leave out. The defaults are what most endpoints take."""

    json_mode: JsonMode = "schema"
    limit_field: LimitField = "max_tokens"
    limit_cap: int | None = None
    """The most completion tokens that the model lets anyone ask for."""
    stream: bool = False
    stream_usage: bool = True
    tools: bool = True


def parameters(request: ModelRequest, model: str, dialect: Dialect) -> dict[str, Any]:
    """Return the JSON body of a completion request."""
    takes_tools = bool(request.tools) and dialect.tools
    told = in_plain_words(request.messages, but_of=model if takes_tools else "")
    body: dict[str, Any] = {"model": model, "messages": [_message(each) for each in told]}
    if takes_tools:
        body["tools"] = tools_parameter(request.tools)
    if request.max_tokens is not None:
        cap = dialect.limit_cap or request.max_tokens
        body[dialect.limit_field] = min(request.max_tokens, cap)
    body.update(_response_format(request, dialect.json_mode))
    if dialect.stream:
        body["stream"] = True
        body.update({"stream_options": {"include_usage": True}} if dialect.stream_usage else {})
    return body


def _message(message: PromptMessage) -> dict[str, Any]:
    body: dict[str, Any] = {"role": message.role, "content": _content(message)}
    if message.role == "tool":
        body["tool_call_id"] = message.call_id
    elif message.calls:
        body["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.calls
        ]
    return body


@lru_cache(maxsize=64)
def tools_parameter(tools: tuple[ToolSpec, ...]) -> list[dict[str, Any]]:
    """Return ``tools`` as a request names them. Made once for the same tools; not to be changed."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            },
        }
        for tool in tools
    ]


def _content(message: PromptMessage) -> str | list[dict[str, Any]]:
    """Return a message's content: plain text, as every endpoint takes it, unless it has images."""
    text = whole_characters(message.content)
    if not message.images:
        return text
    return [{"type": "text", "text": text}, *map(_image_part, message.images)]


def _image_part(image: Image) -> dict[str, Any]:
    address = f"data:{image.media_type};base64,{b64encode(image.data).decode('ascii')}"
    return {"type": "image_url", "image_url": {"url": address}}


def adapted(dialect: Dialect, request: ModelRequest, rejection: Rejection) -> Dialect | None:
    """Return another way to ask after ``rejection``, or ``None`` if there is none to try."""
    if request.tools and dialect.tools and refuses_tools(rejection):
        return replace(dialect, tools=False)
    if not rejection.is_about_request or refuses_content(rejection) or blames_account(rejection):
        return None
    return next(_steps(dialect, request, rejection), None)


def _steps(dialect: Dialect, request: ModelRequest, rejection: Rejection) -> Iterator[Dialect]:
    words = rejection.words
    if dialect.stream and dialect.stream_usage and "stream_options" in words:
        yield replace(dialect, stream_usage=False)
    if not dialect.stream and _STREAM_ONLY.search(words):
        yield replace(dialect, stream=True)
    if dialect.stream and _NO_STREAM.search(words):
        yield replace(dialect, stream=False)
    if request.max_tokens is not None:
        yield from _limit_steps(dialect, request.max_tokens, rejection)
    if request.json_schema is not None and not finds_too_long(rejection):
        yield from _json_steps(dialect)
    if request.tools and dialect.tools and not finds_too_long(rejection):
        # Also when no cause is named, as with JSON.
        yield replace(dialect, tools=False)


def _limit_steps(dialect: Dialect, wanted: int, rejection: Rejection) -> Iterator[Dialect]:
    words = rejection.words
    if dialect.limit_field == "max_tokens" and "max_completion_tokens" in words:
        yield replace(dialect, limit_field="max_completion_tokens")
    about_limit = re.search(r"max_(?:completion_)?tokens|completion tokens", words)
    cap = _largest_below(min(wanted, dialect.limit_cap or wanted), words)
    if about_limit and cap and not finds_too_long(rejection):
        yield replace(dialect, limit_cap=cap)


def _largest_below(wanted: int, words: str) -> int:
    """Return the largest number in ``words`` under ``wanted``: "the valid range is [1, 8192]"."""
    numbers = [int(digits) for digits in re.findall(r"\d{1,9}", words)]
    return max((number for number in numbers if 16 <= number < wanted), default=0)


def _json_steps(dialect: Dialect) -> Iterator[Dialect]:
    """Step down also when the rejection names no cause: some say only "wrong parameters"."""
    lower = _NEXT_JSON_MODE.get(dialect.json_mode)
    if lower is not None:
        yield replace(dialect, json_mode=lower)


def _response_format(request: ModelRequest, mode: JsonMode) -> dict[str, Any]:
    if request.json_schema is None or mode == "plain":
        return {}
    if mode == "object":
        return {"response_format": {"type": "json_object"}}
    # Not strict: that mode demands that every key be required, and ours are optional.
    schema = {"name": "answer", "schema": dict(request.json_schema), "strict": False}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}

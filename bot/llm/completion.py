"""Reading a provider's answer, which is hostile until proven a completion. Pure.

See ``docs/architecture.md``, "Models".
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.conversation.tools import ToolCall
from bot.errors import ModelAnswerInvalid, ModelError, ModelRefused, ModelUnavailable
from bot.llm.characters import whole_characters
from bot.llm.rejection import REFUSAL_FINISHES
from bot.llm.tool_calls import CallPieces, calls_in

MAX_TOKENS_BELIEVED = 1_000_000_000
"""A count beyond it is nonsense, and would not fit the database."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The provider's own count; zeros where it gave none."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0


NO_TOKENS = Tokens()


@dataclass(frozen=True, slots=True)
class Completion:
    """The first choice, without any reasoning."""

    text: str
    finish_reason: str
    tool_calls: tuple[ToolCall, ...] = ()


def decode(body: bytes) -> object:
    """Return the JSON in ``body``, assembled when it is an event stream; ``None`` for garbage."""
    text = body.decode("utf-8", "replace").removeprefix("\ufeff").strip()
    if not text.startswith(("data:", ":", "event:", "id:")):
        return _json(text)
    chunks = [_json(data) for data in _events(text)]
    return assembled(chunks) if all(isinstance(each, Mapping) for each in chunks) else None


def assembled(chunks: Iterable[Any]) -> dict[str, Any]:
    """Return streamed ``chunks`` as the completion that they are parts of.

    Only the first choice is read. A stream without a finish reason was cut off: ``length``.
    """
    parts: list[str] = []
    refusal: list[str] = []
    calls = CallPieces()
    finish, usage, error, choices_seen = "length", None, None, False
    for chunk in chunks:
        usage = chunk.get("usage") or usage
        error = chunk.get("error") or error
        choice = _first_choice(chunk)
        if choice is None:
            continue
        choices_seen = True
        delta = choice.get("delta") or choice.get("message")
        parts.append(_content(delta, "content"))
        refusal.append(_content(delta, "refusal"))
        calls.add(delta)
        finish = choice.get("finish_reason") or finish
    message = {"content": "".join(parts), "refusal": "".join(refusal), **calls.whole()}
    choices = [{"message": message, "finish_reason": finish}] if choices_seen and not error else []
    return {"choices": choices, "usage": usage, "error": error}


def tokens_in(body: object) -> Tokens:
    """Return the usage that ``body`` reports, under any of the names that providers use."""
    usage = body.get("usage") if isinstance(body, Mapping) else None
    if not isinstance(usage, Mapping):
        return NO_TOKENS
    details = usage.get("prompt_tokens_details")
    nested = details.get("cached_tokens") if isinstance(details, Mapping) else None
    cached = nested or usage.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")
    return Tokens(
        _count(usage.get("prompt_tokens")), _count(cached), _count(usage.get("completion_tokens"))
    )


def read_completion(body: object, where: str) -> Completion | ModelError:
    """Return the completion in ``body``, or the error that it amounts to.

    An empty text is a completion: some models think until the limit and say nothing.
    """
    choice = _first_choice(body)
    if choice is None:
        return ModelAnswerInvalid(f"{where} {_lack(body)}")
    finish = choice.get("finish_reason")
    reason = finish if isinstance(finish, str) and finish else "stop"
    if reason.lower() in REFUSAL_FINISHES:
        return ModelRefused(f"{where} filtered the answer")
    if reason in ("network_error", "error"):
        return ModelUnavailable(f"{where} broke off: {reason}")
    message = choice.get("message")
    if not isinstance(message, Mapping):
        return ModelAnswerInvalid(f"{where} answered with a choice that has no message")
    text, calls = _content(message, "content"), calls_in(message)
    if not text.strip() and not calls and _content(message, "refusal"):
        return ModelRefused(f"{where} declined to answer")
    return Completion(whole_characters(text), whole_characters(reason)[:40], calls)


def _lack(body: object) -> str:
    if body is None:
        return "answered with something that is no JSON"
    if isinstance(body, Mapping) and "choices" in body:
        return "answered without a choice"
    return "answered with JSON that is no completion"


def _events(text: str) -> Iterator[str]:
    """Yield the data of each event. Lines end as the SSE rules say, not as Unicode's."""
    for line in re.split(r"\r\n|\n|\r", text):
        data = line.removeprefix("data:").strip()
        if line.startswith("data:") and data and data != "[DONE]":
            yield data


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _first_choice(body: object) -> Mapping[str, Any] | None:
    choices = body.get("choices") if isinstance(body, Mapping) else None
    if not isinstance(choices, Sequence) or not choices or isinstance(choices, str):
        return None
    return choices[0] if isinstance(choices[0], Mapping) else None


def _content(message: object, key: str) -> str:
    """Return a message's text; of typed parts only the text ones, so no thinking."""
    value = message.get(key) if isinstance(message, Mapping) else None
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return ""
    parts = [each for each in value if isinstance(each, Mapping) and each.get("type") == "text"]
    return "".join(each["text"] for each in parts if isinstance(each.get("text"), str))


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value <= MAX_TOKENS_BELIEVED else 0

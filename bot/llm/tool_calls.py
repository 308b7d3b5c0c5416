"""The tool calls in a provider's answer, whole or in pieces; hostile. Pure.

See ``docs/architecture.md``, "Models".
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bot.conversation.tools import ToolCall
from bot.llm.characters import whole_characters

MAX_CALLS = 16
"""More are not looked at: no answer needs them."""

MAX_ARGUMENTS_CHARS = 20_000
"""Of the arguments of a call so much is read; what is cut is no JSON any more."""

_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
_PLAIN_ID = re.compile(r"[\x21-\x7e]{1,200}")


def calls_in(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """Return the calls that the message of a choice makes, each with an id of its own."""
    found = [call for each in _listed(message) if (call := _call(each))][:MAX_CALLS]
    taken: set[str] = set()
    return tuple(_with_own_id(call, taken) for call in found)


def _listed(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        yield from (each for each in calls if isinstance(each, Mapping))
    legacy = message.get("function_call")
    if isinstance(legacy, Mapping) and not calls:
        yield {"function": legacy}


def _call(given: Mapping[str, Any]) -> ToolCall | None:
    """Return a call, or nothing where there is not even a name."""
    function = given.get("function")
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(name, str) or not name.strip():
        return None
    call_id = given.get("id")
    # A provider takes only such names back, whatever its model wrote.
    plain = _NO_NAME.sub("_", name.strip())[:64]
    return ToolCall(
        call_id if isinstance(call_id, str) else "", plain, _arguments(function.get("arguments"))
    )


def _arguments(given: object) -> str:
    if given is None or given == "":
        return "{}"
    text = given if isinstance(given, str) else _json(given)
    return whole_characters(text[:MAX_ARGUMENTS_CHARS])


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _with_own_id(call: ToolCall, taken: set[str]) -> ToolCall:
    """Return a call with an id that its result can name."""
    call_id = call.id
    if not _PLAIN_ID.fullmatch(call_id) or call_id in taken:
        call_id = next(name for n in range(len(taken) + 2) if (name := f"call_{n}") not in taken)
    taken.add(call_id)
    return ToolCall(call_id, call.name, call.arguments)


class CallPieces:
    """The calls of a stream, put together piece by piece."""

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []

    def add(self, delta: object) -> None:
        """Add what one chunk brings."""
        if not isinstance(delta, Mapping):
            return
        for piece in _listed(delta):
            function = piece.get("function")
            if isinstance(function, Mapping) and (call := self._one(piece, function)):
                _join(call["function"], function)

    def whole(self) -> dict[str, Any]:
        """Return them as a message that came whole would have them."""
        return {"tool_calls": self._calls} if self._calls else {}

    def _one(self, piece: Mapping[str, Any], function: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the call that a piece belongs to; a new one if that is none so far."""
        known = self._known(piece.get("index"), piece.get("id"))
        if known is not None and not _is_another(known, piece, function):
            return known
        if len(self._calls) >= MAX_CALLS:
            return None
        made = {
            "index": piece.get("index"),
            "id": piece.get("id"),
            "function": {"name": "", "arguments": ""},
        }
        self._calls.append(made)
        return made

    def _known(self, index: object, call_id: object) -> dict[str, Any] | None:
        """Return the newest call of an index, else of an id, else of all."""
        newest_first = reversed(self._calls)
        if isinstance(index, int):
            return next((call for call in newest_first if call["index"] == index), None)
        if call_id:
            return next((call for call in newest_first if call["id"] == call_id), None)
        return next(newest_first, None)


def _is_another(
    known: Mapping[str, Any], piece: Mapping[str, Any], function: Mapping[str, Any]
) -> bool:
    """Say whether a piece begins another call: some providers count all as 0, or not at all."""
    call_id = piece.get("id")
    if call_id and known["id"]:
        return call_id != known["id"]
    return not isinstance(piece.get("index"), int) and bool(
        function.get("name") and known["function"]["name"]
    )


def _join(known: dict[str, Any], piece: Mapping[str, Any]) -> None:
    name, arguments = piece.get("name"), piece.get("arguments")
    if not known["name"] and isinstance(name, str):
        known["name"] = name
    if isinstance(arguments, str):
        room = MAX_ARGUMENTS_CHARS - len(known["arguments"])
        known["arguments"] += arguments[: max(0, room)]
    elif arguments:
        known["arguments"] = _json(arguments)

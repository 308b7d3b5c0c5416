"""The complete JSON objects in what a model wrote, with thinking, prose and fences around them.

A model's answer is hostile text of any length, so the search is a single walk: no part of the
text is read more than twice, and nothing recurses. See ``docs/memory.md``, "Output".
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

_TAG = r"<(?P<closing>/?)\s{0,9}think(?:ing)?(?=[\s/>]|\Z)[^<>]*+>?"
_tag = re.compile(_TAG, re.IGNORECASE)
_mark = re.compile(rf"(?P<object>\{{)|{_TAG}", re.IGNORECASE)
_SPACE = r"[ \t\r\n]*+"
_STRING = r'"[^"\\]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\]*+)*+"'
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_VALUE = rf"(?P<object>\{{)|(?P<array>\[)|(?P<scalar>{_STRING}|{_NUMBER}|true|false|null)"
_KEY = rf"(?P<key>{_STRING}{_SPACE}:)"

_a_value = re.compile(rf"{_SPACE}(?:{_VALUE})")
_a_first_value = re.compile(rf"{_SPACE}(?:{_VALUE}|(?P<end>\]))")
_a_key = re.compile(rf"{_SPACE}{_KEY}")
_a_first_key = re.compile(rf"{_SPACE}(?:{_KEY}|(?P<end>\}}))")
_what_follows = re.compile(rf"{_SPACE}(?:(?P<comma>,)|(?P<end>[\]}}]))")

_CLOSING = {"{": "}", "[": "]"}
_NUMBER_MAX_DIGITS = 20


@dataclass(frozen=True, slots=True)
class FoundObject:
    """A complete object: not a part of another one, though maybe of one that breaks off."""

    start: int
    end: int
    is_fragment: bool
    """It lies inside an object that breaks off."""


@dataclass(slots=True)
class _Walk:
    """Where each object of a text ends; ``None`` for one that breaks off."""

    text: str
    ends: dict[int, int | None] = field(default_factory=dict)

    def end_of(self, start: int) -> int | None:
        """Return the end of the object whose brace is at ``start``."""
        if start not in self.ends:
            self._follow(start)
        return self.ends[start]

    def _follow(self, start: int) -> None:
        opened: list[int] = []
        at, expected = start, _a_value
        while token := expected.match(self.text, at):
            at = token.end()
            kind = token.lastgroup
            if kind in ("object", "array"):
                opened.append(at - 1)
                expected = _a_first_key if kind == "object" else _a_first_value
            elif kind == "end":
                if not self._closes(opened, at):
                    break
                expected = _what_follows
            elif kind == "comma":
                expected = _a_key if self.text[opened[-1]] == "{" else _a_value
            else:
                expected = _a_value if kind == "key" else _what_follows
            if not opened:
                break
        self.ends.update({brace: None for brace in opened if self.text[brace] == "{"})

    def _closes(self, opened: list[int], at: int) -> bool:
        """Close the innermost bracket with the sign before ``at``, if it is its own."""
        if _CLOSING[self.text[opened[-1]]] != self.text[at - 1]:
            return False
        brace = opened.pop()
        if self.text[brace] == "{":
            self.ends[brace] = at
        return True


def objects_in(text: str) -> tuple[FoundObject, ...]:
    """Return the complete JSON objects of ``text`` in order, thinking apart.

    Thinking is each ``<think>…</think>``, an unclosed one to the end, and all before a
    ``</think>`` that was never opened. A tag inside a string of an object is a part of it.
    """
    walk = _Walk(text)
    found: list[FoundObject] = []
    at = 0
    while mark := _mark.search(text, at):
        at = mark.end()
        if mark["object"]:
            is_fragment = mark.start() in walk.ends
            if end := walk.end_of(mark.start()):
                found.append(FoundObject(mark.start(), end, is_fragment))
                at = end
        elif mark["closing"]:
            found.clear()
        elif not mark[0].endswith("/>"):
            closing = _end_of_thinking(text, at)
            if closing is None:
                break
            at = closing
    return tuple(found)


def _end_of_thinking(text: str, at: int) -> int | None:
    for mark in _tag.finditer(text, at):
        if mark["closing"]:
            return mark.end()
    return None


def read_object(text: str, found: FoundObject) -> dict[str, Any] | None:
    """Return the object as Python values, or ``None`` if it is nested beyond reason.

    An integer of more digits than any id has reads as ``None``.
    """
    source = text[found.start : found.end]
    try:
        return json.loads(source, strict=False, parse_int=_integer)
    except (RecursionError, ValueError):
        return None


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= _NUMBER_MAX_DIGITS else None

"""The string format of messages, where segments are CQ codes within text.

An implementation executes the codes in every string that it is given to send, which is how a
text injects segments. Written apart from the product's own reader, so that each tests the
other. See ``docs/onebot.md``, "Quirks".
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from bot.simulate.segments import RawSegment, segment, text

_CODE = re.compile(r"\[CQ:(?P<kind>[A-Za-z0-9_.-]+)(?P<parameters>(?:,[^\[\]]*)?)\]")


def escape(content: str, *, in_parameter: bool = False) -> str:
    """Return ``content`` as it stands in text, or within a parameter of a code."""
    escaped = content.replace("&", "&amp;").replace("[", "&#91;").replace("]", "&#93;")
    return escaped.replace(",", "&#44;") if in_parameter else escaped


def unescape(content: str) -> str:
    """Return what an escaped text or parameter means."""
    plain = content.replace("&#44;", ",").replace("&#91;", "[").replace("&#93;", "]")
    return plain.replace("&amp;", "&")


def encode(segments: Iterable[RawSegment]) -> str:
    """Return the string format of ``segments``."""
    return "".join(_encoded(each) for each in segments)


def decode(message: str) -> tuple[RawSegment, ...]:
    """Return the segments that an implementation makes of a string."""
    segments: list[RawSegment] = []
    position = 0
    for code in _CODE.finditer(message):
        segments += _plain(message[position : code.start()])
        segments.append(segment(code["kind"], **_parameters(code["parameters"])))
        position = code.end()
    return (*segments, *_plain(message[position:]))


def codes(message: str) -> tuple[str, ...]:
    """Return the CQ codes that an implementation would execute in a string."""
    return tuple(code[0] for code in _CODE.finditer(message))


def _encoded(raw: RawSegment) -> str:
    if raw["type"] == "text":
        return escape(str(raw["data"].get("text", "")))
    given = {name: value for name, value in raw["data"].items() if value is not None}
    parameters = "".join(
        f",{name}={escape(_value(value), in_parameter=True)}" for name, value in given.items()
    )
    return f"[CQ:{raw['type']}{parameters}]"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(piece: str) -> list[RawSegment]:
    return [text(unescape(piece))] if piece else []


def _parameters(written: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in written.split(",") if pair.strip())
    return {name.strip(): unescape(value) for name, _, value in pairs}

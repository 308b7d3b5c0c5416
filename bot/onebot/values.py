"""Odd JSON values made plain: ids as text, numbers, names, and data that can be stored.

Clients disagree about types (``docs/onebot.md``, "Quirks"); nothing here raises.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

MAX_ID_CHARS = 64
MAX_NAME_CHARS = 200
MAX_JSON_DEPTH = 64

_LARGEST_NUMBER = 10**30
_INTEGER = re.compile(r"\s*-?[0-9]{1,19}\s*", re.ASCII)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Return ``text`` without NUL, and with U+FFFD for lone surrogates.

    Neither can be kept in a UTF-8 database; everything else stays as it was typed.
    """
    return _UNSTORABLE.sub(_stand_in, text)


def _stand_in(match: re.Match[str]) -> str:
    return "" if match[0] == "\x00" else "\ufffd"


def unix_line_ends(text: str) -> str:
    r"""Return ``text`` with ``\r\n`` and ``\r`` as ``\n``."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def mapping(value: object) -> Mapping[str, Any]:
    """Return ``value`` if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> Sequence[object]:
    """Return ``value`` if it is an array, else an empty one."""
    return value if isinstance(value, list | tuple) else ()


def integer(value: object) -> int | None:
    """Return the whole number that ``value`` is or spells, else ``None``; booleans are none."""
    match value:
        case bool():
            return None
        case int():
            return value if abs(value) < _LARGEST_NUMBER else None
        case float() if math.isfinite(value) and value.is_integer():
            return integer(int(value))
        case str() if _INTEGER.fullmatch(value):
            return int(value)
        case _:
            return None


def id_text(value: object) -> str:
    """Return an id as text: numbers and non-empty strings without blanks; else ``""``."""
    if isinstance(value, str):
        return _id_of_text(clean_text(value).strip())
    number = integer(value)
    return "" if number is None else str(number)


def _id_of_text(text: str) -> str:
    usable = len(text) <= MAX_ID_CHARS and text.isprintable() and " " not in text
    return text if usable else ""


def account_text(value: object) -> str:
    """Return the id of a person or group as text; ``0`` means unknown and becomes ``""``."""
    text = id_text(value)
    return "" if text == "0" else text


def name_text(value: object, max_chars: int = MAX_NAME_CHARS) -> str:
    """Return a name or comment as it is, at most ``max_chars`` long; other types are ``""``.

    Control characters stay: what is shown is sanitised where it is shown.
    """
    if isinstance(value, str):
        return clean_text(value[:max_chars])
    number = integer(value)
    return "" if number is None else str(number)


def plain(value: object, depth: int = MAX_JSON_DEPTH) -> Any:
    """Return a copy of ``value`` that is JSON everywhere and can be stored as UTF-8.

    What is not JSON (NaN, other types, nesting beyond ``depth``) becomes ``None``.
    """
    match value:
        case None | bool():
            return value
        case str():
            return clean_text(value)
        case int() | float():
            return _plain_number(value)
        case _:
            return _plain_container(value, depth - 1) if depth > 0 else None


def _plain_number(value: float) -> float | None:
    return value if abs(value) < _LARGEST_NUMBER else None  # never so for NaN


def _plain_container(value: object, depth: int) -> Any:
    match value:
        case Mapping():
            pairs = value.items()
            return {clean_text(k): plain(v, depth) for k, v in pairs if isinstance(k, str)}
        case list() | tuple():
            return [plain(item, depth) for item in value]
        case _:
            return None

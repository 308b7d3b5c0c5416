"""Plain text made safe to show, to log, to put into a prompt, and to measure.

People's text, names and model answers are hostile everywhere; what is removed, folded or
escaped here is told by ``docs/architecture.md``, "Text from people".
"""

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Literal

Estimator = Literal["cjk", "chars4"]
"""How tokens are estimated before a call: by script, or by four characters each."""

ELLIPSIS = "…"

_CONTROLS = "\x00-\x1f\x7f-\x9f"
_SEPARATORS = "\u2028\u2029"
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_ZERO_WIDTH = "\u00ad\u180e\u200b-\u200d\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"
_TAGS = "\U000e0000-\U000e0fff"
_SURROGATES = "\ud800-\udfff"
_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"

_FORGING = re.compile(f"[{_CONTROLS}{_SEPARATORS}{_BIDI}{_ZERO_WIDTH}{_TAGS}{_SURROGATES}]")
_INVISIBLE = re.compile(
    rf"(?!\s)[{_CONTROLS}{_BIDI}{_ZERO_WIDTH}{_TAGS}{_SURROGATES}{_FILLERS}]", re.UNICODE
)
# An emoji may be joined by U+200D and coloured by tags, so text of many lines keeps those two.
_UNPRINTABLE = re.compile(rf"(?![\n\t])[{_CONTROLS}{_BIDI}{_SURROGATES}\u200b\u2060\ufeff]")
_LINE_BREAK = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u303f\u3040-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]+"
)

# Made once: json.dumps makes an encoder for every call that is not as it comes.
_LINES = json.JSONEncoder(ensure_ascii=False, allow_nan=False)

_JOINER = "\u200d"
_BLANK_BRAILLE = "\u2800"


def without_invisible(text: str) -> str:
    """Return ``text`` without control, bidi, zero-width and filler characters; spaces stay."""
    return _INVISIBLE.sub("", text)


def single_line(text: str) -> str:
    """Return ``text`` as one visible line: invisible characters gone, runs of space one space."""
    return " ".join(without_invisible(text).split())


def many_lines(text: str) -> str:
    """Return ``text`` with ``\\n`` as its only line break and no control or bidi characters.

    Tabs, and the joiners that hold an emoji together, stay. Lone surrogates, which no
    connection could carry, go.
    """
    return _UNPRINTABLE.sub("", _LINE_BREAK.sub("\n", text))


def display_name(name: str, fallback: str, max_chars: int = 32) -> str:
    """Return ``name`` as it may be shown: one line of at most ``max_chars`` characters.

    Args:
        name: what the person calls themselves, raw.
        fallback: the id, used if nothing visible remains of the name.
        max_chars: see ``docs/architecture.md``, "Identity".
    """
    line = single_line(name)
    return clipped(line if _is_visible(line) else single_line(fallback), max_chars)


def _is_visible(text: str) -> bool:
    return any(
        unicodedata.category(character)[0] not in "ZMC" or unicodedata.category(character) == "Co"
        for character in text.replace(_BLANK_BRAILLE, "")
    )


def json_line(value: Mapping[str, Any]) -> str:
    """Return ``value`` as one JSON object on one line that no text in it can break or forge.

    Non-ASCII stays as it is; control, bidi, zero-width, line-separator and tag characters and
    lone surrogates become ``\\uXXXX``. ``json.loads`` gives an equal value back (two lone
    surrogates that happen to make a pair come back as the character they make).

    Raises:
        TypeError: a value that JSON has no form for.
        ValueError: a number that JSON has no form for.
    """
    return _FORGING.sub(lambda found: json.dumps(found[0])[1:-1], _LINES.encode(dict(value)))


def estimate_tokens(text: str, estimator: Estimator = "cjk") -> int:
    """Return how many tokens ``text`` is likely to be.

    ``cjk`` counts 1 for each CJK character (full-width signs included) and a quarter for each
    other; ``chars4`` counts a quarter for each. Both round up; see ``docs/architecture.md``,
    "Token budget".
    """
    cjk = sum(map(len, _CJK.findall(text))) if estimator == "cjk" else 0
    return cjk + -(-(len(text) - cjk) // 4)


def clipped(text: str, max_chars: int) -> str:
    """Return ``text``, or its beginning and ``…``, in at most ``max_chars`` (≥ 1) characters."""
    if len(text) <= max_chars:
        return text
    return text[: whole_characters(text, max_chars - 1)].rstrip() + ELLIPSIS


def whole_characters(text: str, at: int) -> int:
    """Return the greatest index ≤ ``at`` that splits no emoji and no accented letter.

    Where one such sequence fills everything up to ``at``, that is ``at`` itself.
    """
    index = at
    while index > 0 and _is_joined(text, index):
        index -= 1
    return index or at


def _is_joined(text: str, index: int) -> bool:
    """Whether what stands before ``index`` and after it is seen as one character."""
    if index >= len(text):
        return False
    before, after = text[index - 1], text[index]
    return (
        _extends(after)
        or before == _JOINER
        or (before == "\r" and after == "\n")
        or (_is_high_surrogate(before) and not _is_high_surrogate(after) and _is_surrogate(after))
        or (_is_flag_letter(after) and _flag_letters_before(text, index) % 2 == 1)
    )


def _extends(character: str) -> bool:
    return (
        character == _JOINER
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= character <= "\U000e007f"  # tags of regional flags
        or "\u1160" <= character <= "\u11ff"  # vowels and finals of decomposed Hangul
        or unicodedata.category(character)[0] == "M"
    )


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


def _is_high_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udbff"


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(text: str, index: int) -> int:
    start = index
    while start > 0 and _is_flag_letter(text[start - 1]):
        start -= 1
    return index - start

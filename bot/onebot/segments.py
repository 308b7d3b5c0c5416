"""Message segments from every form that clients send, and the three that we send.

See ``docs/onebot.md``, "Messages" and "Sending".
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bot.model import EVERYONE, Segment
from bot.onebot.values import clean_text, id_text, mapping, name_text, plain, unix_line_ends

_CODE = re.compile(r"\[CQ:([A-Za-z0-9_.\-]+)((?:,[^\[\]]*)?)\]")
_PARAMETER = re.compile(r"([A-Za-z_][A-Za-z0-9_.\-]*)=(.*)", re.DOTALL)
_TEXT_ENTITY = re.compile(r"&(?:amp|#91|#93);")
_VALUE_ENTITY = re.compile(r"&(?:amp|#91|#93|#44);")
_CHARACTERS = {"&amp;": "&", "&#91;": "[", "&#93;": "]", "&#44;": ","}
_ID_KEYS = frozenset({"qq", "id", "user_id", "group_id", "message_id"})


def text_segment(text: str) -> Segment:
    """Return a segment that shows ``text`` literally, CQ codes included."""
    return Segment("text", {"text": text})


def at_segment(user_id: str) -> Segment:
    """Return a mention of one person.

    Raises:
        ValueError: for ``EVERYONE``, which the bot never mentions.
    """
    if user_id == EVERYONE:
        raise ValueError("the bot never mentions everyone")
    return Segment("at", {"qq": user_id})


def reply_segment(platform_id: str) -> Segment:
    """Return the quote of the message ``platform_id``."""
    return Segment("reply", {"id": platform_id})


def read_segments(message: object, raw_message: object = None) -> tuple[Segment, ...]:
    """Read a message in array format, in string (CQ) format, or as one segment object.

    Where ``message`` holds nothing usable, ``raw_message`` (a CQ string) is read. Never raises:
    items of wrong types are left out. Line ends of text are ``\\n``, ids are text, and texts
    without a character are no segments.
    """
    return tuple(_segments(message)) or tuple(_segments_of_string(raw_message))


def _segments(message: object) -> Iterator[Segment]:
    match message:
        case str():
            yield from _segments_of_string(message)
        case Mapping():
            yield from _segment_of_item(message)
        case list() | tuple():
            for item in message:
                yield from _segment_of_item(item)


def _segment_of_item(item: object) -> Iterator[Segment]:
    """Yield the segment that ``item`` is; a bare string in an array is literal text."""
    match item:
        case str():
            yield from _text(item)
        case {"type": "text", "data": {"text": text}}:
            yield from _text(text)
        case {"type": "text"}:
            return
        case {"type": str(kind)} if kind.strip():
            yield Segment(clean_text(kind.strip()), _data(mapping(item).get("data")))


def _text(value: object) -> Iterator[Segment]:
    """Yield the text segment of ``value``; a number is its digits, other types are nothing."""
    text = value if isinstance(value, str) else name_text(value)
    text = unix_line_ends(clean_text(text))
    if text:
        yield text_segment(text)


def _data(value: object) -> dict[str, Any]:
    data = plain(value)
    if not isinstance(data, dict):
        return {}
    return {key: _id_or_value(key, item) for key, item in data.items()}


def _id_or_value(key: str, value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return id_text(value) if is_number and key in _ID_KEYS else value


def _segments_of_string(text: object) -> Iterator[Segment]:
    """Yield the segments of a CQ string; a code that cannot be read stays text."""
    if not isinstance(text, str):
        return
    shown_until = 0
    for code in _CODE.finditer(text):
        data = _parameters(code[2])
        if data is None:
            continue
        yield from _text(_unescape(_TEXT_ENTITY, text[shown_until : code.start()]))
        yield from _segment_of_item({"type": code[1], "data": data})
        shown_until = code.end()
    yield from _text(_unescape(_TEXT_ENTITY, text[shown_until:]))


def _parameters(text: str) -> dict[str, str] | None:
    """Return the parameters of ``,key=value,…``, or ``None`` if they are malformed.

    A part that does not look like ``key=…`` continues the value before it: some clients do not
    escape the commas of JSON.
    """
    values: dict[str, list[str]] = {}
    current: list[str] | None = None
    for part in text.split(",")[1:]:
        if parameter := _PARAMETER.fullmatch(part):
            current = values[parameter[1]] = [parameter[2]]
        elif current is None:
            return None
        else:
            current.append(part)
    return {key: _unescape(_VALUE_ENTITY, ",".join(parts)) for key, parts in values.items()}


def _unescape(entity: re.Pattern[str], text: str) -> str:
    return entity.sub(lambda match: _CHARACTERS[match[0]], text)

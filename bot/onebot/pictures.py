"""The pictures of a message: which there are, where they lie, and how a description shows.

See ``docs/tools.md``, "Images".
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.model import EVERYONE, Segment
from bot.onebot.render import render
from bot.onebot.values import id_text, name_text
from bot.text import clipped, single_line

DESCRIPTION_CHARS = 300

UNSEEN = "[图片（看不到）]"
"""What stands for a picture that cannot be looked at."""

_BRACKETS = str.maketrans("[]", "()")
_NAME_MAX_CHARS = 40


@dataclass(frozen=True, slots=True)
class PictureSegment:
    """A picture of a message."""

    url: str
    """Where it lies, for now; empty if that is not told."""
    file: str
    """What the client calls it; empty if that is not told."""


def pictures(segments: Sequence[Segment]) -> tuple[PictureSegment, ...]:
    """Return the pictures of a message, in order.

    One that is to be seen once only is none: nothing of it is kept.
    """
    shown = (segment.data for segment in segments if _is_picture(segment))
    return tuple(PictureSegment(_url(data), name_text(data.get("file"))) for data in shown)


def _is_picture(segment: Segment) -> bool:
    return segment.type == "image" and name_text(segment.data.get("type")) != "flash"


def _url(data: Mapping[str, Any]) -> str:
    """Some clients put the address where others have the name of the file."""
    told = (data.get("url"), data.get("file"))
    return next((one for one in told if isinstance(one, str) and _is_web(one)), "")


def _is_web(address: str) -> bool:
    return address[:8].lower().startswith(("http://", "https://"))


def description_line(answer: str) -> str:
    """Return what a model says of a picture as one line that cannot pass for anything else.

    It has no brackets, so whatever it says stays within those that it is shown in.
    """
    return clipped(single_line(answer.translate(_BRACKETS)), DESCRIPTION_CHARS)


def with_description(text: str, segments: Sequence[Segment], number: int, description: str) -> str:
    """Return the rendering of a message with a description of one of its pictures.

    Args:
        text: the rendering, which may have descriptions already.
        segments: of the message.
        number: which of its pictures, from 1.
        description: as ``description_line`` returns it.
    """
    place = _place(text, segments, number)
    chosen = [segment for segment in segments if _is_picture(segment)][number - 1]
    described = f"{render([chosen], {})[:-1]}：{description}]"
    if place is None:
        return f"{text} {described}"
    return text[: place.start()] + described + text[place.end() :]


def _place(text: str, segments: Sequence[Segment], number: int) -> re.Match[str] | None:
    """Return where a rendering shows a picture.

    What people write may look like a picture, so the rendering is followed from its beginning.
    ``None`` if that fails, as behind the lines of a forward.
    """
    at = seen = 0
    for segment, pattern in _patterns(segments):
        found = pattern.match(text, at)
        if found is None:
            return None
        seen += _is_picture(segment)
        if seen == number:
            return found
        at = found.end()
    return None


def _patterns(segments: Sequence[Segment]) -> Iterator[tuple[Segment, re.Pattern[str]]]:
    for segment in segments:
        yield segment, re.compile(_pattern(segment))


def _pattern(segment: Segment) -> str:
    piece = render([segment], {})
    user_id = id_text(segment.data.get("qq"))
    if _is_picture(segment):
        return rf"{re.escape(piece[:-1])}(?:：[^\[\]\n]*)?\]"
    if segment.type == "at" and piece == f"@{user_id}" and user_id != EVERYONE:
        # It may have been given a name since.
        named = rf"@[^\n]{{0,{_NAME_MAX_CHARS}}}?\({re.escape(user_id)}\)"
        return f"{named}|{re.escape(piece)}"
    return re.escape(piece)

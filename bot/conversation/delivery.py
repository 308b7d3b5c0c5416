"""How one answer becomes messages; see ``docs/architecture.md``, "Replies"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bot.text import clipped, whole_characters

GROUP_MESSAGES = 2
"""An answer in a group is at most this many messages of ``replyMaxChars`` each."""

PRIVATE_MESSAGES = 3
"""An answer in a private chat is at most this many messages of ``MESSAGE_CHARS`` each."""

FORWARD_NODES = 20
"""A merged forward has at most this many nodes of ``MESSAGE_CHARS`` each."""

MESSAGE_CHARS = 1500
"""What QQ surely shows as one message."""

_PARAGRAPHS = re.compile(r"(?P<gap>\n[^\S\n]{0,9}\n)")
_LINES = re.compile(r"(?P<gap>\n)")
_SENTENCES = re.compile(
    r"""(?:[。！？…]+[”’」』）】]*|[.!?]+["')\]]*(?=\s|[^\x00-\x7f]))(?P<gap>\s{0,9})"""
)
_CLAUSES = re.compile(r"(?:[，；、]|(?=\s))(?P<gap>\s{0,9})")
_NICEST_FIRST = (_PARAGRAPHS, _LINES, _SENTENCES, _CLAUSES)
_LOOKAHEAD_CHARS = 16


@dataclass(frozen=True, slots=True)
class Delivery:
    """What is sent for one answer."""

    parts: tuple[str, ...]
    """The messages, in order. If ``forward`` is given they are what to send without it."""
    forward: tuple[str, ...] | None = None
    """The nodes of one merged forward, for an answer too long for ``parts``."""


def split_answer(text: str, *, is_group: bool, max_chars: int) -> Delivery:
    """Return the messages that carry ``text``.

    Args:
        text: plain text.
        is_group: whether the chat is a group; only there an answer may be a merged forward.
        max_chars: ``replyMaxChars`` (≥ 1), which counts in groups only.

    Nothing but space around a split is lost, unless the last part or node ends in ``…``.
    """
    if not is_group:
        return Delivery(_messages(text, MESSAGE_CHARS, PRIVATE_MESSAGES)[0])
    parts, complete = _messages(text, max_chars, GROUP_MESSAGES)
    if complete:
        return Delivery(parts)
    return Delivery(parts, _messages(text, MESSAGE_CHARS, FORWARD_NODES)[0])


def _messages(text: str, max_chars: int, count: int) -> tuple[tuple[str, ...], bool]:
    """Return at most ``count`` messages, and whether they hold the whole text."""
    messages: list[str] = []
    rest = text.strip()
    while len(rest) > max_chars and len(messages) < count - 1:
        message, rest = _split_once(rest, max_chars, count - len(messages) - 1)
        messages += [message] if message else []
    if rest:
        messages.append(clipped(rest, max_chars))
    return tuple(messages), len(rest) <= max_chars


def _split_once(text: str, max_chars: int, messages_left: int) -> tuple[str, str]:
    """Split a text longer than ``max_chars`` so that the rest fits what is left, if it can.

    A rest that cannot fit is no reason for a short message: then at least half is filled.
    """
    spare = max_chars * (messages_left + 1) - len(text)
    least = max_chars - spare if spare >= 0 else max_chars // 2
    for pattern in _NICEST_FIRST:
        breaks = list(_breaks(text, pattern, max(least, 1), max_chars))
        if breaks:
            end, start = breaks[-1]
            return text[:end].rstrip(), text[start:].lstrip("\n")
    at = whole_characters(text, max_chars)
    return text[:at].rstrip(), text[at:].lstrip()


def _breaks(
    text: str, pattern: re.Pattern[str], least: int, most: int
) -> Iterator[tuple[int, int]]:
    """Yield where a message may end, between ``least`` and ``most``, and the next one begin."""
    for found in pattern.finditer(text, 0, most + _LOOKAHEAD_CHARS):
        end, start = found.span("gap")
        if least <= end <= most and whole_characters(text, start) == start:
            yield end, start

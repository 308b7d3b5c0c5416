"""From a model's answer to what may be sent; see ``docs/architecture.md``, "Replies".

An answer is hostile text. Nothing in it is ever executed: ``[CQ:…]`` is five letters of text
here and stays so, because what is sent is built from text segments only.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bot.conversation.blocked import blocked_word
from bot.conversation.markdown import flattened
from bot.text import many_lines

_THINK_TAG = re.compile(
    r"<(?P<closing>/?)\s{0,9}think(?:ing)?(?=[\s/>]|\Z)[^<>]*+>?", re.IGNORECASE
)
_SILENT_TAG = re.compile(r"</?\s{0,9}silent\s{0,9}/?>", re.IGNORECASE)
_AROUND_SILENCE = " \t\r\n`"


@dataclass(frozen=True, slots=True)
class Silent:
    """The model chose not to speak."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """The answer contains a blocked word, and nothing of it is sent."""

    word: str
    """The word as the operator listed it."""


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing is left to send, and the model did not ask for silence."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """Plain text that may be sent."""

    text: str


AnswerText = Silent | Blocked | Empty | Spoken


def answer_text(raw: str, *, blocked_words: Iterable[str] = ()) -> AnswerText:
    """Return what becomes of a model's answer.

    Args:
        raw: the answer as the model gave it.
        blocked_words: the setting ``blockedWords``.
    """
    answer = without_thinking(many_lines(raw))
    if is_silent(answer):
        return Silent()
    # Flattening can lay bare a token that markup had hidden, so tokens go last.
    plain = flattened(answer)
    text = without_silent_tokens(plain).strip("\n").rstrip()
    if not text:
        return Silent() if is_silent(plain) else Empty()
    word = blocked_word(text, blocked_words)
    return Spoken(text) if word is None else Blocked(word)


def without_thinking(answer: str) -> str:
    """Return ``answer`` without what the model thought aloud.

    That is each ``<think>…</think>`` (also ``<thinking>``, with attributes, in any case), an
    unclosed one to the end, and all before a ``</think>`` that was never opened.
    """
    spoken: list[str] = []
    at = 0
    thinking = False
    for tag in _THINK_TAG.finditer(answer):
        if tag["closing"]:
            spoken = spoken if thinking else []
            thinking = False
        elif not thinking:
            spoken.append(answer[at : tag.start()])
            thinking = not tag[0].endswith("/>")
        at = tag.end()
    if not thinking:
        spoken.append(answer[at:])
    return "".join(spoken).strip()


def is_silent(answer: str) -> bool:
    """Whether the answer, thinking apart, is the token ``<silent/>`` and nothing else."""
    answer = without_thinking(answer)
    spoken = without_silent_tokens(answer)
    return spoken != answer and not spoken.strip(_AROUND_SILENCE)


def without_silent_tokens(text: str) -> str:
    """Return ``text`` without any ``<silent/>``, nor one that appears when another is gone."""
    found = 1
    while found:
        text, found = _SILENT_TAG.subn("", text)
    return text

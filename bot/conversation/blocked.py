"""Blocked words, found however they are dressed; see ``docs/architecture.md``, "Replies"."""

import unicodedata
from collections.abc import Iterable

from bot.text import without_invisible


def normalised(text: str) -> str:
    """Return ``text`` for comparing: half-width, without invisible characters or case."""
    half_width = unicodedata.normalize("NFKC", without_invisible(text))
    return unicodedata.normalize("NFKC", without_invisible(half_width).casefold())


def blocked_word(text: str, words: Iterable[str]) -> str | None:
    """Return the first of ``words`` that ``text`` contains, as it was listed; None if none is.

    A word that is blank once normalised blocks nothing.
    """
    haystack = normalised(text)
    for word in words:
        needle = normalised(word).strip()
        if needle and needle in haystack:
            return word
    return None

"""What the index of messages holds of a message: tokens that name their chat themselves.

Pure. See ``docs/search.md``, "The index of messages". Every character of a text is in the index,
and every two that stand side by side, so that whatever stands in a text can be looked up; words
of letters are there as words as well, for questions. Nothing here raises, whatever the text.
"""

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from operator import add

from bot.search.tokens import latin_words
from bot.text import without_invisible

MAX_WORD_CHARS = 64
"""A longer run of letters is no word that anybody asks for; its characters are indexed anyhow."""

MAX_KEYWORD_GRAMS = 16
"""A longer keyword is looked up by its beginning and its end, and compared as a whole."""

_SIGNS = {sign: sign + 0xFEE0 for sign in range(0x21, 0x7F) if not chr(sign).isalnum()}
"""The tokenizer parts words at ASCII's signs, so they stand in the index in full width, in which
no folded text has any."""


@lru_cache(maxsize=1 << 16)
def _folded(character: str) -> str:
    if not without_invisible(character):
        return ""
    return unicodedata.normalize("NFKC", character).casefold()


def fold(text: str) -> str:
    """Return ``text`` with half-width and small letters and without invisible characters.

    Character by character, so that whatever stands in a text stands in the folded text as well,
    folded.
    """
    return "".join(map(_folded, text.casefold()))


def _grams(folded: str) -> dict[str, None]:
    """Return every two characters side by side, and every single one, each once."""
    runs = folded.translate(_SIGNS).split()
    grams: dict[str, None] = {}
    for run in runs:
        grams.update(dict.fromkeys(map(add, run, run[1:])))
    for run in runs:
        grams.update(dict.fromkeys(run))
    return grams


def _in_chat(chat_id: int, grams: Iterable[str]) -> list[str]:
    # The digits at the end keep the stemmer away.
    return [f"{gram}g{chat_id}" for gram in grams]


def word_token(chat_id: int, word: str) -> str:
    """Return the token of a word of letters; the index stems it."""
    return f"w{chat_id}w{word}"


def sender_token(chat_id: int, member_id: int) -> str:
    """Return the token of everything that a member said in a chat."""
    return f"m{chat_id}m{member_id}"


def day_token(chat_id: int, day: str) -> str:
    """Return the token of a day, ``YYYY-MM-DD``, a month, ``YYYY-MM``, or a year."""
    return f"d{chat_id}d{day.replace('-', '')}"


def message_tokens(chat_id: int, member_id: int, day: str, text: str) -> str:
    """Return all tokens of a message, with spaces in between.

    SQL knows it as a function of this name. Rows leave the index by their tokens, so what it
    returns for a message must not change without a migration that empties the index.

    Args:
        chat_id: the chat's row.
        member_id: the sender's row.
        day: the local day, ``YYYY-MM-DD``.
        text: what was said.
    """
    folded = fold(text)
    words = dict.fromkeys(latin_words(folded))
    tokens = [
        *_in_chat(chat_id, _grams(folded)),
        *(word_token(chat_id, word) for word in words if len(word) <= MAX_WORD_CHARS),
        sender_token(chat_id, member_id),
        *(day_token(chat_id, part) for part in (day, day[:7], day[:4])),
    ]
    return " ".join(tokens)


def keyword_tokens(chat_id: int, folded: str) -> list[str]:
    """Return tokens that every message of a chat has in which a folded keyword stands.

    None if it is nothing but space. Others may have them too: whoever needs it to the letter
    compares again.
    """
    runs = folded.translate(_SIGNS).split()
    grams = [pair for run in runs for pair in map(add, run, run[1:])]
    grams += [run for run in runs if len(run) == 1]
    told = list(dict.fromkeys(grams))
    if len(told) > MAX_KEYWORD_GRAMS:
        half = MAX_KEYWORD_GRAMS // 2
        told = told[:half] + told[-half:]
    return _in_chat(chat_id, told)


def all_of(tokens: Iterable[str]) -> str:
    """Return the MATCH expression for what has all of some tokens, ``""`` if there is none.

    Tokens have neither quotes nor spaces nor signs in them, so quotes hold them.
    """
    return " AND ".join(f'"{token}"' for token in tokens)


def any_of(tokens: Iterable[str]) -> str:
    """Return the MATCH expression for what has any of some tokens, ``""`` if there is none."""
    either = " OR ".join(f'"{token}"' for token in tokens)
    return f"({either})" if either else ""

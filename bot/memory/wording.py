"""When two texts say the same, how long a text may be, and where it may end.

See ``docs/memory.md``, "Output" and "Checks".
"""

import re
import unicodedata

from bot.model import Document, ScopeKind

ENTRY_MAX_CHARS = 300
MEMORY_MAX_CHARS = 400
GROUP_SUMMARY_MAX_CHARS = 600
MEMBER_SUMMARY_MAX_CHARS = 400

# A space says something only between two words of a script that parts its words.
_IDLE_SPACE = re.compile(r"(?<=[,;:!?\u2e80-\U0003ffff]) | (?=[\u2e80-\U0003ffff])")
_IDLE_END = "。.!~;,、… "
_SENTENCE_END = re.compile(r"[。！？!?；;…]+[”’」』）)]*|\.(?=\s|\Z)")


def max_chars_of(document: Document) -> int:
    """Return how many characters an entry of ``document`` may have."""
    return MEMORY_MAX_CHARS if document == "memory" else ENTRY_MAX_CHARS


def summary_max_chars(kind: ScopeKind) -> int:
    """Return how many characters the summary of a stream may have."""
    return GROUP_SUMMARY_MAX_CHARS if kind == "group" else MEMBER_SUMMARY_MAX_CHARS


def same_wording(text: str) -> str:
    """Return a form of ``text`` that is equal for texts that differ in typing alone.

    Width and case of letters, spaces that part no words, and the signs at the end are typing.
    Everything else says something: ``3.5`` is not ``35``, ``C++`` not ``C``, and ``我喜欢吃辣``
    is not ``我不喜欢吃辣``.
    """
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return _IDLE_SPACE.sub("", folded).rstrip(_IDLE_END) or folded


def cut_at_sentence(text: str, max_chars: int) -> str:
    """Return ``text``, or its longest beginning of whole sentences within ``max_chars``.

    That is nothing if the first sentence is already longer.
    """
    if len(text) <= max_chars:
        return text
    ends = [end.end() for end in _SENTENCE_END.finditer(text) if end.end() <= max_chars]
    return text[: ends[-1]] if ends else ""

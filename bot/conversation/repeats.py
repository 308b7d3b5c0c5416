"""Whether an answer repeats any of some texts word for word; there may be thousands of them.

See ``docs/memory.md``, "Forgetting".
"""

from collections import defaultdict
from collections.abc import Iterable

QUOTED_CHARS = 4
"""Shorter texts are no quotation: `好的` stands in every other answer."""


FEW = 16
"""So many texts are looked for one by one; more of them by how they begin."""


class Repeats:
    """Texts, ready to be looked for; those that are too short to be a quotation are left out."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = [text for text in set(texts) if len(text) >= QUOTED_CHARS]
        self._by_beginning: defaultdict[str, list[str]] = defaultdict(list)
        for text in self._texts:
            self._by_beginning[text[:QUOTED_CHARS]].append(text)

    def __bool__(self) -> bool:
        return bool(self._texts)

    def stands_in(self, told: str) -> bool:
        """Whether any of the texts stands in what was told."""
        if len(self._texts) <= FEW:
            return any(text in told for text in self._texts)
        return any(
            told.startswith(text, at)
            for at in range(len(told) - QUOTED_CHARS + 1)
            for text in self._by_beginning.get(told[at : at + QUOTED_CHARS], ())
        )

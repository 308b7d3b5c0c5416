"""Where Chinese words begin and end, by a dictionary. Only questions are cut.

See ``docs/search.md``, "Questions to messages".
"""

from collections.abc import Iterator
from functools import cache
from itertools import groupby, pairwise
from typing import Any

from bot.search.tokens import COMMON_CHARACTERS


@cache
def _dictionary() -> Any:
    # Reading it takes a tenth of a second, which a start need not wait for.
    import rjieba

    return rjieba


def cut(run: str) -> Iterator[str]:
    """Yield the words of a run of CJK characters, long ones with the words within them.

    What the dictionary does not know comes out character by character; of such characters side by
    side every two are yielded as well, for they may be a name, unless one says nothing.
    """
    words: list[str] = _dictionary().cut_for_search(run)
    yield from words
    for is_unknown, group in groupby(words, _is_unknown):
        if is_unknown:
            yield from (first + second for first, second in pairwise(group))


def _is_unknown(word: str) -> bool:
    return len(word) == 1 and word not in COMMON_CHARACTERS

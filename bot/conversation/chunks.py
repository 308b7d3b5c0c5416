"""Chunks: what one call of a summary reads of a long conversation.

Pure. See ``docs/session.md``, "Chunks".
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Piece:
    """What is not cut: a turn, or a message."""

    chars: int
    ends_on_user: bool
    """Its answer is missing, so a chunk that ends on it ends on a question."""


def first_chunk(pieces: Sequence[Piece], max_chars: int, max_pieces: int | None = None) -> int:
    """Return how many of ``pieces`` are the first chunk: one at least, unless there is none.

    It has ``max_chars`` characters at most, except where a single piece has more, and does not end
    on a question unless nothing else is left.

    Args:
        pieces: what is to be read, in order.
        max_chars: ``summaryChunkChars``.
        max_pieces: a chunk has no more pieces than this, while one that is refused is looked for.
    """
    fitting = _fitting(pieces, max_chars)
    fitting = fitting if max_pieces is None else min(fitting, max(1, max_pieces))
    if fitting >= len(pieces):
        return len(pieces)
    answered = (n for n in range(fitting, 0, -1) if not pieces[n - 1].ends_on_user)
    return next(answered, fitting)


def _fitting(pieces: Sequence[Piece], max_chars: int) -> int:
    chars = 0
    for number, piece in enumerate(pieces):
        chars += piece.chars
        if chars > max_chars:
            return max(1, number)
    return len(pieces)


def chunks(
    items: Sequence[T], piece_of: Callable[[T], Piece], max_chars: int
) -> Iterator[Sequence[T]]:
    """Yield ``items`` chunk by chunk, each of them once and in order."""
    pieces = [piece_of(item) for item in items]
    start = 0
    while start < len(items):
        count = first_chunk(pieces[start:], max_chars)
        yield items[start : start + count]
        start += count

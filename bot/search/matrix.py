"""The sketches of a chat's messages in memory, and the few chats whose sketches are kept there.

Pure: it is given pages and reads none. See ``docs/search.md``, "Vectors".
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bot.search.vectors import SKETCH_BITS, SKETCH_WORDS, SLOT, Vectors, Words, likeness_at, planes

PAGE_SLOTS = 64
"""How many messages a page has room for."""

FEW = 30
"""Of fewer messages most may bear on a question."""

END_OF_TIME = (1 << 63) - 1

CACHE_BYTES = 192 * 2**20
"""Room for two chats of a million messages, or for thousands of smaller ones."""

_BLOCK = 1 << 15
"""So many sketches are compared at a time: they, and the counts, stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Which messages may be found; like a search's window, in rows."""

    member_id: int | None = None
    since: int = 0
    """UTC milliseconds."""
    until: int = END_OF_TIME
    """UTC milliseconds, not included."""


@dataclass(frozen=True, slots=True)
class Near:
    """The messages whose sketches are nearest, and what is usual in their chat."""

    row_ids: tuple[int, ...] = ()
    usual: float = 0.0
    """How alike the question and a message that has nothing to do with it are."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a chat as the store keeps it."""

    id: int
    changed: int
    """The number of its last change; greater than that of any change before."""
    slots: bytes


class ChatMatrix:
    """All sketches of one chat, side by side; bit words of all messages lie together."""

    def __init__(self) -> None:
        self.seen = 0
        """The number of the last change that is in it."""
        self.lock = asyncio.Lock()
        """For whoever takes in pages and looks through them."""
        self._places: dict[int, int] = {}
        self._rows = np.zeros(0, np.int64)
        self._sent_at = np.zeros(0, np.int64)
        self._members = np.zeros(0, np.int64)
        self._bits: Words = np.zeros((SKETCH_WORDS, 0), np.uint64)

    @property
    def size_bytes(self) -> int:
        """What it holds of memory."""
        return 3 * self._rows.nbytes + self._bits.nbytes

    def __len__(self) -> int:
        return int(np.count_nonzero(self._rows))

    def take(self, pages: Iterable[Page]) -> None:
        """Take in pages that are new or have changed."""
        pages = list(pages)
        new = [page.id for page in pages if page.id not in self._places]
        for number, page_id in enumerate(new, start=len(self._places)):
            self._places[page_id] = number
        self._grow(len(self._places) * PAGE_SLOTS)
        for page in pages:
            self._put(self._places[page.id] * PAGE_SLOTS, page.slots)
            self.seen = max(self.seen, page.changed)

    def _grow(self, length: int) -> None:
        if length <= len(self._rows):
            return
        room = max(length, len(self._rows) * 5 // 4)
        self._rows = _longer(self._rows, room)
        self._sent_at = _longer(self._sent_at, room)
        self._members = _longer(self._members, room)
        bits = np.zeros((SKETCH_WORDS, room), np.uint64)
        bits[:, : self._bits.shape[1]] = self._bits
        self._bits = bits

    def _put(self, start: int, slots: bytes) -> None:
        told = np.frombuffer(slots, SLOT)
        end = start + len(told)
        self._rows[start:end] = told["row"]
        self._sent_at[start:end] = told["sent_at"]
        self._members[start:end] = told["member"]
        self._bits[:, start:end] = told["sketch"].T

    def nearest(self, sketch: Words, narrowing: Narrowing, count: int) -> Near:
        """Return the ``count`` messages nearest to a sketch, of those that may be found."""
        allowed = np.flatnonzero(self._allowed(narrowing))
        if not len(allowed):
            return Near()
        is_whole = len(allowed) == len(self._rows)
        distances = self._distances(sketch)
        if not is_whole:
            distances = distances[allowed]
        tally = np.bincount(distances, minlength=SKETCH_BITS + 1).cumsum()
        limit = int(np.searchsorted(tally, min(count, len(allowed))))
        within = np.flatnonzero(distances <= limit)
        within = within[np.argsort(distances[within], kind="stable")][:count]
        rows = self._rows[allowed[within]]
        return Near(tuple(int(row) for row in rows), _usual(tally, len(allowed)))

    def _allowed(self, narrowing: Narrowing) -> NDArray[np.bool_]:
        allowed = self._rows != 0
        if narrowing.member_id is not None:
            allowed &= self._members == narrowing.member_id
        if narrowing.since > 0:
            allowed &= self._sent_at >= narrowing.since
        if narrowing.until < END_OF_TIME:
            allowed &= self._sent_at < narrowing.until
        return allowed

    def _distances(self, sketch: Words) -> NDArray[np.uint16]:
        distances = np.zeros(len(self._rows), np.uint16)
        for start in range(0, len(distances), _BLOCK):
            part = distances[start : start + _BLOCK]
            for word, bits in zip(sketch, self._bits[:, start : start + _BLOCK], strict=True):
                part += np.bitwise_count(bits ^ word)
        return distances


def _usual(tally: NDArray[np.int64], count: int) -> float:
    """Return how alike the middling message is; of too few it is not known what is usual."""
    if count < FEW:
        return 0.0
    return likeness_at(int(np.searchsorted(tally, count / 2)))


def _longer(values: NDArray[Any], length: int) -> NDArray[Any]:
    longer = np.zeros(length, values.dtype)
    longer[: len(values)] = values
    return longer


@dataclass(slots=True)
class Matrices:
    """The matrices of the chats that were searched last, within a bound of memory."""

    max_bytes: int = CACHE_BYTES
    _kept: OrderedDict[tuple[int, int], ChatMatrix] = field(default_factory=OrderedDict)
    _planes: OrderedDict[int, Vectors] = field(default_factory=OrderedDict)

    def of(self, space_id: int, chat_id: int) -> ChatMatrix:
        """Return the matrix of a chat in a space, an empty one if none is kept."""
        matrix = self._kept.setdefault((space_id, chat_id), ChatMatrix())
        self._kept.move_to_end((space_id, chat_id))
        return matrix

    def planes(self, dimensions: int) -> Vectors:
        """Return the planes for vectors of so many dimensions; those used last are kept."""
        if dimensions not in self._planes:
            self._planes.clear()
            self._planes[dimensions] = planes(dimensions)
        return self._planes[dimensions]

    def trim(self) -> None:
        """Let go of what was searched longest ago, until the rest keeps the bound.

        The one searched last stays, however large.
        """
        while len(self._kept) > 1 and self.size_bytes > self.max_bytes:
            self._kept.popitem(last=False)

    @property
    def size_bytes(self) -> int:
        """What all of them hold of memory."""
        return sum(matrix.size_bytes for matrix in self._kept.values())

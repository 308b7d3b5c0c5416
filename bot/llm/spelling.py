"""An embedder that goes by the characters of texts: for tests and trials, where none is to be run.

See ``docs/search.md``, "Embedders".
"""

import zlib
from collections import deque
from collections.abc import Sequence

import numpy as np

from bot.errors import ModelError
from bot.llm.embedder import Vectors, unit_vectors
from bot.model import Chat


class SpellingEmbedder:
    """An ``Embedder`` by which texts are the more alike, the more characters they share.

    Args:
        id: what it calls itself.
        dimensions: how long its vectors are.
        is_remote: whether it passes for somebody else's machine.
    """

    def __init__(
        self, id: str = "spelling", *, dimensions: int = 64, is_remote: bool = False
    ) -> None:
        self.id = id
        self.is_remote = is_remote
        self.texts: list[str] = []
        """What it was given, also where it failed."""
        self.refused: dict[str, ModelError] = {}
        """What it raises for texts that contain something."""
        self._dimensions = dimensions
        self._failures: deque[ModelError] = deque()

    def fail(self, *failures: ModelError) -> None:
        """Let the next calls fail, one with each error."""
        self._failures.extend(failures)

    async def dimensions(self) -> int:
        """Return how long its vectors are."""
        return self._dimensions

    async def embed(self, texts: Sequence[str], chat: Chat | None = None) -> Vectors:
        """Return a vector for each text; see ``Embedder``."""
        self.texts += texts
        if self._failures:
            raise self._failures.popleft()
        for part, error in self.refused.items():
            if any(part in text for text in texts):
                raise error
        return unit_vectors([self._vector(text) for text in texts], "spelling")

    async def close(self) -> None:
        """Hold nothing."""

    def _vector(self, text: str) -> list[float]:
        vector = np.full(self._dimensions, 0.01)
        for character in text:
            vector[zlib.crc32(character.encode("utf-8", "replace")) % self._dimensions] += 1
        return vector.tolist()

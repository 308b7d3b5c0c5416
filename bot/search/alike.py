"""How near in meaning entries are to a question.

Pure. See ``docs/search.md``, "Ranking entries by meaning".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FEW = 8
"""Of fewer entries it is not known what is usual."""

NEAR = 0.5
"""What is no nearer than this has nothing to do with the question."""


@dataclass(frozen=True, slots=True)
class Scale:
    """What the cosines of an embedder tell."""

    usual: float
    """The cosine of what has nothing to do with the question, if that cannot be seen."""
    floor: float
    """Beyond what is usual: from here on it has."""
    full: float
    """Beyond what is usual: nearer is not told apart."""
    most_usual: float = 1.0
    """What is usual is never taken for more, though all of a memory may be about one thing."""


OPEN = Scale(usual=0.2, floor=0.15, full=0.4)
"""For any embedder."""

BUNDLED = Scale(usual=0.08, floor=0.2, full=0.5, most_usual=0.2)
"""The one that comes along."""


def nearness(cosines: Mapping[int, float], scale: Scale) -> dict[int, float]:
    """Return how near some entries are, from 0 to 1, by their rows: ``NEAR`` at the floor.

    It is not a share of the nearest, which would make the best of bad ones look perfect.

    Args:
        cosines: how alike the question and each is.
        scale: what that tells.
    """
    usual = _usual(sorted(cosines.values()), scale)
    return {row: _nearness(cosine - usual, scale) for row, cosine in cosines.items()}


def _usual(cosines: Sequence[float], scale: Scale) -> float:
    """Return what a quarter of all entries keep below: most may bear on the question."""
    if len(cosines) < FEW:
        return scale.usual
    return min(cosines[len(cosines) // 4], scale.most_usual)


def _nearness(beyond: float, scale: Scale) -> float:
    if beyond < scale.floor:
        return max(0.0, NEAR * beyond / scale.floor)
    rest = (beyond - scale.floor) / (scale.full - scale.floor)
    return min(1.0, NEAR + (1 - NEAR) * rest)

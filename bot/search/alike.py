"""How near in meaning entries are to a question.

Pure. See ``docs/search.md``, "Ranking entries by meaning".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

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


OPEN = Scale(usual=0.25, floor=0.1, full=0.35)
"""For any embedder."""

BUNDLED = Scale(usual=0.12, floor=0.17, full=0.45)
"""The one that comes along."""


def nearness(cosines: Mapping[int, float], scale: Scale) -> dict[int, float]:
    """Return how near some entries are, from 0 to 1, by their rows: ``NEAR`` at the floor.

    It is not a share of the nearest, which would make the best of bad ones look perfect.

    Args:
        cosines: how alike the question and each is.
        scale: what that tells.
    """
    usual = median(cosines.values()) if len(cosines) >= FEW else scale.usual
    return {row: _nearness(cosine - usual, scale) for row, cosine in cosines.items()}


def _nearness(beyond: float, scale: Scale) -> float:
    if beyond < scale.floor:
        return max(0.0, NEAR * beyond / scale.floor)
    rest = (beyond - scale.floor) / (scale.full - scale.floor)
    return min(1.0, NEAR + (1 - NEAR) * rest)

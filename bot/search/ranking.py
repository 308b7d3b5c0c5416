"""How well what is found fits the question.

Pure. See ``docs/search.md``, "Ranking".
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

LENGTH_SHARE = 0.75
"""How much being longer than others counts against a text: BM25's b."""

SATURATION = 1.2
"""BM25's k1."""


def bm25(
    hits: Iterable[tuple[int, int]], lengths: Mapping[int, int], total: int
) -> dict[int, float]:
    """Return BM25 scores by document, each greater than 0.

    A remembered line is short, so a phrase counts once in it however often it stands there.

    Args:
        hits: which phrase was found in which document, each pair once.
        lengths: how long each document is that was found, in whatever unit.
        total: how many documents were looked through, those without a hit included.
    """
    hits = list(hits)
    if not hits:
        return {}
    total = max(total, len(lengths))
    found_in = Counter(phrase for phrase, _ in hits)
    mean = max(1.0, sum(lengths.values()) / len(lengths))
    scores: dict[int, float] = {}
    for phrase, document in hits:
        rarity = math.log(1 + (total - found_in[phrase] + 0.5) / (found_in[phrase] + 0.5))
        excess = 1 - LENGTH_SHARE + LENGTH_SHARE * lengths[document] / mean
        gain = (SATURATION + 1) / (1 + SATURATION * excess)
        scores[document] = scores.get(document, 0.0) + rarity * gain
    return scores


def shares(scores: Mapping[int, float]) -> dict[int, float]:
    """Return scores between 0, for what was not found, and 1, for what fits best."""
    best = max(scores.values(), default=0.0)
    return {document: score / best for document, score in scores.items()} if best else {}

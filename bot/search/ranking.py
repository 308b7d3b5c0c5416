"""How well what is found fits the question.

Pure. See ``docs/search.md``, "Ranking".
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

LENGTH_SHARE = 0.75
"""How much being longer than others counts against an entry: BM25's b."""

MESSAGE_LENGTH_SHARE = 0.4
"""And against a message: people who write more say more, they do not pad."""

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
    worth = rarities(hits, max(total, len(lengths)))
    mean = max(1.0, sum(lengths.values()) / len(lengths))
    gains = {document: gain(length / mean) for document, length in lengths.items()}
    scores: dict[int, float] = {}
    for phrase, document in hits:
        scores[document] = scores.get(document, 0.0) + worth[phrase] * gains[document]
    return scores


def gain(relative_length: float, length_share: float = LENGTH_SHARE) -> float:
    """Return how much a find counts in a text, 1 in one of middling length."""
    excess = 1 - length_share + length_share * relative_length
    return (SATURATION + 1) / (1 + SATURATION * excess)


def rarities(hits: Iterable[tuple[int, int]], total: int) -> dict[int, float]:
    """Return how much each phrase that was found at all tells, by phrase: BM25's IDF.

    Args:
        hits: which phrase was found in which document, each pair once.
        total: how many documents were looked through.
    """
    found_in = Counter(phrase for phrase, _ in hits)
    return {phrase: rarity(count, total) for phrase, count in found_in.items()}


def rarity(count: float, total: float) -> float:
    """Return how much a phrase tells that ``count`` of ``total`` documents have: BM25's IDF."""
    return math.log(1 + (max(count, total) - count + 0.5) / (count + 0.5))


def coverage(
    hits: Iterable[tuple[int, int]], lengths: Mapping[int, int], total: int
) -> dict[int, float]:
    """Return how much of a question each document answers to, by document.

    1 is a document of middling length that has everything of the question that any document has;
    a shorter one has more, up to 1.7. A share of the best document instead would let the best of
    bad ones look perfect.

    Args:
        hits: as in ``bm25``, which ranks the same way.
        lengths: as there.
        total: as there.
    """
    hits = list(hits)
    whole = sum(rarities(hits, max(total, len(lengths))).values())
    scores = bm25(hits, lengths, total)
    return {document: score / whole for document, score in scores.items()}

"""How many tokens a text is likely to be, before a model has counted it.

Pure. See ``docs/architecture.md``, "Token budget".
"""

from collections.abc import Callable
from functools import cache, partial

from bot.text import Estimator, estimate_tokens

CountTokens = Callable[[str], int]
"""Estimates the tokens of a text. What is longer never costs less than its own beginning."""


@cache
def estimator(name: Estimator) -> CountTokens:
    """Return the estimator that ``tokenEstimator`` names, always the same object: what was counted
    with it is remembered by it."""
    return partial(estimate_tokens, estimator=name)

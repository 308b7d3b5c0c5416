"""What calls teach of a model: its own count of tokens, and how long a prompt may be.

Pure. See ``docs/architecture.md``, "Token budget".
"""

from dataclasses import dataclass, replace

LEAST_RATIO, MOST_RATIO = 0.5, 3.0
"""No tokenizer is further from the estimate than this; a provider's count may be."""

WEIGHT = 0.3
"""Of the newest count."""

LEAST_TOKENS = 200
"""Shorter prompts teach nothing: what a provider adds to each weighs too much in them."""

LEAST_WINDOW_TOKENS = 2_048
"""A smaller window is not believed, nor is less ever thought to be too long."""

REFUSED_SHARE = 0.9
"""Of a prompt that was refused so much is tried next."""

GROWTH = 1.005
"""By so much an untold limit grows with each answer, so that one odd refusal is forgotten."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What calls have taught of one model."""

    ratio: float = 1.0
    """Tokens as the provider counts them, to estimated ones."""
    window_tokens: int | None = None
    """The size of its window, where a refusal told it."""
    limit_tokens: float | None = None
    """A prompt of more estimated tokens was refused lately."""

    def after_answer(self, estimated: int, reported: int) -> "Calibration":
        """Return what is known after a prompt was taken.

        Args:
            estimated: what the prompt was thought to be.
            reported: what the provider counted; 0 if it gave no count.
        """
        limit = self.limit_tokens * GROWTH if self.limit_tokens else None
        if estimated < LEAST_TOKENS or reported <= 0:
            return replace(self, limit_tokens=limit)
        seen = min(max(reported / estimated, LEAST_RATIO), MOST_RATIO)
        ratio = self.ratio + WEIGHT * (seen - self.ratio)
        return replace(self, ratio=ratio, limit_tokens=limit)

    def after_refusal(self, estimated: int, window_tokens: int | None) -> "Calibration":
        """Return what is known after a prompt was found too long.

        Args:
            estimated: what it was thought to be.
            window_tokens: what the provider said of its window, if anything.
        """
        known = self
        if window_tokens is not None and window_tokens >= LEAST_WINDOW_TOKENS:
            known = replace(self, window_tokens=window_tokens)
            if estimated * self.ratio > window_tokens:
                return known
        # It tells nothing, or by its number the prompt should have fitted.
        return replace(known, limit_tokens=max(LEAST_WINDOW_TOKENS, REFUSED_SHARE * estimated))

    def room(self, window_tokens: int, share: float) -> int:
        """Return how many estimated tokens a prompt may have.

        Args:
            window_tokens: the model's window as it is known otherwise.
            share: how much of it a prompt may use, ``contextBudgetRatio``.
        """
        window = min(window_tokens, self.window_tokens or window_tokens)
        room = window * share / self.ratio
        return max(1, int(min(room, self.limit_tokens or room)))

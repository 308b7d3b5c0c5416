"""Whether and when to ask again: retry as a decision, not a loop. Pure.

See ``docs/architecture.md``, "Models".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from math import isfinite


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long to wait for one model at one endpoint."""

    attempts: int = 3
    """Requests in all, the first one included."""
    base_seconds: float = 0.5
    max_seconds: float = 8.0
    retry_after_limit_seconds: float = 20.0
    """A provider that asks for a longer wait is not waited for: callers have their own back-off."""

    def delay_seconds(
        self, attempt: int, jitter: float, retry_after_seconds: float | None = None
    ) -> float | None:
        """Return the wait before the next request, or ``None`` to give up.

        Args:
            attempt: how many requests have failed so far, counted from 1.
            jitter: in [0, 1); spreads clients that failed together over half of the wait.
            retry_after_seconds: what the provider asked for, where it did.
        """
        asked = retry_after_seconds or 0.0
        if attempt >= self.attempts or asked > self.retry_after_limit_seconds:
            return None
        backoff = min(self.base_seconds * 2 ** (attempt - 1), self.max_seconds)
        return max(asked, backoff * (0.5 + jitter / 2))


def retry_after_seconds(headers: Mapping[str, str], now: int) -> float | None:
    """Return what a ``Retry-After`` header asks for, in seconds from ``now`` (UTC milliseconds).

    Understands ``retry-after-ms``, seconds and HTTP dates; ``None`` for anything else.
    """
    for header, divisor in (("retry-after-ms", 1000), ("retry-after", 1)):
        seconds = _number(headers.get(header, ""))
        if seconds is not None:
            return max(0.0, seconds / divisor)
    return _until(headers.get("retry-after", ""), now)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _until(date: str, now: int) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, TypeError, IndexError):
        return None
    at = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, at.timestamp() - now / 1000)

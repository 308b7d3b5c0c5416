"""A breaker: stop asking an endpoint that does not answer, and notice when it does again. Pure.

See ``docs/architecture.md``, "Models". One breaker belongs to one model at one endpoint, and
only transport failures count: whoever answers, with whatever, is reachable.
"""

from dataclasses import dataclass, replace

FAILURES_TO_OPEN = 5
OPEN_MS = 60_000


@dataclass(frozen=True, slots=True)
class Breaker:
    """Closed until ``FAILURES_TO_OPEN`` failures run on, then open for ``OPEN_MS``, then half-open.

    Half-open lets one trial through; its success closes, its failure opens again. All times are
    UTC milliseconds given by the caller.
    """

    failures: int = 0
    opened_at: int | None = None
    """When it opened, or when the running trial began; ``None`` while closed."""

    def admits(self, now: int) -> bool:
        """Say whether a request may go out at ``now``."""
        return self.wait_ms(now) == 0

    def after_start(self, now: int) -> "Breaker":
        """Return the breaker once an admitted request has begun: a trial shuts the door behind it.

        A trial that never reports back holds it for another ``OPEN_MS``, not for ever.
        """
        return self if self.opened_at is None else replace(self, opened_at=now)

    def after_success(self) -> "Breaker":
        """Return the breaker after an answer of any kind."""
        return Breaker()

    def after_failure(self, now: int) -> "Breaker":
        """Return the breaker after a transport failure."""
        failures = self.failures + 1
        return Breaker(failures, now if failures >= FAILURES_TO_OPEN else None)

    def after_abandon(self, before: "Breaker") -> "Breaker":
        """Return the breaker after a caller gave up waiting: its trial is free for the next one.

        Args:
            before: the breaker as it was when that caller was admitted.
        """
        was_trial = before.opened_at is not None and self.opened_at is not None
        return before if was_trial else self

    def wait_ms(self, now: int) -> int:
        """Return the milliseconds until a trial is let through; 0 when it would be now."""
        # One that opened after ``now`` did so before the clock was set back.
        if self.opened_at is None or self.opened_at > now:
            return 0
        return max(0, self.opened_at + OPEN_MS - now)

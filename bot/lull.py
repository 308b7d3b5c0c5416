"""Lulls: work that can wait gives way to people. See ``docs/search.md``, "Vectors"."""

from bot.clock import Clock

LULL_SECONDS = 0.05
"""Without an event for so long, nobody speaks just now."""

SILENCE_SECONDS = 30.0
"""And after so long it is not likely that somebody will in a moment."""

PATIENCE_SECONDS = 1.0
"""Where somebody always speaks, what gives way goes on after so long."""


class Lull:
    """When the last event came.

    Args:
        clock: the program's.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._broken_at = 0

    def broken(self) -> None:
        """Note that an event comes in now."""
        self._broken_at = self._clock.now()

    @property
    def is_silence(self) -> bool:
        """Whether nobody has spoken for ``SILENCE_SECONDS``."""
        return abs(self._clock.now() - self._broken_at) >= SILENCE_SECONDS * 1000

    async def awaited(self) -> None:
        """Wait until nobody speaks, for ``PATIENCE_SECONDS`` at most."""
        begun = self._clock.now()
        while (left := self._left_seconds()) > 0:
            if abs(self._clock.now() - begun) >= PATIENCE_SECONDS * 1000:
                return
            await self._clock.sleep(left)

    def _left_seconds(self) -> float:
        since = self._clock.now() - self._broken_at
        # An event that is still to come was one of before the clock was set back.
        return LULL_SECONDS - since / 1000 if since >= 0 else 0

"""A clock that stands still until it is told to move."""

import asyncio
import heapq
import itertools

LOOP_TURNS = 25
"""How many turns of the event loop a woken sleeper gets before the next one is woken."""

_Sleeper = tuple[int, int, asyncio.Future[None]]


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


class VirtualClock:
    """A ``bot.clock.Clock`` for tests and the demo.

    Args:
        start_ms: the first moment, UTC milliseconds.
        loop_turns: turns of the event loop given to what a woken sleeper starts. They cover
            what runs without real I/O; for work that waits for a socket or a thread, await
            its outcome before the next ``advance``.
    """

    def __init__(self, start_ms: int, *, loop_turns: int = LOOP_TURNS) -> None:
        self._now_ms = start_ms
        self._loop_turns = loop_turns
        self._order = itertools.count()
        self._sleepers: list[_Sleeper] = []
        self._changed = asyncio.Event()

    def now(self) -> int:
        """Return the present moment in UTC milliseconds."""
        return self._now_ms

    @property
    def sleeping(self) -> int:
        """How many callers wait for this clock to move."""
        return sum(not future.done() for _, _, future in self._sleepers)

    @property
    def next_at(self) -> int | None:
        """When the first of the sleepers wakes, UTC milliseconds; ``None`` if nobody sleeps."""
        return min((at for at, _, future in self._sleepers if not future.done()), default=None)

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was advanced by ``seconds``; not at all if that is nothing."""
        if _milliseconds(seconds) <= 0:
            await asyncio.sleep(0)
            return
        future = asyncio.get_running_loop().create_future()
        deadline = self._now_ms + _milliseconds(seconds)
        heapq.heappush(self._sleepers, (deadline, next(self._order), future))
        self._announce()
        await future

    async def until_sleeping(self, count: int = 1) -> None:
        """Wait, in real time, until at least ``count`` callers sleep on this clock."""
        while self.sleeping < count:
            await self._changed.wait()

    async def advance(self, seconds: float) -> None:
        """Move time forward, waking sleepers in the order of their deadlines.

        Each sees its own deadline as the present, and what it starts runs (and may fall asleep
        again, within the same advance) before the next one wakes.

        Raises:
            ValueError: ``seconds`` is negative.
        """
        if seconds < 0:
            raise ValueError("time does not run backwards")
        target = self._now_ms + _milliseconds(seconds)
        await self._settle()
        while self._sleepers and self._sleepers[0][0] <= target:
            await self._wake(heapq.heappop(self._sleepers))
        self._now_ms = target
        await self._settle()

    async def _wake(self, sleeper: _Sleeper) -> None:
        deadline, _, future = sleeper
        if future.done():
            return
        self._now_ms = max(self._now_ms, deadline)
        future.set_result(None)
        await self._settle()

    async def _settle(self) -> None:
        for _ in range(self._loop_turns):
            await asyncio.sleep(0)

    def _announce(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

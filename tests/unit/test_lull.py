"""Work that can wait gives way to people."""

import asyncio

from bot.lull import LULL_SECONDS, PATIENCE_SECONDS, SILENCE_SECONDS, Lull
from bot.simulate import VirtualClock


class SetBack(VirtualClock):
    """A clock that somebody sets back."""

    back_ms = 0

    def now(self) -> int:
        return super().now() - self.back_ms


async def test_where_nobody_ever_spoke_nobody_is_waited_for():
    clock = VirtualClock(1_000_000)
    await Lull(clock).awaited()
    assert clock.now() == 1_000_000


async def test_a_lull_is_awaited_from_the_last_event_on():
    clock = VirtualClock(1_000_000)
    lull = Lull(clock)
    lull.broken()
    waiting = asyncio.create_task(lull.awaited())
    await clock.advance(LULL_SECONDS * 0.8)
    lull.broken()
    await clock.advance(LULL_SECONDS * 0.8)
    assert not waiting.done()
    await clock.advance(LULL_SECONDS * 0.3)
    await waiting


async def test_where_somebody_always_speaks_it_goes_on_in_the_end():
    clock = VirtualClock(1_000_000)
    lull = Lull(clock)
    lull.broken()
    waiting = asyncio.create_task(lull.awaited())
    while not waiting.done():
        lull.broken()
        await clock.advance(LULL_SECONDS / 2)
    await waiting
    waited = (clock.now() - 1_000_000) / 1000
    assert PATIENCE_SECONDS <= waited < PATIENCE_SECONDS + 2 * LULL_SECONDS


async def test_after_half_a_minute_there_is_silence():
    clock = VirtualClock(1_000_000)
    lull = Lull(clock)
    assert lull.is_silence
    lull.broken()
    await clock.advance(SILENCE_SECONDS - 1)
    assert not lull.is_silence
    await clock.advance(1)
    assert lull.is_silence


async def test_a_clock_that_was_set_back_holds_nothing_up():
    clock = SetBack(9_000_000)
    lull = Lull(clock)
    lull.broken()
    clock.back_ms = 8_000_000
    before = clock.now()
    await lull.awaited()
    assert clock.now() == before
    assert lull.is_silence

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.clock import Clock
from bot.simulate import VirtualClock

START_MS = 1_795_980_000_000


def test_a_virtual_clock_is_a_clock_that_stands_still():
    clock: Clock = VirtualClock(START_MS)
    assert (clock.now(), clock.now()) == (START_MS, START_MS)


async def test_advancing_moves_the_present():
    clock = VirtualClock(START_MS)
    await clock.advance(1.5)
    assert clock.now() == START_MS + 1500


async def test_a_sleeper_wakes_at_its_own_deadline_and_not_before():
    clock, woken = VirtualClock(START_MS), []

    async def nap() -> None:
        await clock.sleep(10)
        woken.append(clock.now())

    task = asyncio.create_task(nap())
    await clock.advance(9.999)
    assert woken == []
    await clock.advance(60)
    await task
    assert woken == [START_MS + 10_000]
    assert clock.now() == START_MS + 69_999


async def test_sleepers_wake_in_the_order_of_their_deadlines_not_of_their_arrival():
    clock, woken = VirtualClock(START_MS), []

    async def nap(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((seconds, clock.now() - START_MS))

    tasks = [asyncio.create_task(nap(seconds)) for seconds in (30, 10, 20, 10)]
    await clock.advance(30)
    await asyncio.gather(*tasks)
    assert woken == [(10, 10_000), (10, 10_000), (20, 20_000), (30, 30_000)]


async def test_what_a_woken_sleeper_starts_runs_before_the_next_one_is_woken():
    clock, log = VirtualClock(START_MS), []

    async def first() -> None:
        await clock.sleep(1)
        await asyncio.create_task(consequence())

    async def consequence() -> None:
        await asyncio.sleep(0)
        log.append("consequence of the first")

    async def second() -> None:
        await clock.sleep(1)
        log.append("second")

    tasks = [asyncio.create_task(first()), asyncio.create_task(second())]
    await clock.advance(1)
    await asyncio.gather(*tasks)
    assert log == ["consequence of the first", "second"]


async def test_a_loop_that_sleeps_again_runs_as_often_as_it_fits_into_one_advance():
    clock, ticks = VirtualClock(START_MS), []

    async def tick() -> None:
        while True:
            await clock.sleep(15)
            ticks.append(clock.now() - START_MS)

    task = asyncio.create_task(tick())
    await clock.advance(60)
    task.cancel()
    assert ticks == [15_000, 30_000, 45_000, 60_000]


async def test_a_cancelled_sleeper_is_passed_over():
    clock = VirtualClock(START_MS)
    task = asyncio.create_task(clock.sleep(5))
    await clock.until_sleeping()
    task.cancel()
    await clock.advance(10)
    assert task.cancelled()
    assert clock.sleeping == 0


async def test_sleeping_for_nothing_returns_without_an_advance():
    clock = VirtualClock(START_MS)
    await clock.sleep(0)
    await clock.sleep(-1)
    assert clock.now() == START_MS


async def test_one_can_wait_until_somebody_sleeps():
    clock = VirtualClock(START_MS)
    tasks = [asyncio.create_task(clock.sleep(1)) for _ in range(2)]
    await clock.until_sleeping(2)
    assert clock.sleeping == 2
    await clock.advance(1)
    await asyncio.gather(*tasks)


async def test_time_does_not_run_backwards():
    with pytest.raises(ValueError, match="backwards"):
        await VirtualClock(START_MS).advance(-1)


@given(
    naps=st.lists(st.integers(1, 50), max_size=8),
    steps=st.lists(st.integers(0, 30), max_size=5),
)
def test_everyone_wakes_once_at_their_deadline_however_time_is_cut(
    naps: list[int], steps: list[int]
):
    async def live() -> list[tuple[int, int]]:
        clock, woken = VirtualClock(0, loop_turns=3), []

        async def nap(seconds: int) -> None:
            await clock.sleep(seconds)
            woken.append((seconds * 1000, clock.now()))

        tasks = [asyncio.create_task(nap(seconds)) for seconds in naps]
        for step in [*steps, 50]:
            await clock.advance(step)
        await asyncio.gather(*tasks)
        return woken

    woken = asyncio.run(live())
    assert woken == sorted((seconds * 1000, seconds * 1000) for seconds in naps)

"""Patience: while the database takes nothing, what came waits, in order, and none of it is lost."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import StoreBusy, StoreError, StoreFull
from bot.store.database import Database
from bot.store.group_commit import GroupCommit
from bot.store.ingest import Arrival, Receipt, store_arrivals
from bot.store.patience import TOLD_AGAIN_MS, LastingWrites, Patience
from tests.store.processes import FILL, rest_of_lines, start
from tests.store.rows import NOON, arrival, message_count, said, values

WHOLE = 1 << 30


async def limit_pages(db: Database, pages: int) -> None:
    """Let the database grow no further than so many pages, or than it is."""
    async with db.transaction() as tx:
        await tx.execute_fetchall(f"PRAGMA max_page_count = {pages}")


@asynccontextmanager
async def no_room(db: Database) -> AsyncIterator[None]:
    """Let the database be full for a while."""
    await limit_pages(db, 1)
    yield
    await limit_pages(db, WHOLE)


async def test_what_comes_while_the_disk_is_full_is_stored_once_there_is_room(db: Database):
    tries: list[int] = []
    waits: list[StoreBusy] = []

    async def commit(group: Sequence[Arrival]) -> Sequence[Receipt]:
        tries.append(len(group))
        return await store_arrivals(db, group)

    arrivals = GroupCommit(commit, Patience(waits.append, pause_seconds=0.02))
    messages = [said("长" * 2_000, id=str(n), at=NOON + n) for n in range(60)]
    async with no_room(db):
        adding = [asyncio.create_task(arrivals.add(arrival(m))) for m in messages]
        await asyncio.sleep(0.2)
        assert await message_count(db) == 0
        assert len(tries) < 30, "it spins"
    receipts = await asyncio.gather(*adding)
    assert [receipt.row_id for receipt in receipts] == list(range(1, 61))
    assert [type(wait) for wait in waits] == [StoreFull]
    assert str(db.path) in str(waits[0])


async def test_a_limit_of_the_system_is_a_full_disk_too(db: Database):
    process = await start(FILL, db.path)
    lines = await rest_of_lines(process)
    assert await process.wait() == 0
    assert lines == ["StoreFull", "stored 60"]


async def fill(db: Database) -> None:
    async with db.transaction() as tx:
        for key in range(200):
            row = (f"{key}" * 500,)
            await tx.execute_fetchall("INSERT INTO alerts (kind, told_at) VALUES (?, 0)", row)


async def test_a_transaction_that_finds_no_room_is_undone_and_says_so(db: Database):
    async with no_room(db):
        with pytest.raises(StoreFull, match="room"):
            await fill(db)
        assert await values(db, "SELECT count(*) FROM alerts") == [0]
    await fill(db)
    assert await values(db, "SELECT count(*) FROM alerts") == [200]


async def test_when_too_many_wait_the_newest_is_refused_and_the_others_are_stored():
    free = asyncio.Event()

    async def commit(group: Sequence[int]) -> Sequence[int]:
        await free.wait()
        return group

    queue = GroupCommit(commit, Patience(lambda _: None), most_waiting=3)
    waiting = [asyncio.create_task(queue.add(1))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting += [asyncio.create_task(queue.add(n)) for n in (2, 3, 4)]
    await asyncio.sleep(0)
    with pytest.raises(StoreError, match="3 messages wait"):
        await queue.add(5)
    free.set()
    assert await asyncio.gather(*waiting) == [1, 2, 3, 4]
    assert await queue.add(6) == 6


async def test_who_waits_for_what_is_queued_does_not_wait_for_what_comes_later():
    gates = {n: asyncio.Event() for n in (1, 2)}

    async def commit(group: Sequence[int]) -> Sequence[int]:
        await gates[group[0]].wait()
        return group

    queue = GroupCommit(commit, Patience(lambda _: None))
    first = queue.put(1)
    await asyncio.sleep(0)
    caught_up = asyncio.create_task(queue.caught_up())
    await asyncio.sleep(0)
    second = queue.put(2)
    gates[1].set()
    await caught_up
    assert first.done()
    assert not second.done()
    gates[2].set()
    await second


@given(failures=st.lists(st.integers(0, 3), min_size=1, max_size=12))
async def test_writes_are_done_once_each_and_in_order_however_often_they_have_to_wait(
    failures: list[int],
):
    waits: list[StoreBusy] = []
    lasting = LastingWrites(Patience(waits.append, pause_seconds=0))
    left = list(failures)
    done: list[int] = []

    async def write(number: int) -> None:
        await asyncio.sleep(0)
        if left[number]:
            left[number] -= 1
            raise StoreBusy("locked")
        done.append(number)

    def work(number: int):
        return lambda: write(number)

    await asyncio.gather(*(lasting.keep(work(n)) for n in range(len(failures))))
    await lasting.settled()
    assert done == list(range(len(failures)))
    assert len(waits) == sum(count > 0 for count in failures)


async def test_what_fails_for_good_is_said_and_holds_nobody_up():
    lasting = LastingWrites(Patience(lambda _: None, pause_seconds=0))
    done: list[str] = []

    async def broken() -> None:
        raise ValueError

    async def whole() -> None:
        done.append("whole")

    outcomes = await asyncio.gather(
        lasting.keep(broken), lasting.keep(whole), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [ValueError, type(None)]
    assert done == ["whole"]


@pytest.mark.parametrize(("cause", "is_news"), [(StoreFull, True), (StoreBusy, False)])
async def test_a_full_disk_is_news_once_an_hour_and_a_lock_is_none(
    cause: type[StoreBusy], is_news: bool
):
    patience = Patience(lambda _: None, pause_seconds=0)
    seen: list[bool] = []

    async def attempt() -> None:
        # The last: the clock was set back.
        moments = (NOON, NOON + 1, NOON + TOLD_AGAIN_MS, NOON)
        seen.extend(patience.take_news(at) is not None for at in moments)
        if len(seen) == 4:
            raise cause("not now")

    await patience.until_done(attempt)
    assert seen == [False] * 4 + [is_news, False, is_news, is_news]
    assert patience.take_news(NOON + 9 * TOLD_AGAIN_MS) is None

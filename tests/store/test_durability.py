"""What is written can be read at once; it is durable before anything is done about it."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.errors import StoreError
from bot.store import sqlite
from bot.store.database import Database, open_database
from bot.store.ingest import store_arrivals
from tests.store.rows import NOON, arrival, message_count, said, value


class Disk:
    """A disk that syncs when it is let, or breaks."""

    def __init__(self) -> None:
        self.lets = threading.Event()
        self.is_broken = False
        self.syncs = 0

    def sync(self) -> None:
        assert self.lets.wait(10)
        if self.is_broken:
            raise StoreError("the disk is broken")
        self.syncs += 1


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
async def slow(path: Path, disk: Disk) -> AsyncIterator[Database]:
    """A database on ``disk``."""
    async with open_database(path, now=NOON), _opened(path, disk) as db:
        yield db
        disk.lets.set()


@asynccontextmanager
async def _opened(path: Path, disk: Disk) -> AsyncIterator[Database]:
    writer = await sqlite.connect(path, "FULL")
    reader = await sqlite.connect(path, "FULL", read_only=True)
    try:
        yield Database(path, writer, [reader], disk.sync)
    finally:
        disk.lets.set()
        await writer.close()
        await reader.close()


async def test_a_message_can_be_read_before_it_is_durable(slow: Database, disk: Disk):
    (receipt,) = await store_arrivals(slow, [arrival(said("早上好"))])
    assert receipt.is_new
    assert disk.syncs == 0
    assert await message_count(slow) == 1


async def test_who_waits_for_durable_waits_for_the_disk(slow: Database, disk: Disk):
    await store_arrivals(slow, [arrival(said("早上好"))])
    waiting = asyncio.create_task(slow.durable())
    await asyncio.sleep(0.05)
    assert not waiting.done()
    disk.lets.set()
    await waiting
    assert disk.syncs == 1


async def test_of_several_commits_the_last_makes_all_durable(slow: Database, disk: Disk):
    writes = [
        asyncio.create_task(store_arrivals(slow, [arrival(said(id=str(n)))])) for n in range(3)
    ]
    await writes[0]
    disk.lets.set()
    await asyncio.gather(*writes)
    await slow.durable()
    assert disk.syncs == 3


async def test_who_waits_is_not_held_up_by_what_is_written_meanwhile(slow: Database, disk: Disk):
    await store_arrivals(slow, [arrival(said(id="1"))])
    waiting = asyncio.create_task(slow.durable())
    await asyncio.sleep(0.02)
    later = asyncio.create_task(store_arrivals(slow, [arrival(said(id="2"))]))
    await asyncio.sleep(0.02)
    disk.lets.set()
    await waiting
    await later


async def test_a_transaction_is_synced_by_sqlite_itself_also_after_other_writes(
    slow: Database, disk: Disk
):
    disk.lets.set()
    await store_arrivals(slow, [arrival(said())])
    async with slow.transaction() as tx:
        ((number,),) = await tx.execute_fetchall("PRAGMA synchronous")
        assert number == 2
    assert disk.syncs == 1


async def test_a_disk_that_breaks_is_told_to_who_waits_and_forgiven_once_it_works(
    slow: Database, disk: Disk
):
    disk.is_broken = True
    disk.lets.set()
    await store_arrivals(slow, [arrival(said(id="1"))])
    with pytest.raises(StoreError, match="broken"):
        await slow.durable()
    disk.is_broken = False
    await store_arrivals(slow, [arrival(said(id="2"))])
    await slow.durable()
    assert await message_count(slow) == 2


async def test_work_that_fails_leaves_nothing_and_does_not_hold_up_the_next(
    slow: Database, disk: Disk
):
    disk.lets.set()

    def work(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE chats SET name = 'x'")
        raise ZeroDivisionError

    await store_arrivals(slow, [arrival(said())])
    with pytest.raises(ZeroDivisionError):
        await slow.write(work)
    await slow.durable()
    assert await value(slow, "SELECT name FROM chats") == ""


async def test_who_stops_waiting_for_a_write_does_not_stop_the_next(slow: Database, disk: Disk):
    disk.lets.set()
    cancelled = asyncio.create_task(store_arrivals(slow, [arrival(said(id="1"))]))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    await store_arrivals(slow, [arrival(said(id="2"))])
    assert await message_count(slow) == 2


async def test_only_full_durability_is_synced_from_beside(path: Path):
    ways: list[tuple[sqlite.Synchronous, bool]] = [("FULL", True), ("NORMAL", False)]
    for synchronous, is_apart in ways:
        connection = await sqlite.connect(path, synchronous)
        try:
            assert (await sqlite.sync_apart(connection) is not None) is is_apart
        finally:
            await connection.close()


async def test_a_log_that_cannot_be_synced_is_an_error_that_says_so(path: Path):
    connection = await sqlite.connect(path, "FULL")
    try:
        sync = await sqlite.sync_apart(connection)
        assert sync is not None
        await connection.execute_fetchall("CREATE TABLE t (n)")
        path.with_name(f"{path.name}-wal").unlink()
        with pytest.raises(StoreError, match="the disk does not keep"):
            sync()
    finally:
        await connection.close()


async def test_the_log_of_a_linked_database_is_where_the_database_is(tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "qunyi.db"
    link.symlink_to(tmp_path / "elsewhere" / "real.db")
    async with open_database(link, now=NOON) as db:
        await store_arrivals(db, [arrival(said())])
        await db.durable()
        assert await message_count(db) == 1


async def test_a_write_to_a_closed_database_fails_at_once(path: Path):
    async with open_database(path, now=NOON) as db:
        pass
    async with asyncio.timeout(2):
        with pytest.raises(ValueError, match="connection"):
            await store_arrivals(db, [arrival(said())])

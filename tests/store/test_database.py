"""The database: transactions, readers, the file, backups and other processes."""

import asyncio
import itertools
import os
import sqlite3
import stat
from collections.abc import Coroutine, Generator
from pathlib import Path
from typing import Any

import pytest
from loguru import logger

from bot.errors import MigrationError, StoreBusy, StoreError
from bot.model import Member
from bot.store.chats import block
from bot.store.database import Database, open_database
from tests.store.processes import HOLD_LOCK, INGEST, OPEN, next_line, rest_of_lines, start, tell
from tests.store.rows import (
    BOT,
    NOON,
    message_count,
    outside,
    said,
    store,
    value,
    values,
)

INSERT = "INSERT INTO blocks (bot_id, user_id, blocked_at, blocked_by) VALUES ('1', ?, 0, '')"


async def blocked(db: Database) -> list[str]:
    """Return who is blocked: the test's plain rows."""
    return await values(db, "SELECT user_id FROM blocks ORDER BY user_id")


# --- transactions -----------------------------------------------------------------------------


class DeliberateError(Exception):
    """Raised by a test inside a transaction."""


async def test_a_transaction_is_kept_when_its_block_ends(db: Database):
    async with db.transaction() as tx:
        await tx.execute_fetchall(INSERT, ("a",))
    assert await blocked(db) == ["a"]


async def test_a_transaction_is_undone_when_its_block_raises(db: Database):
    async def fail() -> None:
        async with db.transaction() as tx:
            await tx.execute_fetchall(INSERT, ("a",))
            raise DeliberateError

    with pytest.raises(DeliberateError):
        await fail()
    assert await blocked(db) == []


async def test_a_transaction_is_undone_when_a_statement_fails(db: Database):
    async def write_twice() -> None:
        async with db.transaction() as tx:
            await tx.execute_fetchall(INSERT, ("a",))
            await tx.execute_fetchall(INSERT, ("a",))

    with pytest.raises(sqlite3.IntegrityError):
        await write_twice()
    assert await blocked(db) == []


async def test_foreign_keys_hold(db: Database):
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        async with db.transaction() as tx:
            await tx.execute_fetchall(
                "INSERT INTO early_recalls VALUES (99, '1', 0, '')",
            )


class CancelledAt:
    """Awaits a coroutine and cancels the task at its suspensions of the given numbers."""

    def __init__(self, work: Coroutine[Any, Any, None], *suspensions: int) -> None:
        self._work = work
        self._suspensions = suspensions
        self.count = 0

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self._work.__await__()
        resume = lambda: steps.send(None)  # noqa: E731
        while True:
            try:
                waited = resume()
            except StopIteration:
                return
            self.count += 1
            if self.count in self._suspensions:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            try:
                yield waited
            except BaseException as error:
                thrown = error
                resume = lambda: steps.throw(thrown)  # noqa: E731
            else:
                resume = lambda: steps.send(None)  # noqa: E731


async def _write_two(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute_fetchall(INSERT, ("a",))
        await tx.execute_fetchall(INSERT, ("b",))


async def _suspension_count(db: Database) -> int:
    work = CancelledAt(_write_two(db))
    await work
    async with db.transaction() as tx:
        await tx.execute_fetchall("DELETE FROM blocks")
    return work.count


@pytest.mark.parametrize("again_after", [0, 1])
@pytest.mark.parametrize("suspension", [1, 2, 3, 4])
async def test_a_transaction_cancelled_at_any_await_is_kept_whole_or_not_at_all(
    db: Database, suspension: int, again_after: int
):
    assert await _suspension_count(db) == 4

    async def run() -> None:
        await CancelledAt(_write_two(db), suspension, suspension + again_after)

    task = asyncio.create_task(run())
    await asyncio.wait([task])
    assert task.cancelled()
    async with db.transaction() as tx:
        assert await block(tx, Member(BOT, "after"), by="", at=0)
    # The last await is the commit itself: then it may have happened.
    assert await blocked(db) in (
        [["after"]] if suspension < 4 else [["after"], ["a", "after", "b"]]
    )


async def test_a_task_cancelled_while_it_waits_for_its_turn_disturbs_nobody(db: Database):
    first = asyncio.Event()

    async def slow() -> None:
        async with db.transaction() as tx:
            await tx.execute_fetchall(INSERT, ("slow",))
            first.set()
            await asyncio.sleep(0.02)

    running = asyncio.create_task(slow())
    await first.wait()
    waiting = asyncio.create_task(_write_two(db))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting, running])
    assert waiting.cancelled()
    assert await blocked(db) == ["slow"]


async def test_transactions_wait_for_each_other(db: Database):
    async def add(name: str) -> None:
        async with db.transaction() as tx:
            count = len(list(await tx.execute_fetchall("SELECT * FROM blocks")))
            await asyncio.sleep(0)
            await tx.execute_fetchall(INSERT, (f"{count}-{name}",))

    await asyncio.gather(*(add("abcdefgh"[n]) for n in range(8)))
    assert [name[0] for name in await blocked(db)] == list("01234567")


async def test_readers_never_see_what_is_not_committed(db: Database):
    async with db.transaction() as tx:
        await tx.execute_fetchall(INSERT, ("a",))
        assert await blocked(db) == []
        assert outside(db.path, "SELECT * FROM blocks") == []
    assert await blocked(db) == ["a"]


async def test_readers_do_not_wait_for_a_writer(db: Database):
    async with db.transaction():
        counts = await asyncio.gather(*(message_count(db) for _ in range(10)))
    assert counts == [0] * 10


async def test_readers_cannot_write(db: Database):
    async with db.reader() as connection:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            await connection.execute_fetchall(INSERT, ("a",))


async def test_a_cancelled_reader_goes_back_to_the_others(db: Database):
    for _ in range(10):
        task = asyncio.create_task(message_count(db))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    assert await asyncio.gather(*(message_count(db) for _ in range(10))) == [0] * 10


# --- the file ---------------------------------------------------------------------------------


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def _open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_open_umask")
async def test_only_the_owner_may_read_any_file_of_the_database(tmp_path: Path):
    path = tmp_path / "deep" / "qunyi.db"
    async with open_database(path, now=NOON) as db:
        await store(db, said())
        await db.backup(tmp_path / "copy.db")
        files = [*path.parent.iterdir(), tmp_path / "copy.db"]
        assert {"qunyi.db", "qunyi.db-wal"} <= {file.name for file in files}
        assert {file.name: _mode(file) for file in files} == {file.name: 0o600 for file in files}


async def test_a_database_that_others_could_read_is_closed_to_them(path: Path):
    os.close(os.open(path, os.O_CREAT, 0o644))
    async with open_database(path, now=NOON):
        assert _mode(path) == 0o600


PRAGMAS = {
    "journal_mode": "wal",
    "foreign_keys": 1,
    "busy_timeout": 5000,
    "temp_store": 2,
    "cache_size": -16384,
    "wal_autocheckpoint": 4000,
    "secure_delete": 1,
}


@pytest.mark.parametrize(("synchronous", "number"), [("FULL", 2), ("NORMAL", 1)])
async def test_every_connection_has_the_documented_pragmas(
    path: Path, synchronous: Any, number: int
):
    async with open_database(path, now=NOON, synchronous=synchronous) as db:
        async with db.transaction() as tx:
            for name, expected in {**PRAGMAS, "synchronous": number}.items():
                ((writers,),) = await tx.execute_fetchall(f"PRAGMA {name}")
                assert (name, writers) == (name, expected)
        for name, expected in {**PRAGMAS, "synchronous": number, "query_only": 1}.items():
            readers = await asyncio.gather(*(value(db, f"PRAGMA {name}") for _ in range(3)))
            assert (name, readers) == (name, [expected] * 3)


async def test_opening_says_in_the_log_what_is_in_force(path: Path):
    lines: list[str] = []
    sink = logger.add(lines.append, format="{message}", level="INFO")
    async with open_database(path, now=NOON):
        logger.remove(sink)
    (line,) = lines
    assert str(path) in line
    for setting in ("journal_mode=wal", "synchronous=2", "secure_delete=1"):
        assert setting in line


async def test_full_is_the_default(db: Database):
    assert await value(db, "PRAGMA synchronous") == 2


def _read(path: Path) -> bytes:
    return path.read_bytes()


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


async def test_a_file_that_is_no_database_is_refused_by_name(path: Path):
    content = b"these are notes and no database. " * 40
    with pytest.raises(StoreError, match=str(path)):
        async with open_database(_write(path, content), now=NOON):
            pass
    assert _read(path) == content


async def test_a_folder_in_the_place_of_the_database_is_refused_by_name(tmp_path: Path):
    with pytest.raises(StoreError, match=str(tmp_path)):
        async with open_database(tmp_path, now=NOON):
            pass


# --- backups ----------------------------------------------------------------------------------


async def test_a_backup_is_consistent_while_writes_go_on(db: Database, tmp_path: Path):
    copies = [tmp_path / f"copy{n}.db" for n in range(3)]
    enough, done = asyncio.Event(), asyncio.Event()

    async def chatter() -> None:
        for count in itertools.count():
            await store(db, *(said(id=f"{count}-{n}") for n in range(20)))
            if count == 5:
                enough.set()
            if done.is_set():
                break

    talking = asyncio.create_task(chatter())
    await enough.wait()
    for copy in copies:
        await db.backup(copy)
    done.set()
    await talking
    for copy in copies:
        assert outside(copy, "PRAGMA integrity_check") == [("ok",)]
        ((messages, highest),) = outside(copy, "SELECT count(*), max(id) FROM messages")
        # Whole transactions only: the counter and what it counts belong together.
        assert outside(copy, "SELECT DISTINCT pending FROM cursors") == [(messages,)]
        assert messages == highest >= 120
        assert messages % 20 == 0


async def test_a_backup_opens_as_a_database(db: Database, tmp_path: Path):
    await store(db, said())
    await db.backup(tmp_path / "copy.db")
    async with open_database(tmp_path / "copy.db", now=NOON) as copy:
        assert await message_count(copy) == 1


async def test_a_backup_overwrites_nothing(db: Database, tmp_path: Path):
    target = _write(tmp_path / "copy.db", b"mine")
    with pytest.raises(StoreError, match=r"copy\.db exists"):
        await db.backup(target)
    assert _read(target) == b"mine"


async def test_a_backup_that_cannot_be_written_says_where(db: Database, tmp_path: Path):
    with pytest.raises(StoreError, match=r"nowhere/copy\.db"):
        await db.backup(tmp_path / "nowhere" / "copy.db")


# --- other processes --------------------------------------------------------------------------


@pytest.mark.long
async def test_a_lock_held_for_too_long_is_called_busy(db: Database):
    process = await start(HOLD_LOCK, db.path, 6)
    assert await next_line(process) == "locked"
    with pytest.raises(StoreBusy, match="another process holds the write lock"):
        async with db.transaction():
            pytest.fail("the lock was not held")
    assert await process.wait() == 0
    async with db.transaction() as tx:
        await tx.execute_fetchall(INSERT, ("a",))
    assert await blocked(db) == ["a"]


async def test_a_database_that_is_locked_opens_when_the_lock_is_gone(path: Path):
    async with open_database(path, now=NOON):
        pass
    process = await start(HOLD_LOCK, path, 0.5)
    assert await next_line(process) == "locked"
    async with open_database(path, now=NOON) as db:
        await store(db, said())
        assert await message_count(db) == 1
    assert await process.wait() == 0


@pytest.mark.long
async def test_a_new_database_that_stays_locked_is_refused_with_the_cause(path: Path):
    sqlite3.connect(path).executescript("PRAGMA journal_mode = WAL").close()
    process = await start(HOLD_LOCK, path, 6.5)
    assert await next_line(process) == "locked"
    with pytest.raises(StoreError, match=r"lock"):
        async with open_database(path, now=NOON):
            pass
    assert await process.wait() == 0


@pytest.mark.parametrize("round_", range(3))
async def test_processes_that_open_a_new_database_at_once_all_succeed(path: Path, round_: int):
    processes = [await start(OPEN, path) for _ in range(3)]
    for process in processes:
        assert await next_line(process) == "ready"
    await asyncio.gather(*map(tell, processes))
    assert [await next_line(process) for process in processes] == ["opened"] * 3
    assert [await process.wait() for process in processes] == [0, 0, 0]
    async with open_database(path, now=NOON) as db:
        versions = await values(db, "SELECT version FROM schema_steps")
    assert versions == sorted(set(versions))


async def _kill_and_check(path: Path, kills: int) -> None:
    acknowledged: set[str] = set()
    for run in range(kills):
        process = await start(INGEST, path, run)
        for _ in range(40 + 23 * run % 200):
            acknowledged.add(await next_line(process))
        process.kill()
        acknowledged.update(await rest_of_lines(process))
        await process.wait()
        async with open_database(path, now=NOON) as db:
            kept = await values(db, "SELECT platform_id FROM messages")
            assert await value(db, "PRAGMA quick_check") == "ok"
            assert await values(db, "SELECT DISTINCT pending FROM cursors") == [len(kept)]
        assert "" not in acknowledged
        assert acknowledged <= set(kept)
        assert len(kept) == len(set(kept))


async def test_what_was_acknowledged_survives_a_kill(path: Path):
    await _kill_and_check(path, 3)


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_what_was_acknowledged_survives_fifty_kills(path: Path):
    await _kill_and_check(path, 50)


async def test_a_newer_database_is_not_opened(path: Path):
    async with open_database(path, now=NOON) as db, db.transaction() as tx:
        await tx.execute_fetchall("INSERT INTO schema_steps VALUES (9999, 'later', 0)")
    with pytest.raises(MigrationError, match="newer Qunyi"):
        async with open_database(path, now=NOON):
            pass

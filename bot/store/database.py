"""The connections of one process: one writer, a few readers, a group commit for ingest.

See ``docs/architecture.md``, "Storage". All writes go through ``Database.transaction`` or, those
of every message, ``Database.write``; a read never waits for a write.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

import aiosqlite
from loguru import logger

from bot.errors import StoreBusy, StoreError, StoreFull
from bot.store import sqlite
from bot.store.entry_index import fill_index
from bot.store.migrate import migrate

READER_COUNT = 3
RETRY_SECONDS = 0.05

T = TypeVar("T")


class Database:
    """An open database. Made by ``open_database``."""

    def __init__(
        self,
        path: Path,
        writer: aiosqlite.Connection,
        readers: Iterable[aiosqlite.Connection],
        sync: sqlite.Sync | None = None,
    ) -> None:
        self.path = path
        self._writer = writer
        self._sync = sync
        self._syncing: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._readers: asyncio.LifoQueue[aiosqlite.Connection] = asyncio.LifoQueue()
        for reader in readers:
            self._readers.put_nowait(reader)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[aiosqlite.Connection]:
        """One write transaction: durable when the block ends, undone when it raises.

        Raises:
            StoreBusy: another process held the write lock longer than the busy time-out.
            StoreFull: the disk has no room.
        """
        with _told_apart(self.path):
            async with self._writing:
                await self._begin()
                try:
                    yield self._writer
                    await self._writer.execute_fetchall("COMMIT")
                except BaseException:
                    # Shielded: a cancelled task must not leave its transaction open.
                    await asyncio.shield(self._writer.rollback())
                    raise

    async def durable(self) -> None:
        """Wait until all that this process wrote before is durable.

        Raises:
            StoreError: the disk does not keep the last of it.
        """
        # The next write takes its place, perhaps while this waits.
        syncing = self._syncing
        if syncing is None:
            return
        if not syncing.done():
            await asyncio.wait([syncing])
        if error := syncing.exception():
            raise StoreError(str(error)) from error

    async def _begin(self) -> None:
        try:
            await self._writer.execute_fetchall("BEGIN IMMEDIATE")
        except asyncio.CancelledError:
            # The statement may have run in the connection's thread nevertheless.
            await asyncio.shield(self._writer.rollback())
            raise

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do some work in a write transaction of its own, in one visit to the writer's thread.

        For what is done for every message: a transaction of many awaited statements costs a tenth
        of a millisecond for each. When it returns, all can read what was written, and the disk is
        at it; before anything is done about it outside, wait for ``durable``.

        Raises:
            StoreBusy: another process held the write lock longer than the busy time-out.
            StoreFull: the disk has no room.
        """
        with _told_apart(self.path):
            async with self._writing:
                visible, self._syncing = sqlite.transact_then_sync(self._writer, work, self._sync)
                self._syncing.add_done_callback(_tell_failure)
                return await visible

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[aiosqlite.Connection]:
        """A connection that only reads; each statement sees the latest commit."""
        connection = await self._readers.get()
        try:
            yield connection
        finally:
            self._readers.put_nowait(connection)

    async def empty_log(self) -> bool:
        """Empty the write-ahead log, where what was erased still stands; false if it stays.

        It stays while somebody reads from it, and if the disk does not take what it holds.
        """
        async with self._writing:
            try:
                return await sqlite.empty_log(self._writer)
            except sqlite3.OperationalError as error:
                logger.warning("the log of {} is not emptied: {}", self.path, error)
                return False

    async def backup(self, target: Path) -> None:
        """Write a consistent copy to ``target`` without holding up writers.

        Raises:
            StoreError: ``target`` exists or cannot be written.
        """
        try:
            await sqlite.vacuum_into(self.path, target)
        except FileExistsError as error:
            raise StoreError(f"{target} exists already; name a file that does not") from error
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"the backup to {target} failed: {error}") from error


def _tell_failure(syncing: asyncio.Task[None]) -> None:
    if not syncing.cancelled() and (error := syncing.exception()):
        logger.error("{}", error)


@contextmanager
def _told_apart(path: Path) -> Iterator[None]:
    """Raise as errors of ours what passes by waiting, or by making room."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if sqlite.is_busy(error):
            raise _busy(path) from error
        if sqlite.is_full(error):
            raise StoreFull(f"{path} cannot grow; make room on its disk: {error}") from error
        raise


def _busy(path: Path) -> StoreBusy:
    return StoreBusy(f"another process holds the write lock of {path}")


@asynccontextmanager
async def open_database(
    path: Path, *, now: int, synchronous: sqlite.Synchronous = "FULL"
) -> AsyncIterator[Database]:
    """Open ``path`` (made if it is missing), migrate it, and close it at the end.

    Args:
        path: the database file; created readable by its owner only.
        now: UTC milliseconds, for the records of migrations.
        synchronous: ``FULL`` survives a power cut, ``NORMAL`` only a crash of the process.

    Raises:
        StoreError: the file cannot be opened, or is not a database.
        StoreBusy: another process held the write lock for too long.
        MigrationError: the schema cannot be brought to this program's version.
    """
    async with AsyncExitStack() as stack:
        try:
            database = await _opened_in_turn(path, now, synchronous, stack)
        except (OSError, sqlite3.Error) as error:
            if isinstance(error, sqlite3.Error) and sqlite.is_busy(error):
                raise _busy(path) from error
            raise StoreError(f"the database {path} cannot be opened: {error}") from error
        yield database


async def _opened_in_turn(
    path: Path, now: int, synchronous: sqlite.Synchronous, stack: AsyncExitStack
) -> Database:
    """Open a database that others may be opening as well.

    While one of them makes it or its log, SQLite says at once that it is busy, whatever the
    time-out.
    """
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + sqlite.BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            async with AsyncExitStack() as trial:
                database = await _opened(path, now, synchronous, trial)
                stack.push_async_exit(trial.pop_all())
                return database
        except sqlite3.Error as error:
            if not sqlite.is_busy(error) or loop.time() >= give_up_at:
                raise
        await asyncio.sleep(RETRY_SECONDS)


async def _opened(
    path: Path, now: int, synchronous: sqlite.Synchronous, stack: AsyncExitStack
) -> Database:
    sqlite.create_file(path)

    async def connection(*, read_only: bool = False) -> aiosqlite.Connection:
        opened = await sqlite.connect(path, synchronous, read_only=read_only)
        stack.push_async_callback(opened.close)
        return opened

    writer = await connection()
    logger.info("database {}: {}", path, await sqlite.pragmas_in_force(writer))
    await migrate(writer, now)
    await fill_index(writer)
    sync = await sqlite.sync_apart(writer)
    readers = [await connection(read_only=True) for _ in range(READER_COUNT)]
    return Database(path, writer, readers, sync)

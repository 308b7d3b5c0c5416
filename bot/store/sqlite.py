"""What is SQLite's own: pragmas, connections, the aiosql adapter, backup.

A second engine gets a file of its own beside this one; the table modules do not know which
engine they talk to. See ``docs/architecture.md``, "Storage".
"""

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import aiosqlite
from aiosql.adapters.aiosqlite import AioSQLiteAdapter
from aiosql.types import SQLOperationType

from bot.errors import StoreError
from bot.search.grams import message_tokens

Synchronous = Literal["FULL", "NORMAL"]
T = TypeVar("T")
Call = tuple[Any, Any]
"""A named query, and its parameters or those of each of its rows."""
Sync = Callable[[], None]
"""Makes durable what was committed; raises ``StoreError`` if the disk does not take it."""

BUSY_TIMEOUT_MS = 5_000
EMPTY_TIMEOUT_MS = 200
"""So long the emptying of the log waits for readers; meanwhile nobody writes."""

CACHE_KIB = 16 * 1024
HEAP_KIB = 12 * 1024
"""What the caches of all connections of a process hold together before they reuse their pages.

Without it, memory grows by a cache for each connection until the database has filled them all.
"""

FUNCTIONS: Mapping[str, Callable[..., str]] = MappingProxyType({"message_tokens": message_tokens})
"""What SQL of ours calls by name. A connection without them can read everything, and cannot change
what of a message may be found: the index would not follow."""

_FULL = 2
"""How SQLite calls ``synchronous=FULL`` when it is asked."""

_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)
"""Not every system has the one that leaves a file's times alone."""

WAL_AUTOCHECKPOINT_PAGES = 4_000
FILE_MODE = 0o600


class FetchAllAdapter(AioSQLiteAdapter):
    """aiosql's adapter with one hop to the connection's thread per query instead of three."""

    async def select(
        self,
        conn: aiosqlite.Connection,
        _query_name: str,
        sql: str,
        parameters: Any,
        record_class: Any = None,
    ) -> AsyncGenerator[Any, Any]:
        """Yield the rows of a query, all fetched at once."""
        for row in await conn.execute_fetchall(sql, parameters):
            yield record_class(**dict(row)) if record_class else row

    async def select_one(
        self,
        conn: aiosqlite.Connection,
        _query_name: str,
        sql: str,
        parameters: Any,
        record_class: Any = None,
    ) -> Any:
        """Return the first row of a query or ``None``."""
        for row in await conn.execute_fetchall(sql, parameters):
            return record_class(**dict(row)) if record_class else row
        return None

    async def select_value(
        self, conn: aiosqlite.Connection, _query_name: str, sql: str, parameters: Any
    ) -> Any:
        """Return the first column of the first row or ``None``."""
        for row in await conn.execute_fetchall(sql, parameters):
            return row[0]
        return None

    async def insert_update_delete_many(
        self, conn: aiosqlite.Connection, _query_name: str, sql: str, parameters: Any
    ) -> None:
        """Run a statement for many rows."""
        await conn.executemany(sql, parameters)


def pragmas(synchronous: Synchronous) -> dict[str, str | int]:
    """Return the pragmas of every connection, in the order they are applied."""
    return {
        "journal_mode": "WAL",
        "synchronous": synchronous,
        "foreign_keys": "ON",
        "busy_timeout": BUSY_TIMEOUT_MS,
        "temp_store": "MEMORY",
        "cache_size": -CACHE_KIB,
        "soft_heap_limit": HEAP_KIB * 1024,
        "wal_autocheckpoint": WAL_AUTOCHECKPOINT_PAGES,
        "secure_delete": "ON",
    }


async def pragmas_in_force(connection: aiosqlite.Connection) -> str:
    """Return what SQLite made of the pragmas, for the log: a file system may refuse WAL."""
    values = {}
    for name in pragmas("FULL"):
        ((values[name],),) = await connection.execute_fetchall(f"PRAGMA {name}")
    return ", ".join(f"{name}={value}" for name, value in values.items())


def create_file(path: Path) -> None:
    """Create the database file so that only its owner can read it, before anything is in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, FILE_MODE)
    os.close(descriptor)
    os.chmod(path, FILE_MODE)


async def connect(
    path: Path, synchronous: Synchronous, *, read_only: bool = False
) -> aiosqlite.Connection:
    """Open one connection in autocommit mode with every pragma set.

    Raises:
        sqlite3.Error: the file cannot be opened or is not a database.
    """
    connection = aiosqlite.connect(path, isolation_level=None, cached_statements=256)
    await connection
    connection.row_factory = sqlite3.Row
    try:
        for name, value in pragmas(synchronous).items():
            await connection.execute_fetchall(f"PRAGMA {name} = {value}")
        await visit(connection, add_functions)
        if read_only:
            await connection.execute_fetchall("PRAGMA query_only = ON")
    except BaseException:
        await connection.close()
        raise
    return connection


def add_functions(connection: sqlite3.Connection) -> None:
    """Let a connection call what SQL of ours calls by name."""
    for name, function in FUNCTIONS.items():
        count = len(signature(function).parameters)
        connection.create_function(name, count, function, deterministic=True)


async def sync_apart(connection: aiosqlite.Connection) -> Sync | None:
    """Return what makes durable what was committed without a sync (``transact_then_sync``).

    All that ``synchronous=FULL`` adds to ``NORMAL`` is a sync of the write-ahead log in each
    commit, before anybody can read what was written. The same sync behind it keeps as much. SQLite
    has no locks on that file that could be lost when it is closed.

    Returns:
        what syncs the log; ``None`` where each commit stays as it is: not all are to be durable, or
        there is no such log.
    """
    ((mode,),) = await connection.execute_fetchall("PRAGMA journal_mode")
    ((synchronous,),) = await connection.execute_fetchall("PRAGMA synchronous")
    if mode != "wal" or synchronous != _FULL:
        return None
    # As SQLite has it: links are followed.
    ((_, _, path), *_) = await connection.execute_fetchall("PRAGMA database_list")
    return partial(_sync_file, Path(f"{path}-wal"))


def _sync_file(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR)
        try:
            _sync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreError(f"the disk does not keep what is written to it: {error}") from error


async def in_order(connection: aiosqlite.Connection, *calls: Call) -> list[Any]:
    """Run named queries one after the other and return the rows of each.

    All in one visit to the connection's thread: each costs a tenth of a millisecond, most of what
    a small statement takes.

    Raises:
        sqlite3.Error: the first failure; the queries behind it did not run.
    """
    return await visit(connection, lambda within: [run(within, call) for call in calls])


async def visit(connection: aiosqlite.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """Do some work with a connection in its own thread, in one visit, and return its result."""
    # aiosqlite has no public way to its thread that takes more than one statement.
    return await connection._execute(work, connection._conn)


async def transact(connection: aiosqlite.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """Do some work in a write transaction of its own, in one visit.

    Raises:
        sqlite3.Error: it failed, or another process holds the lock; nothing is written.
    """
    return await visit(connection, partial(_transacted, work=work))


def transact_then_sync(
    connection: aiosqlite.Connection, work: Callable[[sqlite3.Connection], T], sync: Sync | None
) -> tuple[asyncio.Future[T], asyncio.Task[None]]:
    """Do some work in a write transaction of its own, in one visit that ends with a sync.

    Returns:
        the work's result, once it is committed and all can read it, or the ``sqlite3.Error`` with
        which it failed, or with which another process held the lock: then nothing is written; and
        the end of the visit, which may have a ``StoreError`` of ``sync``.
    """
    loop = asyncio.get_running_loop()
    visible: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if visible.done():
            return
        if error is not None:
            visible.set_exception(error)
        else:
            visible.set_result(result)  # pyright: ignore[reportArgumentType]

    def whole(within: sqlite3.Connection) -> None:
        try:
            result = _unsynced(within, work) if sync else _transacted(within, work)
        except Exception as error:
            loop.call_soon_threadsafe(settle, None, error)
            return
        loop.call_soon_threadsafe(settle, result, None)
        if sync is not None:
            sync()

    def settle_too(visiting: asyncio.Task[None]) -> None:
        # A connection that is closed already runs nothing.
        if visiting.cancelled():
            visible.cancel()
        elif isinstance(error := visiting.exception(), Exception):
            settle(None, error)

    visiting = asyncio.create_task(visit(connection, whole))
    visiting.add_done_callback(settle_too)
    return visible, visiting


def _unsynced(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute("PRAGMA synchronous = NORMAL")
    try:
        return _transacted(connection, work)
    finally:
        connection.execute("PRAGMA synchronous = FULL")


def _transacted(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise
    return result


def run(connection: sqlite3.Connection, call: Call) -> list[sqlite3.Row]:
    """Run a named query, for many rows if it is one of those, and return what it yields."""
    query, parameters = call
    if query.operation is SQLOperationType.INSERT_UPDATE_DELETE_MANY:
        return connection.executemany(query.sql, parameters).fetchall()
    return connection.execute(query.sql, parameters).fetchall()


async def empty_log(connection: aiosqlite.Connection) -> bool:
    """Move all of the write-ahead log into the database and cut it to nothing; false if somebody
    still reads from it, who is not waited for long.

    Raises:
        sqlite3.Error: it failed; the log stays as it is.
    """

    def work(within: sqlite3.Connection) -> bool:
        within.execute(f"PRAGMA busy_timeout = {EMPTY_TIMEOUT_MS}")
        try:
            (is_busy, *_) = within.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            within.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        return not is_busy

    return await visit(connection, work)


async def vacuum_into(path: Path, target: Path) -> None:
    """Write a consistent copy of the database at ``path`` to ``target``, which must not exist.

    It has a connection of its own: those of the readers refuse all writing, and copying a large
    database would hold one of them up.

    Raises:
        OSError: ``target`` exists or cannot be made.
        sqlite3.Error: it cannot be written.
    """
    _create_new_file(target)
    connection = await connect(path, "FULL")
    try:
        await connection.execute_fetchall("VACUUM INTO ?", (str(target),))
    except BaseException:
        os.unlink(target)
        raise
    finally:
        await connection.close()


def _create_new_file(path: Path) -> None:
    # Empty and closed to others before anything is in it; never one that was there.
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))


def is_full(error: sqlite3.Error) -> bool:
    """Whether ``error`` says that the disk took no more.

    SQLite calls so only what the system calls so; a quota, a limit of the process or a full
    file system behind the shared memory is an error of input and output to it.
    """
    code = getattr(error, "sqlite_errorcode", 0)
    return code == sqlite3.SQLITE_FULL or code in _UNWRITABLE


_UNWRITABLE = frozenset(
    {
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_TRUNCATE,
        sqlite3.SQLITE_IOERR_SHMSIZE,
        sqlite3.SQLITE_IOERR_SHMMAP,
    }
)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether ``error`` says that another process holds the lock."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

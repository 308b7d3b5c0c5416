"""A look at a database that another process may be using: it is neither made nor migrated, nothing
in it is changed, and no lock is held that a writer would wait for.

This is SQLite's own. See ``docs/architecture.md``, "Storage".
"""

import asyncio
import os
import sqlite3
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiosqlite

from bot.errors import StoreError
from bot.model import Chat
from bot.store.database import Database
from bot.store.migrate import read_steps
from bot.store.queries import load
from bot.store.sqlite import BUSY_TIMEOUT_MS

if sys.platform == "linux":
    import fcntl

QUICK_CHECK_SECONDS = 20.0

HOLDERS_ARE_KNOWN = sys.platform == "linux"
"""Whether ``find_holder`` can tell."""

_FLOCK = "@hhqqi4x"
"""Linux's ``struct flock``: type, whence, start, length, process."""
_PRESENCE_BYTE = 128
"""Every connection in WAL mode keeps a shared lock on this byte of the ``-shm`` file as long as it
is open (SQLite calls it the dead man's switch)."""

_sql = load("inspection")
_steps_sql = load("migrations")


@dataclass(frozen=True, slots=True)
class Holder:
    """Another process that has the database open."""

    process_id: int
    """0 if it lives in another container."""


@dataclass(frozen=True, slots=True)
class Schema:
    """How far a database's schema is."""

    version: int
    """0 if no step was ever applied."""
    known_version: int
    """What this program knows."""
    is_foreign: bool
    """Whether it has tables, but none that says which steps were applied."""


@dataclass(frozen=True, slots=True)
class Contents:
    """How much a database holds."""

    accounts: int
    chats: int
    members: int
    messages: int
    newest_at: int | None
    """When the newest message was received, UTC milliseconds."""


def find_holder(path: Path) -> Holder | None:
    """Return who has the database open, or ``None``, also where the system does not tell.

    It asks the kernel and takes no lock. Call it before this process opens the database itself:
    a process that closes a file loses all of its locks on it.
    """
    if sys.platform != "linux":
        return None
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, _PRESENCE_BYTE, 1, 0)
    try:
        descriptor = os.open(f"{path}-shm", os.O_RDWR)
    except OSError:
        return None
    try:
        told = fcntl.fcntl(descriptor, fcntl.F_GETLK, asked)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    kind, _, _, _, process_id = struct.unpack(_FLOCK, told)
    return None if kind == fcntl.F_UNLCK else Holder(process_id)


@asynccontextmanager
async def look_into(path: Path) -> AsyncIterator[Database]:
    """Open an existing database for reading alone.

    Raises:
        StoreError: it cannot be opened or read, or is not a database.
    """
    try:
        connection = await _open(path)
        try:
            yield Database(path, connection, (connection,))
        finally:
            await connection.close()
    except sqlite3.Error as error:
        raise StoreError(f"the database {path} cannot be read: {error}") from error


async def _open(path: Path) -> aiosqlite.Connection:
    connection = await aiosqlite.connect(_existing(path), uri=True, isolation_level=None)
    connection.row_factory = sqlite3.Row
    try:
        await connection.execute_fetchall(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        await connection.execute_fetchall("PRAGMA query_only = ON")
    except BaseException:
        await connection.close()
        raise
    return connection


def _existing(path: Path) -> str:
    """Return the URI by which SQLite opens a file and makes none. Not ``mode=ro``: who reads a WAL
    database alone could not tidy up behind itself, and would leave two files."""
    return f"{path.absolute().as_uri()}?mode=rw"


async def schema_of(db: Database) -> Schema:
    """Return how far the schema of ``db`` is."""
    async with db.reader() as connection:
        tables = {row["name"] async for row in _sql.tables(connection)}
        has_record = "schema_steps" in tables
        version = await _steps_sql.applied_version(connection) if has_record else 0
    return Schema(version or 0, len(read_steps()), is_foreign=bool(tables) and not has_record)


async def fault_in(db: Database, seconds: float = QUICK_CHECK_SECONDS) -> str | None:
    """Return the first fault in the file, ``""`` if there is none, ``None`` if time ran out."""
    async with db.reader() as connection:
        try:
            async with asyncio.timeout(seconds):
                found = await _sql.quick_check(connection)
        except TimeoutError:
            await connection.interrupt()
            return None
    return "" if found == "ok" else str(found)


async def contents_of(db: Database) -> Contents:
    """Return how much ``db`` holds."""
    async with db.reader() as connection:
        return Contents(**dict(await _sql.row_counts(connection)))


async def chats_with_settings(db: Database) -> list[Chat]:
    """Return the chats that have settings of their own."""
    async with db.reader() as connection:
        rows = [row async for row in _sql.chats_with_settings(connection)]
    return [Chat(row["bot_id"], row["kind"], row["peer_id"]) for row in rows]

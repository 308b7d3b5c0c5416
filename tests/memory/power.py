"""Power that fails: a database and a model that strike at the n-th await.

``cut`` is the end of the process: nothing works any more. ``error`` is one failing statement,
``cancel`` one cancelled await, such as at the program's end; afterwards all works again.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

import aiosqlite

from bot.llm.protocol import ChatModel, ModelAnswer, ModelRequest
from bot.store.database import Database

Kind = Literal["cut", "error", "cancel"]

STATEMENTS = frozenset({"execute", "executemany", "execute_fetchall", "_execute"})


class PowerCut(BaseException):
    """The process is no more; nothing catches it."""


class Fuse:
    """Counts awaits and strikes at one of them.

    Args:
        kind: what happens then.
        at: at which await; never if it is not reached.
    """

    def __init__(self, kind: Kind = "cut", at: int = 1 << 30) -> None:
        self.kind = kind
        self._left = at
        self.is_out = False
        """The power is cut."""
        self.has_struck = False

    def pass_through(self) -> None:
        """Count one await.

        Raises:
            PowerCut, sqlite3.OperationalError, asyncio.CancelledError: if this is the one.
        """
        if self.is_out:
            raise PowerCut
        self._left -= 1
        if self._left:
            return
        self.has_struck = True
        match self.kind:
            case "cut":
                self.is_out = True
                raise PowerCut
            case "error":
                raise sqlite3.OperationalError("disk I/O error")
            case "cancel":
                raise asyncio.CancelledError


class FusedConnection:
    """A connection whose statements pass through a fuse."""

    def __init__(self, connection: aiosqlite.Connection, fuse: Fuse) -> None:
        self._connection_behind = connection
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._connection_behind, name)
        return self._fused(real) if name in STATEMENTS else real

    def _fused(self, statement: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self._fuse.pass_through()
            return statement(*arguments)

        return call


class FusedDatabase(Database):
    """A database whose every await passes through a fuse, commits before and after."""

    def __init__(self, behind: Database, fuse: Fuse) -> None:
        self.path = behind.path
        self._behind = behind
        self._fuse = fuse

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        self._fuse.pass_through()
        async with self._behind.transaction() as tx:
            yield FusedConnection(tx, self._fuse)
            self._fuse.pass_through()
        self._fuse.pass_through()

    async def empty_log(self) -> bool:
        self._fuse.pass_through()
        return await self._behind.empty_log()

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[Any]:
        self._fuse.pass_through()
        async with self._behind.reader() as connection:
            yield FusedConnection(connection, self._fuse)


class FusedModel:
    """A model whose calls pass through a fuse, before they are asked and before they are heard."""

    def __init__(self, behind: ChatModel, fuse: Fuse) -> None:
        self._behind = behind
        self._fuse = fuse

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self._fuse.pass_through()
        answer = await self._behind.complete(request)
        self._fuse.pass_through()
        return answer

"""The servers that are connected now, each kept by a task of its own.

See ``docs/tools.md``, "MCP". A server that is broken costs its own tools and nothing else:
neither the start of the program nor a turn waits for one.
"""

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import anyio
from loguru import logger

from bot.clock import Clock
from bot.conversation.tools import ToolSpec
from bot.errors import ToolError
from bot.mcp.config import ServerConfig
from bot.mcp.listing import Offer, listing
from bot.text import clipped, single_line

CONNECT_SECONDS = 20.0
"""How long a server may take to say what it is, and to list its tools."""

LONGEST_WAIT_SECONDS = 300.0
STEADY_MS = 60_000
"""A connection that lasted so long was a good one."""

RELIST_SECONDS = 1.0
"""A server that keeps changing its tools is listed again at most this often."""

CAUSE_CHARS = 200


class Connection(Protocol):
    """An open connection to one server; ``bot/mcp/connection.py`` has the real one."""

    @property
    def is_lost(self) -> bool:
        """Whether it ended on the other side."""
        ...

    async def offers(self) -> Sequence[Offer]:
        """Return what the server offers now."""
        ...

    async def until_news(self) -> None:
        """Wait until the offers may have changed, or the connection is lost or doubtful."""
        ...

    async def call(self, tool: str, arguments: Mapping[str, Any], seconds: float) -> str:
        """Return what a tool says, as a line of JSON.

        Raises:
            ToolError: it fails, or the connection does.
        """
        ...


Connect = Callable[[ServerConfig, float], AbstractAsyncContextManager[Connection]]


@dataclass(frozen=True, slots=True)
class ServerTool:
    """One tool of one server; a ``Tool``, see ``bot/conversation/tools.py``."""

    spec: ToolSpec
    timeout_seconds: float
    operators_only: bool
    use: Callable[[Mapping[str, Any]], Awaitable[str]]

    async def run(self, surroundings: object, arguments: Mapping[str, Any]) -> str:
        """Return what the server says; it learns nothing of the turn but the arguments."""
        return await self.use(arguments)


class Servers:
    """Which servers there are, and the tools of those that are connected.

    Args:
        configured: what the file of ``MCP_CONFIG`` names.
        clock: times the waits between tries.
        connect_seconds: how long a server may take to answer what is not a call.
    """

    def __init__(
        self,
        configured: Sequence[ServerConfig],
        clock: Clock,
        *,
        connect_seconds: float = CONNECT_SECONDS,
    ) -> None:
        self._configured = configured
        self._clock = clock
        self._connect_seconds = connect_seconds
        self._tools: dict[str, tuple[ServerTool, ...]] = {}
        self._changed = asyncio.Event()
        self._tasks: dict[asyncio.Task[None], anyio.CancelScope] = {}

    def tools(self) -> tuple[ServerTool, ...]:
        """Return the tools that can be used now, in the order of the configuration."""
        tools: dict[str, ServerTool] = {}
        for server in self._configured:
            for tool in self._tools.get(server.name, ()):
                tools.setdefault(tool.spec.name, tool)
        return tuple(tools.values())

    def start(self) -> None:
        """Begin to connect, beside everything else."""
        for server in self._configured:
            scope = anyio.CancelScope()
            self._tasks[asyncio.create_task(self._keep(server, scope))] = scope

    async def stop(self) -> None:
        """End every connection, and the programs that were started for them."""
        # Not the tasks themselves: that would interrupt a program's orderly end as well.
        for scope in self._tasks.values():
            scope.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def until(self, count: int) -> None:
        """Wait until so many tools can be used."""
        while len(self.tools()) != count:
            self._changed.clear()
            await self._changed.wait()

    async def _keep(self, server: ServerConfig, scope: anyio.CancelScope) -> None:
        """Keep one server connected. All its connections are opened and closed in this task."""
        with scope:
            await self._try_for_ever(server)

    async def _try_for_ever(self, server: ServerConfig) -> None:
        connect = await _connect_function()
        failures = 0
        while True:
            began = self._clock.now()
            cause = await self._stay(connect, server)
            failures = 1 if self._clock.now() - began >= STEADY_MS else failures + 1
            wait_seconds = min(2.0**failures, LONGEST_WAIT_SECONDS)
            logger.warning(
                "MCP server {}: {}; next try in {:.0f} s", server.name, cause, wait_seconds
            )
            await self._clock.sleep(wait_seconds)

    async def _stay(self, connect: Connect, server: ServerConfig) -> str:
        """Connect and stay connected; return why that ended."""
        try:
            async with connect(server, self._connect_seconds) as connection:
                while not connection.is_lost:
                    self._learn(server, connection, await connection.offers())
                    await connection.until_news()
                    await self._clock.sleep(0 if connection.is_lost else RELIST_SECONDS)
                return "the connection ended"
        # An end of errors: whatever a server and its library do, the program goes on.
        except Exception as error:
            return cause_of(error)
        finally:
            self._tools.pop(server.name, None)
            self._changed.set()

    def _learn(self, server: ServerConfig, connection: Connection, offers: Sequence[Offer]) -> None:
        taken = listing(server.name, offers)
        self._tools[server.name] = tuple(
            ServerTool(
                spec=spec,
                # A little longer than the call itself, which says better what went wrong.
                timeout_seconds=server.timeout_seconds + 1,
                operators_only=not server.members,
                use=_use(connection, name, server.timeout_seconds),
            )
            for name, spec in taken.specs.items()
        )
        self._changed.set()
        logger.info("MCP server {}: {} tools", server.name, len(taken.specs))
        if taken.left_out:
            logger.warning(
                "MCP server {}: {} more tools are left out: too many, or not described in a way "
                "that a model could use",
                server.name,
                taken.left_out,
            )


def _use(
    connection: Connection, tool: str, seconds: float
) -> Callable[[Mapping[str, Any]], Awaitable[str]]:
    async def use(arguments: Mapping[str, Any]) -> str:
        if connection.is_lost:
            raise ToolError("这个工具的服务器已断开")
        return await connection.call(tool, arguments, seconds)

    return use


async def _connect_function() -> Connect:
    """Load what speaks the protocol; it takes most of a second, so only where there are servers."""
    module = await asyncio.to_thread(importlib.import_module, "bot.mcp.connection")
    return module.connected


def cause_of(error: BaseException) -> str:
    """Return the first cause within groups of errors, as one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    words = clipped(single_line(str(error)), CAUSE_CHARS)
    return f"{type(error).__name__}: {words}" if words else type(error).__name__

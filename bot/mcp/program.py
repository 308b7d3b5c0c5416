"""A server that is a program started here: JSON in lines on its standard input and output.

See ``docs/tools.md``, "MCP". The package has a transport of its own. That one hands its program
more of our environment, keeps lines of any length, and may wait for ever for the end of a
program that floods it.
"""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from bot.mcp.config import Program

MAX_LINE_BYTES = 10 * 1024 * 1024
"""A program that says more at once is cut off."""

GRACE_SECONDS = 1.0
"""For a program to end by itself when nobody speaks to it any more, and again when told to."""

POLL_SECONDS = 0.01
INHERITED = ("PATH", "HOME")

Reading = MemoryObjectReceiveStream[SessionMessage | Exception]
Writing = MemoryObjectSendStream[SessionMessage]


@dataclass(frozen=True, slots=True)
class _Running:
    """A process and the transport that ends it."""

    process: Process
    transport: asyncio.SubprocessTransport

    @property
    def has_ended(self) -> bool:
        return self.transport.get_returncode() is not None


@asynccontextmanager
async def running(
    program: Program, *, at_end: Callable[[], None], on_error: Callable[[bytes], None]
) -> AsyncIterator[tuple[Reading, Writing]]:
    """Start a program and yield its messages and where to write to it; end it and its children.

    Args:
        program: what to start.
        at_end: called when it says nothing any more, whoever ended it.
        on_error: called with what it writes to its standard error.

    Raises:
        OSError: it cannot be started.
    """
    started = await _start(program)
    into, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, out_of = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, started.process, into, at_end)
            tasks.start_soon(_write, started.process, out_of)
            tasks.start_soon(_overhear, started.process, on_error)
            try:
                yield reading, writing
            finally:
                tasks.cancel_scope.cancel()
    finally:
        for stream in (into, reading, writing, out_of):
            stream.close()
        with anyio.CancelScope(shield=True):
            await _end(started)


async def _start(program: Program) -> _Running:
    # What is started must become known, so that it can be ended.
    with anyio.CancelScope(shield=True):
        return await _spawn(program)
    raise AssertionError("a shield swallows nothing")


async def _spawn(program: Program) -> _Running:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.subprocess_exec(
        lambda: SubprocessStreamProtocol(limit=MAX_LINE_BYTES, loop=loop),
        program.command,
        *program.args,
        env=environment(program, os.environ),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        # A group of its own: it ends with its children, and not by a Ctrl-C that is meant for us.
        start_new_session=True,
    )
    return _Running(Process(transport, protocol, loop), transport)


def environment(program: Program, ours: Mapping[str, str]) -> dict[str, str]:
    """Return what a program may know: our keys are for those that are given them."""
    inherited = {name: ours[name] for name in INHERITED if name in ours}
    return inherited | dict(program.env)


async def _read(
    process: Process,
    into: MemoryObjectSendStream[SessionMessage | Exception],
    at_end: Callable[[], None],
) -> None:
    """Hand on what is a message; some programs also print what is none."""
    assert process.stdout is not None
    try:
        with into:
            while line := await _line(process.stdout):
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    continue
                await into.send(SessionMessage(message))
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass  # Nobody listens any more.
    finally:
        at_end()


async def _line(stream: asyncio.StreamReader) -> bytes:
    """Return the next line, and nothing at the end or if it is too long."""
    try:
        return await stream.readline()
    except ValueError:
        return b""


async def _write(process: Process, out_of: MemoryObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin is not None
    # Where it has ended, what reads from it says so.
    with suppress(OSError):
        async for message in out_of:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(f"{line}\n".encode("utf-8", "replace"))
            await process.stdin.drain()


async def _overhear(process: Process, on_error: Callable[[bytes], None]) -> None:
    assert process.stderr is not None
    while words := await process.stderr.read(4_096):
        on_error(words)


async def _end(started: _Running) -> None:
    """Close the program's input, then tell it to end, then end it."""
    assert started.process.stdin is not None
    started.process.stdin.close()
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if await _has_ended(started):
            break
        with suppress(OSError):
            os.killpg(started.process.pid, sign)
    await _has_ended(started)
    started.transport.close()


async def _has_ended(started: _Running) -> bool:
    """Wait a little for the end; waiting for the process itself would wait for its pipes, too."""
    with anyio.move_on_after(GRACE_SECONDS):
        while not started.has_ended:  # noqa: ASYNC110
            await anyio.sleep(POLL_SECONDS)
    return started.has_ended

"""One connection to one server, through the official package.

See ``docs/tools.md``, "MCP". Imported only where servers are configured: the package takes most
of a second to load.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx2
from loguru import logger
from mcp import Client, MCPError, types
from mcp.client.streamable_http import streamable_http_client

from bot import __version__
from bot.errors import ToolError
from bot.mcp.config import Program, ServerConfig, WebAddress
from bot.mcp.listing import MAX_TOOLS, Offer
from bot.mcp.program import running
from bot.text import clipped, json_line, many_lines, single_line

RESULT_CHARS = 3_600
MAX_ANSWER_BYTES = 10 * 1024 * 1024
LAST_WORDS_BYTES = 2_000
LAST_WORDS_CHARS = 300
MAX_PAGES = 20

_OUR_FAULT = frozenset({types.INVALID_PARAMS, types.METHOD_NOT_FOUND})
"""Errors that say nothing against the connection."""

_FAILURES = (MCPError, RuntimeError, ValueError, OSError, httpx2.HTTPError)
"""What a call may raise: besides errors of the protocol, results that break a tool's own schema."""

Streams = tuple[Any, Any]
"""What the package's transports give: a stream to read and one to write."""


@asynccontextmanager
async def connected(server: ServerConfig, seconds: float) -> AsyncIterator["SdkConnection"]:
    """Open a connection and close it, in one and the same task, as the package demands.

    Args:
        server: which.
        seconds: how long it may take to open, and to list the tools.

    Raises:
        Exception: whatever the package raises.
    """
    link = SdkConnection(seconds)
    async with AsyncExitStack() as stack:
        client = Client(
            _streams(server, link, seconds),
            client_info=types.Implementation(name="qunyi", version=__version__),
            message_handler=link.hear,
            read_timeout_seconds=seconds,
            cache=None,
        )
        async with asyncio.timeout(seconds):
            link.client = await stack.enter_async_context(client)
        link.is_open = True
        listener = asyncio.create_task(link.listen())
        stack.callback(listener.cancel)
        yield link


@asynccontextmanager
async def _streams(
    server: ServerConfig, link: "SdkConnection", seconds: float
) -> AsyncIterator[Streams]:
    match server.reached:
        case Program() as program:
            async with _program(server.name, program, link) as streams:
                yield streams
        case WebAddress(url, headers):
            client = httpx2.AsyncClient(
                headers={"Accept-Encoding": "identity", **headers},
                event_hooks={"response": [_bound]},
                # Calls have limits of their own; a stream of changes may be silent for days.
                timeout=httpx2.Timeout(seconds, read=None),
                # A proxy from the environment is for the world, not for a server beside us.
                trust_env=not _is_nearby(url),
            )
            async with client, streamable_http_client(url, http_client=client) as streams:
                yield streams


@asynccontextmanager
async def _program(name: str, program: Program, link: "SdkConnection") -> AsyncIterator[Streams]:
    """Run a program; if it never opened, log what it complained of.

    Later its complaints may hold what people said, and stay out of the log.
    """
    words = _LastWords()
    try:
        async with running(program, at_end=link.lose, on_error=words.add) as streams:
            yield streams
    finally:
        if str(words) and not link.is_open:
            logger.warning("MCP server {} wrote: {}", name, words)


async def _bound(response: httpx2.Response) -> None:
    """Let an answer fail that is too long; of streams the package bounds each event itself."""
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Counted(response.stream)


class _Counted(httpx2.AsyncByteStream):
    """A body of at most ``MAX_ANSWER_BYTES``."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_ANSWER_BYTES
        async for piece in self._body:
            left -= len(piece)
            if left < 0:
                raise httpx2.ReadError("the answer is too long")
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


def _is_nearby(url: str) -> bool:
    """Whether an address is of this machine or network."""
    host = urlsplit(url).hostname or ""
    try:
        return not ip_address(host).is_global
    except ValueError:
        return host == "localhost"


class SdkConnection:
    """What ``bot.mcp.servers.Connection`` asks for.

    Args:
        seconds: how long the server may take to list its tools.
    """

    def __init__(self, seconds: float) -> None:
        self.client: Client | None = None
        self.is_open = False
        """It said what it is."""
        self.is_lost = False
        self._seconds = seconds
        self._news = asyncio.Event()

    @property
    def _opened(self) -> Client:
        if self.client is None:
            raise RuntimeError("the connection is not open")
        return self.client

    def lose(self) -> None:
        """Note that it ended."""
        self.is_lost = True
        self._news.set()

    async def hear(self, message: object) -> None:
        """Take in what the server says unasked."""
        if isinstance(message, types.ToolListChangedNotification):
            self._news.set()

    async def listen(self) -> None:
        """Hear of changes from servers that tell only those who ask."""
        try:
            async with self._opened.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._news.set()
        except (*_FAILURES, TimeoutError) as error:
            logger.debug("an MCP server does not tell of changes: {}", type(error).__name__)

    async def until_news(self) -> None:
        """Wait until the offers may have changed, or the connection is lost or doubtful."""
        await self._news.wait()
        self._news.clear()

    async def offers(self) -> Sequence[Offer]:
        """Return what the server offers now."""
        offers: list[Offer] = []
        cursor: str | None = None
        async with asyncio.timeout(self._seconds):
            for _ in range(MAX_PAGES):
                page = await self._opened.list_tools(cursor=cursor)
                offers += (Offer(t.name, t.description or "", t.input_schema) for t in page.tools)
                cursor = page.next_cursor
                if not cursor or len(offers) > MAX_TOOLS:
                    break
        return offers

    async def call(self, tool: str, arguments: Mapping[str, Any], seconds: float) -> str:
        """Return what a tool says, as a line of JSON.

        A call is never repeated, since it may have done something.
        """
        try:
            async with asyncio.timeout(seconds):
                # The limit of other requests is the package's default, and may be shorter.
                result = await self._opened.call_tool(tool, dict(arguments), seconds + 1)
        except TimeoutError:
            self._news.set()
            raise ToolError(f"工具在 {seconds:g} 秒内没有回答") from None
        except _FAILURES as error:
            if not (isinstance(error, MCPError) and error.code in _OUR_FAULT):
                self._news.set()
            cause = clipped(single_line(str(error)), LAST_WORDS_CHARS)
            raise ToolError(f"工具出错：{cause or type(error).__name__}") from error
        text = result_text(result)
        if result.is_error:
            raise ToolError(single_line(text) or "工具出错，没有说明原因")
        return json_line({"result": text})


def result_text(result: types.CallToolResult) -> str:
    """Return a result as text within bounds; what is no text is named only."""
    words = "\n".join(filter(None, map(_block_text, result.content)))
    if not words and result.structured_content is not None:
        words = json.dumps(result.structured_content, ensure_ascii=False)
    return clipped(many_lines(words), RESULT_CHARS)


def _block_text(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent(text=text):
            return text
        case types.ImageContent():
            return "[图片]"
        case types.AudioContent():
            return "[音频]"
        case types.ResourceLink(name=name):
            return f"[链接:{clipped(single_line(name), 60)}]"
        case types.EmbeddedResource(resource=types.TextResourceContents(text=text)):
            return text
        case _:
            return "[文件]"


class _LastWords:
    """Keeps the end of what a program writes to its standard error."""

    def __init__(self) -> None:
        self._data = b""

    def add(self, words: bytes) -> None:
        """Take in some more."""
        self._data = (self._data + words)[-LAST_WORDS_BYTES:]

    def __str__(self) -> str:
        return single_line(self._data.decode("utf-8", "replace"))[-LAST_WORDS_CHARS:]

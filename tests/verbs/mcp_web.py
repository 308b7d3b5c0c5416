"""An MCP server on the web, written from the protocol alone: JSON posted, JSON answered."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.verbs.mcp_program import OBJECT

LENGTHS = {"echo": 1, "shout": 11_000_000}
TOOLS = tuple(LENGTHS)


class WebServer:
    """What it hears, and how it behaves."""

    def __init__(self) -> None:
        self.port = 0
        self.heads: list[dict[str, str]] = []
        self.is_broken = False
        """Answer 503 to everything."""
        self.nonsense: bytes | None = None
        """Answer this to everything."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def answer(self, method: str, request: dict[str, Any]) -> tuple[str, bytes]:
        if self.is_broken:
            return "503 Service Unavailable", b""
        if self.nonsense is not None:
            return "200 OK", self.nonsense
        if method != "POST":
            return "405 Method Not Allowed", b""
        if "id" not in request:
            return "202 Accepted", b""
        return "200 OK", json.dumps(_answered(request)).encode()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.strip().split("\r\n")
                fields = dict(line.lower().split(": ", 1) for line in lines)
                originals = dict(line.split(": ", 1) for line in lines)
                self.heads.append({name.lower(): value for name, value in originals.items()})
                body = await reader.readexactly(int(fields.get("content-length", 0)))
                status, answer = self.answer(first.split()[0], json.loads(body or b"{}"))
                writer.write(
                    f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n"
                    f"content-length: {len(answer)}\r\n\r\n".encode()
                    + answer
                )
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def _answered(request: dict[str, Any]) -> dict[str, Any]:
    envelope = {"jsonrpc": "2.0", "id": request["id"]}
    params = request.get("params") or {}
    match request["method"]:
        case "initialize":
            told = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "web", "version": "1"},
            }
        case "tools/list":
            told = {"tools": [{"name": name, "inputSchema": OBJECT} for name in TOOLS]}
        case "tools/call":
            words = params["arguments"]["text"]
            told = {"content": [{"type": "text", "text": words * LENGTHS[params["name"]]}]}
        case _:
            return envelope | {"error": {"code": -32601, "message": "no such method"}}
    return envelope | {"result": told}


@asynccontextmanager
async def web_server() -> AsyncIterator[WebServer]:
    """Serve on a free port until the end."""
    web = WebServer()
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(web.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

"""The same made with the official package, on standard streams or on a port."""

import asyncio
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("official")


@server.tool()
def add(a: int, b: int) -> str:
    """把两个数相加"""
    return str(a + b)


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        asyncio.run(server.run_streamable_http_async(host="127.0.0.1", port=int(sys.argv[1])))

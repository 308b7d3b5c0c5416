"""An MCP server on standard input and output, written from the protocol alone.

It is run as a program of its own, with how it behaves as its argument.
"""

import json
import os
import sys
import time
from typing import Any

OBJECT = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = ["echo", "fail", "environment", "slow", "die", "big", "blocks", "grow", "refuse"]


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(*words: str, is_error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": word} for word in words], "isError": is_error}


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    match name:
        case "echo":
            return text(str(arguments.get("text")))
        case "fail":
            return text("库里没有这一项\u202e", is_error=True)
        case "environment":
            return text(json.dumps(sorted(os.environ)))
        case "slow":
            time.sleep(30)
        case "die":
            os._exit(1)
        case "big":
            return text("大" * int(arguments.get("text", 4_000_000)))
        case "blocks":
            blocks = [
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
                {"type": "text", "text": "一\r\n二"},
                {"type": "resource_link", "uri": "file:///a", "name": "a]\n.txt"},
                {"type": "resource", "resource": {"uri": "file:///b", "text": "三"}},
                {"type": "resource", "resource": {"uri": "file:///c", "blob": "AAAA"}},
            ]
            return {"content": blocks}
        case "grow":
            TOOLS.append("new")
            send(method="notifications/tools/list_changed")
            return {"content": [], "structuredContent": {"grown": True}}
    return text("?")


def answer(request: dict[str, Any]) -> dict[str, Any] | None:
    params = request.get("params") or {}
    match request["method"]:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "program", "version": "1"},
            }
        case "tools/list":
            start = int(params.get("cursor") or 0)
            page = [
                {"name": name, "description": f"做 {name}", "inputSchema": OBJECT}
                for name in TOOLS[start : start + 50]
            ]
            more = {"nextCursor": str(start + 50)} if start + 50 < len(TOOLS) else {}
            return {"tools": page, **more}
        case "tools/call" if params["name"] != "refuse":
            return call(params["name"], params.get("arguments") or {})
    return None


def main(behaviour: str) -> None:
    match behaviour:
        case "exit":
            sys.exit("TOKEN is missing\nset it")
        case "hang":
            time.sleep(3600)
        case "garbage":
            while True:
                sys.stdout.write("\x1b[2J not json {]\n" + "x" * 1_000 + "\n")
                sys.stdout.flush()
                time.sleep(0.01)
        case "many":
            TOOLS.extend(f"tool-{number}" for number in range(1_000))
        case "noisy":
            sys.stdout.write("starting up…\n")
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request)
        if result is None:
            send(id=request["id"], error={"code": -32601, "message": "no such method"})
        else:
            send(id=request["id"], result=result)


if __name__ == "__main__":
    main(sys.argv[1])

"""MCP servers that are real programs and real sockets, good and bad."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp.server.mcpserver import Context, MCPServer

from bot.conversation.tools import ToolCall
from bot.errors import ToolError
from bot.llm.scripted import calling
from bot.mcp.config import Program, ServerConfig, WebAddress
from bot.mcp.listing import MAX_TOOLS
from bot.mcp.servers import Servers, ServerTool
from tests.verbs.mcp_program import TOOLS
from tests.verbs.mcp_web import web_server
from tests.verbs.stage import AT_BOT, FISH, GROUP, Stage, open_stage

PROGRAM = Path(__file__).with_name("mcp_program.py")
OFFICIAL = Path(__file__).with_name("mcp_sdk_server.py")
PATIENCE_SECONDS = 15


class Waits:
    """A clock on which all waits are short; it remembers how long they were to be."""

    def __init__(self) -> None:
        self.at = 1_700_000_000_000
        self.slept: list[float] = []
        self._stirred = asyncio.Event()

    def now(self) -> int:
        return self.at

    async def sleep(self, seconds: float) -> None:
        if seconds > 1:
            self.slept.append(seconds)
            self._stirred.set()
        self.at += round(seconds * 1000)
        await asyncio.sleep(0.005)

    async def until_slept(self, times: int) -> None:
        """Wait until somebody has waited so often."""
        while len(self.slept) < times:
            self._stirred.clear()
            await self._stirred.wait()


def program(behaviour: str = "good", name: str = "库", **fields: Any) -> ServerConfig:
    reached = Program(sys.executable, (str(PROGRAM), behaviour), {"LIBRARY_TOKEN": "invented"})
    return ServerConfig(name, reached, **fields)


@asynccontextmanager
async def serving(
    *configured: ServerConfig, connect_seconds: float = 20
) -> AsyncIterator[tuple[Servers, Waits]]:
    clock = Waits()
    servers = Servers(configured, clock, connect_seconds=connect_seconds)
    servers.start()
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            yield servers, clock
    finally:
        await servers.stop()


def tool(servers: Servers, name: str) -> ServerTool:
    (found,) = [one for one in servers.tools() if one.spec.name.endswith(f"_{name}")]
    return found


async def use(servers: Servers, name: str, arguments: Mapping[str, Any] | None = None) -> str:
    told = await tool(servers, name).run(None, arguments or {})
    assert "\n" not in told
    return json.loads(told)["result"]


async def failure(servers: Servers, name: str) -> str:
    with pytest.raises(ToolError) as caught:
        await use(servers, name)
    return str(caught.value)


async def test_the_tools_of_a_program_can_be_used():
    async with serving(program(name="lib")) as (servers, _):
        await servers.until(len(TOOLS))
        echo = tool(servers, "echo")
        assert (echo.spec.name, echo.spec.description) == ("mcp_lib_echo", "做 echo")
        assert echo.spec.parameters["properties"] == {"text": {"type": "string"}}
        assert await echo.run(None, {"text": "你好"}) == '{"result": "你好"}'
        assert await use(servers, "blocks") == "[图片]\n[音频]\n一\n二\n[链接:a] .txt]\n三\n[文件]"


async def test_only_operators_have_tools_unless_the_file_says_otherwise():
    open_to_all = program(name="open", members=True, timeout_seconds=3)
    async with serving(program(name="lib"), open_to_all) as (servers, _):
        await servers.until(2 * len(TOOLS))
        assert {
            (tool.spec.name, tool.operators_only, tool.timeout_seconds)
            for tool in servers.tools()
            if tool.spec.name.endswith("echo")
        } == {("mcp_lib_echo", True, 31), ("mcp_open_echo", False, 4)}


async def test_what_a_program_says_went_wrong_goes_back_to_the_model():
    async with serving(program()) as (servers, _):
        await servers.until(len(TOOLS))
        assert await failure(servers, "fail") == "库里没有这一项"
        assert "no such method" in await failure(servers, "refuse")


async def test_a_program_gets_its_own_variables_and_none_of_ours():
    assert os.environ.keys() - {"PATH", "HOME", "LC_CTYPE"}
    async with serving(program()) as (servers, _):
        await servers.until(len(TOOLS))
        told = set(json.loads(await use(servers, "environment")))
        assert "LIBRARY_TOKEN" in told
        # Python itself sets the last one where no language is set.
        assert told <= {"LIBRARY_TOKEN", "PATH", "HOME", "LC_CTYPE"}


async def test_a_result_is_cut_to_what_a_model_can_read():
    async with serving(program()) as (servers, _):
        await servers.until(len(TOOLS))
        assert len(await use(servers, "big", {"text": "1000000"})) == 3_600


async def test_a_program_that_says_too_much_at_once_is_cut_off_and_started_anew():
    async with serving(program()) as (servers, _):
        await servers.until(len(TOOLS))
        assert await failure(servers, "big")
        await servers.until(0)
        await servers.until(len(TOOLS))


async def test_tools_that_come_later_are_heard_of():
    async with serving(program()) as (servers, _):
        await servers.until(len(TOOLS))
        assert json.loads(await use(servers, "grow")) == {"grown": True}
        await servers.until(len(TOOLS) + 1)
        assert await use(servers, "new") == "?"


async def test_a_call_that_takes_too_long_is_given_up_and_the_server_started_anew():
    async with serving(program(timeout_seconds=0.3), connect_seconds=1.5) as (servers, clock):
        await servers.until(len(TOOLS))
        assert "没有回答" in await failure(servers, "slow")
        await servers.until(0)
        await servers.until(len(TOOLS))
        assert clock.slept == [2]
        assert await use(servers, "echo", {"text": "又好了"}) == "又好了"


async def test_a_program_that_dies_in_mid_call_is_started_anew_and_the_call_is_not_repeated():
    async with serving(program()) as (servers, _):
        await servers.until(len(TOOLS))
        echo = tool(servers, "echo")
        assert await failure(servers, "die")
        with pytest.raises(ToolError):
            await echo.run(None, {"text": "还在吗"})
        await servers.until(0)
        await servers.until(len(TOOLS))
        assert await use(servers, "echo", {"text": "在"}) == "在"


async def test_of_a_thousand_tools_some_are_taken():
    async with serving(program("many", name="lib")) as (servers, _):
        await servers.until(MAX_TOOLS)
        names = [tool.spec.name for tool in servers.tools()]
        assert names[len(TOOLS)] == "mcp_lib_tool_0"
        assert len(set(names)) == MAX_TOOLS


async def test_a_program_that_greets_with_noise_is_understood():
    async with serving(program("noisy")) as (servers, _):
        await servers.until(len(TOOLS))


@pytest.mark.parametrize("behaviour", ["exit", "hang", "garbage"])
async def test_a_broken_program_costs_its_neighbour_nothing_and_is_tried_again_ever_later(
    behaviour: str,
):
    broken = program(behaviour, name="broken")
    async with serving(broken, program(name="good"), connect_seconds=0.3) as (servers, clock):
        await servers.until(len(TOOLS))
        assert await use(servers, "echo", {"text": "我还在"}) == "我还在"
        await clock.until_slept(2)
        assert clock.slept[:2] == [2, 4]
        assert len(servers.tools()) == len(TOOLS)


async def test_a_program_that_is_not_there_has_no_tools():
    missing = ServerConfig("missing", Program("/nowhere/server"))
    async with serving(missing) as (servers, clock):
        await clock.until_slept(1)
        assert servers.tools() == ()


@pytest.mark.parametrize("behaviour", ["good", "hang", "garbage"])
async def test_programs_end_with_the_bot_in_whatever_state_they_are(behaviour: str):
    before = _children()
    async with serving(program(behaviour)) as _:
        while not _children() - before:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    assert _children() == before == set()


def _children() -> set[str]:
    """Return the processes that run our server now, by their ids."""
    found: set[str] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if PROGRAM.name.encode() in command and parent == str(os.getpid()):
            found.add(folder.name)
    return found


async def test_servers_of_the_official_package_are_understood():
    reached = Program(sys.executable, (str(OFFICIAL), "stdio"))
    async with serving(ServerConfig("official", reached)) as (servers, _):
        await servers.until(1)
        assert await use(servers, "add", {"a": 2, "b": 3}) == "5"
        with pytest.raises(ToolError):
            await use(servers, "add", {"a": "x"})


async def test_a_server_of_the_official_package_on_the_web_tells_of_changes():
    official = MCPServer("official")

    @official.tool()
    async def grow(ctx: Context) -> str:
        """长出一个工具"""
        official.add_tool(lambda: "新的", name="new", description="新的工具")
        await ctx.notify_tools_changed()
        return "好"

    async with on_the_web(official) as url:
        async with serving(ServerConfig("official", WebAddress(url))) as (servers, _):
            await servers.until(1)
            assert await use(servers, "grow") == "好"
            await servers.until(2)
            assert await use(servers, "new") == "新的"


@asynccontextmanager
async def on_the_web(official: MCPServer) -> AsyncIterator[str]:
    """Serve on a free port until the end."""
    settings = uvicorn.Config(official.streamable_http_app(), port=0, log_level="critical")
    server = uvicorn.Server(settings)
    serving = asyncio.create_task(server.serve())
    try:
        while not server.started:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = True
        await serving


async def test_a_server_on_the_web_is_asked_with_its_headers():
    async with web_server() as web:
        address = WebAddress(web.url, {"Authorization": "Bearer invented"})
        async with serving(ServerConfig("web", address)) as (servers, _):
            await servers.until(2)
            assert await use(servers, "echo", {"text": "你好"}) == "你好"
    assert {head["authorization"] for head in web.heads} == {"Bearer invented"}


async def test_a_server_on_the_web_that_goes_away_and_comes_back_is_found_again():
    async with web_server() as web:
        async with serving(ServerConfig("web", WebAddress(web.url))) as (servers, clock):
            await servers.until(2)
            web.is_broken = True
            assert await failure(servers, "echo")
            await servers.until(0)
            web.is_broken = False
            await servers.until(2)
            assert clock.slept
            assert await use(servers, "echo", {"text": "回来了"}) == "回来了"


async def test_a_server_on_the_web_that_says_too_much_at_once_is_cut_off():
    async with web_server() as web:
        async with serving(ServerConfig("web", WebAddress(web.url))) as (servers, _):
            await servers.until(2)
            with pytest.raises(ToolError):
                await use(servers, "shout", {"text": "a"})
            await servers.until(0)
            await servers.until(2)
            assert await use(servers, "echo", {"text": "好"}) == "好"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b'{"jsonrpc": "2.0"}', b"\xff\xfe"])
async def test_a_server_on_the_web_that_talks_nonsense_has_no_tools(body: bytes):
    async with web_server() as web:
        web.nonsense = body
        config = ServerConfig("web", WebAddress(web.url))
        async with serving(config, connect_seconds=1) as (servers, clock):
            await clock.until_slept(2)
            assert servers.tools() == ()


async def test_an_address_that_nobody_listens_at_has_no_tools():
    config = ServerConfig("web", WebAddress("http://127.0.0.1:1/mcp"))
    async with serving(config) as (servers, clock):
        await clock.until_slept(1)
        assert servers.tools() == ()


async def test_the_program_starts_and_ends_with_servers_that_hang(tmp_path: Path):
    path = tmp_path / "mcp.json"
    entry = {"command": sys.executable, "args": [str(PROGRAM), "hang"]}
    path.write_text(json.dumps({"mcpServers": {"hang": entry, "also": entry}}))
    async with open_stage(tmp_path, mcp_config=path) as stage:
        assert stage.app.mcp.tools() == ()


@pytest.mark.parametrize("behaviour", ["exit", "hang", "garbage"])
async def test_a_turn_goes_on_beside_a_server_that_is_broken(tmp_path: Path, behaviour: str):
    async with served_stage(tmp_path, broken=behaviour, lib="good") as stage:
        await stage.app.mcp.until(len(TOOLS))
        echo = ToolCall("call_a", "mcp_lib_echo", '{"text": "我还在"}')
        assert await answered(stage, echo) == ['{"result": "我还在"}']


@pytest.mark.parametrize("deed", ["die", "slow", "big", "refuse", "fail"])
async def test_a_turn_goes_on_whatever_a_server_does_when_it_is_called(tmp_path: Path, deed: str):
    async with served_stage(tmp_path, lib="good", other="good") as stage:
        await stage.app.mcp.until(2 * len(TOOLS))
        broken = ToolCall("call_a", f"mcp_lib_{deed}", "{}")
        echo = ToolCall("call_b", "mcp_other_echo", '{"text": "我还在"}')
        told = await answered(stage, broken, echo)
        assert "result" not in told[0]
        assert told[1] == '{"result": "我还在"}'


@asynccontextmanager
async def served_stage(folder: Path, **behaviours: str) -> AsyncIterator[Stage]:
    """The program with a server of each name, which members may use."""
    path = folder / "mcp.json"
    entry = {"command": sys.executable, "members": True, "timeoutSeconds": 1}
    servers = {n: {**entry, "args": [str(PROGRAM), how]} for n, how in behaviours.items()}
    path.write_text(json.dumps({"mcpServers": servers}))
    async with open_stage(folder, mcp_config=path) as stage, asyncio.timeout(PATIENCE_SECONDS):
        yield stage


async def answered(stage: Stage, *calls: ToolCall) -> list[str]:
    """Let a model make some calls at once, and return what it was told of them."""
    stage.model.enqueue(calling(*calls), "好的")
    stage.say(GROUP, FISH, AT_BOT, " 查一下")
    while not stage.sent:
        await stage.advance(1)
        await asyncio.sleep(0.01)
    assert stage.texts() == ["好的"]
    return [each.content for each in stage.model.requests[-1].messages if each.role == "tool"]

"""Turns that use tools, and outgrow a window, against a model server on real sockets."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.app import open_app
from bot.config import Config
from bot.converse import converse
from bot.ingest import ingest
from bot.llm.plain_tools import HEADING
from bot.simulate import VirtualClock, World, WorldPlatform
from bot.simulate.actions import Desk
from bot.simulate.provider import TOO_LONG, TOO_LONG_OTHERWISE, Answer, Called, Failure, ModelServer
from tests.verbs.stage import AT_BOT, BOT, FISH, GROUP, NOON, new_world
from tests.verbs.staged_tool import StagedTool
from tests.verbs.test_windows import NO_LIMITS

CALLING = Answer(calls=(Called("look", '{"query": "西瓜"}'),))

Ask = Callable[[str], Awaitable[str]]


@asynccontextmanager
async def talking(
    root: Path,
    server: ModelServer,
    tool: StagedTool,
    *,
    model: str = "big",
    clock: VirtualClock | None = None,
    world: World | None = None,
) -> AsyncIterator[Ask]:
    """The program with a configured model; asking it returns what went out last."""
    config = Config(
        root=root,
        database_url="sqlite:///qunyi.db",
        sqlite_synchronous="NORMAL",
        openai_base_url=server.base_url,
        openai_api_key=SecretStr("sk-invented"),
        chat_model=model,
    )
    clock, world = clock or VirtualClock(NOON), world or new_world()
    async with open_app(config, clock, tools=(tool,)) as app:
        platform = WorldPlatform(world, clock)
        app.accounts.connect(str(BOT), platform)
        for key, value in NO_LIMITS.items():
            await app.settings.change(key, value, by="test", at=NOON)

        async def ask(text: str) -> str:
            await clock.advance(40)
            spoken = world.say(GROUP, FISH, AT_BOT, f" {text}", at=clock.now())
            taken = await ingest(app, Desk(world).event_of(spoken))
            assert taken is not None
            await converse(app, taken)
            return platform.sent[-1].text

        yield ask


def roles(body: Any) -> list[str]:
    return [message["role"] for message in body["messages"]]


async def test_a_conversation_with_tools_survives_a_restart_and_another_model(tmp_path: Path):
    tool = StagedTool()
    same: dict[str, Any] = {"clock": VirtualClock(NOON), "world": new_world()}
    async with ModelServer() as server:
        server.enqueue(CALLING, "找到了")
        async with talking(tmp_path, server, tool, **same) as ask:
            assert await ask("帮我找") == "找到了"
        async with talking(tmp_path, server, tool, **same) as ask:
            assert await ask("然后呢") == "好的"
        async with talking(tmp_path, server, tool, model="small", **same) as ask:
            assert await ask("还有呢") == "好的"
        _, second, third, fourth = (request.body for request in server.requests)
    assert tool.asked == [{"query": "西瓜"}]
    assert roles(third) == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert third["messages"][2:4] == second["messages"][2:4]
    assert roles(fourth) == ["system", "user", "assistant", "user", "assistant", "user"]
    assert HEADING in fourth["messages"][1]["content"]
    assert fourth["tools"] == third["tools"]


async def test_a_model_without_tools_answers_all_the_same(tmp_path: Path):
    tool = StagedTool()
    async with ModelServer() as server, talking(tmp_path, server, tool) as ask:
        server.takes_tools = False
        assert await ask("在吗") == "好的"
        assert await ask("在吗") == "好的"
        assert ["tools" in request.body for request in server.requests] == [True, False, False]


@pytest.mark.parametrize("too_long", [TOO_LONG, TOO_LONG_OTHERWISE], ids=["told", "not told"])
async def test_nobody_hears_of_a_window_that_is_too_small(tmp_path: Path, too_long: Failure):
    tool = StagedTool("果" * 3_000)
    async with ModelServer("答" * 200) as server, talking(tmp_path, server, tool) as ask:
        server.window_tokens, server.too_long = 4_000, too_long
        for number in range(12):
            if number % 3 == 0:
                server.enqueue(CALLING)
            assert not (await ask(f"第{number}问" + "问" * 300)).startswith("抱歉")
        assert len(server.requests) < 40

"""The simulator against applications that know nothing of it: aiocqhttp and a bare NoneBot."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiocqhttp import ActionFailed, CQHttp, Event
from hypercorn.asyncio import serve
from hypercorn.config import Config

from bot.simulate import (
    Endpoint,
    Fail,
    HandshakeRefused,
    OneBotClient,
    Person,
    Scene,
    World,
    events,
    segments,
)

ROOT = Path(__file__).parents[2]
TOKEN = "let-me-in"
START_SECONDS = 30


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def world() -> World:
    world = World(Person(3001, "小忆"))
    world.add_group(2001, "测试群", Person(1001, "Alice", card="小A", role="admin"))
    world.befriend(Person(1003, "Carol"))
    return world


# aiocqhttp


@asynccontextmanager
async def running(application: CQHttp) -> AsyncIterator[Endpoint]:
    """Serve an aiocqhttp application in this process."""
    config, stop, port = Config(), asyncio.Event(), free_port()
    config.bind = [f"127.0.0.1:{port}"]
    config.errorlog = None
    server = asyncio.create_task(serve(application.server_app, config, shutdown_trigger=stop.wait))
    try:
        yield Endpoint(port, path="/ws/", token=TOKEN)
    finally:
        stop.set()
        await server


@pytest.fixture
def application() -> CQHttp:
    return CQHttp("peer", access_token=TOKEN, api_timeout_sec=5)


@asynccontextmanager
async def connected(application: CQHttp, world: World, **options: Any) -> AsyncIterator[Scene]:
    async with running(application) as endpoint:
        client = OneBotClient(endpoint, world, **options)
        await client.connect(patience_seconds=START_SECONDS)
        try:
            yield Scene(client)
        finally:
            await client.close()


async def test_aiocqhttp_understands_a_group_message_and_its_answer_arrives(
    application: CQHttp, world: World
):
    received: asyncio.Queue[Event] = asyncio.Queue()

    @application.on_message("group")
    async def greet(event: Event) -> None:
        await application.send(event, "早上好", at_sender=True)
        await received.put(event)

    async with connected(application, world) as scene:
        spoken = await scene.say(2001, 1001, segments.at(3001), " 早")
        event = await asyncio.wait_for(received.get(), 10)
        (sent,) = await scene.client.wait_for_sent(chat=world.group_chat(2001))
    assert event.name == "message.group.normal"
    assert event.message == list(spoken.segments)
    assert (event.message_id, event.sender and event.sender["card"]) == (spoken.message_id, "小A")
    assert (sent.text, sent.executed_cq) == (" 早上好", ())


async def test_aiocqhttp_gets_the_world_s_data_and_its_failures(application: CQHttp, world: World):
    results: asyncio.Queue[Any] = asyncio.Queue()

    @application.on_message("private")
    async def ask(event: Event) -> None:
        await results.put(await application.get_group_member_info(group_id=2001, user_id=1001))
        try:
            await application.get_group_member_info(group_id=2001, user_id=5)
        except ActionFailed as failure:
            await results.put(failure.retcode)

    async with connected(application, world) as scene:
        await scene.whisper(1003, "小A 是谁")
        member = await asyncio.wait_for(results.get(), 10)
        retcode = await asyncio.wait_for(results.get(), 10)
    assert (member["card"], member["role"], retcode) == ("小A", "admin", 1200)


async def test_aiocqhttp_may_answer_an_event_by_a_quick_operation(
    application: CQHttp, world: World
):
    @application.on_message
    async def answer(event: Event) -> dict[str, Any]:
        return {"reply": "收到", "at_sender": False}

    async with connected(application, world) as scene:
        await scene.say(2001, 1001, "在吗")
        (sent,) = await scene.client.wait_for_sent()
        call = await scene.client.wait_for_call(".handle_quick_operation_async")
    assert sent.text == "收到"
    assert isinstance(call.echo, dict)


async def test_aiocqhttp_reads_notices_requests_and_own_messages(application: CQHttp, world: World):
    names: asyncio.Queue[str] = asyncio.Queue()

    async def note(event: Event) -> None:
        await names.put(event.name)

    application.on("notice", "request")(note)
    async with connected(application, world) as scene:
        await scene.change_card(2001, 1001, "阿A")
        await scene.mute(2001, 3001, operator_id=1001)
        await scene.ask_for_friendship(Person(1009), "你好")
        await scene.kick(2001, 3001, operator_id=1001)
        seen = [await asyncio.wait_for(names.get(), 10) for _ in range(4)]
    assert seen == [
        "notice.group_card",
        "notice.group_ban.ban",
        "request.friend",
        "notice.group_decrease.kick_me",
    ]


@pytest.mark.parametrize(("token", "status"), [("wrong", 403), ("", 401)])
async def test_aiocqhttp_refuses_a_wrong_token(
    application: CQHttp, world: World, token: str, status: int
):
    async with running(application) as endpoint:
        client = OneBotClient(Endpoint(endpoint.port, path="/ws/", token=token), world)
        with pytest.raises(HandshakeRefused) as refused:
            await client.connect(patience_seconds=START_SECONDS)
    assert refused.value.status == status


async def test_aiocqhttp_hears_everything_twice_over_two_connections(
    application: CQHttp, world: World
):
    heard: asyncio.Queue[Event] = asyncio.Queue()
    application.on_message(heard.put)
    async with connected(application, world) as scene:
        async with OneBotClient(scene.client.endpoint, world) as second:
            spoken = await scene.say(2001, 1001, "在吗")
            await second.deliver(second.desk.event_of(spoken))
            events_heard = [await asyncio.wait_for(heard.get(), 10) for _ in range(2)]
    assert {event.message_id for event in events_heard} == {spoken.message_id}


# NoneBot


@pytest.fixture(scope="module")
async def nonebot() -> AsyncIterator[Endpoint]:
    """Run ``bench/bare_echo.py`` in a process of its own."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(ROOT / "bench" / "bare_echo.py"),
        str(port),
        env={**os.environ, "ONEBOT_ACCESS_TOKEN": TOKEN},
    )
    try:
        yield Endpoint(port, token=TOKEN)
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


@asynccontextmanager
async def with_nonebot(
    endpoint: Endpoint, world: World, **options: Any
) -> AsyncIterator[OneBotClient]:
    client = OneBotClient(endpoint, world, **options)
    # The former test's connection may not have been given up yet.
    async with asyncio.timeout(START_SECONDS):
        while not client.connected:
            try:
                await client.connect(patience_seconds=START_SECONDS)
            except HandshakeRefused:
                await asyncio.sleep(0.02)
    try:
        yield client
    finally:
        await client.close()


@pytest.mark.parametrize("string_format", [False, True])
async def test_nonebot_echoes_what_people_say_in_either_format(
    nonebot: Endpoint, world: World, string_format: bool
):
    async with with_nonebot(nonebot, world, string_format=string_format) as client:
        await Scene(client).say(2001, 1001, segments.at(3001), "看这个[CQ:face,id=1]")
        (sent,) = await client.wait_for_sent(chat=world.group_chat(2001))
    assert (sent.action, sent.text, sent.executed_cq) == ("send_msg", "看这个[CQ:face,id=1]", ())


async def test_nonebot_fetches_the_message_that_is_quoted(nonebot: Endpoint, world: World):
    async with with_nonebot(nonebot, world) as client:
        scene = Scene(client)
        own = world.speak(world.group_chat(2001), "我说过", at=client.clock.now())
        await scene.say(2001, 1001, segments.reply(own.message_id), "你说过？")
        (sent,) = await client.wait_for_sent()
        call = await client.wait_for_call("get_msg")
    assert (call.params["message_id"], sent.text) == (own.message_id, "你说过？")


async def test_nonebot_takes_a_burst_and_answers_each(nonebot: Endpoint, world: World):
    async with with_nonebot(nonebot, world) as client:
        spoken = [world.say(2001, 1001, str(n), at=client.clock.now()) for n in range(200)]
        await client.deliver_many(client.desk.event_of(each) for each in spoken)
        sent = await client.wait_for_sent(200, timeout_seconds=30)
    assert {each.text for each in sent} == {str(number) for number in range(200)}


async def test_nonebot_loses_a_message_with_one_wrong_type_and_takes_the_next(
    nonebot: Endpoint, world: World
):
    async with with_nonebot(nonebot, world) as client:
        lost = world.say(2001, 1001, "丢失", at=client.clock.now())
        await client.deliver(events.with_integer_level(client.desk.event_of(lost)))
        await Scene(client).say(2001, 1001, "收到")
        (sent,) = await client.wait_for_sent()
    assert sent.text == "收到"


async def test_nonebot_survives_a_failed_send(nonebot: Endpoint, world: World):
    async with with_nonebot(nonebot, world) as client:
        client.behave("send_msg", Fail(1200, "发送超时"), times=1)
        scene = Scene(client)
        await scene.say(2001, 1001, "一")
        await client.wait_for_call("send_msg")
        await scene.say(2001, 1001, "二")
        (sent,) = await client.wait_for_sent()
    assert sent.text == "二"


async def test_nonebot_refuses_a_second_connection_of_an_account_even_if_the_first_hangs(
    nonebot: Endpoint, world: World
):
    async with with_nonebot(nonebot, world) as client:
        with pytest.raises(HandshakeRefused) as refused:
            await OneBotClient(nonebot, world).connect()
        assert refused.value.status == 403
        client.go_half_open()
        with pytest.raises(HandshakeRefused):
            await client.connect()


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/onebot/v11/ws", [("X-Self-ID", "3001"), ("Authorization", "Bearer wrong")]),
        ("/onebot/v11/ws", [("Authorization", f"Bearer {TOKEN}")]),
        (f"/onebot/v11/ws?access_token={TOKEN}", [("X-Self-ID", "3001")]),
    ],
    ids=["wrong token", "no id", "token in the query only"],
)
async def test_nonebot_refuses_who_does_not_introduce_itself_properly(
    nonebot: Endpoint, world: World, path: str, headers: list[tuple[str, str]]
):
    client = OneBotClient(Endpoint(nonebot.port, path=path), world, headers=headers)
    with pytest.raises(HandshakeRefused) as refused:
        await client.connect(patience_seconds=START_SECONDS)
    assert refused.value.status == 403

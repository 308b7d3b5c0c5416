import asyncio
import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import pytest
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from bot.simulate import (
    Delay,
    Disconnect,
    Endpoint,
    Fail,
    HandshakeRefused,
    NotConnected,
    OneBotClient,
    Person,
    ReportFirst,
    Scene,
    Silence,
    VirtualClock,
    World,
    events,
    segments,
)

START_MS = 1_795_980_073_000
TOKEN = "let-me-in"


class Application:
    """The other side of the wire: keeps what arrives, and calls the API."""

    def __init__(self) -> None:
        self.frames: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.requests: list[Request] = []
        self.sockets: list[ServerConnection] = []
        self.accepts = True

    async def serve_socket(self, socket: ServerConnection) -> None:
        self.sockets.append(socket)
        async for frame in socket:
            payload = json.loads(frame)
            await (self.answers if "echo" in payload else self.frames).put(payload)

    def admit(self, socket: ServerConnection, request: Request) -> Response | None:
        self.requests.append(request)
        if self.accepts and request.headers.get("Authorization") == f"Bearer {TOKEN}":
            return None
        return socket.respond(HTTPStatus.FORBIDDEN, "forbidden")

    async def event(self) -> dict[str, Any]:
        """The next event, lifecycles apart."""
        while (event := await self.frames.get()).get("meta_event_type") == "lifecycle":
            pass
        return event

    async def call(self, action: str, echo: Any = "1", **params: Any) -> None:
        frame = json.dumps({"action": action, "params": params, "echo": echo})
        await self.sockets[-1].send(frame)

    async def answer(self, action: str, echo: Any = "1", **params: Any) -> dict[str, Any]:
        await self.call(action, echo, **params)
        return await self.answers.get()


@pytest.fixture
async def application() -> Application:
    return Application()


@pytest.fixture
async def server(application: Application) -> AsyncIterator[Server]:
    async with serve(
        application.serve_socket, "127.0.0.1", 0, process_request=application.admit
    ) as server:
        yield server


@pytest.fixture
def endpoint(server: Server) -> Endpoint:
    return Endpoint(next(iter(server.sockets)).getsockname()[1], token=TOKEN)


@pytest.fixture
def world() -> World:
    world = World(Person(3001, "小忆"))
    world.add_group(2001, "测试群", Person(1001, "Alice"))
    world.befriend(Person(1003, "Carol"))
    return world


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START_MS)


@pytest.fixture
async def client(
    endpoint: Endpoint, world: World, clock: VirtualClock
) -> AsyncIterator[OneBotClient]:
    async with OneBotClient(endpoint, world, clock=clock) as client:
        yield client


def text_to_group(content: str) -> dict[str, Any]:
    return {"group_id": 2001, "message": [segments.text(content)]}


async def test_it_introduces_itself_as_an_implementation(
    application: Application, client: OneBotClient
):
    headers = application.requests[0].headers
    assert application.requests[0].path == "/onebot/v11/ws"
    assert headers["X-Self-ID"] == "3001"
    assert headers["X-Client-Role"] == "Universal"
    assert headers["User-Agent"] == "OneBot/11"
    first = await application.frames.get()
    assert first == events.lifecycle(3001, at=START_MS)


async def test_a_refused_handshake_has_a_name(endpoint: Endpoint, world: World):
    stranger = OneBotClient(Endpoint(endpoint.port, token="wrong"), world)
    with pytest.raises(HandshakeRefused) as refused:
        await stranger.connect()
    assert refused.value.status == 403
    assert not stranger.connected


async def test_where_nobody_listens_the_system_s_own_error_is_raised(world: World):
    with pytest.raises(ConnectionRefusedError):
        await OneBotClient(Endpoint(1), world).connect()


async def test_patience_is_for_whoever_listens_late_and_has_an_end(world: World):
    with pytest.raises(TimeoutError):
        await OneBotClient(Endpoint(1), world).connect(patience_seconds=0.1)


async def test_headers_can_be_left_out(application: Application, endpoint: Endpoint, world: World):
    headers = [("Authorization", f"Bearer {TOKEN}")]
    async with OneBotClient(endpoint, world, headers=headers):
        assert "X-Self-ID" not in application.requests[0].headers


async def test_what_people_do_arrives_as_events(application: Application, client: OneBotClient):
    scene = Scene(client)
    spoken = await scene.say(2001, 1001, segments.at(3001), " 你好")
    event = await application.event()
    assert (event["message_id"], event["raw_message"]) == (
        spoken.message_id,
        "[CQ:at,qq=3001] 你好",
    )
    assert event["time"] == START_MS // 1000
    await scene.recall(spoken.message_id)
    assert (await application.event())["message_id"] == spoken.message_id


async def test_half_an_emoji_travels_like_any_text(application: Application, client: OneBotClient):
    await Scene(client).say(2001, 1001, "半个\ud83d")
    assert (await application.event())["raw_message"] == "半个\ud83d"


async def test_every_act_of_a_scene_is_reported_and_changes_the_world(
    application: Application, client: OneBotClient, world: World
):
    scene = Scene(client)
    await scene.whisper(1003, "在吗")
    await scene.whisper_from_group(2001, 1001, "在吗")
    await scene.type_on_phone(world.private_chat(1003), "在")
    await scene.change_card(2001, 1001, "小A")
    await scene.rename_group(2001, 1001, "新名")
    await scene.join(2001, Person(1005))
    await scene.kick(2001, 1005, operator_id=1001)
    await scene.mute(2001, 0, operator_id=1001)
    await scene.lift(2001, 0, operator_id=1001)
    await scene.leave(2001, 1001)
    flags = {await scene.ask_for_friendship(Person(1006)), await scene.invite(2002, Person(1003))}
    await scene.disband(2001, operator_id=1001)
    seen = [await application.event() for _ in range(13)]
    assert [event.get("sub_type") or event.get("notice_type") for event in seen] == [
        *("friend", "group", "friend", "group_card", "group_name", "approve", "kick"),
        *("ban", "lift_ban", "leave", None, "invite", "disband"),
    ]
    assert world.requests.keys() == flags
    assert world.groups == {}


async def test_being_kicked_is_a_kick_of_its_own(application: Application, client: OneBotClient):
    await Scene(client).kick(2001, 3001, operator_id=1001)
    assert (await application.event())["sub_type"] == "kick_me"


@pytest.mark.parametrize("echo", ["7", 7, {"seq": 7}, None, [1, "2"]])
async def test_the_echo_comes_back_whatever_its_type(
    application: Application, client: OneBotClient, echo: Any
):
    answer = await application.answer("get_login_info", echo)
    assert answer == {
        "status": "ok",
        "retcode": 0,
        "data": {"user_id": 3001, "nickname": "小忆"},
        "message": "",
        "wording": "",
        "echo": echo,
    }


async def test_an_unknown_action_fails_with_1404(application: Application, client: OneBotClient):
    answer = await application.answer("do_a_barrel_roll")
    assert (answer["status"], answer["retcode"], answer["data"]) == ("failed", 1404, None)


async def test_calls_and_sent_messages_are_recorded(
    application: Application, client: OneBotClient, world: World
):
    await application.answer("send_group_msg", **text_to_group("你好"))
    call = await client.wait_for_call("send_group_msg")
    assert (call.params["group_id"], call.at) == (2001, START_MS)
    (sent,) = await client.wait_for_sent(chat=world.group_chat(2001))
    assert (sent.text, sent.at, sent.action) == ("你好", START_MS, "send_group_msg")
    client.forget()
    assert (client.calls, client.sent) == ([], [])


async def test_waiting_sees_what_comes_later(application: Application, client: OneBotClient):
    waiting = asyncio.create_task(client.wait_for_sent(2))
    for content in ("一", "二"):
        await application.answer("send_group_msg", **text_to_group(content))
    assert [sent.text for sent in await waiting] == ["一", "二"]
    call = await client.wait_for_call(lambda call: "二" in str(call.params))
    assert call.action == "send_group_msg"


async def test_waiting_in_vain_tells_what_was_seen(application: Application, client: OneBotClient):
    await application.answer("get_status")
    with pytest.raises(TimeoutError, match="get_status"):
        await client.wait_for_sent(timeout_seconds=0.02)
    with pytest.raises(TimeoutError, match="send_msg"):
        await client.wait_for_call("send_msg", timeout_seconds=0.02)


async def test_frames_that_are_no_calls_are_kept_and_passed_over(
    application: Application, client: OneBotClient
):
    for stray in ("not json", "[]", '{"echo":1}', '{"action":3}'):
        await application.sockets[0].send(stray)
    await application.answer("get_status")
    assert len(client.strays) == 4


async def test_own_messages_are_reported_where_that_is_asked_for(
    application: Application, endpoint: Endpoint, world: World
):
    async with OneBotClient(endpoint, world, report_self_message=True):
        answer = await application.answer("send_group_msg", **text_to_group("你好"))
        report = await application.event()
    assert report["post_type"] == "message_sent"
    assert report["message_id"] == answer["data"]["message_id"]


async def test_own_messages_are_not_reported_otherwise(
    application: Application, client: OneBotClient
):
    await application.answer("send_group_msg", **text_to_group("你好"))
    await client.deliver(events.bot_offline(3001, at=START_MS))
    assert (await application.event())["notice_type"] == "bot_offline"


async def test_a_report_may_come_before_its_answer(application: Application, client: OneBotClient):
    client.behave("send_group_msg", ReportFirst())
    await application.call("send_group_msg", **text_to_group("你好"))
    report = await application.event()
    assert report["message_id"] == (await application.answers.get())["data"]["message_id"]


@pytest.mark.parametrize("performed", [False, True])
async def test_a_failure_says_nothing_about_whether_it_was_sent(
    application: Application, client: OneBotClient, performed: bool
):
    client.behave("send_group_msg", Fail(1200, "发送超时", performed=performed))
    answer = await application.answer("send_group_msg", **text_to_group("你好"))
    assert (answer["status"], answer["retcode"]) == ("failed", 1200)
    assert answer["wording"] == "发送超时"
    assert len(client.sent) == performed


async def test_a_rule_ends_after_its_times(application: Application, client: OneBotClient):
    client.behave("get_status", Fail(1400), times=2)
    retcodes = [(await application.answer("get_status"))["retcode"] for _ in range(3)]
    assert retcodes == [1400, 1400, 0]


async def test_a_rule_can_look_at_the_call(application: Application, client: OneBotClient):
    client.behave(lambda call: call.params.get("group_id") == 2001, Fail())
    assert (await application.answer("get_group_info", group_id=2001))["status"] == "failed"
    assert (await application.answer("get_status"))["status"] == "ok"
    client.behave_normally()
    assert (await application.answer("get_group_info", group_id=2001))["status"] == "ok"


async def test_a_silent_call_does_not_hold_up_the_next(
    application: Application, client: OneBotClient
):
    client.behave({"send_group_msg", "send_msg"}, Silence(performed=True))
    await application.call("send_group_msg", "silent", **text_to_group("你好"))
    assert (await application.answer("get_status", "spoken"))["echo"] == "spoken"
    assert [sent.text for sent in client.sent] == ["你好"]


async def test_a_late_answer_comes_when_its_time_has_come(
    application: Application, client: OneBotClient, clock: VirtualClock
):
    client.behave("send_group_msg", Delay(30))
    await application.call("send_group_msg", "late", **text_to_group("你好"))
    await clock.until_sleeping()
    assert (await application.answer("get_status", "soon"))["echo"] == "soon"
    assert [sent.at for sent in client.sent] == [START_MS]
    await clock.advance(30)
    assert (await application.answers.get())["echo"] == "late"


async def test_a_call_can_cost_the_connection(application: Application, client: OneBotClient):
    client.behave("send_group_msg", Disconnect(performed=True))
    await application.call("send_group_msg", **text_to_group("你好"))
    await client.wait_disconnected()
    assert len(client.sent) == 1
    with pytest.raises(NotConnected):
        await client.deliver(events.bot_offline(3001, at=START_MS))


async def test_it_comes_back_by_itself_where_that_is_asked_for(
    application: Application, endpoint: Endpoint, world: World, clock: VirtualClock
):
    async with OneBotClient(endpoint, world, clock=clock, reconnect_seconds=5) as client:
        application.accepts = False
        await client.drop()
        await clock.until_sleeping()
        await clock.advance(5)
        await clock.until_sleeping()
        assert [type(refusal) for refusal in client.refusals] == [HandshakeRefused]
        application.accepts = True
        await clock.advance(5)
        await client.wait_connected()
        assert (await application.answer("get_status"))["status"] == "ok"


async def test_it_can_be_connected_again_by_hand(application: Application, client: OneBotClient):
    await client.drop()
    assert not client.connected
    await client.connect()
    assert (await application.answer("get_status"))["status"] == "ok"


async def test_a_half_open_line_neither_answers_nor_closes(
    application: Application, client: OneBotClient
):
    client.go_half_open()
    pong = asyncio.ensure_future(await application.sockets[0].ping())
    await application.call("get_status")
    answered, _ = await asyncio.wait([pong], timeout=0.05)
    assert (answered, client.connected, client.calls) == (set(), False, [])
    await client.connect()
    assert (await application.answer("get_status"))["status"] == "ok"
    await client.close()
    with pytest.raises(ConnectionClosed):
        await pong


async def test_heartbeats_follow_the_clock(
    application: Application, endpoint: Endpoint, world: World, clock: VirtualClock
):
    async with OneBotClient(endpoint, world, clock=clock, heartbeat_seconds=30):
        await clock.until_sleeping()
        await clock.advance(60)
        beats = [await application.event() for _ in range(2)]
    assert [beat["time"] - START_MS // 1000 for beat in beats] == [30, 60]
    assert beats[0]["interval"] == 30_000


async def test_events_can_be_delivered_twice(
    application: Application, endpoint: Endpoint, world: World
):
    async with OneBotClient(endpoint, world, copies=2) as client:
        await Scene(client).say(2001, 1001, "你好")
        assert await application.event() == await application.event()


async def test_two_connections_share_one_world(
    application: Application, client: OneBotClient, endpoint: Endpoint, world: World
):
    async with OneBotClient(endpoint, world) as second:
        spoken = await Scene(client).say(2001, 1001, "你好")
        await second.deliver(second.desk.event_of(spoken))
        assert await application.event() == await application.event()


async def test_the_string_format_is_a_property_of_the_connection(
    application: Application, endpoint: Endpoint, world: World
):
    async with OneBotClient(endpoint, world, string_format=True) as client:
        await Scene(client).say(2001, 1001, "[a]")
        assert (await application.event())["message"] == "&#91;a&#93;"


async def test_many_events_arrive_complete_and_in_order_while_calls_are_answered(
    application: Application, client: OneBotClient
):
    async def many() -> int:
        return await client.deliver_many(
            events.heartbeat(3001, at=START_MS, number=number) for number in range(5000)
        )

    delivering = asyncio.create_task(many())
    assert (await application.answer("get_status"))["status"] == "ok"
    numbers = [(await application.event())["number"] for _ in range(5000)]
    assert numbers == list(range(5000))
    assert await delivering == 5000


async def test_a_mistake_within_the_simulator_does_not_hide(
    application: Application, endpoint: Endpoint, world: World
):
    client = OneBotClient(endpoint, world)
    await client.connect()

    def broken(call: object) -> bool:
        raise ZeroDivisionError

    client.behave(broken, Fail())
    await application.call("get_status")
    with pytest.raises(ZeroDivisionError):
        await client.wait_for_sent()
    with pytest.raises(ZeroDivisionError):
        await client.close()


async def test_closing_says_goodbye(application: Application, client: OneBotClient):
    await client.close()
    await application.sockets[0].wait_closed()
    assert application.sockets[0].close_code == 1000

"""What goes wrong on every side, and how little of it anybody in QQ gets to see."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bot.app import App, model_config, open_app
from bot.clock import SystemClock
from bot.config import load_config
from bot.conversation.prompt_message import PromptMessage
from bot.converse import converse
from bot.errors import ModelUnavailable
from bot.ingest import ingest
from bot.llm.openai_model import OpenAIModel, Patience
from bot.llm.protocol import ModelRequest
from bot.llm.routing import Routes
from bot.model import Usage
from bot.simulate import (
    BROKEN,
    Fail,
    RawEvent,
    Silence,
    VirtualClock,
    events,
    provider,
    segments,
)
from bot.simulate.provider import (
    EMPTY_CHOICES,
    HALF_JSON,
    HTML_GARBAGE,
    OTHER_SHAPE,
    Answer,
    Failure,
    ModelServer,
    Outcome,
    Reset,
)
from tests.e2e.harness import (
    BOT,
    KEY,
    OPERATOR,
    Room,
    RunningBot,
    free_port,
    new_friend,
    new_room,
    prompt,
    until,
    whole_prompt,
)

AT_BOT = segments.at(BOT.user_id)
APOLOGY = re.compile(r"抱歉[^\n]{1,40}（错误编号 ([0-9a-f]{6})）")
TRANSPORT_FAILURES = 5
"""So many running open the breaker."""


# The provider


@pytest.mark.parametrize(
    "outcome",
    [
        Failure(429, "rate_limit_exceeded", retry_after="60"),
        Failure(500, retry_after="60"),
        Failure(401, "invalid_api_key"),
        Failure(400, "invalid_request_error", "cannot read: 我的秘密问题"),
        Answer("", finish_reason="content_filter"),
        EMPTY_CHOICES,
        HTML_GARBAGE,
        HALF_JSON,
        OTHER_SHAPE,
        Reset(),
    ],
    ids=[
        "429",
        "500",
        "401",
        "400",
        "filtered",
        "no choices",
        "a web page",
        "half of an object",
        "another shape",
        "a reset",
    ],
)
async def test_who_addressed_the_bot_gets_one_short_apology(
    bot: RunningBot, room: Room, models: ModelServer, outcome: Outcome
):
    models.answer = outcome
    apology = (await room.asked("我的秘密问题")).text
    found = APOLOGY.fullmatch(apology)
    assert found is not None, apology
    assert f"error {found[1]}: no answer in group:{room.id}" in bot.log

    models.answer = "好的"
    models.enqueue(EMPTY_CHOICES, purpose="chat")
    second = await room.ask("我的秘密问题", who=room.other)
    await until(lambda: bot.log.count(f"no answer in group:{room.id}") == 2, "another failure")
    assert (await room.asked("现在呢")).text == "好的"
    assert bot.answers_to(second) == []
    assert [sent.text for sent in room.sent] == [apology, "好的"]
    assert "我的秘密问题" not in bot.log


async def test_a_failure_that_nobody_asked_for_is_silent(
    bot: RunningBot, room: Room, models: ModelServer
):
    await room.order("/模式 auto")
    models.enqueue("yes", purpose="decide")
    models.enqueue(EMPTY_CHOICES, purpose="chat")
    await room.say(room.asker, "随便聊聊")
    await until(lambda: bot.requests(), "the chat model's turn")
    assert len(await room.others_sent()) == 1


async def test_where_the_decision_model_fails_the_bot_keeps_out(
    bot: RunningBot, room: Room, models: ModelServer
):
    await room.order("/模式 auto")
    models.enqueue(EMPTY_CHOICES, purpose="decide")
    await room.say(room.asker, "随便聊聊")
    await until(lambda: bot.requests("decide"), "a decision")
    assert len(await room.others_sent()) == 1
    assert len(bot.requests()) == 1


async def test_an_unreachable_provider_is_left_alone_after_five_failures(
    tmp_path: Path, models: ModelServer
):
    port = free_port()
    environ = {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"}
    async with RunningBot(tmp_path, models, environ=environ) as bot:
        rooms = [new_room(bot) for _ in range(3)]
        for room in rooms[:2]:
            assert APOLOGY.fullmatch((await room.asked()).text)
        usage = "SELECT count(*), sum(ok) FROM usage WHERE purpose = 'chat'"
        assert bot.rows(usage) == [(TRANSPORT_FAILURES, 0)]
        async with ModelServer(port=port) as back:
            assert APOLOGY.fullmatch((await rooms[2].asked()).text)
            assert not back.requests
        assert "left alone" in bot.log
        assert len(rooms[0].stored()) == 1


async def test_a_provider_that_is_back_is_found_within_a_minute():
    clock, kept = VirtualClock(1_700_000_000_000), list[Usage]()

    async def record(usage: Usage) -> None:
        kept.append(usage)

    request = ModelRequest("chat", (PromptMessage("user", "在吗"),))
    async with ModelServer(Failure(500, retry_after="60")) as server:
        environ = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": KEY, "CHAT_MODEL": "m"}
        routes = Routes(model_config(load_config(Path(__file__).parent, environ)))
        model = OpenAIModel(routes, clock=clock, record=record)
        for _ in range(TRANSPORT_FAILURES + 2):
            with pytest.raises(ModelUnavailable):
                await model.complete(request)
        assert len(server.requests) == TRANSPORT_FAILURES
        server.answer = "回来了"
        with pytest.raises(ModelUnavailable):
            await model.complete(request)
        await clock.advance(60)
        assert (await model.complete(request)).text == "回来了"
        await model.close()
    assert [usage.ok for usage in kept] == [False] * TRANSPORT_FAILURES + [True]


@dataclass
class QuietPlatform:
    """A connected account of which only the sent messages are of interest."""

    sent: list[str] = field(default_factory=list)

    async def call(self, action: str, **params: Any) -> Any:
        self.sent += [s["data"]["text"] for s in params["message"] if s["type"] == "text"]
        return {"message_id": len(self.sent)}


@asynccontextmanager
async def impatient_app(directory: Path, server: ModelServer) -> AsyncIterator[App]:
    """The program without NoneBot, with a model that is given a fifth of a second."""
    environ = {
        "OPENAI_BASE_URL": server.base_url,
        "OPENAI_API_KEY": KEY,
        "CHAT_MODEL": "m",
        "DATABASE_URL": f"sqlite:///{directory}/qunyi.db",
        "INITIAL_SETTINGS": '{"replyDebounceSeconds": 0, "sendGapSeconds": 0}',
    }
    config = load_config(directory, environ)
    kept = list[Usage]()

    async def record(usage: Usage) -> None:
        kept.append(usage)

    patience = Patience(connect_seconds=0.2, reply_seconds=0.2)
    model = OpenAIModel(
        Routes(model_config(config)), clock=SystemClock(), record=record, patience=patience
    )
    async with open_app(config, SystemClock(), model) as app:
        yield app
        await model.close()


async def test_a_provider_that_never_answers_costs_one_request_and_one_apology(
    tmp_path: Path, models: ModelServer
):
    models.answer = provider.Silence()
    platform = QuietPlatform()
    async with impatient_app(tmp_path, models) as app:
        app.accounts.connect(str(BOT.user_id), platform)
        event = events.group_message(
            BOT.user_id, 20_001, OPERATOR, [AT_BOT], message_id=1, at=app.clock.now()
        )
        ingested = await ingest(app, event)
        assert ingested is not None
        await converse(app, ingested)
    (told,) = platform.sent
    assert APOLOGY.fullmatch(told)
    assert len(models.requests) == 1


async def test_without_a_key_the_bot_records_obeys_and_says_so_once_to_each(
    tmp_path: Path, models: ModelServer
):
    environ = {"OPENAI_API_KEY": "", "CHAT_MODEL": "", "OPENAI_BASE_URL": ""}
    async with RunningBot(tmp_path, models, environ=environ) as bot:
        room = new_room(bot)
        first = await room.asked("在吗")
        again = await room.ask("还在吗")
        other = await room.asked("在吗", who=room.other)
        assert "我认识的命令" in await room.order("/帮助")
        assert first.text == other.text
        assert "CHAT_MODEL" in first.text
        assert bot.answers_to(again) == []
        assert len(room.stored()) == 4
        assert not models.requests


# Sending


async def test_a_message_that_is_refused_is_not_sent_again(bot: RunningBot, room: Room):
    bot.client.behave("send_group_msg", Fail(1200, "消息发送失败"), times=1)
    asked = await room.ask()
    await bot.client.wait_for_call("send_group_msg")
    await bot.reconnect()
    await room.others_sent()
    assert bot.answers_to(asked) == []
    assert len([c for c in bot.client.calls if c.action == "send_group_msg"]) == 2


@pytest.mark.parametrize(
    "behaviour",
    [Silence(performed=True), Fail(1200, "发送超时", performed=True)],
    ids=["no answer", "a time-out of the client"],
)
async def test_a_message_that_may_have_been_sent_is_not_sent_again(
    bot: RunningBot, room: Room, behaviour: Silence | Fail
):
    bot.client.behave("send_group_msg", behaviour, times=1)
    asked = await room.ask("发得出去吗")
    sent = await bot.answer_to(asked)
    await bot.reconnect()
    assert await room.others_sent() == [sent]
    assert len([c for c in bot.client.calls if c.action == "send_group_msg"]) == 2
    assert "assistant" in [message["role"] for message in prompt(bot.requests()[-1])]


# Where the bot may not speak


async def held(room: Room, models: ModelServer) -> None:
    """Let somebody ask, and return while the model thinks."""
    models.enqueue(Answer("太晚了", delay_seconds=0.5), purpose="chat")
    before = len(room.bot.requests())
    await room.ask("想好了吗")
    await until(lambda: len(room.bot.requests()) > before, "a request")


@pytest.mark.parametrize("user_id", [BOT.user_id, 0], ids=["the bot", "the whole group"])
async def test_a_mute_stops_calls_and_answers_until_it_is_lifted(
    bot: RunningBot, room: Room, models: ModelServer, user_id: int
):
    await held(room, models)
    await bot.scene.mute(room.id, user_id, operator_id=OPERATOR.user_id)
    muted = "SELECT muted_until > 0 FROM chats WHERE peer_id = ?"
    await until(lambda: bot.rows(muted, str(room.id)) == [(1,)], "the mute")
    await room.ask("你怎么不说话", who=room.other)
    await room.say(room.other, "/帮助")
    await bot.client.clock.sleep(0.6)
    assert (len(room.requests()), room.sent) == (1, ())
    await bot.scene.lift(room.id, user_id, operator_id=OPERATOR.user_id)
    await until(lambda: bot.rows(muted, str(room.id)) == [(0,)], "the end of the mute")
    assert await room.others_sent() == []
    sends = [c for c in bot.client.calls if c.params.get("group_id") == room.id]
    assert len(sends) == 1


async def test_a_mute_of_somebody_else_changes_nothing(bot: RunningBot, room: Room):
    await bot.scene.mute(room.id, room.other.user_id, operator_id=OPERATOR.user_id)
    await room.asked()


@pytest.mark.parametrize("act", ["kick", "disband"])
async def test_from_a_group_it_is_no_longer_in_the_bot_wants_nothing(
    bot: RunningBot, room: Room, models: ModelServer, act: str
):
    await held(room, models)
    if act == "kick":
        await bot.scene.kick(room.id, BOT.user_id, operator_id=OPERATOR.user_id)
    else:
        await bot.scene.disband(room.id, operator_id=OPERATOR.user_id)
    removed = "SELECT removed_at IS NOT NULL FROM chats WHERE peer_id = ?"
    await until(lambda: bot.rows(removed, str(room.id)) == [(1,)], "the removal")
    await bot.reconnect()
    await bot.client.clock.sleep(0.6)
    assert (len(room.requests()), room.sent) == (1, ())
    histories = [c.params for c in bot.client.calls if c.action == "get_group_msg_history"]
    assert str(room.id) not in [str(params["group_id"]) for params in histories]


async def test_an_account_that_is_offline_sends_nothing_until_it_is_back(
    bot: RunningBot, room: Room, models: ModelServer
):
    await held(room, models)
    await bot.client.deliver(events.bot_offline(BOT.user_id, at=bot.client.clock.now()))
    await until(lambda: f"账号 {BOT.user_id} 已掉线" in bot.log, "the alert")
    await bot.client.clock.sleep(0.7)
    assert bot.client.sent == []
    assert not [call for call in bot.client.calls if call.action.startswith("send_")]
    await room.asked("回来了吗")


# Odd events


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_event_does_not_stop_the_next(bot: RunningBot, room: Room, name: str):
    said = bot.world.say(room.id, room.asker.user_id, "有点怪", at=bot.client.clock.now())
    await bot.client.deliver(BROKEN[name](bot.client.desk.event_of(said)))
    assert await room.others_sent() == []
    assert not re.search(r"\[(ERROR|CRITICAL)\]", bot.log)


async def test_a_time_in_milliseconds_is_the_same_moment(bot: RunningBot, room: Room):
    said = bot.world.say(room.id, room.asker.user_id, AT_BOT, " 几点", at=bot.client.clock.now())
    await bot.client.deliver(events.with_milliseconds(bot.client.desk.event_of(said)))
    await bot.answer_to(said)
    query = "SELECT sent_at FROM messages WHERE platform_id = ?"
    assert bot.rows(query, str(said.message_id)) == [(said.at // 1000 * 1000,)]


def strange_events(bot: RunningBot, room: Room) -> list[RawEvent]:
    me, now = BOT.user_id, bot.client.clock.now()
    poke = {"sub_type": "poke", "target_id": me, "user_id": room.asker.user_id, "raw_info": []}
    return [
        events.group_msg_emoji_like(me, room.id, room.asker.user_id, 123, at=now),
        events.notice(me, "notify", at=now, group_id=room.id, **poke),
        events.notice(me, "notify", at=now, sub_type="profile_like", operator_nick="甲"),
        events.notice(me, "notify", at=now, sub_type="input_status", group_id=0, user_id=1),
        events.notice(me, "essence", at=now, sub_type="add", sender_id=1, operator_id=0),
        events.notice(me, "reaction", at=now, group_id=room.id, sub_type="add", code="66"),
        events.notice(me, "group_card", at=now, group_id=None, user_id=[], card_new={}),
        events.notice(me, "group_recall", at=now, group_id=room.id),
        events.notice(me, "weather_report", at=now, degrees=[None, {"deep": [[]]}]),
        {"self_id": me, "time": now // 1000, "post_type": "telepathy", "thought": "哼"},
        {"self_id": me, "time": now // 1000, "post_type": "notice"},
        {"self_id": me, "time": "soon", "post_type": "request", "request_type": "friend"},
        {"self_id": me, "post_type": "meta_event", "meta_event_type": "heartbeat", "status": None},
        {"self_id": me, "time": now // 1000, "post_type": "message", "message": "谁说的"},
    ]


async def test_notices_that_nobody_has_heard_of_do_no_harm(bot: RunningBot, room: Room):
    for event in strange_events(bot, room):
        await bot.client.deliver(event)
    await bot.client.deliver_many(strange_events(bot, room), copies=2)
    assert await room.others_sent() == []
    assert not re.search(r"\[(ERROR|CRITICAL)\]|Traceback", bot.log)


# The log


async def test_neither_words_nor_keys_are_in_the_log(
    bot: RunningBot, room: Room, models: ModelServer
):
    models.enqueue("回答里的黄瓜", purpose="chat")
    await room.asked("问题里的茄子")
    models.enqueue(Failure(400, "bad", f"茄子 黄瓜 {KEY}"), purpose="chat")
    await room.ask("再来一个茄子")
    friend = new_friend(bot)
    await bot.scene.whisper(friend.user_id, "私聊里的茄子")
    await bot.client.wait_for_sent(2, chat=bot.world.private_chat(friend.user_id))
    await room.order("/设置 persona 爱吃茄子的人")
    await bot.reconnect()
    await room.others_sent()
    assert "茄子" in whole_prompt(bot.requests()[0])
    assert not [word for word in ("茄子", "黄瓜", KEY) if word in bot.log]

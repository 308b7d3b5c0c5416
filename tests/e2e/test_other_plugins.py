"""Beside plugins of others, and on other ways than a socket: all is stored, and answered once."""

import asyncio
import json
import time
import urllib.request
from pathlib import Path

from bot.simulate import events, segments
from bot.simulate.provider import ModelServer
from tests.e2e.harness import BOT, NICKNAME, OPERATOR, Room, RunningBot, new_room, until

PROGRAM = ("-m", "tests.e2e.beside_a_plugin")
ENVIRON = {"NICKNAME": json.dumps([NICKNAME]), "SUPERUSERS": json.dumps([str(OPERATOR.user_id)])}
"""NoneBot reads them by itself here, and takes nothing but JSON."""


async def test_what_another_plugin_keeps_for_itself_is_stored_and_not_answered(tmp_path: Path):
    async with (
        ModelServer(lambda _: "好的") as models,
        RunningBot(tmp_path, models, program=PROGRAM, environ=ENVIRON) as bot,
    ):
        room = new_room(bot)
        # Once this is answered the account has caught up, which looks for what nobody answered.
        assert (await room.asked("在吗", who=room.other)).text == "好的"
        forecast = await room.say(room.asker, "天气怎么样 ", segments.at(BOT.user_id))
        await until(lambda: room.sent[-1].text == "今天晴", "the forecast")
        assert [sent.text for sent in await room.others_sent()] == ["好的", "今天晴"]
        assert bot.answers_to(forecast) == []
        assert "天气怎么样 @" in room.stored()[1]


async def test_a_command_goes_to_no_plugin_behind_ours(tmp_path: Path):
    async with (
        ModelServer(lambda _: "好的") as models,
        RunningBot(tmp_path, models, program=PROGRAM, environ=ENVIRON) as bot,
    ):
        room = new_room(bot)
        assert "帮助" in await room.order("/帮助")
        await room.say(room.asker, "随便说说")
        await until(lambda: len(room.sent) == 2, "the plugin to repeat")
        assert room.sent[1].text == "听见了：随便说说"


async def test_what_another_plugin_hands_on_again_is_answered_once(tmp_path: Path):
    async with (
        ModelServer(lambda _: "好的") as models,
        RunningBot(tmp_path, models, program=PROGRAM, environ=ENVIRON) as bot,
    ):
        room = new_room(bot)
        assert (await room.asked("再来一次")).text == "好的"
        assert [sent.text for sent in await room.others_sent()] == ["好的"]
        assert len(room.requests()) == 2


async def test_a_notice_is_taken_in_once_beside_another_plugin(tmp_path: Path):
    async with (
        ModelServer(lambda _: "好的") as models,
        RunningBot(tmp_path, models, program=PROGRAM, environ=ENVIRON) as bot,
    ):
        room = new_room(bot)
        await room.asked()
        muted = events.group_ban(BOT.user_id, room.id, BOT.user_id, at=now())
        await bot.client.deliver(muted)
        await until(lambda: "silent in" in bot.log, "the mute")
        await room.say(room.asker, "随便说说")
        assert bot.log.count("silent in") == 1


async def test_an_event_that_comes_by_http_is_stored_once_and_answered(bot: RunningBot, room: Room):
    world = bot.world
    said = world.say(room.id, room.asker.user_id, segments.at(BOT.user_id), " 在吗", at=now())
    event = events.of_utterance(BOT, said)
    for _ in range(2):
        assert await asyncio.to_thread(_post, bot.endpoint.port, event) == 204
    assert (await bot.answer_to(said)).text == "好的"
    assert room.stored() == [f"@{NICKNAME}({BOT.user_id}) 在吗"]
    assert len(room.requests()) == 1


def now() -> int:
    return time.time_ns() // 1_000_000


def _post(port: int, event: events.RawEvent) -> int:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/onebot/v11/",
        json.dumps(event).encode(),
        {"Content-Type": "application/json", "X-Self-ID": str(BOT.user_id)},
    )
    with urllib.request.urlopen(request, timeout=5) as answer:
        return answer.status

"""Beside plugins of others: what one keeps for itself is stored, and answered by it alone."""

import json
from pathlib import Path

from bot.simulate import segments
from bot.simulate.provider import ModelServer
from tests.e2e.harness import BOT, NICKNAME, OPERATOR, RunningBot, new_room, until

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

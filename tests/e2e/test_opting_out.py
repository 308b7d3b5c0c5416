"""Opting out of the running program: what was said is gone, also if a kill comes in between."""

from pathlib import Path

from bot.simulate.provider import ModelServer
from tests.e2e.harness import RunningBot, new_room, until, whole_prompt

MANY = 300


async def test_a_kill_right_after_opting_out_leaves_nothing_of_it_behind(
    models: ModelServer, tmp_path: Path
):
    async with RunningBot(tmp_path, models) as bot:
        room = new_room(bot)
        other = room.other
        for number in range(MANY):
            await room.say(room.asker, f"第{number}件小事")
        await room.say(other, "别人的话")
        assert "60 秒" in await room.order("/别记我", who=room.asker)
        await room.say(room.asker, "/别记我 确认")
        is_out = "SELECT 1 FROM members WHERE opted_out_at IS NOT NULL"
        await until(lambda: bot.rows(is_out), "the opting out")
        await bot.kill()
        await bot.start()
        theirs = (
            "SELECT text FROM messages JOIN members AS m ON m.id = member_id"
            " WHERE m.user_id = ? AND text <> ''"
        )
        whose = str(room.asker.user_id)
        await until(lambda: not bot.rows(theirs, whose), "the erasing", timeout_seconds=30)
        assert bot.rows("SELECT count(*) FROM messages WHERE text = '别人的话'") == [(1,)]

        await room.say(room.asker, "我家在湖边")
        assert (await room.asked("药店几点开门")).text == "好的"
        assert "药店几点开门" in whole_prompt(models.requests[-1])
        assert "湖边" not in whole_prompt(models.requests[-1])
        assert [text.endswith("药店几点开门") for (text,) in bot.rows(theirs, whose)] == [True]
        assert "药店" not in await room.order("/搜 几点开门", who=other)

"""Reminders in the running program: the clockwork is made anew from the rows at each start."""

import sqlite3
from pathlib import Path

from bot.simulate.provider import ModelServer
from tests.e2e.harness import RunningBot, new_room, until

HOUR_MS = 3_600_000
AHEAD_MS = 3_000

REMINDER = """
INSERT INTO reminders (chat_id, member_id, due_at, next_at, text, state, created_at)
SELECT chat_id, member_id, :due_at, :due_at, :text, 'open', :due_at FROM messages WHERE text = '在'
"""
MADE_FROM = """
INSERT INTO reminder_messages (reminder_id, message_id)
SELECT r.id, m.id FROM reminders AS r, messages AS m WHERE m.text = '在'
"""


async def test_a_restart_sends_what_was_missed_and_what_falls_due_each_once(
    models: ModelServer, tmp_path: Path
):
    async with RunningBot(tmp_path, models) as bot:
        room = new_room(bot)
        await room.say(room.asker, "在")
        await bot.stop()
        now = bot.client.clock.now()
        database = sqlite3.connect(bot.database)
        for due_at, text in ((now - 3 * HOUR_MS, "喝水"), (now + AHEAD_MS, "跑步")):
            database.execute(REMINDER, {"due_at": due_at, "text": text})
        database.execute(MADE_FROM)
        database.commit()
        database.close()
        await bot.start()
        await until(lambda: len(room.sent) == 2, "both reminders", timeout_seconds=30)
        late, timely = (sent.text for sent in room.sent)
        assert "提醒：喝水（晚了 3 小时" in late
        assert timely.endswith("提醒：跑步")
        await bot.restart()
        await room.asked()
        assert len([sent for sent in room.sent if "提醒" in sent.text]) == 2
        assert bot.rows("SELECT DISTINCT state, text FROM reminders") == [("sent", "")]

"""remind: tell the turn's sender something later, here."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from bot.clock import local_minute
from bot.conversation.moments import moment
from bot.conversation.reminders import MAX_AHEAD_MS, MINUTE_MS, TEXT_CHARS
from bot.conversation.tools import ToolOutput, ToolSpec
from bot.errors import ToolError
from bot.remind import keep_reminder
from bot.tools.arguments import Arguments, read, schema_of
from bot.tools.surroundings import Surroundings

FORM = "YYYY-MM-DD HH:MM"


class Asked(Arguments):
    """What a model may ask."""

    text: str = Field(min_length=1, max_length=TEXT_CHARS, description="到时候说的话")
    at: str = Field("", max_length=32, description=f"本地时间 {FORM}")
    in_minutes: int | None = Field(
        None, ge=1, le=MAX_AHEAD_MS // MINUTE_MS, description="或者：多少分钟以后"
    )


class Remind:
    """Keeps a reminder that survives restarts; see ``bot/remind.py``."""

    spec = ToolSpec(
        "remind",
        "定一个提醒，到时候在这个聊天里提醒提问者本人。at 和 in_minutes 给其中一个。",
        schema_of(Asked),
    )
    timeout_seconds = 15.0
    operators_only = False

    async def run(
        self, surroundings: Surroundings, arguments: Mapping[str, Any]
    ) -> str | ToolOutput:
        """Return the reminder's number and when it will come."""
        asked = read(Asked, arguments)
        app, question = surroundings.app, surroundings.scene.question
        if question.messages[-1].message.sender.anonymous:
            raise ToolError("匿名成员不能定提醒。")
        rows = tuple(stored.row_id for stored in question.messages)
        kept = await keep_reminder(
            app,
            question.chat,
            question.sender_id,
            rows,
            due_at=_due_at(surroundings, asked),
            text=asked.text,
            begun_at=surroundings.scene.now,
        )
        when = local_minute(kept.due_at, app.config.timezone)
        return ToolOutput(f"提醒 #{kept.id} 定好了，{when}：{kept.text}", rows)


def _due_at(surroundings: Surroundings, asked: Asked) -> int:
    if bool(asked.at) == (asked.in_minutes is not None):
        raise ToolError("参数不对。at 和 in_minutes 要给其中一个")
    if asked.in_minutes is not None:
        # From when it was asked: a turn that thinks long, or begins again, delays nothing.
        return surroundings.scene.question.last_at + asked.in_minutes * MINUTE_MS
    at = moment(asked.at, surroundings.app.config.timezone)
    if at is None or len(asked.at) <= len("YYYY-MM-DD"):
        raise ToolError(f"参数不对。at 要写成 {FORM}")
    return at

"""What the caller is to be reminded of: 提醒."""

import unicodedata

from bot.clock import local_minute
from bot.commands.call import Call, Refusal
from bot.conversation.reminders import span
from bot.model import Reminder
from bot.store.reminders import cancel_reminders, open_reminders

LIST_WORDS = frozenset({"", "列表", "list"})
CANCEL_WORDS = frozenset({"取消", "cancel"})
ALL_WORDS = frozenset({"全部", "all"})

USAGE = (
    "用法：/提醒 列表，/提醒 取消 #编号，/提醒 取消 全部。"
    "要定提醒，直接跟我说，例如：十分钟后提醒我喝水"
)


async def reminders(call: Call) -> str:
    """提醒: list the caller's reminders, or cancel some.

    In a group those of that group: what was asked elsewhere is nobody's business here.
    """
    words = call.arguments.split()
    waiting = await _waiting(call)
    if not words or (len(words) == 1 and words[0] in LIST_WORDS):
        return _listed(call, waiting)
    if len(words) != 2 or words[0] not in CANCEL_WORDS:
        raise Refusal(USAGE)
    chosen = waiting if words[1] in ALL_WORDS else _numbered(waiting, words[1])
    if not chosen:
        raise Refusal("没有等待中的提醒。" if words[1] in ALL_WORDS else "没有这个提醒。")
    async with call.app.db.transaction() as tx:
        count = await cancel_reminders(tx, [one.id for one in chosen], call.app.clock.now())
    return f"取消了 {count} 个提醒。"


async def _waiting(call: Call) -> list[Reminder]:
    if call.message.sender.anonymous:
        return []
    everywhere = not call.chat.is_group
    return await open_reminders(call.app.db, call.chat, call.caller_id, everywhere=everywhere)


def _numbered(waiting: list[Reminder], word: str) -> list[Reminder]:
    number = unicodedata.normalize("NFKC", word).lstrip("#")
    return [one for one in waiting if str(one.id) == number]


def _listed(call: Call, waiting: list[Reminder]) -> str:
    if not waiting:
        return "没有等待中的提醒。"
    lines = [_line(call, one) for one in waiting]
    return "\n".join(("等待中的提醒：", *lines, "不想要了，发送 /提醒 取消 #编号"))


def _line(call: Call, one: Reminder) -> str:
    when = local_minute(one.due_at, call.app.config.timezone)
    left = span(max(0, one.due_at - call.app.clock.now()))
    place = f"（群 {one.chat.id}）" if one.chat.is_group and not call.chat.is_group else ""
    return f"#{one.id} {when}（{left}后）{place}：{one.text}"

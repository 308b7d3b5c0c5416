"""What tools have taught: 经验."""

import unicodedata

from bot.clock import local_date
from bot.commands.call import Call, Refusal
from bot.commands.pages import Item, paged
from bot.conversation.lessons import TTL_MS, masked_action
from bot.model import KeptLesson
from bot.store.lessons import all_lessons, edit_lesson, remove_lesson

USAGE = "用法：/经验 [页]，/经验 改 #编号 新的做法，/经验 删 #编号"
UNKNOWN = "没有这条经验。"
MAX_DIGITS = 18


async def lessons(call: Call) -> str:
    """经验: list what tools have taught, give one another action, or remove one.

    In a group without what comes from private chats.
    """
    words = call.arguments.split(maxsplit=2)
    match words:
        case []:
            return await _listed(call, 1)
        case [page] if _is_number(page):
            return await _listed(call, int(page))
        case ["改", number, action]:
            return await _edited(call, _number(number), action)
        case ["删", number]:
            return await _removed(call, _number(number))
        case _:
            raise Refusal(USAGE)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= MAX_DIGITS


def _number(word: str) -> int:
    digits = unicodedata.normalize("NFKC", word).lstrip("#")
    if not _is_number(digits):
        raise Refusal(USAGE)
    return int(digits)


def _since(call: Call) -> int:
    return call.app.clock.now() - TTL_MS


async def _listed(call: Call, page: int) -> str:
    with_private = not call.chat.is_group
    found = await all_lessons(call.app.db, since=_since(call), with_private=with_private)
    if not found:
        return "还没有经验。"
    return paged([Item(_line(call, one)) for one in found], page, "/经验")


def _line(call: Call, one: KeptLesson) -> str:
    lesson = one.lesson
    day = local_date(one.renewed_at, call.app.config.timezone)
    place = "，私聊" if one.is_private else ""
    return (
        f"#{one.id} {lesson.tool}（{day}，用上 {one.uses} 次{place}）"
        f"现象：{lesson.symptom}；原因：{lesson.cause}；做法：{lesson.action}"
    )


async def _edited(call: Call, number: int, action: str) -> str:
    masked = masked_action(action)
    if not masked:
        raise Refusal(USAGE)
    async with call.app.db.transaction() as tx:
        is_known = await edit_lesson(
            tx,
            number,
            masked,
            by=call.caller_id,
            at=call.app.clock.now(),
            since=_since(call),
            with_private=not call.chat.is_group,
        )
    if not is_known:
        raise Refusal(UNKNOWN)
    return f"经验 #{number} 的做法改成：{masked}"


async def _removed(call: Call, number: int) -> str:
    async with call.app.db.transaction() as tx:
        is_known = await remove_lesson(tx, number, with_private=not call.chat.is_group)
    if not is_known:
        raise Refusal(UNKNOWN)
    return f"删掉了经验 #{number}。"

"""Order in memory: 整理 撤销."""

from bot.clock import local_time
from bot.commands.call import Call, Refusal
from bot.commands.memory import TASK_WORDS
from bot.consolidate import consolidate
from bot.store.revisions import Revision, is_of_chat, recent_revisions, undo_revision

LISTED = 10
"""So many changes are listed."""

MAX_DIGITS = 18

WORK_WORDS = {**TASK_WORDS, "consolidate": "每日整理"}

REASONS = {
    "idle": "聊天停了",
    "count": "攒够了",
    "max-wait": "等得够久",
    "backlog": "接着做",
    "command": "有人要求",
    "retraction": "有人更正",
    "remember": "对话里记下",
    "pin": "置顶",
    "unpin": "取消置顶",
    "undo": "撤销",
    "consolidate": "便签整理",
}


async def tidy(call: Call) -> str:
    """整理: let the notes of this chat rise, expire or be folded now."""
    if not call.app.settings.of(call.chat).memory_enabled:
        raise Refusal("记忆已关闭。发送 /设置 memoryEnabled true 打开。")
    done = await consolidate(call.app, call.chat, by=call.caller_id)
    if done.failed:
        return f"有 {done.failed} 份记忆没有整理成，请稍后再试；原因在日志里。"
    if not (done.promoted or done.expired or done.folded):
        return "整理完了：没有要升级、过期或合并的便签。"
    return (
        f"整理完了：{done.promoted} 条升级，{done.expired} 条过期，"
        f"{done.folded} 条便签合并成 {done.folds} 条。发送 /撤销 可以查看和撤销。"
    )


async def undo(call: Call) -> str:
    """撤销: list the newest changes of this chat's memory, or undo one."""
    word = call.arguments.strip().lstrip("#＃")
    if not word:
        return await _listed(call)
    if not (word.isascii() and word.isdecimal() and len(word) <= MAX_DIGITS):
        raise Refusal("用法：/撤销 列出最近的改动，/撤销 编号 撤销其中一个")
    app, number = call.app, int(word)
    async with app.db.transaction() as tx:
        if not await is_of_chat(tx, number, call.chat, members=call.is_operator):
            raise Refusal("没有这个改动")
        shown = await undo_revision(tx, number, by=call.caller_id, at=app.clock.now())
    if shown is None:
        raise Refusal(f"改动 {number} 已经没有可以撤销的内容：之后又变过，或者已被忘记。")
    app.floor.renew_shown(shown)
    return f"已撤销改动 {number}。这次撤销本身也在 /撤销 的列表里。"


async def _listed(call: Call) -> str:
    found = await recent_revisions(call.app.db, call.chat, members=call.is_operator, limit=LISTED)
    if not found:
        return "还没有改动。"
    lines = [_line(call, revision) for revision in found]
    return "\n".join(("最近的改动（发送 /撤销 编号 撤销）：", *lines))


def _line(call: Call, revision: Revision) -> str:
    """Return a change in one line; nothing that anybody said is in it."""
    at = local_time(revision.at, call.app.config.timezone)
    is_group = revision.scope_kind == "group"
    whose = "群" if is_group else f"成员 {revision.scope_id}"
    by = WORK_WORDS.get(revision.by, revision.by)
    reason = REASONS.get(revision.why.split(" ")[0], "")
    why = f"（{reason}）" if reason else ""
    return f"{revision.id}  {at:%m-%d %H:%M} {whose}：{by}{why}，{revision.lines} 行"

"""The conversation of a chat, and what is kept of it: 会话 新会话."""

from collections.abc import Awaitable, Callable, Iterator, Mapping

from bot.commands.call import Call, Refusal
from bot.commands.confirmation import await_confirmation, is_confirmed
from bot.compact import compact
from bot.conversation.summary import SessionSummary
from bot.conversation.window import least_turns
from bot.session import (
    rebuild_summary,
    remove_session,
    reset_all,
    reset_summary,
    session_of_chat,
)
from bot.work import lease_owner

CONFIRMED = "remove 确认"
DEED = "session-removal"

USAGE = "用法：/会话，或 /会话 compact、summary、reset summary、reset all、remove"
LATER = "（模型这次没有做完，稍后会自动再试；操作者可以看 /任务。to be continued）"


async def tend_session(call: Call) -> str:
    """会话: show how the conversation stands, or fold, rebuild, clear or remove it."""
    words = " ".join(call.arguments.lower().split())
    if not words:
        return await _shown(call)
    if words not in _DEEDS:
        raise Refusal(USAGE)
    return await _DEEDS[words](call)


async def begin_anew(call: Call) -> str:
    """新会话: clear the conversation and keep its summary."""
    if call.chat.is_group and not (call.is_operator or call.is_group_admin):
        raise Refusal("群里的对话是大家的，只有群主、管理员和操作者可以清空。")
    if call.arguments:
        raise Refusal("用法：/新会话")
    return await _reset_summary(call)


async def _shown(call: Call) -> str:
    found = await session_of_chat(call.app, call.chat)
    least = least_turns(call.app.settings.general.session_max_messages)
    lines = (
        f"窗口：{found.state.window_turns} 轮（总保留 {least} 轮，到 {2 * least} 轮时折叠）",
        f"折叠或清空过 {found.state.compactions} 次，{found.state.new_turns} 轮还没有进概要",
        *_told(found.summary),
        USAGE,
    )
    return "\n".join(lines)


def _told(summary: SessionSummary) -> Iterator[str]:
    if summary.is_empty:
        yield "概要：还没有"
        return
    yield "概要："
    for decision in summary.key_decisions:
        force = "约定" if decision.binds else "背景"
        yield f"〔{force}〕{decision.text}（{decision.author_id}）"
    for one in summary.past_discussions:
        yield f"〔话题〕{one.last_discussed} {one.topic}：{one.description}"
    if summary.current_discussion:
        yield f"〔正在谈〕{summary.current_discussion}"


async def _compact(call: Call) -> str:
    done = await compact(call.app, call.chat, lease_owner(call.app))
    if done.is_whole and not done.removed:
        least = least_turns(call.app.settings.general.session_max_messages)
        return f"没有可以移出的对话：最近 {least} 轮总是保留。(nothing to fold)"
    told = f"移出了 {done.removed} 轮对话，内容在概要里。({done.removed} turns folded)"
    return told if done.is_whole else f"{told}{LATER}"


async def _rebuild(call: Call) -> str:
    done = await rebuild_summary(call.app, call.chat, lease_owner(call.app))
    if not done.turns:
        if done.is_whole:
            return "没有可以重读的对话，概要不变。(nothing to read)"
        return f"还没有重做，概要还是原来的。{LATER}"
    told = f"重读了 {done.turns} 轮对话，概要现有 {done.entries} 条。({done.turns} turns read)"
    return told if done.is_whole else f"{told}{LATER}"


async def _reset_summary(call: Call) -> str:
    count = await reset_summary(call.app, call.chat)
    return f"已清空这里的对话（{count} 轮），概要和记忆保留。(new conversation)"


async def _reset_all(call: Call) -> str:
    count = await reset_all(call.app, call.chat)
    return (
        f"已清空这里的对话（{count} 轮）和概要；之前说过的话不再进入上下文。"
        "聊天记录和长期记忆还在。(conversation and summary cleared)"
    )


async def _ask_to_remove(call: Call) -> str:
    await await_confirmation(call, DEED)
    return (
        "这会删除这里的对话、概要和已存的全部聊天文字，不能恢复；长期记忆保留。"
        "确认请在 60 秒内发送 /会话 remove 确认。(confirm within 60 s)"
    )


async def _remove(call: Call) -> str:
    if not await is_confirmed(call, DEED):
        raise Refusal("没有等待确认的删除。请先发送 /会话 remove。(nothing to confirm)")
    await remove_session(call.app, call.chat)
    return "已删除这里的对话、概要和已存的聊天文字；长期记忆保留。(removed)"


_DEEDS: Mapping[str, Callable[[Call], Awaitable[str]]] = {
    "compact": _compact,
    "summary": _rebuild,
    "reset summary": _reset_summary,
    "reset all": _reset_all,
    "remove": _ask_to_remove,
    CONFIRMED: _remove,
}

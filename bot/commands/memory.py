"""What is remembered, and the work on it: 我的记忆 记忆 反思 压缩 任务."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from bot.clock import local_time
from bot.commands.call import Call, Refusal
from bot.commands.pages import Item, paged
from bot.compress import limits_of
from bot.model import Document, Entry, Scope, Stream, StreamMemory, TaskKind, TaskName
from bot.settings import Settings
from bot.store.memory import compressible, read_stream, streams_of, take_back
from bot.store.reach import readable
from bot.store.snapshots import place_documents
from bot.store.tasks import (
    TaskRecord,
    hurry_compression,
    hurry_task,
    quarantined,
    queue_compression,
    queue_task,
    recent_tasks,
    standing,
)
from bot.text import clipped, single_line

_PAGE = re.compile(r"[1-9]\d{0,3}", re.ASCII)

DOCUMENTS: dict[Document, str] = {
    "profile": "档案",
    "pattern": "习惯",
    "daily": "近事",
    "memory": "长期记忆",
    "note": "便签",
}

WORDS_OF_TASKS: dict[str, TaskName] = {
    "group": "group",
    "member": "member-batch",
    "private": "private-owner",
}

TASK_WORDS: dict[TaskKind, str] = {
    "group": "群记忆",
    "member-batch": "成员记忆",
    "private-owner": "私聊记忆",
    "compress": "记忆压缩",
    "summarize": "会话概要",
}

STATES = {
    "queued": "等待",
    "running": "进行中",
    "done": "完成",
    "failed": "失败",
    "stopped": "已停",
}


async def show_own_memory(call: Call) -> str:
    """我的记忆: what is kept about the caller, as far as this chat may see it; in pages."""
    words = _words(call)
    if len(words) > 1 or not all(map(_PAGE.fullmatch, words)):
        raise Refusal("用法：/我的记忆，接着看第 2 页：/我的记忆 2")
    scope = Scope(call.chat.bot_id, "member", call.caller_id)
    items = await _items(call, scope, is_of_caller=True)
    if call.app.opt_outs.has(call.chat.bot_id, call.caller_id) and not items:
        return "你选择了不被记录，我没有关于你的记忆。想让我重新记录，发送 /记我。"
    if not items:
        return "还没有关于你的记忆。"
    return paged(items, int(words[0]) if words else 1, "/我的记忆")


def _words(call: Call) -> list[str]:
    return unicodedata.normalize("NFKC", call.arguments).split()


async def show_memory(call: Call) -> str:
    """记忆: what is kept about a group or a member, as far as this chat may see it; in pages."""
    words = _words(call)
    kinds = {"群": "group", "成员": "member"}
    page = words.pop() if len(words) in (1, 3) and _PAGE.fullmatch(words[-1]) else "1"
    if not words and call.chat.is_group:
        words = ["群", call.chat.id]
    if len(words) != 2 or words[0] not in kinds or not words[1].isdecimal():
        raise Refusal("用法：/记忆 群 20001 或 /记忆 成员 30001，接着看第 2 页：/记忆 群 20001 2")
    kind = "group" if words[0] == "群" else "member"
    if call.chat.is_group and kind == "member" and words[1] != call.caller_id:
        raise Refusal("别人的记忆不在群里显示，请在私聊里查看。")
    scope = Scope(call.chat.bot_id, kind, words[1])
    items = await _items(call, scope, is_of_caller=False)
    if not items:
        return "还没有相关的记忆。"
    return paged(items, int(page), f"/记忆 {words[0]} {words[1]}")


async def _items(call: Call, scope: Scope, *, is_of_caller: bool) -> list[Item]:
    visible = await _visible(call, scope, is_of_caller=is_of_caller)
    found = [
        _narrowed((await read_stream(call.app.db, stream)).memory, documents)
        for stream, documents in visible.items()
    ]
    several = len(found) > 1
    return [item for memory in found for item in _listed(call, memory, several=several)]


_Visible = Mapping[Stream, frozenset[Document]]
"""The streams that an answer may show, and which documents of each."""


async def _visible(call: Call, scope: Scope, *, is_of_caller: bool) -> _Visible:
    """Return what an answer may show: in a group what a turn of the caller may read there.

    What somebody said in private reaches nobody else, operators included.
    """
    if call.chat.is_group or is_of_caller:
        return await _readable(call, scope)
    streams = await streams_of(call.app.db, scope)
    shared = [s for s in streams if s.audience == "shared"] if call.is_operator else []
    return dict.fromkeys(shared, frozenset(DOCUMENTS))


async def _readable(call: Call, scope: Scope) -> _Visible:
    db, settings = call.app.db, call.app.settings.of(call.chat)
    streams = await readable(
        db, call.chat, call.caller_id, cross_group=settings.memory_member_cross_group
    )
    documents = await place_documents(db)
    return {one.stream: documents[one.place] for one in streams if one.stream.scope == scope}


def _narrowed(memory: StreamMemory, documents: frozenset[Document]) -> StreamMemory:
    shown = tuple(entry for entry in memory.entries if entry.document in documents)
    return replace(memory, entries=shown)


def _listed(call: Call, memory: StreamMemory, *, several: bool) -> Iterator[Item]:
    place = (f"〔{_place(call, memory.stream)}〕",) if several else ()
    if memory.summary.text:
        yield Item(f"概况：{memory.summary.text}", place)
    for document, title in DOCUMENTS.items():
        for entry in memory.entries:
            if entry.document == document:
                yield Item(_line(entry), (*place, f"{title}："))


def _place(call: Call, stream: Stream) -> str:
    if not stream.origin.is_group:
        return "私聊"
    # In which other groups somebody is, is no matter of this one.
    is_told = stream.origin == call.chat or not call.chat.is_group
    return f"群 {stream.origin.id}" if is_told else "其他群"


def _line(entry: Entry) -> str:
    date = f"{entry.date} " if entry.date else ""
    return f"#{entry.label} {date}{entry.text}（证据 {len(entry.proofs)}）"


async def start_reflection(call: Call) -> str:
    """反思: reflect what waits in this chat now, without waiting for its trigger."""
    wanted = _switched_on(call, _wanted(call))
    started: list[TaskName] = [task for task in wanted if await _start(call, task)]
    if not started:
        return "没有等待整理的消息。"
    words = "、".join(TASK_WORDS[task] for task in started)
    return f"已安排整理：{words}。发送 /任务 查看进展。"


def _wanted(call: Call) -> list[TaskName]:
    here: list[TaskName] = ["group", "member-batch"] if call.chat.is_group else ["private-owner"]
    word = call.arguments.strip().lower()
    if not word:
        return here
    task = WORDS_OF_TASKS.get(word)
    if task is None:
        raise Refusal("用法：/反思 [group|member|private]")
    if task not in here:
        raise Refusal("这里没有这类记忆：group 和 member 请在群里使用，private 请在私聊使用。")
    return [task]


def _switched_on(call: Call, wanted: Sequence[TaskName]) -> list[TaskName]:
    """Leave out what is switched off: a command starts work, but overrules no switch."""
    settings = _remembering(call)
    if settings.memory_member_batch_enabled:
        return list(wanted)
    left: list[TaskName] = [task for task in wanted if task != "member-batch"]
    if left:
        return left
    raise Refusal("成员记忆已关闭。发送 /设置 memoryMemberBatchEnabled true 打开。")


def _remembering(call: Call) -> Settings:
    settings = call.app.settings.of(call.chat)
    if not settings.memory_enabled:
        raise Refusal("记忆已关闭。发送 /设置 memoryEnabled true 打开。")
    return settings


async def start_compression(call: Call) -> str:
    """压缩: compress the older daily entries of this chat now, however many there are."""
    settings, db = _remembering(call), call.app.db
    async with db.transaction() as tx:
        await take_back(tx, call.chat)
    found = await compressible(db, call.chat)
    started = [s for s, count in found.items() if count > limits_of(settings, s.scope).keep_recent]
    if not started:
        return "没有可以压缩的近事：最近的一些总是原样保留。"
    await _compress(call, started)
    members = sum(stream.scope.kind == "member" for stream in started)
    words = ["群记忆"] if members < len(started) else []
    words += [f"{members} 人的记忆"] if members else []
    return f"已安排压缩：{'、'.join(words)}。发送 /任务 查看进展。"


async def _compress(call: Call, streams: Iterable[Stream]) -> None:
    now = call.app.clock.now()
    async with call.app.db.transaction() as tx:
        for stream in streams:
            await hurry_compression(tx, stream, "command", now)
            await queue_compression(tx, stream, "command", now)


async def _start(call: Call, task: TaskName) -> bool:
    app, now = call.app, call.app.clock.now()
    found = await standing(app.db, call.chat, task)
    if found is None:
        return False
    waits = found.pending > 0 and (task != "private-owner" or found.has_answered)
    async with app.db.transaction() as tx:
        # One that was stopped is released also while nothing waits.
        await hurry_task(tx, call.chat, task, now)
        if waits:
            await queue_task(tx, found, "command", now)
    return waits


async def show_tasks(call: Call) -> str:
    """任务: the newest tasks and what was quarantined; in a group, of that group alone."""
    app = call.app
    where = call.chat if call.chat.is_group else None
    tasks = await recent_tasks(app.db, where)
    held = await quarantined(app.db, where, 5)
    lines = [_task_line(call, task) for task in tasks] or ["还没有任务。"]
    if held:
        lines.append("模型拒绝而跳过的消息：")
        lines += [f"行 {q.message_id}，{q.chat}，{TASK_WORDS[q.task]}" for q in held]
    return "\n".join(lines)


def _task_line(call: Call, task: TaskRecord) -> str:
    at = local_time(task.finished_at or task.created_at, call.app.config.timezone)
    line = f"{at:%m-%d %H:%M} {task.chat} {_work(task)} {STATES[task.state]}"
    if task.task == "compress" and task.state == "done":
        changes = task.counts.get("changes", 0)
        return f"{line}：{task.messages} 条近事变为 {changes} 条长期记忆，{task.tokens} token"
    if task.task == "summarize" and task.state == "done":
        return f"{line}：{task.messages} 轮对话，{task.tokens} token"
    if task.state == "done":
        return f"{line}：{task.messages} 条消息，{_counts(task.counts)}，{task.tokens} token"
    if task.state == "queued" and task.attempts:
        again = local_time(task.next_run_at, call.app.config.timezone)
        error = clipped(single_line(task.error), 60)
        return f"{line}：第 {task.attempts} 次失败，{again:%H:%M} 再试（{error}）"
    return f"{line}（{task.reason}）"


def _work(task: TaskRecord) -> str:
    if task.task == "compress":
        return f"{TASK_WORDS[task.task]}（{'群' if task.scope == 'group' else '成员'}）"
    return TASK_WORDS[task.task]


def _counts(counts: Mapping[str, int]) -> str:
    changes = counts.get("changes", 0)
    refused = counts.get("refused", 0)
    return f"{changes} 处更新" + (f"，拒绝 {refused} 项" if refused else "")

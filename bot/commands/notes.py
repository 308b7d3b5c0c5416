"""What people ask to be remembered, kept or forgotten: 记住 置顶 忘记."""

from functools import partial

from bot.commands.call import Call, Refusal
from bot.commands.memory import DOCUMENTS
from bot.commands.references import OFF_WORDS, Reference, read_reference
from bot.errors import NotRemembered
from bot.forget import Found, forget, group_entry, own_entry
from bot.model import Chat, Entry, Scope, Stream
from bot.remember import remember_asked
from bot.store.memory import Shape, StreamWriter, read_entry, rewrite, streams_of

UNKNOWN = "没有这条记忆"
"""The answer for every entry that the caller may not touch, whether it exists or not."""

EVERYTHING = frozenset({"全部", "all"})


async def keep(call: Call) -> str:
    """记住: keep what the caller says of themselves."""
    if not call.arguments.strip():
        raise Refusal("用法：/记住 要记的话，例如 /记住 我不吃香菜")
    if call.row_id is None:
        raise Refusal("这里不记录，所以记不住。")
    try:
        kept = await remember_asked(call.app, call.message, call.row_id, call.arguments)
    except NotRemembered as refused:
        raise Refusal(f"没有记：{refused}") from refused
    place = "这是你在本群的记忆" if call.chat.is_group else "这是你的记忆"
    if not kept.is_new:
        return f"这条早就记着：#{kept.label} {kept.text}\n{_how_to_undo(kept.label)}"
    return f"记住了：#{kept.label} {kept.text}\n{place}。{_how_to_undo(kept.label)}"


def _how_to_undo(label: str) -> str:
    return f"不想要了，发送 /忘记 #{label}"


async def forget_one(call: Call) -> str:
    """忘记: forget one entry of the caller's own, or of the group's that is about them."""
    if call.arguments.strip() in EVERYTHING:
        raise Refusal("还不能一次忘记全部。请用 /我的记忆 查看编号，再逐条发送 /忘记 #编号")
    reference = read_reference(call.arguments)
    if reference is None or reference.word:
        raise Refusal("用法：/忘记 #编号，编号在 /我的记忆 里；群的记忆写 /忘记 群#编号")
    if call.message.sender.anonymous:
        raise Refusal(UNKNOWN)
    found = await _forgettable(call, reference)
    if not found:
        raise Refusal(UNKNOWN)
    if len(found) > 1:
        return "\n".join(("这个编号有两条，请说明是哪一条：", *map(_choice, found)))
    forgotten = await forget(call.app, call.chat, call.caller_id, found[0])
    if forgotten is None:
        raise Refusal(UNKNOWN)
    lines = [f"忘记了{_name(found[0])}，不能恢复。"]
    if forgotten.message_rows:
        lines.append(f"它依据的你的 {len(forgotten.message_rows)} 条消息也不再用来记忆和回答。")
    if forgotten.entries:
        lines.append(f"出自同样内容的另外 {forgotten.entries} 条记忆也一起忘记了。")
    return "\n".join(lines)


async def _forgettable(call: Call, reference: Reference) -> list[Found]:
    """Return what the caller may mean: their own entry, and in a group the group's as well."""
    found: list[Found | None] = []
    where = (call.app, call.chat, call.caller_id, reference.number)
    if reference.whose == "成员" and reference.id != call.caller_id:
        return []
    if reference.whose != "群":
        found.append(await own_entry(*where))
    group_id = reference.id or (call.chat.id if call.chat.is_group else "")
    if reference.whose == "群" and group_id:
        found.append(await group_entry(*where, group_id))
    elif reference.whose == "" and call.chat.is_group:
        found.append(await group_entry(*where, call.chat.id))
    return [one for one in found if one]


def _choice(found: Found) -> str:
    whose = "群" if found.is_of_group else "我"
    return f"/忘记 {whose}#{found.entry.label} — {_shown(found.entry, found.is_shown)}"


def _name(found: Found) -> str:
    """Return what the forgotten entry is called, without a word of it: the answer is kept too."""
    whose = "本群的记忆" if found.is_of_group else "你的记忆"
    return f"{whose} #{found.entry.label}（{DOCUMENTS[found.entry.document]}）"


def _shown(entry: Entry, is_shown: bool) -> str:
    kind = DOCUMENTS[entry.document]
    return f"{kind}：{entry.text}" if is_shown else kind


# Pins.


async def pin(call: Call) -> str:
    """置顶: keep an entry as it is, and show it first; or no longer."""
    reference = read_reference(call.arguments)
    if reference is None or (reference.word and reference.word not in OFF_WORDS):
        raise Refusal(
            "用法：/置顶 #编号，/置顶 #编号 取消；也可以写 群 20001 #编号 或 成员 30001 #编号"
        )
    entry = await _pinnable(call, reference)
    if entry is None:
        raise Refusal(UNKNOWN)
    wants_pin = not reference.word
    if entry.pinned != wants_pin:
        await _set_pin(call, entry, wants_pin)
    done = "已置顶，不会被压缩或过期" if wants_pin else "已取消置顶"
    is_shown = not call.chat.is_group or entry.stream.scope.kind == "group"
    return f"{done}：#{entry.label} {_shown(entry, is_shown)}"


async def _pinnable(call: Call, reference: Reference) -> Entry | None:
    """Return the entry that is meant, if the caller may pin it and this chat may see it."""
    for stream in await _streams(call, reference):
        found = await read_entry(call.app.db, stream, reference.number)
        if found:
            return found.entry
    return None


async def _streams(call: Call, reference: Reference) -> list[Stream]:
    chat, bot_id = call.chat, call.chat.bot_id
    whose = reference.whose or ("群" if chat.is_group else "我")
    if whose == "群":
        group = Chat(bot_id, "group", reference.id or chat.id)
        is_here = chat.is_group and group.id == chat.id
        is_allowed = is_here or (call.is_operator and not chat.is_group and bool(reference.id))
        return [Stream(Scope(bot_id, "group", group.id), group)] if is_allowed else []
    if not call.is_operator:
        return []
    member_id = reference.id if whose == "成员" else call.caller_id
    streams = await streams_of(call.app.db, Scope(bot_id, "member", member_id))
    if chat.is_group:
        return [stream for stream in streams if stream.origin == chat]
    return [s for s in streams if s.audience == "shared" or member_id == call.caller_id]


async def _set_pin(call: Call, entry: Entry, wants_pin: bool) -> None:
    shape = Shape(entry.document, entry.type, entry.tier, wants_pin)
    change = partial(_reshape, entry=entry, shape=shape)
    async with call.app.db.transaction() as tx:
        await rewrite(
            tx,
            {entry.stream: change},
            at=call.app.clock.now(),
            by=call.caller_id,
            why="pin" if wants_pin else "unpin",
        )


def _reshape(writer: StreamWriter, entry: Entry, shape: Shape) -> None:
    writer.reshape(entry.number, shape)

"""Remember: what somebody asks for becomes memory at once, by the rules of a reflection.

See ``docs/memory.md``, "Remembering and forgetting on request".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from bot.app import App
from bot.batch import batch_messages
from bot.errors import NotRemembered
from bot.memory.evidence import stream_of
from bot.memory.notes import NOTE, Again, Wish, judged_wish
from bot.memory.verdict import Added, Reason
from bot.memory.wording import ENTRY_MAX_CHARS
from bot.model import Batch, Chat, Message, StoredMessage, Stream, StreamMemory, entry_label
from bot.store.database import Database
from bot.store.memory import (
    Shape,
    StreamWriter,
    gone_among,
    living_entries,
    names_of_chat,
    rewrite,
)
from bot.store.messages import chat_row, messages_by_rows

About = Literal["sender", "group"]
"""Whom a note may be about, and no third."""

BY_TOOL = "remember"
BY_COMMAND = "command"
MAX_ASKED = 100
"""So many working notes, and so many entries that were asked for, live in one stream."""

CAUSES: Mapping[Reason, str] = {
    "text-missing": "没有说要记住什么。",
    "text-too-long": f"太长了，一条记忆最多 {ENTRY_MAX_CHARS} 个字。",
    "sensitive": "里面像有证件号、银行卡号、电话、密钥或密码，这些我不记。",
    "names-member": "提到了别人。关于别人的事，要本人说过才能记。",
    "wrong-speaker": "提到了别人。关于别人的事，要本人说过才能记。",
    "opted-out": "提到了不愿被记录的人。",
}
"""What is answered to who asked; of the other reasons, that they said nothing to rest on."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What was remembered."""

    stream: Stream
    number: int
    text: str
    is_new: bool
    """Else it was remembered already, and is now proven once more."""

    @property
    def label(self) -> str:
        """How the entry is shown."""
        return entry_label(self.number)


async def remember(
    app: App,
    chat: Chat,
    sender_id: str,
    row_ids: Iterable[int],
    text: str,
    *,
    about: About = "sender",
) -> Kept:
    """Write a note of the running conversation, to be used from the next turn on.

    Args:
        app: the running program.
        chat: where the turn is.
        sender_id: whose turn it is; nobody else can be written about.
        row_ids: the messages of the turn. Those of its sender are the evidence.
        text: what a model wants to note.
        about: the sender, or, in a group, the group.

    Raises:
        NotRemembered: it may not be remembered, and why.
    """
    _check_place(app, chat, sender_id, about)
    said = await messages_by_rows(app.db, row_ids)
    messages = [stored for stored in said if _is_by(stored, chat, sender_id)]
    document, tier = NOTE
    wish = Wish(text, sender_id if about == "sender" else None, document, tier)
    return await _kept(app, chat, sender_id, messages, wish, BY_TOOL)


async def remember_asked(app: App, message: Message, row_id: int, text: str) -> Kept:
    """Keep for good what somebody asks to be remembered of themselves by command.

    Args:
        app: the running program.
        message: the command, as it was stored.
        row_id: its row, which is the evidence.
        text: what stands behind the command's word.

    Raises:
        NotRemembered: it may not be remembered, and why.
    """
    chat, sender_id = message.chat, message.sender.user_id
    _check_place(app, chat, sender_id, "sender")
    [stored] = await messages_by_rows(app.db, [row_id]) or [None]
    messages = [stored] if stored and _is_by(stored, chat, sender_id) else []
    wish = Wish(text, sender_id, "profile", "profile", "note")
    return await _kept(app, chat, sender_id, messages, wish, BY_COMMAND, said=text)


def _check_place(app: App, chat: Chat, sender_id: str, about: About) -> None:
    if app.opt_outs.has(chat.bot_id, sender_id):
        raise NotRemembered("你选择了不被记录。想让我记，请先发送 /记我。")
    if not app.settings.of(chat).memory_enabled:
        raise NotRemembered("记忆已关闭，现在什么都不记。")
    if app.is_bot(sender_id, chat):
        raise NotRemembered("机器人说的话不记。")
    if about == "group" and not chat.is_group:
        raise NotRemembered("这里不是群。")


def _is_by(stored: StoredMessage, chat: Chat, sender_id: str) -> bool:
    message = stored.message
    return (
        message.chat == chat
        and message.direction == "inbound"
        and message.sender.user_id == sender_id
        and not message.sender.anonymous
    )


async def _kept(
    app: App,
    chat: Chat,
    sender_id: str,
    messages: Sequence[StoredMessage],
    wish: Wish,
    source: str,
    *,
    said: str | None = None,
) -> Kept:
    batch = await _batch(app, chat, messages, said)
    stream, now = stream_of(batch, wish.user_id), app.clock.now()
    rows = [stored.row_id for stored in messages]
    async with app.db.transaction() as tx:
        if await gone_among(tx, rows):
            raise NotRemembered("要记的话已经撤回了。")
        # Proofs decide nothing here, and reading them all would hold up whoever wants to write.
        memory = StreamMemory(stream, tuple(await living_entries(tx, stream)))
        opted_out = app.opt_outs.of(chat.bot_id)
        verdict = judged_wish(wish, batch, memory, opted_out=opted_out)
        if isinstance(verdict, str):
            raise NotRemembered(CAUSES.get(verdict, "没有本人说过的话作依据，不能记。"))
        if isinstance(verdict, Added) and _is_full(memory, wish, source):
            raise NotRemembered(f"已经记了 {MAX_ASKED} 条，请先用 /忘记 #id 去掉一些。")
        kept: list[Kept] = []
        change = partial(_write, verdict=verdict, wish=wish, source=source, kept=kept)
        await rewrite(tx, {stream: change}, at=now, by=sender_id, why=source)
    return kept[0]


def _is_full(memory: StreamMemory, wish: Wish, source: str) -> bool:
    same = (e for e in memory.entries if (e.tier, e.source_task) == (wish.tier, source))
    return sum(1 for _ in same) >= MAX_ASKED


async def _batch(
    app: App, chat: Chat, messages: Sequence[StoredMessage], said: str | None
) -> Batch:
    """Return the messages as the checks read them; a command says what stands behind its word."""
    read = await batch_messages(app, messages)
    if said is not None:
        read = tuple(replace(message, text=said, statement=said) for message in read)
    return Batch(
        task="group" if chat.is_group else "private-owner",
        chat=chat,
        messages=read,
        after_id=0,
        last_id=0,
        memories=(),
        names=await _names(app.db, chat),
    )


async def _names(db: Database, chat: Chat) -> dict[str, frozenset[str]]:
    chat_id = await chat_row(db, chat)
    return await names_of_chat(db, chat_id) if chat_id is not None else {}


def _write(
    writer: StreamWriter, *, verdict: Added | Again, wish: Wish, source: str, kept: list[Kept]
) -> None:
    if isinstance(verdict, Added):
        number = writer.add(
            verdict.document,
            verdict.text,
            verdict.proofs,
            type=verdict.type,
            date=verdict.date,
            tier=verdict.tier,
            source_task=source,
        )
        kept.append(Kept(verdict.stream, number, verdict.text, is_new=True))
        return
    entry = verdict.entry
    if verdict.rises:
        writer.reshape(entry.number, Shape("profile", wish.type, "profile", entry.pinned))
    writer.prove(entry.number, verdict.proof)
    kept.append(Kept(entry.stream, entry.number, entry.text, is_new=False))

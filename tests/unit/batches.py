"""Batches of one invented group and one invented private chat, for the tests of memory."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bot.memory.answer import parse_answer
from bot.memory.checks import check
from bot.memory.verdict import Checked
from bot.model import (
    Batch,
    BatchMessage,
    Chat,
    Document,
    Entry,
    ProfileType,
    Quoted,
    Scope,
    Stream,
    StreamMemory,
    Summary,
    TaskName,
    Tier,
)

BOT_ID = "10001"
GROUP = Chat(BOT_ID, "group", "20001")
PRIVATE = Chat(BOT_ID, "private", "30001")
ROW_OF_REF = 1000
"""What a message's row is ahead of its ref."""
NAMES: Mapping[str, frozenset[str]] = {
    "30001": frozenset({"小鱼"}),
    "30002": frozenset({"小鱼", "阿明"}),
    "30003": frozenset({"小鱼干", "Tom"}),
    BOT_ID: frozenset({"群忆"}),
}
GROUP_STREAM = Stream(Scope(BOT_ID, "group", GROUP.id), GROUP)


def member_stream(user_id: str, chat: Chat = GROUP) -> Stream:
    """Return the stream of a person in a chat."""
    return Stream(Scope(BOT_ID, "member", user_id), chat)


def said(
    ref: int,
    sender_id: str,
    text: str,
    *,
    day: str = "2026-08-22",
    statement: str | None = None,
    is_person: bool = True,
    is_anonymous: bool = False,
    quote: Quoted | None = None,
) -> BatchMessage:
    """Return a message; the bot's is outbound and no person's."""
    is_bot = sender_id == BOT_ID
    return BatchMessage(
        ref=ref,
        row_id=ROW_OF_REF + ref,
        sent_at=1_787_000_000_000 + ref,
        local_date=day,
        direction="outbound" if is_bot else "inbound",
        sender_id="BOT" if is_bot else sender_id,
        sender_name="群忆" if is_bot else sorted(NAMES.get(sender_id, {"路人"}))[0],
        is_person=is_person and not is_bot,
        text=text,
        statement=text if statement is None else statement,
        quote=quote,
        is_anonymous=is_anonymous,
    )


def batch_of(
    task: TaskName,
    messages: Sequence[BatchMessage],
    memories: Iterable[StreamMemory] = (),
    *,
    admins: Iterable[str] = (),
    names: Mapping[str, frozenset[str]] = NAMES,
) -> Batch:
    """Return a batch of the task's chat."""
    return Batch(
        task=task,
        chat=PRIVATE if task == "private-owner" else GROUP,
        messages=tuple(messages),
        after_id=ROW_OF_REF,
        last_id=ROW_OF_REF + len(messages),
        memories=tuple(memories),
        names=names,
        admins=frozenset(admins),
    )


def entry(
    number: int,
    text: str,
    document: Document = "memory",
    *,
    stream: Stream = GROUP_STREAM,
    proofs: tuple[tuple[int, ...], ...] = ((1,),),
    date: str | None = None,
    type: ProfileType | None = None,
    tier: Tier = "episodic",
) -> Entry:
    """Return a remembered line."""
    return Entry(number, stream, document, text, proofs, type, date, tier)


def remembered(*entries: Entry, stream: Stream = GROUP_STREAM, summary: str = "") -> StreamMemory:
    """Return the memory of a stream."""
    return StreamMemory(stream, entries, Summary(summary, (1,) if summary else ()))


def fact(text: str, *refs: int, **more: Any) -> dict[str, Any]:
    """Return an item as a model writes it."""
    return {"text": text, "refs": list(refs), **more}


def checked(
    answer: Mapping[str, Any] | str,
    batch: Batch,
    *,
    authors: Mapping[int, str] | None = None,
    opted_out: frozenset[str] = frozenset(),
) -> Checked:
    """Return an answer to ``batch`` after parser and checks."""
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    parsed = parse_answer(text, batch.task)
    return check(parsed, batch, authors=authors or {}, opted_out=opted_out)

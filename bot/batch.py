"""Batch: what one reflection reads, gathered from the store.

See ``docs/memory.md``, "Input".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.app import App
from bot.conversation.order import in_order
from bot.memory.transcript import shown_memories
from bot.model import (
    Batch,
    BatchMessage,
    Quoted,
    Scope,
    Segment,
    StoredMessage,
    Stream,
    StreamMemory,
)
from bot.onebot.render import render
from bot.store.memory import Remembered, admins_of_chat, names_of_chat, read_streams
from bot.store.messages import newest_with_id
from bot.store.tasks import Claim, Cursor, batch_rows, cursor

OWN_WORDS = frozenset({"text"})
"""Segments by which somebody says something themselves; to @ somebody or to show, forward or share
something is no statement."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A batch and how it was read."""

    batch: Batch
    cursor: Cursor
    authors: Mapping[int, str]
    """Who said the messages that the remembered entries rest on, by row."""
    chat_name: str

    @property
    def has_people(self) -> bool:
        """Whether any person says anything in it."""
        return any(message.is_person for message in self.batch.messages)


async def read_batch(app: App, claim: Claim) -> Reading:
    """Read the lowest rows above the task's cursor and the memory that they may change."""
    standing = await cursor(app.db, claim)
    limit = app.settings.of(claim.chat).memory_max_batch_messages
    rows = await batch_rows(
        app.db, claim, standing.last_id, min(limit, standing.batch_limit or limit)
    )
    messages = await batch_messages(app, rows.messages)
    memories = await read_streams(app.db, _streams(claim, messages))
    return Reading(
        batch=Batch(
            task=claim.task,
            chat=claim.chat,
            messages=messages,
            after_id=standing.last_id,
            last_id=rows.last_id,
            memories=shown_memories([found.memory for found in memories]),
            names=await names_of_chat(app.db, claim.chat_id),
            admins=await admins_of_chat(app.db, claim.chat_id) | app.config.superusers,
        ),
        cursor=standing,
        authors=_authors(memories),
        chat_name=claim.chat_name,
    )


def _authors(memories: Sequence[Remembered]) -> dict[int, str]:
    return {row: e.sender_id for found in memories for row, e in found.evidence.items()}


def _streams(claim: Claim, messages: Sequence[BatchMessage]) -> list[Stream]:
    chat = claim.chat
    if claim.task == "group":
        return [Stream(Scope(chat.bot_id, "group", chat.id), chat)]
    if claim.task == "private-owner":
        return [Stream(Scope(chat.bot_id, "member", chat.id), chat)]
    speakers = {m.sender_id: None for m in messages if m.is_person and not m.is_anonymous}
    return [Stream(Scope(chat.bot_id, "member", speaker), chat) for speaker in speakers]


async def batch_messages(app: App, rows: Sequence[StoredMessage]) -> tuple[BatchMessage, ...]:
    """Return messages as a reflection reads them, in order of time."""
    ordered = in_order(rows)
    return tuple([await _message(app, ref, stored) for ref, stored in enumerate(ordered, start=1)])


async def _message(app: App, ref: int, stored: StoredMessage) -> BatchMessage:
    message, sender = stored.message, stored.message.sender
    is_bot = message.direction == "outbound"
    return BatchMessage(
        ref=ref,
        row_id=stored.row_id,
        sent_at=message.sent_at,
        local_date=message.local_date,
        direction=message.direction,
        sender_id="BOT" if is_bot else sender.user_id,
        sender_name=sender.display_name,
        is_person=not is_bot and not app.is_bot(sender.user_id, message.chat),
        text=message.text,
        statement=_statement(message.segments),
        quote=await _quote(app, stored),
        is_anonymous=sender.anonymous,
    )


def _statement(segments: Sequence[Segment]) -> str:
    return render([segment for segment in segments if segment.type in OWN_WORDS], {}).strip()


async def _quote(app: App, stored: StoredMessage) -> Quoted | None:
    message = stored.message
    if message.reply_to is None:
        return None
    quoted = await newest_with_id(app.db, message.chat, message.reply_to)
    if quoted is None or quoted.is_gone or quoted.message.kind != "chat":
        return None
    is_bot = quoted.message.direction == "outbound"
    sender_id = "BOT" if is_bot else quoted.message.sender.user_id
    return Quoted(sender_id, quoted.message.text, quoted.row_id)


def summary_sources(batch: Batch, stream: Stream, message_ids: Iterable[int]) -> tuple[int, ...]:
    """Return all that a summary of a stream may tell of, besides the summary before.

    These are the messages it is made from, what those quote, and what the entries rest on that its
    writer was shown.
    """
    own = set(message_ids)
    quoted = quoted_rows(m for m in batch.messages if m.row_id in own)
    shown = {
        row for entry in memory_of(batch, stream).entries for proof in entry.proofs for row in proof
    }
    return tuple(sorted(own | shown | quoted))


def quoted_rows(messages: Iterable[BatchMessage]) -> set[int]:
    """Return the rows of what some messages quote."""
    rows = (message.quote.row_id for message in messages if message.quote)
    return {row for row in rows if row is not None}


def memory_of(batch: Batch, stream: Stream) -> StreamMemory:
    """Return what a batch shows of a stream."""
    return next((m for m in batch.memories if m.stream == stream), StreamMemory(stream))

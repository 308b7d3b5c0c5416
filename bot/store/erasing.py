"""Erasing what is hidden of somebody who opted out, in lots, and what was kept for a turn.

See ``docs/memory.md``, "Opting out". What memory and conversations rest on goes first, chat by
chat; then all the rest, row by row. Each lot takes texts, both indices and vectors along in one
transaction, and what is left is known from the rows, so a restart goes on.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import aiosqlite

from bot.model import Chat, Member, Shown
from bot.store.database import Database
from bot.store.entry_index import scrub_index
from bot.store.memory import NOWHERE, Fallout, forget_lot, forget_messages
from bot.store.messages import (
    END_OF_TIME,
    NOTHING,
    Heard,
    Quoting,
    drop_quoting,
    erase_rows,
    heard,
    quotable_texts,
    quoting,
)
from bot.store.queries import load

READ_ROWS = 10_000
"""So many rows are looked through at once for those of one person."""

SPAN_MESSAGES = 1_000
"""So many of theirs are looked for in answers at once."""

SHOWN_TURNS = 200
"""No prompt shows more turns than these of a chat."""

_sql = load("erasing")


@dataclass(frozen=True, slots=True)
class Hidden:
    """Somebody of whom something is hidden, and not erased yet."""

    row_id: int
    member: Member
    hidden_until: int
    """Messages of theirs up to this row are shown nowhere."""
    erased_until: int
    """Those up to this one are erased."""


@dataclass(frozen=True, slots=True)
class Span:
    """Messages of somebody that are to be erased, and what else goes with them."""

    row_ids: tuple[int, ...]
    until: int = 0
    """All of theirs up to this row are among them, or are erased; 0 if that is not known."""
    texts: frozenset[str] = frozenset()
    """What answers must not quote any more."""
    quoting: Quoting = NOTHING
    where: Heard = NOWHERE
    """Where answers may have quoted them."""

    def lots(self, size: int) -> list["Span"]:
        """Return it in parts; what quotes goes with the first, while the texts are still there."""
        starts = range(0, max(1, len(self.row_ids)), size)
        lots = [Span(self.row_ids[start : start + size], where=self.where) for start in starts]
        lots[0] = replace(lots[0], texts=self.texts, quoting=self.quoting)
        lots[-1] = replace(lots[-1], until=self.until)
        return lots


def _hidden(row: aiosqlite.Row) -> Hidden:
    member = Member(row["bot_id"], row["user_id"])
    return Hidden(row["id"], member, row["hidden_until"], row["erased_until"])


async def hidden_members(db: Database) -> list[Hidden]:
    """Return everybody of whom something is to be erased."""
    async with db.reader() as connection:
        return [_hidden(row) async for row in _sql.hidden_members(connection)]


async def hidden_of(db: Database, member: Member) -> Hidden | None:
    """Return what is to be erased of somebody, ``None`` if nothing is."""
    async with db.reader() as connection:
        row = await _sql.hidden_member(connection, bot_id=member.bot_id, user_id=member.user_id)
    return _hidden(row) if row else None


async def chats_of(db: Database, hidden: Hidden) -> dict[int, Chat]:
    """Return the chats in which somebody ever said something, by their rows."""
    member = hidden.member
    key = {"bot_id": member.bot_id, "user_id": member.user_id, "member_id": hidden.row_id}
    async with db.reader() as connection:
        rows = [row async for row in _sql.chats_of(connection, **key)]
    return {row["id"]: Chat(member.bot_id, row["kind"], row["peer_id"]) for row in rows}


def _key(hidden: Hidden) -> dict[str, int]:
    return {"member_id": hidden.row_id, "hidden_until": hidden.hidden_until}


async def leaning_span(db: Database, hidden: Hidden, chat_id: int, beside: Collection[int]) -> Span:
    """Return the messages of somebody on which memory of a chat, or its conversation, rests.

    Args:
        db: the database.
        hidden: who.
        chat_id: the row of the chat.
        beside: the rows of all chats in which answers may have quoted them.
    """
    async with db.reader() as connection:
        found = _sql.leaning(connection, **_key(hidden), chat_id=chat_id, turns=SHOWN_TURNS)
        ids = [row["id"] async for row in found]
        doomed = _sql.doomed(connection, **_key(hidden), ids=json.dumps(ids))
        texts = frozenset([row["text"] async for row in doomed])
        return await _span(connection, ids, 0, beside, texts)


async def next_span(db: Database, hidden: Hidden, beside: Collection[int]) -> Span:
    """Return the next messages of somebody that are to be erased, as ``leaning_span`` does."""
    after, ids = hidden.erased_until, []
    while not ids and after < hidden.hidden_until:
        until = min(after + READ_ROWS, hidden.hidden_until)
        key = {"member_id": hidden.row_id, "after": after, "until": until}
        async with db.reader() as connection:
            found = _sql.theirs(connection, **key, limit=SPAN_MESSAGES)
            ids = [row["id"] async for row in found]
        after = ids[-1] if len(ids) == SPAN_MESSAGES else until
    async with db.reader() as connection:
        return await _span(connection, ids, after, beside)


async def _span(
    connection: aiosqlite.Connection,
    ids: Sequence[int],
    until: int,
    beside: Collection[int],
    doomed: frozenset[str] = frozenset(),
) -> Span:
    where = await heard(connection, ids) | Heard(frozenset(beside), END_OF_TIME)
    texts = await quotable_texts(connection, ids) | doomed
    found = await quoting(connection, where, texts)
    return Span(tuple(ids), until, texts, found, where)


async def quoting_span(db: Database, where: Heard, texts: frozenset[str]) -> Span | None:
    """Return what still repeats some texts that are erased, ``None`` if nothing does."""
    async with db.reader() as connection:
        found = await quoting(connection, where, texts)
    return None if found == NOTHING else Span((), texts=texts, quoting=found, where=where)


@dataclass(frozen=True, slots=True)
class Erasure:
    """What was erased."""

    messages: int = 0
    """How many had a text."""
    entries: int = 0
    """How many remembered lines fell."""
    shown: Shown = field(default_factory=Shown)
    """Where prompts may have shown what is gone now."""

    def __add__(self, other: "Erasure") -> "Erasure":
        return Erasure(
            self.messages + other.messages,
            self.entries + other.entries,
            self.shown | other.shown,
        )


async def erase_lot(
    tx: aiosqlite.Connection, hidden: Hidden, lot: Span, at: int, *, in_memory: bool
) -> Erasure:
    """Erase some messages, and let answers that quote them lose their text.

    Args:
        tx: the write transaction.
        hidden: whose they are.
        lot: which.
        at: UTC milliseconds.
        in_memory: let fall what rests on them; else nothing does any more. What the record of
            changes tells of them, and the file of the index, goes apart (``blank_record``,
            ``scrub_entries``).
    """
    count = await _sql.with_text(tx, ids=json.dumps(lot.row_ids))
    reached = await _drop_quoting(tx, lot, at)
    await erase_rows(tx, lot.row_ids, at)
    if in_memory:
        reached |= await forget_lot(tx, lot.row_ids, at)
    if lot.until:
        await _sql.note_erased(tx, member_id=hidden.row_id, until=lot.until)
    return Erasure(count, len(reached.fallen), reached.shown)


async def erase_quotes(tx: aiosqlite.Connection, span: Span, at: int) -> Erasure:
    """Let what ``quoting_span`` found lose its text, with what memory made of it."""
    reached = await _drop_quoting(tx, span, at)
    return Erasure(0, len(reached.fallen), reached.shown)


async def _drop_quoting(tx: aiosqlite.Connection, lot: Span, at: int) -> Fallout:
    reached = Fallout(shown=await drop_quoting(tx, lot.quoting, lot.texts))
    if answers := sorted(lot.quoting.messages):
        reached |= await forget_messages(tx, answers, at, lot.where)
    return reached


async def scrub_entries(db: Database) -> None:
    """Take the words of entries that fell out of the file of their index."""
    async with db.transaction() as tx:
        await scrub_index(tx)


async def streams_in(db: Database, chat_id: int) -> list[int]:
    """Return the rows of the streams that come from a chat."""
    async with db.reader() as connection:
        return [row["id"] async for row in _sql.streams_in(connection, chat_id=chat_id)]


async def blank_record(db: Database, hidden: Hidden, stream_id: int) -> None:
    """Let the record of changes of a stream tell nothing that rests on messages of somebody.

    Most of that is reading, which holds up nobody.
    """
    key = {**_key(hidden), "stream_id": stream_id}
    async with db.reader() as connection:
        ids = [row["id"] async for row in _sql.telling_revisions(connection, **key)]
        since = await _sql.summarised_since(connection, **key)
    if not ids and since is None:
        return
    async with db.transaction() as tx:
        if since is not None:
            await _sql.blank_summaries(tx, stream_id=stream_id, since=since)
        await _sql.blank_revisions(tx, ids=json.dumps(ids))


async def kept_too_long(db: Database, *, now: int, longest_ms: int, limit: int) -> dict[int, Chat]:
    """Return messages that were kept for a turn long enough, with where they were said.

    Args:
        db: the database.
        now: UTC milliseconds.
        longest_ms: none is kept for longer; one that is came before the clock was set back.
        limit: how many at most.
    """
    key = {"now": now, "latest": now + longest_ms, "limit": limit}
    async with db.reader() as connection:
        rows = [row async for row in _sql.kept_too_long(connection, **key)]
    return {row["id"]: Chat(row["bot_id"], row["kind"], row["peer_id"]) for row in rows}


async def erase_kept(tx: aiosqlite.Connection, row_ids: Collection[int], at: int) -> Erasure:
    """Erase what was kept for a turn, with its answer; others that quote it lose their text."""
    span = await _span(tx, list(row_ids), 0, ())
    reached = await _drop_quoting(tx, span, at)
    await erase_rows(tx, span.row_ids, at)
    return Erasure(len(span.row_ids), len(reached.fallen), reached.shown)

"""Reminders: what people asked to be told, when, and how far that got.

See ``docs/tools.md``, "Reminders".
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

import aiosqlite

from bot.model import Chat, Reminder
from bot.store.database import Database
from bot.store.messages import chat_key
from bot.store.queries import load

KEPT_MS = 30 * 24 * 3_600_000
"""So long a reminder that ended is kept, without its text."""

_sql = load("reminders")

NotAdded = Literal["full", "gone"]
"""Too many wait already; what it would be made from was taken back."""


@dataclass(frozen=True, slots=True)
class DueReminder:
    """A reminder whose time has come, and what decides whether it may be sent."""

    reminder: Reminder
    attempts: int
    removed: bool
    """The account is no longer in the chat."""
    blocked: bool
    has_left: bool
    """The person is no longer in the group."""
    source_row: int
    """The newest of the messages that it was made from."""


async def add_reminder(
    tx: aiosqlite.Connection,
    chat: Chat,
    user_id: str,
    row_ids: Collection[int],
    *,
    due_at: int,
    text: str,
    begun_at: int,
    at: int,
    max_open: int,
) -> int | NotAdded:
    """Keep a reminder and return its number.

    Args:
        tx: the write transaction.
        chat: where it will be sent.
        user_id: who asked for it.
        row_ids: the messages that asked for it.
        due_at: UTC milliseconds, as all times here.
        text: one line.
        begun_at: when the turn began; what an earlier try of it left is dropped.
        at: now.
        max_open: so many of one person wait at most.
    """
    ids = json.dumps(list(row_ids))
    if await _sql.gone_count(tx, message_ids=ids):
        return "gone"
    await _sql.drop_earlier(tx, message_ids=ids, begun_at=begun_at, at=at)
    if await _sql.open_count(tx, bot_id=chat.bot_id, user_id=user_id) >= max_open:
        return "full"
    number = await _sql.add_reminder(
        tx, **chat_key(chat), user_id=user_id, due_at=due_at, text=text, at=at
    )
    await _sql.add_messages(tx, id=number, message_ids=ids)
    await _sql.forget_ended(tx, before=at - KEPT_MS)
    return number


async def due_reminders(
    db: Database, bot_ids: Iterable[str], now: int, limit: int, *, of_a_chat: int
) -> list[DueReminder]:
    """Return the reminders of some accounts whose time has come: of each chat the oldest first.

    Args:
        db: the database.
        bot_ids: the accounts.
        now: UTC milliseconds.
        limit: how many at most.
        of_a_chat: how many of them may be of one chat.
    """
    bounds = {"now": now, "limit": limit, "of_a_chat": of_a_chat}
    asked = {"bot_ids": json.dumps(list(bot_ids)), **bounds}
    async with db.reader() as connection:
        rows = [row async for row in _sql.due(connection, **asked)]
    return [
        DueReminder(
            _reminder(row),
            row["attempts"],
            bool(row["removed"]),
            bool(row["blocked"]),
            bool(row["has_left"]),
            row["source_row"],
        )
        for row in rows
    ]


async def next_due(db: Database, bot_ids: Iterable[str], now: int) -> int | None:
    """Return when the next reminder of some accounts is due, UTC milliseconds."""
    asked = {"bot_ids": json.dumps(list(bot_ids)), "now": now}
    async with db.reader() as connection:
        return await _sql.next_due(connection, **asked)


async def claim_reminder(tx: aiosqlite.Connection, reminder_id: int, at: int) -> bool:
    """Note that a reminder is being sent; false if it is not to be sent any more."""
    return await _sql.claim(tx, id=reminder_id, at=at) > 0


async def end_reminder(
    tx: aiosqlite.Connection,
    reminder_id: int,
    state: Literal["sent", "failed", "dropped"],
    *,
    at: int,
    sent_row: int | None = None,
    error: str = "",
) -> None:
    """Note how a reminder ended, and forget its text."""
    await _sql.end(tx, id=reminder_id, state=state, at=at, sent_row=sent_row, error=error)
    if sent_row is not None:
        await _sql.blank_sent(tx, id=reminder_id, sent_row=sent_row)


async def put_off_reminder(
    tx: aiosqlite.Connection, reminder_id: int, *, next_at: int, failed: bool, error: str
) -> None:
    """Let a reminder that did not go out be sent later; ``failed`` counts as a try."""
    await _sql.put_off(tx, id=reminder_id, next_at=next_at, failed=int(failed), error=error)


async def settle_reminders(tx: aiosqlite.Connection, *, before: int, at: int) -> None:
    """Take as sent what a process that is dead was sending."""
    await _sql.settle(tx, before=before, at=at)


async def open_reminders(
    db: Database, chat: Chat, user_id: str, *, everywhere: bool
) -> list[Reminder]:
    """Return what a person waits for in a chat, or in all of theirs, the next first."""
    asked = {**chat_key(chat), "user_id": user_id, "everywhere": everywhere}
    async with db.reader() as connection:
        return [_reminder(row) async for row in _sql.open_of(connection, **asked)]


async def cancel_reminders(tx: aiosqlite.Connection, ids: Iterable[int], at: int) -> int:
    """Let some reminders not be sent, and return how many still waited."""
    return await _sql.cancel(tx, ids=json.dumps(list(ids)), at=at)


def _reminder(row: aiosqlite.Row) -> Reminder:
    chat = Chat(row["bot_id"], row["kind"], row["peer_id"])
    return Reminder(row["id"], chat, row["user_id"], row["due_at"], row["text"])

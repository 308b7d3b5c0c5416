"""Stretches of a chat: what was said before and behind some messages.

See ``docs/search.md``, "Ranking messages" and "Context". Whatever is read here is talk, no
command or notice, and was neither recalled nor forgotten.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.model import Chat, Message, Sender, StoredMessage
from bot.store.message_search import Window
from bot.store.queries import load
from bot.store.sqlite import run

_sql = load("stretches")


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a stretch goes."""

    back: int
    ahead: int


def stretches(
    connection: sqlite3.Connection,
    chat: Chat,
    chat_id: int,
    rows: Iterable[int],
    reach: Reach,
) -> dict[int, list[StoredMessage]]:
    """Return the stretch around each of some messages, oldest first, by their rows.

    Args:
        connection: any.
        chat: where they are.
        chat_id: its row.
        rows: the messages; those that may not be shown are absent.
        reach: how much of what is around them.
    """
    found = run(connection, (_sql.standing, {"chat_id": chat_id, "ids": json.dumps(list(rows))}))
    return {row["id"]: _stretch(connection, chat, chat_id, row, reach) for row in found}


def _stretch(
    connection: sqlite3.Connection, chat: Chat, chat_id: int, place: sqlite3.Row, reach: Reach
) -> list[StoredMessage]:
    at = {"chat_id": chat_id, "id": place["id"], "sent_at": place["sent_at"]}
    before = run(connection, (_sql.up_to, {**at, "limit": reach.back + 1}))
    behind = run(connection, (_sql.behind, {**at, "limit": reach.ahead}))
    return [_told(row, chat) for row in [*reversed(before), *behind]]


def quoted(
    connection: sqlite3.Connection, chat: Chat, chat_id: int, said: StoredMessage
) -> StoredMessage | None:
    """Return what a message quotes, if it may be shown."""
    if said.message.reply_to is None:
        return None
    key = {
        "chat_id": chat_id,
        "id": said.row_id,
        "platform_id": said.message.reply_to,
        "sent_at": said.message.sent_at,
    }
    rows = run(connection, (_sql.answered, key))
    return _told(rows[0], chat) if rows else None


def latest(
    connection: sqlite3.Connection, chat_id: int, window: Window, limit: int
) -> Sequence[sqlite3.Row]:
    """Return the rows of the newest messages within a window, the newest first."""
    bounds = {
        "chat_id": chat_id,
        "since": window.begins_at,
        "until": window.ends_at,
        "sender_id": window.sender_id,
        "hidden": json.dumps(sorted(window.hidden)),
        "limit": limit,
    }
    return run(connection, (_sql.latest, bounds))


def _told(row: sqlite3.Row, chat: Chat) -> StoredMessage:
    """Return a message as far as it is shown and ranked: without segments and mentions."""
    (
        row_id,
        platform_id,
        direction,
        sent_at,
        received_at,
        local_date,
        sequence,
        name,
        text,
        reply_to,
        user_id,
        anonymous,
    ) = row
    message = Message(
        chat=chat,
        platform_id=platform_id,
        sender=Sender(user_id, nickname=name, anonymous=bool(anonymous)),
        direction=direction,
        sent_at=sent_at,
        received_at=received_at,
        local_date=local_date,
        segments=(),
        text=text,
        sequence=sequence,
        reply_to=reply_to,
    )
    return StoredMessage(row_id, message)

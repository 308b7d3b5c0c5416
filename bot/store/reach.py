"""Reach: which streams a turn may read. Whatever feeds a prompt asks here, and only here.

See ``docs/memory.md``, "What a turn may read".
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from bot.model import Chat, Scope, Stream
from bot.store.database import Database
from bot.store.messages import chat_key
from bot.store.queries import load
from bot.store.sqlite import Call, in_order

Place = Literal["group", "here", "elsewhere", "own"]
"""Where a stream stands to a turn: that of its group, the sender's of this group, the sender's of
other groups, any of the person in their private chat. The view ``place_documents`` says which
documents of each may be read."""

_sql = load("reach")


@dataclass(frozen=True, slots=True)
class Readable:
    """A stream that a turn may read."""

    row_id: int
    scope_id: int
    stream: Stream
    place: Place
    version: int
    """It counts the changes of the stream."""
    summary: str


def readable_call(chat: Chat, user_id: str, *, cross_group: bool) -> Call:
    """Return the query for what a turn may read, for a visit that asks more.

    Args:
        chat: where the turn is.
        user_id: its sender.
        cross_group: ``memoryMemberCrossGroup``; the person's own switch counts besides.
    """
    return (_sql.readable, {**chat_key(chat), "user_id": user_id, "cross_group": cross_group})


def readable_of(rows: Iterable[sqlite3.Row], bot_id: str) -> list[Readable]:
    """Return the streams that the rows of ``readable_call`` hold, in the order of their making."""
    return [
        Readable(
            row["id"],
            row["scope_id"],
            Stream(
                Scope(bot_id, row["scope_kind"], row["key"]),
                Chat(bot_id, row["kind"], row["peer_id"]),
            ),
            row["place"],
            row["version"],
            row["summary"],
        )
        for row in rows
    ]


async def readable(db: Database, chat: Chat, user_id: str, *, cross_group: bool) -> list[Readable]:
    """Return the streams that a turn may read."""
    async with db.reader() as connection:
        call = readable_call(chat, user_id, cross_group=cross_group)
        [rows] = await in_order(connection, call)
    return readable_of(rows, chat.bot_id)

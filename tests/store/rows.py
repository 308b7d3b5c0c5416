"""Invented people, chats and messages, and plain looks at the rows they became."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from bot.clock import local_date
from bot.model import Chat, Message, Segment, Sender
from bot.store.database import Database
from bot.store.ingest import Arrival, Receipt, store_arrivals

BOT = "10001"
ALICE = "30001"
BRUNO = "30002"
GROUP = Chat(BOT, "group", "20001")
OTHER_GROUP = Chat(BOT, "group", "20002")
PRIVATE = Chat(BOT, "private", ALICE)

NOON = 1_790_000_000_000
"""UTC milliseconds; every test's clock starts here."""

ZONE = ZoneInfo("Asia/Shanghai")
SECOND = 1_000
MINUTE = 60_000


def text(value: str) -> tuple[Segment, ...]:
    """Return one text segment."""
    return (Segment("text", {"text": value}),)


def said(
    value: str = "你好",
    *,
    id: str = "700",
    at: int = NOON,
    chat: Chat = GROUP,
    by: str = ALICE,
    received_at: int | None = None,
    **fields: Any,
) -> Message:
    """Return an inbound message; ``fields`` replace any other field of it."""
    plain = Message(
        chat=chat,
        platform_id=id,
        sender=Sender(by, nickname=f"nick-{by}"),
        direction="inbound",
        sent_at=at,
        received_at=at if received_at is None else received_at,
        local_date=local_date(at, ZONE),
        segments=text(value),
        text=value,
    )
    return replace(plain, **fields)


def own(value: str = "我在", *, id: str = "900", at: int = NOON, **fields: Any) -> Message:
    """Return a message of the account itself."""
    given = {"direction": "outbound", "sender": Sender(BOT), **fields}
    return said(value, id=id, at=at, **given)


def carded(card: str, *, by: str = ALICE, nickname: str = "", **fields: Any) -> Message:
    """Return an inbound message whose sender shows a card."""
    return said(sender=Sender(by, nickname=nickname, card=card), by=by, **fields)


async def store(db: Database, *messages: Message, **flags: bool) -> list[Receipt]:
    """Store messages together; the account's own are never pending."""
    return await store_arrivals(db, [arrival(message, **flags) for message in messages])


async def store_apart(db: Database, *messages: Message, **flags: bool) -> list[Receipt]:
    """Store messages one transaction after the other."""
    return [(await store(db, message, **flags))[0] for message in messages]


def arrival(message: Message, *, live: bool = True, pending: bool | None = None) -> Arrival:
    """Return a message on its way, pending as ingest would have it."""
    waits = message.direction == "inbound" and message.kind == "chat"
    return Arrival(message, live=live, pending=waits if pending is None else pending)


async def rows(db: Database, sql: str, *values: object) -> list[sqlite3.Row]:
    """Return what a statement reads."""
    async with db.reader() as connection:
        return list(await connection.execute_fetchall(sql, values))


async def values(db: Database, sql: str, *bound: object) -> list[Any]:
    """Return the first column of what a statement reads."""
    return [row[0] for row in await rows(db, sql, *bound)]


async def value(db: Database, sql: str, *bound: object) -> Any:
    """Return the first column of the first row."""
    return (await values(db, sql, *bound))[0]


async def message_count(db: Database) -> int:
    """Return how many message rows there are."""
    return await value(db, "SELECT count(*) FROM messages")


async def pending(db: Database, chat: Chat = GROUP) -> dict[str, int]:
    """Return what waits for each task of a chat."""
    found = await rows(
        db,
        "SELECT task, pending FROM cursors JOIN chats AS c ON c.id = chat_id "
        "WHERE c.bot_id = ? AND c.kind = ? AND c.peer_id = ?",
        chat.bot_id,
        chat.kind,
        chat.id,
    )
    return {row["task"]: row["pending"] for row in found}


def outside(path: Path, sql: str, bound: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """Return what another connection reads of the file."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql, bound).fetchall()
    finally:
        connection.close()


def indexed(path: Path) -> dict[int, set[str]]:
    """Return the tokens of every message in the index."""
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE VIRTUAL TABLE temp.tokens USING fts5vocab ('main', 'message_index', 'instance')"
    )
    found: dict[int, set[str]] = {}
    try:
        for token, row_id in connection.execute("SELECT term, doc FROM temp.tokens"):
            found.setdefault(row_id, set()).add(token)
    finally:
        connection.close()
    return found

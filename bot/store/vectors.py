"""Vectors of messages: which are wanting, what is kept of them, and how far that has come.

See ``docs/search.md``, "Vectors". What erases a message's text erases its vector, by a trigger.
"""

import json
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from bot.search.matrix import PAGE_SLOTS
from bot.store.database import Database
from bot.store.queries import load
from bot.store.sqlite import run, visit

FOREIGN_PAGES = 64
"""Pages of other spaces that go with each lot; no page has less than one message."""

_sql = load("vectors")


@dataclass(frozen=True, slots=True)
class Space:
    """Where the vectors of one embedder lie."""

    id: int
    embedder: str
    dimensions: int
    newest: int
    """Up to this row all was looked at …"""
    oldest: int
    """… down to this one."""


@dataclass(frozen=True, slots=True)
class Wanting:
    """A message that was not looked at yet."""

    row_id: int
    chat_id: int
    member_id: int
    sent_at: int
    sender_name: str
    text: str
    is_talk: bool
    """No command or notice, and neither recalled nor forgotten."""
    is_served: bool
    """Its chat is not switched off."""


@dataclass(frozen=True, slots=True)
class Lot:
    """Messages that are looked at together, and which end of a space they move."""

    side: str
    """``requested``, ``newer`` or ``older``."""
    messages: tuple[Wanting, ...]
    space: Space


@dataclass(frozen=True, slots=True)
class Made:
    """What was made of a message."""

    of: Wanting
    vector: bytes
    slot: bytes


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A page of sketches as it is stored."""

    id: int
    changed: int
    slots: bytes


class SpaceMoved(Exception):
    """Another process has looked at the same messages meanwhile; nothing was written."""


async def enter_space(db: Database, embedder: str, dimensions: int) -> Space:
    """Return the space of an embedder, opened anew if another one was in use."""
    return await db.write(partial(_enter, embedder=embedder, dimensions=dimensions))


async def space_in_use(db: Database, embedder: str, dimensions: int) -> Space | None:
    """Return the space in use if it is that of an embedder."""
    async with db.reader() as connection:
        return await visit(connection, lambda c: space_within(c, embedder, dimensions))


def space_within(connection: sqlite3.Connection, embedder: str, dimensions: int) -> Space | None:
    """Return the same, for a visit that asks more."""
    rows = run(connection, (_sql.space, {}))
    found = Space(*rows[0]) if rows else None
    is_theirs = found and (found.embedder, found.dimensions) == (embedder, dimensions)
    return found if is_theirs else None


def _enter(connection: sqlite3.Connection, embedder: str, dimensions: int) -> Space:
    found = space_within(connection, embedder, dimensions)
    if found is not None:
        return found
    run(connection, (_sql.open_space, {"embedder": embedder, "dimensions": dimensions}))
    return Space(*run(connection, (_sql.space, {}))[0])


async def next_lot(db: Database, space: Space, limit: int) -> Lot | None:
    """Return the messages to look at next: changed ones, then new ones, then older ones.

    Args:
        db: the store.
        space: as ``enter_space`` returned it, or older.
        limit: how many to look at.
    """
    async with db.reader() as connection:
        return await visit(connection, partial(_next, space=space, limit=limit))


def _next(connection: sqlite3.Connection, space: Space, limit: int) -> Lot | None:
    current = space_within(connection, space.embedder, space.dimensions)
    if current is None:
        return None
    sides = (
        ("requested", _sql.requested, {}),
        ("newer", _sql.newer, {"newest": current.newest}),
        ("older", _sql.older, {"oldest": current.oldest}),
    )
    for side, query, bound in sides:
        if side == "older" and not current.oldest:
            continue
        rows = run(connection, (query, {**bound, "limit": limit}))
        if rows:
            return Lot(side, tuple(_wanting(row) for row in rows), current)
    return Lot("older", (), current) if current.oldest else None


def _wanting(row: sqlite3.Row) -> Wanting:
    return Wanting(
        row_id=row["id"],
        chat_id=row["chat_id"],
        member_id=row["member_id"],
        sent_at=row["sent_at"],
        sender_name=row["sender_name"],
        text=row["text"],
        is_talk=row["kind"] == "chat" and not row["gone"],
        is_served=row["access"] != "disabled",
    )


async def keep_lot(db: Database, lot: Lot, made: Sequence[Made]) -> None:
    """Keep what was made of a lot, and that all of it was looked at, in one transaction.

    What was recalled, forgotten or changed meanwhile is left out.

    Raises:
        SpaceMoved: another process was faster.
    """
    await db.write(partial(_keep, lot=lot, made=made))


def _keep(connection: sqlite3.Connection, lot: Lot, made: Sequence[Made]) -> None:
    _move(connection, lot)
    for one in lot.messages:
        run(connection, (_sql.request_again, {"id": one.row_id, "text": one.text}))
    still = [one for one in made if _is_unchanged(connection, one.of)]
    by_chat: dict[int, list[Made]] = {}
    for one in still:
        run(connection, (_sql.drop_vector, {"id": one.of.row_id}))
        by_chat.setdefault(one.of.chat_id, []).append(one)
    for chat_id, of_chat in by_chat.items():
        _put(connection, lot.space.id, chat_id, of_chat)


def _is_unchanged(connection: sqlite3.Connection, message: Wanting) -> bool:
    query = (_sql.is_unchanged, {"id": message.row_id, "text": message.text})
    return bool(run(connection, query))


def _move(connection: sqlite3.Connection, lot: Lot) -> None:
    rows = [message.row_id for message in lot.messages]
    space = lot.space
    if lot.side == "requested":
        run(connection, (_sql.drop_requests, {"ids": json.dumps(rows)}))
        return
    key = {"space_id": space.id}
    if lot.side == "newer":
        move = (_sql.move_newest, {**key, "row_id": rows[-1], "expected": space.newest})
    else:
        low = rows[-1] if rows else 0
        move = (_sql.move_oldest, {**key, "row_id": low, "expected": space.oldest})
        run(connection, (_sql.drop_foreign, {**key, "low": low, "high": space.oldest - 1}))
        run(connection, (_sql.drop_foreign_pages, {**key, "limit": FOREIGN_PAGES}))
    query, parameters = move
    if connection.execute(query.sql, parameters).rowcount != 1:
        raise SpaceMoved


def _put(connection: sqlite3.Connection, space_id: int, chat_id: int, made: Sequence[Made]) -> None:
    """Add vectors of one chat, on the page that is being filled and on new ones behind it."""
    key = {"space_id": space_id, "chat_id": chat_id}
    rows = run(connection, (_sql.page_with_room, key))
    page_id, filled = rows[0] if rows else (0, PAGE_SLOTS)
    made = list(made)
    while made:
        if filled >= PAGE_SLOTS:
            query, parameters = _sql.add_page, key
            page_id, filled = connection.execute(query.sql, parameters).lastrowid or 0, 0
        part, made = made[: PAGE_SLOTS - filled], made[PAGE_SLOTS - filled :]
        _fill(connection, space_id, (page_id, filled), part)
        filled += len(part)


def _fill(
    connection: sqlite3.Connection, space_id: int, place: tuple[int, int], made: Sequence[Made]
) -> None:
    page_id, filled = place
    slots = b"".join(one.slot for one in made)
    run(connection, (_sql.fill_page, {"id": page_id, "slots": slots, "count": len(made)}))
    for number, one in enumerate(made, start=filled):
        vector = {
            "id": one.of.row_id,
            "space_id": space_id,
            "page_id": page_id,
            "slot": number,
            "vector": one.vector,
        }
        run(connection, (_sql.add_vector, vector))


async def pages_since(
    db: Database, space_id: int, chat_id: int, seen: int, limit: int = 1_000
) -> list[KeptPage]:
    """Return the first pages of a chat that are new or changed since change ``seen``."""
    key = {"space_id": space_id, "chat_id": chat_id, "seen": seen, "limit": limit}
    async with db.reader() as connection:
        rows = await visit(connection, lambda within: run(within, (_sql.pages_since, key)))
    return [KeptPage(*row) for row in rows]


async def vectors_of(db: Database, space_id: int, row_ids: Collection[int]) -> dict[int, bytes]:
    """Return the vectors of some messages by row; those that have none are absent."""
    key = {"space_id": space_id, "ids": json.dumps(list(row_ids))}
    async with db.reader() as connection:
        rows = await visit(connection, lambda within: run(within, (_sql.vectors_of, key)))
    return {row["message_id"]: row["vector"] for row in rows}


async def member_row(db: Database, bot_id: str, user_id: str) -> int | None:
    """Return the row of somebody, ``None`` if they never said a word."""
    async with db.reader() as connection:
        return await _sql.member_row(connection, bot_id=bot_id, user_id=user_id)

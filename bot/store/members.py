"""Who the members of a group are: what everybody there can see of them."""

from dataclasses import dataclass

import aiosqlite

from bot.model import Chat, Role
from bot.store.database import Database
from bot.store.messages import chat_key
from bot.store.queries import load

_sql = load("members")


@dataclass(frozen=True, slots=True)
class Membership:
    """Somebody in a group, as the newest events showed them; names are raw."""

    user_id: str
    nickname: str
    card: str
    role: Role
    title: str
    joined_at: int | None
    """UTC milliseconds, if the account saw them come."""
    left_at: int | None
    first_seen: int


async def member_of(db: Database, chat: Chat, user_id: str) -> Membership | None:
    """Return a member of a group, ``None`` if none with that id is known there."""
    async with db.reader() as connection:
        found = _sql.in_group(connection, **chat_key(chat), user_id=user_id)
        return next((_membership(row) for row in [row async for row in found]), None)


async def members_named(db: Database, chat: Chat, name: str, limit: int) -> list[Membership]:
    """Return the members of a group with ``name`` in a name they have or had, closest first."""
    async with db.reader() as connection:
        found = _sql.named_in_group(connection, **chat_key(chat), name=name, limit=limit)
        return [_membership(row) async for row in found]


async def bearers(db: Database, chat: Chat, name: str) -> list[str]:
    """Return the user ids of who has, or ever had, exactly this name in a group."""
    async with db.reader() as connection:
        found = _sql.bearers(connection, **chat_key(chat), name=name)
        return [row["user_id"] async for row in found]


def _membership(row: aiosqlite.Row) -> Membership:
    return Membership(*row)


async def called_in(db: Database, chat: Chat, user_id: str, limit: int) -> list[str]:
    """Return what somebody is or was called in a chat, the newest first, with nicknames."""
    async with db.reader() as connection:
        found = _sql.called_in(connection, **chat_key(chat), user_id=user_id, limit=limit)
        return [row["name"] async for row in found]

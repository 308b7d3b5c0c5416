"""Chats, people and accounts: access, membership, names, notices, requests."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import aiosqlite

from bot.model import Chat, Member, Role
from bot.store.database import Database
from bot.store.messages import chat_key
from bot.store.queries import load
from bot.store.sqlite import Call

Access = Literal["", "enabled", "disabled"]
RequestKind = Literal["friend", "group_add", "group_invite"]

_sql = load("chats")


@dataclass(frozen=True, slots=True)
class Situation:
    """What decides whether a message is answered and is not in memory (``bot/store/access.py``)."""

    known: bool
    """The chat has rows."""
    removed: bool
    """The account is no longer in the chat."""
    quotes_bot: bool
    """The quoted message is one of the account's own."""


@dataclass(frozen=True, slots=True)
class Request:
    """A friend request or a group invitation that waits for an operator."""

    id: int
    bot_id: str
    kind: RequestKind
    flag: str
    user_id: str
    group_id: str
    comment: str


async def situation(db: Database, chat: Chat, reply_to: str | None = None) -> Situation:
    """Return how a message in ``chat`` that quotes ``reply_to`` stands."""
    async with db.reader() as connection:
        row = await _sql.situation(connection, **chat_key(chat), reply_to=reply_to)
    return Situation(
        known=row["chat_id"] is not None,
        removed=row["removed_at"] is not None,
        quotes_bot=row["quoted_direction"] == "outbound",
    )


def name_call(chat: Chat) -> Call:
    """Return the query for the name of a chat, for a visit that asks more."""
    return (_sql.chat_name, chat_key(chat))


def name_of(rows: Sequence[sqlite3.Row]) -> str:
    """Return the name that the rows of ``name_call`` hold, empty if there is none."""
    return rows[0]["name"] if rows else ""


async def ensure_chat(tx: aiosqlite.Connection, chat: Chat, at: int) -> None:
    """Make the row of a chat that had none."""
    await _sql.ensure_chat(tx, **chat_key(chat), at=at)


async def set_access(
    tx: aiosqlite.Connection, chat: Chat, access: Access, *, by: str, at: int
) -> None:
    """Switch recording and answering in a chat on or off, or back to the general rule (``""``)."""
    await ensure_chat(tx, chat, at)
    await _sql.set_access(tx, **chat_key(chat), access=access, by=by, at=at)


async def choose_model(
    tx: aiosqlite.Connection, chat: Chat, model: str, *, by: str, at: int
) -> None:
    """Let a model answer in a chat first, or with ``""`` the configured one."""
    await ensure_chat(tx, chat, at)
    await _sql.choose_model(tx, **chat_key(chat), model=model, by=by, at=at)


async def set_muted(tx: aiosqlite.Connection, chat: Chat, until: int) -> None:
    """Keep until when (UTC ms; 0 for not) nothing can be sent to a chat."""
    await _sql.set_muted(tx, **chat_key(chat), until=until)


async def set_removed(tx: aiosqlite.Connection, chat: Chat, at: int | None) -> None:
    """Keep that the account left a chat, or with ``None`` that it is back."""
    await _sql.set_removed(tx, **chat_key(chat), at=at)


async def rename_chat(tx: aiosqlite.Connection, chat: Chat, name: str) -> None:
    """Keep the display name of a chat."""
    await _sql.rename_chat(tx, **chat_key(chat), name=name)


async def groups_to_catch_up(db: Database, bot_id: str) -> list[tuple[Chat, int]]:
    """Return the account's groups with rows and when each was last seen, the newest first."""
    async with db.reader() as connection:
        rows = [row async for row in _sql.groups_to_catch_up(connection, bot_id=bot_id)]
    return [(Chat(bot_id, "group", row["peer_id"]), row["last_seen"]) for row in rows]


async def member_joined(tx: aiosqlite.Connection, chat: Chat, user_id: str, at: int) -> None:
    """Keep that a member joined a group, or came back."""
    await _ensure_both(tx, chat, user_id, at)
    await _sql.join_member(tx, bot_id=chat.bot_id, peer_id=chat.id, user_id=user_id, at=at)


async def member_left(tx: aiosqlite.Connection, chat: Chat, user_id: str, at: int) -> None:
    """Keep when a member left a group."""
    await _sql.leave_member(tx, bot_id=chat.bot_id, peer_id=chat.id, user_id=user_id, at=at)


async def card_changed(
    tx: aiosqlite.Connection,
    chat: Chat,
    user_id: str,
    card: str,
    at: int,
    *,
    in_history: bool = True,
) -> None:
    """Keep a member's new card and, unless it is empty, add it to the names they had.

    Args:
        tx: the write transaction.
        chat: the group.
        user_id: whose card it is.
        card: the new one.
        at: UTC milliseconds.
        in_history: also as a name they had; not of somebody who has opted out.
    """
    await _ensure_both(tx, chat, user_id, at)
    key = {"bot_id": chat.bot_id, "peer_id": chat.id, "user_id": user_id, "at": at}
    await _sql.set_card(tx, **key, card=card)
    if card and in_history:
        await _sql.add_name(tx, **key, kind=chat.kind, name=card)


async def role_changed(
    tx: aiosqlite.Connection, chat: Chat, user_id: str, role: Role, at: int
) -> None:
    """Keep a member's new role."""
    await _ensure_both(tx, chat, user_id, at)
    await _sql.set_role(tx, bot_id=chat.bot_id, peer_id=chat.id, user_id=user_id, role=role, at=at)


async def title_changed(
    tx: aiosqlite.Connection, chat: Chat, user_id: str, title: str, at: int
) -> None:
    """Keep a member's new special title."""
    await _ensure_both(tx, chat, user_id, at)
    await _sql.set_title(
        tx, bot_id=chat.bot_id, peer_id=chat.id, user_id=user_id, title=title, at=at
    )


async def _ensure_both(tx: aiosqlite.Connection, chat: Chat, user_id: str, at: int) -> None:
    await ensure_chat(tx, chat, at)
    await _sql.ensure_member(tx, bot_id=chat.bot_id, user_id=user_id, at=at)


@dataclass(frozen=True, slots=True)
class Name:
    """One of the names a member had: a nickname, or a card in ``group_id``."""

    name: str
    group_id: str | None
    first_seen: int
    last_seen: int


async def names_of(db: Database, member: Member) -> list[Name]:
    """Return every name that a member ever had, oldest first."""
    async with db.reader() as connection:
        rows = [
            row
            async for row in _sql.names_of(connection, bot_id=member.bot_id, user_id=member.user_id)
        ]
    return [Name(r["name"], r["peer_id"], r["first_seen"], r["last_seen"]) for r in rows]


async def role_in_group(db: Database, chat: Chat, user_id: str) -> Role:
    """Return a present member's role as last shown, ``""`` if it is not known."""
    async with db.reader() as connection:
        role = await _sql.role_in_group(connection, **chat_key(chat), user_id=user_id)
    return role or ""


async def block(tx: aiosqlite.Connection, member: Member, *, by: str, at: int) -> bool:
    """Stop answering a person; false if that was so already."""
    count = await _sql.block(tx, bot_id=member.bot_id, user_id=member.user_id, by=by, at=at)
    return count > 0


async def unblock(tx: aiosqlite.Connection, member: Member) -> bool:
    """Answer a person again; false if they were not blocked."""
    return await _sql.unblock(tx, bot_id=member.bot_id, user_id=member.user_id) > 0


async def account_connected(tx: aiosqlite.Connection, bot_id: str, at: int) -> None:
    """Keep that an account uses this store."""
    await _sql.connect_account(tx, bot_id=bot_id, at=at)


async def account_offline(tx: aiosqlite.Connection, bot_id: str, at: int) -> None:
    """Keep that the platform reports the account offline."""
    await _sql.account_offline(tx, bot_id=bot_id, at=at)


async def account_ids(db: Database) -> frozenset[str]:
    """Return the ids of all accounts that ever used this store."""
    async with db.reader() as connection:
        return frozenset([row["bot_id"] async for row in _sql.accounts(connection)])


async def claim_notice(
    tx: aiosqlite.Connection,
    chat: Chat,
    notice: str,
    *,
    at: int,
    due_before: int,
    user_id: str | None = None,
) -> bool:
    """Whether a notice is to be given now; it then counts as given.

    Args:
        tx: the write transaction.
        chat: where it would be given.
        notice: its kind, such as ``privacy``.
        at: now, UTC milliseconds.
        due_before: it is due if it was last given before this; 0 for once and never again.
        user_id: for notices that each person gets apart.
    """
    # Without their rows nothing would be counted, and a person's notice be taken for the chat's.
    await ensure_chat(tx, chat, at)
    if user_id is not None:
        await _sql.ensure_member(tx, bot_id=chat.bot_id, user_id=user_id, at=at)
    count = await _sql.claim_notice(
        tx, **chat_key(chat), notice=notice, user_id=user_id, at=at, due_before=due_before
    )
    return count > 0


async def withdraw_notice(
    tx: aiosqlite.Connection, chat: Chat, notice: str, user_id: str | None = None
) -> None:
    """Take back that a notice was given in a chat, to all or to one person: it did not go out."""
    await _sql.withdraw_notice(tx, **chat_key(chat), notice=notice, user_id=user_id)


def _request(row: aiosqlite.Row) -> Request:
    names = ("id", "bot_id", "kind", "flag", "user_id", "group_id", "comment")
    return Request(*(row[name] for name in names))


async def keep_request(
    tx: aiosqlite.Connection,
    bot_id: str,
    kind: RequestKind,
    flag: str,
    *,
    user_id: str,
    group_id: str,
    comment: str,
    at: int,
) -> tuple[Request, bool]:
    """Store a request and return it with whether it is new."""
    count = await _sql.keep_request(
        tx,
        bot_id=bot_id,
        request=kind,
        flag=flag,
        user_id=user_id,
        group_id=group_id,
        comment=comment,
        at=at,
    )
    row = await _sql.request_by_flag(tx, bot_id=bot_id, flag=flag)
    return _request(row), count > 0


async def open_request(db: Database, bot_id: str, request_id: int) -> Request | None:
    """Return a request that nobody approved yet."""
    async with db.reader() as connection:
        row = await _sql.open_request(connection, bot_id=bot_id, id=request_id)
    return _request(row) if row else None


async def open_requests(db: Database, bot_id: str) -> list[Request]:
    """Return the newest requests that nobody approved yet."""
    async with db.reader() as connection:
        return [_request(row) async for row in _sql.open_requests(connection, bot_id=bot_id)]


async def approve_request(tx: aiosqlite.Connection, request_id: int, *, by: str, at: int) -> None:
    """Keep who approved a request and when."""
    await _sql.approve_request(tx, id=request_id, by=by, at=at)

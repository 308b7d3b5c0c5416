"""Writes groups of arriving messages: chat, people, names, message, counters, in one transaction.

See ``docs/architecture.md``, "The way of one message".
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

from bot.conversation.policy import is_kept_for_turn
from bot.model import Chat, Message
from bot.store.database import Database
from bot.store.message_index import index_new_messages
from bot.store.opt_outs import OptOuts
from bot.store.queries import load
from bot.store.sqlite import Call, run

TASKS: dict[str, tuple[str, ...]] = {
    "group": ("group", "member-batch"),
    "private": ("private-owner",),
}
"""The reflection tasks that read a kind of chat."""

KEPT_MS = 24 * 3_600_000
"""So long at most is kept what somebody who has opted out says to the bot."""

_sql = load("ingest")
_Key = tuple[Chat, str, int]
_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message on its way into the store."""

    message: Message
    live: bool = True
    """It came as an event just now, not from a history."""
    pending: bool = True
    """It waits for reflection: said by a person, not a command."""
    group_name: str = ""
    """What its event calls the group, empty if it does not tell."""
    nicknames: tuple[str, ...] = ()
    """What the bot is called."""
    follows: bool = False
    """Of somebody who has opted out: it goes with a question of theirs that waits."""
    may_be_answered: bool = True
    """Of somebody who has opted out: the bot answers who addresses it there."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the store knows of a message once it is durable."""

    row_id: int
    message: Message
    is_new: bool
    """False if the same event was stored before."""
    recalled: bool = False
    is_blank: bool = False
    """Its sender has opted out and did not address the bot: nothing is kept but that it came."""


async def store_arrivals(
    db: Database, arrivals: Sequence[Arrival], opt_outs: OptOuts | None = None
) -> list[Receipt]:
    """Store ``arrivals`` in one transaction and return a receipt for each, in order.

    Args:
        db: the database.
        arrivals: what came, in order.
        opt_outs: who is not recorded.

    Raises:
        StoreBusy: another process held the write lock for too long; nothing was written.
    """
    rows = [_row(arrival) for arrival in arrivals]
    return await db.write(partial(_store, arrivals=arrivals, rows=rows, opt_outs=opt_outs))


def _store(
    connection: sqlite3.Connection,
    arrivals: Sequence[Arrival],
    rows: Sequence[_Row],
    opt_outs: OptOuts | None,
) -> list[Receipt]:
    ((newest_id,),) = run(connection, (_sql.newest_id, {}))
    # Asked here, where nothing else is written: who opts out meanwhile is waited for.
    if opt_outs is not None:
        for arrival, row in zip(arrivals, rows, strict=True):
            if opt_outs.has(row["bot_id"], row["user_id"]):
                _forget(connection, arrival, row)
    for call in (*_people(rows), *_messages(rows)):
        run(connection, call)
    added = _added(connection, newest_id)
    if any(row["awaited"] for row in added.values()):
        run(connection, (_sql.apply_early_recalls, {"newest_id": newest_id}))
        added = _added(connection, newest_id)
        run(connection, (_sql.drop_met_recalls, {"newest_id": newest_id}))
    if added:
        index_new_messages(connection)
    receipts = [_receipt(connection, a, r, added) for a, r in zip(arrivals, rows, strict=True)]
    if waiting := _waiting(rows, receipts):
        run(connection, (_sql.add_pending, waiting))
    return receipts


def _row(arrival: Arrival) -> _Row:
    message = arrival.message
    sender = message.sender
    # Answers to commands repeat what is remembered, which may be erased later. What only a history
    # knows may as well have been typed by the operator.
    keeps_text = message.kind != "notice" or not arrival.live
    segments = [s.as_json() for s in message.segments] if keeps_text else []
    return {
        "bot_id": message.chat.bot_id,
        "kind": message.chat.kind,
        "peer_id": message.chat.id,
        "group_name": arrival.group_name,
        "user_id": sender.user_id,
        "nickname": sender.nickname,
        "card": sender.card,
        "role": sender.role,
        "title": sender.title,
        "anonymous": sender.anonymous,
        "at": min(message.sent_at, message.received_at),
        "live": arrival.live,
        "platform_id": message.platform_id,
        "direction": message.direction,
        "message_kind": message.kind,
        "sent_at": message.sent_at,
        "received_at": message.received_at,
        "local_date": message.local_date,
        "sequence": message.sequence,
        "sender_name": sender.display_name,
        "segments": json.dumps(segments, ensure_ascii=False),
        "text": message.text if keeps_text else "",
        "reply_to": message.reply_to,
        "mentions": json.dumps(message.mentions) if message.mentions else "[]",
        "temporary_group": message.temporary_group,
        "counted": arrival.pending,
        "forgotten_at": None,
        "kept_until": None,
    }


def _forget(connection: sqlite3.Connection, arrival: Arrival, row: _Row) -> None:
    """Let a message of somebody who has opted out be forgotten as it comes.

    One that the bot answers has its text for its turn.
    """
    message = arrival.message
    quoted = run(connection, (_sql.quoted, row)) if message.reply_to is not None else []
    quotes_bot = bool(quoted) and quoted[0]["direction"] == "outbound"
    row.update(counted=False, forgotten_at=message.received_at)
    if arrival.may_be_answered and (
        arrival.follows or is_kept_for_turn(message, quotes_bot, arrival.nicknames)
    ):
        row["kept_until"] = message.received_at + KEPT_MS
    else:
        row.update(sender_name="", segments="[]", text="", mentions="[]")


def _people(rows: Sequence[_Row]) -> Iterator[Call]:
    # One row each: a busy group says the same of its people many times in one transaction.
    rows = sorted(rows, key=itemgetter("at"))
    yield _sql.upsert_chats, _distinct(rows, "bot_id", "kind", "peer_id", "group_name", "live")
    yield _sql.upsert_members, _distinct(rows, "bot_id", "user_id")
    # What somebody is called from now on is no history of somebody who is not recorded.
    named = [row for row in rows if row["forgotten_at"] is None]
    yield _sql.upsert_nicknames, _distinct(named, "bot_id", "user_id", "nickname")
    if groups := [r for r in rows if r["kind"] == "group" and r["direction"] == "inbound"]:
        yield _sql.upsert_memberships, _distinct(groups, "bot_id", "peer_id", "user_id")
        cards = [row for row in groups if row["forgotten_at"] is None]
        yield _sql.upsert_cards, _distinct(cards, "bot_id", "peer_id", "user_id", "card")


def _messages(rows: Sequence[_Row]) -> Iterator[Call]:
    yield _sql.insert_messages, rows
    if own := [r for r in rows if r["direction"] == "outbound"]:
        yield _sql.merge_echoes, own


def _added(connection: sqlite3.Connection, newest_id: int) -> dict[_Key, sqlite3.Row]:
    rows = run(connection, (_sql.added, {"newest_id": newest_id}))
    return {_added_key(row): row for row in rows}


def _distinct(rows: Sequence[_Row], *fields: str) -> list[_Row]:
    """Return the newest of all ``rows`` (oldest first) that agree, with when the first was; the
    newest of all is last."""
    pick = itemgetter(*fields)
    first: dict[Any, _Row] = {}
    newest: dict[Any, _Row] = {}
    for row in rows:
        key = pick(row)
        first.setdefault(key, row)
        newest.pop(key, None)
        newest[key] = row
    return [{**row, "first_at": first[key]["at"]} for key, row in newest.items()]


def _added_key(row: sqlite3.Row) -> _Key:
    chat = Chat(row["bot_id"], row["kind"], row["peer_id"])
    return (chat, row["platform_id"], row["sent_at"])


def _receipt(
    connection: sqlite3.Connection,
    arrival: Arrival,
    row: _Row,
    added: dict[_Key, sqlite3.Row],
) -> Receipt:
    message = arrival.message
    key = (message.chat, message.platform_id, message.sent_at)
    # Taken out, so that a second copy within the same group is not new.
    is_blank = row["forgotten_at"] is not None and row["kept_until"] is None
    if found := added.pop(key, None):
        return Receipt(found["id"], message, True, bool(found["recalled"]), is_blank)
    stored = run(connection, (_sql.find_row, _identity(row)))[0]
    return Receipt(stored["id"], message, False, bool(stored["recalled"]), is_blank)


def _identity(row: _Row) -> _Row:
    names = ("bot_id", "kind", "peer_id", "platform_id", "sent_at", "received_at", "direction")
    return {name: row[name] for name in names}


def _waiting(rows: Sequence[_Row], receipts: Sequence[Receipt]) -> list[_Row]:
    arrived: dict[Chat, list[int]] = {}
    for row, receipt in zip(rows, receipts, strict=True):
        if row["counted"] and receipt.is_new and not receipt.recalled:
            arrived.setdefault(receipt.message.chat, []).append(receipt.message.received_at)
    return [
        {
            "bot_id": chat.bot_id,
            "kind": chat.kind,
            "peer_id": chat.id,
            "task": task,
            "count": len(times),
            "oldest": min(times),
            "newest": max(times),
        }
        for chat, times in arrived.items()
        for task in TASKS[chat.kind]
    ]

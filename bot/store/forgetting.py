"""Forgetting an entry on request, with all that it was made from and all that tells of it.

See ``docs/memory.md``, "Remembering and forgetting on request" and "Forgetting".
"""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import aiosqlite

from bot.model import Chat, Shown, Stream, entry_label
from bot.store.database import Database
from bot.store.memory import forget_messages, stream_key, take_down
from bot.store.messages import Heard, chat_key, chat_rows, drop_quotes, heard, set_apart
from bot.store.queries import load
from bot.store.snapshots import mark_streams_stale

_sql = load("forgetting")


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What forgetting an entry reached."""

    entries: int
    """How many went with it: what it was made from, and what rested on the same messages."""
    message_rows: tuple[int, ...]
    """The messages that are no evidence any more."""
    shown: Shown
    """Where prompts may have shown what is forgotten now."""


@dataclass(frozen=True, slots=True)
class CalledSince:
    """A name, and since when (UTC milliseconds) somebody was called so."""

    name: str
    first_seen: int


async def forget_entry(
    tx: aiosqlite.Connection,
    stream: Stream,
    number: int,
    *,
    by: str,
    at: int,
    shown_in: Iterable[Chat] = (),
) -> Forgotten | None:
    """Forget an entry for good: no undo, no reflection and no recall brings it back.

    One that ended is forgotten like one that lives, as long as it has its text.

    Args:
        tx: the write transaction.
        stream: where it is.
        number: which it is.
        by: whose wish it is. Messages of theirs that it rests on are no evidence any more, and
            what else rests on them falls.
        at: UTC milliseconds.
        shown_in: chats besides that of the stream, and those that have snapshots of a scope
            concerned, in which the bot may have told it.

    Returns:
        ``None`` if nothing is left of it to forget.
    """
    row = await _sql.told(tx, **stream_key(stream), number=number)
    if row is None:
        return None
    doomed = [r async for r in _sql.with_sources(tx, entry_id=row["id"])]
    made = [r async for r in _sql.made_of(tx, entry_ids=_ids(doomed))]
    proofs = [r async for r in _sql.rests_on(tx, entry_ids=_ids(doomed))]
    own = [p["id"] for p in proofs if p["user_id"] == by and p["direction"] == "inbound"]
    leaning = await _leaning(tx, own, doomed)
    texts = [r["text"] for r in (*doomed, *made)]
    shown = await mark_streams_stale(tx, [row["stream_id"]])
    shown |= Shown(frozenset([stream.origin, *shown_in]))
    # Answers are younger than what they quote, whatever time the platform gave it.
    since = min([row["created_at"], *(p["since"] for p in proofs)]) - 1000
    where = Heard(frozenset(await chat_rows(tx, shown.chats)), since) | await heard(tx, own)
    for message_id in own:
        texts += await set_apart(tx, message_id, at)
    shown |= await drop_quotes(tx, where, texts)
    await _erase(tx, doomed, made)
    reached = await forget_messages(tx, own, at, where)
    reached |= await take_down(
        tx,
        stream,
        [p["id"] for p in proofs],
        by=by,
        why=f"forget #{entry_label(number)}",
        at=at,
    )
    await _sql.end_forgotten(tx, entry_ids=_ids(doomed), at=at)
    numbers = json.dumps([r["number"] for r in (*doomed, *made)])
    await _sql.blank_revisions(tx, stream_id=row["stream_id"], numbers=numbers)
    fallen = await _sql.ended_among(tx, entry_ids=json.dumps(leaning))
    return Forgotten(len(doomed) - 1 + fallen, tuple(own), reached.shown | shown)


def _ids(rows: Iterable[aiosqlite.Row]) -> str:
    return json.dumps([row["id"] for row in rows])


async def _leaning(
    tx: aiosqlite.Connection, message_ids: Sequence[int], doomed: Iterable[aiosqlite.Row]
) -> list[int]:
    found = _sql.leaning(tx, message_ids=json.dumps(message_ids), entry_ids=_ids(doomed))
    return [row["id"] async for row in found]


async def _erase(
    tx: aiosqlite.Connection,
    doomed: Collection[aiosqlite.Row],
    made: Collection[aiosqlite.Row],
) -> None:
    """Take away what proves them, so that they fall; what was made of them tells of them."""
    await _sql.drop_proofs(tx, entry_ids=_ids([*doomed, *made]))
    await _sql.drop_endings(tx, entry_ids=_ids(doomed))


async def names_since(db: Database, chat: Chat, user_id: str) -> list[CalledSince]:
    """Return what a member was ever called in a chat, each with since when."""
    async with db.reader() as connection:
        found = _sql.names_of(connection, **chat_key(chat), user_id=user_id)
        return [CalledSince(row["name"], row["first_seen"]) async for row in found]

"""Snapshots: memory as the prompts of each chat show it, and what is read to make one.

See ``docs/memory.md``, "Snapshots" and "What a turn may read".
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import aiosqlite

from bot.model import Chat, Document, Member, Scope, Shown, Snapshot, SnapshotEntry
from bot.store.database import Database
from bot.store.messages import chat_key
from bot.store.queries import load
from bot.store.reach import Place, Readable, readable_call, readable_of
from bot.store.sqlite import Call, in_order, run, visit

DOCUMENTS: tuple[Document, ...] = ("profile", "pattern", "daily", "memory")
"""Those that a snapshot shows."""

_sql = load("snapshots")


@dataclass(frozen=True, slots=True)
class Recollection:
    """What a turn may remember: the streams that it may read, and the snapshots that are kept."""

    readable: tuple[Readable, ...]
    kept: Mapping[int, Snapshot]
    """By the row of the scope."""
    crosses: bool
    """The sender lets what they said in one group be known in another."""


@dataclass(frozen=True, slots=True)
class NewSnapshot:
    """A snapshot to be kept for one scope."""

    scope_id: int
    snapshot: Snapshot


def recollection_calls(chat: Chat, user_id: str, *, cross_group: bool) -> tuple[Call, Call, Call]:
    """Return the queries for what a turn may remember, for a visit that asks more.

    Args:
        chat: where the turn is.
        user_id: its sender.
        cross_group: ``memoryMemberCrossGroup``.
    """
    key = {**chat_key(chat), "user_id": user_id}
    return (
        readable_call(chat, user_id, cross_group=cross_group),
        (_sql.kept, key),
        (_sql.crosses, key),
    )


def recollection_of(
    readable: Iterable[sqlite3.Row],
    kept: Iterable[sqlite3.Row],
    crosses: Sequence[sqlite3.Row],
    bot_id: str,
) -> Recollection:
    """Return what the rows of ``recollection_calls`` tell."""
    return Recollection(
        tuple(readable_of(readable, bot_id)),
        {row["scope_id"]: _snapshot(row) for row in kept},
        all(row["cross_group"] for row in crosses),
    )


def _snapshot(row: sqlite3.Row) -> Snapshot:
    return Snapshot(
        text=row["text"],
        shown=tuple(json.loads(row["shown"])),
        hash=row["hash"],
        streams=frozenset(json.loads(row["streams"])),
        across=bool(row["across"]),
        version=row["version"],
        compactions=row["compactions"],
        injected_at=row["injected_at"],
        active_at=row["active_at"],
        stale=bool(row["stale"]),
    )


async def recollection(
    db: Database, chat: Chat, user_id: str, *, cross_group: bool
) -> Recollection:
    """Return what a turn may remember."""
    async with db.reader() as connection:
        calls = recollection_calls(chat, user_id, cross_group=cross_group)
        readable, kept, crosses = await in_order(connection, *calls)
    return recollection_of(readable, kept, crosses, chat.bot_id)


async def snapshot_entries(
    db: Database, streams: Iterable[Readable], per_document: int
) -> list[SnapshotEntry]:
    """Return what a snapshot of some streams may show: pins, and the newest of each document.

    Args:
        db: the database.
        streams: those of one scope.
        per_document: so many unpinned entries of a document of a stream are read at most.
    """
    streams = list(streams)

    def work(connection: sqlite3.Connection) -> list[SnapshotEntry]:
        return [e for stream in streams for e in _entries(connection, stream, per_document)]

    async with db.reader() as connection:
        return await visit(connection, work)


def _entries(
    connection: sqlite3.Connection, stream: Readable, limit: int
) -> Iterator[SnapshotEntry]:
    key = {"stream_id": stream.row_id, "place": stream.place, "limit": limit}
    calls = [(_sql.pinned, key), *((_sql.newest, {**key, "document": d}) for d in DOCUMENTS)]
    for call in calls:
        yield from (_entry(row, stream.place) for row in run(connection, call))


def _entry(row: sqlite3.Row, place: Place) -> SnapshotEntry:
    return SnapshotEntry(
        row_id=row["id"],
        number=row["number"],
        document=row["document"],
        text=row["text"],
        type=row["type"],
        date=row["date"],
        pinned=bool(row["pinned"]),
        updated_at=row["updated_at"],
        is_elsewhere=place == "elsewhere",
    )


async def keep_snapshots(
    db: Database, chat: Chat, snapshots: Iterable[NewSnapshot]
) -> frozenset[int]:
    """Keep new snapshots of a chat and return the scopes whose one was kept.

    One is not if memory has changed since it was read: what it shows may be forgotten by now.

    Raises:
        StoreBusy: another process holds the write lock.
    """
    calls = {new.scope_id: (_sql.keep, _row(chat, new)) for new in snapshots}

    def work(connection: sqlite3.Connection) -> frozenset[int]:
        return frozenset(scope_id for scope_id, call in calls.items() if run(connection, call))

    return await db.write(work)


def _row(chat: Chat, new: NewSnapshot) -> dict[str, object]:
    snapshot = new.snapshot
    return {
        **chat_key(chat),
        "scope_id": new.scope_id,
        "text": snapshot.text,
        "shown": json.dumps(snapshot.shown),
        "hash": snapshot.hash,
        "streams": json.dumps(sorted(snapshot.streams)),
        "across": snapshot.across,
        "version": snapshot.version,
        "compactions": snapshot.compactions,
        "at": snapshot.injected_at,
    }


async def touch_snapshots(
    tx: aiosqlite.Connection, chat: Chat, scope_ids: Iterable[int], at: int
) -> None:
    """Note that a turn has used the memory of some scopes, which renews their time to live."""
    ids = json.dumps(list(scope_ids))
    await _sql.touch(tx, **chat_key(chat), scope_ids=ids, at=at)


async def mark_stale(tx: aiosqlite.Connection, scope: Scope) -> Shown:
    """Erase what all snapshots of a scope show; each is made anew before it is shown again.

    To be called in the transaction that forgets or corrects something of the scope. Whoever calls
    it then lets ``Floor.renew_shown`` begin the turns anew that are in the making.

    Returns:
        The scope, and the chats that have snapshots of it.
    """
    return await visit(tx, lambda connection: mark_stale_within(connection, scope))


def mark_stale_within(connection: sqlite3.Connection, scope: Scope) -> Shown:
    """Do the work of ``mark_stale`` in the connection's thread."""
    key = {"bot_id": scope.bot_id, "scope_kind": scope.kind, "key": scope.id}
    return _mark_stale(connection, run(connection, (_sql.scope_row, key)))


async def mark_streams_stale(tx: aiosqlite.Connection, stream_ids: Iterable[int]) -> Shown:
    """Do the work of ``mark_stale`` for the scopes of some streams, by their rows."""
    ids = json.dumps(list(stream_ids))

    def work(connection: sqlite3.Connection) -> Shown:
        rows = run(connection, (_sql.scopes_of_streams, {"stream_ids": ids}))
        return _mark_stale(connection, rows)

    return await visit(tx, work)


def _mark_stale(connection: sqlite3.Connection, scopes: Sequence[sqlite3.Row]) -> Shown:
    some = {"scope_ids": json.dumps([row["id"] for row in scopes])}
    run(connection, (_sql.mark_stale, some))
    run(connection, (_sql.bump_streams, some))
    rows = run(connection, (_sql.chats_with, some))
    return Shown(
        frozenset(Chat(row["bot_id"], row["kind"], row["peer_id"]) for row in rows),
        frozenset(Scope(row["bot_id"], row["kind"], row["key"]) for row in scopes),
    )


async def crosses_groups(db: Database, member: Member) -> bool:
    """Whether somebody lets what they said in one group be known in another; so it is at first."""
    async with db.reader() as connection:
        found = await _sql.crosses(connection, bot_id=member.bot_id, user_id=member.user_id)
    return found is None or bool(found["cross_group"])


async def set_crosses_groups(tx: aiosqlite.Connection, member: Member, crosses: bool) -> None:
    """Keep whether what somebody said in one group may be known in another."""
    await _sql.set_crosses(tx, bot_id=member.bot_id, user_id=member.user_id, crosses=crosses)


async def place_documents(db: Database) -> dict[Place, frozenset[Document]]:
    """Return which documents of a stream may be read, by where it stands to a turn."""
    found: dict[Place, set[Document]] = {}
    async with db.reader() as connection:
        async for row in _sql.documents(connection):
            found.setdefault(row["place"], set()).add(row["document"])
    return {place: frozenset(documents) for place, documents in found.items()}

"""Revisions: what changes of memory replaced, and putting it back.

See ``docs/memory.md``, "Evidence" and "Compression".
"""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiosqlite

from bot.model import Chat, Document, Scope, ScopeKind, Shown, Stream
from bot.store.database import Database
from bot.store.memory import Shape, StreamWriter
from bot.store.messages import chat_key
from bot.store.queries import load
from bot.store.snapshots import mark_stale_within
from bot.store.sqlite import run, visit

_sql = load("revisions")

_Entries = Mapping[int, Mapping[str, Any]]
"""One side of a change, by the numbers of its entries."""


async def undo_revision(
    tx: aiosqlite.Connection, revision_id: int, *, by: str, at: int
) -> Shown | None:
    """Put back what one change of a stream replaced, as a change of its own.

    An entry that the change added ends, whatever it was given since: further proofs, a pin, another
    tier. Else what has changed once more since then stays as it is. What was forgotten does not
    return.

    Args:
        tx: the write transaction.
        revision_id: the change.
        by: who undoes it.
        at: UTC milliseconds.

    Returns:
        Where prompts may have shown what is undone now, for ``Floor.renew_shown``; ``None`` if
        there is no such change, or nothing of it left to put back.
    """
    return await visit(tx, partial(_undo, revision_id=revision_id, by=by, at=at))


def _undo(connection: sqlite3.Connection, revision_id: int, by: str, at: int) -> Shown | None:
    rows = run(connection, (_sql.revision, {"id": revision_id}))
    if not rows:
        return None
    [row] = rows
    before, after = json.loads(row["before"]), json.loads(row["after"])
    writer = StreamWriter(connection, _stream(row), at)
    _swap(connection, writer, row, _entries(before), _entries(after))
    _unprove(writer, _entries(before), _entries(after))
    _reshape(writer, _entries(before), _entries(after))
    _put_summary_back(writer, before, after)
    if not writer.has_changed:
        return None
    writer.record(by=by, why=f"undo {revision_id}", task_id=None)
    # What is undone may be a mistake that no prompt should show again.
    return mark_stale_within(connection, _stream(row).scope)


def _stream(row: sqlite3.Row) -> Stream:
    return Stream(
        Scope(row["bot_id"], row["scope_kind"], row["key"]),
        Chat(row["bot_id"], row["kind"], row["peer_id"]),
    )


def _entries(side: Mapping[str, Any]) -> _Entries:
    return {entry["number"]: entry for entry in side.get("entries", ())}


def _swap(
    connection: sqlite3.Connection,
    writer: StreamWriter,
    row: sqlite3.Row,
    before: _Entries,
    after: _Entries,
) -> None:
    """End what the change put there, and bring back what it ended."""
    known = {
        "stream_id": row["stream_id"],
        "ended_at": row["at"],
        "added": json.dumps(sorted(after.keys() - before.keys())),
        "replaced": json.dumps(sorted(before.keys() - after.keys())),
    }
    ending = run(connection, (_sql.added, known))
    for one in ending:
        writer.end(one["number"], one["ended_by"], "")
    ended = json.dumps([one["number"] for one in ending])
    writer.revive(r["number"] for r in run(connection, (_sql.replaced, {**known, "ended": ended})))


def _unprove(writer: StreamWriter, before: _Entries, after: _Entries) -> None:
    """Take the proofs away that the change gave to entries."""
    for number in before.keys() & after.keys():
        known = {tuple(proof) for proof in before[number]["proofs"]}
        for proof in after[number]["proofs"]:
            if tuple(proof) not in known:
                writer.unprove(number, proof)


def _reshape(writer: StreamWriter, before: _Entries, after: _Entries) -> None:
    """Put tiers, documents and pins back that the change gave to entries."""
    for number in before.keys() & after.keys():
        old, new = _shape(before[number]), _shape(after[number])
        if old != new and writer.shape_of(number) == new:
            writer.reshape(number, old)


def _shape(entry: Mapping[str, Any]) -> Shape:
    return Shape(entry["document"], entry["type"], entry["tier"], entry["pinned"])


def _put_summary_back(
    writer: StreamWriter, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    """Put the summary back if it is still the one of the change.

    It goes on resting on all the messages that it rests on now: the later one was written from it.
    """
    if "summary" in before and "summary" in after and writer.summary == after["summary"]["text"]:
        writer.summarise(before["summary"]["text"], ())


KEPT_MS = 180 * 24 * 3_600_000
"""Older changes are not kept: ``docs/memory.md``, "Evidence"."""


@dataclass(frozen=True, slots=True)
class Revision:
    """One change of a stream, without a word of what it changed."""

    id: int
    at: int
    """UTC milliseconds."""
    by: str
    """A task, or somebody's user id."""
    why: str
    scope_kind: ScopeKind
    scope_id: str
    lines: int
    """How many entries it concerns, and one more for a summary."""


async def recent_revisions(
    db: Database, chat: Chat, *, members: bool, limit: int
) -> list[Revision]:
    """Return the newest changes of what a chat's streams hold.

    Those that tell nothing any more are left out: that somebody forgot something, and what that
    erased.

    Args:
        db: the database.
        chat: where the streams come from.
        members: also those of people; else of the group alone.
        limit: how many.
    """
    async with db.reader() as connection:
        found = _sql.recent_of(connection, **chat_key(chat), members=members, limit=limit)
        rows = [row async for row in found]
    return [
        Revision(r["id"], r["at"], r["by"], r["why"], r["scope_kind"], r["key"], _lines(r))
        for r in rows
    ]


def _lines(row: sqlite3.Row) -> int:
    sides = json.loads(row["before"]), json.loads(row["after"])
    numbers = {number for side in sides for number in _entries(side)}
    return len(numbers) + any("summary" in side for side in sides)


@dataclass(frozen=True, slots=True)
class EntryThen:
    """An entry as a change left it, or found it."""

    number: int
    document: Document
    type: str | None
    date: str | None
    text: str
    """Empty if it has been erased since."""
    rows: tuple[int, ...]
    """The messages that it rested on."""


@dataclass(frozen=True, slots=True)
class StreamChange:
    """What one change did to one stream."""

    id: int
    stream: Stream
    before: tuple[EntryThen, ...]
    """The entries that it touched, as they were."""
    after: tuple[EntryThen, ...]
    summary: str | None
    """The new summary, if it made one."""


async def changes_of_task(db: Database, task_id: int) -> list[StreamChange]:
    """Return what one run of a task changed, in the order in which it was written."""
    async with db.reader() as connection:
        rows = [row async for row in _sql.of_task(connection, task_id=task_id)]
    return [_stream_change(row) for row in rows]


def _stream_change(row: sqlite3.Row) -> StreamChange:
    before, after = json.loads(row["before"]), json.loads(row["after"])
    return StreamChange(
        id=row["id"],
        stream=_stream(row),
        before=tuple(_entry_then(entry) for entry in _entries(before).values()),
        after=tuple(_entry_then(entry) for entry in _entries(after).values()),
        summary=after["summary"]["text"] if "summary" in after else None,
    )


def _entry_then(entry: Mapping[str, Any]) -> EntryThen:
    return EntryThen(
        number=entry["number"],
        document=entry["document"],
        type=entry["type"],
        date=entry["date"],
        text=entry["text"],
        rows=tuple(dict.fromkeys(row for proof in entry["proofs"] for row in proof)),
    )


async def is_of_chat(
    tx: aiosqlite.Connection, revision_id: int, chat: Chat, *, members: bool
) -> bool:
    """Whether a change is one of those that ``recent_revisions`` looks through, however old."""
    found = await _sql.of_chat(tx, id=revision_id, **chat_key(chat), members=members)
    return found is not None


async def drop_old_revisions(tx: aiosqlite.Connection, now: int) -> int:
    """Remove the record of changes that are older than 180 days; return how many there were."""
    return await _sql.drop_old(tx, before=now - KEPT_MS)

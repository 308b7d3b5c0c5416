"""Revisions: what changes of memory replaced, and putting it back.

See ``docs/memory.md``, "Evidence" and "Compression".
"""

import json
import sqlite3
from collections.abc import Mapping
from functools import partial
from typing import Any

import aiosqlite

from bot.model import Chat, Scope, Stream
from bot.store.memory import StreamWriter
from bot.store.queries import load
from bot.store.sqlite import run, visit

_sql = load("revisions")

_Entries = Mapping[int, Mapping[str, Any]]
"""One side of a change, by the numbers of its entries."""


async def undo_revision(tx: aiosqlite.Connection, revision_id: int, *, by: str, at: int) -> bool:
    """Put back what one change of a stream replaced, as a change of its own.

    What has changed once more since then stays as it is, and what was forgotten does not return.

    Args:
        tx: the write transaction.
        revision_id: the change.
        by: who undoes it.
        at: UTC milliseconds.

    Returns:
        False if there is no such change, or nothing of it left to put back.
    """
    return await visit(tx, partial(_undo, revision_id=revision_id, by=by, at=at))


def _undo(connection: sqlite3.Connection, revision_id: int, by: str, at: int) -> bool:
    rows = run(connection, (_sql.revision, {"id": revision_id}))
    if not rows:
        return False
    [row] = rows
    before, after = json.loads(row["before"]), json.loads(row["after"])
    writer = StreamWriter(connection, _stream(row), at)
    _swap(connection, writer, row, _entries(before), _entries(after))
    _unprove(writer, _entries(before), _entries(after))
    _put_summary_back(writer, before, after)
    if writer.has_changed:
        writer.record(by=by, why=f"undo {revision_id}", task_id=None)
    return writer.has_changed


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


def _put_summary_back(
    writer: StreamWriter, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    """Put the summary back if it is still the one of the change.

    It goes on resting on all the messages that it rests on now: the later one was written from it.
    """
    if "summary" in before and "summary" in after and writer.summary == after["summary"]["text"]:
        writer.summarise(before["summary"]["text"], ())

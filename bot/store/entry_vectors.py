"""Vectors of entries: which are wanting, and what of those a turn may read is near to a question.

See ``docs/search.md``, "Vectors of entries". What erases an entry's text erases its vector, by a
trigger.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bot.search.vectors import restored
from bot.store.database import Database
from bot.store.queries import load
from bot.store.sqlite import run, visit
from bot.store.vectors import Space, space_within

MAX_COMPARED = 2_000
"""So many vectors are read for a question: of entries that its words find, and of the newest."""

_sql = load("entry_vectors")


@dataclass(frozen=True, slots=True)
class WantingEntry:
    """An entry that was not looked at yet."""

    row_id: int
    text: str


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a question means, to the embedder that is set."""

    embedder: str
    vector: NDArray[np.float32]


async def next_entries(
    db: Database, space: Space, limit: int, *, is_remote: bool
) -> list[WantingEntry]:
    """Return the entries to look at next, none if the space is not in use any more.

    Args:
        db: the store.
        space: as ``enter_space`` returned it, or older.
        limit: how many to look at.
        is_remote: whether texts leave the machine; entries of chats that are off wait then.
    """
    key = {"space_id": space.id, "limit": limit, "is_remote": is_remote}

    def work(connection: sqlite3.Connection) -> list[WantingEntry]:
        current = space_within(connection, space.embedder, space.dimensions)
        if current is None or current.id != space.id:
            return []
        return [WantingEntry(*row) for row in run(connection, (_sql.wanting, key))]

    async with db.reader() as connection:
        return await visit(connection, work)


async def keep_entries(
    db: Database, space: Space, looked_at: Iterable[tuple[WantingEntry, bytes | None]]
) -> None:
    """Keep what was made of some entries, or that nothing was, in one transaction.

    What was erased or became another meanwhile is left out.
    """
    rows = [
        {"space_id": space.id, "id": entry.row_id, "text": entry.text, "vector": vector}
        for entry, vector in looked_at
    ]
    await db.write(partial(_keep, rows=rows))


def _keep(connection: sqlite3.Connection, rows: Sequence[dict[str, object]]) -> None:
    for row in rows:
        run(connection, (_sql.keep, row))


def request_entries(connection: sqlite3.Connection) -> None:
    """Let every entry that has text get a vector anew; in a write transaction."""
    run(connection, (_sql.clear, {}))
    run(connection, (_sql.want_all, {}))


def cosines(
    connection: sqlite3.Connection, streams: str, found: Sequence[int], meaning: Meaning
) -> dict[int, float]:
    """Return how alike a question and living entries are, by their rows; those that have no vector
    are absent.

    For a visit that asks more; it runs in the connection's thread.

    Args:
        connection: one that reads.
        streams: what the turn may read, as the search of entries has it.
        found: the entries that the words of the question found; fewer than ``MAX_COMPARED``.
        meaning: the question.
    """
    space = space_within(connection, meaning.embedder, len(meaning.vector))
    if space is None:
        return {}
    key = {
        "streams": streams,
        "found": json.dumps(found),
        "limit": MAX_COMPARED - len(found),
        "space_id": space.id,
    }
    rows = run(connection, (_sql.readable_vectors, key))
    if not rows:
        return {}
    alike = restored((row["vector"] for row in rows), space.dimensions) @ meaning.vector
    return {row["entry_id"]: float(one) for row, one in zip(rows, alike, strict=True)}

"""The index of messages: their tokens, kept beside them. SQLite's own (FTS5), as is the search in
``bot/store/message_search.py``.

What leaves the index leaves it by triggers of the schema. See ``docs/search.md``, "The index of
messages".
"""

import sqlite3
from functools import partial

from bot.store.database import Database
from bot.store.queries import load
from bot.store.sqlite import run

SCRUB_PAGES = 64
"""So much of the index is merged in one transaction."""

_ERASED, _SCRUBBING = 1, 2

_sql = load("message_index")


def index_new_messages(connection: sqlite3.Connection) -> None:
    """Let all messages be found that came since the last time, in the transaction they came in."""
    run(connection, (_sql.add_new, {}))
    run(connection, (_sql.note_new, {}))


async def index_step(db: Database, row_count: int) -> int:
    """Index some messages that are older than the index, the newest of them, in one transaction.

    Returns:
        About how many are left at most; 0 once the index is complete.

    Raises:
        StoreBusy: another process holds the lock.
    """
    return await db.write(partial(_step, row_count=row_count))


def _step(connection: sqlite3.Connection, row_count: int) -> int:
    [[filled_from, *_]] = run(connection, (_sql.state, {}))
    if not filled_from:
        return 0
    where = {"filled_from": filled_from, "rows": row_count}
    [[start, count]] = run(connection, (_sql.step_start, where))
    if count:
        run(connection, (_sql.add_step, {"start": start, "filled_from": filled_from}))
    start = start if count == row_count else 0
    run(connection, (_sql.note_step, {"filled_from": start}))
    return start


async def messages_left(db: Database) -> int:
    """Return about how many messages wait to be indexed."""
    async with db.reader() as connection:
        return await _sql.left(connection)


async def clear_message_index(db: Database) -> None:
    """Take all messages out of the index; ``index_step`` puts them back."""
    await db.write(_clear)


def _clear(connection: sqlite3.Connection) -> None:
    run(connection, (_sql.clear, {}))
    run(connection, (_sql.note_clear, {}))


async def scrub_step(db: Database) -> bool:
    """Take words of what was erased out of the file, a part of them in one transaction.

    FTS5 keeps deleted tokens in the older parts of the index until those are merged.

    Returns:
        Whether there may be more to do.

    Raises:
        StoreBusy: another process holds the lock.
    """
    return await db.write(_scrub)


def _scrub(connection: sqlite3.Connection) -> bool:
    [[_, _, erased]] = run(connection, (_sql.state, {}))
    if not erased:
        return False
    if erased == _ERASED:
        run(connection, (_sql.note_scrub, {"erased": _SCRUBBING}))
        # Less than none: all parts are to become one, whatever they are.
        run(connection, (_sql.merge, {"pages": -SCRUB_PAGES}))
        return True
    before = connection.total_changes
    run(connection, (_sql.merge, {"pages": SCRUB_PAGES}))
    # FTS5 itself counts as one change.
    is_done = connection.total_changes - before < 2
    if is_done:
        run(connection, (_sql.note_scrub, {"erased": 0}))
    return not is_done

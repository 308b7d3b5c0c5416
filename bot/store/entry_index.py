"""The index of entries: their words, kept beside them. SQLite's own (FTS5), as is its search in
``bot/store/entry_search.py``.

See ``docs/search.md``, "The index of entries".
"""

import sqlite3

import aiosqlite

from bot.search.tokens import index_pairs, index_words
from bot.store.queries import load
from bot.store.sqlite import run, transact

FILL_ROWS = 1_000

_sql = load("entry_index")


def add_to_index(connection: sqlite3.Connection, entry_id: int, stream_id: int, text: str) -> None:
    """Let an entry be found by its words; in the transaction that adds it.

    They go by themselves when its text is erased.
    """
    row = {
        "entry_id": entry_id,
        "stream_id": stream_id,
        "words": index_words(text),
        "pairs": index_pairs(text, f"s{stream_id}"),
    }
    run(connection, (_sql.add, row))


async def fill_index(writer: aiosqlite.Connection) -> None:
    """Index all entries if none is: those that are older than the index.

    Raises:
        sqlite3.Error: it failed, or another process holds the lock; none is indexed then.
    """
    if await _sql.is_empty(writer):
        await transact(writer, _fill)


def _fill(connection: sqlite3.Connection) -> None:
    # Another process may have done it while this one waited for the lock.
    [[is_empty]] = run(connection, (_sql.is_empty, {}))
    after = 0
    while is_empty and (rows := run(connection, (_sql.texts, _page(after)))):
        for row in rows:
            add_to_index(connection, row["id"], row["stream_id"], row["text"])
        after = rows[-1]["id"]


def refill_index(connection: sqlite3.Connection) -> None:
    """Index all entries anew; in a write transaction."""
    run(connection, (_sql.clear, {}))
    _fill(connection)


def _page(after: int) -> dict[str, int]:
    return {"after": after, "limit": FILL_ROWS}


async def scrub_index(tx: aiosqlite.Connection) -> None:
    """Take the words of what was erased out of the file as well, in the same transaction.

    Merging all of 100,000 entries takes about half a second. Where nothing was written since the
    last time it does nothing.
    """
    await _sql.scrub(tx)

"""Reindex: what is older than the index is put into it, what was erased is scrubbed out of its
file, and on request all of it is made anew.

See ``docs/search.md``, "The index of messages".
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from bot.app import App
from bot.store.database import Database
from bot.store.entry_index import refill_index
from bot.store.entry_vectors import request_entries
from bot.store.message_index import clear_message_index, index_step, messages_left, scrub_step
from bot.store.patience import Patience

STEP_ROWS = 128
"""So many messages are indexed in one transaction beside the bot's work: a few milliseconds."""

PAUSE_SECONDS = 0.04
"""Between two such transactions, so that messages that arrive do not wait for them."""

REINDEX_ROWS = 1_000


async def index_older(app: App) -> None:
    """Index what was stored before there was an index, in the background, until all of it is.

    It goes on after a restart where it was.
    """
    await _step_by_step(app, partial(index_step, app.db, STEP_ROWS))


async def scrub_messages(app: App) -> None:
    """Take the words of messages that are gone out of the file of the index."""
    await _step_by_step(app, partial(scrub_step, app.db))


async def _step_by_step(app: App, step: Callable[[], Awaitable[int]]) -> None:
    while True:
        if not await app.patience.until_done(step):
            return
        await asyncio.sleep(PAUSE_SECONDS)


async def reindex(db: Database, patience: Patience, told: Callable[[int, int], None]) -> None:
    """Make the indices of entries and messages anew, and have entries embedded anew by the bot.

    While the bot runs, it goes on: its searches find what is indexed so far, and its messages are
    indexed as they come. If this is stopped, the bot goes on with it when it starts.

    Args:
        db: the database.
        patience: while another process writes, each step is tried again.
        told: how many messages are done, and of how many, after each step.
    """
    await patience.until_done(partial(db.write, refill_index))
    await patience.until_done(partial(db.write, request_entries))
    await patience.until_done(partial(clear_message_index, db))
    left = total = await messages_left(db)
    while left:
        left = await patience.until_done(partial(index_step, db, REINDEX_ROWS))
        told(total - left, total)

"""Compact: older turns leave the window once they are in the summary.

See ``docs/session.md``, "Window" and "Summarizing".
"""

from dataclasses import dataclass

import aiosqlite

from bot.app import App
from bot.budget import budget_is_spent
from bot.conversation.window import ENOUGH_TURNS, full_at, last_mark, least_turns
from bot.model import Chat
from bot.store.sessions import (
    SessionState,
    SessionToDo,
    SummaryReason,
    fold_window,
    full_windows,
    queue_summary,
    session_state,
    take_summary,
    waiting_sessions,
)
from bot.store.tasks import SessionClaim
from bot.summarize import ReadOn, summarize
from bot.work import LEASE_MS, leased


@dataclass(frozen=True, slots=True)
class Folded:
    """What compacting a conversation came to."""

    removed: int
    """How many turns its window shows no more."""
    is_whole: bool
    """All that was to leave it has left; else the summary reads on by itself, later."""


async def tend_sessions(app: App) -> int:
    """Let full windows fall back, queue the summaries that are due, and return how many are.

    A window of which the summary has read enough falls back without a model.
    """
    settings, now = app.settings.general, app.clock.now()
    full = full_at(settings.session_max_messages)
    count = 0
    for found in await full_windows(app.db, full, now):
        count += await _fold_or_queue(app, found)
    mark = last_mark(now, settings.summary_every_minutes)
    for found in await waiting_sessions(app.db, ENOUGH_TURNS, mark, now):
        async with app.db.transaction() as tx:
            count += await queue_summary(tx, found.chat_id, "timer", now)
    return count


async def fold_soon(app: App, chat: Chat, chat_id: int) -> None:
    """Let older turns, which did not fit into a prompt, leave the window as soon as the summary
    has read them.

    Args:
        app: the running program.
        chat: whose conversation it is.
        chat_id: its row.
    """
    await _fold_or_queue(app, SessionToDo(chat, chat_id), "budget")


async def _fold_or_queue(app: App, found: SessionToDo, reason: SummaryReason = "window") -> bool:
    async with app.db.transaction() as tx:
        if await _fold(app, tx, found.chat) is not None:
            return False
        return await queue_summary(tx, found.chat_id, reason, app.clock.now())


async def _fold(app: App, tx: aiosqlite.Connection, chat: Chat) -> int | None:
    return await fold_window(tx, chat, least_turns(app.settings.general.session_max_messages))


async def compact(app: App, chat: Chat, owner: str) -> Folded:
    """Let what the window does not always show leave it now, once the summary has read it.

    Args:
        app: the running program.
        chat: whose conversation it is.
        owner: who works on it, as a lease names them.
    """
    removed = await _folded(app, chat)
    if removed is not None:
        return Folded(removed, is_whole=True)
    state = await session_state(app.db, chat)
    await read_on(app, chat, state, owner)
    removed = await _folded(app, chat)
    # A window that was full fell back with the summary.
    after = await session_state(app.db, chat)
    left = max(0, state.window_turns - after.window_turns)
    return Folded(left, is_whole=removed is not None)


async def _folded(app: App, chat: Chat) -> int | None:
    async with app.db.transaction() as tx:
        return await _fold(app, tx, chat)


async def read_on(app: App, chat: Chat, state: SessionState, owner: str) -> ReadOn:
    """Let the summary read all that is new at once, unless somebody is at it. If the day's budget
    is spent it is queued and waits."""
    is_spent, now = await budget_is_spent(app, "summarize"), app.clock.now()
    async with app.db.transaction() as tx:
        if is_spent:
            await queue_summary(tx, state.chat_id, "command", now)
            return ReadOn(0, is_whole=False)
        taken = await take_summary(tx, state.chat_id, owner, now=now, until=now + LEASE_MS)
    if taken is None:
        return ReadOn(0, is_whole=False)
    claim = SessionClaim(
        id=taken.id,
        chat=chat,
        chat_id=state.chat_id,
        reason=taken.reason,
        attempts=taken.attempts,
        chunk=taken.chunk,
        unusable=taken.unusable,
    )
    async with leased(app, claim, owner):
        return await summarize(app, claim, owner)

"""Session: what somebody may do with the conversation of a chat, and how it stands.

See ``docs/session.md``, "Resets".
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import aiosqlite

from bot.app import App
from bot.compact import read_on
from bot.conversation.summary import SessionSummary, read_summary
from bot.model import Chat, Shown
from bot.store.chats import ensure_chat
from bot.store.messages import erase_chat_text
from bot.store.sessions import (
    SessionState,
    ask_for_rebuild,
    clear_conversation,
    clear_past,
    clear_summary,
    session_now,
    session_state,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Session:
    """The conversation of a chat."""

    state: SessionState
    summary: SessionSummary


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What rebuilding a summary came to."""

    turns: int
    """How many turns it has read."""
    entries: int
    """How many entries it has."""
    is_whole: bool
    """It has read all; else it reads on by itself, later."""


async def session_of_chat(app: App, chat: Chat) -> Session:
    """Return how the conversation of a chat stands."""
    state = await session_state(app.db, chat)
    return Session(state, read_summary(state.summary))


async def rebuild_summary(app: App, chat: Chat, owner: str) -> Rebuilt:
    """Make the summary anew from the newest turns of the conversation.

    It stays as it is until the first part of the new one is there. If that fails it is tried again
    by itself.
    """
    async with app.db.transaction() as tx:
        await ensure_chat(tx, chat, app.clock.now())
        await ask_for_rebuild(tx, chat, app.clock.now())
    state = await session_state(app.db, chat)
    done = await read_on(app, chat, state, owner)
    found = await session_of_chat(app, chat)
    return Rebuilt(done.turns, found.summary.size, done.is_whole)


async def reset_summary(app: App, chat: Chat) -> int:
    """Clear the conversation and keep the summary; return how many turns were shown."""
    return await _change(app, chat, clear_conversation)


async def reset_all(app: App, chat: Chat) -> int:
    """Clear the conversation and the summary; return how many turns were shown.

    Neither context nor a search without a date reaches to what was said before.
    """

    async def clear(tx: aiosqlite.Connection, chat: Chat) -> int:
        return await _clear_all(tx, chat, app.clock.now())

    return await _change(app, chat, clear)


async def remove_session(app: App, chat: Chat) -> int:
    """Clear all that ``reset_all`` clears, and erase what was said in the chat.

    What long-term memory made of it stays.
    """

    async def clear(tx: aiosqlite.Connection, chat: Chat) -> int:
        now = app.clock.now()
        count = await _clear_all(tx, chat, now)
        await erase_chat_text(tx, (await session_now(tx, chat)).chat_id, now)
        return count

    return await _change(app, chat, clear)


async def _clear_all(tx: aiosqlite.Connection, chat: Chat, now: int) -> int:
    count = await clear_conversation(tx, chat)
    await clear_summary(tx, chat)
    await clear_past(tx, chat, now)
    return count


async def _change(
    app: App, chat: Chat, how: Callable[[aiosqlite.Connection, Chat], Awaitable[T]]
) -> T:
    """Change a session in one transaction; a turn that is in the making begins again."""
    async with app.db.transaction() as tx:
        await ensure_chat(tx, chat, app.clock.now())
        result = await how(tx, chat)
    app.floor.renew_shown(Shown(frozenset([chat])))
    return result

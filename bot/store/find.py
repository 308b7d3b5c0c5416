"""What was said in one chat, by when, by whom, and by the words in it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.model import Chat, StoredMessage
from bot.store.database import Database
from bot.store.messages import END_OF_TIME, chat_key, stored_message
from bot.store.queries import load

_sql = load("find")


@dataclass(frozen=True, slots=True)
class Window:
    """What of a chat may be found."""

    sender_id: str | None = None
    since: int | None = None
    """``sent_at`` from here on, UTC milliseconds."""
    until: int | None = None
    """``sent_at`` before this."""
    hidden: frozenset[int] = frozenset()
    """Rows that are in the prompt already."""
    not_before: int = 0
    """A reset without a date bound: later than this, unless ``since`` was given."""


async def latest(db: Database, chat: Chat, window: Window, limit: int) -> list[StoredMessage]:
    """Return the newest messages of a window, newest first."""
    return await keyword_hits(db, chat, (), window, limit)


async def keyword_hits(
    db: Database, chat: Chat, keywords: Sequence[str], window: Window, limit: int
) -> list[StoredMessage]:
    """Return the messages that contain every keyword to the letter, newest first."""
    asked = {**_asked(chat, window, limit), "keywords": json.dumps(list(keywords))}
    async with db.reader() as connection:
        return [stored_message(row, chat) async for row in _sql.latest(connection, **asked)]


async def fitting(
    db: Database, chat: Chat, words: Sequence[str], window: Window, limit: int
) -> list[tuple[StoredMessage, int]]:
    """Return the messages that contain most of some words (in small letters), best first, each
    with how many."""
    asked = {**_asked(chat, window, limit), "words": json.dumps(list(words))}
    async with db.reader() as connection:
        rows = [row async for row in _sql.fitting(connection, **asked)]
    return [(stored_message(row, chat), row["fit"]) for row in rows]


async def around(
    db: Database, chat: Chat, row_id: int, window: Window, each_side: int
) -> list[StoredMessage]:
    """Return a message of a chat with what was said before and after it, oldest first; nothing
    if the chat has no such message."""
    async with db.reader() as connection:
        at = await _sql.said_at(connection, **chat_key(chat), id=row_id)
        if at is None:
            return []
        # Of one moment the message itself and its neighbours stand in the later half.
        before = _asked(chat, _within(window, until=at), each_side)
        after = _asked(chat, _within(window, since=at), each_side + 1)
        earlier = [row async for row in _sql.latest(connection, **before, keywords="[]")]
        later = [row async for row in _sql.following(connection, **after)]
    return [stored_message(row, chat) for row in (*reversed(earlier), *later)]


def _within(window: Window, since: int | None = None, until: int | None = None) -> Window:
    lower = [at for at in (window.since, since) if at is not None]
    upper = [at for at in (window.until, until) if at is not None]
    return replace(window, since=max(lower, default=None), until=min(upper, default=None))


def _asked(chat: Chat, window: Window, limit: int) -> dict[str, Any]:
    return {
        **chat_key(chat),
        "sender_id": window.sender_id,
        "since": window.not_before + 1 if window.since is None else window.since,
        "until": END_OF_TIME if window.until is None else window.until,
        "hidden": json.dumps(sorted(window.hidden)),
        "limit": limit,
    }

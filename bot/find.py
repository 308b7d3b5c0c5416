"""Find: what was said in one chat; what a prompt may not show is not found."""

from dataclasses import dataclass

from bot.app import App
from bot.model import Chat, StoredMessage
from bot.search.tokens import question_phrases
from bot.store.find import Window, around, fitting, latest

NEIGHBOURS = 8
"""So many messages are read before one, and as many after it."""


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message that has to do with a question."""

    stored: StoredMessage
    score: float
    """Higher is better."""
    context: tuple[StoredMessage, ...] = ()
    """What was said right before and after it."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a question found, best first."""

    hits: list[FoundMessage]
    is_lexical_only: bool
    """Found by its words alone, not by their meaning."""


async def search_messages(
    app: App, chat: Chat, asker_id: str, question: str, window: Window, limit: int
) -> Found:
    """Return what has to do with a question, best first."""
    phrases = [phrase.strip('"').replace(" ", "") for phrase in question_phrases(question)]
    hits = await fitting(app.db, chat, phrases, window, limit)
    found = [FoundMessage(stored, fit / len(phrases)) for stored, fit in hits]
    return Found(found, is_lexical_only=True)


async def latest_messages(app: App, chat: Chat, window: Window, limit: int) -> list[StoredMessage]:
    """Return the newest messages, newest first."""
    return await latest(app.db, chat, window, limit)


async def messages_around(app: App, chat: Chat, row_id: int, window: Window) -> list[StoredMessage]:
    """Return a message with what was said before and after it, oldest first."""
    return await around(app.db, chat, row_id, window, NEIGHBOURS)

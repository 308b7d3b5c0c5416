"""Notes: where there are any. See ``docs/memory.md``, "Tiers"."""

from bot.model import Chat, Scope, Stream
from bot.store.database import Database
from bot.store.messages import chat_key
from bot.store.queries import load

_sql = load("notes")


async def streams_with_notes(db: Database, chat: Chat | None = None) -> list[Stream]:
    """Return the streams that hold notes, of one chat or of all, in the order they began."""
    async with db.reader() as connection:
        found = (
            _sql.streams_with_notes_here(connection, **chat_key(chat))
            if chat
            else _sql.streams_with_notes(connection)
        )
        rows = [row async for row in found]
    return [
        Stream(
            Scope(row["bot_id"], row["scope_kind"], row["key"]),
            Chat(row["bot_id"], row["kind"], row["peer_id"]),
        )
        for row in rows
    ]

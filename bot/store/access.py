"""Which chats an operator switched on or off; see ``docs/architecture.md``, "Access"."""

from bot.model import Chat
from bot.store.chats import Access, set_access
from bot.store.database import Database
from bot.store.queries import load

_sql = load("chats")


class AccessBook:
    """The switches in force, in memory: every message asks, before it waits for anything.

    Made by ``open_access``; a change is durable before it holds.
    """

    def __init__(self, db: Database, switches: dict[Chat, Access]) -> None:
        self._db = db
        self._switches = switches

    def of(self, chat: Chat) -> Access:
        """Return the switch of a chat, ``""`` if the general rule holds there."""
        return self._switches.get(chat, "")

    async def switch(self, chat: Chat, access: Access, *, by: str, at: int) -> None:
        """Switch a chat on or off.

        Args:
            chat: which.
            access: ``enabled`` or ``disabled``, or ``""`` for the general rule.
            by: the user id of the operator.
            at: UTC milliseconds.
        """
        async with self._db.transaction() as tx:
            await set_access(tx, chat, access, by=by, at=at)
        self._switches[chat] = access


async def open_access(db: Database) -> AccessBook:
    """Read the switches."""
    async with db.reader() as connection:
        rows = [row async for row in _sql.switched_chats(connection)]
    switches = {Chat(r["bot_id"], r["kind"], r["peer_id"]): r["access"] for r in rows}
    return AccessBook(db, switches)

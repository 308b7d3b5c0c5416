"""Where and to whom the bot may speak, by operators' switches and blocks and by groups' mutes; see
``docs/architecture.md``, "Access"."""

from bot.model import Chat, Member
from bot.store.chats import Access, block, set_access, unblock
from bot.store.database import Database
from bot.store.queries import load

_sql = load("chats")


class AccessBook:
    """What is in force, in memory: every message asks, before it waits for anything.

    Made by ``open_access``; a change is durable before it holds.
    """

    def __init__(
        self,
        db: Database,
        switches: dict[Chat, Access],
        mutes: dict[Chat, int],
        blocked: set[Member],
    ) -> None:
        self._db = db
        self._switches = switches
        self._mutes = mutes
        self._blocked = blocked

    def of(self, chat: Chat) -> Access:
        """Return the switch of a chat, ``""`` if the general rule holds there."""
        return self._switches.get(chat, "")

    def muted_until(self, chat: Chat) -> int:
        """Return until when (UTC milliseconds) nothing can be sent to a chat; 0 if it can."""
        return self._mutes.get(chat, 0)

    def is_blocked(self, member: Member) -> bool:
        """Whether a person is not answered."""
        return member in self._blocked

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

    def muted(self, chat: Chat, until: int) -> None:
        """Take over until when a chat is muted, once ``set_muted`` has kept it."""
        if until:
            self._mutes[chat] = until
        else:
            self._mutes.pop(chat, None)

    async def block(self, member: Member, *, by: str, at: int) -> bool:
        """Stop answering a person; false if that was so already."""
        async with self._db.transaction() as tx:
            is_new = await block(tx, member, by=by, at=at)
        self._blocked.add(member)
        return is_new

    async def unblock(self, member: Member) -> bool:
        """Answer a person again; false if they were not blocked."""
        async with self._db.transaction() as tx:
            was_blocked = await unblock(tx, member)
        self._blocked.discard(member)
        return was_blocked


async def open_access(db: Database) -> AccessBook:
    """Read what is in force."""
    async with db.reader() as connection:
        rows = [row async for row in _sql.switched_chats(connection)]
        blocked = {Member(r["bot_id"], r["user_id"]) async for r in _sql.blocked(connection)}
    chats = [(Chat(row["bot_id"], row["kind"], row["peer_id"]), row) for row in rows]
    return AccessBook(
        db,
        switches={chat: row["access"] for chat, row in chats if row["access"]},
        mutes={chat: row["muted_until"] for chat, row in chats if row["muted_until"]},
        blocked=blocked,
    )

"""Who is not recorded; see ``docs/memory.md``, "Opting out"."""

from collections.abc import Iterable

import aiosqlite

from bot.model import Member
from bot.store.database import Database
from bot.store.queries import load

_sql = load("opt_outs")


class OptOuts:
    """Who has opted out, in memory: every message asks, before it waits for anything.

    Made by ``open_opt_outs``. A change holds from the transaction on that makes it: whatever is
    written after it, also what waited for it, is written as the change has it.
    """

    def __init__(self, db: Database, members: Iterable[Member]) -> None:
        self._db = db
        self._ids: dict[str, frozenset[str]] = {}
        for member in members:
            self._put(member)

    def has(self, bot_id: str, user_id: str) -> bool:
        """Whether somebody is not recorded."""
        ids = self._ids.get(bot_id)
        return ids is not None and user_id in ids

    def of(self, bot_id: str) -> frozenset[str]:
        """Return the user ids of everybody whom an account does not record."""
        return self._ids.get(bot_id, frozenset())

    def _put(self, member: Member) -> None:
        self._ids[member.bot_id] = self.of(member.bot_id) | {member.user_id}

    def _drop(self, member: Member) -> None:
        self._ids[member.bot_id] = self.of(member.bot_id) - {member.user_id}

    async def add(self, member: Member, *, at: int) -> None:
        """Record somebody no more, and hide all that they said so far, in one transaction.

        Args:
            member: who.
            at: UTC milliseconds.
        """
        is_news = False
        try:
            async with self._db.transaction() as tx:
                await opt_out(tx, member, at)
                # Within the transaction: what waits to be written next has to know.
                is_news = not self.has(member.bot_id, member.user_id)
                self._put(member)
        except BaseException:
            if is_news:
                self._drop(member)
            raise

    async def remove(self, member: Member) -> bool:
        """Record somebody again from now on; false if they were recorded."""
        async with self._db.transaction() as tx:
            is_changed = await _sql.opt_in(tx, bot_id=member.bot_id, user_id=member.user_id) > 0
        self._drop(member)
        return is_changed


async def open_opt_outs(db: Database) -> OptOuts:
    """Read who has opted out."""
    async with db.reader() as connection:
        rows = [row async for row in _sql.opted_out(connection)]
    return OptOuts(db, (Member(row["bot_id"], row["user_id"]) for row in rows))


async def opt_out(tx: aiosqlite.Connection, member: Member, at: int) -> None:
    """Keep that somebody opted out; readers and searches show nothing of theirs any more."""
    key = {"bot_id": member.bot_id, "user_id": member.user_id, "at": at}
    await _sql.ensure_member(tx, **key)
    await _sql.opt_out(tx, **key)

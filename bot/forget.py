"""Forget: what somebody wants forgotten goes, with what it was made from and what it rests on.

See ``docs/memory.md``, "Remembering and forgetting on request".
"""

from dataclasses import dataclass

from bot.app import App
from bot.memory.naming import Names
from bot.model import Chat, Entry, Scope, Stream
from bot.store.forgetting import Forgotten, forget_entry, names_since
from bot.store.memory import Proved, names_of_chat, read_told
from bot.store.messages import chat_row
from bot.store.reach import Place, readable
from bot.store.snapshots import place_documents


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that somebody may have forgotten."""

    entry: Entry
    is_shown: bool
    """A turn there may read it, so an answer may repeat it."""

    @property
    def is_of_group(self) -> bool:
        """Whether it is the group's, else the person's own."""
        return self.entry.stream.scope.kind == "group"


async def own_entry(app: App, chat: Chat, user_id: str, number: int) -> Found | None:
    """Return the entry of somebody's own scope that a number means, as far as a chat may know.

    One that ended is found as well, while it has its text: an undo could bring it back.

    In a private chat that is any; in a group what comes from it, and of what comes from other
    groups as much as a turn there may read.
    """
    cross_group = app.settings.of(chat).memory_member_cross_group
    allowed = await place_documents(app.db)
    for one in await readable(app.db, chat, user_id, cross_group=cross_group):
        if one.place == "group":
            continue
        found = await read_told(app.db, one.stream, number)
        if found and (_is_known(one.place) or found.entry.document in allowed[one.place]):
            return Found(found.entry, found.entry.document in allowed[one.place])
    return None


def _is_known(place: Place) -> bool:
    """Whether all of a stream was said where the question is."""
    return place in ("here", "own")


async def group_entry(
    app: App, chat: Chat, user_id: str, number: int, group_id: str
) -> Found | None:
    """Return the entry of a group that a number means, if somebody may have it forgotten.

    It names them, or rests on their messages alone. In another group nothing of it is known.

    Args:
        app: the running program.
        chat: where it is asked.
        user_id: who asks.
        number: the entry's.
        group_id: whose entry it is.
    """
    if chat.is_group and chat.id != group_id:
        return None
    group = Chat(chat.bot_id, "group", group_id)
    found = await read_told(app.db, Stream(Scope(chat.bot_id, "group", group_id), group), number)
    if found is None:
        return None
    if not _rests_on(found, user_id, alone=True) and not await _names(app, group, user_id, found):
        return None
    return Found(found.entry, chat.is_group)


def _rests_on(found: Proved, user_id: str, *, alone: bool = False) -> bool:
    """Whether what somebody said proves an entry, alone or beside others; the bot's words do not
    count."""
    bot_id = found.entry.stream.scope.bot_id
    senders = {one.sender_id for one in found.evidence.values()} - {bot_id}
    return senders == {user_id} if alone else user_id in senders


async def _names(app: App, group: Chat, user_id: str, found: Proved) -> bool:
    """Whether an entry of a group names somebody.

    A name that they took later does not count: else anybody could call themselves like a word of
    the group's memory, and have it forgotten. Nor does one that others bear as well, unless what
    they said is among what proves the entry.
    """
    chat_id = await chat_row(app.db, group)
    if chat_id is None:
        return False
    since = await names_since(app.db, group, user_id)
    mine = {one.name for one in since if one.first_seen <= found.entry.created_at}
    names = {**await names_of_chat(app.db, chat_id), user_id: frozenset(mine)}
    bearers = [who for who in Names(names).named_in(found.entry.text) if user_id in who]
    return any(len(who) == 1 or _rests_on(found, user_id) for who in bearers)


async def forget(app: App, chat: Chat, user_id: str, found: Found) -> Forgotten | None:
    """Forget an entry that was found for somebody, for good.

    What they said that it rests on is no evidence and no context any more; whatever else rests on
    it falls, and prompts that are in the making are made anew.

    Args:
        app: the running program.
        chat: where it was asked.
        user_id: whose wish it is.
        found: which entry.

    Returns:
        What that reached, ``None`` if it was erased meanwhile.
    """
    stream = found.entry.stream
    shown_in = [chat, Chat(chat.bot_id, "private", user_id)]
    async with app.db.transaction() as tx:
        forgotten = await forget_entry(
            tx,
            stream,
            found.entry.number,
            by=user_id,
            at=app.clock.now(),
            shown_in=shown_in,
        )
    if forgotten is None:
        return None
    for row_id in forgotten.message_rows:
        app.floor.renew(stream.origin, row_id)
    app.floor.renew_shown(forgotten.shown)
    return forgotten

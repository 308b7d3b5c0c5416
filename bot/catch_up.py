"""Catch up: what was said while the account was away, and what a crash left unanswered.

See ``docs/onebot.md``, "The connection". Older messages are stored and never answered.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from loguru import logger

from bot.app import App
from bot.conversation.policy import FRESH_MS, Standing
from bot.converse import take_up
from bot.errors import EventError, SendError
from bot.ingest import Ingested, admits, ingest
from bot.model import Chat, Member, StoredMessage
from bot.store.chats import account_connected, groups_to_catch_up, situation
from bot.store.messages import unanswered_messages
from bot.store.turns import settle_turns

PAGE_MESSAGES = 50
PAGES = 10
"""At most this many pages are read of one group."""

GROUPS_AT_ONCE = 2


async def welcome(app: App, bot_id: str) -> None:
    """Do what a new connection asks for: settle what a crash left, catch up, answer what is due."""
    await app.lasting.keep(partial(_keep_connected, app, bot_id, app.clock.now()))
    caught = await _catch_up(app, bot_id)
    left = await unanswered_messages(app.db, bot_id, app.clock.now() - FRESH_MS)
    logger.info("account {} is connected, {} missed messages stored", bot_id, caught)
    await asyncio.gather(*(_answer_left(app, stored) for stored in left))


async def _keep_connected(app: App, bot_id: str, now: int) -> None:
    async with app.db.transaction() as tx:
        await account_connected(tx, bot_id, now)
        await settle_turns(tx, bot_id, app.started_at, now)


async def _answer_left(app: App, stored: StoredMessage) -> None:
    message = stored.message
    if not admits(app, message):
        return
    known = await situation(app.db, message.chat, message.reply_to)
    standing = Standing(
        is_new=True,
        recalled=stored.recalled_at is not None,
        from_bot=app.is_bot(message.sender.user_id, message.chat),
        blocked=app.access.is_blocked(Member(message.chat.bot_id, message.sender.user_id)),
        muted=app.access.muted_until(message.chat) > app.clock.now(),
        removed=known.removed,
        quotes_bot=known.quotes_bot,
    )
    await take_up(app, stored, standing)


async def _catch_up(app: App, bot_id: str) -> int:
    """Store what the groups that have rows said meanwhile; return how many messages were new."""
    groups = await groups_to_catch_up(app.db, bot_id)
    gate = asyncio.Semaphore(GROUPS_AT_ONCE)
    offered = asyncio.Event()
    offered.set()

    async def one(chat: Chat) -> int:
        async with gate:
            return await _catch_up_group(app, chat, offered) if offered.is_set() else 0

    return sum(await asyncio.gather(*(one(chat) for chat, _ in groups)))


async def _catch_up_group(app: App, chat: Chat, offered: asyncio.Event) -> int:
    stored, before = 0, None
    seen: set[str] = set()
    for _ in range(PAGES):
        page = await _page(app, chat, before, offered)
        # A page ends with the message that it was asked for by, which the one before began with.
        fresh = [event for event in page if str(event.get("message_id")) not in seen]
        seen |= {str(event.get("message_id")) for event in fresh}
        new = [event for event in fresh if await _store(app, chat, event)]
        stored += len(new)
        before = _sequence(fresh)
        # A page with something known reaches what was stored before the account went away.
        if len(new) < len(fresh) or before is None:
            break
    return stored


async def _page(
    app: App, chat: Chat, before: str | None, offered: asyncio.Event
) -> Sequence[dict[str, object]]:
    params: dict[str, object] = {"group_id": chat.id, "count": PAGE_MESSAGES}
    if before is not None:
        params["message_seq"] = before
    try:
        platform = app.accounts.platform(chat.bot_id)
        answer = await platform.call("get_group_msg_history", **params)
    except SendError as error:
        if getattr(error, "retcode", None) == 1404:
            offered.clear()
        logger.debug("no history of {}: {}", chat, error)
        return ()
    messages = answer.get("messages") if isinstance(answer, dict) else None
    return [m for m in messages if isinstance(m, dict)] if isinstance(messages, list) else ()


def _sequence(page: Sequence[dict[str, object]]) -> str | None:
    first = page[0].get("message_seq") if page else None
    return None if first is None else str(first)


async def _store(app: App, chat: Chat, event: dict[str, object]) -> bool:
    raw = {"post_type": "message", "message_type": "group", "group_id": chat.id, **event}
    try:
        ingested = await ingest(app, {**raw, "self_id": chat.bot_id}, live=False)
    except EventError as error:
        logger.warning("a message of the history of {} cannot be read: {}", chat, error)
        return False
    return isinstance(ingested, Ingested) and ingested.standing.is_new

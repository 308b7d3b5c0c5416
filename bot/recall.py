"""Recall: a message taken back leaves everything that is shown or thought of again.

See ``docs/architecture.md``, "Recalls".
"""

import asyncio
from dataclasses import replace
from functools import partial

from loguru import logger

from bot.app import App
from bot.model import Chat
from bot.onebot.events import Recalled
from bot.store.chats import ensure_chat, situation
from bot.store.memory import Fallout, forget_message
from bot.store.messages import Recall, newest_with_id, private_peer_of_own, recall_message

OWN_RECALL_MS = 24 * 3_600_000
"""How far back an own private message is looked for whose chat the notice does not name."""


async def recall(app: App, event: Recalled) -> None:
    """Take a message back. A second notice changes nothing; an early one waits for its message.

    However long that has to wait to be written, nobody is shown the message meanwhile: turns that
    show it are stopped at once, and the next one begins when it is gone (``bot/permit.py``).
    """
    now = app.clock.now()
    app.floor.withdraw(event.chat, event.platform_id)
    await asyncio.gather(
        app.lasting.keep(partial(_take_back, app, event, now)), _stop_what_shows(app, event)
    )


async def _stop_what_shows(app: App, event: Recalled) -> None:
    found = await newest_with_id(app.db, event.chat, event.platform_id)
    if found is not None and found.recalled_at is None:
        app.floor.renew(event.chat, found.row_id)


async def _take_back(app: App, event: Recalled, now: int) -> None:
    # Else it would be an early one, and those do not wait for ever.
    await app.arrivals.caught_up()
    chat = event.chat
    if not chat.id:
        peer = await private_peer_of_own(
            app.db, chat.bot_id, event.platform_id, now - OWN_RECALL_MS
        )
        if peer is None:
            return
        chat = replace(chat, id=peer)
    if await _keeps_nothing(app, chat):
        return
    async with app.db.transaction() as tx:
        await ensure_chat(tx, chat, now)
        taken = await recall_message(tx, Recall(chat, event.platform_id, event.operator_id, now))
        reached = Fallout() if taken is None else await forget_message(tx, taken.row_id, now)
    # Only now: a turn that begins again must not find the message where it was.
    app.floor.withdraw(chat, event.platform_id)
    if taken is not None:
        app.floor.renew(chat, taken.row_id)
        app.floor.renew_shown(taken.shown)
    app.floor.renew_shown(reached.shown)
    logger.debug("a message of {} was recalled, row {}", chat, taken and taken.row_id)


async def _keeps_nothing(app: App, chat: Chat) -> bool:
    known = await situation(app.db, chat)
    if known.known:
        return False
    return chat.is_group and app.settings.general.group_access == "approved"

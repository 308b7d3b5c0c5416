"""Every event, first of all, into the store; and on to its answer if no plugin stands between."""

from nonebot import on
from nonebot.matcher import matchers

from plugins.current import take_in
from plugins.heard import INGEST_PRIORITY, is_next, reply


async def take_in_and_go_on() -> None:
    """Take an event in, and see to a message at once if ``plugins/chat.py`` would be next."""
    await take_in()
    if is_next(matchers):
        await reply()


every_event = on(priority=INGEST_PRIORITY, block=False, handlers=[take_in_and_go_on])

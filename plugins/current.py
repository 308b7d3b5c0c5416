"""What handlers work with: the running program, and the event as it was taken in.

They ask here instead of declaring parameters: NoneBot solves those of a handler in task groups of
their own, which costs every message a third of a millisecond for each matcher.
"""

import sqlite3

import nonebot
from loguru import logger
from nonebot.matcher import current_event

from bot.app import App
from bot.errors import EventError, QunyiError
from bot.ingest import ingest
from plugins.adapter import QuietMessage


def current_app() -> App:
    """Return the running program, which the lifecycle plugin put on the server."""
    return nonebot.get_app().state.qunyi


async def take_in() -> None:
    """Take in the event of the running matcher; what cannot be read or kept is logged with its
    cause."""
    event = current_event.get()
    raw = getattr(event, "raw_event", None)
    try:
        taken = await ingest(current_app(), raw if raw is not None else event.model_dump())
    except EventError as error:
        logger.warning("an event cannot be read and is left out: {}", error)
    except (QunyiError, sqlite3.Error) as error:
        logger.error("an event could not be kept: {}: {}", type(error).__name__, error)
    else:
        if isinstance(event, QuietMessage):
            event.taken = taken

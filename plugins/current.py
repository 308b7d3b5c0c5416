"""What handlers depend on: the running program, and the event as it was taken in.

NoneBot keeps the result of a dependency for one event, so the ingest matcher, the commands and
the chat share one ``taken_in``.
"""

import sqlite3
from typing import Annotated, Any

import nonebot
from loguru import logger
from nonebot.adapters import Event
from nonebot.params import Depends

from bot.app import App
from bot.errors import EventError, QunyiError
from bot.ingest import Ingested, ingest


def current_app() -> App:
    """Return the running program, which the lifecycle plugin put on the server."""
    return nonebot.get_app().state.qunyi


async def taken_in(event: Event) -> Ingested | None:
    """Take in an event once, whoever asks; what cannot be read or kept is logged with its cause."""
    raw = getattr(event, "raw_event", None)
    try:
        return await ingest(current_app(), raw if raw is not None else event.model_dump())
    except EventError as error:
        logger.warning("an event cannot be read and is left out: {}", error)
    except (QunyiError, sqlite3.Error) as error:
        logger.error("an event could not be kept: {}: {}", type(error).__name__, error)
    return None


# NoneBot checks what it injects against the annotation, by a schema that it would have to build
# from our nouns for every handler; they are typed, and passed on to typed functions at once.
TakenIn = Annotated[Any, Depends(taken_in)]
"""An ``Ingested``, or ``None``."""

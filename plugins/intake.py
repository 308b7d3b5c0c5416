"""What becomes of an event: it is stored, then answered, whoever hands it in."""

import sqlite3
from collections.abc import Iterable, Mapping

from loguru import logger

from bot.command import command
from bot.converse import converse
from bot.errors import EventError, QunyiError, SendError
from bot.ingest import Ingested, ingest
from plugins.current import current_app

OURS = frozenset({"plugins.lifecycle", "plugins.ingest", "plugins.chat", "plugins.schedule"})
"""The modules whose plugins and matchers are part of the program."""


async def take_in(raw: Mapping[str, object]) -> Ingested | None:
    """Take in an event and return what became of a message; what cannot be read or kept is logged
    with its cause."""
    try:
        return await ingest(current_app(), raw)
    except EventError as error:
        logger.warning("an event cannot be read and is left out: {}", error)
    except (QunyiError, sqlite3.Error) as error:
        logger.error("an event could not be kept: {}: {}", type(error).__name__, error)
    return None


async def follow_up(taken: Ingested) -> None:
    """Do what a message commands; let another have its answer, if it is to have one."""
    if taken.command is None:
        await converse(current_app(), taken)
        return
    try:
        await command(current_app(), taken)
    except SendError as error:
        logger.warning("the answer to {} did not go out: {}", taken.command.name, error)


def is_alone(modules: Iterable[str | None]) -> bool:
    """Whether nobody but the program itself listens to events.

    Args:
        modules: those of all plugins and matchers that NoneBot knows.
    """
    return OURS.issuperset(modules)

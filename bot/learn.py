"""Learn: what went wrong with a tool and was solved helps where it goes wrong again.

See ``docs/tools.md``, "Lessons".
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loguru import logger

from bot.app import App
from bot.conversation.lessons import (
    TTL_MS,
    Tried,
    attached_in,
    helpful,
    learned,
    lessons_text,
    related,
    symptom_of,
)
from bot.errors import StoreError
from bot.model import Chat
from bot.store.lessons import keep_lessons, lessons_of_tool, renew_lessons
from bot.tools.kit import toolbox
from bot.use_tools import Attempt


async def lessons_for(app: App, chat: Chat, tool: str, error: str, arguments: str = "") -> str:
    """Return what to put behind the error of a tool, ``""`` if nothing like it is known.

    Args:
        app: the running program.
        chat: where the tool failed.
        tool: its name.
        error: what the model is told.
        arguments: what the tool was called with, JSON text.
    """
    symptom = symptom_of(error, arguments, _words(app).get(tool, frozenset()))
    try:
        known = await lessons_of_tool(app.db, chat, tool, since=app.clock.now() - TTL_MS)
    except (StoreError, sqlite3.Error) as failure:
        logger.warning("lessons of {} could not be read: {}", tool, failure)
        return ""
    return lessons_text(related(symptom, known))


async def note_outcome(app: App, chat: Chat, attempts: Sequence[Attempt]) -> None:
    """Keep what the tools of a turn taught, and renew what helped. The turn does not depend on it.

    Args:
        app: the running program.
        chat: where the turn was.
        attempts: its calls of tools, in order.
    """
    told = [_tried(one) for one in attempts]
    lessons, renewed = learned(told, _words(app)), helpful(told)
    if not lessons and not renewed:
        return
    now = app.clock.now()
    since = now - TTL_MS
    try:
        async with app.db.transaction() as tx:
            await renew_lessons(tx, chat, renewed, at=now, since=since)
            await keep_lessons(tx, chat, lessons, at=now, since=since)
    except (StoreError, sqlite3.Error) as failure:
        logger.warning("what tools taught in {} is not kept: {}", chat, failure)


def _tried(one: Attempt) -> Tried:
    return Tried(one.call.name, one.call.arguments, one.result, attached_in(one.lessons))


def _words(app: App) -> Mapping[str, frozenset[str]]:
    """Return the names and choices of each tool's schema: they are nobody's values."""
    return {tool.spec.name: frozenset(_named(tool.spec.parameters)) for tool in toolbox(app)}


def _named(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for one in schema:
            yield from _named(one)
    if not isinstance(schema, Mapping):
        return
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        yield from (str(name) for name in properties)
    for choices in (schema.get("enum"), [schema.get("const")]):
        yield from (one for one in choices or () if isinstance(one, str))
    for part in schema.values():
        yield from _named(part)

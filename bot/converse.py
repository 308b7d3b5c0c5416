"""Converse: one chat, one turn at a time, until nobody waits any more.

See ``docs/architecture.md``, "Replies".
"""

import asyncio
import sqlite3

from loguru import logger

from bot.app import App, pace_of
from bot.conversation.floor import Question, Rest
from bot.conversation.policy import Standing, should_reply
from bot.errors import QunyiError, TurnWithdrawn
from bot.ingest import Ingested
from bot.model import Chat, StoredMessage
from bot.reply import answer


async def converse(app: App, ingested: Ingested) -> None:
    """Let a message that was just stored have its answer, if it is to have one.

    Whoever finds the chat's floor free runs it until nobody waits; others return at once.
    """
    if ingested.row_id is not None:
        await take_up(app, ingested.stored, ingested.standing)


async def take_up(app: App, stored: StoredMessage, standing: Standing) -> None:
    """Offer a stored message for a turn, and run its chat if nobody does."""
    message = stored.message
    now = app.clock.now()
    mode = app.settings.of(message.chat).reply_mode
    verdict = should_reply(message, standing, mode, app.config.nickname, now)
    pace = pace_of(app.settings.of(message.chat))
    if verdict.may_follow and app.floor.join(stored, pace, now=now):
        return
    if verdict.answering == "ignore":
        logger.debug("no answer to row {}: {}", stored.row_id, verdict.reason)
        return
    if app.floor.offer(stored, addressed=verdict.answering == "reply", now=now):
        await app.errands.run(_run(app, message.chat))


async def _run(app: App, chat: Chat) -> None:
    try:
        while step := app.floor.next_step(chat, pace_of(app.settings.of(chat)), app.clock.now()):
            match step:
                case Rest(until):
                    await app.clock.sleep((until - app.clock.now()) / 1000)
                case Question():
                    await _take_turn(app, step)
    finally:
        app.floor.left(chat)


async def _take_turn(app: App, question: Question) -> None:
    turn = asyncio.create_task(answer(app, question))
    app.floor.started(question, turn.cancel)
    spoke = False
    try:
        spoke = await turn
    except TurnWithdrawn:
        logger.debug("a turn in {} was withdrawn", question.chat)
    except asyncio.CancelledError:
        # Either the turn alone was stopped, by a recall, or all of this is.
        if not app.floor.is_withdrawn(question):
            turn.cancel()
            raise
        logger.debug("a turn in {} was stopped", question.chat)
    except (QunyiError, sqlite3.Error) as error:
        # The chat goes on with whoever waits next.
        logger.error("no answer in {}: {}: {}", question.chat, type(error).__name__, error)
    finally:
        app.floor.ended(question, now=app.clock.now(), spoke=spoke)

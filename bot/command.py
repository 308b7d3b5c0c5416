"""Command: do what a recognised command asks, and answer it.

See ``docs/architecture.md``, "Commands".
"""

import secrets

from loguru import logger

from bot.app import App
from bot.commands.call import Call, Refusal
from bot.commands.status import may_use
from bot.commands.table import ACTIONS
from bot.conversation.commands import Command, spec_of
from bot.conversation.delivery import split_answer
from bot.conversation.policy import FRESH_MS
from bot.errors import QunyiError
from bot.ingest import Ingested
from bot.model import Message, Role
from bot.send import send_notice

ANSWER_CHARS = 1_500
"""Answers to commands are lists; they are split like long private messages."""


async def command(app: App, ingested: Ingested) -> None:
    """Do the command that a message is, unless it may not be given here or is no news.

    Raises:
        SendError: the answer did not go out.
    """
    if ingested.command is None or not _is_heard(app, ingested):
        return
    message = ingested.message
    given = ingested.command
    call = Call(app, message, given.arguments, _role(message), ingested.row_id)
    if not may_use(call, spec_of(given.name).audience):
        logger.info("{} may not use {}", message.sender.user_id, given.name)
        return
    await app.errands.run(_answer(app, message, await _done(call, given)))


def _is_heard(app: App, ingested: Ingested) -> bool:
    standing, message = ingested.standing, ingested.message
    if standing.blocked or standing.muted or app.clock.now() - message.sent_at > FRESH_MS:
        return False
    if ingested.row_id is not None:
        return standing.is_new and not standing.recalled
    # Nothing of this chat is kept; an operator can still switch it on, and nobody else is heard.
    assert ingested.command is not None
    return app.is_operator(message.sender.user_id) and ingested.command.name == "启用"


def _role(message: Message) -> Role:
    return message.sender.role if message.chat.is_group else ""


async def _done(call: Call, given: Command) -> str:
    """Return the answer of a command; what goes wrong is told and logged."""
    try:
        await call.app.db.durable()
        return await ACTIONS[given.name](call)
    except Refusal as refusal:
        return str(refusal)
    except QunyiError as error:
        error_id = secrets.token_hex(3)
        logger.error(
            "error {}: {} failed: {}: {}", error_id, given.name, type(error).__name__, error
        )
        return f"没有成功，请稍后再试。（错误编号 {error_id}）"


async def _answer(app: App, message: Message, text: str) -> None:
    delivery = split_answer(text, is_group=False, max_chars=ANSWER_CHARS)
    for number, part in enumerate(delivery.parts):
        await send_notice(app, message, part, quoting=number == 0)

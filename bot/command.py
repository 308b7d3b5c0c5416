"""Command: do what a recognised command asks, and answer it.

See ``docs/architecture.md``, "Commands".
"""

import secrets
from functools import partial

from loguru import logger

from bot.app import App
from bot.commands.call import Answer, Call, Refusal
from bot.commands.status import may_use
from bot.commands.table import ACTIONS
from bot.conversation.commands import Command, spec_of
from bot.conversation.delivery import split_answer
from bot.conversation.policy import FRESH_MS
from bot.errors import QunyiError, SendDropped, StoreError
from bot.ingest import Ingested
from bot.model import Message, Role
from bot.platform.outbox import nothing
from bot.send import send_notice
from bot.store.messages import messages_by_rows, row_as_it_is

ANSWER_CHARS = 1_500
"""Answers to commands are lists; they are split like long private messages."""

TRIES = 5
"""So often an answer is made, if what it shows is taken back before it goes out."""


class Outdated(QunyiError):
    """What an answer shows was taken back before it went out."""


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
    await app.errands.run(_answer(call, given, await _done(call, given)))


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


async def _done(call: Call, given: Command) -> Answer:
    """Return the answer of a command; what goes wrong is told and logged."""
    try:
        await call.app.db.durable()
        answer = await ACTIONS[given.name](call)
    except Refusal as refusal:
        return Answer(str(refusal))
    except QunyiError as error:
        error_id = secrets.token_hex(3)
        logger.error(
            "error {}: {} failed: {}: {}", error_id, given.name, type(error).__name__, error
        )
        return Answer(f"没有成功，请稍后再试。（错误编号 {error_id}）")
    return answer if isinstance(answer, Answer) else Answer(answer)


async def _answer(call: Call, given: Command, answer: Answer) -> None:
    """Send an answer, made anew as often as something that it shows is taken back meanwhile."""
    for _ in range(TRIES):
        try:
            await _sent(call, answer)
            return
        except Outdated as outdated:
            logger.info("{} is answered anew: {}", given.name, outdated)
        answer = await _done(call, given)
    raise SendDropped("what it shows is taken back faster than it can be sent")


async def _sent(call: Call, answer: Answer) -> None:
    delivery = split_answer(answer.text, is_group=False, max_chars=ANSWER_CHARS)
    before = partial(_check, call, answer) if answer.shows else nothing
    for number, part in enumerate(delivery.parts):
        try:
            await send_notice(call.app, call.message, part, quoting=number == 0, before=before)
        except Outdated as outdated:
            if number == 0:
                raise
            raise SendDropped(f"{outdated}, so the rest does not go out") from outdated


async def _check(call: Call, answer: Answer) -> None:
    """Look, right before an answer goes out, whether all that it shows still stands.

    Raises:
        Outdated: it does not.
        SendDropped: the command itself was taken back, or nobody can tell.
    """
    db = call.app.db
    try:
        # In a transaction, so that a recall which is being written is waited for.
        async with db.transaction():
            found = await messages_by_rows(db, answer.shows)
            # Of somebody who opted out it is forgotten as it comes, and is done all the same.
            own = None if call.row_id is None else await row_as_it_is(db, call.row_id)
    except StoreError as error:
        raise SendDropped(f"what it shows cannot be looked at: {error}") from error
    if own is not None and own.recalled_at is not None:
        raise SendDropped("the command was taken back")
    if not {stored.row_id for stored in found}.issuperset(answer.shows):
        raise Outdated("something that it shows was taken back")

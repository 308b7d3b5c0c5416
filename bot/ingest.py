"""Ingest: one raw event becomes durable rows, and says what the rest of its way needs.

See ``docs/architecture.md``, "The way of one message", and ``docs/onebot.md``, "Events".
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from loguru import logger

from bot.app import App, pace_of
from bot.conversation.commands import Command, read_command
from bot.conversation.policy import Standing, is_admitted
from bot.errors import SendError
from bot.model import Member, Message, MessageKind, StoredMessage
from bot.note import note
from bot.onebot.events import Ignored, MessageArrived, Recalled, read_event
from bot.onebot.forward import NO_ANSWERS, forward_id
from bot.onebot.render import render, unnamed_mentions
from bot.recall import recall
from bot.store.chats import situation
from bot.store.ingest import Arrival, Receipt
from bot.store.messages import names_in_chat, replace_text

FORWARD_FETCHES = 10
"""So many merged forwards, one within another or side by side, are fetched for one message."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """A message that has been read, and what is known of it."""

    message: Message
    standing: Standing
    command: Command | None = None
    row_id: int | None = None
    """``None`` if the chat is not admitted and nothing was kept."""

    @property
    def stored(self) -> StoredMessage:
        """The stored message; raises ``ValueError`` if nothing was kept."""
        if self.row_id is None:
            raise ValueError("the message was not kept")
        return StoredMessage(self.row_id, self.message)


async def ingest(app: App, raw: Mapping[str, object], *, live: bool = True) -> Ingested | None:
    """Take in one OneBot event. What it says is stored when this returns: a message can be read and
    is on its way to the disk (``Database.durable``), all else is durable.

    Args:
        app: the running program.
        raw: the event's JSON object.
        live: it came just now, not from a history.

    Returns:
        what is known of a message, ``None`` for every other event.

    Raises:
        EventError: it cannot be read at all; its text names the cause.
    """
    app.lull.broken()
    event = read_event(raw, received_at=app.clock.now(), zone=app.config.timezone)
    match event:
        case MessageArrived():
            return await _take_in(app, event, live)
        case Recalled():
            await recall(app, event)
        case Ignored(reason):
            logger.debug("ignored an event: {}", reason)
        case _:
            await note(app, event)
    return None


async def _take_in(app: App, event: MessageArrived, live: bool) -> Ingested:
    command = _command(app, event.message)
    message = replace(
        event.message,
        text=_rendered(app, event.message, {}),
        kind=_kind(event.message, command, live),
    )
    if live and message.direction == "inbound":
        app.accounts.came_online(message.chat.bot_id)
    if not admits(app, message):
        return Ingested(message, _standing(app, message), command)
    # Queued before anything is awaited: rows stand in the order in which messages came.
    arrival = _arrival(app, message, live, event.group_name)
    stored = app.arrivals.put(arrival)
    quotes_bot = message.reply_to is not None and await _quotes_bot(app, message)
    receipt = await stored
    standing = _standing(app, message, receipt, quotes_bot=quotes_bot)
    if receipt.is_new and not receipt.is_blank:
        message = await _completed(app, receipt)
    return Ingested(message, standing, command, receipt.row_id)


async def _quotes_bot(app: App, message: Message) -> bool:
    return (await situation(app.db, message.chat, message.reply_to)).quotes_bot


def _arrival(app: App, message: Message, live: bool, group_name: str) -> Arrival:
    chat, sender_id = message.chat, message.sender.user_id
    arrival = Arrival(message, live, _waits(app, message), group_name, app.config.nickname)
    if not app.opt_outs.has(chat.bot_id, sender_id):
        return arrival
    return replace(
        arrival, follows=_follows(app, message), may_be_answered=_may_be_answered(app, message)
    )


def _may_be_answered(app: App, message: Message) -> bool:
    """Whether anybody in the place of a sender is answered there, if they address the bot."""
    chat, standing = message.chat, _standing(app, message)
    is_silent = chat.is_group and app.settings.of(chat).reply_mode == "silent"
    return not (is_silent or standing.from_bot or standing.blocked or standing.muted)


def _follows(app: App, message: Message) -> bool:
    pace = pace_of(app.settings.of(message.chat))
    return message.kind == "chat" and app.floor.would_join(message, pace, now=app.clock.now())


def admits(app: App, message: Message) -> bool:
    """Whether a message may be recorded, by the chat's switch and the general rules."""
    settings = app.settings.general
    return is_admitted(
        message,
        app.access.of(message.chat),
        group_access=settings.group_access,
        private_access=settings.private_access,
        is_operator=app.is_operator(message.sender.user_id),
    )


def _kind(message: Message, command: Command | None, live: bool) -> MessageKind:
    if command is not None:
        return "command"
    # An own message that only a history knows was being sent when the program died. If it was an
    # answer its turn shows it already; else it is a notice.
    return "chat" if live or message.direction == "inbound" else "notice"


def _command(app: App, message: Message) -> Command | None:
    if message.direction == "outbound" or app.is_bot(message.sender.user_id, message.chat):
        return None
    return read_command(message.segments, message.chat.bot_id, app.config.command_start)


def _waits(app: App, message: Message) -> bool:
    is_bot = message.direction == "outbound" or app.is_bot(message.sender.user_id, message.chat)
    return message.kind == "chat" and not is_bot


def _standing(
    app: App, message: Message, receipt: Receipt | None = None, *, quotes_bot: bool = False
) -> Standing:
    return Standing(
        is_new=receipt is not None and receipt.is_new,
        recalled=receipt is not None and receipt.recalled,
        from_bot=app.is_bot(message.sender.user_id, message.chat),
        blocked=app.access.is_blocked(Member(message.chat.bot_id, message.sender.user_id)),
        muted=app.access.muted_until(message.chat) > app.clock.now(),
        # A message that arrives now proves that the account is there.
        removed=False,
        quotes_bot=quotes_bot,
        is_blank=receipt is not None and receipt.is_blank,
    )


def _rendered(
    app: App,
    message: Message,
    names: Mapping[str, str],
    answers: Mapping[str, object] = NO_ANSWERS,
) -> str:
    own = {message.chat.bot_id: app.name}
    return render(message.segments, {**own, **names}, answers)


async def _completed(app: App, receipt: Receipt) -> Message:
    """Return a new message with what has to be looked up: names of those who are @-ed without
    one, lines of merged forwards. It is stored without them."""
    message = receipt.message
    nameless = set(unnamed_mentions(message)) - {message.chat.bot_id}
    if not nameless and forward_id(message.segments, NO_ANSWERS) is None:
        return message
    names = await names_in_chat(app.db, message.chat, nameless) if nameless else {}
    answers = await _forward_answers(app, message)
    text = _rendered(app, message, names, answers)
    if text != message.text:
        await app.lasting.keep(partial(_complete, app, receipt.row_id, text))
    return replace(message, text=text)


async def _complete(app: App, row_id: int, text: str) -> None:
    async with app.db.transaction() as tx:
        await replace_text(tx, row_id, text)


async def _forward_answers(app: App, message: Message) -> dict[str, object]:
    answers: dict[str, object] = {}
    for _ in range(FORWARD_FETCHES):
        wanted = forward_id(message.segments, answers)
        if wanted is None:
            break
        answers[wanted] = await _forward_answer(app, message, wanted)
    return answers


async def _forward_answer(app: App, message: Message, wanted: str) -> object:
    try:
        platform = app.accounts.platform(message.chat.bot_id)
        return await platform.call("get_forward_msg", id=wanted, message_id=wanted)
    except SendError as error:
        logger.debug("a merged forward could not be fetched: {}", error)
        return None

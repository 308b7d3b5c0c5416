"""Speak: an answer on its way out, kept before its first message and finished after its last."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Literal

from loguru import logger

from bot.app import App
from bot.conversation.delivery import Delivery, split_answer
from bot.errors import SendError, SendRejected, SendTimedOut, TurnWithdrawn
from bot.model import MessageKind, StoredMessage, TurnLine
from bot.onebot.segments import text_segment
from bot.platform.outbox import Letter
from bot.scene import Scene
from bot.send import quote_of, send
from bot.store.messages import blank, messages_by_rows
from bot.store.sessions import session_now
from bot.store.tool_history import without_shown
from bot.store.turns import NewTurn, add_turn, finish_turn


async def keep_turn(
    app: App, turn: NewTurn, state: Literal["silent", "failed"], *, error: str = ""
) -> None:
    """Keep a turn in which nothing is said."""
    async with app.db.transaction() as tx:
        await add_turn(tx, await _as_it_stands(app, turn), state, at=app.clock.now(), error=error)


async def _as_it_stands(app: App, turn: NewTurn) -> NewTurn:
    """Return a turn without the lines of what was recalled while it was in the making.

    Called within a write transaction, so that nothing is recalled between this and its commit.
    The question's own lines stay: the store refuses a turn whose question was recalled.
    """
    gone = await _recalled_rows(app, turn)
    lines = tuple(
        line for line in turn.lines if line.message_id not in gone or line.part == "question"
    )
    tools = tuple(without_shown(one, gone) for one in turn.tools) if gone else turn.tools
    return replace(turn, lines=lines, tools=tools)


async def _recalled_rows(app: App, turn: NewTurn) -> set[int]:
    """Return which of the messages that a turn shows are recalled, or lost their text, by now."""
    shown = {line.message_id for line in turn.lines if line.message_id is not None}
    shown |= {row_id for one in turn.tools for use in one.uses for row_id in use.message_ids}
    found = await messages_by_rows(app.db, shown, kept=True)
    return shown - {one.row_id for one in found if one.message.segments or not _is_own(one)}


def _is_own(stored: StoredMessage) -> bool:
    return stored.message.direction == "outbound"


def _without_past(turn: NewTurn) -> NewTurn:
    """Return a turn without what was said before its question."""
    lines = tuple(line for line in turn.lines if line.part in ("question", "answer"))
    return replace(turn, lines=lines, tools=())


class _Speech:
    """An answer on its way out: kept before its first message, finished after its last."""

    def __init__(self, app: App, scene: Scene, turn: NewTurn) -> None:
        self._app = app
        self._question = scene.question
        self._cleared_before = scene.session.cleared_before
        self._turn = turn
        # What is said to somebody who is not recorded is told by their own turn alone.
        is_recorded = not app.opt_outs.has(scene.chat.bot_id, scene.question.sender_id)
        self._kind: MessageKind = "chat" if is_recorded and not scene.is_kept else "notice"
        self._turn_id: int | None = None
        self._sent: dict[int, int] = {}

    @property
    def has_spoken(self) -> bool:
        """Whether any message went out."""
        return bool(self._sent)

    async def begin(self) -> None:
        """Keep the turn, once, right before the first message goes out."""
        if self._turn_id is not None:
            return
        async with self._app.db.transaction() as tx:
            self._turn = await _as_it_stands(self._app, self._turn)
            session = await session_now(tx, self._turn.chat)
            if session.cleared_before > self._cleared_before:
                # Another process cleared the past; one of ours has the turn begin again.
                self._turn = _without_past(self._turn)
            # In here: a recall withdraws as it lets go of the lock, before the next one has it.
            if not self._app.floor.committed(self._question):
                raise TurnWithdrawn
            self._turn_id = await add_turn(tx, self._turn, "sending", at=self._app.clock.now())
        if self._turn_id is None:
            raise TurnWithdrawn

    async def say(self, line: int, letter: Letter) -> None:
        """Send one message; ``line`` is its place among the answer's lines."""
        row_id = await send(self._app, replace(letter, before=self.begin), kind=self._kind)
        questions = sum(part.part != "answer" for part in self._turn.lines)
        self._sent[questions + line] = row_id

    async def begin_anew(self, parts: tuple[str, ...], refusal: SendRejected) -> None:
        """Let other lines be the answer, since what was to be sent was refused as a whole.

        The refused turn is closed as one that said nothing: no limit counts it.
        """
        if self._turn_id is None:
            return
        async with self._app.db.transaction() as tx:
            await finish_turn(
                tx,
                self._turn_id,
                "silent",
                sent={},
                at=self._app.clock.now(),
                error=type(refusal).__name__,
                drops_unsent=True,
            )
        asked = tuple(line for line in self._turn.lines if line.part != "answer")
        self._turn = replace(self._turn, lines=asked + _answer_lines(parts))
        self._turn_id = None

    async def end(self, error: SendError | None = None) -> None:
        """Keep how it ended. What timed out may have been sent and counts as such."""
        if self._turn_id is not None:
            # However long it has to wait: behind a turn that is being sent no summary reads on.
            await self._app.patience.until_done(partial(self._end, self._turn_id, error))

    async def _end(self, turn_id: int, error: SendError | None) -> None:
        is_told = error is None or isinstance(error, SendTimedOut) or bool(self._sent)
        async with self._app.db.transaction() as tx:
            await finish_turn(
                tx,
                turn_id,
                "sent" if is_told else "failed",
                sent=self._sent,
                at=self._app.clock.now(),
                error="" if error is None else type(error).__name__,
                # What timed out may be there for all to read, so the conversation shows it.
                drops_unsent=error is not None and not isinstance(error, SendTimedOut),
            )
            if await _recalled_rows(self._app, self._turn):
                # Taken back while the answer went out: what was made from it keeps no text.
                await blank(tx, self._sent.values())


async def speak(app: App, scene: Scene, turn: NewTurn, text: str) -> None:
    """Send an answer, split as the chat allows, and keep what became of it.

    Returns once something of it went out, or may have, even if the rest did not.

    Raises:
        TurnWithdrawn: the question was recalled before the first message went out.
        SendError: nothing went out.
    """
    delivery = split_answer(
        text, is_group=turn.chat.is_group, max_chars=scene.settings.reply_max_chars
    )
    kept = replace(turn, lines=turn.lines + _answer_lines(_told_parts(delivery)))
    speech = _Speech(app, scene, kept)
    try:
        await _say_all(speech, scene, delivery)
    except SendError as error:
        await speech.end(error)
        if not isinstance(error, SendTimedOut) and not speech.has_spoken:
            raise
        logger.warning("an answer to {} may not have been sent whole: {}", turn.chat, error)
        return
    await speech.end()


def _answer_lines(parts: Iterable[str]) -> tuple[TurnLine, ...]:
    return tuple(TurnLine(None, "answer", part) for part in parts)


def _told_parts(delivery: Delivery) -> tuple[str, ...]:
    return ("\n".join(delivery.forward),) if delivery.forward else delivery.parts


async def _say_all(speech: _Speech, scene: Scene, delivery: Delivery) -> None:
    last = scene.question.messages[-1].message
    if delivery.forward:
        try:
            await speech.say(0, Letter(last.chat, nodes=delivery.forward))
            return
        except SendRejected as error:
            logger.info("this client sends no merged forward, so the answer is cut: {}", error)
            await speech.begin_anew(delivery.parts, error)
    for number, part in enumerate(delivery.parts):
        quote = () if number else quote_of(last)
        segments = (*quote, text_segment(part))
        letter = Letter(last.chat, segments, temporary_group=last.temporary_group)
        await speech.say(number, letter)

"""Speak: an answer on its way out, kept before its first message and finished after its last."""

from dataclasses import replace

from loguru import logger

from bot.app import App
from bot.conversation.delivery import Delivery, split_answer
from bot.errors import SendError, SendRejected, SendTimedOut, TurnWithdrawn
from bot.model import TurnLine
from bot.onebot.segments import text_segment
from bot.platform.outbox import Letter
from bot.scene import Scene
from bot.send import quote_of, send
from bot.store.turns import NewTurn, add_turn, finish_turn


class _Speech:
    """An answer on its way out: kept before its first message, finished after its last."""

    def __init__(self, app: App, scene: Scene, turn: NewTurn) -> None:
        self._app = app
        self._question = scene.question
        self._turn = turn
        self._turn_id: int | None = None
        self._sent: dict[int, int] = {}

    @property
    def has_begun(self) -> bool:
        """Whether the turn is kept, so that it will not be answered again."""
        return self._turn_id is not None

    async def begin(self) -> None:
        """Keep the turn, once, right before the first message goes out."""
        if self._turn_id is not None:
            return
        if not self._app.floor.committed(self._question):
            raise TurnWithdrawn
        async with self._app.db.transaction() as tx:
            self._turn_id = await add_turn(tx, self._turn, "sending", at=self._app.clock.now())
        if self._turn_id is None:
            raise TurnWithdrawn

    async def say(self, line: int, letter: Letter) -> None:
        """Send one message; ``line`` is its place among the answer's lines."""
        row_id = await send(self._app, replace(letter, before=self.begin))
        questions = sum(part.part != "answer" for part in self._turn.lines)
        self._sent[questions + line] = row_id

    async def end(self, error: SendError | None = None) -> None:
        """Keep how it ended. What timed out may have been sent and counts as such."""
        if self._turn_id is None:
            return
        is_told = error is None or isinstance(error, SendTimedOut) or bool(self._sent)
        async with self._app.db.transaction() as tx:
            await finish_turn(
                tx,
                self._turn_id,
                "sent" if is_told else "failed",
                sent=self._sent,
                at=self._app.clock.now(),
                error="" if error is None else type(error).__name__,
            )


async def speak(app: App, scene: Scene, turn: NewTurn, text: str) -> None:
    """Send an answer, split as the chat allows, and keep what became of it.

    Raises:
        TurnWithdrawn: the question was recalled before the first message went out.
        SendError: nothing, or not all of it, went out.
    """
    delivery = split_answer(
        text, is_group=turn.chat.is_group, max_chars=scene.settings.reply_max_chars
    )
    told = tuple(TurnLine(None, "answer", part) for part in _told_parts(delivery))
    kept = replace(turn, lines=turn.lines + told)
    speech = _Speech(app, scene, kept)
    try:
        await _say_all(speech, scene, delivery)
    except SendError as error:
        await speech.end(error)
        if not isinstance(error, SendTimedOut):
            raise
        logger.warning("an answer to {} may or may not have been sent: {}", turn.chat, error)
        return
    await speech.end()


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
    for number, part in enumerate(delivery.parts):
        quote = () if number else quote_of(last)
        segments = (*quote, text_segment(part))
        letter = Letter(last.chat, segments, temporary_group=last.temporary_group)
        await speech.say(0 if delivery.forward else number, letter)

"""Reply: answer one question, from what is known to what is sent.

See ``docs/architecture.md``, "Replies" and "The prompt of a turn".
"""

import asyncio
import secrets
from dataclasses import dataclass, replace
from datetime import datetime, time
from itertools import chain

from loguru import logger

from bot.app import App
from bot.budget import chat_budget_is_spent
from bot.clock import local_time
from bot.conversation.delivery import Delivery, split_answer
from bot.conversation.floor import Question
from bot.conversation.order import in_order
from bot.conversation.outgoing import Blocked, Empty, Silent, Spoken, answer_text
from bot.conversation.pacing import (
    Refused,
    ReplyLimits,
    TurnLoad,
    TurnTrace,
    Wait,
    loop_silence_until,
    turn_decision,
)
from bot.conversation.prompt import (
    CONTEXT_LINES,
    KEPT_TURNS,
    QUESTION_CHARS,
    context_of,
    kept_turns,
    message_line,
    question_text,
    turn_lines,
)
from bot.conversation.prompt import (
    answer_text as told_answer,
)
from bot.errors import (
    ModelAnswerInvalid,
    ModelError,
    ModelNotConfigured,
    SendError,
    SendRejected,
    SendTimedOut,
    TurnWithdrawn,
)
from bot.llm.protocol import ModelAnswer, ModelRequest, PromptMessage
from bot.model import Segment, StoredMessage, Turn, TurnLine
from bot.notices import PRIVACY_NOTICE, unconfigured_notice
from bot.onebot.segments import reply_segment, text_segment
from bot.platform.outbox import Letter
from bot.send import send, send_notice
from bot.settings import Settings, in_quiet_hours
from bot.store import turns as turn_store
from bot.store.chats import claim_notice, situation
from bot.store.messages import messages_by_rows, newest_with_id, recent_messages
from bot.store.turns import NewTurn
from bot.text import display_name

APOLOGY_EVERY_MS = 10 * 60_000
"""At most one apology per chat in this time."""

RECENT_MESSAGES = CONTEXT_LINES + 2 * KEPT_TURNS
"""So many messages are read to find the context among them."""

LONGEST_RUN = 200
"""Loops of more turns than this are not looked for."""

WEEKDAYS = "一二三四五六日"
"""Monday first."""


@dataclass(frozen=True, slots=True)
class Scene:
    """All that is known when a turn begins."""

    question: Question
    settings: Settings
    chat_name: str
    recent: list[StoredMessage]
    turns: list[Turn]
    """The newest answered turns, more than the prompt shows."""
    kept: int
    """How many of them it shows."""
    load: turn_store.TurnLoad
    quotes: list[StoredMessage]
    now: int

    @property
    def shown_turns(self) -> list[Turn]:
        """The turns that the prompt shows."""
        return self.turns[max(0, len(self.turns) - self.kept) :]

    @property
    def context(self) -> list[StoredMessage]:
        """What was said since the turn before."""
        recent = in_order(self.recent)
        return context_of(recent, self.turns, self.question.messages)


async def answer(app: App, question: Question) -> bool:
    """Answer a question and say whether anything was sent for it.

    Failures end here: who addressed the bot is told once, the cause is logged.

    Raises:
        TurnWithdrawn: the question was recalled before the answer went out.
    """
    scene = await _scene(app, question)
    if not scene.question.messages:
        return False
    if reason := await _refusal(app, scene):
        logger.debug("no turn in {}: {}", question.chat, reason)
        return False
    turn = _new_turn(app, scene)
    try:
        given = await app.model.complete(_request(app, scene, turn))
        return await _deliver(app, scene, turn, given)
    except ModelNotConfigured as error:
        logger.warning("no answer: {}", error)
        return await _tell_unconfigured(app, scene)
    except (ModelError, SendError) as error:
        return await _fail(app, scene, turn, error)


async def _scene(app: App, question: Question) -> Scene:
    chat = question.chat
    now = app.clock.now()
    settings = app.settings.of(chat)
    run = min(max(2 * KEPT_TURNS, settings.max_consecutive_turns + 1), LONGEST_RUN)
    messages, recent, turns, count, load, known = await asyncio.gather(
        messages_by_rows(app.db, [stored.row_id for stored in question.messages]),
        recent_messages(app.db, chat, RECENT_MESSAGES),
        turn_store.recent_turns(app.db, chat, run),
        turn_store.sent_count(app.db, chat),
        turn_store.turn_load(
            app.db, chat, question.sender_id, now=now, day_start=_day_start(app, now)
        ),
        situation(app.db, chat, question.sender_id),
    )
    return Scene(
        # As they stand now: one may have been recalled, or its forward been read.
        question=replace(question, messages=tuple(in_order(messages))),
        settings=settings,
        chat_name=known.name,
        recent=recent,
        turns=turns,
        kept=kept_turns(count),
        load=load,
        quotes=await _quotes(app, messages),
        now=now,
    )


async def _quotes(app: App, messages: list[StoredMessage]) -> list[StoredMessage]:
    quoted = {s.message.reply_to for s in messages if s.message.reply_to is not None}
    chat = messages[0].message.chat if messages else None
    found = [await newest_with_id(app.db, chat, wanted) for wanted in quoted] if chat else []
    shown = {stored.row_id for stored in messages}
    return [q for q in found if q and q.recalled_at is None and q.row_id not in shown]


def _day_start(app: App, now: int) -> int:
    local = local_time(now, app.config.timezone)
    midnight = datetime.combine(local.date(), time(), app.config.timezone)
    return round(midnight.timestamp() * 1000)


async def _refusal(app: App, scene: Scene) -> str:
    """Return why this question gets no turn, or nothing."""
    if reason := _paced_out(scene):
        return reason
    if await chat_budget_is_spent(app, scene.question.chat, _day_start(app, scene.now)):
        if scene.question.addressed:
            await _tell_once_a_day(app, scene)
        return "the day's token budget is spent"
    if not scene.question.addressed:
        return await _unasked(app, scene)
    return await _wait_for_all(app, scene)


def _paced_out(scene: Scene) -> str:
    chat = scene.question.chat
    decision = turn_decision(_load(scene), _limits(scene.settings), scene.now)
    if isinstance(decision, Refused):
        return decision.reason
    traces = [TurnTrace(t.user_id, t.asked_at, t.answered_at, t.third_party) for t in scene.turns]
    if chat.is_group and loop_silence_until(
        traces, scene.now, scene.settings.max_consecutive_turns
    ):
        return "two bots seem to talk to each other"
    return ""


async def _wait_for_all(app: App, scene: Scene) -> str:
    decision = turn_decision(_load(scene), _limits(scene.settings), scene.now)
    if isinstance(decision, Wait):
        await app.clock.sleep((decision.until - scene.now) / 1000)
    return ""


def _limits(settings: Settings) -> ReplyLimits:
    return ReplyLimits(
        per_member_per_minute=settings.reply_per_member_per_minute,
        per_member_per_day=settings.reply_per_member_per_day,
        global_per_minute=settings.reply_global_per_minute,
    )


def _load(scene: Scene) -> TurnLoad:
    load = scene.load
    return TurnLoad(
        member_last_minute=load.member_minute,
        member_today=load.member_day,
        last_minute=load.all_minute,
    )


async def _unasked(app: App, scene: Scene) -> str:
    """Return why the bot does not join in where nobody asked it to, or nothing."""
    settings = scene.settings
    local = local_time(scene.now, app.config.timezone)
    if in_quiet_hours(settings.quiet_hours, local):
        return "quiet hours"
    if scene.load.unaddressed_hour >= settings.auto_per_hour:
        return "autoPerHour is reached"
    if isinstance(turn_decision(_load(scene), _limits(settings), scene.now), Wait):
        return "replyGlobalPerMinute is reached"
    if not app.routes.is_configured("decide"):
        return ""
    return "" if await _decides_to_join(app, scene) else "the decision model says no"


async def _decides_to_join(app: App, scene: Scene) -> bool:
    lines = [
        message_line(stored, app.config.timezone, QUESTION_CHARS)
        for stored in in_order(scene.recent)[-CONTEXT_LINES:]
    ]
    prompt = app.prompts.render("decide", name=_name(app), lines="\n".join(lines))
    request = ModelRequest(
        "decide", (PromptMessage("user", prompt),), scene.question.chat, max_tokens=16
    )
    try:
        given = await app.model.complete(request)
    except ModelError as error:
        logger.info("the decision model failed: {}", error)
        return False
    match answer_text(given.text):
        case Spoken(text):
            return text.strip().casefold().startswith("yes")
        case _:
            return False


def _name(app: App) -> str:
    return app.config.nickname[0] if app.config.nickname else "群忆"


def _new_turn(app: App, scene: Scene) -> NewTurn:
    question = scene.question
    context = scene.context
    lines = turn_lines(context, scene.quotes, question.messages, app.config.timezone)
    others = [s for s in context if s.message.direction == "inbound"]
    return NewTurn(
        chat=question.chat,
        user_id=question.sender_id,
        asked_at=question.first_at,
        started_at=scene.now,
        addressed=question.addressed,
        third_party=any(s.message.sender.user_id != question.sender_id for s in others),
        context_until=max(s.row_id for s in chain(context, question.messages)),
        lines=lines,
    )


def _request(app: App, scene: Scene, turn: NewTurn) -> ModelRequest:
    chat = scene.question.chat
    system = app.prompts.render(
        "reply",
        persona=scene.settings.persona,
        name=_name(app),
        is_group=chat.is_group,
        chat_name=display_name(scene.chat_name, chat.id),
        chat_id=chat.id,
        may_be_silent=scene.settings.reply_mode == "auto",
        language=scene.settings.reply_language,
    )
    messages = [PromptMessage("system", system)]
    for told in scene.shown_turns:
        messages.append(PromptMessage("user", question_text(told.lines)))
        messages.append(PromptMessage("assistant", told_answer(told.lines) or "（已撤回）"))
    messages.append(PromptMessage("user", f"{_tail(app, scene)}\n{question_text(turn.lines)}"))
    return ModelRequest("chat", tuple(messages), chat)


def _tail(app: App, scene: Scene) -> str:
    local = local_time(scene.now, app.config.timezone)
    asker = scene.question.messages[-1].message.sender
    return app.prompts.render(
        "tail",
        now=local.strftime("%Y-%m-%d %H:%M"),
        weekday=f"星期{WEEKDAYS[local.weekday()]}",
        is_group=scene.question.chat.is_group,
        sender=f"{display_name(asker.display_name, asker.user_id)}({asker.user_id})",
    )


async def _deliver(app: App, scene: Scene, turn: NewTurn, given: ModelAnswer) -> bool:
    match answer_text(given.text, blocked_words=scene.settings.blocked_words):
        case Silent():
            await _keep_silent(app, turn, given)
            return False
        case Blocked():
            raise ModelAnswerInvalid("the answer contains one of blockedWords")
        case Empty():
            raise ModelAnswerInvalid("nothing of the answer can be sent")
        case Spoken(text):
            await _speak(app, scene, turn, given, text)
            return True


async def _keep_silent(app: App, turn: NewTurn, given: ModelAnswer) -> None:
    kept = replace(turn, model=given.model, endpoint=given.endpoint)
    async with app.db.transaction() as tx:
        await turn_store.add_turn(tx, kept, "silent", at=app.clock.now())


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
            self._turn_id = await turn_store.add_turn(
                tx, self._turn, "sending", at=self._app.clock.now()
            )
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
            await turn_store.finish_turn(
                tx,
                self._turn_id,
                "sent" if is_told else "failed",
                sent=self._sent,
                at=self._app.clock.now(),
                error="" if error is None else type(error).__name__,
            )


async def _speak(app: App, scene: Scene, turn: NewTurn, given: ModelAnswer, text: str) -> None:
    delivery = split_answer(
        text, is_group=turn.chat.is_group, max_chars=scene.settings.reply_max_chars
    )
    told = tuple(TurnLine(None, "answer", part) for part in _told_parts(delivery))
    kept = replace(turn, lines=turn.lines + told, model=given.model, endpoint=given.endpoint)
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
    if not turn.chat.is_group:
        await _give_privacy_notice(app, scene)


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
        segments = (*_quote(scene, number), text_segment(part))
        letter = Letter(last.chat, segments, temporary_group=last.temporary_group)
        await speech.say(0 if delivery.forward else number, letter)


def _quote(scene: Scene, number: int) -> tuple[Segment, ...]:
    """Quote the asker in front of the first message to a group."""
    last = scene.question.messages[-1].message
    can_quote = last.platform_id.lstrip("-").isdecimal()
    if number or not last.chat.is_group or not can_quote:
        return ()
    return (reply_segment(last.platform_id),)


async def _give_privacy_notice(app: App, scene: Scene) -> None:
    message = scene.question.messages[-1].message
    async with app.db.transaction() as tx:
        is_due = await claim_notice(tx, message.chat, "privacy", at=app.clock.now(), due_before=0)
    if not is_due:
        return
    try:
        await send_notice(
            app, message.chat, PRIVACY_NOTICE, temporary_group=message.temporary_group
        )
    except SendError as error:
        logger.warning("the notice of what is kept did not reach {}: {}", message.chat, error)


async def _tell(app: App, scene: Scene, text: str) -> bool:
    """Tell the asker something, quoting them in a group; false if that fails."""
    message = scene.question.messages[-1].message
    segments = (*_quote(scene, 0), text_segment(text))
    letter = Letter(message.chat, segments, temporary_group=message.temporary_group)
    try:
        await send(app, letter, kind="notice")
    except SendError as error:
        logger.warning("{} could not be told of a failure: {}", message.chat, error)
        return False
    return True


async def _claim(app: App, scene: Scene, notice: str, every_ms: int | None) -> bool:
    now = app.clock.now()
    async with app.db.transaction() as tx:
        return await claim_notice(
            tx,
            scene.question.chat,
            notice,
            at=now,
            due_before=0 if every_ms is None else now - every_ms,
            user_id=scene.question.sender_id if every_ms is None else None,
        )


async def _tell_unconfigured(app: App, scene: Scene) -> bool:
    if not scene.question.addressed or not await _claim(app, scene, "unconfigured", None):
        return False
    return await _tell(app, scene, unconfigured_notice())


async def _tell_once_a_day(app: App, scene: Scene) -> None:
    if await _claim(app, scene, "budget", 86_400_000):
        await _tell(app, scene, "今天的模型用量已经到上限了，明天再聊吧。")


async def _fail(app: App, scene: Scene, turn: NewTurn, error: ModelError | SendError) -> bool:
    error_id = secrets.token_hex(3)
    logger.warning(
        "error {}: no answer in {}: {}: {}", error_id, turn.chat, type(error).__name__, error
    )
    if isinstance(error, ModelError):
        async with app.db.transaction() as tx:
            await turn_store.add_turn(
                tx, turn, "failed", at=app.clock.now(), error=type(error).__name__
            )
    if isinstance(error, SendError) or not scene.question.addressed:
        return False
    if not await _claim(app, scene, "apology", APOLOGY_EVERY_MS):
        return False
    return await _tell(app, scene, f"抱歉，我这会儿答不上来，请稍后再试。（错误编号 {error_id}）")

"""Reply: answer one question, from what is known to what is sent.

See ``docs/architecture.md``, "Replies" and "The prompt of a turn".
"""

import secrets
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from loguru import logger

from bot.app import App
from bot.ask import ask
from bot.clock import local_date, local_minute, local_time
from bot.compact import fold_soon
from bot.conversation.floor import Question
from bot.conversation.outgoing import Blocked, Empty, Silent, Spoken, answer_text
from bot.conversation.prompt import turn_lines
from bot.conversation.prompt_message import PromptMessage
from bot.conversation.summary import background_lines, binding_lines
from bot.conversation.turn_request import TurnRequest, turn_messages
from bot.errors import ModelAnswerInvalid, ModelError, ModelNotConfigured, SendError
from bot.inject import Injection, inject
from bot.learn import lessons_for, note_outcome
from bot.llm.protocol import ModelAnswer
from bot.permit import permitted
from bot.scene import Scene
from bot.sift import bearing_summary
from bot.speak import keep_turn, speak
from bot.store.turns import NewTurn
from bot.tell import tell_failure, tell_privacy, tell_unconfigured
from bot.text import display_name, json_line

WEEKDAYS = "一二三四五六日"
"""Monday first."""


async def answer(app: App, question: Question) -> bool:
    """Answer a question and say whether anything was sent for it.

    Failures end here: who addressed the bot is told once, the cause is logged.

    Raises:
        TurnWithdrawn: the question was recalled before the answer went out.
    """
    scene = await permitted(app, question)
    if scene is None:
        return False
    injection = await inject(app, scene)
    turn = _new_turn(app, scene, injection)
    shown = frozenset(_shown_rows(scene, turn))
    app.floor.shows(question, shown)
    scene = await bearing_summary(app, scene, turn.lines)
    try:
        request = _request(app, scene, injection, turn)
        asked = await ask(
            app, scene, request, shown, lessons_for=lessons_for, note_outcome=note_outcome
        )
        given = asked.answer
        turn = replace(turn, model=given.model, endpoint=given.endpoint, tools=asked.rounds)
        spoke = await _deliver(app, scene, turn, given)
        if asked.folded:
            await fold_soon(app, scene.chat, scene.session.chat_id)
        return spoke
    except ModelNotConfigured as error:
        logger.warning("no answer: {}", error)
        return question.addressed and await tell_unconfigured(app, scene)
    except (ModelError, SendError) as error:
        return await _fail(app, scene, turn, error)


def _new_turn(app: App, scene: Scene, injection: Injection) -> NewTurn:
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
        scope_ids=injection.scope_ids,
        packed_ids=injection.packed,
        local_date=local_date(scene.now, app.config.timezone),
    )


def _shown_rows(scene: Scene, turn: NewTurn) -> Iterator[int]:
    """Yield the messages that the prompt of a turn shows."""
    for line in chain(turn.lines, *(told.lines for told in scene.shown_turns)):
        if line.message_id is not None:
            yield line.message_id
    for told in scene.shown_turns:
        for one in told.tools:
            yield from chain.from_iterable(use.message_ids for use in one.uses)


def _request(app: App, scene: Scene, injection: Injection, turn: NewTurn) -> TurnRequest:
    chat = scene.question.chat
    system = app.prompts.render(
        "reply",
        persona=scene.settings.persona,
        name=app.name,
        is_group=chat.is_group,
        chat=_chat_line(scene),
        may_be_silent=scene.settings.reply_mode == "auto",
        language=scene.settings.reply_language,
    )
    standing = injection.standing
    return TurnRequest(
        rules=PromptMessage("system", system),
        memory=(PromptMessage("system", standing),) if standing else (),
        earlier=tuple(map(turn_messages, scene.shown_turns)),
        lines=turn.lines,
        tail=_tail(app, scene, injection),
    )


def _chat_line(scene: Scene) -> str:
    """Return which chat it is, as JSON: a group's name is somebody's text like any other."""
    chat = scene.question.chat
    if not chat.is_group:
        return json_line({"senderId": chat.id})
    return json_line({"groupId": chat.id, "groupName": display_name(scene.chat_name, chat.id)})


def _tail(app: App, scene: Scene, injection: Injection) -> str:
    local = local_time(scene.now, app.config.timezone)
    asker = scene.question.messages[-1].message.sender
    return app.prompts.render(
        "tail",
        memory=injection.sender,
        pack=injection.pack,
        rules=binding_lines(scene.summary),
        background=background_lines(scene.summary),
        now=local_minute(scene.now, app.config.timezone),
        weekday=f"星期{WEEKDAYS[local.weekday()]}",
        is_group=scene.question.chat.is_group,
        sender=json_line(
            {
                "senderId": asker.user_id,
                "senderName": display_name(asker.display_name, asker.user_id),
            }
        ),
    )


async def _deliver(app: App, scene: Scene, turn: NewTurn, given: ModelAnswer) -> bool:
    match answer_text(given.text, blocked_words=scene.settings.blocked_words):
        case Silent():
            await keep_turn(app, turn, "silent")
            return False
        case Blocked():
            raise ModelAnswerInvalid("the answer contains one of blockedWords")
        case Empty():
            raise ModelAnswerInvalid("nothing of the answer can be sent")
        case Spoken(text):
            await speak(app, scene, turn, text)
            if not turn.chat.is_group:
                await tell_privacy(app, scene)
            return True


async def _fail(app: App, scene: Scene, turn: NewTurn, error: ModelError | SendError) -> bool:
    error_id = secrets.token_hex(3)
    cause = type(error).__name__
    logger.warning("error {}: no answer in {}: {}: {}", error_id, turn.chat, cause, error)
    if isinstance(error, SendError):
        return False
    await keep_turn(app, turn, "failed", error=cause)
    return scene.question.addressed and await tell_failure(app, scene, error_id)

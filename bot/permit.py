"""Permit: whether a question gets a turn now: limits, loops, budgets, and joining in unasked.

See ``docs/architecture.md``, "Replies".
"""

from loguru import logger

from bot.app import App
from bot.budget import chat_budget_is_spent
from bot.clock import local_time
from bot.conversation.order import in_order
from bot.conversation.outgoing import Spoken, answer_text
from bot.conversation.pacing import (
    Refused,
    ReplyLimits,
    TurnLoad,
    TurnTrace,
    Wait,
    loop_silence_until,
    turn_decision,
)
from bot.conversation.prompt import CONTEXT_LINES, QUESTION_CHARS, message_line
from bot.errors import ModelError
from bot.llm.protocol import ModelRequest, PromptMessage
from bot.scene import Scene, day_start
from bot.settings import Settings, in_quiet_hours
from bot.tell import tell_budget_spent


async def refusal(app: App, scene: Scene) -> str:
    """Return why a question gets no turn, or nothing; waits where only the limit of all says no."""
    if reason := _paced_out(scene):
        return reason
    if await chat_budget_is_spent(app, scene.question.chat, day_start(app, scene.now)):
        if scene.question.addressed:
            await tell_budget_spent(app, scene)
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
    prompt = app.prompts.render("decide", name=app.name, lines="\n".join(lines))
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

"""Permit: whether a question gets a turn, and when: limits, loops, budgets, joining in unasked.

See ``docs/architecture.md``, "Replies".
"""

from loguru import logger

from bot.app import App
from bot.budget import budget_is_spent
from bot.clock import local_time
from bot.conversation.floor import Question
from bot.conversation.order import in_order
from bot.conversation.outgoing import Spoken, answer_text
from bot.conversation.pacing import (
    Go,
    Refused,
    ReplyLimits,
    TurnLoad,
    TurnTrace,
    Wait,
    loop_silence_until,
    turn_decision,
)
from bot.conversation.prompt import CONTEXT_LINES, QUESTION_CHARS, message_line
from bot.conversation.prompt_message import PromptMessage
from bot.errors import ModelError
from bot.llm.protocol import ModelRequest
from bot.scene import Scene, read_scene
from bot.settings import Settings, in_quiet_hours
from bot.store.messages import recent_messages
from bot.tell import tell_budget_spent

BUDGET_SPENT = "the day's token budget is spent"


async def permitted(app: App, question: Question) -> Scene | None:
    """Return the scene of a turn once it may begin, and count it; ``None`` if it may not.

    The scene is read anew after every wait: what was recalled meanwhile is in no prompt.
    """
    has_decided = question.addressed or not app.routes.is_configured("decide")
    while True:
        # What is being taken back is not read, however long that has to wait to be written.
        await app.lasting.settled()
        scene = await read_scene(app, question)
        if not scene.question.messages:
            return None
        decision = turn_decision(_load(app, scene), _limits(scene.settings), scene.now)
        if reason := _refusal(app, scene, decision):
            logger.debug("no turn in {}: {}", question.chat, reason)
            await _tell_refusal(app, scene, reason)
            return None
        if isinstance(decision, Wait):
            await app.clock.sleep((decision.until - scene.now) / 1000)
        elif has_decided:
            app.floor.begun(scene.now)
            return scene
        elif await _decides_to_join(app, scene):
            has_decided = True
        else:
            logger.debug("no turn in {}: the decision model says no", question.chat)
            return None


def _refusal(app: App, scene: Scene, decision: Go | Wait | Refused) -> str:
    """Return why a question gets no turn, or nothing."""
    if isinstance(decision, Refused):
        return decision.reason
    traces = [TurnTrace(t.user_id, t.asked_at, t.answered_at, t.third_party) for t in scene.turns]
    longest_run = scene.settings.max_consecutive_turns
    if scene.question.chat.is_group and loop_silence_until(traces, scene.now, longest_run):
        return "two bots seem to talk to each other"
    if scene.is_budget_spent:
        return BUDGET_SPENT
    return "" if scene.question.addressed else _unasked(app, scene, decision)


async def _tell_refusal(app: App, scene: Scene, reason: str) -> None:
    if reason == BUDGET_SPENT and scene.question.addressed:
        await tell_budget_spent(app, scene)


def _limits(settings: Settings) -> ReplyLimits:
    return ReplyLimits(
        per_member_per_minute=settings.reply_per_member_per_minute,
        per_member_per_day=settings.reply_per_member_per_day,
        global_per_minute=settings.reply_global_per_minute,
    )


def _load(app: App, scene: Scene) -> TurnLoad:
    load = scene.load
    return TurnLoad(
        member_last_minute=load.member_minute,
        member_today=load.member_day,
        # A turn that still thinks is not stored, so those of this run are counted where they begin.
        last_minute=(*load.all_minute, *app.floor.begun_lately(scene.now)),
    )


def _unasked(app: App, scene: Scene, decision: Go | Wait) -> str:
    """Return why the bot does not join in where nobody asked it to, or nothing."""
    settings = scene.settings
    local = local_time(scene.now, app.config.timezone)
    if in_quiet_hours(settings.quiet_hours, local):
        return "quiet hours"
    if scene.load.unaddressed_hour >= settings.auto_per_hour:
        return "autoPerHour is reached"
    return "replyGlobalPerMinute is reached" if isinstance(decision, Wait) else ""


async def _decides_to_join(app: App, scene: Scene) -> bool:
    if await budget_is_spent(app, "decide"):
        logger.info("the decision model is not asked: the day's budget is spent")
        return False
    recent = await recent_messages(app.db, scene.chat, CONTEXT_LINES)
    zone = app.config.timezone
    lines = [message_line(stored, zone, QUESTION_CHARS) for stored in in_order(recent)]
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

"""Sift: what the decision model leaves out, if there is one; where it fails nothing is left out.

See ``docs/session.md``, "Decision model".
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from loguru import logger

from bot.app import App
from bot.budget import budget_is_spent
from bot.conversation.prompt import question_text
from bot.conversation.prompt_message import PromptMessage
from bot.conversation.sifting import bearing_schema, read_bearing, read_sifted, turns_schema
from bot.conversation.summary import (
    SessionSummary,
    SummaryInput,
    choices,
    narrowed,
    read_summary,
    summary_lines,
    without_overturned,
)
from bot.errors import ModelError
from bot.llm.protocol import ModelRequest
from bot.memory.answer import AnswerUnusable
from bot.model import Chat, Turn, TurnLine
from bot.scene import Scene

MAX_TOKENS = 1_000
"""An answer that would be longer keeps everything."""


@dataclass(frozen=True, slots=True)
class Worth:
    """What is worth to be summarised, and the summary that it is added to."""

    turns: tuple[Turn, ...]
    summary: SessionSummary


async def worth_keeping(app: App, chat: Chat, whole: Worth, shown: SummaryInput) -> Worth:
    """Return ``whole`` without noise, and without the decisions that were overturned.

    Args:
        app: the running program.
        chat: whose session it is.
        whole: what is to be summarised.
        shown: all of its turns, as a prompt shows them.
    """
    answer = await _asked(
        app,
        chat,
        "sift_turns",
        turns_schema(),
        {
            "summary": "\n".join(summary_lines(whole.summary)),
            "lines": "\n".join(shown.lines),
        },
    )
    if answer is None:
        return whole
    try:
        sifted = read_sifted(answer)
    except AnswerUnusable as error:
        logger.info("nothing of {} was sifted: {}", chat, error)
        return whole
    left = (t for number, t in enumerate(whole.turns, start=1) if number not in sifted.noise)
    return Worth(tuple(left), without_overturned(whole.summary, sifted.overturned, shown))


async def bearing_summary(app: App, scene: Scene, lines: tuple[TurnLine, ...]) -> Scene:
    """Return the scene of a turn with no more of its summary than bears on what is asked.

    Args:
        app: the running program.
        scene: what is known of the turn.
        lines: its own lines.
    """
    if not scene.session.summary:
        return scene
    summary = read_summary(scene.session.summary)
    if app.routes.is_configured("decide") and (among := choices(summary)):
        summary = narrowed(summary, await _bearing(app, scene.chat, among, lines))
    return replace(scene, summary=summary)


async def _bearing(
    app: App, chat: Chat, among: Mapping[str, str], lines: tuple[TurnLine, ...]
) -> frozenset[str]:
    answer = await _asked(
        app,
        chat,
        "sift_summary",
        bearing_schema(),
        {"entries": "\n".join(among.values()), "question": question_text(lines)},
    )
    try:
        return frozenset(among) if answer is None else read_bearing(answer)
    except AnswerUnusable as error:
        logger.info("all of the summary of {} is shown: {}", chat, error)
        return frozenset(among)


async def _asked(
    app: App, chat: Chat, prompt: str, schema: Mapping[str, Any], variables: Mapping[str, str]
) -> str | None:
    """Return what the decision model says; ``None`` if there is none, or nothing was said."""
    if not app.routes.is_configured("decide") or await budget_is_spent(app, "decide"):
        return None
    text = app.prompts.render(prompt, schema=json.dumps(schema, ensure_ascii=False), **variables)
    request = ModelRequest(
        "decide",
        (PromptMessage("user", text),),
        chat,
        max_tokens=MAX_TOKENS,
        json_schema=schema,
    )
    try:
        given = await app.model.complete(request)
    except ModelError as error:
        logger.info("the decision model failed, so everything is kept: {}", error)
        return None
    return None if given.finish_reason == "length" else given.text

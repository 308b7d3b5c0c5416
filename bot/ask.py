"""Ask: the model, until it answers; what it wants done in between is done, and told to it.

See ``docs/tools.md``, "The rounds of a turn", and ``docs/architecture.md``, "Token budget".
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import count

from loguru import logger

from bot.app import App
from bot.conversation.calibration import Calibration
from bot.conversation.fitting import Fitted, affordable, fitted, tokens, tool_tokens
from bot.conversation.model_windows import window_tokens
from bot.conversation.outgoing import without_thinking
from bot.conversation.tokens import CountTokens, estimator
from bot.conversation.tools import ToolSpec
from bot.conversation.turn_request import TurnRequest
from bot.errors import ContextTooLong, ModelNotConfigured
from bot.llm.protocol import ModelAnswer, ModelRequest
from bot.model import Chat, ToolRound
from bot.scene import Scene
from bot.text import clipped
from bot.tools.kit import toolbox
from bot.tools.surroundings import Surroundings
from bot.use_tools import Attempt, LessonsFor, no_lessons, offered, use_tools

MAX_ROUNDS = 8
"""So often a model may call tools in a turn; then it has to answer."""

MAX_USES = 24
"""So many uses of tools end the rounds as well."""

MAX_SAID_CHARS = 2_000
"""Of what a model says beside its calls, so much stays in the conversation."""

LAST_WORD = "（不能再用工具了。请根据以上结果直接回答。）"

SHARES = (0.9, 0.75, 0.5)
"""Of a prompt that was refused as too long, so much is sent next; the last of them from then on."""

TOOLS_SHARE = 0.5
"""Of a prompt tools may take so much; what would take more is not offered."""

NoteOutcome = Callable[[App, Chat, Sequence[Attempt]], Awaitable[None]]
"""Told all that was tried with tools in a turn."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model answered, and what it had done before."""

    answer: ModelAnswer
    rounds: tuple[ToolRound, ...] = ()
    folded: int = 0
    """So many of the oldest turns did not fit and belong into the rolling summary."""


async def nothing_noted(app: App, chat: Chat, attempts: Sequence[Attempt]) -> None:
    """Learn nothing."""


async def ask(
    app: App,
    scene: Scene,
    request: TurnRequest,
    shown_rows: frozenset[int],
    *,
    lessons_for: LessonsFor = no_lessons,
    note_outcome: NoteOutcome = nothing_noted,
) -> Asked:
    """Return the answer to a question.

    Args:
        app: the program.
        scene: what is known of the turn.
        request: its prompt.
        shown_rows: the messages that the prompt shows.
        lessons_for: asked after each failure of a tool.
        note_outcome: told what was tried, if anything was.

    Raises:
        ModelError: there is no answer.
    """
    tools = offered(app, scene, toolbox(app))
    specs = tuple(tool.spec for tool in tools)
    means = _means(app, scene)
    surroundings = Surroundings(app, scene, shown_rows)
    rounds: list[ToolRound] = []
    attempts: list[Attempt] = []
    folded = 0
    while True:
        is_last = len(rounds) >= MAX_ROUNDS or len(attempts) >= MAX_USES
        if is_last:
            request, specs = request.with_last_word(LAST_WORD), ()
        given, fit = await _complete(app, scene, means, request, specs)
        folded = max(folded, fit.folded)
        if not specs or not given.tool_calls:
            break
        made = await use_tools(surroundings, tools, given.tool_calls, lessons_for)
        surroundings = surroundings.showing(each.result for each in made)
        attempts += made
        rounds.append(_round(given, made))
        request = request.with_round(rounds[-1])
    if folded:
        logger.debug("{} turns of {} do not fit any more", folded, scene.chat)
    if attempts and not app.opt_outs.has(scene.chat.bot_id, scene.question.sender_id):
        await note_outcome(app, scene.chat, attempts)
    return Asked(given, tuple(rounds), folded)


def _round(given: ModelAnswer, made: Sequence[Attempt]) -> ToolRound:
    said = clipped(without_thinking(given.text), MAX_SAID_CHARS) if given.text else ""
    return ToolRound(given.model, said, tuple(each.use for each in made))


@dataclass(frozen=True, slots=True)
class _Means:
    """How a prompt is measured, and what it is held to."""

    model: str
    """The one that is asked first."""
    preferred: str
    """The one that was chosen for the chat, empty if none was."""
    window_tokens: int
    share: float
    count: CountTokens
    kept: int
    """So many turns are not folded."""


def _means(app: App, scene: Scene) -> _Means:
    settings = scene.settings
    preferred = app.choices.of(scene.chat)
    try:
        model = app.routes.candidates("chat", preferred=preferred)[0].model
    except ModelNotConfigured:
        model = ""
    return _Means(
        model=model,
        preferred=preferred,
        window_tokens=window_tokens(model, settings.model_windows),
        share=settings.context_budget_ratio,
        count=estimator(settings.token_estimator),
        kept=max(1, settings.session_max_messages // 2),
    )


async def _complete(
    app: App, scene: Scene, means: _Means, request: TurnRequest, specs: tuple[ToolSpec, ...]
) -> tuple[ModelAnswer, Fitted]:
    """Return the model's next answer, to a prompt that is made shorter until it is taken; tools are
    the last to go."""
    specs, beside = _affordable(app, means, specs)
    fit = _fitted(app, means, request, beside)
    for refusals in count():
        asked = ModelRequest(
            "chat", fit.messages, scene.chat, tools=specs, preferred_model=means.preferred
        )
        try:
            given = await app.model.complete(asked)
        except ContextTooLong as error:
            size = tokens(fit.messages, means.count)
            _note_refusal(app, means, size + beside, error)
            fewer, fewer_beside = _affordable(app, means, specs)
            if len(fewer) < len(specs):
                specs, beside = fewer, fewer_beside
                fit = _fitted(app, means, fit.request, beside).after(fit)
                continue
            share = SHARES[min(refusals, len(SHARES) - 1)]
            shorter = _fitted(app, means, fit.request, beside, at_most=int(share * size))
            if tokens(shorter.messages, means.count) >= size:
                if not specs:
                    raise
                # Better an answer without tools than none.
                specs, beside = (), 0
            logger.info("a prompt of {} was too long and is sent again, shorter", scene.chat)
            fit = shorter.after(fit)
        else:
            _note_answer(app, given, tokens(fit.messages, means.count) + beside)
            return given, fit
    raise AssertionError("count() has no end")


def _affordable(
    app: App, means: _Means, specs: tuple[ToolSpec, ...]
) -> tuple[tuple[ToolSpec, ...], int]:
    """Return the tools to offer and their tokens: those that do not fill most of a prompt.

    Our own come first, so a server that offers too many costs its own and those behind them.
    """
    room = int(TOOLS_SHARE * _room(app, means))
    offered = specs[: affordable(specs, means.count, room)]
    return offered, tool_tokens(offered, means.count)


def _room(app: App, means: _Means) -> int:
    """Return how many tokens a prompt may have, as far as is known."""
    known = app.calibrations.get(means.model, Calibration())
    return known.room(means.window_tokens, means.share)


def _fitted(
    app: App, means: _Means, request: TurnRequest, beside: int, at_most: int | None = None
) -> Fitted:
    """Return a request that fits, with ``beside`` tokens of tools, as far as is known."""
    room = _room(app, means) - beside
    if at_most is not None:
        room = min(room, at_most)
    return fitted(request, room, means.count, kept=means.kept)


def _note_answer(app: App, given: ModelAnswer, estimated: int) -> None:
    known = app.calibrations.get(given.model, Calibration())
    app.calibrations[given.model] = known.after_answer(estimated, given.prompt_tokens)


def _note_refusal(app: App, means: _Means, estimated: int, error: ContextTooLong) -> None:
    model = error.model or means.model
    known = app.calibrations.get(model, Calibration())
    app.calibrations[model] = known.after_refusal(estimated, error.window_tokens)

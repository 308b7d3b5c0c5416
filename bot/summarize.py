"""Summarize: what was said since becomes part of a chat's rolling summary, or nothing changes.

Load, decide, call, decide, commit, once for each chunk. See ``docs/session.md``, "Summarizing".
"""

import json
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace

import aiosqlite
from loguru import logger

from bot.alert import alert
from bot.app import App
from bot.clock import local_date
from bot.conversation.chunks import Piece, first_chunk
from bot.conversation.prompt_message import PromptMessage
from bot.conversation.summary import (
    SessionSummary,
    SummaryInput,
    Voice,
    has_answer,
    merged,
    parse_summary,
    read_summary,
    summary_input,
    summary_lines,
    summary_schema,
    turn_chars,
    written,
)
from bot.conversation.window import full_at, least_turns, message_ids
from bot.errors import ContextTooLong, ModelError, QunyiError
from bot.llm.protocol import ModelRequest, RouteName
from bot.memory.backoff import retry_minutes
from bot.model import Chat, Turn
from bot.sift import Worth, worth_keeping
from bot.store.alerts import claim_alert
from bot.store.sessions import (
    Progress,
    SessionState,
    Speaker,
    begin_summary_anew,
    fold_window,
    is_any_gone,
    keep_progress,
    rebuild_floor,
    session_now,
    session_state,
    speakers,
    turns_after,
)
from bot.store.tasks import (
    SessionClaim,
    advance,
    end_task,
    last_route,
    narrow_task,
    quarantine_message,
)
from bot.work import (
    NOT_TAKEN,
    CutOff,
    LostTask,
    NotTaken,
    Spending,
    described,
    read_less,
    try_again,
    try_later,
)

PAGE_TURNS = 64
"""So many turns are read at once; a chunk has no more."""

MAX_TOKENS = 4_000
"""A whole summary is about half of it."""

PASSED_BEFORE_WAITING = 3
"""From this many turns on that are passed over running, it is hardly the turns: each waits."""

DAY_MS = 86_400_000

LINE_CHARS = (1_000, 200)
"""Of each line of a single turn that is too long for the model, so much is shown."""


class SessionChanged(QunyiError):
    """What a model was shown is not to be read any more, or the session was reset meanwhile."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one call reads."""

    state: SessionState
    """Where it reads on, and with which summary."""
    turns: tuple[Turn, ...]
    replaced: SessionState | None = None
    """What stands until the first part of a summary that is made anew is kept."""

    @property
    def cursor(self) -> int:
        """The turn up to which the summary has then read."""
        return self.turns[-1].id


@dataclass(slots=True)
class Run:
    """One session being summarised."""

    claim: SessionClaim
    owner: str
    part: Part | None = None
    """What the call that is under way reads."""
    version: int = 0
    """Of the session, when it was looked at last."""
    turns: int = 0
    """How many were read so far."""
    spending: Spending = field(default_factory=Spending)
    """What was spent since the last commit."""


@dataclass(frozen=True, slots=True)
class ReadOn:
    """What came of it."""

    turns: int
    """How many turns are in the summary now that were not."""
    is_whole: bool
    """It has read all; else it is tried again by itself."""


async def summarize(app: App, claim: SessionClaim, owner: str) -> ReadOn:
    """Read on in a session, chunk by chunk. What fails changes nothing but when it is tried again.

    Each chunk is kept before the next one is read, so of two of which the second fails the first
    stays.
    """
    run = Run(claim, owner)
    is_whole = False
    try:
        is_whole = await _attempt(app, run)
    except LostTask as lost:
        logger.warning("the summary of {} was somebody else's: {}", claim.chat, lost)
    return ReadOn(run.turns, is_whole)


async def _attempt(app: App, run: Run) -> bool:
    try:
        await _all(app, run)
    except NOT_TAKEN as error:
        await _read_less(app, run, error)
    except SessionChanged as error:
        await _retry_at_once(app, run, error)
    except ModelError as error:
        await _retry_later(app, run, error)
    else:
        return True
    return False


async def _all(app: App, run: Run) -> None:
    while part := await _next_part(app, run):
        run.part = part
        await _commit(app, run, part, await _summary_with(app, run, part))
    await _end(app, run)


async def _next_part(app: App, run: Run) -> Part | None:
    replaced, state = None, await session_state(app.db, run.claim.chat)
    run.version = state.version
    if run.claim.reason == "rebuild":
        floor = await rebuild_floor(app.db, run.claim.chat_id)
        replaced, state = state, replace(state, summary="", summary_cursor=floor)
    turns = await turns_after(app.db, run.claim.chat_id, state.summary_cursor, PAGE_TURNS)
    chunk_chars = app.settings.general.summary_chunk_chars
    pieces = [Piece(turn_chars(turn), ends_on_user=not has_answer(turn)) for turn in turns]
    if len(turns) == PAGE_TURNS:
        # There may be more, of which the chunk has no part.
        pieces.append(Piece(chunk_chars + 1, ends_on_user=False))
    count = min(first_chunk(pieces, chunk_chars, run.claim.chunk), len(turns))
    return Part(state, tuple(turns[:count]), replaced) if count else None


# Call.


async def _summary_with(app: App, run: Run, part: Part) -> SessionSummary:
    """Return the summary as it is with a part."""
    chat = run.claim.chat
    voices = _voices(app, chat, await speakers(app.db, message_ids(part.turns)))
    whole = Worth(part.turns, read_summary(part.state.summary))
    shown = _input(app, whole, voices)
    worth = await worth_keeping(app, chat, whole, shown)
    if worth.turns != whole.turns:
        shown = _input(app, worth, voices)
    if not shown.lines:
        return worth.summary
    try:
        text = await _asked(app, run, worth.summary, shown)
    except ContextTooLong:
        if len(part.turns) > 1:
            raise
        shown, text = await _asked_of_less(app, run, worth, voices)
    answer = parse_summary(text)
    found = merged(worth.summary, answer, shown)
    if found.refusals:
        counts = ", ".join(f"{count} {name}" for name, count in Counter(found.refusals).items())
        logger.info("of a summary of {} was left out: {}", chat, counts)
    return found.summary


async def _asked_of_less(
    app: App, run: Run, worth: Worth, voices: dict[int, Voice]
) -> tuple[SummaryInput, str]:
    """Return an answer to one turn that is too long, and what was shown of it in the end."""
    *longer, least = LINE_CHARS
    for line_chars in longer:
        shown = _input(app, worth, voices, line_chars)
        with suppress(ContextTooLong):
            return shown, await _asked(app, run, worth.summary, shown)
    shown = _input(app, worth, voices, least)
    return shown, await _asked(app, run, worth.summary, shown)


def _input(
    app: App, worth: Worth, voices: dict[int, Voice], line_chars: int | None = None
) -> SummaryInput:
    asked_at = worth.turns[0].asked_at if worth.turns else 0
    first_day = local_date(asked_at, app.config.timezone)
    return summary_input(worth.turns, voices, first_day, line_chars)


def _voices(app: App, chat: Chat, known: dict[int, Speaker]) -> dict[int, Voice]:
    """Return who said what, bots left out, and whose word binds."""
    return {
        row_id: Voice(one.user_id, _may_decide(app, chat, one))
        for row_id, one in known.items()
        if not app.is_bot(one.user_id, chat)
    }


def _may_decide(app: App, chat: Chat, speaker: Speaker) -> bool:
    if not chat.is_group:
        return True
    return speaker.role in ("owner", "admin") or app.is_operator(speaker.user_id)


async def _asked(app: App, run: Run, summary: SessionSummary, shown: SummaryInput) -> str:
    claim = run.claim
    route = await last_route(app.db, claim)
    run.spending.calls += 1
    given = await app.model.complete(
        ModelRequest(
            "summarize",
            (PromptMessage("user", _prompt(app, claim.chat, summary, shown)),),
            claim.chat,
            max_tokens=MAX_TOKENS,
            json_schema=summary_schema(),
            last_route=RouteName(*route) if route else None,
        )
    )
    run.spending.tokens += given.prompt_tokens + given.completion_tokens
    if given.finish_reason == "length":
        raise CutOff("the answer was cut off")
    return given.text


def _prompt(app: App, chat: Chat, summary: SessionSummary, shown: SummaryInput) -> str:
    return app.prompts.render(
        "summarize",
        is_group=chat.is_group,
        schema=json.dumps(summary_schema(), ensure_ascii=False),
        summary="\n".join(summary_lines(summary)),
        lines="\n".join(shown.lines),
    )


# Commit.


async def _commit(app: App, run: Run, part: Part, summary: SessionSummary) -> None:
    """Keep a summary and how far it has read, both or neither."""
    messages = message_ids(part.turns)
    async with app.db.transaction() as tx:
        if await is_any_gone(tx, messages):
            raise SessionChanged("what was read is forgotten by now")
        await _keep(tx, run, part, Progress(written(summary), part.cursor, messages))


async def _keep(tx: aiosqlite.Connection, run: Run, part: Part, progress: Progress) -> None:
    claim, state = run.claim, part.state
    if part.replaced is not None:
        state = await begin_summary_anew(
            tx, claim.chat, part.replaced, state.summary_cursor, claim.id
        )
    if state is None or not await keep_progress(tx, state, progress):
        raise SessionChanged("the session has changed meanwhile")
    is_ours = await advance(
        tx,
        claim,
        run.owner,
        entries=len(part.turns),
        changes=0,
        calls=run.spending.calls,
        tokens=run.spending.tokens,
    )
    if not is_ours:
        raise LostTask("the lease ran out")
    run.turns += len(part.turns)
    run.spending = Spending()
    reason = claim.reason if part.replaced is None else "command"
    run.claim = replace(claim, reason=reason, attempts=0, unusable=0)


async def _end(app: App, run: Run) -> None:
    """End the task, and let a window that is full, or too long for the model, fall back."""
    settings = app.settings.general
    async with app.db.transaction() as tx:
        state = await session_now(tx, run.claim.chat)
        if state.version != run.version:
            raise SessionChanged("the session has changed since all was read")
        is_full = state.window_turns >= full_at(settings.session_max_messages)
        if is_full or run.claim.reason == "budget":
            await fold_window(tx, run.claim.chat, least_turns(settings.session_max_messages))
        if not await end_task(tx, run.claim, run.owner, app.clock.now()):
            raise LostTask("the lease ran out")


# Failure.


async def _retry_at_once(app: App, run: Run, error: SessionChanged) -> None:
    attempts, now = run.claim.attempts, app.clock.now()
    async with app.db.transaction() as tx:
        await try_again(tx, run, attempts=attempts, at=now, error=described(error))
    logger.info("the summary of {} begins again: {}", run.claim.chat, error)


async def _retry_later(app: App, run: Run, error: Exception) -> None:
    async with app.db.transaction() as tx:
        await try_later(app, tx, run, described(error))


async def _read_less(app: App, run: Run, error: NotTaken) -> None:
    turns = len(run.part.turns) if run.part else 0
    if not await read_less(app, run, error, turns):
        await _pass_over(app, run, error)


async def _pass_over(app: App, run: Run, error: Exception) -> None:
    """Leave one turn out of the summary for good, mark it, and go on with the next."""
    part, passed = run.part, run.claim.attempts + 1
    assert part is not None
    async with app.db.transaction() as tx:
        await _keep(tx, run, part, Progress(part.state.summary, part.cursor, {}))
        for line in part.turns[0].lines:
            if line.part == "question" and line.message_id is not None:
                await quarantine_message(
                    tx, run.claim, line.message_id, type(error).__name__, app.clock.now()
                )
        await narrow_task(tx, run.claim, None, 0)
        minutes = retry_minutes(passed) if passed >= PASSED_BEFORE_WAITING else 0
        at = app.clock.now() + minutes * 60_000
        await try_again(tx, run, attempts=passed, at=at, error=described(error))
        is_news = minutes > 0 and await _is_news(tx, run.claim.chat, app.clock.now())
    logger.warning("turn {} of {} is in no summary: no model takes it", part.cursor, run.claim.chat)
    if is_news:
        await alert(app, _refused_often(run.claim.chat), bot_id=run.claim.chat.bot_id)


async def _is_news(tx: aiosqlite.Connection, chat: Chat, now: int) -> bool:
    """Whether operators were not told for a day that no model takes what is said in a chat."""
    return await claim_alert(tx, f"summary of {chat}", at=now, due_before=now - DAY_MS)


def _refused_often(chat: Chat) -> str:
    return (
        f"{chat} 的会话概要接连跳过了几轮对话：模型不接受它们，或者答得不能用。"
        "多半是模型的问题，请检查；会越来越慢地再试，跳过的见 /任务。"
    )

"""Compress: the older daily entries of a stream become few lines of memory, or nothing changes.

Load, decide, call, decide, commit, once for each call. See ``docs/memory.md``, "Compression".
"""

import json
from dataclasses import dataclass, field, replace
from functools import partial

import aiosqlite
from loguru import logger

from bot.alert import alert
from bot.app import App
from bot.conversation.prompt_message import PromptMessage
from bot.errors import ContextTooLong, ModelError, ModelRefused, QunyiError
from bot.llm.protocol import ModelRequest, Purpose, RouteName
from bot.memory.compression import (
    CHUNK,
    Compressed,
    Plan,
    alone,
    check,
    compression_schema,
    continued,
    plan,
    prompt_lines,
    still_stands,
)
from bot.model import Entry, Scope, ScopeKind, Stream
from bot.settings import Settings
from bot.store.memory import (
    StreamWriter,
    daily_count,
    living_entries,
    rewrite,
    set_aside,
)
from bot.store.tasks import (
    StreamClaim,
    advance,
    end_task,
    last_route,
    narrow_task,
    queue_compression,
)
from bot.work import (
    NOT_TAKEN,
    CutOff,
    LostTask,
    NotTaken,
    Spending,
    described,
    read_less,
    try_later,
)

TASK = "compress"

ALERTS = 3
"""Operators are told of so many entries of a stream that are set aside: then it is not the entries,
and each further one would cost them a message an hour."""

PURPOSES: dict[ScopeKind, Purpose] = {"group": "compress.group", "member": "compress.member"}
PROMPTS: dict[ScopeKind, str] = {"group": "compress_group", "member": "compress_member"}


class SourcesChanged(QunyiError):
    """What a model was shown is remembered no more, or may not be; its answer is discarded."""


class SwitchedOff(QunyiError):
    """The chat, or its memory, was switched off while it was worked on."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When daily entries are compressed."""

    at: int
    """From so many on."""
    keep_recent: int
    """So many of the newest stay."""


@dataclass(slots=True)
class Run:
    """One task being worked on."""

    claim: StreamClaim
    owner: str
    chunk: int
    part: Plan | None = None
    """What is to be compressed by the call that is under way."""
    is_alone: bool = False
    """Calls show nothing beside the daily entries: with it they were refused."""
    spending: Spending = field(default_factory=Spending)
    """What was spent since the last commit."""

    @property
    def shown(self) -> Plan:
        """The part, as its call shows it."""
        assert self.part is not None
        return alone(self.part) if self.is_alone else self.part


def limits_of(settings: Settings, scope: Scope) -> Limits:
    """Return when the daily entries of a scope's stream are compressed."""
    if scope.kind == "group":
        return Limits(settings.memory_group_compress_at, settings.memory_group_keep_recent)
    return Limits(settings.memory_member_compress_at, settings.memory_member_keep_recent)


async def queue_if_many(app: App, tx: aiosqlite.Connection, stream: Stream, now: int) -> None:
    """Queue the compression of a stream that has reached its number of daily entries."""
    limits = limits_of(app.settings.of(stream.origin), stream.scope)
    if await daily_count(tx, stream) >= limits.at:
        await queue_compression(tx, stream, "count", now)


async def compress(app: App, claim: StreamClaim, owner: str) -> None:
    """Compress a stream, call by call. What fails changes nothing but when it is tried again."""
    run = Run(claim, owner, claim.chunk or CHUNK)
    try:
        await _attempt(app, run)
    except LostTask as lost:
        logger.warning("compress of {} was somebody else's: {}", claim.stream.scope, lost)


async def _attempt(app: App, run: Run) -> None:
    try:
        await _all(app, run)
    except NOT_TAKEN as error:
        await _read_less(app, run, error)
    except (ModelError, SourcesChanged, SwitchedOff) as error:
        await _retry_later(app, run, error)


async def _all(app: App, run: Run) -> None:
    run.part = _planned(app, run, await _entries(app, run))
    while run.part or await _has_more(app, run):
        accepted = await _accepted(app, run)
        rest = await _commit(app, run, accepted)
        run.part = await _next(app, run, rest)


async def _entries(app: App, run: Run) -> list[Entry]:
    async with app.db.reader() as connection:
        return await living_entries(connection, run.claim.stream)


async def _next(app: App, run: Run, rest: tuple[int, ...]) -> Plan | None:
    if not rest:
        return None
    entries = await _entries(app, run)
    return continued(entries, rest, _limits(app, run).keep_recent, run.chunk)


async def _has_more(app: App, run: Run) -> bool:
    """Go on if the number was reached again meanwhile, else end the task.

    Both in one transaction: a reflection that commits while the task is open cannot queue another.
    """
    limits, stream = _limits(app, run), run.claim.stream
    async with app.db.transaction() as tx:
        if await daily_count(tx, stream) >= limits.at:
            entries = await living_entries(tx, stream)
            run.part = plan(entries, limits.at, limits.keep_recent, run.chunk)
        if run.part is None and not await end_task(tx, run.claim, run.owner, app.clock.now()):
            raise LostTask("the lease ran out")
    return run.part is not None


def _planned(app: App, run: Run, entries: list[Entry]) -> Plan | None:
    """Return what the first call reads.

    What was begun, and what somebody asked for, does not wait for the number to be reached.
    """
    limits = _limits(app, run)
    at = limits.at if run.claim.reason == "count" else 0
    return plan(entries, at, limits.keep_recent, run.chunk)


def _limits(app: App, run: Run) -> Limits:
    return limits_of(app.settings.of(run.claim.chat), run.claim.stream.scope)


def _check_switches(app: App, run: Run) -> None:
    chat = run.claim.chat
    if app.access.of(chat) == "disabled" or not app.settings.of(chat).memory_enabled:
        raise SwitchedOff("switched off meanwhile")


# Call.


async def _accepted(app: App, run: Run) -> tuple[Compressed, ...]:
    """Return what a model makes of the part.

    If it refuses the prompt, the cause may be what is shown beside the daily entries, which is not
    theirs to pay for.
    """
    part = run.shown
    try:
        return check(part, await _asked(app, run, part))
    except (ModelRefused, ContextTooLong):
        if not (part.memory or part.background):
            raise
    run.is_alone = True
    return await _accepted(app, run)


async def _asked(app: App, run: Run, part: Plan) -> str:
    _check_switches(app, run)
    claim, kind = run.claim, run.claim.stream.scope.kind
    route = await last_route(app.db, claim)
    run.spending.calls += 1
    given = await app.model.complete(
        ModelRequest(
            PURPOSES[kind],
            (PromptMessage("user", _prompt(app, kind, part)),),
            claim.chat,
            max_tokens=app.settings.of(claim.chat).memory_compression_max_tokens,
            json_schema=compression_schema(),
            last_route=RouteName(*route) if route else None,
        )
    )
    run.spending.tokens += given.prompt_tokens + given.completion_tokens
    if given.finish_reason == "length":
        raise CutOff("the answer was cut off")
    return given.text


def _prompt(app: App, kind: ScopeKind, part: Plan) -> str:
    return app.prompts.render(
        PROMPTS[kind],
        **prompt_lines(part),
        schema=json.dumps(compression_schema(), ensure_ascii=False),
    )


# Commit.


async def _commit(app: App, run: Run, accepted: tuple[Compressed, ...]) -> tuple[int, ...]:
    """Write what one call gave in the place of its sources, or nothing, in one transaction.

    Returns:
        The daily entries that are left for further calls.
    """
    named = {entry.number: entry for item in accepted for entry in item.sources}
    part, claim, now = run.shown, run.claim, app.clock.now()
    _check_switches(app, run)
    async with app.db.transaction() as tx:
        numbers = [entry.number for entry in part.shown]
        if not still_stands(part, await living_entries(tx, claim.stream, numbers)):
            raise SourcesChanged("what was shown has changed meanwhile")
        replacing = {claim.stream: partial(_replace, accepted)}
        await rewrite(tx, replacing, at=now, by=TASK, why=claim.reason, task_id=claim.id)
        is_ours = await advance(
            tx,
            claim,
            run.owner,
            entries=sum(entry.document == "daily" for entry in named.values()),
            changes=len(accepted),
            calls=run.spending.calls,
            tokens=run.spending.tokens,
        )
        if not is_ours:
            raise LostTask("the lease ran out")
    run.spending = Spending()
    run.claim = replace(claim, attempts=0, unusable=0)
    return part.rest


def _replace(accepted: tuple[Compressed, ...], writer: StreamWriter) -> None:
    for item in accepted:
        numbers = [entry.number for entry in item.sources]
        writer.compress(item.text, item.date, numbers, source_task=TASK)
    for number in {entry.number: None for item in accepted for entry in item.sources}:
        writer.end(number, "compressed", "")


# Failure.


async def _retry_later(app: App, run: Run, error: Exception) -> None:
    async with app.db.transaction() as tx:
        await try_later(app, tx, run, described(error))


async def _read_less(app: App, run: Run, error: NotTaken) -> None:
    daily = len(run.part.daily) if run.part else 0
    if not await read_less(app, run, error, daily):
        await _pass_over(app, run, error)


async def _pass_over(app: App, run: Run, error: Exception) -> None:
    """Leave one entry as it is, for good, and name it to the operators."""
    assert run.part is not None
    (entry,) = run.part.daily
    async with app.db.transaction() as tx:
        await set_aside(tx, entry)
        entries = await living_entries(tx, entry.stream)
        await narrow_task(tx, run.claim, None, 0)
        await try_later(app, tx, run, described(error))
    passed = sum(one.set_aside for one in entries)
    if passed <= ALERTS:
        await alert(app, _words_of(run, entry, passed), bot_id=run.claim.chat.bot_id)


def _words_of(run: Run, entry: Entry, passed: int) -> str:
    more = f"这里已跳过 {passed} 条，不再逐条通知。" if passed == ALERTS else ""
    return (
        f"{run.claim.chat} 的记忆压缩跳过了一条近事（{run.claim.stream.scope} #{entry.label}）："
        f"模型不接受它。它原样保留；发送 /压缩 再试。{more}"
    )

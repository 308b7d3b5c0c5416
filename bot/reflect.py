"""Reflect: messages become memory, or nothing at all changes.

Load, decide, call, decide, commit. See ``docs/memory.md``, "Output", "Checks" and "Failure".
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import aiosqlite
from loguru import logger

from bot.alert import alert
from bot.app import App
from bot.batch import Reading, memory_of, quoted_rows, read_batch, summary_sources
from bot.compress import queue_if_many
from bot.conversation.prompt_message import PromptMessage
from bot.errors import ModelError
from bot.llm.protocol import ModelRequest, Purpose, RouteName
from bot.memory.answer import AnswerUnusable, answer_schema, parse_answer
from bot.memory.checks import check, without_named
from bot.memory.delta import merged, recheck
from bot.memory.repair import repair_request
from bot.memory.transcript import prompt_data
from bot.memory.verdict import (
    Added,
    Change,
    Checked,
    Counts,
    Proven,
    Summarised,
    Superseded,
)
from bot.model import Batch, Stream, StreamMemory, TaskName
from bot.store.memory import StreamWriter, gone_among, remembered, rewrite
from bot.store.tasks import (
    QUARANTINES,
    Claim,
    Narrowing,
    finish_task,
    last_route,
    move_cursor,
    narrow,
    quarantine_message,
)
from bot.work import (
    NOT_TAKEN,
    LostTask,
    NotTaken,
    Search,
    Spending,
    described,
    try_again_after,
    try_later,
)

PURPOSES: dict[TaskName, Purpose] = {
    "group": "reflect.group",
    "member-batch": "reflect.member-batch",
    "private-owner": "reflect.private-owner",
}

PROMPTS: dict[TaskName, str] = {
    "group": "reflect_group",
    "member-batch": "reflect_member_batch",
    "private-owner": "reflect_private_owner",
}

TASK_WORDS: dict[TaskName, str] = {
    "group": "群记忆",
    "member-batch": "成员记忆",
    "private-owner": "私聊记忆",
}


NOTHING = Checked((), (), Counts())
"""What a batch without people says."""


@dataclass(frozen=True, slots=True)
class Run:
    """One task being worked on, with what it reads."""

    claim: Claim
    owner: str
    reading: Reading
    opted_out: frozenset[str] = frozenset()
    """Who did not want to be remembered when it was read."""
    spending: Spending = field(default_factory=Spending)


async def reflect(app: App, claim: Claim, owner: str) -> None:
    """Reflect one batch. What fails changes nothing but when and how it is tried again."""
    opted_out = app.opt_outs.of(claim.chat.bot_id)
    run = Run(claim, owner, await read_batch(app, claim), opted_out)
    try:
        await _attempt(app, run)
    except LostTask as lost:
        logger.warning("{} of {} was somebody else's: {}", claim.task, claim.chat, lost)


async def _attempt(app: App, run: Run) -> None:
    try:
        checked = await _think(app, run) if run.reading.has_people else NOTHING
        await _commit(app, run, checked)
    except NOT_TAKEN as error:
        await _read_less(app, run, error)
    except ModelError as error:
        await _retry_later(app, run, described(error))


# Call and decide.


async def _think(app: App, run: Run) -> Checked:
    prompt = (PromptMessage("user", _prompt(app, run)),)
    text = await _asked(app, run, prompt)
    first = _checked(app, run, text)
    if not first.needs_repair:
        return first
    repair = (
        *prompt,
        PromptMessage("assistant", text),
        PromptMessage("user", repair_request(first)),
    )
    try:
        second = _checked(app, run, await _asked(app, run, repair))
        return merged(first, second, run.reading.batch.memories)
    except (ModelError, AnswerUnusable) as error:
        logger.info("the repair call gave nothing: {}", type(error).__name__)
        return first


def _checked(app: App, run: Run, text: str) -> Checked:
    parsed = parse_answer(text, run.claim.task)
    return check(parsed, run.reading.batch, authors=run.reading.authors, opted_out=run.opted_out)


async def _asked(app: App, run: Run, messages: tuple[PromptMessage, ...]) -> str:
    """Return an answer that is complete; one that is cut off is asked for once more, with twice
    the limit."""
    limit = app.settings.of(run.claim.chat).memory_reflection_max_tokens
    route = await last_route(app.db, run.claim)
    for max_tokens in (limit, 2 * limit):
        run.spending.calls += 1
        given = await app.model.complete(
            ModelRequest(
                PURPOSES[run.claim.task],
                messages,
                run.claim.chat,
                max_tokens=max_tokens,
                json_schema=answer_schema(run.claim.task),
                last_route=RouteName(*route) if route else None,
            )
        )
        run.spending.tokens += given.prompt_tokens + given.completion_tokens
        if given.finish_reason != "length":
            return given.text
    raise AnswerUnusable("the answer was cut off, with twice the limit too")


def _prompt(app: App, run: Run) -> str:
    batch = run.reading.batch
    settings = app.settings.of(batch.chat)
    return app.prompts.render(
        PROMPTS[batch.task],
        **prompt_data(
            batch,
            chat_name=run.reading.chat_name,
            zone=app.config.timezone,
            message_chars=settings.memory_message_chars,
        ),
        schema=json.dumps(answer_schema(batch.task), ensure_ascii=False),
    )


# Commit.


async def _commit(app: App, run: Run, checked: Checked) -> None:
    """Write everything, or nothing, in one transaction."""
    batch, now = run.reading.batch, app.clock.now()
    if app.access.of(batch.chat) == "disabled":
        await _retry_later(app, run, "the chat was switched off meanwhile")
        return
    # What no model has seen tells nothing of whether it would be refused.
    quarantined = 0 if run.spending.calls else run.reading.cursor.quarantined
    async with app.db.transaction() as tx:
        gone = await gone_among(tx, _shown_rows(batch))
        if opted_out := app.opt_outs.of(batch.chat.bot_id) - run.opted_out:
            checked = replace(checked, changes=without_named(checked.changes, batch, opted_out))
        if not await move_cursor(
            tx,
            run.claim,
            expected=batch.after_id,
            last_id=batch.last_id,
            quarantined=quarantined,
        ):
            raise LostTask("the cursor stands elsewhere")
        await _uncover_retracted(tx, run, checked.changes, gone, now)
        count = await _write(tx, run, checked.changes, gone, now)
        for stream in _by_stream(checked.changes):
            await queue_if_many(app, tx, stream, now)
        refusals = [(refused.path, refused.reason) for refused in checked.rejections]
        await _finish(tx, run, "done", now, counts=_counts(checked, count), refusals=refusals)


def _shown_rows(batch: Batch) -> frozenset[int]:
    return frozenset({m.row_id for m in batch.messages} | quoted_rows(batch.messages))


def _by_stream(changes: tuple[Change, ...]) -> dict[Stream, list[Change]]:
    streams: dict[Stream, list[Change]] = {}
    for change in changes:
        streams.setdefault(change.stream, []).append(change)
    return streams


def _counts(checked: Checked, changes: int) -> dict[str, int]:
    counts = checked.counts
    return {
        "changes": changes,
        "items": counts.leaves,
        "refused": counts.refused,
        "dates_moved": counts.dates_moved,
        **{f"refused.{reason}": count for reason, count in sorted(checked.reasons.items())},
    }


async def _uncover_retracted(
    tx: aiosqlite.Connection,
    run: Run,
    changes: tuple[Change, ...],
    gone: frozenset[int],
    now: int,
) -> None:
    """Take apart what was compressed while a model read that it is not true.

    What is retracted would live on in what was made of it.
    """
    numbers: dict[Stream, list[int]] = {}
    for change in changes:
        if isinstance(change, Superseded) and gone.isdisjoint(change.proof):
            numbers.setdefault(change.stream, []).append(change.entry_number)
    rewriting = {stream: partial(_uncover, own) for stream, own in numbers.items()}
    claim = run.claim
    await rewrite(tx, rewriting, at=now, by=claim.task, why="retraction", task_id=claim.id)


def _uncover(numbers: list[int], writer: StreamWriter) -> None:
    for number in numbers:
        writer.uncover(number)


async def _write(
    tx: aiosqlite.Connection,
    run: Run,
    changes: tuple[Change, ...],
    gone: frozenset[int],
    now: int,
) -> int:
    """Write what of some changes still holds, with its revisions; return how many that are."""
    by_stream = _by_stream(changes)
    holding: dict[Stream, tuple[Change, ...]] = {}
    for found in await remembered(tx, by_stream):
        now_held = found.memory
        told = _with_sources(by_stream[now_held.stream], run.reading.batch, now_held)
        if still := recheck(told, gone, [now_held]):
            holding[now_held.stream] = still
    rewriting = {stream: partial(_change, run.claim.task, own) for stream, own in holding.items()}
    claim = run.claim
    await rewrite(tx, rewriting, at=now, by=claim.task, why=claim.reason, task_id=claim.id)
    return sum(len(own) for own in holding.values())


def _change(task: TaskName, changes: tuple[Change, ...], writer: StreamWriter) -> None:
    for change in changes:
        _write_change(writer, task, change)


def _with_sources(changes: list[Change], batch: Batch, now_held: StreamMemory) -> list[Change]:
    """Let summaries rest on all that they may tell of; leave them out if some of that is gone."""
    told: list[Change] = []
    for change in changes:
        if not isinstance(change, Summarised):
            told.append(change)
        elif _still_stands(memory_of(batch, change.stream), now_held):
            sources = summary_sources(batch, change.stream, change.message_ids)
            told.append(replace(change, message_ids=sources))
    return told


def _still_stands(shown: StreamMemory, now_held: StreamMemory) -> bool:
    """Whether all that a model was shown of a stream is remembered still."""
    texts = {entry.number: entry.text for entry in now_held.entries}
    return shown.summary.text == now_held.summary.text and all(
        texts.get(entry.number) == entry.text for entry in shown.entries
    )


def _write_change(writer: StreamWriter, task: TaskName, change: Change) -> None:
    match change:
        case Added():
            writer.add(
                change.document,
                change.text,
                change.proofs,
                type=change.type,
                date=change.date,
                tier=change.tier,
                source_task=task,
            )
        case Proven():
            writer.prove(change.entry_number, change.proof)
        case Summarised():
            writer.summarise(change.text, change.message_ids)
        case Superseded():
            writer.end(change.entry_number, "superseded", change.why, change.proof)


async def _finish(
    tx: aiosqlite.Connection,
    run: Run,
    state: str,
    now: int,
    *,
    counts: dict[str, int],
    refusals: Sequence[tuple[str, str]] = (),
    error: str = "",
) -> None:
    batch = run.reading.batch
    is_ours = await finish_task(
        tx,
        run.claim,
        run.owner,
        "stopped" if state == "stopped" else "done",
        at=now,
        after_id=batch.after_id,
        last_id=batch.last_id,
        messages=len(batch.messages),
        calls=run.spending.calls,
        tokens=run.spending.tokens,
        counts=counts,
        refusals=refusals,
        error=error,
    )
    if not is_ours:
        raise LostTask("the lease ran out")


# Failure.


async def _retry_later(app: App, run: Run, error: str) -> None:
    async with app.db.transaction() as tx:
        await try_later(app, tx, run, error)


async def _read_less(app: App, run: Run, error: NotTaken) -> None:
    """Let the batch be read again, or half of it, until the message that is to blame is found."""
    standing, batch = run.reading.cursor, run.reading.batch
    before = Search(standing.batch_limit, standing.unusable)
    search = before.after(error, len(batch.messages))
    if search is None:
        await _quarantine(app, run, described(error))
        return
    is_halved = search.limit != before.limit
    until = batch.last_id if is_halved else 0
    async with app.db.transaction() as tx:
        await narrow(tx, run.claim, Narrowing(search.limit, until, search.unusable))
        await try_again_after(app, tx, run, error)


async def _quarantine(app: App, run: Run, reason: str) -> None:
    """Pass one message, keep it marked, and name it to the operators."""
    batch, now = run.reading.batch, app.clock.now()
    count = run.reading.cursor.quarantined + 1
    state = "stopped" if count >= QUARANTINES else "done"
    message = batch.messages[0]
    async with app.db.transaction() as tx:
        await quarantine_message(tx, run.claim, message.row_id, reason, now)
        if not await move_cursor(
            tx,
            run.claim,
            expected=batch.after_id,
            last_id=batch.last_id,
            quarantined=count,
            widen=True,
        ):
            raise LostTask("the cursor stands elsewhere")
        await _finish(tx, run, state, now, counts={"quarantined": 1}, error=reason)
    stopped = "；连续三条，此任务已停，处理后发送 /反思 继续" if state == "stopped" else ""
    await alert(
        app,
        f"{run.claim.chat} 的{TASK_WORDS[run.claim.task]}跳过了一条消息"
        f"（行 {message.row_id}，发送者 {message.sender_id}）：模型不接受它{stopped}。",
        bot_id=run.claim.chat.bot_id,
    )

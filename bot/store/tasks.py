"""Tasks: what is due, who works on it, how far each has read, what happened.

See ``docs/memory.md``, "Triggers" and "Failure".
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import aiosqlite

from bot.model import Chat, Scope, StoredMessage, Stream, TaskKind, TaskName
from bot.store.database import Database
from bot.store.memory import stream_key
from bot.store.messages import chat_key, stored_message
from bot.store.queries import load

CANDIDATES = 200
"""So many due chats of one task are looked at in one go, the longest waiting first."""

QUARANTINES = 3
"""So many quarantines running stop a task."""

LONGEST_WAIT_MS = 2 * 3_600_000
"""No try is put off for so long; one that lies further ahead was set before the clock went back."""

TaskState = Literal["queued", "running", "done", "failed", "stopped"]
TaskReason = Literal["idle", "count", "max-wait", "backlog", "command"]
"""Why a task is due: a trigger, or somebody asked for it."""

SCOPES: Mapping[TaskName, str] = {
    "group": "group",
    "member-batch": "member",
    "private-owner": "private",
}
"""The scope that each task goes with."""

_sql = load("tasks")


@dataclass(frozen=True, slots=True)
class Standing:
    """How one task stands in one chat."""

    chat: Chat
    chat_id: int
    task: TaskName
    pending: int
    oldest_pending_at: int | None
    newest_pending_at: int | None
    has_answered: bool
    """The bot has answered in this chat."""
    fell_due: bool
    """Part of what was stored when the task fell due still waits."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """From when on something may be due; the pure decision has the last word."""

    now: int
    idle_since: int
    waiting_since: int
    count: int
    memory_enabled: bool
    """In chats without a value of their own, and so is the next."""
    member_batch_enabled: bool


@dataclass(frozen=True, slots=True)
class Allowance:
    """Which work may be begun: what is not is over its budget for the day."""

    reflections: bool = True
    compressions: bool = True
    summaries: bool = True


EVERYTHING = Allowance()


@dataclass(frozen=True, slots=True)
class Claim:
    """A reflection that this process works on."""

    id: int
    chat: Chat
    chat_id: int
    chat_name: str
    task: TaskName
    reason: str
    attempts: int


@dataclass(frozen=True, slots=True)
class StreamClaim:
    """A compression that this process works on."""

    id: int
    chat: Chat
    chat_id: int
    stream: Stream
    reason: str
    attempts: int
    chunk: int | None
    """How many entries a call reads while one that is refused is looked for."""
    unusable: int
    """How many answers running could not be used."""
    task: TaskKind = "compress"


@dataclass(frozen=True, slots=True)
class SessionClaim:
    """A summary of a session that this process works on."""

    id: int
    chat: Chat
    chat_id: int
    reason: str
    attempts: int
    chunk: int | None
    """How many turns a call reads while one that is refused is looked for."""
    unusable: int
    """How many answers running could not be used."""
    task: TaskKind = "summarize"


AnyClaim = Claim | StreamClaim | SessionClaim


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a task has read in a chat, and how large its batches may be."""

    last_id: int
    batch_limit: int | None
    narrow_until: int
    quarantined: int
    unusable: int


@dataclass(frozen=True, slots=True)
class Narrowing:
    """How small batches are made while a bad message is looked for."""

    batch_limit: int | None
    narrow_until: int
    """The row up to which they stay so; 0 for no further than they were to stay."""
    unusable: int
    """How many answers running could not be used."""


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One task as the operators see it."""

    id: int
    chat: Chat
    task: TaskKind
    scope: str
    """The kind of scope that it works on: ``group``, ``member``, ``private``."""
    state: TaskState
    reason: str
    attempts: int
    next_run_at: int
    error: str
    messages: int
    calls: int
    tokens: int
    counts: Mapping[str, int]
    refusals: Sequence[tuple[str, str]]
    """Places in the model's answer, such as ``daily[0]``, each with the reason of its refusal."""
    created_at: int
    finished_at: int | None


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A message that a provider refused."""

    chat: Chat
    task: TaskKind
    message_id: int
    reason: str
    at: int


def _chat(row: aiosqlite.Row) -> Chat:
    return Chat(row["bot_id"], row["kind"], row["peer_id"])


def _standing(row: aiosqlite.Row) -> Standing:
    return Standing(
        chat=_chat(row),
        chat_id=row["chat_id"],
        task=row["task"],
        pending=row["pending"],
        oldest_pending_at=row["oldest_pending_at"],
        newest_pending_at=row["newest_pending_at"],
        has_answered=bool(row["has_answered"]),
        fell_due=row["due_until"] > row["last_id"],
    )


async def due_candidates(db: Database, task: TaskName, horizon: Horizon) -> list[Standing]:
    """Return chats in which ``task`` may be due and is not open."""
    async with db.reader() as connection:
        return [
            _standing(row)
            async for row in _sql.due_candidates(
                connection,
                task=task,
                now=horizon.now,
                idle_since=horizon.idle_since,
                waiting_since=horizon.waiting_since,
                count=horizon.count,
                memory_enabled=horizon.memory_enabled,
                member_batch_enabled=horizon.member_batch_enabled,
                quarantines=QUARANTINES,
                limit=CANDIDATES,
            )
        ]


async def standing(db: Database, chat: Chat, task: TaskName) -> Standing | None:
    """Return how a task stands in a chat, ``None`` if it has nothing to read there."""
    async with db.reader() as connection:
        return await standing_now(connection, chat, task)


async def standing_now(
    connection: aiosqlite.Connection, chat: Chat, task: TaskName
) -> Standing | None:
    """Return the same as seen by a transaction, during which it does not change."""
    row = await _sql.standing(connection, **chat_key(chat), task=task)
    return _standing(row) if row else None


async def queue_task(
    tx: aiosqlite.Connection, found: Standing, reason: TaskReason, at: int
) -> bool:
    """Queue a due task, unless it is open already.

    What is stored now is due with it, unless it is itself but a part of what fell due before.
    """
    count = await _sql.queue_task(
        tx,
        chat_id=found.chat_id,
        scope=SCOPES[found.task],
        task=found.task,
        reason=reason,
        at=at,
    )
    if count and reason != "backlog":
        await _sql.mark_due(tx, chat_id=found.chat_id, task=found.task)
    return count > 0


async def hurry_task(tx: aiosqlite.Connection, chat: Chat, task: TaskName, at: int) -> None:
    """Let a task that waits, or was stopped, go on now."""
    await _sql.release_stopped(tx, **chat_key(chat), task=task)
    await _sql.hurry(tx, **chat_key(chat), task=task, at=at)


async def queue_compression(
    tx: aiosqlite.Connection, stream: Stream, reason: TaskReason, at: int
) -> bool:
    """Queue the compression of a stream, unless one is open already."""
    return await _sql.queue_compression(tx, **stream_key(stream), reason=reason, at=at) > 0


async def hurry_compression(
    tx: aiosqlite.Connection, stream: Stream, reason: TaskReason, at: int
) -> None:
    """Let a compression that waits for its next try go on now, for another reason."""
    await _sql.hurry_compression(tx, **stream_key(stream), reason=reason, at=at)


async def is_any_claimable(db: Database, now: int, allowed: Allowance = EVERYTHING) -> bool:
    """Whether a task's time has come; asked before the write lock is."""
    async with db.reader() as connection:
        return bool(await _claimable(connection, now, 1, allowed))


async def claim_tasks(
    tx: aiosqlite.Connection,
    owner: str,
    *,
    limit: int,
    now: int,
    until: int,
    allowed: Allowance = EVERYTHING,
) -> list[AnyClaim]:
    """Take up to ``limit`` tasks whose time has come; the lease holds until ``until``."""
    return [
        _claim(row)
        for row in await _claimable(tx, now, limit, allowed)
        if await _sql.claim(tx, id=row["id"], owner=owner, until=until, now=now)
    ]


async def _claimable(
    connection: aiosqlite.Connection, now: int, limit: int, allowed: Allowance
) -> list[aiosqlite.Row]:
    rows = _sql.claimable(
        connection,
        now=now,
        too_late=now + LONGEST_WAIT_MS,
        limit=limit,
        reflections=allowed.reflections,
        compressions=allowed.compressions,
        summaries=allowed.summaries,
    )
    return [row async for row in rows]


def _claim(row: aiosqlite.Row) -> AnyClaim:
    chat = _chat(row)
    if row["task"] == "summarize":
        return SessionClaim(
            id=row["id"],
            chat=chat,
            chat_id=row["chat_id"],
            reason=row["reason"],
            attempts=row["attempts"],
            chunk=row["chunk"],
            unusable=row["unusable"],
        )
    if row["task"] == "compress":
        return StreamClaim(
            id=row["id"],
            chat=chat,
            chat_id=row["chat_id"],
            stream=Stream(Scope(chat.bot_id, row["scope_kind"], row["scope_key"]), chat),
            reason=row["reason"],
            attempts=row["attempts"],
            chunk=row["chunk"],
            unusable=row["unusable"],
        )
    return Claim(
        id=row["id"],
        chat=chat,
        chat_id=row["chat_id"],
        chat_name=row["name"],
        task=row["task"],
        reason=row["reason"],
        attempts=row["attempts"],
    )


async def advance(
    tx: aiosqlite.Connection,
    claim: StreamClaim | SessionClaim,
    owner: str,
    *,
    entries: int,
    changes: int,
    calls: int,
    tokens: int,
) -> bool:
    """Note what one call of several came to; false if the lease was lost, and then nothing
    may be committed."""
    count = await _sql.advance(
        tx,
        id=claim.id,
        owner=owner,
        messages=entries,
        changes=changes,
        calls=calls,
        tokens=tokens,
    )
    return count > 0


async def end_task(
    tx: aiosqlite.Connection, claim: StreamClaim | SessionClaim, owner: str, at: int
) -> bool:
    """End a task of several calls; false if the lease was lost."""
    return await _sql.end_task(tx, id=claim.id, owner=owner, at=at) > 0


async def narrow_task(
    tx: aiosqlite.Connection, claim: StreamClaim | SessionClaim, chunk: int | None, unusable: int
) -> None:
    """Note how much the next call reads, and how many answers running were unusable."""
    await _sql.narrow_task(tx, id=claim.id, chunk=chunk, unusable=unusable)


async def renew_lease(tx: aiosqlite.Connection, claim: AnyClaim, owner: str, until: int) -> bool:
    """Keep a task for longer; false if it was lost."""
    return await _sql.renew_lease(tx, id=claim.id, owner=owner, until=until) > 0


async def free_leases(tx: aiosqlite.Connection, owner: str) -> int:
    """Free what this process's last run held; return how many."""
    return await _sql.free_leases(tx, owner=owner)


async def withdraw_task(tx: aiosqlite.Connection, claim: AnyClaim, owner: str) -> None:
    """Take back a task that is not to run now."""
    await _sql.withdraw_task(tx, id=claim.id, owner=owner)


async def put_off(
    tx: aiosqlite.Connection,
    claim: AnyClaim,
    owner: str,
    *,
    attempts: int,
    next_run_at: int,
    error: str,
    calls: int = 0,
    tokens: int = 0,
) -> bool:
    """Try a task again later; false if the lease was lost, and then nothing may be committed."""
    count = await _sql.put_off(
        tx,
        id=claim.id,
        owner=owner,
        attempts=attempts,
        next_run_at=next_run_at,
        error=error,
        calls=calls,
        tokens=tokens,
    )
    return count > 0


async def finish_task(
    tx: aiosqlite.Connection,
    claim: Claim,
    owner: str,
    state: Literal["done", "stopped"],
    *,
    at: int,
    after_id: int,
    last_id: int,
    messages: int,
    calls: int,
    tokens: int,
    counts: Mapping[str, int],
    refusals: Sequence[tuple[str, str]] = (),
    error: str = "",
) -> bool:
    """End a task; false if the lease was lost, and then nothing may be committed.

    ``refusals`` are places in the model's answer, each with the reason why nothing came of it.
    """
    count = await _sql.finish_task(
        tx,
        id=claim.id,
        owner=owner,
        state=state,
        at=at,
        error=error,
        after_id=after_id,
        last_id=last_id,
        messages=messages,
        calls=calls,
        tokens=tokens,
        counts=json.dumps(counts),
        refusals=json.dumps(refusals),
    )
    return count > 0


async def cursor(db: Database, claim: Claim) -> Cursor:
    """Return where a task stands in its chat."""
    async with db.reader() as connection:
        row = await _sql.cursor(connection, chat_id=claim.chat_id, task=claim.task)
    return Cursor(*(row[name] for name in Cursor.__slots__))


async def move_cursor(
    tx: aiosqlite.Connection,
    claim: Claim,
    *,
    expected: int,
    last_id: int,
    quarantined: int,
    widen: bool = False,
) -> bool:
    """Move the cursor from where it was expected, and count what waits behind it.

    Args:
        tx: the write transaction.
        claim: whose cursor.
        expected: where it must stand.
        last_id: where it goes.
        quarantined: how many quarantines running there are by now.
        widen: the bad message is found, so batches are whole again; otherwise they are once the
            cursor has passed the batch that failed.

    Returns:
        False if it stood elsewhere: somebody else reflected the batch.
    """
    key: dict[str, Any] = {"chat_id": claim.chat_id, "task": claim.task}
    count = await _sql.move_cursor(
        tx, **key, expected=expected, last_id=last_id, quarantined=quarantined, widen=widen
    )
    if count:
        await _sql.recount(tx, **key)
    return count > 0


async def narrow(tx: aiosqlite.Connection, claim: Claim, to: Narrowing) -> None:
    """Make batches smaller until the cursor has passed the batch that failed."""
    await _sql.narrow(
        tx,
        chat_id=claim.chat_id,
        task=claim.task,
        batch_limit=to.batch_limit,
        narrow_until=to.narrow_until,
        unusable=to.unusable,
    )


async def quarantine_message(
    tx: aiosqlite.Connection, claim: Claim | SessionClaim, message_id: int, reason: str, at: int
) -> None:
    """Mark a message that a task passes over."""
    await _sql.quarantine_message(
        tx, chat_id=claim.chat_id, task=claim.task, message_id=message_id, reason=reason, at=at
    )


def _place(chat: Chat | None) -> dict[str, str | None]:
    return {**chat_key(chat)} if chat else {"bot_id": None, "kind": None, "peer_id": None}


async def quarantined(db: Database, chat: Chat | None = None, limit: int = 20) -> list[Quarantined]:
    """Return the newest quarantined messages, of one chat or of all."""
    async with db.reader() as connection:
        rows = [r async for r in _sql.quarantined(connection, **_place(chat), limit=limit)]
    return [Quarantined(_chat(r), r["task"], r["message_id"], r["reason"], r["at"]) for r in rows]


async def recent_tasks(db: Database, chat: Chat | None = None, limit: int = 10) -> list[TaskRecord]:
    """Return the newest tasks, of one chat or of all."""
    async with db.reader() as connection:
        found = (
            _sql.recent_tasks_of(connection, **chat_key(chat), limit=limit)
            if chat
            else _sql.recent_tasks(connection, limit=limit)
        )
        rows = [row async for row in found]
    return [
        TaskRecord(
            id=row["id"],
            chat=_chat(row),
            task=row["task"],
            scope=row["scope"],
            state=row["state"],
            reason=row["reason"],
            attempts=row["attempts"],
            next_run_at=row["next_run_at"],
            error=row["error"],
            messages=row["messages"],
            calls=row["calls"],
            tokens=row["tokens"],
            counts=json.loads(row["counts"]),
            refusals=[(path, reason) for path, reason in json.loads(row["refusals"])],
            created_at=row["created_at"],
            finished_at=row["finished_at"],
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class BatchRows:
    """The lowest rows above a cursor, and how far the chat was looked at."""

    messages: list[StoredMessage]
    last_id: int


async def batch_rows(db: Database, claim: Claim, after_id: int, limit: int) -> BatchRows:
    """Return up to ``limit`` messages above ``after_id`` and where the cursor goes after them.

    With fewer than ``limit`` the cursor passes everything that was left out as well.
    """
    async with db.reader() as connection:
        newest = await _sql.newest_row(connection, chat_id=claim.chat_id, after_id=after_id)
        rows = [
            row
            async for row in _sql.batch_rows(
                connection, chat_id=claim.chat_id, after_id=after_id, limit=limit
            )
            # Rows that came between the two reads wait for the next batch.
            if row["id"] <= newest
        ]
    messages = [stored_message(row, claim.chat) for row in rows]
    is_full = len(messages) == limit
    return BatchRows(messages, messages[-1].row_id if is_full else newest)


async def last_route(db: Database, claim: AnyClaim) -> tuple[str, str] | None:
    """Return the model and endpoint that answered in the chat last."""
    async with db.reader() as connection:
        row = await _sql.last_route(connection, chat_id=claim.chat_id)
    return (row["model"], row["endpoint"]) if row else None

"""Sessions: which turns a conversation shows, and the rolling summary of those before.

See ``docs/session.md``.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import aiosqlite

from bot.conversation.window import folded_start
from bot.model import Chat, Role, Turn, TurnLine
from bot.store.database import Database
from bot.store.messages import chat_key
from bot.store.queries import load
from bot.store.sqlite import Call, in_order
from bot.store.turns import turn_of

SummaryReason = Literal["window", "timer", "command", "forgotten", "budget", "rebuild"]
"""Why a summary reads on: the window is full, or too long for the model, it is a quarter past,
somebody asked for it, or what it was made from is forgotten; or it is to be made anew."""

VERSIONS = 16
"""So many of its newest states are kept of a summary, to go back to."""

REBUILT_TURNS = 200
"""A summary that is made from nothing reads so many of the newest turns."""

CANDIDATES = 200
"""So many chats are looked at in one go."""

CLOCK_SKEW_MS = 60_000
"""A message that was said later than now, and not by more than this, was said by another clock."""

_sql = load("sessions")


@dataclass(frozen=True, slots=True)
class SessionState:
    """How the conversation of a chat stands."""

    chat_id: int = 0
    """The row of the chat, 0 if it has no session yet."""
    window_start: int = 0
    """The turns behind this one are shown."""
    window_turns: int = 0
    """How many those are."""
    compactions: int = 0
    """How often the window fell back."""
    summary: str = ""
    """JSON, empty if there is none."""
    summary_cursor: int = 0
    """The turn up to which the summary has read."""
    new_turns: int = 0
    """How many it has not read."""
    version: int = 0
    """It counts what else changed the summary: resets, and what was forgotten."""
    cleared_turn: int = 0
    """The turns up to this one were cleared."""
    cleared_before: int = 0
    """No context, and no search without a date, reaches to what was said up to then; UTC
    milliseconds."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who said a message that came in."""

    user_id: str
    role: Role
    """The role that the message carried."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What one call made of a session: both are kept, or neither."""

    summary: str
    cursor: int
    messages: Mapping[int, int]
    """The message rows that were read, each with the first turn that shows it."""


@dataclass(frozen=True, slots=True)
class SessionToDo:
    """A session that there is something to do for."""

    chat: Chat
    chat_id: int


@dataclass(frozen=True, slots=True)
class OpenSummary:
    """The open task of a session."""

    id: int
    reason: str
    attempts: int
    chunk: int | None
    unusable: int


def session_call(chat: Chat) -> Call:
    """Return the query behind ``session_state``, for a visit that asks more."""
    return (_sql.session, chat_key(chat))


def session_of(rows: Sequence[sqlite3.Row]) -> SessionState:
    """Return the session that the rows of ``session_call`` hold."""
    return SessionState(*rows[0]) if rows else SessionState()


async def session_state(db: Database, chat: Chat) -> SessionState:
    """Return how the conversation of a chat stands."""
    async with db.reader() as connection:
        return await session_now(connection, chat)


async def session_now(connection: aiosqlite.Connection, chat: Chat) -> SessionState:
    """Return the same as seen by a transaction, during which it does not change."""
    (rows,) = await in_order(connection, session_call(chat))
    return session_of(rows)


# Reading on.


async def turns_after(db: Database, chat_id: int, turn_id: int, limit: int) -> list[Turn]:
    """Return answered turns behind one, oldest first, up to one that is still being sent."""
    async with db.reader() as connection:
        rows = [
            row
            async for row in _sql.turns_after(
                connection, chat_id=chat_id, turn_id=turn_id, limit=limit
            )
        ]
        ids = json.dumps([row["id"] for row in rows])
        lines = [row async for row in _sql.lines_of(connection, turn_ids=ids)]
    by_turn: dict[int, list[TurnLine]] = {}
    for turn_id, *line in lines:
        by_turn.setdefault(turn_id, []).append(TurnLine(*line))
    return [turn_of(row, by_turn.get(row["id"], ())) for row in rows]


async def speakers(db: Database, message_ids: Iterable[int]) -> dict[int, Speaker]:
    """Return who said some messages; those of the account, and anonymous ones, are absent."""
    ids = json.dumps(list(message_ids))
    async with db.reader() as connection:
        rows = [row async for row in _sql.voices(connection, message_ids=ids)]
    return {
        row["id"]: Speaker(row["user_id"], row["sender_role"])
        for row in rows
        if not row["anonymous"]
    }


async def is_any_gone(tx: aiosqlite.Connection, message_ids: Iterable[int]) -> bool:
    """Whether any of some messages was recalled, forgotten or emptied."""
    return await _sql.gone_count(tx, message_ids=json.dumps(list(message_ids))) > 0


async def keep_progress(
    tx: aiosqlite.Connection, expected: SessionState, progress: Progress
) -> bool:
    """Keep a summary together with how far it has read.

    Returns:
        False, and nothing is kept, if the session is not as it was expected: somebody else read
        on, or what was read is forgotten, or the session was reset.
    """
    key = {"chat_id": expected.chat_id, "cursor": progress.cursor, "summary": progress.summary}
    count = await _sql.move_summary(
        tx, **key, expected=expected.summary_cursor, version=expected.version
    )
    if not count:
        return False
    await _sql.keep_version(tx, **key)
    await _sql.drop_old_versions(tx, chat_id=expected.chat_id, kept=VERSIONS)
    rows = json.dumps(list(progress.messages.items()))
    await _sql.keep_messages(tx, chat_id=expected.chat_id, messages=rows)
    return True


# The window.


async def fold_window(tx: aiosqlite.Connection, chat: Chat, least: int) -> int | None:
    """Let the window show the newest ``least`` turns, if the summary has read those before.

    Returns:
        How many turns it shows no more; ``None`` if the summary has to read on first.
    """
    state = await session_now(tx, chat)
    key = {"chat_id": state.chat_id}
    boundary = await _sql.boundary(tx, **key, window_start=state.window_start, kept=least)
    if boundary is None:
        return 0
    start = folded_start(state.window_start, boundary, state.summary_cursor)
    if start is None:
        return None
    await _sql.fold(tx, **key, start=start)
    return state.window_turns - (await session_now(tx, chat)).window_turns


# Resets.


async def clear_conversation(tx: aiosqlite.Connection, chat: Chat) -> int:
    """Let no turn so far be shown, or summarised, any more; return how many were shown."""
    state = await _ensured(tx, chat)
    newest = await _sql.newest_turn(tx, chat_id=state.chat_id)
    await _sql.clear_conversation(tx, chat_id=state.chat_id, turn_id=newest)
    return state.window_turns


async def clear_summary(tx: aiosqlite.Connection, chat: Chat) -> None:
    """Take the summary away, with all that it was; what is new is read from now on."""
    state = await _ensured(tx, chat)
    await _set_back(tx, state.chat_id, "", state.summary_cursor)


async def clear_past(tx: aiosqlite.Connection, chat: Chat, now: int) -> None:
    """Let neither context nor a search without a date reach to what was said so far."""
    state = await _ensured(tx, chat)
    latest = await _sql.newest_moment(tx, chat_id=state.chat_id, latest=now + CLOCK_SKEW_MS)
    await _sql.clear_before(tx, chat_id=state.chat_id, at=max(now, latest))


async def ask_for_rebuild(tx: aiosqlite.Connection, chat: Chat, at: int) -> None:
    """Queue that the summary is made anew. Until that has begun it stays as it is."""
    state = await _ensured(tx, chat)
    await _sql.queue_rebuild(tx, chat_id=state.chat_id, at=at)
    await _sql.change_session(tx, chat_id=state.chat_id)


async def rebuild_floor(db: Database, chat_id: int) -> int:
    """Return behind which turn a summary begins that is made anew."""
    async with db.reader() as connection:
        return await _sql.rebuild_floor(connection, chat_id=chat_id, turns=REBUILT_TURNS)


async def begin_summary_anew(
    tx: aiosqlite.Connection, chat: Chat, expected: SessionState, floor: int, task_id: int
) -> SessionState | None:
    """Take the summary away, in the transaction that keeps the first part of the new one.

    Args:
        tx: the write transaction.
        chat: whose summary it is.
        expected: how the session stood when the new one was begun.
        floor: behind which turn the new one begins.
        task_id: the task that makes it, which reads on from now on.

    Returns:
        How the session stands then; ``None``, and nothing is changed, if it is not as expected.
    """
    state = await session_now(tx, chat)
    if (state.version, state.summary_cursor) != (expected.version, expected.summary_cursor):
        return None
    await _set_back(tx, state.chat_id, "", floor)
    await _sql.read_on(tx, id=task_id)
    return await session_now(tx, chat)


async def _ensured(tx: aiosqlite.Connection, chat: Chat) -> SessionState:
    await _sql.ensure_session(tx, **chat_key(chat))
    return await session_now(tx, chat)


async def _set_back(
    tx: aiosqlite.Connection, chat_id: int, summary: str, cursor: int, kept_up_to: int = 0
) -> None:
    """Let a summary be another one, which reads on behind a turn.

    Args:
        tx: the write transaction.
        chat_id: the row of the chat.
        summary: what it is now.
        cursor: behind which turn it reads on.
        kept_up_to: what it was made from, and what it was before, stays known up to this turn.
    """
    await _sql.set_back(tx, chat_id=chat_id, summary=summary, cursor=cursor)
    await _sql.drop_versions(tx, chat_id=chat_id, cursor=kept_up_to)
    await _sql.drop_messages(tx, chat_id=chat_id, cursor=kept_up_to)


# Forgetting.


async def forget_in_summaries(
    tx: aiosqlite.Connection, message_ids: Iterable[int], at: int
) -> frozenset[Chat]:
    """Let no summary be made from some messages, and return the chats whose one was.

    Each goes back to what it was before it read the first of them, or to nothing, and reads on
    from there as soon as the worker looks.
    """
    ids = json.dumps(list(message_ids))
    found = [row async for row in _sql.resting_on(tx, message_ids=ids)]
    for row in found:
        await _forget(tx, row["chat_id"], row["turn_id"])
        await _sql.queue_summary(tx, chat_id=row["chat_id"], reason="forgotten", at=at)
    return frozenset(Chat(row["bot_id"], row["kind"], row["peer_id"]) for row in found)


async def _forget(tx: aiosqlite.Connection, chat_id: int, turn_id: int) -> None:
    earlier = await _sql.version_before(tx, chat_id=chat_id, turn_id=turn_id)
    if earlier is None:
        floor = await _sql.rebuild_floor(tx, chat_id=chat_id, turns=REBUILT_TURNS)
        await _set_back(tx, chat_id, "", floor)
        return
    # What was cleared since is not read again.
    behind = max(earlier["turn_id"], await _sql.cleared_turn(tx, chat_id=chat_id))
    await _set_back(tx, chat_id, earlier["summary"], behind, earlier["turn_id"])


# Work.


async def full_windows(db: Database, full_at: int, now: int) -> list[SessionToDo]:
    """Return chats whose window has grown to ``full_at`` turns and that nobody works on."""
    async with db.reader() as connection:
        rows = _sql.full_windows(connection, full_at=full_at, now=now, limit=CANDIDATES)
        return [_to_do(row) async for row in rows]


async def waiting_sessions(db: Database, enough: int, mark: int, now: int) -> list[SessionToDo]:
    """Return chats in which ``enough`` turns were new at the moment ``mark``."""
    async with db.reader() as connection:
        rows = _sql.waiting_sessions(
            connection, enough=enough, mark=mark, now=now, limit=CANDIDATES
        )
        return [_to_do(row) async for row in rows]


def _to_do(row: aiosqlite.Row) -> SessionToDo:
    return SessionToDo(Chat(row["bot_id"], row["kind"], row["peer_id"]), row["chat_id"])


async def queue_summary(
    tx: aiosqlite.Connection, chat_id: int, reason: SummaryReason, at: int
) -> bool:
    """Queue that a summary reads on, unless that is queued already."""
    return await _sql.queue_summary(tx, chat_id=chat_id, reason=reason, at=at) > 0


async def take_summary(
    tx: aiosqlite.Connection, chat_id: int, owner: str, *, now: int, until: int
) -> OpenSummary | None:
    """Take the work on a session at once; ``None`` if somebody is at it.

    Args:
        tx: the write transaction.
        chat_id: the row of the chat.
        owner: who takes it.
        now: UTC milliseconds.
        until: how long the lease holds.
    """
    await queue_summary(tx, chat_id, "command", now)
    taken = await _sql.take_summary(
        tx, chat_id=chat_id, owner=owner, until=until, now=now, reason="command"
    )
    row = await _sql.open_summary(tx, chat_id=chat_id) if taken else None
    return OpenSummary(*row) if row else None

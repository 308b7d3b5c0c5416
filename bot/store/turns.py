"""Turns: what was asked, how far its answer got, and what the conversation shows of it."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Literal

import aiosqlite

from bot.model import Chat, ToolRound, Turn, TurnEnding, TurnLine
from bot.store.database import Database
from bot.store.entry_search import count_uses
from bot.store.messages import chat_key
from bot.store.queries import load
from bot.store.snapshots import touch_snapshots
from bot.store.sqlite import Call, in_order
from bot.store.tool_history import keep_tools, rounds_in

_sql = load("turns")


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn to be kept."""

    chat: Chat
    user_id: str
    asked_at: int
    started_at: int
    addressed: bool
    third_party: bool
    context_until: int
    lines: tuple[TurnLine, ...]
    """Context, quotes and questions, then the parts of the answer if there is one."""
    model: str = ""
    endpoint: str = ""
    scope_ids: tuple[int, ...] = ()
    """The rows of the scopes whose memory it was shown."""
    packed_ids: tuple[int, ...] = ()
    """The rows of the entries that its recall pack showed."""
    local_date: str = ""
    """The local day on which they were used."""
    tools: tuple[ToolRound, ...] = ()
    """What tools were used before the answer."""


@dataclass(frozen=True, slots=True)
class TurnLoad:
    """How many turns were taken lately, for the limits."""

    member_minute: int
    member_day: int
    all_minute: tuple[int, ...]
    """When the turns of the last minute began that were asked for, in
    whatever chat, oldest first."""
    unaddressed_hour: int
    """Turns of the chat in the last hour that nobody asked for."""


async def add_turn(
    tx: aiosqlite.Connection,
    turn: NewTurn,
    state: Literal["sending", "silent", "failed"],
    *,
    at: int,
    error: str = "",
) -> int | None:
    """Keep a turn in the state it has reached and return its id.

    ``None``, and nothing is kept, if a message of the question was recalled meanwhile.
    """
    asked = [line.message_id for line in turn.lines if line.part == "question"]
    if await _sql.recalled_count(tx, message_ids=json.dumps(asked)):
        return None
    turn_id = await _sql.add_turn(
        tx,
        **chat_key(turn.chat),
        user_id=turn.user_id,
        state=state,
        asked_at=turn.asked_at,
        started_at=turn.started_at,
        at=at,
        addressed=turn.addressed,
        third_party=turn.third_party,
        context_until=turn.context_until,
        model=turn.model,
        endpoint=turn.endpoint,
        error=error,
    )
    await _sql.add_lines(tx, [_line_row(turn_id, *pair) for pair in enumerate(turn.lines)])
    if turn.scope_ids:
        await touch_snapshots(tx, turn.chat, turn.scope_ids, turn.started_at)
    if turn.packed_ids:
        await count_uses(tx, turn.packed_ids, turn.local_date)
    if turn.tools and state == "sending":
        await keep_tools(tx, turn_id, turn.tools)
    return turn_id


def _line_row(turn_id: int, position: int, line: TurnLine) -> dict[str, object]:
    return {
        "turn_id": turn_id,
        "position": position,
        "message_id": line.message_id,
        "part": line.part,
        "text": line.text,
    }


async def finish_turn(
    tx: aiosqlite.Connection,
    turn_id: int,
    ending: TurnEnding,
    *,
    sent: Mapping[int, int],
    at: int,
    error: str = "",
    drops_unsent: bool = False,
) -> None:
    """Keep how a turn ended.

    Args:
        tx: the write transaction.
        turn_id: the turn.
        ending: its end.
        sent: the message rows that carried lines of the answer, by the line's position.
        at: UTC milliseconds.
        error: what went wrong.
        drops_unsent: drop the lines of the answer that no message carried.
    """
    for position, message_id in sent.items():
        await _sql.link_answer(tx, turn_id=turn_id, position=position, message_id=message_id)
    if drops_unsent:
        await _sql.drop_unsent(tx, turn_id=turn_id)
    await _sql.finish_turn(tx, id=turn_id, state=ending, at=at, error=error)


async def settle_turns(tx: aiosqlite.Connection, bot_id: str, before: int, now: int) -> None:
    """Take as sent what a dead process of this account was sending."""
    await _sql.settle_turns(tx, bot_id=bot_id, before=before, now=now)


async def sent_count(db: Database, chat: Chat) -> int:
    """Return how many answered turns a chat has."""
    async with db.reader() as connection:
        return await _sql.sent_count(connection, **chat_key(chat))


async def recent_turns(db: Database, chat: Chat, limit: int) -> list[Turn]:
    """Return the newest answered turns of a chat with their lines, oldest first."""
    async with db.reader() as connection:
        (rows,) = await in_order(connection, recent_call(chat, limit))
    return turns_of(rows)


def recent_call(chat: Chat, limit: int) -> Call:
    """Return the query behind ``recent_turns``, for a visit that asks more."""
    return (_sql.recent_turns, {**chat_key(chat), "limit": limit})


def turns_of(rows: Sequence[sqlite3.Row]) -> list[Turn]:
    """Return the turns that the rows of ``recent_call`` hold, oldest first."""
    return [turn_of(row, starmap(TurnLine, json.loads(row["lines"]))) for row in reversed(rows)]


def turn_of(row: sqlite3.Row, lines: Iterable[TurnLine]) -> Turn:
    """Return the turn of a row of ``turns`` that is joined with its member's ``user_id``."""
    return Turn(
        id=row["id"],
        user_id=row["user_id"],
        asked_at=row["asked_at"],
        answered_at=row["answered_at"],
        third_party=bool(row["third_party"]),
        context_until=row["context_until"],
        lines=tuple(lines),
        tools=rounds_in(row["tools"]),
    )


def load_call(chat: Chat, user_id: str, now: int, day_start: int, before: int) -> Call:
    """Return the query for how many turns were taken in the last minute, hour and day. Of all turns
    it tells only those that began before ``before``."""
    moments = {
        "now": now,
        "minute_ago": now - 60_000,
        "hour_ago": now - 3_600_000,
        "day_start": day_start,
        "before": before,
    }
    return (_sql.load, {**chat_key(chat), "user_id": user_id, **moments})


def load_of(row: sqlite3.Row) -> TurnLoad:
    """Return the load that the row of ``load_call`` holds."""
    return TurnLoad(
        row["member_minute"],
        row["member_day"],
        tuple(json.loads(row["all_minute"])),
        row["unaddressed_hour"],
    )

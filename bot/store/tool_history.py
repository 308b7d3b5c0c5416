"""What tools were used in turns, and how a recall reaches it.

See ``docs/tools.md``, "Tools in the conversation".
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import aiosqlite

from bot.conversation.repeats import Repeats
from bot.model import ToolRound, ToolUse
from bot.store.queries import load
from bot.store.sqlite import run

_sql = load("tool_history")

KEPT_TURNS = 200
"""Of so many turns of a chat it is kept what tools they used: no prompt reaches back further."""

RECALLED_RESULT = "（已撤回）"
"""What stands for a result that showed something that is gone."""


def rounds_in(text: str) -> tuple[ToolRound, ...]:
    """Return what a row of ``turns`` says of tools."""
    return tuple(_round(each) for each in json.loads(text)) if text else ()


def _round(row: Mapping[str, Any]) -> ToolRound:
    uses = tuple(
        ToolUse(**{**use, "message_ids": tuple(use["message_ids"])}) for use in row["uses"]
    )
    return ToolRound(row["model"], row["text"], uses)


def _json(rounds: Iterable[ToolRound]) -> str:
    return json.dumps([asdict(one) for one in rounds], ensure_ascii=False)


async def keep_tools(tx: aiosqlite.Connection, turn_id: int, rounds: Sequence[ToolRound]) -> None:
    """Keep what tools were used in a turn; those of turns that no prompt shows any more go."""
    await _sql.keep(tx, turn_id=turn_id, tools=_json(rounds))
    shown = {row_id for one in rounds for use in one.uses for row_id in use.message_ids}
    await _sql.link(tx, [{"turn_id": turn_id, "message_id": row_id} for row_id in shown])
    old = [row["id"] async for row in _sql.with_old_tools(tx, turn_id=turn_id, kept=KEPT_TURNS)]
    await _drop(tx, old)


async def _drop(tx: aiosqlite.Connection, turn_ids: Sequence[int]) -> None:
    if turn_ids:
        await _sql.drop_tools(tx, turn_ids=json.dumps(turn_ids))
        await _sql.drop_links(tx, turn_ids=json.dumps(turn_ids))


async def erase_tools(tx: aiosqlite.Connection, chat_id: int) -> None:
    """Let the turns of a chat lose all that they know of tools."""
    await _drop(tx, [row["id"] async for row in _sql.of_chat(tx, chat_id=chat_id)])


async def hide_from_tools(tx: aiosqlite.Connection, message_ids: Collection[int]) -> None:
    """Let results that show some messages lose their text, and turns that are gone with their
    question all that they know of tools.

    To be called before the lines of the messages go.
    """
    rows = [r async for r in _sql.showing(tx, message_ids=json.dumps(list(message_ids)))]
    await _drop(tx, [row["id"] for row in rows if row["state"] == "recalled"])
    for row in rows:
        if row["state"] != "recalled":
            await _keep(tx, row, lambda one: without_shown(one, message_ids))


def turns_quoting(
    connection: sqlite3.Connection, chat_ids_json: str, since: int, texts: Collection[str]
) -> frozenset[int]:
    """Return the turns whose calls of tools, or what these gave, quote.

    Args:
        connection: any.
        chat_ids_json: the rows of the chats, as JSON.
        since: the earliest start of a turn, UTC milliseconds.
        texts: what is looked for.
    """
    taken = _repeats(texts)
    rows = run(connection, (_sql.since, {"chat_ids": chat_ids_json, "since": since}))
    return frozenset(
        row["id"]
        for row in rows
        if any(_without_quotes(one, taken) != one for one in rounds_in(row["tools"]))
    )


def _repeats(texts: Collection[str]) -> Repeats:
    # Results are often lines of JSON themselves.
    escaped = (json.dumps(text, ensure_ascii=False)[1:-1] for text in texts)
    return Repeats((*texts, *escaped))


async def drop_quoting_tools(
    tx: aiosqlite.Connection, turn_ids: Collection[int], texts: Collection[str]
) -> None:
    """Let calls and results of some turns lose their text if they quote."""
    if turn_ids:
        taken = _repeats(texts)
        async for row in _sql.some(tx, turn_ids=json.dumps(sorted(turn_ids))):
            await _keep(tx, row, lambda one: _without_quotes(one, taken))


async def _keep(
    tx: aiosqlite.Connection, row: aiosqlite.Row, change: Callable[[ToolRound], ToolRound]
) -> None:
    before = rounds_in(row["tools"])
    after = tuple(map(change, before))
    if after != before:
        await _sql.keep(tx, turn_id=row["id"], tools=_json(after))


def without_shown(one: ToolRound, message_ids: Collection[int]) -> ToolRound:
    """Return a round whose results show none of some messages any more."""
    gone = set(message_ids)
    uses = (
        use if gone.isdisjoint(use.message_ids) else replace(use, result=RECALLED_RESULT)
        for use in one.uses
    )
    return replace(one, uses=tuple(uses))


def _without_quotes(one: ToolRound, taken: Repeats) -> ToolRound:
    """Return a round without what quotes; its calls stay, for results need them."""
    quotes = taken.stands_in
    uses = (
        replace(use, arguments="{}", result=RECALLED_RESULT)
        if quotes(use.arguments) or quotes(use.result)
        else use
        for use in one.uses
    )
    return replace(one, text="" if quotes(one.text) else one.text, uses=tuple(uses))

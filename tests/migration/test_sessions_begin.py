"""The step that brings sessions: old conversations go on where they were."""

import sqlite3
from contextlib import closing
from pathlib import Path

import aiosqlite
import pytest

from bot.store.migrate import migrate, read_steps
from tests.store.rows import NOON

STEPS = read_steps()
BEFORE = next(place for place, step in enumerate(STEPS) if step.name.endswith("_sessions"))

CHAT = (
    "INSERT INTO chats (id, bot_id, kind, peer_id, first_seen, last_seen) VALUES (?, ?, ?, ?, 1, 1)"
)
MEMBER = (
    "INSERT INTO members (id, bot_id, user_id, first_seen, last_seen)"
    " VALUES (1, '10001', '30001', 1, 1)"
)
TURN = (
    "INSERT INTO turns (chat_id, member_id, state, asked_at, started_at, answered_at, addressed,"
    " third_party, context_until, model, endpoint) VALUES (?, 1, ?, 1, 1, 1, 1, 0, 1, '', '')"
)
SETTING = (
    "INSERT INTO settings (key, chat_id, value, changed_at, changed_by)"
    " VALUES ('sessionMaxMessages', NULL, ?, 1, '')"
)


async def _upgraded(path: Path, turns: int, max_messages: int | None = None) -> tuple[int, ...]:
    """Return the session of a chat of so many answered turns, every other one of which failed
    before, in a database that knew no sessions."""
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        await migrate(connection, NOON, STEPS[:BEFORE])
        await connection.execute(CHAT, (1, "10001", "group", "20001"))
        await connection.execute(CHAT, (2, "10001", "group", "20002"))
        await connection.execute(MEMBER)
        for _ in range(turns):
            await connection.execute(TURN, (1, "failed"))
            await connection.execute(TURN, (1, "sent"))
        if max_messages is not None:
            await connection.execute(SETTING, (str(max_messages),))
        await migrate(connection, NOON, STEPS[: BEFORE + 1])
    with closing(sqlite3.connect(path)) as plain:
        rows = plain.execute(
            "SELECT window_start, window_turns, compactions, summary_cursor, new_turns"
            " FROM sessions"
        ).fetchall()
    assert len(rows) == (1 if turns else 0)
    return rows[0] if rows else ()


@pytest.mark.parametrize(
    ("turns", "max_messages", "session"),
    [
        (0, None, ()),
        (1, None, (0, 1, 0, 0, 1)),
        (15, None, (0, 15, 0, 0, 15)),
        (16, None, (2 * 8, 8, 1, 0, 16)),
        (25, None, (2 * 16, 9, 2, 0, 25)),
        (25, 4, (2 * 22, 3, 11, 0, 25)),
        (25, 1, (2 * 24, 1, 24, 0, 25)),
        (210, None, (2 * 200, 10, 25, 2 * 10, 200)),
        (210, 420, (0, 210, 0, 0, 210)),
    ],
)
async def test_a_conversation_shows_what_it_showed_and_its_newest_turns_are_to_be_summarised(
    tmp_path: Path, turns: int, max_messages: int | None, session: tuple[int, ...]
):
    assert await _upgraded(tmp_path / "old.db", turns, max_messages) == session


async def test_turns_are_counted_as_they_join_and_leave_the_conversation(tmp_path: Path):
    path = tmp_path / "counted.db"
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        await migrate(connection, NOON)
        await connection.execute(CHAT, (1, "10001", "group", "20001"))
        await connection.execute(MEMBER)

        async def counts() -> list[tuple[int, ...]]:
            found = await connection.execute_fetchall(
                "SELECT window_turns, new_turns FROM sessions"
            )
            return [tuple(row) for row in found]

        for _ in range(3):
            await connection.execute(TURN, (1, "sending"))
        assert await counts() == []
        await connection.execute("UPDATE turns SET state = 'sent'")
        await connection.execute("UPDATE turns SET state = 'sent', error = 'again'")
        assert await counts() == [(3, 3)]
        await connection.execute("UPDATE sessions SET window_start = 1, summary_cursor = 2")
        await connection.execute("UPDATE sessions SET window_turns = 2, new_turns = 1")
        await connection.execute("UPDATE turns SET state = 'recalled' WHERE id = 2")
        assert await counts() == [(1, 1)]
        await connection.execute("UPDATE turns SET state = 'recalled'")
        assert await counts() == [(0, 0)]

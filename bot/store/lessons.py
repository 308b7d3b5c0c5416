"""Lessons: errors of tools and how they were solved; see ``docs/tools.md``, "Lessons"."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

import aiosqlite

from bot.model import Chat, KeptLesson, Lesson
from bot.store.database import Database
from bot.store.messages import chat_key
from bot.store.queries import load

MOST = 200
"""So many are kept of all groups together, and of each private chat."""

LOOKED_AT = 2 * MOST
"""So many of one tool are compared with an error."""

_sql = load("lessons")


async def lessons_of_tool(db: Database, chat: Chat, tool: str, *, since: int) -> list[KeptLesson]:
    """Return what a chat may know of a tool's errors, the newest first.

    Args:
        db: the database.
        chat: where the tool failed.
        tool: its name.
        since: what helped nobody since then (UTC ms) is forgotten.
    """
    asked = {**chat_key(chat), "tool": tool, "since": since, "limit": LOOKED_AT}
    async with db.reader() as connection:
        return [_kept(row) async for row in _sql.of_tool(connection, **asked)]


async def keep_lessons(
    tx: aiosqlite.Connection, chat: Chat, lessons: Iterable[Lesson], *, at: int, since: int
) -> None:
    """Keep what a turn taught; what is known already is renewed.

    Args:
        tx: the write transaction.
        chat: where the turn was. What comes from a private chat stays there.
        lessons: each error once.
        at: now, UTC milliseconds.
        since: what helped nobody since then goes.
    """
    await _sql.expire(tx, since=since)
    key = chat_key(chat)
    for lesson in lessons:
        fields = {**asdict(lesson), "keywords": json.dumps(lesson.keywords, ensure_ascii=False)}
        if not await _sql.renew_shared(tx, **fields, **key, at=at):
            await _sql.keep(tx, **fields, **key, at=at)
    await _sql.bound(tx, **key, limit=MOST)


async def renew_lessons(
    tx: aiosqlite.Connection, chat: Chat, ids: Iterable[int], *, at: int, since: int
) -> None:
    """Note that some lessons helped in a chat."""
    numbers = json.dumps(sorted(ids))
    await _sql.renew(tx, **chat_key(chat), ids=numbers, at=at, since=since)


async def all_lessons(db: Database, *, since: int, with_private: bool) -> Sequence[KeptLesson]:
    """Return all lessons, the newest first, maybe without those from private chats."""
    asked = {"since": since, "with_private": with_private}
    async with db.reader() as connection:
        return [_kept(row) async for row in _sql.all_lessons(connection, **asked)]


async def edit_lesson(
    tx: aiosqlite.Connection,
    lesson_id: int,
    action: str,
    *,
    by: str,
    at: int,
    since: int,
    with_private: bool,
) -> bool:
    """Give a lesson another action; false if there is no such lesson."""
    asked = {"id": lesson_id, "action": action, "by": by, "at": at}
    return await _sql.edit(tx, **asked, since=since, with_private=with_private) > 0


async def remove_lesson(tx: aiosqlite.Connection, lesson_id: int, *, with_private: bool) -> bool:
    """Forget a lesson; false if there is no such lesson."""
    return await _sql.remove(tx, id=lesson_id, with_private=with_private) > 0


def _kept(row: aiosqlite.Row) -> KeptLesson:
    lesson = Lesson(
        row["tool"],
        tuple(json.loads(row["keywords"])),
        row["symptom"],
        row["cause"],
        row["action"],
        row["outcome"],
    )
    is_private = row["chat_id"] is not None
    return KeptLesson(row["id"], lesson, is_private, row["renewed_at"], row["uses"])

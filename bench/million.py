"""A database of 1,000,000 messages, made once and kept in ``data/bench/``."""

import asyncio
import json
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.crowd import BOT, Crowd, crowd, group_name, message_id, sentence
from bench.figures import line
from bot.simulate import Person, World, positive_ids
from bot.store.database import open_database
from bot.store.message_index import index_new_messages
from bot.store.sqlite import add_functions
from bot.text import json_line

MESSAGES = 1_000_000
DAYS = 365
TURN_EVERY = 60
"""One message in so many is addressed to the bot and answered."""
PRIVATE_EVERY = 25
PORTION = 20_000
VERSION = 2
"""Raise it when what is made here changes."""

BOT_ID = str(BOT.user_id)
MEMBER_COLUMNS = "bot_id, user_id, nickname, first_seen, last_seen"
MESSAGE_COLUMNS = (
    "chat_id, member_id, platform_id, direction, kind, sent_at, received_at, local_date, sequence, "
    "sender_name, sender_role, segments, text, mentions, counted"
)


@dataclass(slots=True)
class _Portion:
    """Rows of a stretch of time, to be written together."""

    messages: list[tuple[Any, ...]] = field(default_factory=list)
    turns: list[tuple[Any, ...]] = field(default_factory=list)
    lines: list[tuple[Any, ...]] = field(default_factory=list)
    usage: list[tuple[Any, ...]] = field(default_factory=list)


class _Past:
    """A year of talk, told in order."""

    def __init__(self, everyone: Crowd, ends_at: int) -> None:
        self._crowd = everyone
        self._dice = random.Random(1)
        self._ends_at = ends_at
        self._chats = {group_id: n for n, group_id in enumerate(everyone.group_ids, start=1)}
        people = {p.user_id: p for members in everyone.groups.values() for p in members}
        people |= {friend.user_id: friend for friend in everyone.friends}
        self._people = [BOT, *people.values()]
        self._member_ids = {p.user_id: n for n, p in enumerate(self._people, start=1)}
        self._row_id = 0
        self._turn_id = 0
        self._newest: dict[int, int] = {}

    def chats(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of groups, then of private chats."""
        for group_id in self._crowd.group_ids:
            name = group_name(group_id)
            yield BOT_ID, "group", str(group_id), name, self._start, self._ends_at
        for friend in self._crowd.friends:
            yield BOT_ID, "private", str(friend.user_id), "", self._start, self._ends_at

    def members(self) -> Iterator[tuple[Any, ...]]:
        """Yield everybody, the bot first."""
        for person in self._people:
            yield BOT_ID, str(person.user_id), person.nickname, self._start, self._ends_at

    def memberships(self) -> Iterator[tuple[Any, ...]]:
        """Yield who is in which group, and under what name."""
        for group_id, people in self._crowd.groups.items():
            for person in people:
                ids = (self._chats[group_id], self._member_ids[person.user_id])
                yield *ids, person.card, person.role, self._start, self._ends_at

    def names(self) -> Iterator[tuple[Any, ...]]:
        """Yield nicknames and cards."""
        for person in self._people:
            member = self._member_ids[person.user_id]
            yield member, None, person.nickname, self._start, self._ends_at
        for chat_id, member, card, *_ in self.memberships():
            if card:
                yield member, chat_id, card, self._start, self._ends_at

    @property
    def _start(self) -> int:
        return self._ends_at - DAYS * 86_400_000

    def portions(self) -> Iterator[_Portion]:
        """Yield all that was said, oldest first."""
        while self._row_id < MESSAGES:
            portion = _Portion()
            group_ids = self._crowd.busy_group_ids(self._dice, PORTION)
            for group_id in group_ids:
                if self._row_id < MESSAGES:
                    self._speak(portion, group_id)
            yield portion

    def _speak(self, portion: _Portion, group_id: int) -> None:
        if self._dice.randrange(PRIVATE_EVERY) == 0:
            number = self._dice.randrange(len(self._crowd.friends))
            chat_id, person = len(self._chats) + 1 + number, self._crowd.friends[number]
        else:
            chat_id, person = self._chats[group_id], self._crowd.speaker(self._dice, group_id)
        before = self._newest.get(chat_id, 0)
        text = sentence(self._dice)
        row_id = self._message(portion, chat_id, person, text)
        if self._dice.randrange(TURN_EVERY) == 0 and self._row_id < MESSAGES:
            reply = sentence(self._dice)
            answer_id = self._message(portion, chat_id, BOT, reply)
            self._turn(portion, chat_id, person, (before, row_id, answer_id), (text, reply))

    def _message(self, portion: _Portion, chat_id: int, person: Person, text: str) -> int:
        self._row_id += 1
        at = self._at(self._row_id)
        is_own = person is BOT
        segments = [{"type": "text", "data": {"text": text}}]
        portion.messages.append(
            (
                chat_id,
                self._member_ids[person.user_id],
                str(message_id(self._row_id)),
                "outbound" if is_own else "inbound",
                "chat",
                at // 1000 * 1000,
                at,
                (datetime.fromtimestamp(at / 1000, UTC) + timedelta(hours=8)).strftime("%Y-%m-%d"),
                None if is_own else self._row_id,
                person.card or person.nickname,
                person.role,
                json.dumps(segments, ensure_ascii=False),
                text,
                "[]",
                not is_own,
            )
        )
        self._newest[chat_id] = self._row_id
        return self._row_id

    def _at(self, row_id: int) -> int:
        return self._start + row_id * (self._ends_at - self._start) // MESSAGES

    def _turn(
        self,
        portion: _Portion,
        chat_id: int,
        person: Person,
        rows: tuple[int, int, int],
        texts: tuple[str, str],
    ) -> None:
        self._turn_id += 1
        before, question, answer = rows
        at = self._at(question)
        member_id = self._member_ids[person.user_id]
        portion.turns.append(
            (chat_id, member_id, "sent", at, at + 50, at + 900, 1, 0, question, "bench-model", "x")
        )
        told = json_line({"id": question, "senderId": str(person.user_id), "text": texts[0]})
        parts = [("question", question, told), ("answer", answer, texts[1])]
        if before:
            parts.insert(0, ("context", before, told))
        portion.lines += [
            (self._turn_id, n, row, kind, t) for n, (kind, row, t) in enumerate(parts)
        ]
        portion.usage.append((at, "chat", "bench-model", "x", chat_id, 850, 1200, 900, 40, 1))


def million(folder: Path) -> Path:
    """Return the database of 1,000,000 messages, making it if it is not there."""
    path = folder / f"million-{VERSION}.db"
    if not path.exists():
        began = time.perf_counter()
        line(f"making {path.name} with {MESSAGES:,} messages, once …")
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / "unfinished.db"
        unfinished.unlink(missing_ok=True)
        now = time.time_ns() // 1_000_000
        asyncio.run(_make_schema(unfinished, now))
        _fill(unfinished, _Past(crowd(), now - 2 * 3_600_000))
        unfinished.rename(path)
        line(f"made in {time.perf_counter() - began:.0f} s, {path.stat().st_size / 2**20:.0f} MiB")
    return path


async def _make_schema(path: Path, now: int) -> None:
    async with open_database(path, now=now):
        pass


def _fill(path: Path, past: _Past) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    add_functions(db)
    for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -1000000"):
        db.execute(f"PRAGMA {pragma}")
    db.execute("BEGIN")
    _insert(db, "chats", "bot_id, kind, peer_id, name, first_seen, last_seen", past.chats())
    _insert(db, "members", MEMBER_COLUMNS, past.members())
    membership = "chat_id, member_id, card, role, first_seen, last_seen"
    _insert(db, "memberships", membership, past.memberships())
    _insert(db, "names", "member_id, chat_id, name, first_seen, last_seen", past.names())
    for portion in past.portions():
        _write(db, portion)
        index_new_messages(db)
    _count_pending(db)
    db.execute("COMMIT")
    db.execute("PRAGMA journal_mode = WAL")
    db.close()


def _write(db: sqlite3.Connection, portion: _Portion) -> None:
    turn = "chat_id, member_id, state, asked_at, started_at, answered_at, addressed, third_party"
    usage = "at, purpose, model, endpoint, chat_id, duration_ms, prompt_tokens, cached_tokens"
    _insert(db, "messages", MESSAGE_COLUMNS, portion.messages)
    _insert(db, "turns", f"{turn}, context_until, model, endpoint", portion.turns)
    _insert(db, "turn_lines", "turn_id, position, message_id, part, text", portion.lines)
    _insert(db, "usage", f"{usage}, completion_tokens, ok", portion.usage)


def _count_pending(db: sqlite3.Connection) -> None:
    db.execute(
        """
        INSERT INTO cursors (chat_id, task, pending, oldest_pending_at, newest_pending_at)
        SELECT chat_id, t.value, count(*), min(received_at), max(received_at)
        FROM messages JOIN chats AS c ON c.id = chat_id
        JOIN json_each(
            iif(c.kind = 'group', '["group", "member-batch"]', '["private-owner"]')
        ) AS t
        WHERE counted GROUP BY chat_id, t.value
        """
    )


def _insert(db: sqlite3.Connection, table: str, columns: str, rows: Any) -> None:
    marks = ", ".join("?" * (columns.count(",") + 1))
    db.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)


def working_copy(folder: Path, name: str) -> Path:
    """Return a fresh copy of the database to run on, already on the disk."""
    path = folder / name
    for leftover in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        leftover.unlink(missing_ok=True)
    shutil.copyfile(million(folder), path)
    os.sync()
    return path


def world_of(everyone: Crowd) -> World:
    """Return the crowd as the simulator's world, with message ids that the past does not use."""
    world = World(BOT, ids=positive_ids(start=10 * MESSAGES))
    for group_id, members in everyone.groups.items():
        world.add_group(group_id, group_name(group_id), *members)
    world.befriend(*everyone.friends)
    return world

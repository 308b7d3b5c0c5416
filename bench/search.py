"""Searching one chat that has all of 1,000,000 messages: keywords, questions, and what is found.

Keywords are parts of messages, of one to eight characters, and such as nobody wrote; questions are
what messages are about. Each is timed as a verb would wait for it. That everything is found is seen
by reading every message.
"""

import asyncio
import random
import shutil
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path

from bench.crowd import FIRST_GROUP_ID, OPENINGS, REMARKS, SUBJECTS
from bench.figures import Times, line, title, verdict
from bench.million import BOT_ID, VERSION, million
from bot.model import Chat
from bot.search.segment import cut
from bot.store.database import Database, open_database
from bot.store.message_index import clear_message_index, index_step
from bot.store.message_search import Window, keyword_hits, lexical_hits

NOW = 1_795_000_000_000
ONE = Chat(BOT_ID, "group", str(FIRST_GROUP_ID))
LIMIT = 32
MONTH_MS = 30 * 86_400_000
STEP_ROWS = 10_000
WANTED_KEYWORD_MS = 30
WANTED_LEXICAL_MS = 50
NOT_SAID = ("花生过敏", "项目", "鼯鼠", "qwertz", "生日", "🎂", "食肉", "那那那")

Search = Callable[[Database, str, Window], Awaitable[object]]


def one_chat(folder: Path) -> Path:
    """Return the database in which all messages are of one chat, making it if it is not there."""
    path = folder / f"million-one-{VERSION}.db"
    if not path.exists():
        unfinished = folder / "unfinished-one.db"
        shutil.copyfile(million(folder), unfinished)
        asyncio.run(_gather(unfinished))
        unfinished.rename(path)
    return path


async def _gather(path: Path) -> None:
    async with open_database(path, now=NOW, synchronous="NORMAL") as db:
        await clear_message_index(db)
        async with db.transaction() as tx:
            await tx.execute_fetchall(
                "UPDATE messages SET chat_id = (SELECT id FROM chats WHERE peer_id = ?)", [ONE.id]
            )
        began = time.perf_counter()
        while await index_step(db, STEP_ROWS):
            pass
        line(f"indexing all messages anew: {time.perf_counter() - began:.1f} s")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


def _keywords(path: Path, count: int) -> list[str]:
    dice = random.Random(4)
    with closing(sqlite3.connect(path)) as connection:
        (newest,) = connection.execute("SELECT max(id) FROM messages").fetchone()
        found = []
        while len(found) < count:
            where = (dice.randrange(1, newest),)
            for (text,) in connection.execute("SELECT text FROM messages WHERE id = ?", where):
                start = dice.randrange(len(text))
                found.append(text[start : start + dice.randint(1, 8)])
    return [*found, *NOT_SAID]


def questions(count: int) -> list[str]:
    """Return what is asked of the chat."""
    dice = random.Random(5)
    return [
        f"{dice.choice(OPENINGS)}谁说{dice.choice(SUBJECTS)}{dice.choice(REMARKS)}？"
        for _ in range(count)
    ]


async def _times(db: Database, search: Search, asked: Sequence[str], window: Window) -> Times:
    found = []
    for one in asked:
        began = time.perf_counter()
        await search(db, one, window)
        found.append((time.perf_counter() - began) * 1000)
    return Times(tuple(found))


async def _keyword(db: Database, word: str, window: Window) -> list[int]:
    return [one.row_id for one in await keyword_hits(db, ONE, [word], window, LIMIT)]


async def _lexical(db: Database, question: str, window: Window) -> object:
    return await lexical_hits(db, ONE, question, window, LIMIT)


async def _recall(db: Database, words: Sequence[str]) -> float:
    """Return the share of what reading every message finds, the newest of it."""
    wanted = found = 0
    for word in words:
        got = await _keyword(db, word, Window())
        async with db.reader() as connection:
            rows = await connection.execute_fetchall(
                "SELECT id FROM messages WHERE kind = 'chat' AND instr(lower(text), lower(?)) > 0"
                " ORDER BY sent_at DESC, id DESC LIMIT ?",
                (word, LIMIT),
            )
        newest = {row[0] for row in rows}
        wanted += len(newest)
        found += len(newest & set(got))
    return found / max(1, wanted)


async def _measure(path: Path, short: bool) -> None:
    keywords, sentences = (
        _keywords(path, 60 if short else 300),
        questions(30 if short else 150),
    )
    list(cut("先读词典"))
    async with open_database(path, now=NOW, synchronous="NORMAL") as db:
        async with db.reader() as connection:
            [[size]] = await connection.execute_fetchall(
                "SELECT sum(length(block)) / 1048576.0 FROM message_index_data"
            )
            [[newest]] = await connection.execute_fetchall("SELECT max(sent_at) FROM messages")
            [[sender]] = await connection.execute_fetchall(
                "SELECT user_id FROM members WHERE id = (SELECT member_id FROM messages LIMIT 1)"
            )
        line(f"the index has {size:.0f} MiB")
        month = Window(since=newest - 7 * MONTH_MS, until=newest - 6 * MONTH_MS)
        await _times(db, _keyword, keywords[:20], Window())
        everywhere = await _times(db, _keyword, keywords, Window())
        line(f"keyword:                      {everywhere}")
        line(f"keyword, one month of long ago: {await _times(db, _keyword, keywords, month)}")
        someone = Window(sender_id=sender)
        line(f"keyword, one person's words:    {await _times(db, _keyword, keywords, someone)}")
        asked = await _times(db, _lexical, sentences, Window())
        line(f"question:                     {asked}")
        line(f"question, one month of long ago: {await _times(db, _lexical, sentences, month)}")
        checked = [*keywords[: 10 if short else 30], *NOT_SAID]
        recall = await _recall(db, checked)
    verdict("keyword in 1,000,000 messages of one chat, p95", everywhere.p95, WANTED_KEYWORD_MS)
    verdict("question in the same, p95", asked.p95, WANTED_LEXICAL_MS)
    verdict("share of what is there that is found", recall, 1.0, least=True)


def measure(folder: Path, *, short: bool = False) -> None:
    """Print how long searches take."""
    title("searching one chat of 1,000,000 messages")
    asyncio.run(_measure(one_chat(folder), short))

"""Finding by words and meaning in one chat that has all of 1,000,000 messages.

Vectors are those of 10,000 of the texts, each message's a little beside that of the text nearest to
its number: making all of them would take an hour, and the search does not know what they mean.
"""

import asyncio
import random
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from bench.crowd import sentence
from bench.figures import Times, line, title, verdict
from bench.million import VERSION
from bench.search import ONE, one_chat, questions
from bot.app import App, open_app
from bot.clock import SystemClock
from bot.config import Config
from bot.llm.bundled import BUNDLED_DIMENSIONS, BUNDLED_ID, BundledEmbedder
from bot.search.matrix import PAGE_SLOTS
from bot.search.vectors import SLOT, Vectors, kept, planes, sketches
from bot.search_messages import search_messages
from bot.store.message_search import Window

TEXTS = 10_000
PORTION = 100 * PAGE_SLOTS
LIMIT = 8
NOISE = 0.015
WANTED_MS = 80

Row = tuple[int, int, int, int]
"""A message: its row, its chat's, when it was sent, its sender's row."""


def with_vectors(folder: Path) -> Path:
    """Return the database in which all messages are of one chat and have vectors."""
    path = folder / f"million-meaning-{VERSION}.db"
    if not path.exists():
        unfinished = folder / "unfinished-meaning.db"
        shutil.copyfile(one_chat(folder), unfinished)
        began = time.perf_counter()
        _fill(unfinished, asyncio.run(_some_vectors()))
        line(f"vectors put in: {time.perf_counter() - began:.0f} s, once")
        unfinished.rename(path)
    return path


async def _some_vectors() -> Vectors:
    dice = random.Random(6)
    embedder = BundledEmbedder()
    try:
        return await embedder.embed([sentence(dice) for _ in range(TEXTS)])
    finally:
        await embedder.close()


def _fill(path: Path, vectors: Vectors) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("BEGIN")
        (newest,) = db.execute("SELECT max(id) FROM messages").fetchone()
        db.execute(
            "INSERT INTO spaces (id, embedder, dimensions, newest, oldest) VALUES (1, ?, ?, ?, 0)",
            (BUNDLED_ID, BUNDLED_DIMENSIONS, newest),
        )
        dice, sides, page = np.random.RandomState(7), planes(BUNDLED_DIMENSIONS), 0
        for rows in _portions(db):
            noise = dice.standard_normal((len(rows), BUNDLED_DIMENSIONS)) * NOISE
            near = vectors[[row[0] % TEXTS for row in rows]] + noise
            near = (near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float32)
            page = _add(db, rows, near, sides, page)
        db.execute("COMMIT")


def _portions(db: sqlite3.Connection) -> Iterator[Sequence[Row]]:
    last = 0
    query = "SELECT id, chat_id, sent_at, member_id FROM messages WHERE id > ? ORDER BY id LIMIT ?"
    while rows := db.execute(query, (last, PORTION)).fetchall():
        yield rows
        last = rows[-1][0]


def _add(
    db: sqlite3.Connection, rows: Sequence[Row], vectors: Vectors, sides: Vectors, page: int
) -> int:
    """Put vectors in, and return the last page that was begun."""
    slots = np.zeros(len(rows), SLOT)
    slots["row"], slots["sent_at"] = [r[0] for r in rows], [r[2] for r in rows]
    slots["member"], slots["sketch"] = [r[3] for r in rows], sketches(vectors, sides)
    for start in range(0, len(rows), PAGE_SLOTS):
        part = slots[start : start + PAGE_SLOTS]
        page += 1
        db.execute(
            "INSERT INTO vector_pages (id, space_id, chat_id, filled, changed, slots)"
            " VALUES (?, 1, ?, ?, ?, ?)",
            (page, rows[0][1], len(part), page, part.tobytes()),
        )
        db.executemany(
            "INSERT INTO message_vectors (message_id, space_id, page_id, slot, vector)"
            " VALUES (?, 1, ?, ?, ?)",
            [(rows[start + n][0], page, n, kept(vectors[start + n])) for n in range(len(part))],
        )
    return page


async def _measure(path: Path, asked: Sequence[str]) -> None:
    config = Config(root=path.parent, database_url=f"sqlite:///{path.name}")
    async with open_app(config, SystemClock()) as app:
        began = time.perf_counter()
        await _times(app, asked[:1])
        line(f"the first question, which reads the sketches: {time.perf_counter() - began:.2f} s")
        await _times(app, asked[:20])
        found = await _times(app, asked)
        line(f"question: {found}")
        line(f"sketches in memory: {app.matrices.size_bytes / 2**20:.0f} MiB")
    verdict("words and meaning in 1,000,000 messages, p95", found.p95, WANTED_MS, unit=" ms")


async def _times(app: App, asked: Sequence[str]) -> Times:
    took: list[float] = []
    for question in asked:
        began = time.perf_counter()
        await search_messages(app, ONE, "", question, Window(), LIMIT)
        took.append((time.perf_counter() - began) * 1000)
    return Times(tuple(took))


def measure(folder: Path, *, short: bool = False) -> None:
    """Print how long a question takes."""
    title("finding by words and meaning in one chat of 1,000,000 messages")
    asyncio.run(_measure(with_vectors(folder), questions(30 if short else 150)))

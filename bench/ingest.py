"""Storing messages: the store beside plain ``sqlite3`` that runs the very same statements.

The plain side knows nothing of messages. While the store fills a first database, every statement
is written down with its parameters; the plain side then runs them on a new one, with the same
schema, indices and pragmas, straight from ``sqlite3`` on one thread, the index of messages and the
making of its tokens included. Its clock does not count the making of rows and parameters; the
store's does, and the waiting of every event for its commit.
"""

import asyncio
import random
import shutil
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any
from zoneinfo import ZoneInfo

import aiosqlite

from bench.crowd import Crowd, crowd, said
from bench.figures import line, spread, title, verdict
from bot.onebot.events import MessageArrived, read_event
from bot.onebot.render import render
from bot.store.database import Database, open_database
from bot.store.group_commit import GROUP_SIZE, GroupCommit
from bot.store.ingest import Arrival, Receipt, store_arrivals
from bot.store.patience import Patience
from bot.store.sqlite import add_functions, pragmas, visit

BEGAN_AT = 1_795_000_000_000
ROWS = {1: 2_000, 16: 8_000, 256: 20_480}
"""How many messages are stored in one run, by the number of concurrent events."""
WANTED_RATIO = 0.6

Statement = tuple[bool, str, Any]
"""Whether it runs once for each of many rows, its text, and its parameters."""


@dataclass(frozen=True, slots=True)
class Run:
    """Rates of one number of concurrent events, in messages a second, one for each round."""

    stored: list[float]
    plain: list[float]


def arrivals(count: int, everyone: Crowd) -> list[Arrival]:
    """Return messages as they reach the store, read from their events."""
    dice = random.Random(7)
    group_ids = everyone.busy_group_ids(dice, count)
    return [_arrival(dice, everyone, *pair) for pair in enumerate(group_ids, start=1)]


def _arrival(dice: random.Random, everyone: Crowd, number: int, group_id: int) -> Arrival:
    at = BEGAN_AT + number * 400
    raw = said(dice, everyone, group_id, number, at)
    event = read_event(raw, received_at=at, zone=ZoneInfo("Asia/Shanghai"))
    assert isinstance(event, MessageArrived)
    return Arrival(replace(event.message, text=render(event.message.segments, {})))


class Recorder(sqlite3.Connection):
    """A connection that writes down what it runs, whoever asks for it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.recorded: list[Statement] = []

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        """Note a statement and run it."""
        self.recorded.append((False, sql, parameters))
        return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any) -> sqlite3.Cursor:
        """Note a statement for many rows and run it."""
        self.recorded.append((True, sql, parameters))
        return super().executemany(sql, parameters)


async def fill(db: Database, items: Sequence[Arrival], concurrency: int) -> float:
    """Store ``items``, so many at once, as events do, and return how many a second."""

    async def commit(group: Sequence[Arrival]) -> Sequence[Receipt]:
        return await store_arrivals(db, group)

    async def one_after_another() -> None:
        for item in waiting:
            await group_commit.add(item)

    group_commit: GroupCommit[Arrival, Receipt] = GroupCommit(commit, Patience(lambda _: None))
    waiting = iter(items)
    began = time.perf_counter()
    await asyncio.gather(*(one_after_another() for _ in range(concurrency)))
    return len(items) / (time.perf_counter() - began)


async def stored_rate(path: Path, items: Sequence[Arrival], concurrency: int) -> float:
    """Return how many messages a second the store takes into a new database."""
    async with open_database(path, now=BEGAN_AT) as db:
        return await fill(db, items, concurrency)


async def recording(path: Path, items: Sequence[Arrival], concurrency: int) -> list[Statement]:
    """Return what the store runs to take in ``items``."""
    async with open_database(path, now=BEGAN_AT):
        pass
    recorders: list[Recorder] = []

    def recorder(*arguments: Any, **options: Any) -> Recorder:
        recorders.append(Recorder(*arguments, **options))
        return recorders[-1]

    async with aiosqlite.connect(path, isolation_level=None, factory=recorder) as connection:
        connection.row_factory = sqlite3.Row
        for statement in _setup():
            await connection.execute_fetchall(statement)
        await visit(connection, add_functions)
        recorders[0].recorded.clear()
        await fill(Database(path, connection, ()), items, concurrency)
    return recorders[0].recorded


def _setup() -> list[str]:
    return [f"PRAGMA {name} = {value}" for name, value in pragmas("FULL").items()]


def plain_rate(path: Path, statements: Sequence[Statement], count: int) -> float:
    """Return how many messages a second the same statements take in without the store."""
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
    for statement in _setup():
        connection.execute(statement)
    add_functions(connection)
    began = time.perf_counter()
    for is_many, sql, parameters in statements:
        if is_many:
            connection.executemany(sql, parameters)
        else:
            connection.execute(sql, parameters).fetchall()
    elapsed = time.perf_counter() - began
    (found,) = connection.execute("SELECT count(*) FROM messages").fetchone()
    (indexed,) = connection.execute("SELECT filled_until FROM message_index_state").fetchone()
    connection.close()
    assert found == indexed == count, "the plain side stored something else"
    return count / elapsed


async def _run(folder: Path, items: Sequence[Arrival], concurrency: int, rounds: int) -> Run:
    statements = await recording(_fresh(folder), items, concurrency)
    run = Run([], [])
    for _ in range(rounds):
        run.stored.append(await stored_rate(_fresh(folder), items, concurrency))
        path = _fresh(folder)
        async with open_database(path, now=BEGAN_AT):
            pass
        run.plain.append(plain_rate(path, statements, len(items)))
    return run


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder / "ingest.db"


def measure(folder: Path, *, short: bool = False) -> None:
    """Print the rates and their ratios."""
    title("storing messages: the store beside plain sqlite3 with the same statements")
    rounds = 3 if short else 7
    everyone = crowd()
    runs = {}
    for concurrency, count in ROWS.items():
        items = arrivals(count // 2 if short else count, everyone)
        runs[concurrency] = asyncio.run(_run(folder / "ingest", items, concurrency, rounds))
        run = runs[concurrency]
        line(f"{concurrency:>3} concurrent events: store  {spread(run.stored)} messages/s")
        line(f"    plain, transactions of {concurrency:>3}: {spread(run.plain)} messages/s")
    shutil.rmtree(folder / "ingest", ignore_errors=True)
    grouped = median(runs[GROUP_SIZE].plain)
    for concurrency, run in runs.items():
        same = median(s / p for s, p in zip(run.stored, run.plain, strict=True))
        line(
            f"ratio at {concurrency:>3}: {median(run.stored) / grouped:.2f} of plain in "
            f"transactions of {GROUP_SIZE}, {same:.2f} of plain in transactions as large as these"
        )
    final = runs[GROUP_SIZE]
    ratio = median(s / p for s, p in zip(final.stored, final.plain, strict=True))
    verdict(f"store / plain at {GROUP_SIZE}", ratio, WANTED_RATIO, least=True)

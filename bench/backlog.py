"""Whether 1,000,000 messages that wait for their vectors hold up those that come in.

The program runs by turns without an embedder and with the one that comes along, which then has
vectors to make all the time; the ways are those of ``bench/latency.py``. People speak all the time,
which embedding gives way to, or now and then, so that most of it happens in between.
"""

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from bench.figures import Times, line, title, verdict
from bench.latency import BLOCK, Bench, Way, one_at_a_time, running
from bench.million import working_copy

ROUNDS = 3
BLOCKS = 5
"""Of each way, in each round."""

SELDOM = 100
SELDOM_SECONDS = 0.15

WARM_UP_SECONDS = 5.0

FIRST_LOOK_SECONDS = 16.0
"""After the start; the embedder is looked for every ``WORKER_INTERVAL_SECONDS``."""

WANTED_RATIO = 1.25
WANTED_MIB = 200.0

OFF, BUNDLED = "off", ""


@dataclass(slots=True)
class Side:
    """What was measured with one embedder."""

    stored_ms: list[float] = field(default_factory=list)
    asked_ms: list[float] = field(default_factory=list)
    seldom_ms: list[float] = field(default_factory=list)
    """Model requests where people speak now and then."""
    resident_mib: float = 0.0
    children_mib: float = 0.0
    first_mib: float = 0.0
    """What the processes that it started held before there was anything to embed."""


async def _measure(folder: Path, database: Path, embedder: str, side: Side) -> None:
    async with running(folder, database, embedder) as bench:
        side.first_mib = max(side.first_mib, bench.program.children_mib)
        await asyncio.sleep(FIRST_LOOK_SECONDS + WARM_UP_SECONDS)
        for way in (bench.stored, bench.asked):
            await one_at_a_time(bench, way, BLOCK, lambda _: None)
        for _ in range(BLOCKS):
            await _block(bench, bench.stored, side.stored_ms)
            await _block(bench, bench.asked, side.asked_ms)
        await _seldom(bench, side.seldom_ms)
        side.resident_mib = max(side.resident_mib, bench.program.resident_mib)
        side.children_mib = max(side.children_mib, bench.program.children_mib)


async def _seldom(bench: Bench, times: list[float]) -> None:
    for _ in range(SELDOM):
        await asyncio.sleep(SELDOM_SECONDS)
        times.append(await bench.asked.send(*bench.talk.event(bench.asked)))
    bench.asked.client.forget()


async def _block(bench: Bench, way: Way, times: list[float]) -> None:
    await one_at_a_time(bench, way, BLOCK, times.append)


def measure(folder: Path, *, short: bool = False) -> None:
    """Print the ways with and without a backlog, and what the embedder holds of memory."""
    title("1,000,000 messages waiting for their vectors")
    sides = {OFF: Side(), BUNDLED: Side()}
    made = 0
    for _ in range(1 if short else ROUNDS):
        for embedder, side in sides.items():
            database = working_copy(folder, "run.db")
            asyncio.run(_measure(folder, database, embedder, side))
            made += _vectors(database)
            for leftover in folder.glob("run.db*"):
                leftover.unlink()
    without, backlog = sides[OFF], sides[BUNDLED]
    line(f"vectors made meanwhile: {made:,}")
    _compare("event → durable row", without.stored_ms, backlog.stored_ms)
    _compare("event → model request", without.asked_ms, backlog.asked_ms)
    seldom = f"event → model request, one in {SELDOM_SECONDS} s"
    _compare(seldom, without.seldom_ms, backlog.seldom_ms)
    line(f"before there is anything to embed the embedder holds {backlog.first_mib:.0f} MiB")
    verdict("memory of the embedder", backlog.children_mib, WANTED_MIB, unit=" MiB")
    line(f"memory of the program: {backlog.resident_mib:.0f} beside {without.resident_mib:.0f} MiB")


def _vectors(database: Path) -> int:
    with closing(sqlite3.connect(database)) as db:
        return db.execute("SELECT count(*) FROM message_vectors").fetchone()[0]


def _compare(name: str, without: list[float], backlog: list[float]) -> None:
    alone, busy = Times(tuple(without)), Times(tuple(backlog))
    line(f"{name}, nothing to embed   {alone}")
    line(f"{name}, with the backlog   {busy}")
    verdict(f"p50, {name}, with over without", busy.p50 / alone.p50, WANTED_RATIO)
    verdict(f"p95, {name}, with over without", busy.p95 / alone.p95, WANTED_RATIO)

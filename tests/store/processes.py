"""Other processes on the same database: real ones, with the program's own code."""

import asyncio
import os
import subprocess
import sys
from asyncio.subprocess import Process
from pathlib import Path

ROOT = Path(__file__).parents[2]

HOLD_LOCK = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(float(sys.argv[2]))
connection.execute("COMMIT")
"""
"""Holds the write lock of a database for some seconds."""

INGEST = """
import asyncio, itertools, sys
from pathlib import Path
from bot.store.database import open_database
from bot.store.group_commit import GroupCommit
from bot.store.ingest import store_arrivals
from bot.store.patience import Patience
from tests.store.rows import NOON, arrival, said

async def main(path, run):
    async with open_database(path, now=NOON) as db:
        arrivals = GroupCommit(lambda group: store_arrivals(db, group), Patience(print))
        numbers = itertools.count()
        async def chatter():
            for n in numbers:
                id = f"{run}-{n}"
                await arrivals.add(arrival(said("一句话", id=id, at=NOON + n)))
                print(id, flush=True)
        await asyncio.gather(*(chatter() for _ in range(16)))

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""
"""Ingests without end and prints the id of every message that is durable."""

FILL = """
import asyncio, resource, sys
from pathlib import Path
from bot.store.database import open_database
from bot.store.group_commit import GroupCommit
from bot.store.ingest import store_arrivals
from bot.store.patience import Patience
from tests.store.rows import NOON, arrival, said

_, most = resource.getrlimit(resource.RLIMIT_FSIZE)

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))

async def main(path):
    async with open_database(path, now=NOON) as db:
        full = asyncio.Event()
        def on_wait(error):
            print(type(error).__name__, flush=True)
            full.set()
        arrivals = GroupCommit(lambda group: store_arrivals(db, group), Patience(on_wait))
        limit(path.with_name(path.name + "-wal").stat().st_size)
        messages = [said("\u957f" * 2_000, id=str(n), at=NOON + n) for n in range(60)]
        adding = [asyncio.create_task(arrivals.add(arrival(m))) for m in messages]
        await full.wait()
        limit(most)
        print("stored", len(await asyncio.gather(*adding)), flush=True)

asyncio.run(main(Path(sys.argv[1])))
"""
"""Stores 60 messages, at first with no leave to let any file grow, and prints what came of it."""

OPEN = """
import asyncio, sys
from pathlib import Path
from bot.store.database import open_database
from tests.store.rows import NOON

async def main(path):
    async with open_database(path, now=NOON):
        pass

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main(Path(sys.argv[1])))
print("opened", flush=True)
"""
"""Opens, and so migrates, a database when told to."""


async def start(script: str, *arguments: object) -> Process:
    """Start a script of this module and wait for nothing."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        script,
        *map(str, arguments),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "LOGURU_AUTOINIT": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


async def next_line(process: Process) -> str:
    """Return the next line that a process prints, ``""`` when there is none."""
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().rstrip("\n")


async def rest_of_lines(process: Process) -> list[str]:
    """Return the complete lines that a process printed before it ended."""
    assert process.stdout is not None
    return (await process.stdout.read()).decode().split("\n")[:-1]


async def tell(process: Process) -> None:
    """Tell a waiting process to go on."""
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    await process.stdin.drain()

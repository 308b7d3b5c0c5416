"""How long a message takes, over the real socket and on 1,000,000 messages.

Three ways are timed in turn, in small blocks, with both programs running:

- bare NoneBot: from the event to the arrival of the API call with which it echoes;
- Qunyi, event to durable row: from the event to the moment at which another connection, in another
  process, has seen the row and then synced the log itself: the program may still be at it. That
  connection only reads, and looks every 0.2 ms, which the times include;
- Qunyi, event to model request: from the event to the arrival of the request at a model server
  that answers at once.

Every clock starts before the event is written to the socket, and client, model server and looker
are one process beside the one under measurement. Pauses, gaps and caps of replies are switched
off by settings, for they are waits on purpose.
"""

import asyncio
import json
import os
import random
import re
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

from bench.crowd import BOT, Crowd, crowd, group_name, sentence
from bench.figures import Times, line, title, verdict
from bench.million import working_copy, world_of
from bench.programs import Program, bare_echo, qunyi
from bot.simulate import Call, OneBotClient, Silence, World, events, segments
from bot.simulate.provider import ModelServer, ReceivedRequest

LOOK_SECONDS = 0.0002
PATIENCE_SECONDS = 20
BLOCK = 25
RATE_PER_SECOND = 50
ADDRESSED_EVERY = 10
WANTED_RATIO = 3.0
AIM_P95_MS = 25.0

NO_WAITS = json.dumps(
    {
        "replyDebounceSeconds": 0,
        "replyMinGapSeconds": 0,
        "sendGapSeconds": 0,
        "replyPerMemberPerMinute": 1_000_000,
        "replyPerMemberPerDay": 1_000_000,
        "replyGlobalPerMinute": 1_000_000,
        "sendPerChatPerMinute": 1_000_000,
        "sendPerAccountPerMinute": 1_000_000,
        "dailyTokenBudget": {"chat": 1_000_000_000},
    }
)
_MARK = re.compile(r"№(\d+)№")


class Arrivals:
    """What was seen of marked messages, and when; seconds of ``time.perf_counter``."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._seen: dict[str, asyncio.Future[float]] = {}

    def expect(self, mark: str) -> asyncio.Future[float]:
        """Return what will hold the moment at which ``mark`` is seen."""
        self._seen[mark] = self._loop.create_future()
        return self._seen[mark]

    def saw(self, text: str) -> None:
        """Note the last mark in a text as seen now."""
        self.saw_at(text, time.perf_counter())

    def saw_at(self, text: str, moment: float) -> None:
        """Note the last mark in a text as seen at ``moment``."""
        marks = _MARK.findall(text)
        if marks and (future := self._seen.pop(marks[-1], None)) is not None:
            future.set_result(moment)

    def saw_elsewhere(self, text: str, moment: float) -> None:
        """Note it from another thread."""
        self._loop.call_soon_threadsafe(self.saw_at, text, moment)


def look(path: Path, seen: Arrivals, stopped: threading.Event) -> None:
    """Watch a database for new messages until ``stopped`` is set."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    (newest,) = db.execute("SELECT max(id) FROM messages").fetchone()
    query = "SELECT id, text FROM messages WHERE id > ? AND direction = 'inbound'"
    log = os.open(f"{path}-wal", os.O_RDWR)
    while not stopped.is_set():
        if found := db.execute(query, (newest,)).fetchall():
            os.fdatasync(log)
        for newest, text in found:
            seen.saw_elsewhere(text, time.perf_counter())
        time.sleep(LOOK_SECONDS)
    os.close(log)
    db.close()


@dataclass(slots=True)
class Way:
    """One way of a message and how long it took, one event at a time and at a rate."""

    name: str
    client: OneBotClient
    seen: Arrivals
    """Where the end of the way is noticed."""
    finished: Arrivals | None = None
    """Where it is noticed that all of it is over, if that is later."""
    addressed: bool = False
    alone_ms: list[float] = field(default_factory=list)
    at_rate_ms: list[float] = field(default_factory=list)

    async def send(self, event: events.RawEvent, mark: str) -> float:
        """Deliver one event and return after how many milliseconds it was seen."""
        over = self.finished.expect(mark) if self.finished else None
        future = self.seen.expect(mark)
        began = time.perf_counter()
        await self.client.deliver(event)
        async with asyncio.timeout(PATIENCE_SECONDS):
            seen_at = await future
            if over is not None:
                await over
        return (seen_at - began) * 1000


class Talk:
    """Makes marked messages of people in all groups."""

    def __init__(self, everyone: Crowd) -> None:
        self._crowd = everyone
        self._dice = random.Random(3)
        self._number = 0

    def event(self, way: Way) -> tuple[events.RawEvent, str]:
        """Return the event of a new message and its mark."""
        self._number += 1
        mark = str(self._number)
        group_id = self._dice.choice(self._crowd.group_ids)
        text = segments.text(f" {sentence(self._dice)} №{mark}№")
        content = [segments.at(BOT.user_id), text] if way.addressed else [text]
        world: World = way.client.world
        speaker = self._crowd.speaker(self._dice, group_id)
        now = time.time_ns() // 1_000_000
        spoken = world.say(group_id, speaker, *content, at=now)
        return events.of_utterance(BOT, spoken, group_name=group_name(group_id)), mark

    def pause_seconds(self) -> float:
        """Return a short while, so that events fall on no rhythm of the looker's."""
        return self._dice.uniform(0.004, 0.012)


def _watch_sends(client: OneBotClient, seen: Arrivals) -> None:
    """Note when the text of a sent message arrives; the rule itself never applies."""

    def note(call: Call) -> bool:
        if call.action.startswith("send_"):
            seen.saw_at(json.dumps(call.params, ensure_ascii=False), call.arrived_seconds)
        return False

    client.behave(note, Silence())


def _repeat_mark(request: ReceivedRequest) -> str:
    marks = _MARK.findall(_last_words(request))
    return f"好的，记下了 №{marks[-1]}№" if marks else "好的"


def _last_words(request: ReceivedRequest) -> str:
    return str(request.body["messages"][-1]["content"])


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything that runs, and the ways through it."""

    bare: Way
    stored: Way
    asked: Way
    talk: Talk
    program: Program

    @property
    def ways(self) -> tuple[Way, Way, Way]:
        """All of them, the one to compare with first."""
        return self.bare, self.stored, self.asked


@asynccontextmanager
async def running(folder: Path, database: Path, embedder: str = "off") -> AsyncIterator[Bench]:
    """Let both programs run, with everything around them.

    Args:
        folder: where their logs go.
        database: Qunyi's.
        embedder: its ``EMBEDDING_MODEL``; the one that comes along if empty.
    """
    everyone = crowd()
    echoed, stored, asked, answered = (Arrivals() for _ in range(4))
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(
            # When the first of it came, not when the server here has parsed it.
            ModelServer(
                _repeat_mark,
                on_request=lambda r: asked.saw_at(_last_words(r), r.arrived_seconds),
            )
        )
        bare = stack.enter_context(bare_echo(folder))
        own = stack.enter_context(
            qunyi(folder, database, NO_WAITS, model.base_url, embedder=embedder)
        )
        to_bare = await _client(stack, bare, everyone, echoed)
        to_own = await _client(stack, own, everyone, answered)
        await _caught_up(to_own, len(everyone.groups))
        _start_looking(stack, database, stored)
        yield Bench(
            bare=Way("bare NoneBot: event → echo", to_bare, echoed),
            stored=Way("Qunyi: event → durable row", to_own, stored),
            asked=Way("Qunyi: event → model request", to_own, asked, answered, addressed=True),
            talk=Talk(everyone),
            program=own,
        )


async def _client(
    stack: AsyncExitStack, program: Program, everyone: Crowd, seen: Arrivals
) -> OneBotClient:
    client = OneBotClient(program.endpoint, world_of(everyone))
    await stack.enter_async_context(client)
    _watch_sends(client, seen)
    return client


async def _caught_up(client: OneBotClient, groups: int) -> None:
    """Wait until the bot has asked for the history of every group, as it does on connect."""

    def all_asked() -> bool | None:
        return len(client.calls) >= groups or None

    await client.records.until(all_asked, "the catch-up on connect", PATIENCE_SECONDS)
    await asyncio.sleep(1)


def _start_looking(stack: AsyncExitStack, database: Path, seen: Arrivals) -> None:
    stopped = threading.Event()
    looker = threading.Thread(target=look, args=(database, seen, stopped))
    looker.start()
    stack.callback(looker.join)
    stack.callback(stopped.set)


async def one_at_a_time(bench: Bench, way: Way, count: int, keep: Callable[[float], Any]) -> None:
    """Let events go one of the ways, and ``keep`` how long each took."""
    for _ in range(count):
        keep(await way.send(*bench.talk.event(way)))
        await asyncio.sleep(bench.talk.pause_seconds())
    way.client.forget()


async def _at_rate(bench: Bench, ways: Sequence[Way], count: int) -> None:
    """Send at a fixed rate, whether or not the ones before are through; ``ways`` take turns."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    sends: list[tuple[Way, asyncio.Task[float]]] = []
    async with asyncio.TaskGroup() as group:
        for number, way in zip(range(count), cycle(ways), strict=False):
            await asyncio.sleep(max(0.0, began + number / RATE_PER_SECOND - loop.time()))
            sends.append((way, group.create_task(way.send(*bench.talk.event(way)))))
    for way, send in sends:
        way.at_rate_ms.append(send.result())
        way.client.forget()


async def _measure(folder: Path, database: Path, blocks: int) -> Bench:
    async with running(folder, database) as bench:
        for way in bench.ways:
            await one_at_a_time(bench, way, 2 * BLOCK, lambda _: None)
        for _ in range(blocks):
            for way in bench.ways:
                await one_at_a_time(bench, way, BLOCK, way.alone_ms.append)
        mixed = [bench.asked, *[bench.stored] * (ADDRESSED_EVERY - 1)]
        for _ in range(max(1, blocks // 5)):
            await _at_rate(bench, [bench.bare], 4 * BLOCK)
            await _at_rate(bench, mixed, 10 * BLOCK)
        return bench


def measure(folder: Path, *, short: bool = False) -> None:
    """Print how long the ways take, and their ratios to the bare one."""
    title("one message over the socket, on 1,000,000 messages in 400 chats")
    database = working_copy(folder, "run.db")
    bench = asyncio.run(_measure(folder, database, 4 if short else 20))
    for leftover in folder.glob("run.db*"):
        leftover.unlink()
    line(f"one event at a time, in 300 groups, alternating in blocks of {BLOCK}:")
    _compare([(way.name, Times(tuple(way.alone_ms))) for way in bench.ways])
    line(f"{RATE_PER_SECOND} events a second, of Qunyi's one in {ADDRESSED_EVERY} addressed:")
    _compare([(way.name, Times(tuple(way.at_rate_ms))) for way in bench.ways])


def _compare(measured: list[tuple[str, Times]]) -> None:
    """Print all times, then what they are of those of the first, which is the baseline."""
    for name, times in measured:
        line(f"{name:<32} {times}")
    (_, bare), *others = measured
    for name, times in others:
        verdict(f"p50, {name}, over the bare echo's", times.p50 / bare.p50, WANTED_RATIO)
        verdict(f"p95, {name}, over the bare echo's", times.p95 / bare.p95, WANTED_RATIO)
        verdict(f"p95, {name}", times.p95, AIM_P95_MS, unit=" ms")

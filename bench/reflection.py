"""Reflection: looking for what is due, applying an answer, and what a reflection costs to ask."""

import asyncio
import json
import random
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiosqlite

from bench.crowd import BOT, sentence
from bench.figures import Times, line, title, verdict
from bot.app import App, open_app
from bot.clock import local_date
from bot.config import Config
from bot.llm.protocol import ModelRequest
from bot.llm.scripted import ScriptedModel
from bot.memory.answer import answer_schema
from bot.model import Chat, Message, Segment, Sender, TaskName
from bot.simulate import VirtualClock
from bot.store.database import Database
from bot.store.ingest import Arrival, store_arrivals
from bot.worker import tick

NOON = 1_785_297_600_000
MINUTE = 60_000
CHATS = 10_000
GROUP = Chat(str(BOT.user_id), "group", "20001")
SPEAKERS = 20
MESSAGES = 1_000
ITEMS_PER_BATCH = 8
"""So many of 80 messages are worth remembering."""

WANTED_TICK_MS = 20.0
WANTED_APPLY_MS = 15.0
TASKS: Mapping[str, TaskName] = {
    "reflect.group": "group",
    "reflect.member-batch": "member-batch",
}


# --- looking ----------------------------------------------------------------------------------

CROWDED = """
INSERT INTO chats (bot_id, kind, peer_id, first_seen, last_seen)
WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < :count)
SELECT :bot_id, iif(x % 5, 'group', 'private'), 100000 + x, :at, :at FROM n
"""
WAITING = """
INSERT INTO cursors (chat_id, task, last_id, pending, oldest_pending_at, newest_pending_at)
SELECT c.id, t.task, 0, 1 + c.id % 40, :at - c.id * 100, :at
FROM chats AS c JOIN (
    SELECT 'group' AS kind, 'group' AS task UNION ALL
    SELECT 'group', 'member-batch' UNION ALL SELECT 'private', 'private-owner'
) AS t ON t.kind = c.kind
"""


async def _look(folder: Path, rounds: int) -> None:
    title(f"worker.tick over {CHATS:,} chats in which messages wait and nothing is due")
    async with _opened(folder, ScriptedModel("{}")) as (app, clock):
        async with app.db.transaction() as tx:
            values = {"bot_id": GROUP.bot_id, "at": NOON, "count": CHATS}
            await tx.execute_fetchall(CROWDED, values)
            await tx.execute_fetchall(WAITING, values)
        await clock.advance(60)
        verdict("p95 of a look, all chats spoke lately", await _looks(app, rounds), WANTED_TICK_MS)
        async with app.db.transaction() as tx:
            await tx.execute_fetchall(
                "UPDATE cursors SET newest_pending_at = 0 WHERE task = 'private-owner'"
            )
        what = f"p95, {CHATS // 5:,} of them idle private chats never answered"
        verdict(what, await _looks(app, rounds), WANTED_TICK_MS)
        await app.settings.change("memoryEnabled", False, by="1", at=NOON)
        async with app.db.transaction() as tx:
            await tx.execute_fetchall("UPDATE cursors SET newest_pending_at = 0")
        line(f"p95, all of them idle and memory off: {await _looks(app, rounds):.2f} ms")


async def _looks(app: App, rounds: int) -> float:
    times: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        if await tick(app):
            raise AssertionError("something was due")
        times.append((time.perf_counter() - began) * 1000)
    line(str(Times(tuple(times))))
    return Times(tuple(times)).p95


# --- applying ---------------------------------------------------------------------------------


class TimedDatabase(Database):
    """A database that keeps how long each write transaction took, in milliseconds."""

    def __init__(self, behind: Database) -> None:
        self.path = behind.path
        self.times: list[float] = []
        self._behind = behind

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[aiosqlite.Connection]:
        began = time.perf_counter()
        async with self._behind.transaction() as tx:
            yield tx
        self.times.append((time.perf_counter() - began) * 1000)

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[aiosqlite.Connection]:
        async with self._behind.reader() as connection:
            yield connection


async def _apply(folder: Path, rounds: int) -> None:
    title("applying the answer to 80 messages, to what an answer to 80 others left")
    line("entries, proofs, revisions, cursor, task, and the sync of the disk")
    for purpose in TASKS:
        for items in (ITEMS_PER_BATCH, 80):
            times = await _applied(folder, purpose, items, rounds)
            line(str(times))
            what = f"p50 of a commit, {purpose}, {items} items"
            verdict(what, times.p50, WANTED_APPLY_MS)


async def _applied(folder: Path, purpose: str, items: int, rounds: int) -> Times:
    def answer(request: ModelRequest) -> str:
        return _answer(request, items) if request.purpose == purpose else "{}"

    async with _opened(folder, ScriptedModel(answer)) as (app, clock):
        await app.settings.change("memoryConcurrency", 1, by="1", at=NOON)
        times: list[float] = []
        for number in range(rounds):
            group = replace(GROUP, id=f"{50_000 + number}")
            for half in range(2):
                await _talk(app, clock, 80, random.Random(2 * number + half), group)
                await clock.advance(15 * 60)
                times.append(await _longest_write(app))
    return Times(tuple(times[1::2]))


async def _longest_write(app: App) -> float:
    timed = TimedDatabase(app.db)
    await tick(replace(app, db=timed))
    return max(timed.times)


def _answer(request: ModelRequest, items: int) -> str:
    lines = [json.loads(each) for each in request.messages[0].content.splitlines() if _is_ref(each)]
    chosen = lines[:: max(1, len(lines) // items)][:items]
    facts = [{"text": f"{one['text'][:60]}", "refs": [one["ref"]]} for one in chosen]
    if request.purpose == "reflect.group":
        return json.dumps({"memory": facts, "summary": "大家在聊近况"})
    people: dict[str, list[dict[str, Any]]] = {}
    for one, fact in zip(chosen, facts, strict=True):
        people.setdefault(one["senderId"], []).append(fact)
    members = [{"senderId": who, "daily": daily} for who, daily in people.items()]
    return json.dumps({"members": members})


def _is_ref(text: str) -> bool:
    return text.startswith('{"ref"')


# --- asking -----------------------------------------------------------------------------------


def tokens(text: str) -> float:
    """Estimate tokens as the program does: one for a CJK character, a quarter for any other."""
    wide = sum("\u2e80" <= char <= "\uffef" for char in text)
    return wide + (len(text) - wide) / 4


@dataclass(slots=True)
class Cost:
    """What the requests of one task hold, in tokens."""

    calls: int = 0
    parts: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    texts: Counter[str] = field(default_factory=Counter)


async def _ask(folder: Path, messages: int) -> None:
    title(f"what {messages:,} group messages cost to reflect, by part of the prompt")
    model = ScriptedModel(lambda request: _answer(request, ITEMS_PER_BATCH))
    async with _opened(folder, model) as (app, clock):
        said = Counter[str]()
        for number in range(messages // 50):
            said.update(await _talk(app, clock, 50, random.Random(number)))
            await tick(app)
        await clock.advance(15 * 60)
        await tick(app)
    for purpose, task in TASKS.items():
        cost = _cost([r for r in model.requests if r.purpose == purpose], task)
        _print_cost(purpose, cost, messages)
        is_once = cost.texts == said
        line(f"   each message was sent exactly once: {'yes' if is_once else 'NO'}")


def _cost(requests: Sequence[ModelRequest], task: TaskName) -> Cost:
    schema = json.dumps(answer_schema(task), ensure_ascii=False)
    cost = Cost(len(requests))
    for request in requests:
        for row in request.messages[0].content.splitlines():
            cost.parts[_part(row, schema)] += tokens(row + "\n")
            if _is_ref(row):
                cost.texts[json.loads(row)["text"]] += 1
    return cost


def _part(row: str, schema: str) -> str:
    if row == schema:
        return "schema"
    if _is_ref(row):
        return "lines"
    return "memory" if row.startswith('{"') else "fixed prompt"


def _print_cost(purpose: str, cost: Cost, messages: int) -> None:
    whole = sum(cost.parts.values())
    line(f"{purpose}: {cost.calls} calls, {1_000 * whole / messages:,.0f} tokens per 1,000")
    for name in ("fixed prompt", "schema", "memory", "lines"):
        share = cost.parts[name]
        line(f"   {name:<13} {1_000 * share / messages:>9,.0f}   {share / whole:6.1%}")


# --- the program ------------------------------------------------------------------------------


@asynccontextmanager
async def _opened(folder: Path, model: ScriptedModel) -> AsyncIterator[tuple[App, VirtualClock]]:
    root = folder / "reflection"
    shutil.rmtree(root, ignore_errors=True)
    clock = VirtualClock(NOON)
    config = Config(root=root, database_url="sqlite:///run.db")
    async with open_app(config, clock, model) as app:
        yield app, clock
    shutil.rmtree(root, ignore_errors=True)


async def _talk(
    app: App, clock: VirtualClock, count: int, dice: random.Random, group: Chat = GROUP
) -> list[str]:
    """Let people say so many things, a few seconds apart; return what they said."""
    arrivals: list[Arrival] = []
    for _ in range(count):
        await clock.advance(dice.uniform(1, 9))
        now, who = clock.now(), str(30_001 + dice.randrange(SPEAKERS))
        text = f"{sentence(dice)}（{now % 1_000_000_007}）"
        arrivals.append(
            Arrival(
                Message(
                    chat=group,
                    platform_id=str(now),
                    sender=Sender(who, nickname=f"群友{who[-2:]}"),
                    direction="inbound",
                    sent_at=now,
                    received_at=now,
                    local_date=local_date(now, app.config.timezone),
                    segments=(Segment("text", {"text": text}),),
                    text=text,
                )
            )
        )
    await store_arrivals(app.db, arrivals)
    return [arrival.message.text for arrival in arrivals]


def measure(folder: Path, *, short: bool = False) -> None:
    """Print what looking, applying and asking cost."""
    rounds = 30 if short else 200
    asyncio.run(_look(folder, rounds))
    asyncio.run(_apply(folder, max(20, rounds // 4)))
    asyncio.run(_ask(folder, MESSAGES))

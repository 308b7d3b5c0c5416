"""A year of a busy group: what one compression costs, month by month, and what is remembered."""

import asyncio
import json
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from bench.crowd import BOT, OPENINGS, REMARKS, SUBJECTS
from bench.figures import line, title, verdict
from bench.reflection import tokens
from bot.app import App, open_app
from bot.clock import local_date
from bot.compress import queue_if_many
from bot.config import Config
from bot.conversation.floor import Question
from bot.inject import inject
from bot.llm.protocol import ModelRequest
from bot.llm.scripted import ScriptedModel
from bot.model import Chat, Message, Scope, Segment, Sender, Stream
from bot.scene import read_scene
from bot.settings import Settings
from bot.simulate import VirtualClock
from bot.store.ingest import Arrival, store_arrivals
from bot.store.memory import StreamWriter, read_stream, rewrite
from bot.store.messages import recent_messages
from bot.worker import tick

NOON = 1_785_297_600_000
"""2026-07-29 12:00 in Shanghai."""
GROUP = Chat(str(BOT.user_id), "group", "20001")
STREAM = Stream(Scope(GROUP.bot_id, "group", GROUP.id), GROUP)
SPEAKERS = 20
MONTHS = 12
DAYS_PER_MONTH = 30
DAY_SECONDS = 24 * 3600
ENTRIES_PER_DAY = 20
"""So many events of a day are remembered: a group that never rests."""

PER_LINE = 6
"""So many daily entries become one line of memory."""
LINE_CHARS = 150
WANTED_RATIO = 0.1


# --- the model --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a compression, in tokens as the program estimates them."""

    prompt_tokens: float
    answer_tokens: float
    daily: int
    """How many daily entries it reads."""
    memory_chars: int
    """What it shows of long-term memory."""

    @property
    def tokens(self) -> float:
        """Prompt and answer together."""
        return self.prompt_tokens + self.answer_tokens


class Compressor:
    """A model that compresses as one should, computed from the prompt; it keeps what that took."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __call__(self, request: ModelRequest) -> str:
        prompt = "\n".join(message.content for message in request.messages)
        shown = list(_shown(prompt))
        daily = [one for one in shown if one["id"][0] == "d"]
        memory = [one for one in shown if one["id"][0] == "m"]
        answer = json.dumps({"memory": list(_lines(daily, memory))}, ensure_ascii=False)
        self.calls.append(
            Call(
                prompt_tokens=tokens(prompt),
                answer_tokens=tokens(answer),
                daily=len(daily),
                memory_chars=sum(len(json.dumps(one, ensure_ascii=False)) for one in memory),
            )
        )
        return answer


def _shown(prompt: str) -> Iterator[dict[str, Any]]:
    """Yield the entries that an answer may name, ``d1`` … and ``m1`` …"""
    for row in prompt.splitlines():
        if row.startswith('{"id"'):
            yield json.loads(row)


def _lines(
    daily: Sequence[Mapping[str, Any]], memory: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield lines that take in some entries each; the first takes up the newest memory too."""
    for start in range(0, len(daily), PER_LINE):
        sources = [*daily[start : start + PER_LINE], *(memory[-1:] if start == 0 else ())]
        days = sorted({one["date"] for one in sources})
        told = "；".join(one["text"] for one in sources)
        yield {
            "date": days[-1],
            "text": f"{'、'.join(days)}：{told}"[:LINE_CHARS],
            "sources": [one["id"] for one in sources],
        }


# --- the group --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Month:
    """What a month cost, and what was held at its end."""

    number: int
    compressions: tuple[tuple[Call, ...], ...]
    """The calls of each."""
    daily: int
    memory: int
    snapshot_chars: int
    """How long the group's snapshot is, made anew."""

    @property
    def costs(self) -> list[float]:
        """Tokens of each compression, all its calls together."""
        return [sum(call.tokens for call in calls) for calls in self.compressions]

    @property
    def calls(self) -> list[Call]:
        """All calls of the month."""
        return [call for calls in self.compressions for call in calls]


async def a_year(
    app: App,
    clock: VirtualClock,
    compressor: Compressor,
    *,
    entries_per_day: int = ENTRIES_PER_DAY,
    months: int = MONTHS,
) -> list[Month]:
    """Let a group live through a year: its events come day by day, and the worker looks.

    What people say and what a reflection makes of it is not played: the entries go into the store
    with their messages, and queue what a reflection queues.

    Args:
        app: the program, with ``compressor`` as its model.
        clock: the program's.
        compressor: what compresses.
        entries_per_day: how many events of a day are remembered.
        months: of 30 days.
    """
    dice, found = random.Random(1), []
    for number in range(1, months + 1):
        compressions: list[tuple[Call, ...]] = []
        for _ in range(DAYS_PER_MONTH):
            await _live(app, clock, dice, entries_per_day)
            before = len(compressor.calls)
            await tick(app)
            if calls := tuple(compressor.calls[before:]):
                compressions.append(calls)
            await clock.advance(DAY_SECONDS)
        found.append(await _month(app, number, compressions))
    return found


async def _month(app: App, number: int, compressions: Sequence[tuple[Call, ...]]) -> Month:
    entries = (await read_stream(app.db, STREAM)).memory.entries
    documents = [entry.document for entry in entries]
    return Month(
        number=number,
        compressions=tuple(compressions),
        daily=documents.count("daily"),
        memory=documents.count("memory"),
        snapshot_chars=await _snapshot_chars(app),
    )


async def _snapshot_chars(app: App) -> int:
    """Return how much memory a turn of the group is shown now."""
    [said] = await recent_messages(app.db, GROUP, 1)
    now = app.clock.now()
    question = Question(GROUP, said.message.sender.user_id, (said,), True, now, now)
    return len((await inject(app, await read_scene(app, question))).standing)


async def _live(app: App, clock: VirtualClock, dice: random.Random, count: int) -> None:
    """Let a day's events be said and remembered."""
    now = clock.now()
    day = local_date(now, app.config.timezone)
    said = [_arrival(now + place, day, dice) for place in range(count)]
    rows = [receipt.row_id for receipt in await store_arrivals(app.db, said)]

    def add(writer: StreamWriter) -> None:
        for arrival, row in zip(said, rows, strict=True):
            text = f"{arrival.message.sender.user_id} 说：{arrival.message.text}"
            writer.add("daily", text, [[row]], date=day, source_task="group")

    async with app.db.transaction() as tx:
        await rewrite(tx, {STREAM: add}, at=now, by="group", why="idle")
        await queue_if_many(app, tx, STREAM, now)


def _arrival(at: int, day: str, dice: random.Random) -> Arrival:
    who = str(30_001 + dice.randrange(SPEAKERS))
    parts = (dice.choice(OPENINGS), dice.choice(SUBJECTS), "，", dice.choice(REMARKS))
    text = f"{''.join(parts)}（第 {at % 100_000} 号）"
    message = Message(
        chat=GROUP,
        platform_id=str(at),
        sender=Sender(who, nickname=f"群友{who[-2:]}"),
        direction="inbound",
        sent_at=at,
        received_at=at,
        local_date=day,
        segments=(Segment("text", {"text": text}),),
        text=text,
    )
    # Reflected already, so to speak.
    return Arrival(message, pending=False)


# --- printing ---------------------------------------------------------------------------------


def _print(months: Sequence[Month]) -> None:
    line("month  compressions  tokens of one: mean     min      max   daily  memory  snapshot")
    for month in months:
        costs = month.costs
        line(
            f"{month.number:>5}  {len(costs):>12}  {mean(costs):>19,.0f} {min(costs):>7,.0f}"
            f" {max(costs):>8,.0f}  {month.daily:>6}  {month.memory:>6}  {month.snapshot_chars:>8,}"
        )


def _judge(months: Sequence[Month]) -> None:
    first, last = months[0].costs, months[-1].costs
    line("what is shown of memory fills its room within the first month")
    what = f"month {len(months)} over month 1, less 1: last compressions"
    verdict(what, abs(last[-1] / first[-1] - 1), WANTED_RATIO)
    verdict("the same: dearest compressions", max(last) / max(first) - 1, WANTED_RATIO)
    verdict("the same: means", abs(mean(last) / mean(first) - 1), WANTED_RATIO)
    longest = max(month.snapshot_chars for month in months)
    verdict("longest snapshot, characters", longest, Settings().memory_scope_char_budget)


async def _measure(folder: Path, months: int) -> None:
    root = folder / "year"
    shutil.rmtree(root, ignore_errors=True)
    clock = VirtualClock(NOON)
    compressor = Compressor()
    config = Config(root=root, database_url="sqlite:///run.db", sqlite_synchronous="NORMAL")
    async with open_app(config, clock, ScriptedModel(compressor)) as app:
        found = await a_year(app, clock, compressor, months=months)
    shutil.rmtree(root, ignore_errors=True)
    _print(found)
    _judge(found)


def measure(folder: Path, *, short: bool = False) -> None:
    """Print what a compression costs in each month of a year, or of a quarter."""
    title(f"a year of a busy group: {ENTRIES_PER_DAY} entries a day, by a scripted model")
    asyncio.run(_measure(folder, 3 if short else MONTHS))

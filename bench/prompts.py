"""Prompts of turns: how much of one begins the next, and how long one takes to make.

See ``docs/architecture.md``, "The prompt of a turn": a provider's prefix cache reads the common
beginning of consecutive prompts for a fraction of its price.
"""

import asyncio
import json
import random
import shutil
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice, pairwise
from pathlib import Path
from statistics import mean

from bench.crowd import BOT, Crowd, crowd, sentence
from bench.figures import Times, line, title, verdict
from bench.million import working_copy, world_of
from bot.app import App, open_app
from bot.clock import SystemClock, local_date
from bot.compact import compact, tend_sessions
from bot.config import Config
from bot.converse import converse
from bot.ingest import ingest
from bot.llm.protocol import ModelRequest
from bot.llm.scripted import ScriptedModel
from bot.model import Chat, Document, Scope, Stream
from bot.simulate import Person, Utterance, VirtualClock, World, WorldPlatform, segments
from bot.simulate.actions import Desk
from bot.store.memory import StreamWriter, rewrite

NOON = 1_785_297_600_000
DAY_MS = 86_400_000
TURNS = 40
PAUSE_SECONDS = 40
CONTEXT_LINES = 4
"""So many messages of others stand between two questions in a group."""

GROUP = 20_001
PEOPLE = tuple(Person(30_001 + n, f"群友{n + 1}") for n in range(5))
BOT_ID = str(BOT.user_id)

ENTRIES = 100_000
BUSY_GROUPS = 40
"""So many groups have the ten-fold memory of others; turns are taken in them."""

WANTED_MEAN = 0.85
WANTED_MEAN_AMONG_MEMBERS = 0.70
WANTED_ASSEMBLY_MS = 15.0

NO_WAITS = {
    "replyDebounceSeconds": 0,
    "replyMinGapSeconds": 0,
    "sendGapSeconds": 0,
    "replyPerMemberPerMinute": 1_000,
    "replyPerMemberPerDay": 1_000,
    "replyGlobalPerMinute": 1_000,
    "sendPerChatPerMinute": 1_000,
    "sendPerAccountPerMinute": 1_000,
}


@dataclass(slots=True)
class Talk:
    """A conversation, and the prompts that it made."""

    app: App
    clock: VirtualClock
    world: World
    prompts: list[str]
    dice: random.Random = field(default_factory=lambda: random.Random(7))

    async def hear(self, spoken: Utterance) -> int:
        """Let the bot hear something, and answer it if it does; return the message's row."""
        taken = await ingest(self.app, Desk(self.world).event_of(spoken))
        assert taken is not None
        assert taken.row_id is not None
        await converse(self.app, taken)
        # What the worker does in life: a full window falls back once it is summarised.
        if await tend_sessions(self.app):
            await compact(self.app, taken.message.chat, "bench")
        await self.clock.advance(PAUSE_SECONDS / (CONTEXT_LINES + 1))
        return taken.row_id

    async def say(self, person: Person, *, asks: bool) -> int:
        """Let somebody say something in the group."""
        text = segments.text(f" {sentence(self.dice)}")
        content = [segments.at(BOT.user_id), text] if asks else [text]
        return await self.hear(self.world.say(GROUP, person, *content, at=self.clock.now()))

    async def whisper(self, person: Person) -> int:
        """Let somebody say something in private."""
        text = sentence(self.dice)
        return await self.hear(self.world.whisper(person.user_id, text, at=self.clock.now()))

    async def remember(self, stream: Stream, row_id: int) -> None:
        """Fill every document of a stream with more than a snapshot can show."""
        await remember(self.app, stream, 80, row_id, self.dice)


async def remember(app: App, stream: Stream, count: int, row_id: int, dice: random.Random) -> None:
    """Spread entries that rest on one message over the documents of a stream."""
    documents: tuple[Document, ...] = ("profile", "pattern", "daily", "memory")
    is_member = stream.scope.kind == "member"

    def fill(writer: StreamWriter) -> None:
        for number in range(count):
            document = documents[number % len(documents)]
            dated = document in ("daily", "memory")
            at = app.clock.now() - number // 4 * DAY_MS
            writer.add(
                document,
                f"{sentence(dice)}{sentence(dice)}",
                [[row_id]],
                type="note" if document == "profile" and is_member else None,
                date=local_date(at, app.config.timezone) if dated else None,
                source_task="group",
            )
        writer.summarise(sentence(dice) * 4, [row_id])

    async with app.db.transaction() as tx:
        await rewrite(tx, {stream: fill}, at=app.clock.now(), by="bench", why="")


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Talk]:
    """Open the bot on an empty database, with people who talk to it."""
    root = folder / "prompts"
    shutil.rmtree(root, ignore_errors=True)
    prompts: list[str] = []

    def answer(request: ModelRequest) -> str:
        if request.purpose == "chat":
            prompts.append("\n\n".join(f"{m.role}\n{m.content}" for m in request.messages))
        if request.purpose == "summarize":
            topics = [{"topic": sentence(dice)[:20]} for _ in range(4)]
            told = {"past_discussions": topics, "current_discussion": sentence(dice)}
            return json.dumps(told, ensure_ascii=False)
        return sentence(dice)

    dice = random.Random(11)
    clock = VirtualClock(NOON)
    world = World(BOT)
    world.add_group(GROUP, "测试群", *PEOPLE)
    world.befriend(*PEOPLE)
    config = Config(root=root, database_url="sqlite:///run.db", initial_settings=NO_WAITS)
    async with open_app(config, clock, ScriptedModel(answer)) as app:
        app.accounts.connect(BOT_ID, WorldPlatform(world, clock))
        yield Talk(app, clock, world, prompts)
    shutil.rmtree(root, ignore_errors=True)


def member_stream(person: Person, origin: Chat) -> Stream:
    """Return what is remembered of a person from a chat."""
    return Stream(Scope(BOT_ID, "member", str(person.user_id)), origin)


def group_stream() -> Stream:
    """Return what is remembered of the group."""
    return Stream(Scope(BOT_ID, "group", str(GROUP)), Chat(BOT_ID, "group", str(GROUP)))


def common_chars(a: str, b: str) -> int:
    """Return how long the common beginning of two texts is."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((n for n, (one, other) in pairs if one != other), min(len(a), len(b)))


def kept_shares(prompts: Sequence[str]) -> list[float]:
    """Return how much of each prompt is the beginning of the next."""
    return [common_chars(a, b) / len(a) for a, b in pairwise(prompts)]


def breaks(prompts: Sequence[str]) -> int:
    """Return how often the next prompt left the earlier one before its last message."""
    return sum(common_chars(a, b) < a.rindex("\n\nuser\n") for a, b in pairwise(prompts))


def _report(name: str, prompts: Sequence[str], wanted: float) -> None:
    shares = kept_shares(prompts)
    sizes = [len(prompt) for prompt in prompts]
    line(f"{name}: {len(prompts)} prompts of {min(sizes):,} to {max(sizes):,} characters")
    verdict("mean share that stays the beginning of the next", mean(shares), wanted, least=True)
    line(f"lowest {min(shares):.2f}, breaks before the last message: {breaks(prompts)}")


async def _in_private(folder: Path) -> None:
    async with opened(folder) as talk:
        person = PEOPLE[0]
        chat = Chat(BOT_ID, "private", str(person.user_id))
        row_id = await talk.whisper(person)
        await talk.remember(member_stream(person, chat), row_id)
        talk.prompts.clear()
        for _ in range(TURNS):
            await talk.whisper(person)
        _report("a private chat with full memory", talk.prompts, WANTED_MEAN)


async def _in_group(folder: Path, name: str, wanted: float, *, with_members: bool) -> None:
    async with opened(folder) as talk:
        rows = [await talk.say(person, asks=False) for person in PEOPLE]
        await talk.remember(group_stream(), rows[0])
        if with_members:
            origin = group_stream().origin
            for person, row_id in zip(PEOPLE, rows, strict=True):
                await talk.remember(member_stream(person, origin), row_id)
        for person in islice(cycle(PEOPLE), TURNS):
            for other in range(CONTEXT_LINES):
                await talk.say(PEOPLE[other], asks=False)
            await talk.say(person, asks=True)
        _report(name, talk.prompts, wanted)


# --- making one -------------------------------------------------------------------------------


async def _assemble(folder: Path, path: Path, rounds: int) -> None:
    everyone, world = crowd(), world_of(crowd())
    asked_at: list[float] = []

    def answer(request: ModelRequest) -> str:
        asked_at.append(time.perf_counter())
        return "好的"

    clock = SystemClock()
    config = Config(root=folder, database_url=f"sqlite:///{path}", initial_settings=NO_WAITS)
    async with open_app(config, clock, ScriptedModel(answer)) as app:
        app.accounts.connect(BOT_ID, WorldPlatform(world, clock))
        await _fill_memory(app, everyone)
        desk, dice = Desk(world), random.Random(5)
        groups = everyone.group_ids[:BUSY_GROUPS]
        passes = {"both snapshots made anew": len(groups), "snapshots as they stand": rounds}
        for name, count in passes.items():
            times: list[float] = []
            for group_id in islice(cycle(groups), count):
                speaker, other = everyone.groups[group_id][:2]
                aside = world.say(group_id, other, sentence(dice), at=clock.now())
                await ingest(app, desk.event_of(aside))
                content = (segments.at(BOT.user_id), segments.text(f" {sentence(dice)}"))
                spoken = world.say(group_id, speaker, *content, at=clock.now())
                taken = await ingest(app, desk.event_of(spoken))
                assert taken is not None
                began = time.perf_counter()
                await converse(app, taken)
                times.append((asked_at[-1] - began) * 1000)
            line(f"{name}: {Times(tuple(times))}")
            verdict(f"p95, {name}", Times(tuple(times)).p95, WANTED_ASSEMBLY_MS, unit=" ms")


async def _fill_memory(app: App, everyone: Crowd) -> None:
    """Give every group and its most talkative member memory, the busiest groups much of it."""
    began, dice, left = time.perf_counter(), random.Random(9), ENTRIES
    for number, (group_id, people) in enumerate(everyone.groups.items()):
        origin = Chat(BOT_ID, "group", str(group_id))
        of_group = Stream(Scope(BOT_ID, "group", str(group_id)), origin)
        busy = number < BUSY_GROUPS
        shares = {of_group: 1_000 if busy else 120, member_stream(people[0], origin): 120}
        for stream, share in shares.items():
            count = min(left, share)
            left -= count
            await remember(app, stream, count, number + 1, dice)
    others = [person for people in everyone.groups.values() for person in people[1:]]
    for person, number in zip(cycle(others), range(left // 100), strict=False):
        origin = Chat(BOT_ID, "group", str(everyone.group_ids[number % len(everyone.groups)]))
        await remember(app, member_stream(person, origin), 100, number + 1, dice)
    line(f"remembered in {time.perf_counter() - began:.0f} s")


def measure(folder: Path, *, short: bool = False) -> None:
    """Print how still the beginnings of prompts are, and how long one takes to make."""
    title(f"the beginning of consecutive prompts, {TURNS} turns running")
    asyncio.run(_in_private(folder))
    name = "a group with full memory of its own, none of members"
    asyncio.run(_in_group(folder, name, WANTED_MEAN, with_members=False))
    name = "a group in which every speaker has full memory as well"
    wanted = WANTED_MEAN_AMONG_MEMBERS
    asyncio.run(_in_group(folder, name, wanted, with_members=True))
    title(f"assembling a group turn, on 1,000,000 messages and {ENTRIES:,} entries")
    path = working_copy(folder, "prompts.db")
    asyncio.run(_assemble(folder, path, 100 if short else 500))

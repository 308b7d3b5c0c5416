"""Whatever happens, each message is reflected once by each task, and nothing is lost."""

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.app import App
from bot.errors import ContextTooLong, ModelRefused, ModelUnavailable
from bot.llm.protocol import ModelRequest
from bot.llm.scripted import Line, ScriptedModel
from bot.model import Chat, TaskName
from bot.simulate import VirtualClock
from bot.worker import free_own_leases, tick
from tests.memory.power import Fuse, FusedDatabase, FusedModel, Kind, PowerCut
from tests.memory.workshop import (
    FISH,
    GROUP,
    NOON,
    OTHER_GROUP,
    PRIVATE,
    Shown,
    Workshop,
    check_all,
    cut_off,
    diary,
    open_workshop,
)

ROOT = Path(__file__).parents[2]
CHATS = (GROUP, OTHER_GROUP, PRIVATE)
TASKS: dict[str, tuple[TaskName, ...]] = {
    "group": ("group", "member-batch"),
    "private": ("private-owner",),
}
POISON = "毒"
FAULTS: tuple[Line, ...] = (
    ModelUnavailable("down"),
    ModelRefused("no"),
    ContextTooLong("long"),
    "嗯……",
    cut_off(),
)


# --- what happens -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Speak:
    """People say some things."""

    chat: Chat
    count: int
    is_poison: bool = False
    """The last of them is one that the provider refuses."""


@dataclass(frozen=True)
class TakeBack:
    """Somebody recalls a message, by its place among all."""

    place: float


@dataclass(frozen=True)
class Wait:
    """Time passes."""

    minutes: float


@dataclass(frozen=True)
class Work:
    """The worker looks, and at some await something strikes."""

    kind: Kind = "cut"
    at: int = 1 << 30
    faults: tuple[int, ...] = ()
    """What the model says instead, by place in ``FAULTS``; then it answers well."""


@dataclass(frozen=True)
class Switch:
    """Member batches are switched."""

    is_on: bool


@dataclass(frozen=True)
class Restart:
    """The program ends and begins again."""


Step = Speak | TakeBack | Wait | Work | Switch | Restart

_SPEAK = st.builds(
    Speak,
    st.sampled_from(CHATS),
    st.sampled_from([1, 3, 20, 55]),
    st.sampled_from([False, False, False, True]),
)
_WORK = st.builds(
    Work,
    st.sampled_from(["cut", "cut", "error", "cancel"]),
    st.one_of(st.integers(1, 120), st.integers(20, 600)),
    st.lists(st.integers(0, len(FAULTS) - 1), max_size=3).map(tuple),
)
_STEPS = st.lists(
    st.one_of(
        _SPEAK,
        _SPEAK,
        _WORK,
        _WORK,
        _WORK,
        st.builds(TakeBack, st.floats(0, 0.999)),
        st.builds(Wait, st.sampled_from([0.5, 2, 15, 61])),
        st.builds(Switch, st.booleans()),
        st.just(Restart()),
    ),
    min_size=4,
    max_size=14,
)


@dataclass
class Life:
    """A program that is struck and begun again, and what was said in it."""

    root: Path
    clock: VirtualClock = field(default_factory=lambda: VirtualClock(NOON))
    said: dict[int, tuple[Chat, str]] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    poison: set[int] = field(default_factory=set)
    faults: list[Line] = field(default_factory=list)
    refusals: int = 0
    """How many messages the model may have refused without a cause."""
    model: ScriptedModel = field(init=False)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _shop: Workshop | None = None

    def __post_init__(self) -> None:
        self.model = ScriptedModel(self._answer)

    def _answer(self, request: ModelRequest) -> Line:
        if self.faults:
            fault = self.faults.pop()
            self.refusals += isinstance(fault, ModelRefused | ContextTooLong)
            return fault
        if any(POISON in text for text in Shown(request).texts):
            return ModelRefused("poison")
        return diary(request)

    async def shop(self) -> Workshop:
        """The program as it runs, begun if it does not."""
        if self._shop is None:
            opened = open_workshop(
                self.root, model=self.model, clock=self.clock, settings={"memoryIdleMinutes": 10}
            )
            self._shop = await self._stack.enter_async_context(opened)
            await free_own_leases(self._shop.app)
        return self._shop

    async def end(self) -> None:
        """The process ends, one way or another; only the file remains."""
        self._shop = None
        await self._stack.aclose()
        self._stack = AsyncExitStack()

    async def do(self, step: Step) -> None:
        """Let one thing happen."""
        shop = await self.shop()
        match step:
            case Speak():
                await self._speak(shop, step)
            case TakeBack(place) if self.said:
                row = list(self.said)[int(place * len(self.said))]
                await shop.recall(row, self.said[row][0])
                self.gone.add(row)
            case Wait(minutes):
                await shop.pass_time(minutes)
            case Switch(is_on):
                await shop.set(memoryMemberBatchEnabled=is_on)
            case Restart():
                await self.end()
            case Work():
                await self._work(shop, step)
            case _:
                pass

    async def _speak(self, shop: Workshop, step: Speak) -> None:
        first = len(self.said)
        rows = await shop.chatter(step.count, step.chat, start=first)
        self.said |= {
            row: (step.chat, f"第{number}句") for number, row in enumerate(rows, start=first)
        }
        if step.is_poison:
            text = f"{POISON}第{len(self.said)}句"
            [row] = await shop.hear(text, by=FISH, chat=step.chat)
            self.said[row] = (step.chat, text)
            self.poison.add(row)

    async def _work(self, shop: Workshop, step: Work) -> None:
        fuse = Fuse(step.kind, step.at)
        self.faults += [FAULTS[number] for number in step.faults]
        with suppress(PowerCut, sqlite3.OperationalError, asyncio.CancelledError):
            await tick(fused(shop.app, fuse))
        if fuse.is_out or step.kind == "cancel":
            await self.end()


def fused(app: App, fuse: Fuse) -> App:
    """Return the program with a fuse before its database and its model."""
    return replace(app, db=FusedDatabase(app.db, fuse), model=FusedModel(app.model, fuse))


async def finish(life: Life) -> Workshop:
    """Let all faults end and everything that waits be reflected."""
    shop = await life.shop()
    life.faults.clear()
    await shop.answer_once()
    await shop.set(memoryMemberBatchEnabled=True)
    for _ in range(60):
        await shop.pass_time(61)
        await shop.tick()
        async with shop.app.db.transaction() as tx:
            await tx.execute_fetchall("UPDATE cursors SET quarantined = 0")
        await shop.tick()
        if not any(await shop.values("SELECT pending FROM cursors")):
            return shop
    raise AssertionError(f"something waits for ever: {await shop.tasks()}")


async def check_each_once(life: Life, shop: Workshop) -> None:
    """Each message that stands is remembered once by each task of its chat; none that does not."""
    found = Counter[tuple[str, int]]()
    for task, row in await shop.rows(
        "SELECT e.source_task, pm.message_id FROM entries AS e"
        " JOIN proofs AS p ON p.entry_id = e.id JOIN proof_messages AS pm ON pm.proof_id = p.id"
        " WHERE e.ended_at IS NULL"
    ):
        found[task, row] += 1
    passed = {(t, m) for t, m in await shop.rows("SELECT task, message_id FROM quarantine")}
    wanted = {
        (task, row)
        for row, (chat, _) in life.said.items()
        for task in TASKS[chat.kind]
        if row not in life.gone and (task, row) not in passed
    }
    assert set(found) == wanted
    assert set(found.values()) <= {1}
    assert len({row for _, row in passed} - life.poison) <= life.refusals


# --- properties -------------------------------------------------------------------------------


@given(steps=_STEPS)
@settings(max_examples=int(os.environ.get("QUNYI_LIVES", "12")))
async def test_each_message_is_in_exactly_one_successful_batch_of_each_task(steps: list[Step]):
    with tempfile.TemporaryDirectory() as folder:
        life = Life(Path(folder))
        try:
            for step in steps:
                await life.do(step)
                if life._shop is not None:
                    await check_all(life._shop)
            shop = await finish(life)
            await check_all(shop)
            await check_each_once(life, shop)
        finally:
            await life.end()


async def test_at_whatever_await_it_is_struck_a_reflection_is_done_once(tmp_path: Path):
    strikes = 0
    for kind, at in _places():
        root = tmp_path / f"{kind}{at}"
        life = Life(root)
        try:
            await life.do(Speak(GROUP, 3))
            await life.do(Wait(10))
            await life.do(Work(kind, at))
            strikes += 1
            shop = await finish(life)
            await check_all(shop)
            await check_each_once(life, shop)
        finally:
            await life.end()
    assert strikes


def _places() -> Iterator[tuple[Kind, int]]:
    for at in range(1, 170, 9):
        yield "cut", at
    for at in (60, 130):
        yield "error", at
        yield "cancel", at


# --- a real process, killed -------------------------------------------------------------------


def _read(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


async def _live_and_die(root: Path, kills: int, seed: int) -> None:
    dice = random.Random(seed)
    path = root / "qunyi.db"
    for _ in range(kills):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.memory.talker",
            str(root),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "LOGURU_AUTOINIT": "0"},
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        await asyncio.sleep(dice.uniform(0.01, 0.6))
        process.send_signal(signal.SIGKILL)
        await process.wait()
        assert _read(path, "PRAGMA integrity_check") == [("ok",)]
    await _check_the_dead(root)


async def _check_the_dead(root: Path) -> None:
    """Everything that was stored is reflected once after the last life."""
    clock = VirtualClock(NOON * 2)
    async with open_workshop(root, clock=clock) as shop:
        await check_all(shop)
        await free_own_leases(shop.app)
        while any(await shop.values("SELECT pending FROM cursors")):
            await shop.pass_time(181)
            await shop.tick()
        await check_all(shop)
        for task in TASKS["group"]:
            texts = await shop.values(
                "SELECT e.text FROM entries AS e WHERE e.source_task = ? AND ended_at IS NULL",
                task,
            )
            stored = await shop.values("SELECT text FROM messages WHERE recalled_at IS NULL")
            assert sorted(texts) == sorted(stored)
            assert stored


async def test_a_process_that_is_killed_reflects_nothing_twice_and_forgets_nothing(
    tmp_path: Path,
):
    await _live_and_die(tmp_path, 3, 1)


@pytest.mark.long
@pytest.mark.timeout(1_200)
async def test_a_process_that_is_killed_two_hundred_times_reflects_nothing_twice(tmp_path: Path):
    await _live_and_die(tmp_path, 200, 2)

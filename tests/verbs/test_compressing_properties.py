"""Whatever is compressed, taken back, undone and pinned: what stands is remembered, and no more."""

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.errors import ModelRefused, ModelUnavailable
from bot.llm.protocol import ModelRequest
from bot.llm.scripted import Line, Script
from bot.store.memory import read_stream
from bot.store.revisions import undo_revision
from tests.verbs.remembering import (
    OF_FISH,
    badly,
    compress_now,
    grouped,
    held,
    lines,
    recall_rows,
    remember,
    well,
)
from tests.verbs.stage import Stage, open_stage

HOUR = 3600
TEXT = "〔{:05}〕去湖边走了一圈"


@dataclass(frozen=True)
class Remember:
    """Some daily entries come in."""

    count: int


@dataclass(frozen=True)
class Compress:
    """A model compresses all but the two newest, in one of many ways."""

    way: str


@dataclass(frozen=True)
class TakeBack:
    """A message is recalled, by its place among all; perhaps while a model thinks."""

    place: float
    is_while_thinking: bool = False


@dataclass(frozen=True)
class Undo:
    """A change is undone, by its place among all."""

    place: float


@dataclass(frozen=True)
class Pin:
    """A living entry is pinned, or no longer is, by its place among all."""

    place: float


Step = Remember | Compress | TakeBack | Undo | Pin
_PLACE = st.floats(0, 0.999)


def nested(request: ModelRequest) -> str:
    """Take every shown memory up."""
    daily, memory = lines(request, "近事"), lines(request, "长期记忆")
    pairs = [grouped([one, old])[0] for one, old in zip(daily, memory, strict=False)]
    return json.dumps({"memory": [*pairs, *grouped(daily[len(pairs) :])]}, ensure_ascii=False)


def shared(request: ModelRequest) -> str:
    """Let the first entry go into every item."""
    daily = lines(request, "近事")
    items = [grouped([daily[0], one])[0] for one in daily[1:]] or grouped(daily)
    return json.dumps({"memory": items}, ensure_ascii=False)


def sparing(request: ModelRequest) -> str:
    """Leave a fifth where it is."""
    daily = lines(request, "近事")
    return json.dumps({"memory": grouped(daily[len(daily) // 5 :], 3)}, ensure_ascii=False)


WAYS: dict[str, Script] = {
    "well": well,
    "nested": nested,
    "shared": shared,
    "sparing": sparing,
    "badly": badly,
    "broken": lambda request: well(request)[:-5],
    "refused": ModelRefused("no"),
    "down": ModelUnavailable("down"),
}
_STEPS = st.lists(
    st.one_of(
        st.builds(Remember, st.integers(1, 12)),
        st.builds(Compress, st.sampled_from([*WAYS])),
        st.builds(Compress, st.sampled_from(["well", "nested", "shared"])),
        st.builds(Compress, st.just("nested")),
        st.builds(TakeBack, _PLACE, st.booleans()),
        st.builds(Undo, _PLACE),
        st.builds(Undo, st.just(0.999)),
        st.builds(Pin, _PLACE),
    ),
    min_size=4,
    max_size=14,
)


def chosen(values: Sequence[Any], place: float) -> Any:
    return values[int(place * len(values))] if values else None


@dataclass
class Model:
    """Answers in the way that is asked of it now."""

    way: str = "well"

    def __call__(self, request: ModelRequest) -> Line:
        script = WAYS[self.way]
        return script(request) if callable(script) else script


@dataclass
class Life:
    """One stream, and which of its messages still stand."""

    stage: Stage
    model: "Model"
    standing: dict[int, str] = field(default_factory=dict)
    """By message row, the words of it that nothing else has."""
    recalled: list[str] = field(default_factory=list)

    async def do(self, step: Step) -> None:
        await self.stage.advance(HOUR)
        match step:
            case Remember(count):
                told = await remember(self.stage, OF_FISH, count, text=TEXT)
                texts = {e.number: e.text[:7] for e in await held(self.stage, OF_FISH, "daily")}
                self.standing |= {row: texts[number] for number, row in told.rows.items()}
            case Compress(way):
                await self._compress(way)
            case TakeBack(place, is_while_thinking):
                await self._take_back(chosen([*self.standing], place), is_while_thinking)
            case Undo(place):
                changes = [
                    i for (i,) in await self.stage.rows("SELECT id FROM revisions ORDER BY id")
                ]
                async with self.stage.app.db.transaction() as tx:
                    await undo_revision(tx, chosen(changes, place) or 0, by="1", at=self.stage.now)
            case Pin(place):
                entries = (await read_stream(self.stage.app.db, OF_FISH)).memory.entries
                number = chosen([entry.number for entry in entries], place)
                async with self.stage.app.db.transaction() as tx:
                    await tx.execute_fetchall(
                        "UPDATE entries SET pinned = 1 - pinned WHERE number = ?", (number,)
                    )

    async def _compress(self, way: str) -> None:
        self.model.way = way
        await compress_now(self.stage, OF_FISH, "command")

    async def _take_back(self, row: int | None, is_while_thinking: bool) -> None:
        if row is None:
            return
        self.stage.model.hold()
        working = self.stage.spawn(self._compress("nested")) if is_while_thinking else None
        await self.stage.settle()
        await recall_rows(self.stage, row)
        self.recalled.append(self.standing.pop(row))
        self.stage.model.release()
        if working:
            await working

    async def check(self) -> None:
        """What stands is proven by what lives; of what was recalled, no word is kept."""
        entries = (await read_stream(self.stage.app.db, OF_FISH)).memory.entries
        proven = {row for entry in entries for proof in entry.proofs for row in proof}
        assert proven == set(self.standing)
        daily = {entry.text[:7] for entry in entries if entry.document == "daily"}
        assert daily <= set(self.standing.values())
        assert len(daily) == sum(entry.document == "daily" for entry in entries)
        kept = str(await self.stage.rows("SELECT text, ended_why FROM entries"))
        kept += str(await self.stage.rows("SELECT before, after FROM revisions"))
        assert [words for words in self.recalled if words in kept] == []


@given(steps=_STEPS)
@settings(max_examples=int(os.environ.get("QUNYI_LIVES", "25")))
async def test_what_stands_is_remembered_and_what_was_taken_back_is_not(steps: list[Step]):
    with tempfile.TemporaryDirectory() as folder:
        model = Model()
        async with open_stage(Path(folder), answer=model) as stage:
            await stage.set(memoryMemberKeepRecent=2, memoryMemberCompressAt=4)
            life = Life(stage, model)
            for step in (Remember(9), *steps):
                await life.do(step)
                await life.check()

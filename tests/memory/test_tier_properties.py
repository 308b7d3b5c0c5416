"""Whatever is noted, kept, folded, undone or forgotten: what was forgotten stays so, and nothing
else is lost."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.consolidate import consolidate
from bot.model import entry_label
from bot.remember import remember
from bot.store.revisions import undo_revision
from tests.memory.workshop import FISH, GROUP, OPERATOR, Workshop, open_workshop

Deed = Literal["note", "keep", "recall", "forget", "consolidate", "undo", "pin", "wait"]


@dataclass(frozen=True)
class Step:
    """One thing that happens, and to which of what there is."""

    deed: Deed
    place: float


DEEDS: tuple[Deed, ...] = (
    *("note", "note", "note", "keep", "recall", "forget"),
    *("consolidate", "undo", "pin", "wait", "wait"),
)
steps = st.lists(
    st.builds(Step, st.sampled_from(DEEDS), st.floats(0, 1, exclude_max=True)),
    min_size=5,
    max_size=30,
)


class Diary:
    """What a test did, and what must therefore be gone."""

    def __init__(self, shop: Workshop) -> None:
        self.shop = shop
        self.count = 0
        self.gone: set[str] = set()

    async def do(self, step: Step) -> None:
        match step.deed:
            case "note":
                text = self._text()
                rows = await self.shop.hear(text, pending=False)
                await remember(self.shop.app, GROUP, FISH, rows, text)
            case "keep":
                await self.shop.command(f"/记住 {self._text()}", by=FISH)
            case "recall":
                await self._recall(step.place)
            case "forget":
                await self._forget(step.place)
            case "consolidate":
                await consolidate(self.shop.app)
            case "undo":
                await self._undo(step.place)
            case "pin":
                if label := await self._label(step.place):
                    await self.shop.command(f"/置顶 成员 {FISH} #{label}")
            case "wait":
                await self.shop.pass_time(step.place * 40 * 24 * 60)

    def _text(self) -> str:
        self.count += 1
        return f"第{self.count}件小事"

    async def _texts_of(self, rows: list[int]) -> set[str]:
        marks = ",".join("?" * len(rows))
        found = await self.shop.values(f"SELECT text FROM messages WHERE id IN ({marks})", *rows)
        return {text.removeprefix("/记住 ") for text in found if text}

    async def _recall(self, place: float) -> None:
        rows = await self.shop.values(
            "SELECT id FROM messages WHERE recalled_at IS NULL AND direction = 'inbound'"
            " AND (kind = 'chat' OR text LIKE '/记住%') ORDER BY id"
        )
        if rows:
            row = rows[int(place * len(rows))]
            self.gone |= await self._texts_of([row])
            await self.shop.recall(row)

    async def _label(self, place: float) -> str | None:
        numbers = await self.shop.values(
            "SELECT number FROM entries WHERE ended_at IS NULL ORDER BY number"
        )
        return entry_label(numbers[int(place * len(numbers))]) if numbers else None

    async def _forget(self, place: float) -> None:
        label = await self._label(place)
        if label is None:
            return
        before = await self.shop.values("SELECT id FROM messages WHERE forgotten_at IS NOT NULL")
        assert "忘记了" in await self.shop.command(f"/忘记 我#{label}", by=FISH)
        after = await self.shop.values("SELECT id FROM messages WHERE forgotten_at IS NOT NULL")
        fresh = sorted(set(after) - set(before))
        assert fresh
        self.gone |= await self._texts_of(fresh)

    async def _undo(self, place: float) -> None:
        numbers = await self.shop.values("SELECT id FROM revisions ORDER BY id")
        if numbers:
            async with self.shop.app.db.transaction() as tx:
                number = numbers[int(place * len(numbers))]
                await undo_revision(tx, number, by=OPERATOR, at=self.shop.now)

    async def check(self) -> None:
        kept = str(
            [
                await self.shop.rows("SELECT text, ended_why FROM entries"),
                await self.shop.rows("SELECT before, after, why FROM revisions"),
                await self.shop.rows("SELECT words FROM entry_index"),
            ]
        )
        for text in self.gone:
            assert text not in kept
        standing = {f"第{number}件小事" for number in range(1, self.count + 1)} - self.gone
        rows = await self.shop.values("SELECT text FROM entries WHERE text <> ''")
        assert standing <= set(rows)
        await self._check_rows()

    async def _check_rows(self) -> None:
        proven = "EXISTS (SELECT 1 FROM proofs WHERE entry_id = entries.id)"
        unproven = f"SELECT count(*) FROM entries WHERE text <> '' AND NOT {proven}"
        assert await self.shop.values(unproven) == [0]
        lost = (
            "SELECT count(*) FROM entries WHERE ended_by = 'compressed' AND NOT EXISTS ("
            "SELECT 1 FROM entry_sources AS s JOIN entries AS m ON m.id = s.entry_id"
            " WHERE s.source_id = entries.id AND m.text <> '')"
        )
        assert await self.shop.values(lost) == [0]
        over = "SELECT count(*) FROM entries WHERE pinned = 1 AND ended_by IN ('expired')"
        assert await self.shop.values(over) == [0]


@given(steps)
@settings(max_examples=25, deadline=None)
async def test_what_is_forgotten_stays_so_and_nothing_else_is_lost(found: list[Step]):
    with tempfile.TemporaryDirectory() as folder:
        async with open_workshop(Path(folder)) as shop:
            diary = Diary(shop)
            for step in found:
                await diary.do(step)
                await shop.pass_time(0.05)
                await diary.check()

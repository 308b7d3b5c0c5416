"""Whatever is recalled, no state of a summary tells of it, and what remains is read."""

import json
import re
from pathlib import Path
from random import Random

import pytest

from bot.llm.protocol import ModelRequest
from bot.store.sessions import VERSIONS
from bot.worker import tick
from tests.verbs.conversing import (
    converse_on,
    is_summary,
    lines_of,
    pass_minutes,
    state_of,
    take_back,
    texts_of,
)
from tests.verbs.stage import NOON, Stage, open_stage

_MARK = re.compile(r"<\d+>")


def parrot(request: ModelRequest) -> str:
    """Summarise by repeating the marks of what was read, and of the summary before."""
    if not is_summary(request):
        return "好的"
    before = [line.get("current_discussion", "") for line in lines_of(request, "现有概要")]
    marks = _MARK.findall("".join([*before, *texts_of(request)]))
    return json.dumps({"current_discussion": "".join(dict.fromkeys(marks[-70:]))})


async def _marks(stage: Stage) -> set[str]:
    """Return what any state of a summary tells of."""
    rows = await stage.rows(
        "SELECT summary FROM sessions UNION ALL SELECT summary FROM session_versions"
    )
    return set(_MARK.findall("".join(text for (text,) in rows)))


@pytest.mark.parametrize("seed", range(6))
async def test_no_state_of_a_summary_tells_of_what_was_recalled(tmp_path: Path, seed: int):
    chance = Random(seed)
    async with open_stage(tmp_path, answer=parrot, start=NOON + 60_000) as stage:
        await stage.set(summaryChunkChars=chance.choice([400, 2_000, 32_000]))
        gone: set[int] = set()
        said = 0
        for _ in range(25):
            some = chance.randint(1, 12)
            await converse_on(stage, some, first=said + 1, text="问<{}>", answer="答[{}]")
            said += some
            await pass_minutes(stage, chance.choice([0, 1, 20]))
            if chance.random() < 0.6:
                number = chance.choice([n for n in range(1, said + 1) if n not in gone])
                gone.add(number)
                await take_back(stage, f"qgroup{number}")
                assert not {f"<{n}>" for n in gone} & await _marks(stage)
        await pass_minutes(stage, 60)
        assert not {f"<{n}>" for n in gone} & await _marks(stage)
        state = await state_of(stage)
        assert state.new_turns < 16
        assert state.window_start <= state.summary_cursor


async def test_while_a_recall_and_a_summary_race_nothing_of_it_is_kept(tmp_path: Path):
    async with open_stage(tmp_path, answer=parrot) as stage:
        await converse_on(stage, 16, text="问<{}>")
        stage.model.hold()
        working = stage.spawn(tick(stage.app))
        await stage.model.until_asked()
        await take_back(stage, "qgroup16")
        stage.model.release()
        await working
        assert "<16>" not in await _marks(stage)
        assert "<15>" in await _marks(stage)


async def test_no_more_states_are_kept_than_are_worth_it(tmp_path: Path):
    async with open_stage(tmp_path, answer=parrot) as stage:
        await stage.set(summaryChunkChars=1)
        await converse_on(stage, 3 * VERSIONS, text="问<{}>")
        await pass_minutes(stage, 0)
        ((count,),) = await stage.rows("SELECT count(*) FROM session_versions")
        assert count == VERSIONS
        # What is older than all of them is made from nothing.
        await take_back(stage, "qgroup1")
        assert await _marks(stage) == set()
        await pass_minutes(stage, 0)
        assert "<2>" in await _marks(stage)

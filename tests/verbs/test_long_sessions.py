"""A long conversation, with failures: every turn is shown, or was read once by one summary."""

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from bot.conversation.window import full_at, least_turns
from bot.errors import ModelRefused, ModelUnavailable
from bot.llm.protocol import ModelAnswer, ModelRequest
from tests.verbs.conversing import (
    converse_on,
    is_summary,
    pass_minutes,
    state_of,
    texts_of,
)
from tests.verbs.stage import Stage, open_stage


class Reader:
    """A model that reads, or fails in every way a model can, by chance.

    Attributes:
        read: how often a summary that was answered well has read each turn.
    """

    def __init__(self, chance: Random, failures: float) -> None:
        self._chance = chance
        self.failures = failures
        self.read: Counter[str] = Counter()

    def __call__(self, request: ModelRequest) -> str | Exception | ModelAnswer:
        if not is_summary(request):
            return "好的"
        if self._chance.random() < self.failures:
            return self._chance.choice(
                [
                    ModelUnavailable("down"),
                    ModelAnswer('{"current_discussion": "一半', "length", "m", "e"),
                    "我不会",
                    ModelRefused("no"),
                ]
            )
        self.read.update(text for text in texts_of(request) if text.startswith("问题"))
        return json.dumps({"current_discussion": f"读到{self.read.total()}"})


async def _passed_over(stage: Stage) -> set[str]:
    rows = await stage.rows(
        "SELECT m.text FROM quarantine AS q JOIN messages AS m ON m.id = q.message_id"
        " WHERE q.task = 'summarize'"
    )
    return {text for (text,) in rows}


async def _check(stage: Stage, reader: Reader) -> None:
    """Each turn was read by exactly one summary, or not yet, and is then shown; or no model took
    it, and it is marked."""
    state = await state_of(stage)
    rows = await stage.rows(
        "SELECT t.id, l.text FROM turns AS t JOIN turn_lines AS l ON l.turn_id = t.id"
        " WHERE l.part = 'question'"
    )
    passed = await _passed_over(stage)
    for turn_id, line in rows:
        text = json.loads(line)["text"]
        times = reader.read[text] + (text in passed)
        assert times == (turn_id <= state.summary_cursor), text
        assert times or turn_id > state.window_start, text
    assert state.window_start <= state.summary_cursor


async def _talk(stage: Stage, reader: Reader, count: int, chance: Random, step: int) -> None:
    done = 0
    while done < count:
        some = min(chance.randint(1, step), count - done)
        await converse_on(stage, some, first=done + 1)
        done += some
        await pass_minutes(stage, chance.choice([0, 1, 5, 20]))
        if chance.random() < 0.02:
            await _check(stage, reader)


@pytest.mark.parametrize(
    ("seed", "count", "failures"), [(1, 600, 0.0), (2, 600, 0.3), (3, 300, 0.7)]
)
async def test_every_turn_is_in_the_window_or_was_read_by_one_summary(
    tmp_path: Path, seed: int, count: int, failures: float
):
    await _lives(tmp_path, Random(seed), count, failures, step=12)


@pytest.mark.long
async def test_so_is_every_turn_of_ten_thousand(tmp_path: Path):
    await _lives(tmp_path, Random(4), 10_000, 0.2, step=40)


async def _lives(root: Path, chance: Random, count: int, failures: float, step: int) -> None:
    reader = Reader(chance, failures)
    async with open_stage(root, answer=reader) as stage:
        await _talk(stage, reader, count, chance, step)
        await _check(stage, reader)
        reader.failures = 0
        # Once the model is well again, all is read and the window falls back.
        await pass_minutes(stage, 60)
        await pass_minutes(stage, 60)
        await _check(stage, reader)
        state = await state_of(stage)
        least = least_turns(stage.app.settings.general.session_max_messages)
        assert least <= state.window_turns < full_at(2 * least)
        assert state.new_turns < least

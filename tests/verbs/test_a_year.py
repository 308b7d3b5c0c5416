"""A year of a busy group: memory grows; what a compression shows and costs does not."""

from collections.abc import AsyncIterator
from pathlib import Path
from statistics import mean

import pytest

from bench.year import DAYS_PER_MONTH, MONTHS, STREAM, Compressor, Month, a_year
from bot.memory.compression import CHUNK, MEMORY_CHARS
from bot.store.memory import read_stream
from tests.verbs.stage import Stage, open_stage

A_DAY = 20
"""Enough for what is shown of memory to fill its room within the first month."""

Year = tuple[Stage, list[Month]]


@pytest.fixture(scope="module")
async def year(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Year]:
    root: Path = tmp_path_factory.mktemp("year")
    compressor = Compressor()
    async with open_stage(root, answer=compressor) as stage:
        months = await a_year(stage.app, stage.clock, compressor, entries_per_day=A_DAY)
        yield stage, months


def test_a_compression_costs_the_same_after_a_year(year: Year):
    _, months = year
    first, last = months[0].costs, months[-1].costs
    assert len(months) == MONTHS
    # The first ones are cheaper: there is no memory to show yet.
    assert all(abs(cost / first[-1] - 1) <= 0.1 for cost in last)
    assert all(cost <= 1.1 * max(first) for month in months for cost in month.costs)
    assert mean(last) <= 1.1 * mean(first)


def test_what_a_call_shows_is_bounded_however_much_is_remembered(year: Year):
    _, months = year
    assert months[-1].memory > 10 * months[0].memory
    for month in months:
        assert all(call.daily <= CHUNK for call in month.calls)
        assert all(call.memory_chars <= MEMORY_CHARS for call in month.calls)
    assert min(call.memory_chars for call in months[-1].calls) > 0.9 * MEMORY_CHARS


def test_the_snapshot_keeps_its_budget_throughout(year: Year):
    _, months = year
    assert all(1_500 < month.snapshot_chars <= 2_000 for month in months)


def test_daily_stays_between_what_is_kept_and_what_is_compressed(year: Year):
    _, months = year
    assert all(100 <= month.daily < 200 for month in months)
    told = A_DAY * DAYS_PER_MONTH * MONTHS
    assert sum(call.daily for month in months for call in month.calls) == told - months[-1].daily


async def test_every_message_of_the_year_is_proof_of_something_that_lives(year: Year):
    stage, _ = year
    living = (await read_stream(stage.app.db, STREAM)).memory.entries
    proven = {row for entry in living for proof in entry.proofs for row in proof}
    assert [(row,) for row in sorted(proven)] == await stage.rows("SELECT id FROM messages")
    assert await stage.rows("SELECT DISTINCT state FROM tasks") == [("done",)]

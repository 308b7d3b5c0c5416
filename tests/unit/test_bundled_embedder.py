"""The embedder that comes along: in a process of its own, which may die and is started again."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator

import numpy as np
import pytest

from bot.errors import ModelUnavailable
from bot.llm.bundled import BUNDLED_DIMENSIONS, BundledEmbedder
from bot.paths import ROOT


@pytest.fixture(scope="module")
async def embedder() -> AsyncIterator[BundledEmbedder]:
    opened = BundledEmbedder()
    try:
        yield opened
    finally:
        await opened.close()


async def test_no_process_is_started_before_the_first_text():
    opened = BundledEmbedder()
    assert await opened.dimensions() == BUNDLED_DIMENSIONS
    assert opened.process_id is None
    await opened.close()


async def test_what_means_alike_is_nearer_than_what_does_not(embedder: BundledEmbedder):
    dog, puppy, tax = await embedder.embed(["我养了一只小狗", "他家有条狗", "报税截止到月底"])
    assert dog @ puppy > dog @ tax + 0.1


async def test_vectors_do_not_depend_on_what_else_is_embedded(embedder: BundledEmbedder):
    texts = [f"第 {n} 件事：去湖边走了一圈" for n in range(40)]
    together = await embedder.embed(texts)
    (alone,) = await embedder.embed(texts[33:34])
    assert together.shape == (40, BUNDLED_DIMENSIONS)
    assert np.abs(together[33] - alone).max() < 1e-4


@pytest.mark.parametrize("text", ["\ud800坏的", "\x00\x01", "😀" * 400, "a" * 20_000, " "])
async def test_whatever_people_write_gets_a_vector(embedder: BundledEmbedder, text: str):
    (vector,) = await embedder.embed([text])
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-4)


async def test_callers_at_once_get_their_own_answers(embedder: BundledEmbedder):
    texts = [f"第 {n} 个人说的话" for n in range(12)]
    together = await embedder.embed(texts)
    apart = await asyncio.gather(*(embedder.embed([text]) for text in texts))
    for one, (other,) in zip(together, apart, strict=True):
        assert np.abs(one - other).max() < 1e-4


async def test_whoever_stops_waiting_takes_nobody_elses_answer(embedder: BundledEmbedder):
    (wanted,) = await embedder.embed(["湖边钓鱼"])
    impatient = asyncio.create_task(embedder.embed(["别的"] * 200))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    impatient.cancel()
    (again,) = await embedder.embed(["湖边钓鱼"])
    assert np.abs(wanted - again).max() < 1e-4


async def test_a_process_that_died_is_started_again(embedder: BundledEmbedder):
    (before,) = await embedder.embed(["湖边钓鱼"])
    dead = embedder.process_id
    assert dead is not None
    os.kill(dead, signal.SIGKILL)
    await asyncio.sleep(0.1)
    (after,) = await embedder.embed(["湖边钓鱼"])
    assert embedder.process_id != dead
    assert np.abs(before - after).max() < 1e-6


async def test_closing_ends_the_process():
    opened = BundledEmbedder()
    await opened.embed(["在"])
    process_id = opened.process_id
    await opened.close()
    assert opened.process_id is None
    assert process_id is not None
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


async def test_closing_does_not_wait_for_a_process_that_is_being_started():
    opened = BundledEmbedder()
    asking = asyncio.create_task(opened.embed(["在"]))
    while opened.process_id is None:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    await opened.close()
    with pytest.raises(ModelUnavailable):
        await asking


async def test_the_process_ends_with_its_input_as_when_the_program_is_killed():
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot.llm.encoder"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        cwd=ROOT,
    )
    assert process.stdin is not None
    process.stdin.close()
    async with asyncio.timeout(20):
        assert await process.wait() == 0

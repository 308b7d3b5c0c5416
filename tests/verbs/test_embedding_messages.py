"""Embedding in the background: everything gets its vector once, whatever comes in between."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest

from bot.embed import LOT_ROWS, SMALL_LOT_ROWS, embed_all
from bot.errors import (
    ContextTooLong,
    ModelAnswerInvalid,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from bot.llm.embedder import Vectors
from bot.llm.spelling import SpellingEmbedder
from bot.model import Chat, Usage
from bot.store.usage import add_usage
from tests.store.rows import said, store
from tests.verbs.stage import AT_BOT, BEAR, BOT, FISH, GROUP, NOON, Stage, open_stage

CHAT = Chat(str(BOT), "group", str(GROUP))
Opening = Callable[[SpellingEmbedder], AbstractAsyncContextManager[Stage]]


@pytest.fixture
def open_with(tmp_path: Path) -> Opening:
    """The program in one folder, with whatever embedder is set."""
    return lambda embedder: open_stage(tmp_path, embedder=embedder)


@pytest.fixture
async def stage(open_with: Opening) -> AsyncIterator[Stage]:
    async with open_with(SpellingEmbedder()) as opened:
        yield opened


async def embed(stage: Stage) -> int:
    """Let everything be embedded, however many pauses that takes."""
    task = stage.spawn(embed_all(stage.app))
    while not task.done():
        await stage.advance(1)
    return task.result()


async def talk(stage: Stage, *texts: str, by: int = FISH, first: int = 1) -> None:
    """Let messages be stored."""
    await store(
        stage.app.db,
        *(
            said(text, id=str(n), at=NOON + n, chat=CHAT, by=str(by))
            for n, text in enumerate(texts, start=first)
        ),
    )


async def embedded(stage: Stage) -> list[int]:
    return [row for (row,) in await stage.rows("SELECT message_id FROM message_vectors ORDER BY 1")]


def texts_of(stage: Stage) -> list[str]:
    embedder = stage.app.embedder
    assert isinstance(embedder, SpellingEmbedder)
    return embedder.texts


async def test_who_says_what_is_embedded(stage: Stage):
    await talk(stage, "湖边见")
    assert await embed(stage) == 1
    assert texts_of(stage) == [f"nick-{FISH}：湖边见"]


async def test_what_says_nothing_is_not(stage: Stage):
    await talk(stage, "！！！", "😀", "湖边见")
    assert await embed(stage) == 1
    assert await embedded(stage) == [3]
    assert await embed(stage) == 0


async def test_each_message_is_embedded_once(stage: Stage):
    await talk(stage, *(f"第{n}句" for n in range(2 * LOT_ROWS + 5)))
    assert await embed(stage) == 2 * LOT_ROWS + 5
    await talk(stage, "还有一句", first=1_000)
    assert await embed(stage) == 1
    assert len(texts_of(stage)) == len(set(texts_of(stage))) == 2 * LOT_ROWS + 6


async def test_a_backlog_goes_on_where_an_outage_stopped_it(stage: Stage, open_with: Opening):
    await talk(stage, *(f"第{n}句" for n in range(3 * LOT_ROWS)))
    embedder = stage.app.embedder
    assert isinstance(embedder, SpellingEmbedder)
    task = asyncio.create_task(embed_all(stage.app))
    await stage.clock.until_sleeping(1)
    embedder.fail(ModelUnavailable("down"))
    await stage.clock.advance(1)
    with pytest.raises(ModelUnavailable):
        await task
    assert len(await embedded(stage)) == LOT_ROWS
    async with open_with(SpellingEmbedder()) as again:
        assert await embed(again) == 2 * LOT_ROWS
        assert len(await embedded(again)) == 3 * LOT_ROWS


async def test_where_people_speak_all_the_time_little_is_embedded_at_a_time(stage: Stage):
    await talk(stage, *(f"第{n}句" for n in range(2 * LOT_ROWS)))
    stage.app.lull.broken()
    task = stage.spawn(embed_all(stage.app))
    for _ in range(60):
        stage.app.lull.broken()
        await stage.advance(0.02)
    assert len(await embedded(stage)) == SMALL_LOT_ROWS
    await stage.advance(0.3)
    assert len(await embedded(stage)) == 2 * SMALL_LOT_ROWS
    while not task.done():
        await stage.advance(1)
    assert task.result() == 2 * LOT_ROWS


class StuckEmbedder(SpellingEmbedder):
    """Never gives what it is asked for."""

    async def embed(self, texts: Sequence[str], chat: Chat | None = None) -> Vectors:
        self.texts += texts
        await asyncio.Event().wait()
        raise AssertionError("nothing sets it")


async def test_what_is_being_embedded_holds_up_neither_messages_nor_answers(open_with: Opening):
    embedder = StuckEmbedder()
    async with open_with(embedder) as stage:
        await talk(stage, *(f"第{n}句" for n in range(3 * LOT_ROWS)))
        task = asyncio.create_task(embed_all(stage.app))
        while not embedder.texts:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        stage.say(GROUP, FISH, "湖边见")
        stage.say(GROUP, BEAR, AT_BOT, " 在吗")
        await stage.advance(10)
        assert stage.texts() == ["好的"]
        assert await stage.rows("SELECT 1 FROM messages WHERE text = '湖边见'")
        assert not task.done()
        task.cancel()


@pytest.mark.parametrize("error", [ModelRefused("no"), ContextTooLong("no")])
async def test_a_text_that_is_refused_holds_up_no_other(
    stage: Stage, error: ModelRefused | ContextTooLong
):
    await talk(stage, *(f"第{n}句" for n in range(20)))
    embedder = stage.app.embedder
    assert isinstance(embedder, SpellingEmbedder)
    embedder.refused["第7句"] = error
    assert await embed(stage) == 19
    assert 8 not in await embedded(stage)
    assert await embed(stage) == 0


async def test_a_text_that_is_answered_with_garbage_is_passed_over_if_others_are_not(stage: Stage):
    await talk(stage, "一句", "坏的", "三句")
    embedder = stage.app.embedder
    assert isinstance(embedder, SpellingEmbedder)
    embedder.refused["坏的"] = ModelAnswerInvalid("garbage")
    assert await embed(stage) == 2
    assert await embedded(stage) == [1, 3]


@pytest.mark.parametrize(
    "error", [ModelRefused("no"), ContextTooLong("no"), ModelAnswerInvalid("garbage")]
)
async def test_an_embedder_that_takes_nothing_at_all_stops_the_run_and_nothing_is_passed_over(
    stage: Stage, error: ModelError
):
    await talk(stage, *(f"第{n}句" for n in range(20)))
    embedder = stage.app.embedder
    assert isinstance(embedder, SpellingEmbedder)
    embedder.refused[""] = error
    # It ends at once: no pause, which only the test could end, comes before it.
    task = asyncio.ensure_future(embed_all(stage.app))
    await asyncio.wait([task], timeout=5)
    assert isinstance(task.exception(), type(error))
    assert len(embedder.texts) <= 20 + 2
    del embedder.refused[""]
    assert await embed(stage) == 20


async def test_what_is_recalled_while_it_is_embedded_keeps_no_vector(stage: Stage):
    spoken = stage.say(GROUP, FISH, "我的门牌是八栋")
    await stage.settle()
    await embed(stage)
    assert len(await embedded(stage)) == 1
    stage.recall(spoken)
    await stage.settle()
    assert await embedded(stage) == []
    assert await embed(stage) == 0


async def test_another_embedder_has_everything_embedded_anew(open_with: Opening):
    async with open_with(SpellingEmbedder("one")) as first:
        await talk(first, "湖边见", "好的好的")
        await embed(first)
    async with open_with(SpellingEmbedder("two", dimensions=32)) as second:
        assert await embed(second) == 2
        rows = await second.rows(
            "SELECT DISTINCT embedder FROM message_vectors JOIN spaces AS s ON s.id = space_id"
        )
        assert rows == [("two",)]


async def test_without_an_embedder_nothing_is_done(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        await talk(stage, "湖边见")
        assert stage.app.embedder is None
        assert await embed_all(stage.app) == 0


# --- somebody else's machine ------------------------------------------------------------------


@pytest.fixture
async def remote(open_with: Opening) -> AsyncIterator[Stage]:
    async with open_with(SpellingEmbedder(is_remote=True)) as opened:
        yield opened


async def test_numbers_and_passwords_are_masked_where_texts_leave(remote: Stage):
    await talk(remote, "我的手机是 13800138000")
    await embed(remote)
    assert texts_of(remote) == [f"nick-{FISH}：我的手机是 [手机号]"]


async def test_chats_that_are_switched_off_are_not_sent(remote: Stage):
    await talk(remote, "湖边见")
    async with remote.app.db.transaction() as tx:
        await tx.execute_fetchall("UPDATE chats SET access = 'disabled'")
    assert await embed(remote) == 0
    assert texts_of(remote) == []


async def test_a_spent_budget_waits_for_the_next_day(remote: Stage):
    await remote.set(dailyTokenBudget={"embed": 1_000})
    await talk(remote, "湖边见", by=BEAR)
    spent = partial(Usage, "embed", "vectors", "there", duration_ms=5, cached_tokens=0)
    usage = spent(at=remote.now, prompt_tokens=1_000, completion_tokens=0, ok=True)
    await add_usage(remote.app.db, usage)
    assert await embed(remote) == 0
    await remote.advance(86_400)
    assert await embed(remote) == 1

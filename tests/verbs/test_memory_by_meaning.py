"""memory_search by meaning: what is alike without a common word, and as far as a turn may read."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from bot.embed import ENTRY_LOT_ROWS, LOT_ROWS, embed_all
from bot.errors import ModelRefused, ModelUnavailable
from bot.llm.embedder import Vectors, unit_vectors
from bot.llm.spelling import SpellingEmbedder
from bot.memory.policy import PRESETS
from bot.model import Chat, Stream, Usage
from bot.reindex import reindex
from bot.store.revisions import undo_revision
from bot.store.usage import add_usage
from tests.verbs.remembering import OF_FISH, OF_GROUP, change, compress_now, held, remember, well
from tests.verbs.stage import FISH, OTHER_GROUP, Stage, open_stage
from tests.verbs.test_leaks import (
    IN_PACKS,
    PACKS_ACROSS,
    PEOPLE,
    PLACES,
    REMEMBERED,
    TURNS,
    Turn,
    answer,
    mark,
    marks,
    marks_in,
    remember_everything,
)
from tests.verbs.tooling import HERE, output, spoken, stored, turn, use

NOTHING = "没有找到。"
FISHING = "鱼钓边湖在欢喜"
"""The characters of 喜欢在湖边钓鱼, and none of its words."""

Opening = Callable[..., AbstractAsyncContextManager[Stage]]


@pytest.fixture
def open_with(tmp_path: Path) -> Opening:
    """The program in one folder, with whatever embedder is set."""
    return lambda embedder: open_stage(tmp_path, embedder=embedder)


@pytest.fixture
async def stage(open_with: Opening) -> AsyncIterator[Stage]:
    async with open_with(SpellingEmbedder()) as opened:
        yield opened


def spelling(stage: Stage) -> SpellingEmbedder:
    assert isinstance(stage.app.embedder, SpellingEmbedder)
    return stage.app.embedder


async def embed(stage: Stage) -> int:
    """Let everything be embedded, however many pauses that takes."""
    task = stage.spawn(embed_all(stage.app))
    while not task.done():
        await stage.advance(1)
    return task.result()


async def knows(stage: Stage, stream: Stream, *texts: str) -> list[int]:
    """Let a stream hold entries, each resting on a message of its own; return those."""
    rows = await stored(stage, *(spoken(stage, "说", stream.origin) for _ in texts))
    for text, row in zip(texts, rows, strict=True):
        await change(
            stage, stream, lambda w, t=text, r=row: w.add("profile", t, [[r]], source_task="group")
        )
    return rows


async def ask(stage: Stage, query: str, chat: Chat = HERE, by: int = FISH) -> str:
    return await use(await turn(stage, "问一下", chat, by), "memory_search", query=query)


async def embedded(stage: Stage) -> list[str]:
    rows = await stage.rows(
        "SELECT e.text FROM entry_vectors AS v JOIN entries AS e ON e.id = v.entry_id"
        " WHERE v.vector IS NOT NULL ORDER BY e.id"
    )
    return [text for (text,) in rows]


# --- what is found ----------------------------------------------------------------------------


async def test_what_is_alike_is_found_without_a_common_word(stage: Stage):
    [row] = await knows(stage, OF_FISH, "喜欢在湖边钓鱼")
    await knows(stage, OF_GROUP, "周会挪到星期三")
    await embed(stage)
    told = await output(await turn(stage), "memory_search", query=FISHING)
    assert "喜欢在湖边钓鱼" in told.text
    assert "周会" not in told.text
    assert told.message_ids == (row,)


async def test_what_has_nothing_to_do_with_the_question_is_not_found(stage: Stage):
    await knows(stage, OF_FISH, "喜欢在湖边钓鱼", "对花生过敏", "养了一只猫")
    await embed(stage)
    assert await ask(stage, "qwxz") == NOTHING
    # As little if there is enough to see what is usual.
    await knows(stage, OF_GROUP, *(f"{chr(0x5000 + 7 * n)}{chr(0x6000 + 5 * n)}" for n in range(9)))
    await embed(stage)
    assert await ask(stage, "qwxz") == NOTHING


async def test_words_find_what_has_no_vector_yet(stage: Stage):
    await knows(stage, OF_FISH, "喜欢在湖边钓鱼")
    await embed(stage)
    await knows(stage, OF_FISH, "周末去湖边野餐")
    told = await ask(stage, "湖边")
    assert "钓鱼" in told
    assert "野餐" in told


@pytest.mark.parametrize("name", PRESETS)
async def test_what_is_old_is_found_by_words_alone_or_by_meaning_alone(stage: Stage, name: str):
    await stage.set(memoryPolicy=name)
    await knows(stage, OF_FISH, "喜欢在湖边钓鱼")
    await embed(stage)
    await stage.advance(400 * 86_400)
    assert "喜欢在湖边钓鱼" in await ask(stage, FISHING)
    assert "喜欢在湖边钓鱼" in await ask(stage, "钓鱼")


async def test_what_words_find_is_not_hidden_because_it_means_something_else(stage: Stage):
    await knows(stage, OF_FISH, "爱吃面包", "会修摩托车")
    await embed(stage)
    await stage.advance(400 * 86_400)
    told = await ask(stage, f"面包 摩托 {'x' * 100}")
    assert "爱吃面包" in told
    assert "会修摩托车" in told


async def test_what_fits_by_words_and_meaning_comes_before_what_fits_by_one(stage: Stage):
    await knows(
        stage, OF_FISH, "湖边钓鱼", "鱼钓边湖", "湖边钓鱼这件事和别的许多东西一起说起过一次"
    )
    await embed(stage)
    told = (await ask(stage, "湖边钓鱼")).splitlines()
    assert told[0].endswith("湖边钓鱼")
    assert len(told) == 3


async def test_what_the_prompt_shows_is_not_found_again(stage: Stage):
    await knows(stage, OF_FISH, "喜欢在湖边钓鱼")
    await embed(stage)
    stage.say(int(HERE.id), FISH, "小忆在吗")
    await stage.advance(20)
    assert await ask(stage, FISHING) == NOTHING


async def test_the_pack_on_the_way_of_a_message_asks_no_embedder(stage: Stage):
    await knows(stage, OF_FISH, "喜欢在湖边钓鱼")
    await embed(stage)
    before = len(spelling(stage).texts)
    stage.say(int(HERE.id), FISH, "小忆", FISHING)
    await stage.advance(20)
    assert stage.model.requests
    assert len(spelling(stage).texts) == before


# --- without vectors --------------------------------------------------------------------------


async def test_without_an_embedder_words_are_searched(open_with: Opening):
    async with open_with(None) as stage:
        await knows(stage, OF_FISH, "喜欢在湖边钓鱼")
        assert "喜欢在湖边钓鱼" in await ask(stage, "钓鱼")
        assert await ask(stage, FISHING) == NOTHING


async def test_an_embedder_that_fails_costs_no_answer(stage: Stage):
    await knows(stage, OF_FISH, "喜欢在湖边钓鱼")
    await embed(stage)
    for error in (ModelUnavailable("down"), ModelRefused("no")):
        spelling(stage).fail(error)
        assert "喜欢在湖边钓鱼" in await ask(stage, "钓鱼")
        spelling(stage).fail(error)
        assert await ask(stage, FISHING) == NOTHING


class Idle(SpellingEmbedder):
    """An embedder that takes longer for questions than anybody waits."""

    async def embed(self, texts: Sequence[str], chat: Chat | None = None) -> Vectors:
        if chat is not None:
            await asyncio.sleep(60)
        return await super().embed(texts, chat)


async def test_an_embedder_that_takes_too_long_is_not_waited_for(open_with: Opening):
    async with open_with(Idle()) as stage:
        await knows(stage, OF_FISH, "喜欢在湖边钓鱼")
        await embed(stage)
        assert "喜欢在湖边钓鱼" in await ask(stage, "钓鱼")


async def test_vectors_of_another_embedder_are_made_anew_before_they_are_compared(
    open_with: Opening,
):
    async with open_with(SpellingEmbedder("one")) as first:
        await knows(first, OF_FISH, "喜欢在湖边钓鱼")
        await embed(first)
    async with open_with(SpellingEmbedder("two", dimensions=32)) as second:
        assert await ask(second, FISHING) == NOTHING
        await embed(second)
        assert "喜欢在湖边钓鱼" in await ask(second, FISHING)
        assert "喜欢在湖边钓鱼" in spelling(second).texts


# --- in the background ------------------------------------------------------------------------


async def test_entries_come_behind_new_messages_and_before_old_ones(stage: Stage):
    await stored(stage, *(spoken(stage, f"旧话{n}") for n in range(2 * LOT_ROWS)))
    await knows(stage, OF_GROUP, "一件事")
    task = asyncio.create_task(embed_all(stage.app))
    await stage.clock.until_sleeping(1)
    await stored(stage, spoken(stage, "一句新话"))
    while not task.done():
        await stage.advance(1)
    given = spelling(stage).texts
    told = [given.index(text) for text in ("一件事", f"nick-{FISH}：一句新话")]
    old = [given.index(text) for text in given if "旧话" in text]
    assert told[0] < told[1] < min(old)


async def test_each_entry_is_embedded_once(stage: Stage):
    texts = [f"第{n}件事" for n in range(2 * ENTRY_LOT_ROWS + 3)]
    await remember(stage, OF_GROUP, len(texts), text="第{}件事")
    await embed(stage)
    assert len(await embedded(stage)) == len(texts)
    assert await embed(stage) == 0
    given = [text for text in spelling(stage).texts if text.startswith("第")]
    assert len(given) == len(set(given)) == len(texts)


async def test_what_says_nothing_or_is_refused_holds_up_no_other(stage: Stage):
    spelling(stage).refused["坏的"] = ModelRefused("no")
    await knows(stage, OF_GROUP, "一件事", "！！！", "坏的事", "三件事")
    await embed(stage)
    assert await embedded(stage) == ["一件事", "三件事"]
    assert await embed(stage) == 0


@pytest.fixture
async def remote(open_with: Opening) -> AsyncIterator[Stage]:
    async with open_with(SpellingEmbedder(is_remote=True)) as opened:
        yield opened


async def test_numbers_are_masked_where_entries_and_questions_leave(remote: Stage):
    await knows(remote, OF_FISH, "手机是 13800138000", "长" * 494 + " 13800138000")
    await embed(remote)
    await ask(remote, "谁的手机是 13800138000")
    given = "\n".join(spelling(remote).texts)
    assert "手机是 [手机号]" in given
    assert "谁的手机是 [手机号]" in given
    assert "138" not in given


async def test_entries_of_chats_that_are_switched_off_are_not_sent(remote: Stage):
    there = Stream(OF_FISH.scope, Chat(HERE.bot_id, "group", str(OTHER_GROUP)))
    await knows(remote, OF_FISH, "这里的事")
    await knows(remote, there, "那里的事")
    async with remote.app.db.transaction() as tx:
        await tx.execute_fetchall(
            "UPDATE chats SET access = 'disabled' WHERE peer_id = ?", (str(OTHER_GROUP),)
        )
    await embed(remote)
    assert "这里的事" in spelling(remote).texts
    assert "那里的事" not in spelling(remote).texts


async def test_a_spent_budget_has_entries_wait_and_questions_go_by_words(remote: Stage):
    await remote.set(dailyTokenBudget={"embed": 1_000})
    await knows(remote, OF_FISH, "喜欢在湖边钓鱼")
    usage = Usage("embed", "vectors", "there", remote.now, 5, 1_000, 0, 0, True)
    await add_usage(remote.app.db, usage)
    assert await embed(remote) == 0
    assert "喜欢在湖边钓鱼" in await ask(remote, "钓鱼")
    assert spelling(remote).texts == []


# --- as far as a turn may read ----------------------------------------------------------------


class Anagrams(SpellingEmbedder):
    """An embedder by which texts of the same letters are one, and all others as good as unlike."""

    async def embed(self, texts: Sequence[str], chat: Chat | None = None) -> Vectors:
        return unit_vectors([self._letters(text) for text in texts], "anagrams")

    async def dimensions(self) -> int:
        return 256

    def _letters(self, text: str) -> list[float]:
        letters = "".join(sorted(scrambled(text)))
        return np.random.RandomState(crc32(letters.encode())).standard_normal(256).tolist()


def scrambled(text: str) -> str:
    """Return the characters of a text, and none of its words."""
    return "".join(reversed(text)).replace("·", "").replace(" ", "")


def scrambled_marks() -> list[str]:
    return [
        scrambled(mark(origin, document))
        for origin, documents in REMEMBERED.items()
        for document in documents.split()
    ]


@pytest.fixture
async def anagrams(open_with: Opening) -> AsyncIterator[Stage]:
    async with open_with(Anagrams("anagrams")) as opened:
        yield opened


@pytest.mark.parametrize("one", TURNS, ids=str)
@pytest.mark.parametrize("for_all", [True, False], ids=["all-across", "none-across"])
@pytest.mark.parametrize("for_oneself", [True, False], ids=["own-across", "own-not-across"])
async def test_meaning_finds_what_the_turn_may_read_and_nothing_else(
    anagrams: Stage, one: Turn, for_all: bool, for_oneself: bool
):
    stage = anagrams
    await remember_everything(stage)
    await stage.set(memoryMemberCrossGroup=for_all)
    if not for_oneself:
        assert "跨群：关" in await answer(stage, one, "/跨群 关")
    await embed(stage)
    assert len(await embedded(stage)) == sum(
        len(documents.replace("summary ", "").split()) for documents in REMEMBERED.values()
    )
    asker = await turn(stage, "问一下", PLACES[one.place], PEOPLE[one.speaker])
    found = "".join([await use(asker, "memory_search", query=q) for q in scrambled_marks()])
    expected = marks(IN_PACKS[one])
    if for_all and for_oneself:
        expected |= marks(PACKS_ACROSS[one])
    assert marks_in(found) == expected


# --- what is erased ---------------------------------------------------------------------------


async def test_what_is_forgotten_is_found_no_more(stage: Stage):
    await knows(stage, OF_FISH, "喜欢在湖边钓鱼")
    await embed(stage)
    asker = await turn(stage)
    assert "喜欢在湖边钓鱼" in await use(asker, "memory_search", query=FISHING)
    speaker = Turn("group 1", "A")
    assert "忘记了" in await answer(stage, speaker, "/忘记 我#0001")
    assert await embedded(stage) == []
    assert await ask(stage, FISHING) == NOTHING


async def test_what_was_compressed_is_found_again_once_that_is_undone(stage: Stage):
    await stage.set(memoryGroupKeepRecent=1)
    told = await remember(stage, OF_GROUP, 8, text="第 {} 件事：去湖边走了一圈", a_day=1)
    stage.model.enqueue(well, purpose="compress.group")
    await embed(stage)
    await compress_now(stage, OF_GROUP, "command")
    await embed(stage)
    [[has_text]] = await stage.rows("SELECT count(*) FROM entries WHERE text <> ''")
    assert len(await embedded(stage)) == has_text > len(told.numbers)
    found = await ask(stage, "圈一了走边湖去")
    assert "- [memory" in found
    assert found.count("- [daily") == len(await held(stage, OF_GROUP, "daily")) < 8
    [[revision]] = await stage.rows("SELECT max(id) FROM revisions")
    async with stage.app.db.transaction() as tx:
        assert await undo_revision(tx, revision, by="test", at=stage.now)
    found = await ask(stage, "圈一了走边湖去")
    assert "- [memory" not in found
    assert found.count("- [daily") == 8


async def test_reindexing_has_entries_embedded_anew(stage: Stage):
    await knows(stage, OF_FISH, "喜欢在湖边钓鱼")
    await embed(stage)
    await reindex(stage.app.db, stage.app.patience, lambda *_: None)
    assert await embedded(stage) == []
    assert await ask(stage, FISHING) == NOTHING
    assert "喜欢在湖边钓鱼" in await ask(stage, "钓鱼")
    await embed(stage)
    assert "喜欢在湖边钓鱼" in await ask(stage, FISHING)

"""Finding messages: by words and meaning, in this chat alone, with what stands around them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.commands.search import BY_WORDS
from bot.embed import embed_all
from bot.errors import ModelUnavailable
from bot.llm.spelling import SpellingEmbedder
from bot.model import Chat
from bot.search_messages import Found, latest_messages, messages_around, search_messages
from bot.store.message_search import Window
from bot.store.messages import set_apart
from tests.store.rows import own, said, store
from tests.verbs.stage import BEAR, BOT, CAT, FISH, GROUP, NOON, OTHER_GROUP, Stage, open_stage
from tests.verbs.test_commands import answer_to

CHAT = Chat(str(BOT), "group", str(GROUP))
THERE = Chat(str(BOT), "group", str(OTHER_GROUP))
PRIVATE = Chat(str(BOT), "private", str(FISH))
MINUTE = 60_000


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with open_stage(tmp_path, embedder=SpellingEmbedder(dimensions=256)) as opened:
        yield opened


async def talk(
    stage: Stage,
    *lines: tuple[int, str],
    chat: Chat = CHAT,
    at: int = NOON,
    gap: int = 1_000,
    **fields: Any,
) -> list[int]:
    """Let people say something, and return the rows of it."""
    (count,) = (await stage.rows("SELECT count(*) FROM messages"))[0]
    messages = []
    for n, (by, text) in enumerate(lines, start=1):
        given = {"id": f"m{count + n}", "at": at + n * gap, "chat": chat, **fields}
        messages.append(own(text, **given) if by == BOT else said(text, by=str(by), **given))
    return [receipt.row_id for receipt in await store(stage.app.db, *messages)]


async def embed(stage: Stage) -> None:
    task = stage.spawn(embed_all(stage.app))
    while not task.done():
        await stage.advance(1)


async def find(
    stage: Stage,
    question: str,
    *,
    chat: Chat = CHAT,
    asker: int | str = "",
    limit: int = 8,
    **window: Any,
) -> Found:
    return await search_messages(stage.app, chat, str(asker), question, Window(**window), limit)


def rows(found: Found) -> list[int]:
    return [hit.stored.row_id for hit in found.hits]


async def test_what_is_alike_is_found_without_a_common_word_in_a_row(stage: Stage):
    await talk(stage, (FISH, "晚饭吃面"), (BEAR, "周末钓鱼去湖"), gap=60 * MINUTE)
    await embed(stage)
    found = await find(stage, "湖里钓到鱼了吗")
    assert rows(found)[0] == 2
    assert not found.is_lexical_only
    told = await answer_to(stage, CAT, "/搜 湖里钓到鱼了吗")
    assert "周末钓鱼去湖" in told
    assert BY_WORDS not in told


async def test_the_answer_to_a_question_is_found_by_the_question(stage: Stage):
    asked = await talk(stage, (FISH, "水库那次在哪里集合"), (BEAR, "东门加油站"))
    await talk(stage, *((CAT, f"今天第{n}件小事") for n in range(10)), at=NOON + 90 * MINUTE)
    await embed(stage)
    assert rows(await find(stage, "水库在哪里集合"))[:2] == asked


async def test_nothing_is_found_where_nothing_bears_on_the_question(stage: Stage):
    await talk(stage, (FISH, "hello"), (BEAR, "ok"))
    await embed(stage)
    assert (await find(stage, "钢琴")).hits == []


async def test_a_chat_that_nobody_knows_has_nothing(stage: Stage):
    assert (await find(stage, "钢琴", chat=THERE)).hits == []


@pytest.mark.parametrize("question", ["", "  ", "？？？", "\x00", "\ud800", "a" * 100_000])
async def test_whatever_is_asked_raises_nothing(stage: Stage, question: str):
    await talk(stage, (FISH, "湖边见"))
    await embed(stage)
    assert isinstance(await find(stage, question), Found)


# --- what may be found ------------------------------------------------------------------------


async def test_only_this_chat_is_looked_into(stage: Stage):
    here = await talk(stage, (FISH, "我家门牌是八栋"))
    await talk(stage, (FISH, "我家门牌是八栋二单元"), chat=THERE)
    await talk(stage, (FISH, "我家门牌是八栋三单元"), chat=PRIVATE)
    await embed(stage)
    assert rows(await find(stage, "谁家门牌是八栋")) == here


async def test_recalled_and_forgotten_messages_are_not_found_though_they_were_embedded(
    stage: Stage,
):
    spoken = stage.say(GROUP, FISH, "我的门牌是八栋")
    await stage.settle()
    (forgotten,) = await talk(stage, (FISH, "门牌八栋是我的"), at=NOON + MINUTE)
    await embed(stage)
    assert len(rows(await find(stage, "谁的门牌是八栋"))) == 2
    stage.recall(spoken)
    await stage.settle()
    async with stage.app.db.transaction() as tx:
        await set_apart(tx, forgotten, stage.now)
    assert rows(await find(stage, "谁的门牌是八栋")) == []


async def test_what_the_prompt_shows_already_is_neither_found_nor_context(stage: Stage):
    first, second = await talk(stage, (FISH, "周末去湖边钓鱼"), (FISH, "湖边钓鱼要带伞"))
    await embed(stage)
    found = await find(stage, "湖边钓鱼", hidden=frozenset({first}))
    assert rows(found) == [second]
    assert found.hits[0].context == ()


async def test_sender_and_time_bound_what_is_found(stage: Stage):
    lines = ((FISH, "去湖边钓鱼"), (BEAR, "湖边钓鱼好"), (FISH, "湖边钓鱼累"))
    one, two, three = await talk(stage, *lines, gap=MINUTE)
    await embed(stage)
    assert set(rows(await find(stage, "湖边钓鱼", sender_id=str(FISH)))) == {one, three}
    assert rows(await find(stage, "湖边钓鱼", sender_id="30099")) == []
    since = NOON + 2 * MINUTE
    assert set(rows(await find(stage, "湖边钓鱼", since=since))) == {two, three}
    assert rows(await find(stage, "湖边钓鱼", until=since)) == [one]


async def test_a_reset_hides_what_was_before_unless_a_date_is_given(stage: Stage):
    one, two = await talk(stage, (FISH, "去湖边钓鱼"), (FISH, "湖边钓鱼累"), gap=MINUTE)
    await embed(stage)
    reset = NOON + MINUTE
    found = await find(stage, "湖边钓鱼", not_before=reset)
    assert rows(found) == [two]
    assert found.hits[0].context == ()
    assert set(rows(await find(stage, "湖边钓鱼", not_before=reset, since=NOON))) == {one, two}


# --- whose words ------------------------------------------------------------------------------


async def test_in_a_group_of_fifty_who_asks_about_themself_finds_their_own_words(stage: Stage):
    people = [30_101 + n for n in range(50)]
    lines = [(who, "我喜欢喝乌龙茶" if n % 2 else "我喜欢喝冰美式") for n, who in enumerate(people)]
    own_rows = await talk(stage, *lines, gap=30 * MINUTE)
    await embed(stage)
    for n in (0, 7, 31):
        found = await find(stage, "我喜欢喝什么？", asker=people[n])
        assert rows(found)[0] == own_rows[n]


async def test_a_question_about_somebody_else_finds_theirs_whoever_asks(stage: Stage):
    lines = [(30_101 + n, "我喜欢喝冰美式") for n in range(20)]
    await talk(stage, *lines, gap=30 * MINUTE)
    (wanted,) = await talk(stage, (CAT, "大熊喜欢喝豆浆，从小就喝"), at=NOON + 10**9)
    await embed(stage)
    for asker in ("", 30_105):
        assert rows(await find(stage, "大熊喜欢喝什么", asker=asker))[0] == wanted


async def test_the_askers_own_words_are_found_behind_any_number_of_others_like_them(stage: Stage):
    people = [30_101 + n % 50 for n in range(900)]
    await talk(stage, *((who, "我喜欢喝什么都行") for who in people), gap=20 * MINUTE)
    (wanted,) = await talk(stage, (CAT, "我平时就喝点普洱"), at=NOON - 10**9)
    await embed(stage)
    assert wanted in rows(await find(stage, "我喜欢喝什么？", asker=CAT))
    assert wanted not in rows(await find(stage, "我喜欢喝什么？", asker=""))


@pytest.mark.parametrize(
    "question",
    [
        "大熊喜欢喝什么",
        "我想知道大熊喜欢喝什么",
        "帮我查一下大熊喜欢喝什么",
        "告诉我大熊喜欢喝什么",
        "大熊喜欢喝什么，我忘了",
    ],
)
async def test_whoever_asks_about_somebody_else_finds_the_same(stage: Stage, question: str):
    lines = ((FISH, "大熊喜欢喝豆浆"), (BEAR, "大熊爱喝豆浆"), (CAT, "大熊喜欢喝咖啡"))
    await talk(stage, *lines, at=NOON - 10**9, gap=60 * MINUTE)
    await embed(stage)
    found = rows(await find(stage, question))
    assert len(found) == 3
    for asker in (FISH, BEAR, CAT):
        assert rows(await find(stage, question, asker=asker)) == found


# --- context ----------------------------------------------------------------------------------


async def test_in_private_a_hit_comes_with_two_before_and_one_behind(stage: Stage):
    lines = ((FISH, "早"), (BOT, "早呀"), (FISH, "我对花生过敏"), (BOT, "记下了"), (FISH, "谢谢"))
    one, two, three, four, _ = await talk(stage, *lines, chat=PRIVATE)
    await embed(stage)
    (hit, *_) = (await find(stage, "花生过敏", chat=PRIVATE)).hits
    assert hit.stored.row_id == three
    assert [stored.row_id for stored in hit.context] == [one, two, four]


async def test_in_a_group_a_hit_comes_with_its_thread_and_its_speaker(stage: Stage):
    (asked,) = await talk(stage, (BEAR, "谁会修单车呀"))
    (hit_row,) = await talk(
        stage, (FISH, "顺风车行的方老板手艺好"), at=NOON + 40 * MINUTE, reply_to="m1"
    )
    rest = await talk(
        stage,
        (CAT, "今晚吃什么"),
        (FISH, "在菜市场后门"),
        at=NOON + 40 * MINUTE + 5_000,
    )
    await embed(stage)
    (hit, *_) = (await find(stage, "顺风车行方老板")).hits
    assert hit.stored.row_id == hit_row
    assert [stored.row_id for stored in hit.context] == [asked, rest[1]]


# --- vectors that are not there ---------------------------------------------------------------


async def test_without_an_embedder_words_are_searched_and_it_is_said(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        (row,) = await talk(stage, (FISH, "周末去湖边钓鱼"))
        found = await find(stage, "湖边钓鱼")
        assert (rows(found), found.is_lexical_only) == ([row], True)


async def test_before_anything_is_embedded_words_are_searched_and_it_is_said(stage: Stage):
    (row,) = await talk(stage, (FISH, "周末去湖边钓鱼"))
    found = await find(stage, "湖边钓鱼")
    assert (rows(found), found.is_lexical_only) == ([row], True)


async def test_an_embedder_that_fails_costs_no_answer(stage: Stage):
    (row,) = await talk(stage, (FISH, "周末去湖边钓鱼"))
    await embed(stage)
    embedder = stage.app.embedder
    assert isinstance(embedder, SpellingEmbedder)
    embedder.fail(ModelUnavailable("down"))
    found = await find(stage, "湖边钓鱼")
    assert (rows(found), found.is_lexical_only) == ([row], True)
    assert not (await find(stage, "湖边钓鱼")).is_lexical_only


async def test_vectors_of_another_embedder_are_not_compared(tmp_path: Path):
    async with open_stage(tmp_path, embedder=SpellingEmbedder("one")) as first:
        (row,) = await talk(first, (FISH, "周末去湖边钓鱼"))
        await embed(first)
    async with open_stage(tmp_path, embedder=SpellingEmbedder("two")) as second:
        found = await find(second, "湖边钓鱼")
        assert (rows(found), found.is_lexical_only) == ([row], True)
        await embed(second)
        assert not (await find(second, "湖边钓鱼")).is_lexical_only


async def test_what_is_said_meanwhile_is_found_with_the_next_question(stage: Stage):
    await talk(stage, (FISH, "周末去湖边钓鱼"))
    await embed(stage)
    await find(stage, "湖边钓鱼")
    (later,) = await talk(stage, (BEAR, "钓湖鱼记得带伞"), at=NOON + 60 * MINUTE)
    await embed(stage)
    assert later in rows(await find(stage, "湖里钓鱼"))


# --- without a question -----------------------------------------------------------------------


async def test_the_latest_messages_come_newest_first_within_the_window(stage: Stage):
    lines = ((FISH, "一"), (BEAR, "二"), (FISH, "三"), (FISH, "四"))
    one, two, three, four = await talk(stage, *lines, gap=MINUTE)
    await talk(stage, (FISH, "别处"), chat=THERE)

    async def latest(limit: int = 9, **window: Any) -> list[int]:
        found = await latest_messages(stage.app, CHAT, Window(**window), limit)
        return [stored.row_id for stored in found]

    assert await latest() == [four, three, two, one]
    assert await latest(2) == [four, three]
    assert await latest(sender_id=str(FISH), hidden=frozenset({four})) == [three, one]
    assert await latest(not_before=NOON + 2 * MINUTE) == [four, three]
    assert await latest_messages(stage.app, PRIVATE, Window(), 9) == []


async def test_around_a_message_stands_what_was_said_before_and_behind(stage: Stage):
    told = await talk(stage, *((FISH, f"第{n}句") for n in range(20)))
    (elsewhere,) = await talk(stage, (FISH, "别处"), chat=THERE)

    async def around(row: int, **window: Any) -> list[int]:
        window_given = Window(**window)
        found = await messages_around(stage.app, CHAT, row, window_given, back=2, ahead=1)
        return [stored.row_id for stored in found]

    assert await around(told[5]) == told[3:7]
    assert await around(told[5], hidden=frozenset({told[4]})) == [told[3], told[5], told[6]]
    assert await around(told[5], hidden=frozenset({told[5]})) == []
    assert await around(told[5], not_before=NOON + 10_000) == []
    assert await around(elsewhere) == []
    assert await around(10**9) == []

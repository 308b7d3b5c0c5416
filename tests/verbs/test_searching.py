"""Searching by command, and the index in the background: in a running program."""

import pytest

from bot.commands.search import WORDS_ALONE
from bot.reindex import index_older, reindex, scrub_messages
from bot.simulate import Person, Utterance, segments
from bot.store.message_index import clear_message_index, messages_left
from tests.store.rows import indexed
from tests.verbs.stage import BEAR, CAT, FISH, GROUP, NOON, OPERATOR, OTHER_GROUP, Stage
from tests.verbs.test_commands import answer_to, private_answer_to

NOTHING = f"没有找到。(Nothing was found.)\n{WORDS_ALONE}"


async def talk(stage: Stage, *said: tuple[int, str], chat: int = GROUP) -> None:
    """Let people say something, a minute apart."""
    await stage.set(replyMode="silent")
    for who, text in said:
        stage.say(chat, who, text)
        await stage.advance(60)


async def test_everybody_finds_what_was_said_in_the_group_newest_first(stage: Stage):
    await talk(stage, (FISH, "我对花生过敏"), (BEAR, "那就不买花生了"), (CAT, "喵"))
    assert await answer_to(stage, CAT, "/搜 花生") == (
        "2026-07-29 12:01 大熊：那就不买花生了\n2026-07-29 12:00 小鱼：我对花生过敏"
    )


async def test_a_search_is_of_this_chat_alone_whoever_asks(stage: Stage):
    await talk(stage, (FISH, "花生 在这里"))
    await talk(stage, (FISH, "花生 在那里"), chat=OTHER_GROUP)
    stage.whisper(FISH, "花生 私下")
    await stage.advance(60)
    for who in (FISH, BEAR, OPERATOR):
        assert "在这里" in await answer_to(stage, who, "/搜 花生")
        assert "在那里" not in await answer_to(stage, who, "/搜 花生")
    for text in ("在这里", "在那里"):
        assert text not in await private_answer_to(stage, FISH, "/搜 花生")
        assert text not in await private_answer_to(stage, OPERATOR, "/搜 花生")
    assert "私下" in await private_answer_to(stage, FISH, "/搜 花生")
    assert await private_answer_to(stage, BEAR, "/搜 花生") == NOTHING


async def test_commands_and_their_answers_are_not_found(stage: Stage):
    await talk(stage, (FISH, "花生"))
    for _ in range(2):
        assert (await answer_to(stage, BEAR, "/搜 花生")).count("花生") == 1
    assert await answer_to(stage, BEAR, "/搜 搜") == NOTHING


async def test_what_is_recalled_is_not_found(stage: Stage):
    await talk(stage, (FISH, "先说点别的"))
    spoken = stage.say(GROUP, FISH, "我对花生过敏")
    await stage.advance(60)
    stage.recall(spoken)
    await stage.advance(60)
    assert await answer_to(stage, BEAR, "/搜 花生") == NOTHING


async def test_one_person_is_named_by_mention_by_id_or_by_name(stage: Stage):
    await talk(stage, (FISH, "花生一"), (BEAR, "花生二"))
    for who in (f"@{BEAR}", "@大熊"):
        assert await answer_to(stage, CAT, f"/搜 花生 {who}") == "2026-07-29 12:01 大熊：花生二"
    assert "请直接 @ 对方" in await answer_to(stage, CAT, "/搜 花生 @谁也不是")
    assert await answer_to(stage, CAT, f"/搜 花生 @{OPERATOR}") == NOTHING


async def test_a_name_with_spaces_is_typed_in_quotes(stage: Stage):
    spaced = Person(CAT, "Big  Cat 🐱")
    stage.say(GROUP, FISH, "花生一")
    stage.say(GROUP, spaced, "花生二")
    await stage.advance(10)
    for name in ('@"Big  Cat 🐱"', "@“big  cat 🐱”"):
        assert "花生二" in await answer_to(stage, FISH, f"/搜 花生 {name}")
    assert "请直接 @ 对方" in await answer_to(stage, FISH, '/搜 花生 @"Big Dog"')
    assert "用法" in await answer_to(stage, FISH, '/搜 @"Big  Cat 🐱"')


async def test_a_mention_is_a_person_and_a_number_is_a_word(stage: Stage):
    await talk(stage, (FISH, f"花生 {BEAR}"), (BEAR, "花生"))
    assert "小鱼" in await answer_to(stage, CAT, f"/搜 花生 {BEAR}")
    count = len(stage.sent)
    stage.say(GROUP, CAT, "/搜 花生", segments.at(BEAR))
    await stage.advance(10)
    assert stage.texts()[count:] == ["2026-07-29 12:01 大熊：花生"]


async def test_days_bound_what_is_found_both_included(stage: Stage):
    day = 86_400
    await talk(stage, (FISH, "花生一"))
    await stage.advance(day)
    await talk(stage, (FISH, "花生二"))
    await stage.advance(day)
    await talk(stage, (FISH, "花生三"))
    assert "花生二" in await answer_to(stage, CAT, "/搜 花生 自 2026-07-30 至 7月30日")
    found = await answer_to(stage, CAT, "/搜 花生 自 2026-07-30")
    assert ["花生一" in found, "花生二" in found, "花生三" in found] == [False, True, True]
    found = await answer_to(stage, CAT, "/搜 花生 至 2026-07-29")
    assert ["花生一" in found, "花生二" in found] == [True, False]


async def test_ten_are_a_page_and_the_next_page_goes_on(stage: Stage):
    await talk(stage, *((FISH, f"花生{number:02}") for number in range(23)))
    first = await answer_to(stage, CAT, "/搜 花生")
    assert [first.count("花生"), "花生22" in first, "花生12" in first] == [11 + 1, True, False]
    assert "发送 /搜 花生 页 2 接着看" in first
    last = await answer_to(stage, CAT, "/搜 花生 页 3")
    assert ["花生00" in last, "花生02" in last, "花生03" in last] == [True, True, False]
    assert "只有 3 页" in await answer_to(stage, CAT, "/搜 花生 页 4")


async def test_what_nobody_said_as_it_is_finds_what_may_be_meant(stage: Stage):
    await talk(stage, (FISH, "项目下周二上线"), (BEAR, "喵"))
    found = await answer_to(stage, CAT, "/搜 项目什么时候上线")
    assert found.startswith("没有一字不差的，这些有其中的字词")
    assert "项目下周二上线" in found
    assert "喵" not in found


async def test_what_is_looked_for_may_follow_without_a_space(stage: Stage):
    await talk(stage, (FISH, "我对花生过敏"))
    assert await answer_to(stage, CAT, "/搜花生") == await answer_to(stage, CAT, "/搜 花生")
    assert await answer_to(stage, CAT, "/搜花生 页 1") == "2026-07-29 12:00 小鱼：我对花生过敏"


async def waits_in_the_queue(stage: Stage, words: str) -> Utterance:
    """Let an answer to a command wait for 20 seconds, and return the command."""
    await stage.set(sendGapSeconds=20)
    stage.say(OTHER_GROUP, BEAR, "/帮助")
    await stage.advance(1)
    given = stage.say(GROUP, CAT, words)
    await stage.advance(5)
    return given


@pytest.mark.parametrize("words", ["/搜 花生", "/搜 花生过敏的事"])
async def test_what_is_recalled_while_the_answer_waits_is_not_shown(stage: Stage, words: str):
    await talk(stage, (BEAR, "那就不买花生了"))
    spoken = stage.say(GROUP, FISH, "我对花生过敏")
    await stage.advance(60)
    await waits_in_the_queue(stage, words)
    await stage.recall(spoken)
    await stage.advance(60)
    (answer,) = stage.texts()[1:]
    assert "不买花生" in answer
    assert "过敏" not in answer


async def test_nothing_is_found_once_all_of_it_is_recalled(stage: Stage):
    await talk(stage, (BEAR, "先说点别的"))
    spoken = stage.say(GROUP, FISH, "我对花生过敏")
    await stage.advance(60)
    await waits_in_the_queue(stage, "/搜 花生")
    await stage.recall(spoken)
    await stage.advance(60)
    assert stage.texts()[1:] == [NOTHING]


async def test_a_search_that_is_recalled_is_not_answered(stage: Stage):
    await talk(stage, (FISH, "我对花生过敏"))
    given = await waits_in_the_queue(stage, "/搜 花生")
    await stage.recall(given)
    await stage.advance(60)
    assert len(stage.texts()) == 1


async def test_who_types_nothing_is_told_how(stage: Stage):
    await talk(stage, (FISH, "花生"))
    assert "用法：/搜" in await answer_to(stage, CAT, "/搜")


async def test_the_bots_own_words_stand_under_its_name(stage: Stage):
    stage.whisper(FISH, "在吗")
    await stage.advance(60)
    assert "小忆：好的" in await private_answer_to(stage, FISH, "/搜 好的")


# --- the index in the background --------------------------------------------------------------


async def test_older_messages_are_indexed_in_the_background_and_until_then_that_is_told(
    stage: Stage,
):
    await talk(stage, *((FISH, f"花生{number}") for number in range(5)))
    await clear_message_index(stage.app.db)
    found = await answer_to(stage, CAT, "/搜 花生")
    assert "更早的消息还没有都找过" in found
    await index_older(stage.app)
    assert await messages_left(stage.app.db) == 0
    found = await answer_to(stage, CAT, "/搜 花生")
    assert ["花生0" in found, "更早" in found] == [True, False]


async def test_reindexing_makes_both_indices_anew_while_the_bot_goes_on(stage: Stage):
    await talk(stage, *((FISH, f"花生{number}") for number in range(5)))
    await answer_to(stage, FISH, "/记住 我不吃香菜")
    before = indexed(stage.app.db.path)
    steps: list[tuple[int, int]] = []
    async with stage.app.db.transaction() as tx:
        await tx.execute_fetchall("DELETE FROM entry_index")
    await clear_message_index(stage.app.db)
    await reindex(stage.app.db, stage.app.patience, lambda *step: steps.append(step))
    assert indexed(stage.app.db.path) == before
    assert steps[-1][0] == steps[-1][1] > 0
    assert await stage.rows("SELECT count(*) FROM entry_index") == [(1,)]
    await talk(stage, (BEAR, "还有花生"))
    assert "还有花生" in await answer_to(stage, CAT, "/搜 花生")


async def test_scrubbing_ends(stage: Stage):
    await talk(stage, (FISH, "先说点别的"))
    spoken = stage.say(GROUP, FISH, "peanuts")
    await stage.advance(60)
    stage.recall(spoken)
    await stage.advance(60)
    await scrub_messages(stage.app)
    assert await stage.rows("SELECT erased FROM message_index_state") == [(0,)]
    blocks = await stage.rows("SELECT block FROM message_index_data")
    assert b"peanut" not in b"".join(block for (block,) in blocks)


@pytest.mark.parametrize("words", ['/搜 "', "/搜 '; DROP TABLE messages; --", "/搜 NEAR(a b) *"])
async def test_signs_are_text(stage: Stage, words: str):
    await talk(stage, (FISH, "花生"))
    assert await answer_to(stage, CAT, words) == NOTHING
    assert stage.now > NOON


@pytest.mark.parametrize("days", ["自 0001-01-01", "至 9999-12-31", "自 0001-01-01 至 9999-12-31"])
async def test_the_first_and_the_last_day_that_there_are_are_days(stage: Stage, days: str):
    stage.say(GROUP, BEAR, "花生一")
    await stage.advance(1)
    assert "花生一" in await answer_to(stage, CAT, f"/搜 花生 {days}")

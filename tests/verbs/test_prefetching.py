"""Prefetch: what of memory bears on a message, within its budget, and nobody else's."""

from typing import Any

import pytest

from bot.conversation.tokens import estimator
from bot.memory.pack import ContextPack, TokenBudget
from bot.model import Chat, Scope, Stream
from bot.prefetch import prefetch
from tests.verbs.remembering import CHAT, OF_FISH, OF_GROUP, change, held
from tests.verbs.stage import BEAR, BOT, CAT, FISH, GROUP, OTHER_GROUP, Stage

PRIVATE = Chat(str(BOT), "private", str(FISH))
THERE = Chat(str(BOT), "group", str(OTHER_GROUP))
OF_FISH_ALONE = Stream(Scope(str(BOT), "member", str(FISH)), PRIVATE)
OF_FISH_THERE = Stream(Scope(str(BOT), "member", str(FISH)), THERE)
OF_BEAR = Stream(Scope(str(BOT), "member", str(BEAR)), CHAT)
DAY = 86_400


async def _hear(stage: Stage) -> None:
    """Let the chats be known."""
    for who in (FISH, BEAR, CAT):
        stage.say(GROUP, who, "早")
        stage.say(OTHER_GROUP, who, "早")
    stage.whisper(FISH, "早")
    await stage.advance(5)


async def _remember(
    stage: Stage, stream: Stream, text: str, document: Any = "profile", **fields: Any
) -> None:
    given = {"source_task": "test", **fields}
    await change(stage, stream, lambda writer: writer.add(document, text, [[1]], **given))


async def _pin(stage: Stage, text: str) -> None:
    async with stage.app.db.transaction() as tx:
        await tx.execute_fetchall("UPDATE entries SET pinned = 1 WHERE text = ?", (text,))


async def _prefetch(
    stage: Stage,
    query: str,
    *,
    chat: Chat = CHAT,
    by: int = FISH,
    tokens: int = 512,
    **fields: Any,
) -> ContextPack:
    budget = TokenBudget(tokens, estimator("cjk"))
    return await prefetch(stage.app, chat, str(by), query, budget, **fields)


def _texts(packed: ContextPack) -> list[str]:
    return [entry.text for entry in packed.entries]


@pytest.fixture
async def known(stage: Stage) -> Stage:
    """The stage, on which everybody has spoken in every chat."""
    await _hear(stage)
    return stage


async def test_what_bears_on_the_question_is_packed_and_nothing_else(known: Stage):
    await _remember(known, OF_GROUP, "大家约好周六去湖边钓鱼", "daily", date="2026-07-28")
    await _remember(known, OF_GROUP, "群里在学做面包", "daily", date="2026-07-28")
    packed = await _prefetch(known, "周六几点去钓鱼？")
    assert packed.render() == "- [daily #0001 0.98] 2026-07-28 大家约好周六去湖边钓鱼"


async def test_an_entry_without_a_date_shows_the_day_it_was_last_said(known: Stage):
    await _remember(known, OF_FISH, "喜欢钓鱼")
    packed = await _prefetch(known, "钓鱼去吗")
    assert packed.render() == "- [profile #0001 1.00] 2026-07-29 喜欢钓鱼"


async def test_a_groups_own_profile_is_told_from_its_senders(known: Stage):
    await _remember(known, OF_GROUP, "钓鱼爱好者的群")
    await _remember(known, OF_FISH, "喜欢钓鱼")
    assert {entry.word for entry in (await _prefetch(known, "钓鱼")).entries} == {
        "profile",
        "group-profile",
    }


async def test_of_two_that_fit_the_newer_comes_first(known: Stage):
    await _remember(known, OF_GROUP, "去东湖钓鱼", "daily", date="2026-06-01")
    await _remember(known, OF_GROUP, "去西湖钓鱼", "daily", date="2026-07-28")
    assert _texts(await _prefetch(known, "钓鱼")) == ["去西湖钓鱼", "去东湖钓鱼"]


async def test_a_pin_is_packed_first_whatever_was_asked(known: Stage):
    await _remember(known, OF_FISH, "对花生过敏")
    await _remember(known, OF_FISH, "喜欢钓鱼")
    await _pin(known, "对花生过敏")
    await known.clock.advance(400 * DAY)
    packed = await _prefetch(known, "钓鱼去吗")
    assert _texts(packed) == ["对花生过敏", "喜欢钓鱼"]
    assert packed.entries[0].score < 0.01


async def test_a_working_note_is_there_in_the_very_next_turn(known: Stage):
    await _remember(known, OF_FISH, "下午要去\n接孩子", "note", tier="working")
    packed = await _prefetch(known, "在吗")
    assert packed.render() == "- [note #0001 0.40] 2026-07-29 下午要去 接孩子"


async def test_nothing_that_is_shown_already_is_packed(known: Stage):
    await _remember(known, OF_FISH, "喜欢钓鱼")
    row_ids = (await _prefetch(known, "钓鱼")).row_ids
    assert len(row_ids) == 1
    assert await _prefetch(known, "钓鱼", shown=frozenset(row_ids)) == ContextPack()


@pytest.mark.parametrize("tokens", [2048, 512, 64, 8])
async def test_chinese_is_counted_as_chinese(known: Stage, tokens: int):
    for number in range(80):
        await _remember(known, OF_GROUP, f"第{number}次去湖边钓鱼，钓到很多鱼", "daily")
    packed = await _prefetch(known, "钓鱼", tokens=tokens)
    text = packed.render()
    assert packed.tokens == estimator("cjk")(text) <= tokens
    assert (len(packed.entries) > 0) == (tokens >= 64)


async def test_a_budget_of_nothing_packs_nothing(known: Stage):
    await _remember(known, OF_FISH, "喜欢钓鱼")
    await _pin(known, "喜欢钓鱼")
    assert await _prefetch(known, "钓鱼", tokens=0) == ContextPack()


async def test_nothing_is_packed_while_memory_is_off(known: Stage):
    await _remember(known, OF_FISH, "喜欢钓鱼")
    await known.set(memoryEnabled=False)
    assert await _prefetch(known, "钓鱼") == ContextPack()


async def test_a_group_sees_no_private_matter_and_no_other_member(known: Stage):
    await _remember(known, OF_FISH_ALONE, "偷偷去钓鱼")
    await _remember(known, OF_FISH, "喜欢钓鱼")
    await _remember(known, OF_BEAR, "不会钓鱼")
    await _remember(known, OF_FISH_THERE, "在那边钓鱼")
    for text in ("偷偷去钓鱼", "不会钓鱼"):
        await _pin(known, text)
    assert set(_texts(await _prefetch(known, "钓鱼"))) == {"喜欢钓鱼", "在那边钓鱼"}
    assert _texts(await _prefetch(known, "钓鱼", by=BEAR)) == ["不会钓鱼"]
    assert _texts(await _prefetch(known, "钓鱼", by=CAT)) == []
    alone = _texts(await _prefetch(known, "钓鱼", chat=PRIVATE))
    assert set(alone) == {"偷偷去钓鱼", "喜欢钓鱼", "在那边钓鱼"}


async def test_other_groups_are_looked_into_only_where_that_is_allowed(known: Stage):
    await _remember(known, OF_FISH_THERE, "在那边钓鱼")
    await known.set(memoryMemberCrossGroup=False)
    assert _texts(await _prefetch(known, "钓鱼")) == []
    await known.set(memoryMemberCrossGroup=True)
    async with known.app.db.transaction() as tx:
        await tx.execute_fetchall(
            "UPDATE members SET cross_group = 0 WHERE user_id = ?", (str(FISH),)
        )
    assert _texts(await _prefetch(known, "钓鱼")) == []


async def test_what_has_ended_is_not_packed(known: Stage):
    await _remember(known, OF_GROUP, "周六去钓鱼", "daily")
    await _remember(known, OF_GROUP, "改到周日去钓鱼", "daily")
    await change(known, OF_GROUP, lambda writer: writer.end(1, "superseded", ""))
    assert [entry.text for entry in await held(known, OF_GROUP, "daily")] == ["改到周日去钓鱼"]
    assert _texts(await _prefetch(known, "哪天钓鱼")) == ["改到周日去钓鱼"]

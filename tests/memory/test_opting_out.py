"""Opting out and memory: all that was made of somebody's words falls, and no more is made."""

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from bot.errors import NotRemembered
from bot.llm.protocol import ModelRequest
from bot.model import Member, Sender
from bot.opt_out import erase_hidden, opt_out
from bot.remember import remember
from bot.store.erasing import hidden_members
from tests.memory.power import Fuse, FusedDatabase, PowerCut
from tests.memory.workshop import (
    BEAR,
    BOT,
    FISH,
    GROUP,
    OF_BEAR,
    OF_FISH,
    OF_GROUP,
    OTHER_GROUP,
    PRIVATE,
    Shown,
    Workshop,
    open_workshop,
    say,
)

SECRET = "秘密花园"
"""Words that only Fish says."""

A_FISH = Member(BOT, FISH)


async def leave(shop: Workshop) -> None:
    """Let Fish opt out, by command."""
    assert "60 秒" in await shop.command("/别记我", by=FISH)
    assert "不再记录你" in await shop.command("/别记我 确认", by=FISH)


async def is_nowhere(shop: Workshop, words: str = SECRET) -> None:
    """The words are in no table, no index, no export, no answer of a command, no later prompt."""
    assert words not in await shop.all_text()
    for scope in (OF_GROUP, OF_FISH, OF_BEAR):
        assert words not in json.dumps(await shop.export(scope), ensure_ascii=False)
    for command in ("/记忆", "/任务", f"/搜 {words}"):
        told = await shop.command(command)
        assert words not in told.replace(f"“{words}”", "").replace(f"「{words}」", "")
    asked = len(shop.asked())
    await shop.hear("又来了", by=BEAR)
    await shop.idle()
    assert not [one for one in shop.asked()[asked:] if words in one.prompt]


# --- what there was ---------------------------------------------------------------------------


async def test_what_was_remembered_of_somebody_falls_in_every_chat(shop: Workshop):
    await shop.answer_once()
    for chat in (GROUP, OTHER_GROUP, PRIVATE):
        await shop.hear(f"我家有{SECRET}", chat=chat)
    await shop.hear("我有一条狗", by=BEAR)
    await shop.idle()
    assert len(await shop.texts(OF_FISH)) == 3
    await leave(shop)
    assert await shop.texts(OF_FISH) == []
    assert await shop.texts(OF_GROUP) == ["我有一条狗"]
    assert await shop.texts(OF_BEAR) == ["我有一条狗"]
    await is_nowhere(shop)


async def test_what_a_group_knows_from_others_as_well_stays(shop: Workshop):
    await shop.set(memoryMemberBatchEnabled=False)
    await shop.hear("每周三例会", by=FISH)
    await shop.idle()
    await shop.hear("每周三例会", by=BEAR)
    await shop.idle()
    await leave(shop)
    [entry] = (await shop.export(OF_GROUP))["documents"]["daily"]
    assert [one["sender_id"] for one in entry["evidence"]] == [BEAR]


async def test_a_proof_in_which_somebody_else_says_it_with_them_falls(shop: Workshop):
    await shop.set(memoryMemberBatchEnabled=False)
    await shop.hear("要不要", by=BEAR)
    await shop.hear(f"去{SECRET}", by=FISH)
    shop.model.enqueue(
        say(memory=[{"text": f"去{SECRET}", "refs": [1, 2]}], summary=f"要去{SECRET}")
    )
    await shop.idle()
    await leave(shop)
    assert await shop.texts(OF_GROUP) == []
    assert (await shop.export(OF_GROUP))["documents"]["summary"] == {}
    await is_nowhere(shop)


async def test_a_summary_made_from_one_that_read_them_leaves_the_record_of_changes(shop: Workshop):
    await shop.set(memoryMemberBatchEnabled=False)
    await shop.hear(f"去{SECRET}", by=FISH)
    shop.model.enqueue(say(summary=f"要去{SECRET}"))
    await shop.idle()
    await shop.hear("几点", by=BEAR)
    shop.model.enqueue(say(summary=f"几点去{SECRET}"))
    await shop.idle()
    await leave(shop)
    await is_nowhere(shop)


async def test_what_ended_loses_its_text_and_its_reason(shop: Workshop):
    await shop.answer_once()
    await shop.hear(f"我住在{SECRET}", chat=PRIVATE)
    shop.model.enqueue(say(profile=[{"text": f"住在{SECRET}", "refs": [1]}]))
    await shop.idle()
    await shop.hear("我搬走了", chat=PRIVATE)

    def moved(request: ModelRequest) -> str:
        label = Shown(request).id_of(f"住在{SECRET}")
        return say(retract=[{"id": label, "refs": [1], "why": f"不住{SECRET}了"}])

    shop.model.enqueue(moved)
    await shop.idle()
    await leave(shop)
    await is_nowhere(shop)


async def test_answers_of_the_bot_that_repeat_them_lose_their_text(shop: Workshop):
    await shop.answer_once()
    await shop.hear(f"{SECRET}在城南", chat=PRIVATE)
    await shop.say_own(f"记住了，{SECRET}在城南", PRIVATE)
    await shop.say_own("城南很远", PRIVATE)
    await shop.hear("对", chat=PRIVATE)
    shop.model.enqueue(say(profile=[{"text": f"说过{SECRET}", "refs": [2, 4]}]))
    await shop.idle()
    await leave(shop)
    assert "城南很远" in await shop.all_text()
    await is_nowhere(shop)


async def test_what_waits_of_them_is_not_pending_any_more(shop: Workshop):
    await shop.hear("一", "二", by=FISH)
    await shop.hear("三", by=BEAR)
    await leave(shop)
    assert await shop.pending() == {"group": 1, "member-batch": 1}


async def test_only_what_is_theirs_with_this_account_is_erased(shop: Workshop):
    await shop.hear("大熊的话", by=BEAR)
    await shop.hear("小鱼的话", by=FISH)
    await leave(shop)
    texts = await shop.values("SELECT text FROM messages WHERE kind = 'chat' AND text <> ''")
    assert texts == ["大熊的话"]


async def test_undo_brings_nothing_of_them_back(shop: Workshop):
    await shop.hear(f"我家有{SECRET}", by=FISH)
    await shop.idle()
    numbers = await shop.values("SELECT id FROM revisions")
    await leave(shop)
    for number in numbers:
        await shop.command(f"/撤销 {number}")
        await shop.command(f"/撤销 {number}")
    assert await shop.texts(OF_FISH) == []
    await is_nowhere(shop)


# --- while a model reads ----------------------------------------------------------------------


async def think(shop: Workshop) -> None:
    """Let everything fall due, and Fish opt out while the models read."""
    await shop.pass_time(15)
    before = len(shop.model.requests)
    shop.model.hold()
    working = asyncio.create_task(shop.tick())
    await shop.model.until_asked(before + 1)
    await leave(shop)
    shop.model.release()
    await working


async def test_a_reflection_that_had_read_them_writes_nothing_of_theirs(shop: Workshop):
    await shop.hear(f"我家有{SECRET}", by=FISH)
    await shop.hear("我有一条狗", by=BEAR)
    await think(shop)
    assert await shop.texts(OF_FISH) == []
    assert await shop.texts(OF_GROUP) == ["我有一条狗"]
    await is_nowhere(shop)


async def test_a_group_entry_that_names_who_opts_out_meanwhile_is_not_written(shop: Workshop):
    await shop.set(memoryMemberBatchEnabled=False)
    await shop.hear("我来了", by=FISH)
    await shop.hear("人01请大家吃饭", by=BEAR)
    shop.model.enqueue(
        say(
            memory=[
                {"text": f"{BEAR} 说：人01请大家吃饭", "refs": [2]},
                {"text": "一起聚餐", "refs": [2]},
            ]
        )
    )
    await think(shop)
    assert await shop.texts(OF_GROUP) == ["一起聚餐"]


async def test_what_is_noted_on_words_that_go_meanwhile_is_refused(shop: Workshop):
    rows = await shop.hear("我不吃香菜", by=FISH)
    await shop.app.opt_outs.add(A_FISH, at=shop.now)
    with pytest.raises(NotRemembered, match="/记我"):
        await remember(shop.app, GROUP, FISH, rows, "不吃香菜")


# --- from then on -----------------------------------------------------------------------------


async def test_no_reflection_reads_what_they_say_from_then_on(shop: Workshop):
    await leave(shop)
    await shop.hear(f"我家有{SECRET}", by=FISH)
    await shop.hear(f"小忆，{SECRET}几点开门", by=FISH)
    assert sum((await shop.pending()).values()) == 0
    await shop.hear("你们好", by=BEAR)
    await shop.idle()
    assert [one.texts for one in shop.asked("group")] == [["你们好"]]
    assert await shop.values("SELECT key FROM scopes WHERE kind = 'member'") == [BEAR]


async def test_a_group_entry_that_names_them_is_refused(shop: Workshop):
    await shop.set(memoryMemberBatchEnabled=False)
    await shop.hear("我来了", by=FISH)
    await leave(shop)
    await shop.hear("人01不来", f"{FISH} 不来", "大家都来", by=BEAR)
    shop.model.enqueue(
        say(
            memory=[
                {"text": f"{BEAR} 说：人01不来", "refs": [1]},
                {"text": f"{BEAR} 说：{FISH} 不来", "refs": [2]},
                {"text": "大家都来", "refs": [3]},
            ],
            summary="人01不来",
        )
    )
    shop.model.enqueue("{}")
    await shop.idle()
    assert await shop.texts(OF_GROUP) == ["大家都来"]
    assert (await shop.export(OF_GROUP))["documents"]["summary"] == {}


async def test_a_name_that_they_take_later_is_no_history_and_names_them_all_the_same(
    shop: Workshop,
):
    await shop.set(memoryMemberBatchEnabled=False)
    await leave(shop)
    later = Sender(FISH, nickname="小鱼", card="湖边客")
    await shop.hear("我换了名片", by=FISH, sender=later)
    assert "湖边客" not in await shop.values("SELECT name FROM names")
    await shop.hear("湖边客不来", by=BEAR)
    shop.model.enqueue(say(memory=[{"text": f"{BEAR} 说：湖边客不来", "refs": [1]}]))
    shop.model.enqueue("{}")
    await shop.idle()
    assert await shop.texts(OF_GROUP) == []


async def test_asking_to_be_remembered_is_refused_and_names_the_way_back(shop: Workshop):
    await leave(shop)
    told = await shop.command("/记住 我不吃香菜", by=FISH)
    assert "没有记" in told
    assert "/记我" in told
    assert await shop.texts(OF_FISH) == []
    assert "香菜" not in await shop.all_text()


async def test_a_note_of_the_group_that_names_them_is_refused(shop: Workshop):
    await shop.hear("我来了", by=FISH)
    await leave(shop)
    rows = await shop.hear("人01明天生日", by=BEAR)
    with pytest.raises(NotRemembered):
        await remember(shop.app, GROUP, BEAR, rows, f"{BEAR} 说：人01明天生日", about="group")


async def test_who_is_recorded_again_is_remembered_from_then_on_only(shop: Workshop):
    await leave(shop)
    await shop.hear(f"我家有{SECRET}", by=FISH)
    assert "重新记录" in await shop.command("/记我", by=FISH)
    await shop.hear("我有一只猫", by=FISH)
    await shop.idle()
    assert await shop.texts(OF_FISH) == ["我有一只猫"]
    await is_nowhere(shop)


# --- stopped halfway --------------------------------------------------------------------------


async def spoken(shop: Workshop) -> None:
    """Let things be said, remembered and answered, some of them by Fish."""
    await shop.answer_once()
    await shop.hear(f"我家有{SECRET}", "今天很热", chat=PRIVATE)
    await shop.hear(f"我家有{SECRET}", "你好", by=FISH)
    await shop.say_own(f"你说过：我家有{SECRET}")
    await shop.hear("我有一条狗", by=BEAR)
    await shop.idle()


@pytest.mark.parametrize("at", [*range(1, 40), *range(40, 140, 7)])
async def test_whatever_cuts_the_power_what_is_hidden_is_erased_at_the_next_start(
    tmp_path: Path, at: int
):
    async with open_workshop(tmp_path) as shop:
        await spoken(shop)
        fuse = Fuse("cut", at)
        app = replace(shop.app, db=FusedDatabase(shop.app.db, fuse))
        with suppress(PowerCut):
            await opt_out(app, A_FISH)
        # Of the bot's answers, those that repeat it go as it is erased.
        assert "人01" not in await shop.command("/搜 我家有", by=BEAR)
    async with open_workshop(tmp_path) as shop:
        assert shop.app.opt_outs.has(BOT, FISH)
        await erase_hidden(shop.app)
        assert await hidden_members(shop.app.db) == []
        assert await shop.texts(OF_GROUP) == ["我有一条狗"]
        await is_nowhere(shop)


async def test_what_is_hidden_is_found_by_no_search_and_read_by_no_task_before_it_is_erased(
    shop: Workshop,
):
    await shop.hear(f"我家有{SECRET}", by=FISH)
    await shop.hear("我有一条狗", by=BEAR)
    await shop.app.opt_outs.add(A_FISH, at=shop.now)
    assert SECRET in await shop.all_text()
    assert "我家有" not in await shop.command("/搜 我家有", by=BEAR)
    await shop.idle()
    assert [one.texts for one in shop.asked("group")] == [["我有一条狗"]]


async def test_a_hundred_thousand_rows_of_others_are_passed_in_few_steps(shop: Workshop):
    await shop.hear(*(f"第{n}句" for n in range(200)), by=FISH, pending=False)
    await shop.hear(*(f"第{n}句" for n in range(300)), by=BEAR, pending=False)
    erased = await opt_out(shop.app, A_FISH)
    assert (erased.messages, erased.is_whole) == (200, True)
    assert await opt_out(shop.app, A_FISH) == replace(erased, messages=0)

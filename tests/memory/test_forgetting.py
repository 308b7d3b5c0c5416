"""Forgetting: what is taken back leaves everything that was derived from it."""

import asyncio
import json

import pytest

from bot.llm.protocol import ModelRequest
from bot.model import Stream
from bot.store.memory import summary_rows
from tests.memory.workshop import (
    BEAR,
    FISH,
    GROUP,
    OF_BEAR,
    OF_FISH,
    OF_GROUP,
    PRIVATE,
    Shown,
    Workshop,
    check_counters,
    say,
    say_of,
)

SECRET = "秘密花园"
"""A word that only what is taken back says."""


async def alone(shop: Workshop) -> None:
    await shop.set(memoryMemberBatchEnabled=False)


async def is_nowhere(shop: Workshop) -> None:
    """The word is in no table, no export, no answer of a command, and no later prompt."""
    assert SECRET not in await shop.all_text()
    for scope in (OF_GROUP, OF_FISH, OF_BEAR):
        assert SECRET not in json.dumps(await shop.export(scope), ensure_ascii=False)
    for command in ("/记忆", "/任务", f"/记忆 成员 {FISH}"):
        assert SECRET not in await shop.command(command)
    assert SECRET not in await shop.command("/我的记忆", by=FISH, chat=PRIVATE)
    asked = len(shop.asked())
    await shop.answer_once()
    await shop.chatter(1, start=900)
    await shop.chatter(1, PRIVATE, start=900)
    await shop.idle()
    assert len(shop.asked()) > asked
    assert not [one for one in shop.asked()[asked:] if SECRET in one.prompt]


# --- later ------------------------------------------------------------------------------------


async def test_an_entry_falls_with_its_last_proof_and_its_text_is_nowhere(shop: Workshop):
    rows = await shop.hear(f"我家有{SECRET}", "你们好")
    await shop.idle()
    assert len(await shop.texts(OF_FISH)) == 2
    await shop.recall(rows[0])
    assert await shop.texts(OF_FISH) == ["你们好"]
    assert await shop.texts(OF_GROUP) == ["你们好"]
    assert await shop.values("SELECT ended_by FROM entries WHERE ended_at IS NOT NULL") == [
        "fallen",
        "fallen",
    ]
    await is_nowhere(shop)


async def test_an_entry_stands_as_long_as_one_proof_does(shop: Workshop):
    await alone(shop)
    [first] = await shop.hear("每周三例会")
    await shop.idle()
    [second] = await shop.hear("每周三例会")
    await shop.idle()
    [text] = await shop.texts(OF_GROUP)
    await shop.recall(first)
    assert await shop.texts(OF_GROUP) == [text]
    [entry] = (await shop.export(OF_GROUP))["documents"]["daily"]
    assert len(entry["evidence"]) == 1
    await shop.recall(second)
    assert await shop.texts(OF_GROUP) == []


async def test_a_proof_falls_with_any_of_its_messages(shop: Workshop):
    await alone(shop)
    rows = await shop.hear("要不要", SECRET, "好")
    shop.model.enqueue(say(memory=[{"text": f"去{SECRET}", "refs": [1, 2, 3]}]))
    await shop.idle()
    assert await shop.texts(OF_GROUP) == [f"去{SECRET}"]
    await shop.recall(rows[1])
    assert await shop.texts(OF_GROUP) == []
    await is_nowhere(shop)


async def test_a_summary_made_from_it_is_cleared_and_written_anew_from_what_remains(
    shop: Workshop,
):
    await alone(shop)
    rows = await shop.hear(f"去{SECRET}", "好的")
    shop.model.enqueue(say(summary=f"要去{SECRET}"))
    await shop.idle()
    await shop.recall(rows[0])
    assert (await shop.export(OF_GROUP))["documents"]["summary"] == {}
    await is_nowhere(shop)
    await shop.hear("改去爬山")
    shop.model.enqueue(say(summary="要去爬山"))
    await shop.idle()
    assert shop.asked("group")[-1].summaries == []
    assert (await shop.export(OF_GROUP))["documents"]["summary"] == {str(GROUP): "要去爬山"}
    assert rows[0] not in await summary_rows(shop.app.db, Stream(OF_GROUP, GROUP))


async def test_a_later_summary_rests_on_those_before_it(shop: Workshop):
    await alone(shop)
    rows = await shop.hear(f"去{SECRET}")
    shop.model.enqueue(say(summary=f"要去{SECRET}"))
    await shop.idle()
    rows += await shop.hear("几点")
    shop.model.enqueue(say(summary=f"几点去{SECRET}"))
    await shop.idle()
    assert await summary_rows(shop.app.db, Stream(OF_GROUP, GROUP)) == tuple(rows)
    await shop.recall(rows[0])
    assert (await shop.export(OF_GROUP))["documents"]["summary"] == {}
    await is_nowhere(shop)


async def test_a_summary_that_was_cleared_for_another_message_leaves_no_trace_in_the_record(
    shop: Workshop,
):
    await alone(shop)
    rows = await shop.hear(f"去{SECRET}")
    shop.model.enqueue(say(summary=f"要去{SECRET}"))
    await shop.idle()
    rows += await shop.hear("几点")
    shop.model.enqueue(say(summary=f"几点去{SECRET}"))
    await shop.idle()
    await shop.recall(rows[1])
    await shop.recall(rows[0])
    await is_nowhere(shop)


async def test_a_summary_that_tells_of_an_entry_falls_with_what_that_rested_on(shop: Workshop):
    await alone(shop)
    [row] = await shop.hear(f"去{SECRET}")
    await shop.idle()
    await shop.hear("再说吧")
    shop.model.enqueue(say(summary=f"有人想去{SECRET}"))
    await shop.idle()
    await shop.recall(row)
    assert (await shop.export(OF_GROUP))["documents"]["summary"] == {}
    await is_nowhere(shop)


async def test_a_summary_that_tells_of_a_quote_falls_with_what_was_quoted(shop: Workshop):
    await alone(shop)
    [row] = await shop.hear(f"去{SECRET}", platform_id="771")
    shop.model.enqueue("{}")
    await shop.idle()
    await shop.hear("同意", by=BEAR, reply_to="771")
    shop.model.enqueue(say(summary=f"都同意去{SECRET}"))
    await shop.idle()
    await shop.recall(row)
    await is_nowhere(shop)


async def test_the_text_of_a_superseded_entry_goes_too(shop: Workshop):
    await shop.answer_once()
    [row] = await shop.hear(f"我住在{SECRET}", chat=PRIVATE)
    shop.model.enqueue(say(profile=[{"text": f"住在{SECRET}", "refs": [1]}]))
    await shop.idle()
    await shop.hear("我搬走了", chat=PRIVATE)

    def moved(request: ModelRequest) -> str:
        label = Shown(request).id_of(f"住在{SECRET}")
        return say(retract=[{"id": label, "refs": [1], "why": f"不住{SECRET}了"}])

    shop.model.enqueue(moved)
    await shop.idle()
    assert SECRET in await shop.all_text()
    await shop.recall(row, PRIVATE)
    await is_nowhere(shop)


async def test_why_an_entry_ended_goes_with_the_messages_that_say_so(shop: Workshop):
    await shop.answer_once()
    await shop.hear("我住在杭州", chat=PRIVATE)
    shop.model.enqueue(say(profile=[{"text": "住在杭州", "refs": [1]}]))
    await shop.idle()
    [row] = await shop.hear(f"我搬去{SECRET}了", chat=PRIVATE)

    def moved(request: ModelRequest) -> str:
        label = Shown(request).id_of("住在杭州")
        return say(retract=[{"id": label, "refs": [1], "why": f"搬去{SECRET}"}])

    shop.model.enqueue(moved)
    await shop.idle()
    await shop.recall(row, PRIVATE)
    assert await shop.texts(OF_FISH) == []
    await is_nowhere(shop)


async def test_an_answer_of_the_bot_that_lost_its_text_takes_down_what_rests_on_it(
    shop: Workshop,
):
    await shop.answer_once()
    [row] = await shop.hear(f"{SECRET}在城南", chat=PRIVATE)
    await shop.say_own(f"记住了，{SECRET}在城南", PRIVATE)
    await shop.hear("对", chat=PRIVATE)
    shop.model.enqueue(say(profile=[{"text": f"说过{SECRET}", "refs": [2, 3]}]))
    await shop.idle()
    assert await shop.texts(OF_FISH) == [f"说过{SECRET}"]
    await shop.recall(row, PRIVATE)
    assert await shop.texts(OF_FISH) == []
    await is_nowhere(shop)


async def test_revisions_of_other_messages_keep_their_texts(shop: Workshop):
    await alone(shop)
    await shop.hear("留下来的")
    await shop.idle()
    [row] = await shop.hear(SECRET)
    await shop.idle()
    await shop.recall(row)
    revisions = await shop.values("SELECT after FROM revisions ORDER BY id")
    assert "留下来的" in revisions[0]
    assert revisions[1] == "{}"


async def test_a_message_that_was_not_read_yet_leaves_the_record_alone(shop: Workshop):
    await alone(shop)
    await shop.hear("留下来的")
    await shop.idle()
    before = await shop.rows("SELECT * FROM revisions")
    [row] = await shop.hear(SECRET)
    await shop.recall(row)
    assert await shop.rows("SELECT * FROM revisions") == before
    await is_nowhere(shop)


async def test_a_second_recall_changes_nothing(shop: Workshop):
    rows = await shop.chatter(5)
    await shop.idle()
    await shop.recall(rows[2])
    before = await shop.all_text()
    await shop.recall(rows[2])
    assert await shop.all_text() == before
    await check_counters(shop)


async def test_a_recalled_message_that_was_quarantined_is_forgotten_as_well(shop: Workshop):
    await alone(shop)
    rows = await shop.chatter(3)
    async with shop.app.db.transaction() as tx:
        await tx.execute_fetchall(
            "INSERT INTO quarantine SELECT chat_id, 'group', id, 'x', 1 FROM messages WHERE id = ?",
            [rows[0]],
        )
    await shop.recall(rows[0])
    assert "第1句" not in await shop.all_text()


# --- while the model is reading ---------------------------------------------------------------


async def think(shop: Workshop, *meanwhile: int, chat: object = GROUP) -> None:
    """Let everything fall due, and take messages back while the models read."""
    await shop.pass_time(15)
    before = len(shop.model.requests)
    shop.model.hold()
    working = asyncio.create_task(shop.tick())
    await shop.model.until_asked(before + 1)
    for row in meanwhile:
        await shop.recall(row, PRIVATE if chat == PRIVATE else GROUP)
    shop.model.release()
    await working


async def test_what_rests_on_a_message_that_goes_meanwhile_is_not_written(shop: Workshop):
    await alone(shop)
    rows = await shop.hear(SECRET, "你好")
    await think(shop, rows[0])
    assert await shop.texts(OF_GROUP) == ["你好"]
    assert await shop.cursors() == {"group": rows[1], "member-batch": 0}
    await is_nowhere(shop)


async def test_a_proof_of_several_messages_is_not_written_if_one_goes_meanwhile(shop: Workshop):
    await alone(shop)
    rows = await shop.hear("去吗", SECRET)
    shop.model.enqueue(
        say(memory=[{"text": f"去{SECRET}", "refs": [1, 2]}], summary=f"要去{SECRET}")
    )
    await think(shop, rows[1])
    assert await shop.texts(OF_GROUP) == []
    await is_nowhere(shop)


async def test_if_all_goes_meanwhile_nothing_at_all_is_left(shop: Workshop):
    rows = await shop.hear(SECRET)
    await think(shop, rows[0])
    assert await shop.rows("SELECT * FROM streams") == []
    assert await shop.rows("SELECT * FROM revisions") == []
    await is_nowhere(shop)


async def test_a_summary_written_from_one_that_falls_meanwhile_is_not_written(shop: Workshop):
    await alone(shop)
    [row] = await shop.hear(f"去{SECRET}")
    shop.model.enqueue(say(summary=f"要去{SECRET}"))
    await shop.idle()
    await shop.hear("几点")
    shop.model.enqueue(say(summary=f"几点去{SECRET}", memory=[{"text": "几点", "refs": [1]}]))
    await think(shop, row)
    assert await shop.texts(OF_GROUP) == ["几点"]
    await is_nowhere(shop)


async def test_a_summary_that_saw_an_entry_that_falls_meanwhile_is_not_written(shop: Workshop):
    [row] = await shop.hear(f"我在{SECRET}")
    await shop.idle()
    await shop.hear("早")
    shop.model.enqueue(say_of(FISH, summary=f"常去{SECRET}"), purpose="reflect.member-batch")
    shop.model.enqueue(say(summary=f"有人在{SECRET}"), purpose="reflect.group")
    await think(shop, row)
    await is_nowhere(shop)


async def test_an_entry_that_falls_meanwhile_is_not_raised_again_by_a_new_proof(shop: Workshop):
    await alone(shop)
    await shop.set(memoryIdleMinutes=5)
    [row] = await shop.hear(SECRET)
    shop.model.enqueue(say(memory=[{"text": f"去{SECRET}", "refs": [1]}]))
    await shop.idle()
    await shop.hear("还去")
    shop.model.enqueue(say(memory=[{"text": f"去{SECRET}", "refs": [1]}]))
    await think(shop, row)
    assert await shop.texts(OF_GROUP) == []
    await is_nowhere(shop)


async def test_a_quote_that_goes_meanwhile_takes_the_summary_along(shop: Workshop):
    await alone(shop)
    [row] = await shop.hear(f"去{SECRET}", platform_id="771")
    shop.model.enqueue("{}")
    await shop.idle()
    await shop.hear("同意", by=BEAR, reply_to="771")
    shop.model.enqueue(say(summary=f"都同意去{SECRET}"))
    await think(shop, row)
    await is_nowhere(shop)


async def test_an_answer_of_the_bot_that_is_emptied_meanwhile_proves_nothing(shop: Workshop):
    await shop.answer_once()
    [row] = await shop.hear(f"{SECRET}在城南", chat=PRIVATE)
    await shop.say_own(f"记住了，{SECRET}在城南", PRIVATE)
    await shop.hear("对", chat=PRIVATE)
    shop.model.enqueue(say(profile=[{"text": f"说过{SECRET}", "refs": [2, 3]}]))
    await think(shop, row, chat=PRIVATE)
    assert await shop.texts(OF_FISH) == []
    await is_nowhere(shop)


async def test_a_retraction_whose_words_go_meanwhile_does_not_happen(shop: Workshop):
    await alone(shop)
    await shop.hear("周三例会")
    shop.model.enqueue(say(memory=[{"text": "例会在周三", "refs": [1]}]))
    await shop.idle()
    [row] = await shop.hear("取消了")

    def cancel(request: ModelRequest) -> str:
        return say(retract=[{"id": Shown(request).entries[0]["id"], "refs": [1], "why": "取消"}])

    shop.model.enqueue(cancel)
    await think(shop, row)
    assert len(await shop.texts(OF_GROUP)) == 1


# --- counters ---------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["pending", "reading", "read"])
async def test_counters_are_what_counting_says_whenever_a_message_goes(shop: Workshop, when: str):
    rows = await shop.chatter(60)
    await check_counters(shop)
    if when == "pending":
        await shop.recall(rows[30])
        await check_counters(shop)
        await shop.idle()
    elif when == "reading":
        await think(shop, rows[30])
    else:
        await shop.idle()
        await shop.recall(rows[30])
    await check_counters(shop)
    assert set((await shop.pending()).values()) == {0}
    await shop.chatter(3, start=61)
    await check_counters(shop)

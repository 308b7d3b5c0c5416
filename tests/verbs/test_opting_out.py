"""Opting out: nothing is recorded of somebody any more, and who addresses the bot is answered."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bot.catch_up import welcome
from bot.consolidate import tend
from bot.errors import ToolError
from bot.ingest import ingest
from bot.model import Member
from bot.opt_out import erase_hidden, erase_what_was_kept
from bot.opt_out import opt_out as leave
from bot.remind import keep_reminder, send_due
from bot.simulate import Content, Sent, events, segments
from bot.simulate.actions import Desk
from bot.simulate.events import with_anonymous
from bot.worker import tick
from tests.store.rows import indexed
from tests.verbs.conversing import is_summary, texts_of
from tests.verbs.stage import (
    AT_BOT,
    BEAR,
    BOT,
    CAT,
    FISH,
    GROUP,
    OPERATOR,
    OTHER_GROUP,
    Stage,
    asked,
    open_stage,
    whole,
)
from tests.verbs.tooling import HERE, output, turn, use

DAY_SECONDS = 24 * 3600
A_FISH = Member(str(BOT), str(FISH))


async def opt_out(stage: Stage, who: int = FISH, group: int = GROUP) -> None:
    """Let somebody opt out by command."""
    stage.say(group, who, "/别记我")
    await stage.advance(2)
    stage.say(group, who, "/别记我 确认")
    await stage.advance(5)
    assert "不再记录你" in stage.texts()[-1]


async def ask(stage: Stage, who: int, *content: Content, answer: str = "好的") -> str:
    """Let somebody ask the bot in the group; return the whole prompt."""
    before = len(stage.model.requests)
    stage.model.enqueue(answer)
    stage.say(GROUP, who, AT_BOT, *content)
    await stage.advance(10)
    assert len(stage.model.requests) > before, "nobody was answered"
    assert stage.texts()[-1] == answer
    return whole(stage.model.requests[-1])


async def said(stage: Stage, who: int = FISH) -> list[str]:
    """The texts that are stored of somebody, and not empty."""
    rows = await stage.rows(
        "SELECT text FROM messages JOIN members AS m ON m.id = member_id"
        " WHERE m.user_id = ? AND text <> '' ORDER BY messages.id",
        str(who),
    )
    return [text for (text,) in rows]


async def dump(stage: Stage) -> str:
    """Everything that the tables hold, and every token of the index of messages."""
    tables = await stage.rows(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL %'"
    )
    rows = [await stage.rows(f'SELECT * FROM "{name}"') for (name,) in tables]
    return f"{rows} {sorted(indexed(stage.app.db.path).items())}"


# The command


async def test_opting_out_is_confirmed_and_says_what_happens_and_what_stays(stage: Stage):
    stage.say(GROUP, FISH, "今天吃火锅")
    stage.say(GROUP, FISH, "/别记我")
    await stage.advance(2)
    assert "不能恢复" in stage.texts()[0]
    assert "60 秒内发送 /别记我 确认" in stage.texts()[0]
    assert "今天吃火锅" in await said(stage)
    stage.say(GROUP, FISH, "/别记我 确认")
    await stage.advance(5)
    assert "3 条消息的文字、0 条记忆" in stage.texts()[1]
    assert "备份" in stage.texts()[1]
    assert await said(stage) == []


async def test_nobody_else_confirms_it(stage: Stage):
    stage.say(GROUP, FISH, "/别记我")
    await stage.advance(2)
    stage.say(GROUP, BEAR, "/别记我 确认")
    await stage.advance(2)
    assert "60 秒" in stage.texts()[-1]
    assert not stage.app.opt_outs.of(str(BOT))
    stage.say(GROUP, FISH, "/别记我 确认")
    await stage.advance(5)
    assert stage.app.opt_outs.of(str(BOT)) == {str(FISH)}


async def test_a_confirmation_that_comes_late_is_asked_for_anew(stage: Stage):
    stage.say(GROUP, FISH, "/别记我")
    await stage.advance(61)
    stage.say(GROUP, FISH, "/别记我 确认")
    await stage.advance(2)
    assert "60 秒" in stage.texts()[-1]
    stage.say(GROUP, FISH, "/别记我 确认")
    await stage.advance(5)
    assert "不再记录你" in stage.texts()[-1]


async def test_doing_it_again_is_harmless(stage: Stage):
    await opt_out(stage)
    for words in ("/别记我", "/别记我 确认"):
        stage.say(GROUP, FISH, words)
        await stage.advance(2)
        assert "已经选择不被记录" in stage.texts()[-1]
    for words in ("重新记录你", "本来就在记录"):
        stage.say(GROUP, FISH, "/记我")
        await stage.advance(2)
        assert words in stage.texts()[-1]


async def test_it_is_told_how_it_is_used(stage: Stage):
    for words in ("/别记我 什么", "/记我 什么"):
        stage.say(GROUP, FISH, words)
        await stage.advance(2)
        assert stage.texts()[-1].startswith("用法")


async def test_anonymous_members_share_an_id_and_cannot_opt_out(stage: Stage):
    for words in ("/别记我", "/别记我 确认"):
        spoken = stage.world.say(GROUP, FISH, words, at=stage.now)
        stage.hear(with_anonymous(Desk(stage.world).event_of(spoken)))
        await stage.advance(2)
        assert "匿名" in stage.texts()[-1]
    assert not stage.app.opt_outs.of(str(BOT))


async def test_it_holds_in_every_chat_and_after_a_restart(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        await opt_out(stage)
    async with open_stage(tmp_path) as stage:
        stage.say(OTHER_GROUP, FISH, "别的群里的话")
        stage.say(OTHER_GROUP, BEAR, "大熊的话")
        await stage.advance(2)
        assert await said(stage) == []
        assert await said(stage, BEAR) == ["大熊的话"]
        stage.whisper(FISH, "/我的记忆")
        await stage.advance(2)
        assert "不被记录" in stage.texts()[-1]


async def test_who_is_recorded_again_is_recorded_at_once_and_not_before(stage: Stage):
    await opt_out(stage)
    stage.say(GROUP, FISH, "这句不记")
    await stage.advance(2)
    stage.say(GROUP, FISH, "/记我")
    await stage.advance(2)
    stage.say(GROUP, FISH, "这句记")
    await stage.advance(2)
    assert await said(stage) == ["这句记"]


# Tombstones


async def test_what_an_opted_out_person_says_leaves_a_tombstone(stage: Stage):
    await opt_out(stage)
    spoken = stage.say(GROUP, FISH, segments.at(BEAR), " 我家在湖边路 3 号")
    await stage.advance(2)
    columns = "platform_id, text, segments, mentions, sender_name, kept_until, counted"
    [row] = await stage.rows(f"SELECT {columns} FROM messages ORDER BY id DESC LIMIT 1")
    assert row == (str(spoken.message_id), "", "[]", "[]", "", None, 0)
    assert "湖边" not in await dump(stage)


async def test_a_tombstone_is_stored_once_and_can_be_recalled(stage: Stage):
    await opt_out(stage)
    spoken = stage.say(GROUP, FISH, "说错了")
    await stage.advance(2)
    count = await stage.rows("SELECT count(*) FROM messages")
    stage.hear(Desk(stage.world).event_of(spoken))
    await stage.advance(2)
    assert await stage.rows("SELECT count(*) FROM messages") == count
    stage.recall(spoken)
    await stage.advance(2)
    [(recalled,)] = await stage.rows(
        "SELECT recalled_at IS NOT NULL FROM messages WHERE platform_id = ?",
        str(spoken.message_id),
    )
    assert recalled


async def test_a_history_of_theirs_that_comes_later_leaves_tombstones(stage: Stage):
    await opt_out(stage)
    stage.world.say(GROUP, FISH, "昨天的话", at=stage.now - 3_600_000)
    stage.spawn(welcome(stage.app, str(BOT)))
    await stage.advance(30)
    assert await said(stage) == []
    assert "昨天的话" not in await dump(stage)


async def test_nobody_joins_in_on_what_they_say(stage: Stage):
    await stage.set(replyMode="auto")
    await opt_out(stage)
    stage.say(GROUP, FISH, "你们怎么看")
    await stage.advance(30)
    assert stage.model.requests == []


async def test_what_waited_to_be_written_is_written_as_the_change_has_it(stage: Stage):
    async with stage.app.db.transaction():
        opting = asyncio.create_task(stage.app.opt_outs.add(A_FISH, at=stage.now))
        await asyncio.sleep(0.01)
        # It was taken in before, and waits for the same lock.
        spoken = stage.world.say(GROUP, FISH, "赶在前面的话", at=stage.now)
        taken = asyncio.create_task(ingest(stage.app, Desk(stage.world).event_of(spoken)))
        await asyncio.sleep(0.01)
    await asyncio.gather(opting, taken)
    assert await said(stage) == []


# Answers


async def test_who_addresses_the_bot_is_answered_and_kept_for_a_day_at_most(stage: Stage):
    await opt_out(stage)
    prompt = await ask(stage, FISH, " 药店几点开门", answer="药店几点开门我不知道")
    assert "药店几点开门" in prompt
    assert await said(stage) == ["@小忆(10001) 药店几点开门"]
    await stage.clock.advance(DAY_SECONDS - 20)
    assert await erase_what_was_kept(stage.app) == 0
    await stage.clock.advance(20)
    await tick(stage.app)
    assert await said(stage) == []
    assert "药店" not in await dump(stage)


@pytest.mark.parametrize("how", ["name", "reply", "private"])
async def test_a_name_a_quote_and_a_private_chat_address_the_bot(stage: Stage, how: str):
    await ask(stage, BEAR, " 在吗", answer="我在")
    await opt_out(stage)
    stage.model.enqueue("听到了")
    match how:
        case "name":
            stage.say(GROUP, FISH, "小忆 几点了")
        case "reply":
            mine = next(sent for sent in stage.sent if sent.text == "我在")
            stage.say(GROUP, FISH, segments.reply(mine.message_id), "几点了")
        case _:
            stage.whisper(FISH, "几点了")
    await stage.advance(10)
    assert "听到了" in stage.texts()
    assert "几点了" in asked(stage.model.requests[-1])


async def test_a_question_in_several_messages_is_answered_as_one(stage: Stage):
    await opt_out(stage)
    stage.model.enqueue("十点")
    stage.say(GROUP, FISH, AT_BOT)
    await stage.settle()
    stage.say(GROUP, FISH, "药店几点开门")
    await stage.advance(10)
    assert stage.texts()[-1] == "十点"
    assert "药店几点开门" in asked(stage.model.requests[-1])


async def test_where_nobody_is_answered_nothing_is_kept(stage: Stage):
    await stage.set(replyMode="silent")
    await opt_out(stage)
    stage.say(GROUP, FISH, AT_BOT, " 在吗")
    await stage.advance(2)
    assert await said(stage) == []


async def blocked(stage: Stage) -> None:
    await stage.app.access.block(A_FISH, by=str(OPERATOR), at=stage.now)


async def muted(stage: Stage) -> None:
    stage.hear(events.group_ban(BOT, GROUP, BOT, duration_seconds=600, at=stage.now))
    await stage.settle()


async def known_as_a_bot(stage: Stage) -> None:
    await stage.set(stage.group, botAccounts=[str(FISH)])


@pytest.mark.parametrize("how", [blocked, muted, known_as_a_bot], ids=lambda f: f.__name__)
async def test_of_who_is_not_answered_nothing_is_kept(
    stage: Stage, how: Callable[[Stage], Awaitable[None]]
):
    await opt_out(stage)
    await how(stage)
    stage.say(GROUP, FISH, AT_BOT, " 药店几点开门")
    await stage.advance(10)
    assert stage.model.requests == []
    assert await said(stage) == []
    assert "药店" not in await dump(stage)


async def test_a_command_of_theirs_is_done_and_leaves_no_text(stage: Stage):
    await opt_out(stage)
    stage.say(GROUP, FISH, "/搜 药店")
    await stage.advance(2)
    assert "没有找到" in stage.texts()[-1]
    assert await said(stage) == []


async def test_a_search_of_theirs_is_answered_unless_they_recall_it(stage: Stage):
    stage.say(GROUP, BEAR, "药店十点开门")
    await opt_out(stage)
    stage.say(GROUP, FISH, "/搜 药店")
    await stage.advance(5)
    assert "药店十点开门" in stage.texts()[-1]
    count = len(stage.sent)
    await stage.recall(stage.say(GROUP, FISH, "/搜 十点开门"))
    await stage.advance(5)
    assert len(stage.sent) == count


async def test_a_crash_before_the_answer_does_not_cost_it(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        await opt_out(stage)
        spoken = stage.world.say(GROUP, FISH, AT_BOT, " 几点了", at=stage.now)
        await ingest(stage.app, Desk(stage.world).event_of(spoken))
        now = stage.now
    async with open_stage(tmp_path, start=now + 5_000) as stage:
        stage.spawn(welcome(stage.app, str(BOT)))
        await stage.advance(30)
        assert stage.texts() == ["好的"]
        assert "几点了" in asked(stage.model.requests[-1])


async def test_nobody_else_is_shown_what_was_kept_or_what_was_answered_to_it(stage: Stage):
    await opt_out(stage)
    await ask(stage, FISH, " 药店几点开门", answer="十点开门")
    prompt = await ask(stage, BEAR, " 刚才说什么")
    assert "药店" not in prompt
    assert "十点开门" not in prompt
    prompt = await ask(stage, FISH, " 那医院呢")
    assert "药店几点开门" in prompt
    assert "十点开门" in prompt


PARTLY = "柳荫巷那家药店，大概十点开门"
"""An answer that repeats what was asked in part, and not word for word."""


async def answered_in_part(stage: Stage) -> Sent:
    """Let somebody who has opted out be answered in other words; return what was sent."""
    await opt_out(stage)
    await ask(stage, FISH, " 我住柳荫巷 3 号，旁边的药店几点开门", answer=PARTLY)
    mine = stage.sent[-1]
    for report in stage.platform.reports:
        await stage.hear(report)
    await stage.hear(Desk(stage.world).event_of(stage.world.history(stage.group)[-1]))
    return mine


async def nobody_else_is_shown(stage: Stage, mine: Sent) -> None:
    """Look wherever others could read what was answered."""
    assert "柳荫巷" not in await ask(stage, BEAR, " 刚才说什么")
    assert "柳荫巷" not in await ask(stage, BEAR, segments.reply(mine.message_id), " 这是什么")
    assert await said(stage, BOT) == ["好的"] * len(await said(stage, BOT))
    assert "柳荫" not in str(indexed(stage.app.db.path))
    for arguments in ({"mode": "list"}, {"mode": "search", "query": "柳荫巷", "match": "keyword"}):
        assert "药店" not in (await output(await turn(stage), "chat_history", **arguments)).text
    stage.say(GROUP, CAT, "/搜 药店")
    await stage.advance(5)
    assert "没有找到" in stage.texts()[-1]


async def test_an_answer_to_them_is_nobody_elses_to_read(stage: Stage):
    mine = await answered_in_part(stage)
    rows = await stage.rows(
        "SELECT kind, text, segments FROM messages WHERE platform_id = ?", str(mine.message_id)
    )
    assert rows == [("notice", "", "[]")]
    await nobody_else_is_shown(stage, mine)
    await stage.clock.advance(DAY_SECONDS)
    await tick(stage.app)
    await nobody_else_is_shown(stage, mine)


async def test_an_answer_to_them_stays_theirs_once_they_are_recorded_again(stage: Stage):
    mine = await answered_in_part(stage)
    stage.say(GROUP, FISH, "/记我")
    await stage.advance(5)
    await nobody_else_is_shown(stage, mine)
    # What is said now is for all to read, so it is not made from what is not.
    assert "柳荫巷" not in await ask(stage, FISH, " 那医院呢")
    await stage.clock.advance(DAY_SECONDS)
    await tick(stage.app)
    await nobody_else_is_shown(stage, mine)


async def test_an_answer_to_them_is_quoted_to_address_the_bot_and_known_to_them(stage: Stage):
    mine = await answered_in_part(stage)
    stage.model.enqueue("八点")
    stage.say(GROUP, FISH, segments.reply(mine.message_id), "那医院呢")
    await stage.advance(10)
    assert stage.texts()[-1] == "八点"
    assert PARTLY in whole(stage.model.requests[-1])


async def test_an_answer_in_other_words_goes_with_what_was_kept(stage: Stage):
    await answered_in_part(stage)
    assert PARTLY in await dump(stage)
    await stage.clock.advance(DAY_SECONDS)
    await tick(stage.app)
    left = await dump(stage)
    assert "柳荫" not in left
    assert "药店" not in left


async def test_a_question_of_theirs_that_they_recall_takes_its_answer_along(stage: Stage):
    await opt_out(stage)
    stage.model.enqueue(PARTLY)
    spoken = stage.say(GROUP, FISH, AT_BOT, " 旁边的药店几点开门")
    await stage.advance(10)
    assert PARTLY in await dump(stage)
    await stage.recall(spoken)
    assert "药店" not in await dump(stage)


async def test_a_turn_of_theirs_takes_no_context_from_others(stage: Stage):
    await opt_out(stage)
    await ask(stage, CAT, " 早上好", answer="早")
    stage.say(GROUP, BEAR, "周六我们去湖边野餐")
    stage.say(GROUP, CAT, "我带帐篷")
    await stage.advance(2)
    await ask(stage, FISH, " 你好呀", answer="你也好呀")
    for who in (BEAR, CAT):
        prompt = await ask(stage, who, " 刚才说什么")
        assert prompt.count("周六我们去湖边野餐") == 1
        assert prompt.count("我带帐篷") == 1
        assert "你好呀" not in prompt
        assert "你也好呀" not in prompt


async def test_an_answer_to_them_is_no_context_of_others_however_many_there_are(stage: Stage):
    await stage.set(maxConsecutiveTurns=1, replyPerMemberPerMinute=50)
    await opt_out(stage)
    for number in range(4):
        await stage.advance(120)
        await ask(stage, FISH, f" 问题{number}", answer=f"回答{number}")
    prompt = await ask(stage, BEAR, " 刚才说什么")
    assert not any(f"问题{n}" in prompt or f"回答{n}" in prompt for n in range(4))


async def test_what_they_say_is_no_context_no_quote_and_found_by_no_tool(stage: Stage):
    await opt_out(stage)
    kept = stage.say(GROUP, FISH, AT_BOT, " 湖边见")
    await stage.advance(10)
    stage.say(GROUP, FISH, "湖边等你")
    await stage.advance(2)
    stage.say(GROUP, BEAR, segments.reply(kept.message_id), AT_BOT, " 他说什么")
    await stage.advance(10)
    assert "湖边" not in asked(stage.model.requests[-1])
    for arguments in ({"mode": "list"}, {"mode": "search", "query": "湖边", "match": "keyword"}):
        assert "湖边" not in (await output(await turn(stage), "chat_history", **arguments)).text
    stage.say(GROUP, CAT, "/搜 湖边")
    await stage.advance(2)
    assert "湖边见" not in stage.texts()[-1]


async def test_a_turn_of_theirs_enters_no_summary(stage: Stage):
    await opt_out(stage)
    for number in range(9):
        await stage.advance(60)
        await ask(stage, FISH if number % 2 else BEAR, f" 问题{number}", answer=f"回答{number}")
    await stage.clock.advance(20 * 60)
    stage.model.enqueue("{}", purpose="summarize")
    await tick(stage.app)
    [request] = [one for one in stage.model.requests if is_summary(one)]
    read = " ".join(texts_of(request))
    assert all(f"问题{n}" in read and f"回答{n}" in read for n in (0, 2, 4, 6, 8))
    assert not any(f"问题{n}" in read or f"回答{n}" in read for n in (1, 3, 5, 7))


async def test_the_model_notes_nothing_of_them(stage: Stage):
    await opt_out(stage)
    asker = await turn(stage, "我不吃香菜")
    with pytest.raises(ToolError, match="/记我"):
        await use(asker, "remember", text="不吃香菜")
    assert await stage.rows("SELECT * FROM entries") == []


async def test_a_reminder_of_theirs_is_still_sent_and_recorded_without_its_text(stage: Stage):
    asker = await turn(stage, "十分钟后提醒我喝药")
    await use(asker, "remind", text="喝药", in_minutes=10)
    await opt_out(stage)
    await stage.advance(600)
    stage.spawn(send_due(stage.app))
    await stage.advance(10)
    assert "喝药" in stage.texts()[-1]
    assert "喝药" not in await dump(stage)


async def test_they_may_ask_to_be_reminded_also_of_what_is_erased_by_then(stage: Stage):
    await opt_out(stage)
    await ask(stage, FISH, " 后天提醒我喝药")
    [(row,)] = await stage.rows("SELECT id FROM messages WHERE kept_until IS NOT NULL")
    due_at = stage.now + 2 * DAY_SECONDS * 1000
    await keep_reminder(
        stage.app, HERE, str(FISH), [row], due_at=due_at, text="喝药", begun_at=stage.now
    )
    await stage.clock.advance(DAY_SECONDS)
    await tick(stage.app)
    assert await said(stage) == []
    await stage.clock.advance(DAY_SECONDS)
    stage.spawn(send_due(stage.app))
    await stage.advance(10)
    assert "喝药" in stage.texts()[-1]
    assert "喝药" not in await dump(stage)


async def test_a_reminder_of_theirs_stays_theirs_once_they_are_recorded_again(stage: Stage):
    await opt_out(stage)
    await ask(stage, FISH, " 等会提醒我喝药")
    [(row,)] = await stage.rows("SELECT id FROM messages WHERE kept_until IS NOT NULL")
    due_at = stage.now + 600_000
    await keep_reminder(
        stage.app, HERE, str(FISH), [row], due_at=due_at, text="喝药", begun_at=stage.now
    )
    stage.say(GROUP, FISH, "/记我")
    await stage.advance(600)
    stage.spawn(send_due(stage.app))
    await stage.advance(10)
    assert "喝药" in stage.texts()[-1]
    assert not any("喝药" in text for text in await said(stage, BOT))


# Turns and conversations


async def test_what_they_said_before_is_in_no_prompt_any_more(stage: Stage):
    stage.say(GROUP, FISH, "我家在湖边")
    await stage.advance(2)
    assert "湖边" in await ask(stage, BEAR, " 在吗")
    await ask(stage, FISH, " 湖边远吗", answer="湖边远吗不好说")
    await opt_out(stage)
    assert "湖边" not in await ask(stage, BEAR, " 又来了")
    assert "湖边" not in await dump(stage)


async def test_an_answer_that_repeats_them_is_quoted_in_no_prompt_any_more(stage: Stage):
    await ask(stage, FISH, " 我家在湖边路", answer="记下了：我家在湖边路")
    mine = stage.sent[-1]
    assert "湖边" in await ask(stage, BEAR, segments.reply(mine.message_id), " 他说什么")
    await opt_out(stage)
    assert "湖边" not in await ask(stage, BEAR, " 又来了")
    assert "湖边" not in await dump(stage)


async def test_a_turn_that_shows_what_they_said_begins_again(stage: Stage):
    stage.say(GROUP, FISH, "我家在湖边")
    await stage.advance(2)
    stage.model.hold()
    stage.say(GROUP, BEAR, AT_BOT, " 他家在哪")
    await stage.advance(5)
    assert "湖边" in whole(stage.model.requests[-1])
    await opt_out(stage)
    stage.model.release()
    await stage.advance(10)
    assert "湖边" not in whole(stage.model.requests[-1])
    assert stage.texts()[-1] == "好的"
    assert "湖边" not in await dump(stage)


async def test_a_question_of_theirs_that_still_waits_is_not_answered(stage: Stage):
    stage.model.hold()
    stage.say(GROUP, FISH, AT_BOT, " 我家在湖边对吗")
    await stage.advance(5)
    await opt_out(stage)
    stage.model.release()
    await stage.advance(10)
    assert "好的" not in stage.texts()
    assert "湖边" not in await dump(stage)


async def test_a_person_with_many_messages_is_told_that_the_rest_follows(stage: Stage):
    for number in range(1_100):
        stage.say(GROUP, FISH, f"第{number}句")
    await stage.settle()
    await opt_out(stage)
    assert "正在继续抹去" in stage.texts()[-1]
    for _ in range(200):
        if not await said(stage):
            break
        await asyncio.sleep(0.02)
    assert await said(stage) == []


# In the middle of erasing


async def test_asking_again_goes_on_erasing_what_an_error_left(stage: Stage):
    stage.say(GROUP, FISH, "我家在湖边")
    await stage.advance(2)
    await stage.app.opt_outs.add(A_FISH, at=stage.now)
    assert await said(stage) == ["我家在湖边"]
    stage.say(GROUP, FISH, "/别记我 确认")
    await stage.advance(2)
    assert "正在继续抹去" in stage.texts()[-1]
    for _ in range(200):
        if not await stage.rows("SELECT 1 FROM members WHERE hidden_until > erased_until"):
            break
        await asyncio.sleep(0.02)
    assert await said(stage) == []
    stage.say(GROUP, FISH, "/别记我 确认")
    await stage.advance(2)
    assert "正在继续抹去" not in stage.texts()[-1]


async def talk_of_the_lake(stage: Stage) -> None:
    """Let the conversation show something that Fish said, and asked."""
    stage.say(GROUP, FISH, "我家在湖边")
    await stage.advance(2)
    assert "湖边" in await ask(stage, BEAR, " 在吗")
    await ask(stage, FISH, " 湖边远吗", answer="不远")
    await stage.advance(60)


@dataclass
class Hold:
    """Keeps the database from being written, from ``holds`` until ``ends``."""

    stage: Stage
    holds: asyncio.Event = field(default_factory=asyncio.Event)
    ends: asyncio.Event = field(default_factory=asyncio.Event)

    async def keep(self) -> None:
        async with self.stage.app.db.transaction():
            self.holds.set()
            await self.ends.wait()


async def ask_in_the_middle(
    stage: Stage, erasing: Coroutine[Any, Any, Any], *, is_hidden: bool
) -> str:
    """Let somebody ask while what is hidden of Fish waits to be erased; return the prompts."""
    before = len(stage.model.requests)
    stage.say(GROUP, BEAR, AT_BOT, " 又来了")
    await stage.settle()
    # Unless they are hidden already, the second comes right behind what hides them.
    holds = [Hold(stage)] if is_hidden else [Hold(stage), Hold(stage)]
    tasks = [asyncio.create_task(holds[0].keep())]
    await holds[0].holds.wait()
    tasks.append(asyncio.create_task(erasing))
    await asyncio.sleep(0.05)
    for first, second in pairwise(holds):
        tasks.append(asyncio.create_task(second.keep()))
        await asyncio.sleep(0.01)
        first.ends.set()
    await holds[-1].holds.wait()
    assert "我家在湖边" in await dump(stage)
    assert await stage.rows("SELECT 1 FROM members WHERE hidden_until > erased_until")
    await stage.clock.advance(5)
    await asyncio.sleep(0.1)
    holds[-1].ends.set()
    await asyncio.gather(*tasks)
    await stage.advance(10)
    assert stage.texts()[-1] == "好的"
    return "".join(whole(request) for request in stage.model.requests[before:])


async def test_a_turn_asked_in_the_middle_of_erasing_shows_nothing_of_it(stage: Stage):
    await talk_of_the_lake(stage)
    assert "湖边" not in await ask_in_the_middle(stage, leave(stage.app, A_FISH), is_hidden=False)


async def test_a_turn_asked_before_a_restart_has_erased_all_shows_nothing_of_it(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        await talk_of_the_lake(stage)
        await stage.app.opt_outs.add(A_FISH, at=stage.now)
        now = stage.now
    async with open_stage(tmp_path, start=now + 60_000) as stage:
        assert "湖边" not in await ask_in_the_middle(stage, erase_hidden(stage.app), is_hidden=True)


async def test_an_answer_that_goes_out_while_they_are_erased_repeats_nothing_of_them(stage: Stage):
    stage.say(GROUP, FISH, "我家在湖边的红房子")
    for number in range(400):
        stage.say(GROUP, FISH, f"第{number}件小事")
    stage.say(OTHER_GROUP, FISH, "大家好")
    await stage.advance(2)
    stage.say(OTHER_GROUP, BEAR, AT_BOT, " 在吗")
    await stage.advance(10)
    # Its prompt shows none of their messages as context: it may know by other ways.
    stage.platform.hold()
    stage.model.enqueue("他说过：我家在湖边的红房子")
    stage.say(OTHER_GROUP, BEAR, AT_BOT, " 他家在哪")
    await stage.advance(10)
    assert stage.platform.held == 1
    erasing = asyncio.create_task(leave(stage.app, A_FISH))
    for _ in range(1_000):
        if len(await said(stage)) < 350:
            break
        await asyncio.sleep(0.002)
    stage.platform.release()
    await stage.settle()
    assert not erasing.done()
    [(direction,)] = await stage.rows("SELECT direction FROM messages ORDER BY id DESC LIMIT 1")
    assert direction == "outbound"
    await erasing
    assert stage.texts()[-1] == "他说过：我家在湖边的红房子"
    assert "湖边的红房子" not in await dump(stage)


def bytes_of(stage: Stage) -> bytes:
    """All that the files of the database hold."""
    path = stage.app.db.path
    return path.read_bytes() + Path(f"{path}-wal").read_bytes()


async def test_what_is_erased_stands_in_no_file_of_the_database(stage: Stage):
    stage.say(GROUP, FISH, "我家在湖边的红房子")
    stage.say(GROUP, BEAR, "周六去野餐")
    await stage.advance(2)
    assert "湖边的红房子".encode() in bytes_of(stage)
    await leave(stage.app, A_FISH)
    assert "湖边的红房子".encode() not in bytes_of(stage)
    assert "周六去野餐".encode() in bytes_of(stage)


async def test_the_night_empties_the_log_of_what_was_erased(stage: Stage):
    await opt_out(stage)
    await ask(stage, FISH, " 湖边的药店几点开门")
    await stage.clock.advance(DAY_SECONDS)
    await tick(stage.app)
    assert "湖边的药店".encode() in bytes_of(stage)
    assert await tend(stage.app)
    assert "湖边的药店".encode() not in bytes_of(stage)

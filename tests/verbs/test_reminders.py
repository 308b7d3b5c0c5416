"""Reminders: kept, sent once, and gone with what asked for them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.conversation.reminders import MAX_OPEN
from bot.errors import ToolError
from bot.model import ANONYMOUS_ID, Chat, Member, Segment, Sender
from bot.remind import OF_A_CHAT, keep_reminder, send_due, settle
from bot.simulate import Fail, Silence, segments
from bot.store.chats import block, set_muted, set_removed
from bot.store.messages import Recall, recall_message, set_apart
from bot.tools.surroundings import Surroundings
from tests.verbs.stage import BEAR, BOT, FISH, GROUP, NOON, OPERATOR, Stage, open_stage
from tests.verbs.test_waiting import a_while, locked
from tests.verbs.tooling import ALONE, HERE, THERE, output, question, turn, use

MINUTE = 60_000


async def asked(stage: Stage, text: str = "喝水", chat: Chat = HERE, by: int = FISH, **when: Any):
    """Let somebody ask for a reminder, in ten minutes if nothing else is said."""
    asker = await turn(stage, f"提醒我{text}", chat, by)
    await use(asker, "remind", text=text, **(when or {"in_minutes": 10}))
    return asker


async def look(stage: Stage) -> None:
    """Let what is due be sent."""
    stage.spawn(send_due(stage.app))
    await stage.advance(10)


async def states(stage: Stage) -> list[str]:
    return [state for (state,) in await stage.rows("SELECT state FROM reminders ORDER BY id")]


# Asking for one


async def test_a_reminder_is_kept_and_said_when_it_will_come(stage: Stage):
    asker = await turn(stage, "十分钟后提醒我喝水")
    told = await output(asker, "remind", in_minutes=10, text="喝水")
    assert told.text == "提醒 #1 定好了，2026-07-29 12:10：喝水"
    assert told.message_ids == tuple(s.row_id for s in asker.scene.question.messages)


async def test_a_time_of_day_is_local(stage: Stage):
    asker = await turn(stage)
    await use(asker, "remind", at="2026-07-30 08:00", text="开会")
    [(due,)] = await stage.rows("SELECT due_at FROM reminders")
    assert due == NOON + 20 * 60 * MINUTE


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"in_minutes": 0},
        {"in_minutes": 366 * 24 * 60 + 1},
        {"in_minutes": 5, "at": "2026-07-30 08:00"},
        {"at": "2026-07-29 11:59"},
        {"at": "2028-07-29 11:59"},
        {"at": "2026-07-30"},
        {"at": "明天早上"},
        {"in_minutes": 5, "text": ""},
        {"in_minutes": 5, "text": "长" * 201},
        {"in_minutes": 5, "text": "\u200b"},
    ],
)
async def test_what_cannot_be_kept_is_told_to_the_model(stage: Stage, arguments: dict[str, Any]):
    with pytest.raises(ToolError):
        await use(await turn(stage), "remind", **{"text": "喝水", **arguments})
    assert await states(stage) == []


async def test_the_text_is_one_line_and_without_numbers_that_are_nobodys_business(stage: Stage):
    asker = await turn(stage)
    told = await use(asker, "remind", in_minutes=5, text="打给\n13800138000\u202e")
    assert told.endswith("：打给 [手机号]")


async def test_twenty_wait_for_one_person_and_no_more(stage: Stage):
    for chat in (HERE, THERE):
        for _ in range(10):
            await asked(stage, chat=chat)
    with pytest.raises(ToolError, match="最多 20 个"):
        await asked(stage)
    await asked(stage, by=BEAR)


async def test_a_turn_that_begins_again_leaves_one_reminder(stage: Stage):
    asker = await asked(stage)
    again = await turn(stage)
    await stage.advance(5)
    scene = replace(asker.scene, now=stage.now)
    later = Surroundings(stage.app, scene, asker.shown_rows)
    await use(later, "remind", in_minutes=10, text="喝水呀")
    await use(later, "remind", in_minutes=20, text="再喝")
    await use(again, "remind", in_minutes=20, text="别的")
    assert await states(stage) == ["dropped", "open", "open", "open"]


async def test_minutes_count_from_the_question(stage: Stage):
    asker = await turn(stage)
    await stage.advance(30)
    await use(asker, "remind", in_minutes=10, text="喝水")
    [(due,)] = await stage.rows("SELECT due_at FROM reminders")
    assert due == NOON + 10 * MINUTE


async def test_the_anonymous_and_who_took_their_words_back_get_none(stage: Stage):
    masked = Sender(ANONYMOUS_ID, anonymous=True)
    nobody = await turn(stage, by=int(ANONYMOUS_ID), sender=masked)
    with pytest.raises(ToolError, match="匿名"):
        await use(nobody, "remind", in_minutes=5, text="喝水")
    asker = await turn(stage, id="again")
    async with stage.app.db.transaction() as tx:
        await recall_message(tx, Recall(HERE, "again", str(FISH), stage.now))
    with pytest.raises(ToolError, match="撤回"):
        await use(asker, "remind", in_minutes=5, text="喝水")


async def test_words_that_no_reply_may_contain_are_in_no_reminder(stage: Stage):
    await stage.set(blockedWords=["坏话"])
    with pytest.raises(ToolError, match="不允许说"):
        await asked(stage, "说坏话")
    await stage.set(blockedWords=[])
    await asked(stage, "说坏话")
    await stage.set(blockedWords=["坏话"])
    await stage.advance(601)
    await look(stage)
    assert stage.sent == []
    assert await states(stage) == ["dropped"]


# Sending it


async def test_who_asked_in_a_group_is_reminded_there_with_an_at(stage: Stage):
    await asked(stage)
    await stage.advance(599)
    await look(stage)
    assert stage.sent == []
    await stage.advance(1)
    await look(stage)
    [sent] = stage.sent
    assert sent.chat == HERE
    assert sent.segments[0] == Segment("at", {"qq": str(FISH)})
    assert sent.text.endswith("提醒：喝水")
    await look(stage)
    assert len(stage.sent) == 1
    assert await states(stage) == ["sent"]


async def test_who_asked_in_private_is_reminded_there(stage: Stage):
    await asked(stage, chat=ALONE)
    await stage.advance(600)
    await look(stage)
    assert [(sent.chat, sent.text) for sent in stage.sent] == [(ALONE, "提醒：喝水")]


async def test_what_was_said_to_remind_stands_in_the_conversation(stage: Stage):
    await asked(stage)
    await stage.advance(600)
    await look(stage)
    stage.say(GROUP, FISH, segments.at(BOT), " 刚才是什么")
    await stage.advance(20)
    assert "提醒：喝水" in stage.model.requests[-1].messages[-1].content


async def test_one_that_was_missed_comes_once_and_says_how_late_it_is(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        await asked(stage)
    async with open_stage(tmp_path, start=NOON + (3 * 60 + 10) * MINUTE) as stage:
        await settle(stage.app)
        await look(stage)
        await look(stage)
        [sent] = stage.sent
        assert sent.text.endswith("提醒：喝水（晚了 3 小时，当时我不在线）")


@pytest.mark.parametrize("minutes", [20, 0], ids=["later", "clock-set-back"])
async def test_one_that_a_dead_process_was_sending_is_not_sent_again(tmp_path: Path, minutes: int):
    async with open_stage(tmp_path) as stage:
        await asked(stage)
        await stage.advance(600)
        stage.platform.hold()
        stage.spawn(send_due(stage.app))
        await stage.settle()
        assert await states(stage) == ["sending"]
    async with open_stage(tmp_path, start=NOON + minutes * MINUTE) as stage:
        await settle(stage.app)
        await look(stage)
        assert stage.sent == []
        assert await states(stage) == ["sent"]


async def test_two_looks_at_once_send_it_once(stage: Stage):
    await asked(stage)
    await stage.advance(600)
    for _ in range(3):
        stage.spawn(send_due(stage.app))
    await stage.advance(30)
    assert len(stage.sent) == 1


async def test_a_full_queue_drops_no_reminder(stage: Stage):
    await stage.set(sendPerChatPerMinute=1)
    for number in range(4):
        await asked(stage, f"第 {number} 件事")
    await stage.advance(600)
    stage.spawn(send_due(stage.app))
    await stage.advance(300)
    assert len(stage.sent) == 4
    assert await states(stage) == ["sent"] * 4


async def test_what_the_platform_refuses_is_tried_three_times(stage: Stage):
    await asked(stage)
    await stage.advance(600)
    stage.platform.behave("send_group_msg", Fail(), times=3)
    for state in ("open", "open", "failed"):
        await look(stage)
        assert await states(stage) == [state]
        await stage.advance(300)
    await look(stage)
    assert stage.sent == []


async def test_what_is_refused_once_comes_with_the_next_try(stage: Stage):
    await asked(stage)
    await stage.advance(600)
    stage.platform.behave("send_group_msg", Fail(), times=1)
    await look(stage)
    await stage.advance(300)
    await look(stage)
    assert await states(stage) == ["sent"]
    assert "晚了 5 分钟" in stage.sent[0].text


async def test_what_may_have_been_sent_is_not_sent_again(stage: Stage):
    await asked(stage)
    await stage.advance(600)
    stage.platform.behave("send_group_msg", Silence(), times=1)
    await look(stage)
    await look(stage)
    assert await states(stage) == ["sent"]


async def test_an_account_that_is_away_sends_it_when_it_is_back(stage: Stage):
    await asked(stage)
    stage.app.accounts.went_offline(str(BOT))
    await stage.advance(3_600)
    await look(stage)
    assert await states(stage) == ["open"]
    stage.app.accounts.came_online(str(BOT))
    await look(stage)
    assert "晚了 50 分钟" in stage.sent[0].text


async def test_a_mute_is_waited_for(stage: Stage):
    await asked(stage)
    async with stage.app.db.transaction() as tx:
        await set_muted(tx, HERE, NOON + 20 * MINUTE)
    await stage.advance(900)
    await look(stage)
    assert stage.sent == []
    await stage.advance(400)
    await look(stage)
    assert len(stage.sent) == 1


@pytest.mark.parametrize("why", ["switched off", "removed", "blocked", "left", "not approved"])
async def test_none_goes_where_nobody_is_served(stage: Stage, why: str):
    await asked(stage)
    async with stage.app.db.transaction() as tx:
        if why == "removed":
            await set_removed(tx, HERE, stage.now)
        elif why == "blocked":
            await block(tx, Member(str(BOT), str(FISH)), by=str(OPERATOR), at=stage.now)
        elif why == "left":
            await tx.execute_fetchall("UPDATE memberships SET left_at = 1")
    if why == "switched off":
        await stage.app.access.switch(HERE, "disabled", by=str(OPERATOR), at=stage.now)
    if why == "not approved":
        await stage.set(groupAccess="approved")
    await stage.advance(600)
    await look(stage)
    assert stage.sent == []
    assert await states(stage) == ["dropped"]


async def test_quiet_hours_hold_none_back(stage: Stage):
    await stage.set(quietHours="00:00-23:59")
    await asked(stage)
    await stage.advance(600)
    await look(stage)
    assert len(stage.sent) == 1


async def test_the_moment_is_asked_for_and_the_next_one_is_told(stage: Stage):
    woken: list[int] = []
    stage.app.alarms.wind(woken.append)
    await asked(stage, in_minutes=10)
    await asked(stage, in_minutes=30)
    assert woken == [NOON + 10 * MINUTE, NOON + 30 * MINUTE]
    await stage.advance(600)
    task = stage.spawn(send_due(stage.app))
    await stage.advance(10)
    assert await task == NOON + 30 * MINUTE


# Going with what asked for it


@pytest.mark.parametrize("how", ["recalled", "forgotten"])
@pytest.mark.parametrize("which", [0, 1])
async def test_a_reminder_goes_with_any_message_that_asked_for_it(
    stage: Stage, how: str, which: int
):
    asker = await question(stage, "十分钟后提醒我喝水", "谢谢")
    await use(asker, "remind", in_minutes=10, text="喝水")
    one = asker.scene.question.messages[which]
    async with stage.app.db.transaction() as tx:
        if how == "recalled":
            platform_id = one.message.platform_id
            await recall_message(tx, Recall(HERE, platform_id, str(FISH), stage.now))
        else:
            await set_apart(tx, one.row_id, stage.now)
    assert await stage.rows("SELECT state, text FROM reminders") == [("dropped", "")]
    await stage.advance(600)
    await look(stage)
    assert stage.sent == []


async def test_what_was_sent_is_shown_no_more_once_its_request_is_recalled(stage: Stage):
    asker = await asked(stage, "带上那份秘密文件")
    await stage.advance(600)
    await look(stage)
    [one] = asker.scene.question.messages
    async with stage.app.db.transaction() as tx:
        platform_id = one.message.platform_id
        await recall_message(tx, Recall(HERE, platform_id, str(FISH), stage.now))
    for table in ("messages", "reminders", "turn_lines"):
        texts = await stage.rows(f"SELECT text FROM {table}")
        assert "秘密" not in str(texts)


async def test_one_whose_request_is_recalled_while_it_is_sent_leaves_no_text(stage: Stage):
    asker = await asked(stage, "带上那份秘密文件")
    await stage.advance(600)
    stage.platform.hold()
    stage.spawn(send_due(stage.app))
    await stage.settle()
    [one] = asker.scene.question.messages
    async with stage.app.db.transaction() as tx:
        platform_id = one.message.platform_id
        await recall_message(tx, Recall(HERE, platform_id, str(FISH), stage.now))
    stage.platform.release()
    await stage.advance(10)
    assert len(stage.texts()) == 1
    assert await stage.rows("SELECT state, text FROM reminders") == [("sent", "")]
    assert "秘密" not in str(await stage.rows("SELECT text, segments FROM messages"))


# The command


async def answer_to(stage: Stage, who: int, words: str, chat: Chat = HERE) -> str:
    count = len(stage.sent)
    if chat.is_group:
        stage.say(int(chat.id), who, words)
    else:
        stage.whisper(who, words)
    await stage.advance(10)
    return "\n".join(stage.texts()[count:])


async def test_people_see_their_own_reminders_and_in_a_group_only_its_own(stage: Stage):
    await asked(stage, "喝水", HERE)
    await asked(stage, "跑步", THERE, in_minutes=90)
    await asked(stage, "私事", ALONE)
    await asked(stage, "睡觉", HERE, BEAR)
    here = await answer_to(stage, FISH, "/提醒")
    assert "#1 2026-07-29 12:10（10 分钟后）：喝水" in here
    await stage.advance(560)
    assert "（不到 1 分钟后）：喝水" in await answer_to(stage, FISH, "/提醒")
    assert not [word for word in ("跑步", "私事", "睡觉") if word in here]
    alone = await answer_to(stage, FISH, "/提醒 列表", ALONE)
    assert f"（群 {THERE.id}）：跑步" in alone
    assert all(word in alone for word in ("喝水", "跑步", "私事"))
    assert "睡觉" not in alone
    assert await answer_to(stage, OPERATOR, "/提醒", HERE) == "没有等待中的提醒。"


async def test_people_cancel_their_own_and_no_others(stage: Stage):
    for text, chat, by in (("喝水", HERE, FISH), ("私事", ALONE, FISH), ("睡觉", HERE, BEAR)):
        await asked(stage, text, chat, by)
    for number in ("#2", "3", "#9", "x"):
        assert await answer_to(stage, FISH, f"/提醒 取消 {number}") == "没有这个提醒。"
    assert await answer_to(stage, FISH, "/提醒 取消 ＃１") == "取消了 1 个提醒。"
    assert await states(stage) == ["cancelled", "open", "open"]
    assert await answer_to(stage, FISH, "/提醒 取消 全部") == "没有等待中的提醒。"
    assert await answer_to(stage, FISH, "/提醒 取消 全部", ALONE) == "取消了 1 个提醒。"
    assert await states(stage) == ["cancelled", "cancelled", "open"]
    assert "用法" in await answer_to(stage, FISH, "/提醒 删 #1")
    await stage.advance(600)
    await look(stage)
    assert [sent.text for sent in stage.sent if "提醒：" in sent.text] == [" 提醒：睡觉"]


async def test_a_crowd_of_reminders_in_one_chat_holds_up_no_other(stage: Stage):
    for person in range(6):
        who = 40_001 + person
        asker = await turn(stage, "提醒大家", by=who)
        rows = tuple(stored.row_id for stored in asker.scene.question.messages)
        for number in range(MAX_OPEN):
            await keep_reminder(
                stage.app,
                HERE,
                str(who),
                rows,
                due_at=NOON + 10 * MINUTE,
                text=f"第{number}个",
                begun_at=stage.now,
            )
    await asked(stage, "开会", THERE, in_minutes=11)
    await stage.advance(11 * 60)
    stage.spawn(send_due(stage.app))
    await stage.advance(60)
    assert stage.texts(THERE) == [" 提醒：开会"]
    assert len(stage.texts(HERE)) == OF_A_CHAT


async def test_one_that_is_refused_while_nothing_can_be_written_comes_with_the_next_try(
    stage: Stage,
):
    await asked(stage)
    await stage.advance(600)
    stage.platform.behave("send_group_msg", Fail(), times=1)
    stage.platform.hold()
    stage.spawn(send_due(stage.app))
    await stage.settle()
    async with locked(stage):
        stage.platform.release()
        await a_while()
    await stage.advance(10)
    assert await states(stage) == ["open"]
    await stage.advance(300)
    await look(stage)
    assert await states(stage) == ["sent"]
    assert len(stage.texts()) == 1

"""When the bot answers: debounce, gaps, limits and loops, to the millisecond."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bot.errors import ModelUnavailable
from bot.model import Usage
from bot.store.usage import add_usage
from tests.verbs.stage import (
    AT_BOT,
    BEAR,
    CAT,
    FISH,
    GROUP,
    NOON,
    OTHER_GROUP,
    Stage,
    asked,
    open_stage,
    shown_texts,
)


async def test_a_question_is_answered_when_its_sender_has_paused(stage: Stage):
    stage.say(GROUP, FISH, AT_BOT, " 你好")
    await stage.advance(60)
    assert (stage.texts(stage.group), stage.times()) == (["好的"], [1.2])


async def test_quick_messages_of_one_sender_are_one_question(stage: Stage):
    stage.say(GROUP, FISH, AT_BOT, " 第一句")
    await stage.advance(1)
    stage.say(GROUP, FISH, AT_BOT, " 第二句")
    await stage.advance(60)
    assert stage.times() == [2.2]
    assert [text.split()[-1] for text in shown_texts(asked(stage.model.requests[0]))] == [
        "第一句",
        "第二句",
    ]


async def test_a_question_that_follows_its_mention_at_once_goes_with_it(stage: Stage):
    stage.say(GROUP, FISH, AT_BOT)
    await stage.advance(1)
    stage.say(GROUP, FISH, "明天下雨吗")
    stage.say(GROUP, BEAR, "我不知道")
    await stage.advance(60)
    _, words = asked(stage.model.requests[0]).split("【对你说的】")
    assert [text.split()[-1] for text in shown_texts(words)] == ["@小忆(10001)", "明天下雨吗"]
    assert stage.times() == [2.2]


async def test_who_never_pauses_is_answered_after_four_times_the_debounce(stage: Stage):
    for _ in range(6):
        stage.say(GROUP, FISH, AT_BOT, " 喂")
        await stage.advance(0.9)
    await stage.advance(0.1)
    assert stage.times() == [4.8]


async def test_ten_mentions_in_five_seconds_get_at_most_two_replies(stage: Stage):
    for number in range(10):
        stage.say(GROUP, FISH, AT_BOT, f" 第{number}句")
        await stage.advance(0.5)
    await stage.advance(120)
    assert 1 <= len(stage.sent) <= 2


async def test_the_next_sender_is_answered_after_the_gap_in_a_turn_of_their_own(stage: Stage):
    stage.say(GROUP, FISH, AT_BOT, " 一")
    await stage.advance(0.1)
    stage.say(GROUP, BEAR, AT_BOT, " 二")
    await stage.advance(60)
    assert stage.times() == [1.2, 4.2]
    assert len(stage.model.requests) == 2


async def test_the_gap_counts_from_the_end_of_an_answer(stage: Stage):
    await stage.set(replyMinGapSeconds=10)
    stage.say(GROUP, FISH, AT_BOT, " 一")
    await stage.advance(5)
    stage.say(GROUP, FISH, AT_BOT, " 二")
    await stage.advance(60)
    assert stage.times() == [1.2, 11.2]


async def test_what_comes_while_a_turn_runs_is_one_turn_after_it(stage: Stage):
    stage.model.hold()
    stage.say(GROUP, FISH, AT_BOT, " 一")
    await stage.advance(2)
    stage.say(GROUP, FISH, AT_BOT, " 二")
    await stage.advance(3)
    stage.say(GROUP, FISH, AT_BOT, " 三")
    await stage.advance(1)
    assert len(stage.model.requests) == 1
    stage.model.release()
    await stage.advance(60)
    assert len(stage.model.requests) == 2
    assert stage.times() == [6, 9]


async def test_a_flood_of_one_chat_holds_up_no_other(stage: Stage):
    stage.model.hold()
    stage.say(GROUP, FISH, AT_BOT, " 慢")
    await stage.advance(2)
    stage.model.release()
    stage.model.enqueue("另一个群")
    stage.say(OTHER_GROUP, BEAR, AT_BOT, " 快")
    await stage.advance(2)
    assert [sent.chat for sent in stage.sent] == [stage.group, stage.other_group]


async def test_a_flood_by_many_respects_the_gap_and_the_caps(stage: Stage):
    for number in range(200):
        stage.say(GROUP, (FISH, BEAR, CAT)[number % 3], AT_BOT, f" 第{number}句")
        await stage.advance(0.2)
    await stage.advance(120)
    assert all(later.at - earlier.at >= 3_000 for earlier, later in pairwise(stage.sent))
    began = await stage.rows(
        "SELECT m.user_id, t.started_at FROM turns AS t JOIN members AS m ON m.id = t.member_id"
    )
    assert {user_id for user_id, _ in began} == {str(FISH), str(BEAR), str(CAT)}
    for user_id, at in began:
        within = [other for other in began if other[0] == user_id and at <= other[1] < at + 60_000]
        assert len(within) <= 5


async def test_a_member_over_their_minute_gets_no_turn_and_others_do(stage: Stage):
    await stage.set(replyPerMemberPerMinute=2, replyMinGapSeconds=0)
    for _ in range(4):
        stage.say(GROUP, FISH, AT_BOT, " 再来")
        await stage.advance(5)
    stage.say(GROUP, BEAR, AT_BOT, " 我呢")
    await stage.advance(5)
    assert stage.times() == [1.2, 6.2, 21.2]
    await stage.advance(40)
    stage.say(GROUP, FISH, AT_BOT, " 一分钟后")
    await stage.advance(5)
    assert len(stage.sent) == 4


async def test_the_limit_of_a_member_holds_across_chats(stage: Stage):
    await stage.set(replyPerMemberPerMinute=1)
    stage.say(GROUP, FISH, AT_BOT, " 这里")
    await stage.advance(3)
    stage.say(OTHER_GROUP, FISH, AT_BOT, " 那里")
    await stage.advance(5)
    assert [sent.chat for sent in stage.sent] == [stage.group]


async def test_a_member_over_their_day_is_answered_again_on_the_next_local_day(tmp_path: Path):
    before_midnight = NOON + 12 * 3_600_000 - 120_000
    async with open_stage(tmp_path, start=before_midnight) as stage:
        await stage.set(replyPerMemberPerDay=1)
        for _ in range(2):
            stage.say(GROUP, FISH, AT_BOT, " 今天")
            await stage.advance(20)
        assert len(stage.sent) == 1
        await stage.advance(120)
        stage.say(GROUP, FISH, AT_BOT, " 明天")
        await stage.advance(5)
        assert len(stage.sent) == 2


async def test_the_limit_of_all_makes_wait_until_the_oldest_turn_is_a_minute_old(stage: Stage):
    await stage.set(replyGlobalPerMinute=2)
    stage.say(GROUP, FISH, AT_BOT, " 一")
    await stage.advance(10)
    stage.say(OTHER_GROUP, BEAR, AT_BOT, " 二")
    await stage.advance(10)
    stage.whisper(CAT, "三")
    await stage.advance(120)
    assert stage.times()[:3] == [1.2, 11.2, 61.2]


async def test_turns_that_still_think_count_for_the_limit_of_all(stage: Stage):
    await stage.set(replyGlobalPerMinute=2, replyDebounceSeconds=0)
    stage.model.hold()
    stage.whisper(FISH, "一")
    stage.whisper(BEAR, "二")
    stage.whisper(CAT, "三")
    await stage.advance(30)
    assert len(stage.model.requests) == 2
    stage.model.release()
    await stage.advance(31)
    assert len(stage.model.requests) == 3


async def test_after_a_wait_for_the_limit_of_all_the_turn_counts_from_its_real_start(stage: Stage):
    await stage.set(replyGlobalPerMinute=1, replyDebounceSeconds=0)
    for who in (FISH, BEAR, CAT):
        stage.whisper(who, "喂")
    await stage.advance(130)
    assert {request.chat for request in stage.model.requests} == {
        stage.world.private_chat(who) for who in (FISH, BEAR, CAT)
    }
    begun = [at for (at,) in await stage.rows("SELECT started_at FROM turns ORDER BY id")]
    assert [(at - NOON) / 1000 for at in begun] == [0, 60, 120]


async def talk(stage: Stage, times: int, *, every_seconds: float, who: int = FISH) -> None:
    for _ in range(times):
        stage.say(GROUP, who, AT_BOT, " 你说得对")
        await stage.advance(every_seconds)


async def test_two_bots_that_answer_each_other_fall_silent_for_two_minutes(stage: Stage):
    await stage.set(maxConsecutiveTurns=3, replyMinGapSeconds=0, replyPerMemberPerMinute=100)
    await talk(stage, 10, every_seconds=4)
    assert len(stage.sent) == 4
    silent_from = stage.times()[-1]
    await stage.advance(silent_from + 119 - (stage.now - NOON) / 1000)
    await talk(stage, 1, every_seconds=0)
    stage.model.requests.clear()
    await stage.advance(1.3)
    assert len(stage.model.requests) == 1


async def test_during_the_silence_nobody_is_answered_just_before_its_end(stage: Stage):
    await stage.set(maxConsecutiveTurns=3, replyMinGapSeconds=0, replyPerMemberPerMinute=100)
    await talk(stage, 10, every_seconds=4)
    await stage.advance(stage.times()[-1] + 118 - (stage.now - NOON) / 1000)
    await talk(stage, 1, every_seconds=1.3)
    assert len(stage.sent) == 4


async def test_a_third_party_breaks_the_loop(stage: Stage):
    await stage.set(maxConsecutiveTurns=3, replyMinGapSeconds=0, replyPerMemberPerMinute=100)
    for _ in range(5):
        stage.say(GROUP, BEAR, "哈哈")
        await talk(stage, 1, every_seconds=4)
    assert len(stage.sent) == 5


async def test_a_person_who_takes_their_time_is_no_loop(stage: Stage):
    await stage.set(maxConsecutiveTurns=3, replyMinGapSeconds=0, replyPerMemberPerMinute=100)
    await talk(stage, 6, every_seconds=7)
    assert len(stage.sent) == 6


async def test_a_private_chat_is_no_loop(stage: Stage):
    await stage.set(maxConsecutiveTurns=2, replyMinGapSeconds=0, replyPerMemberPerMinute=100)
    for _ in range(6):
        stage.whisper(FISH, "嗯")
        await stage.advance(4)
    assert stage.texts().count("好的") == 6


@pytest.mark.parametrize("mode", ["mention", "silent"])
async def test_what_nobody_addressed_to_the_bot_gets_no_answer(stage: Stage, mode: str):
    await stage.set(stage.group, replyMode=mode)
    stage.say(GROUP, FISH, "大家好")
    await stage.advance(60)
    assert (stage.sent, stage.model.requests) == ([], [])
    assert await stage.rows("SELECT count(*) FROM messages") == [(1,)]


async def test_in_mode_silent_a_mention_is_recorded_and_not_answered(stage: Stage):
    await stage.set(replyMode="silent")
    stage.say(GROUP, FISH, AT_BOT, " 在吗")
    stage.whisper(FISH, "在吗")
    await stage.advance(60)
    assert {sent.chat for sent in stage.sent} == {stage.world.private_chat(FISH)}


async def test_in_mode_auto_the_bot_joins_in_and_then_cools_down(stage: Stage):
    await stage.set(stage.group, replyMode="auto")
    stage.say(GROUP, FISH, "今天吃什么")
    await stage.advance(10)
    stage.say(GROUP, BEAR, "火锅")
    await stage.advance(21.1)
    assert stage.times() == [1.2]
    await stage.advance(0.2)
    stage.say(GROUP, CAT, "烤肉")
    await stage.advance(10)
    assert stage.times() == [1.2, 32.5]


async def test_during_the_cooldown_who_addresses_the_bot_is_answered(stage: Stage):
    await stage.set(stage.group, replyMode="auto")
    stage.say(GROUP, FISH, "今天吃什么")
    await stage.advance(10)
    stage.say(GROUP, BEAR, AT_BOT, " 你说呢")
    await stage.advance(10)
    assert stage.times() == [1.2, 11.2]


async def test_auto_answers_stay_below_the_limit_of_an_hour(stage: Stage):
    await stage.set(autoPerHour=2)
    await stage.set(stage.group, replyMode="auto")
    for _ in range(5):
        stage.say(GROUP, FISH, "聊聊")
        await stage.advance(60)
    assert len(stage.sent) == 2
    stage.say(GROUP, FISH, AT_BOT, " 叫你呢")
    await stage.advance(5)
    assert len(stage.sent) == 3
    await stage.advance(3_600)
    stage.say(GROUP, FISH, "聊聊")
    await stage.advance(5)
    assert len(stage.sent) == 4


async def test_in_quiet_hours_only_who_addresses_the_bot_is_answered(stage: Stage):
    await stage.set(quietHours="11:00-13:00")
    await stage.set(stage.group, replyMode="auto")
    stage.say(GROUP, FISH, "聊聊")
    await stage.advance(60)
    assert stage.sent == []
    stage.say(GROUP, FISH, AT_BOT, " 聊聊")
    await stage.advance(60)
    assert len(stage.sent) == 1


DECIDES: dict[str, Any] = {
    "decision_model": "judge",
    "decision_api_key": "k",
    "decision_base_url": "http://x.test",
}


@pytest.mark.parametrize(
    ("verdict", "answers"),
    [("yes", 1), (" Yes.", 1), ("no", 0), ("<think>yes</think>no", 0), ("", 0), ("也许", 0)],
)
async def test_in_mode_auto_the_decision_model_has_the_word(
    tmp_path: Path, verdict: str, answers: int
):
    async with open_stage(tmp_path, **DECIDES) as stage:
        await stage.set(stage.group, replyMode="auto")
        stage.model.enqueue(verdict, purpose="decide")
        stage.say(GROUP, FISH, "谁知道明天几点集合？")
        await stage.advance(10)
        assert len(stage.sent) == answers
        assert [r.purpose for r in stage.model.requests] == ["decide"] + ["chat"] * answers
        assert "谁知道明天几点集合？" in asked(stage.model.requests[0])


async def test_a_decision_model_that_fails_says_no(tmp_path: Path):
    async with open_stage(tmp_path, **DECIDES) as stage:
        await stage.set(stage.group, replyMode="auto")
        stage.model.enqueue(ModelUnavailable("down"), purpose="decide")
        stage.say(GROUP, FISH, "在吗")
        await stage.advance(10)
        assert stage.sent == []


async def test_a_decision_model_whose_days_budget_is_spent_is_not_asked_and_that_is_a_no(
    tmp_path: Path,
):
    async with open_stage(tmp_path, **DECIDES) as stage:
        await stage.set(stage.group, replyMode="auto")
        await stage.set(dailyTokenBudget={"decide": 1})
        await add_usage(stage.app.db, Usage("decide", "m", "e", stage.now, 1, 9, 0, 0, True))
        stage.say(GROUP, FISH, "在吗")
        await stage.advance(10)
        assert stage.model.requests == []
        assert stage.sent == []


async def test_who_addresses_the_bot_needs_no_decision(tmp_path: Path):
    async with open_stage(tmp_path, **DECIDES) as stage:
        await stage.set(stage.group, replyMode="auto")
        stage.say(GROUP, FISH, AT_BOT, " 在吗")
        await stage.advance(10)
        assert [request.purpose for request in stage.model.requests] == ["chat"]


async def test_who_waited_for_over_a_minute_is_not_answered_any_more(stage: Stage):
    stage.model.hold()
    stage.say(GROUP, FISH, AT_BOT, " 慢")
    await stage.advance(2)
    stage.say(GROUP, BEAR, AT_BOT, " 等太久")
    await stage.advance(65)
    stage.model.release()
    await stage.advance(30)
    assert len(stage.model.requests) == 1

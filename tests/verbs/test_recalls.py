"""A message taken back: nothing goes out for it, and its text is in no later prompt."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bot.errors import ModelUnavailable
from bot.simulate import events, segments
from bot.simulate.actions import Desk
from tests.verbs.stage import (
    AT_BOT,
    BEAR,
    BOT,
    FISH,
    GROUP,
    NOON,
    OTHER_GROUP,
    Stage,
    asked,
    open_stage,
    shown_texts,
    told,
    whole,
)

SECRET = "我的秘密是西瓜"


async def later_prompt(stage: Stage, chat_id: int = GROUP) -> str:
    """Ask something harmless and return the whole prompt."""
    await stage.advance(200)
    before = len(stage.model.requests)
    stage.say(chat_id, BEAR, AT_BOT, " 说说看")
    await stage.advance(120)
    assert len(stage.model.requests) == before + 1
    return whole(stage.model.requests[-1])


async def kept_text(stage: Stage) -> str:
    """Everything that the database says of messages and turns."""
    rows = await stage.rows("SELECT text || segments FROM messages")
    lines = await stage.rows("SELECT text FROM turn_lines")
    return "\n".join(str(row[0]) for row in [*rows, *lines])


async def test_a_recall_while_the_question_waits_lets_nobody_think(stage: Stage):
    spoken = stage.say(GROUP, FISH, AT_BOT, " ", SECRET)
    await stage.advance(1)
    await stage.recall(spoken)
    await stage.advance(60)
    assert (stage.sent, stage.model.requests) == ([], [])
    assert SECRET not in await later_prompt(stage)


async def test_a_recall_while_the_model_thinks_stops_the_answer(stage: Stage):
    stage.model.hold()
    spoken = stage.say(GROUP, FISH, AT_BOT, " ", SECRET)
    await stage.advance(2)
    await stage.recall(spoken)
    stage.model.release()
    await stage.advance(60)
    assert (len(stage.model.requests), stage.sent) == (1, [])
    assert SECRET not in await later_prompt(stage)
    assert SECRET not in await kept_text(stage)


async def test_an_answer_that_repeats_it_is_quoted_in_no_later_prompt(stage: Stage):
    spoken = stage.say(GROUP, FISH, AT_BOT, " ", SECRET)
    stage.model.enqueue(f"知道了：{SECRET}")
    await stage.advance(60)
    stage.say(GROUP, BEAR, segments.reply(stage.sent[-1].message_id), AT_BOT, " 他说什么")
    await stage.advance(60)
    assert SECRET in asked(stage.model.requests[-1])
    await stage.recall(spoken)
    assert SECRET not in await kept_text(stage)
    assert SECRET not in await later_prompt(stage)


async def test_a_turn_that_quotes_an_answer_which_repeats_it_begins_again(stage: Stage):
    spoken = stage.say(GROUP, FISH, AT_BOT, " ", SECRET)
    stage.model.enqueue(f"知道了：{SECRET}")
    await stage.advance(60)
    stage.model.hold()
    stage.say(GROUP, BEAR, segments.reply(stage.sent[-1].message_id), AT_BOT, " 他说什么")
    await stage.advance(10)
    assert SECRET in asked(stage.model.requests[-1])
    await stage.recall(spoken)
    stage.model.release()
    await stage.advance(60)
    assert SECRET not in whole(stage.model.requests[-1])
    assert SECRET not in await kept_text(stage)


async def test_a_second_notice_of_a_recall_does_nothing(stage: Stage):
    spoken = stage.say(GROUP, FISH, AT_BOT, " ", SECRET)
    await stage.settle()
    await stage.recall(spoken)
    before = await stage.rows("SELECT recalled_at, recalled_by FROM messages")
    await stage.advance(5)
    await stage.hear(stage.recall_event(spoken))
    assert await stage.rows("SELECT recalled_at, recalled_by FROM messages") == before
    await stage.advance(60)
    assert stage.sent == []


async def test_a_recall_while_the_answer_waits_in_the_queue_keeps_it_in(stage: Stage):
    await stage.set(sendGapSeconds=20)
    stage.say(OTHER_GROUP, BEAR, AT_BOT, " 先占着")
    await stage.advance(2)
    spoken = stage.say(GROUP, FISH, AT_BOT, " ", SECRET)
    await stage.advance(5)
    assert len(stage.model.requests) == 2
    await stage.recall(spoken)
    await stage.advance(60)
    assert [sent.chat for sent in stage.sent] == [stage.other_group]
    assert SECRET not in await later_prompt(stage)


async def test_a_recall_while_the_answer_is_being_sent_comes_too_late_and_leaves_no_text(
    stage: Stage,
):
    stage.platform.hold()
    stage.model.enqueue(f"原来{SECRET}啊")
    spoken = stage.say(GROUP, FISH, AT_BOT, " ", SECRET)
    await stage.advance(2)
    await stage.recall(spoken)
    stage.platform.release()
    await stage.advance(60)
    assert stage.texts() == [f"原来{SECRET}啊"]
    assert SECRET not in await later_prompt(stage)
    assert SECRET not in await kept_text(stage)


async def test_a_recall_after_the_answer_takes_question_and_answer_out(stage: Stage):
    stage.model.enqueue(f"原来{SECRET}啊")
    spoken = stage.say(GROUP, FISH, AT_BOT, " ", SECRET)
    await stage.advance(10)
    await stage.recall(spoken)
    prompt = await later_prompt(stage)
    assert SECRET not in prompt
    assert told(stage.model.requests[-1]) == []
    assert SECRET not in await kept_text(stage)


async def test_a_recall_at_any_moment_leaves_no_text_and_lets_nothing_begin(stage: Stage):
    """Wherever the turn is: reading, waiting for a lock, thinking, committing, sending."""
    await stage.set(replyDebounceSeconds=0, replyMinGapSeconds=0, replyPerMemberPerMinute=10_000)
    await stage.set(replyGlobalPerMinute=10_000, sendGapSeconds=0, sendPerChatPerMinute=10_000)
    await stage.set(sendPerAccountPerMinute=10_000, maxConsecutiveTurns=10_000)
    answered = 0
    for turns_of_the_loop in range(0, 200, 4):
        secret = f"秘密第{turns_of_the_loop}号"
        spoken = stage.say(GROUP, FISH, AT_BOT, " ", secret)
        for _ in range(turns_of_the_loop):
            await asyncio.sleep(0)
        begun = await stage.rows("SELECT count(*) FROM turns")
        count = len(stage.sent)
        await stage.recall(spoken)
        await stage.settle()
        if len(stage.sent) > count:
            answered += 1
            assert await stage.rows("SELECT count(*) FROM turns") >= begun
        assert secret not in await kept_text(stage)
        await stage.advance(1)
    assert "秘密" not in await later_prompt(stage)
    assert answered < 50


async def test_of_a_merged_question_the_rest_is_answered(stage: Stage):
    spoken = stage.say(GROUP, FISH, AT_BOT, " ", SECRET)
    stage.say(GROUP, FISH, AT_BOT, " 天气怎么样")
    await stage.settle()
    await stage.recall(spoken)
    await stage.advance(60)
    (request,) = stage.model.requests
    assert [text.split()[-1] for text in shown_texts(asked(request))] == ["天气怎么样"]
    assert len(stage.sent) == 1


async def test_of_a_merged_question_being_thought_about_the_rest_is_asked_anew(stage: Stage):
    stage.model.hold()
    spoken = stage.say(GROUP, FISH, AT_BOT, " ", SECRET)
    stage.say(GROUP, FISH, AT_BOT, " 天气怎么样")
    await stage.advance(3)
    await stage.recall(spoken)
    stage.model.release()
    await stage.advance(60)
    first, second = stage.model.requests
    assert SECRET in asked(first)
    assert [text.split()[-1] for text in shown_texts(asked(second))] == ["天气怎么样"]
    assert len(stage.sent) == 1


async def test_a_turn_that_shows_what_is_taken_back_meanwhile_begins_again_without_it(
    stage: Stage,
):
    aside = stage.say(GROUP, BEAR, SECRET)
    await stage.settle()
    stage.model.hold()
    stage.say(GROUP, FISH, AT_BOT, " 他说什么")
    await stage.advance(3)
    assert SECRET in whole(stage.model.requests[0])
    await stage.recall(aside)
    stage.model.release()
    await stage.advance(10)
    _, again = stage.model.requests
    assert SECRET not in whole(again)
    assert shown_texts(asked(again)) == ["@小忆(10001) 他说什么"]
    assert len(stage.sent) == 1
    assert SECRET not in await later_prompt(stage)
    assert SECRET not in await kept_text(stage)


async def test_a_recall_of_something_that_no_prompt_shows_disturbs_no_turn(stage: Stage):
    stage.model.hold()
    stage.say(GROUP, FISH, AT_BOT, " 在吗")
    await stage.advance(3)
    aside = stage.say(GROUP, BEAR, SECRET)
    await stage.settle()
    await stage.recall(aside)
    stage.model.release()
    await stage.advance(10)
    assert (len(stage.model.requests), len(stage.sent)) == (1, 1)


async def test_a_quoted_message_taken_back_while_its_quote_is_answered_is_gone(stage: Stage):
    quoted = stage.say(GROUP, BEAR, SECRET)
    await stage.advance(1)
    stage.model.hold()
    stage.say(GROUP, FISH, segments.reply(quoted.message_id), AT_BOT, " 这是什么意思")
    await stage.advance(3)
    assert SECRET in whole(stage.model.requests[0])
    await stage.recall(quoted)
    stage.model.release()
    await stage.advance(10)
    assert SECRET not in await later_prompt(stage)


async def test_what_was_taken_back_while_a_turn_waited_for_its_time_is_in_no_prompt(stage: Stage):
    await stage.set(replyGlobalPerMinute=1)
    stage.say(OTHER_GROUP, BEAR, AT_BOT, " 先问")
    await stage.advance(5)
    aside = stage.say(GROUP, BEAR, SECRET)
    stage.say(GROUP, FISH, AT_BOT, " 他说什么")
    await stage.advance(5)
    await stage.recall(aside)
    await stage.advance(60)
    assert len(stage.model.requests) == 2
    assert SECRET not in whole(stage.model.requests[1])


async def test_what_was_taken_back_while_the_decision_model_thought_is_in_no_later_prompt(
    tmp_path: Path,
):
    decides: dict[str, Any] = {
        "decision_model": "judge",
        "decision_api_key": "k",
        "openai_base_url": "http://x.test",
    }
    async with open_stage(tmp_path, **decides) as stage:
        await stage.set(stage.group, replyMode="auto")
        stage.model.enqueue("yes", purpose="decide")
        stage.model.hold()
        aside = stage.say(GROUP, BEAR, SECRET)
        await stage.settle()
        stage.say(GROUP, FISH, "谁来接一句")
        await stage.advance(3)
        await stage.recall(aside)
        stage.model.release()
        await stage.advance(10)
        assert all(SECRET not in whole(request) for request in stage.model.requests[1:])


async def test_a_recall_while_an_apology_waits_keeps_it_in(stage: Stage):
    await stage.set(sendGapSeconds=20)
    stage.say(OTHER_GROUP, BEAR, AT_BOT, " 先占着")
    await stage.advance(2)
    stage.model.enqueue(ModelUnavailable("down"))
    spoken = stage.say(GROUP, FISH, AT_BOT, " ", SECRET)
    await stage.advance(5)
    await stage.recall(spoken)
    await stage.advance(60)
    assert [sent.chat for sent in stage.sent] == [stage.other_group]


async def test_a_recall_that_comes_before_its_message_waits_for_it(stage: Stage):
    spoken = stage.world.say(GROUP, FISH, AT_BOT, " ", SECRET, at=NOON)
    stage.world.say(GROUP, BEAR, "hi", at=NOON)
    await stage.hear(stage.recall_event(spoken))
    await stage.hear(Desk(stage.world).event_of(spoken))
    await stage.advance(60)
    assert (stage.sent, stage.model.requests) == ([], [])
    assert SECRET not in await kept_text(stage)


async def test_a_private_message_taken_back_is_not_answered(stage: Stage):
    spoken = stage.whisper(FISH, SECRET)
    await stage.settle()
    await stage.recall(spoken)
    await stage.advance(60)
    assert stage.sent == []
    assert SECRET not in await kept_text(stage)


@pytest.mark.parametrize("named", [True, False])
async def test_an_own_private_message_taken_back_leaves_the_record(stage: Stage, named: bool):
    stage.model.enqueue(SECRET)
    stage.whisper(FISH, "说个秘密")
    await stage.advance(10)
    (sent, *_) = stage.sent
    fields = {"target_id": FISH} if named else {}
    await stage.hear(events.friend_recall(BOT, BOT, sent.message_id, at=stage.now, **fields))
    assert SECRET not in await kept_text(stage)


async def test_a_recall_in_a_group_that_is_not_approved_leaves_no_row(stage: Stage):
    await stage.set(groupAccess="approved")
    await stage.hear(events.group_recall(BOT, 20_009, FISH, 7, at=stage.now))
    assert await stage.rows("SELECT count(*) FROM chats WHERE peer_id = '20009'") == [(0,)]


async def test_only_the_newest_message_with_an_id_is_taken_back(stage: Stage):
    old = stage.say(GROUP, FISH, "旧的")
    await stage.advance(100)
    raw = Desk(stage.world).event_of(stage.world.say(GROUP, FISH, "新的", at=stage.now))
    await stage.hear({**raw, "message_id": old.message_id})
    await stage.hear(stage.recall_event(old))
    assert await stage.rows("SELECT text FROM messages ORDER BY id") == [("旧的",), ("",)]

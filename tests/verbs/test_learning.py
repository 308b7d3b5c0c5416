"""Lessons on the stage: kept, attached, renewed, and where they may be known."""

import json
from typing import Any

import pytest

from bot.conversation.lessons import attached_in
from bot.conversation.tools import ToolCall, ToolResult
from bot.learn import lessons_for, note_outcome
from bot.model import Chat
from bot.use_tools import Attempt
from tests.verbs.stage import BEAR, BOT, FISH, GROUP, OPERATOR, Stage
from tests.verbs.tooling import ALONE, HERE, THERE, spoken, stored

ERROR = "参数不对。since 要写成 YYYY-MM-DD[ HH:MM]"
OTHER_ALONE = Chat(str(BOT), "private", str(BEAR))
DAY = 86_400


def call(
    fails: bool, text: str = ERROR, lessons: str = "", tool: str = "chat_history", **given: Any
) -> Attempt:
    result = ToolResult(text if fails else "好", fails)
    return Attempt(ToolCall("1", tool, json.dumps(given)), result, lessons)


@pytest.fixture(autouse=True)
async def chats(stage: Stage):
    """Chats in which something was said."""
    await stored(stage, *(spoken(stage, "在", chat) for chat in (HERE, THERE, ALONE)))
    await stored(stage, spoken(stage, "在", OTHER_ALONE, BEAR))


async def learn(stage: Stage, chat: Chat = HERE, error: str = ERROR, **given: Any) -> None:
    """Let a tool fail, and then succeed."""
    arguments = given or {"since": "昨天小鱼说的"}
    attempts = [call(True, error, **arguments), call(False, since="2026-07-28")]
    await note_outcome(stage.app, chat, attempts)


async def known(stage: Stage, chat: Chat = HERE, error: str = ERROR) -> tuple[int, ...]:
    return attached_in(await lessons_for(stage.app, chat, "chat_history", error))


async def test_what_was_solved_in_one_group_helps_in_another(stage: Stage):
    await learn(stage)
    text = await lessons_for(stage.app, THERE, "chat_history", ERROR, '{"since": "前天"}')
    assert "做法：since 从 <文字，6 字> 改成 <日期>" in text
    assert "小鱼" not in text
    assert await known(stage, ALONE) == (1,)


async def test_what_is_not_like_it_or_of_another_tool_gets_none(stage: Stage):
    await learn(stage)
    assert await known(stage, error="连接超时了") == ()
    assert await lessons_for(stage.app, HERE, "remind", ERROR) == ""


async def test_what_was_learned_in_private_is_known_there_alone(stage: Stage):
    await learn(stage, ALONE)
    assert await known(stage, ALONE) == (1,)
    for chat in (HERE, THERE, OTHER_ALONE):
        assert await known(stage, chat) == ()


async def test_what_everybody_knows_is_not_learned_again_in_private(stage: Stage):
    await learn(stage, HERE)
    await learn(stage, ALONE)
    assert await stage.rows("SELECT count(*) FROM lessons") == [(1,)]
    await learn(stage, OTHER_ALONE, "连接超时了")
    await learn(stage, HERE, "连接超时了")
    assert await stage.rows("SELECT count(*) FROM lessons") == [(3,)]


async def test_the_same_error_again_is_no_second_lesson_and_the_newer_way_counts(stage: Stage):
    await learn(stage, since="昨天")
    await learn(stage, since="前天晚上八点")
    [(action,)] = await stage.rows("SELECT action FROM lessons")
    assert action == "since 从 <文字，6 字> 改成 <日期>"


async def test_a_turn_without_a_solved_error_writes_nothing(stage: Stage):
    await note_outcome(stage.app, HERE, [call(False)])
    await note_outcome(stage.app, HERE, [call(True)])
    assert await stage.rows("SELECT count(*) FROM lessons") == [(0,)]


async def test_at_most_three_are_attached(stage: Stage):
    for word in ("since", "until", "after", "before", "from"):
        await learn(stage, error=ERROR.replace("since", word))
    assert len(await known(stage)) == 3


async def test_what_helped_nobody_for_ninety_days_is_forgotten(stage: Stage):
    await learn(stage)
    await stage.advance(90 * DAY - 1)
    assert await known(stage) == (1,)
    await stage.advance(1)
    assert await known(stage) == ()
    await learn(stage, error="连接超时了")
    assert await stage.rows("SELECT id FROM lessons") == [(2,)]


async def test_what_was_attached_and_helped_lives_on(stage: Stage):
    await learn(stage)
    await stage.advance(60 * DAY)
    other = ERROR.replace("要写成", "应该写成")
    lessons = await lessons_for(stage.app, THERE, "chat_history", other)
    await note_outcome(stage.app, THERE, [call(True, other, lessons), call(False, mode="list")])
    await stage.advance(60 * DAY)
    assert 1 in await known(stage)
    assert await stage.rows("SELECT uses FROM lessons WHERE id = 1") == [(1,)]


async def test_what_was_attached_and_did_not_help_does_not(stage: Stage):
    await learn(stage)
    await stage.advance(60 * DAY)
    lessons = await lessons_for(stage.app, THERE, "chat_history", ERROR)
    assert attached_in(lessons) == (1,)
    await note_outcome(stage.app, THERE, [call(True, ERROR, lessons)])
    await stage.advance(60 * DAY)
    assert await known(stage) == ()


async def test_a_result_that_names_a_private_lesson_renews_nothing_elsewhere(stage: Stage):
    await learn(stage, ALONE)
    shown = await lessons_for(stage.app, ALONE, "chat_history", ERROR)
    await stage.advance(60 * DAY)
    await note_outcome(stage.app, HERE, [call(True, ERROR, shown), call(False)])
    assert await stage.rows("SELECT uses FROM lessons WHERE id = 1") == [(0,)]


async def test_of_each_place_two_hundred_are_kept(stage: Stage):
    letters = "abcdefghijklmnop"
    await learn(stage, ALONE, "private trouble")
    for first in letters:
        for second in letters:
            await learn(stage, error=f"trouble {first * 3}{second * 3}")
    assert await stage.rows("SELECT count(*) FROM lessons WHERE chat_id IS NULL") == [(200,)]
    assert await known(stage, ALONE, "private trouble") == (1,)


# The command


async def answer_to(stage: Stage, who: int, words: str, *, alone: bool = False) -> str:
    count = len(stage.sent)
    if alone:
        stage.whisper(who, words)
    else:
        stage.say(GROUP, who, words)
    await stage.advance(10)
    return "\n".join(stage.texts()[count:])


async def test_operators_see_lessons_and_those_from_private_chats_only_in_private(stage: Stage):
    assert await answer_to(stage, OPERATOR, "/经验") == "还没有经验。"
    await learn(stage, HERE)
    await learn(stage, ALONE, "连接超时了")
    here = await answer_to(stage, OPERATOR, "/经验")
    assert "#1 chat_history（2026-07-29，用上 0 次）现象：参数不对" in here
    assert "连接超时" not in here
    alone = await answer_to(stage, OPERATOR, "/经验", alone=True)
    assert "#2 chat_history（2026-07-29，用上 0 次，私聊）现象：连接超时了" in alone
    assert str(FISH) not in alone


async def test_an_operators_words_stay_when_the_error_comes_again(stage: Stage):
    await learn(stage, HERE)
    edited = await answer_to(stage, OPERATOR, "/经验 改 #1 since 要写成 2026-07-28 这样的日期")
    assert edited == "经验 #1 的做法改成：since 要写成 <日期> 这样的日期"
    await learn(stage, HERE)
    text = await lessons_for(stage.app, HERE, "chat_history", ERROR)
    assert "做法：since 要写成 <日期> 这样的日期" in text


async def test_operators_remove_lessons_and_what_is_private_not_from_a_group(stage: Stage):
    await learn(stage, HERE)
    await learn(stage, ALONE, "连接超时了")
    assert await answer_to(stage, OPERATOR, "/经验 删 #2") == "没有这条经验。"
    assert await answer_to(stage, OPERATOR, "/经验 改 #2 别的") == "没有这条经验。"
    assert await answer_to(stage, OPERATOR, "/经验 删 #1") == "删掉了经验 #1。"
    assert await answer_to(stage, OPERATOR, "/经验 删 2", alone=True) == "删掉了经验 #2。"
    assert await stage.rows("SELECT count(*) FROM lessons") == [(0,)]
    for words in ("/经验 删", "/经验 改 #1", "/经验 忘 #1", "/经验 删 #x"):
        assert "用法" in await answer_to(stage, OPERATOR, words)


async def test_lessons_are_the_operators_business(stage: Stage):
    await learn(stage, HERE)
    for who in (FISH, BEAR):
        assert await answer_to(stage, who, "/经验") == ""
        assert await answer_to(stage, who, "/经验 删 #1") == ""
    assert await stage.rows("SELECT count(*) FROM lessons") == [(1,)]

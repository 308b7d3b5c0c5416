"""Lessons on the stage: kept, attached, renewed, and where they may be known."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bot.conversation.lessons import HEAD, attached_in
from bot.conversation.tools import ToolCall, ToolResult
from bot.errors import ToolError
from bot.learn import lessons_for, note_outcome
from bot.llm.scripted import calling
from bot.model import Chat
from bot.tools.surroundings import Surroundings
from bot.use_tools import Attempt
from tests.verbs.stage import (
    AT_BOT,
    BEAR,
    BOT,
    FISH,
    GROUP,
    OPERATOR,
    OTHER_GROUP,
    Stage,
    open_stage,
)
from tests.verbs.staged_tool import StagedTool, look
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


# In a turn


async def until_answered(stage: Stage, group: int, *calls: ToolCall) -> list[str]:
    """Let a model make some calls, one after another, and return what it was told of each."""
    stage.model.enqueue(*map(calling, calls), "好的")
    stage.say(group, FISH, AT_BOT, " 查一下")
    await stage.advance(60)
    assert stage.texts()[-1] == "好的"
    told = [each.content for each in stage.model.requests[-1].messages if each.role == "tool"]
    return told[-len(calls) :]


def picky(secret: str) -> StagedTool:
    """Return a tool that wants a date, and says so with an id and the words it was given."""

    async def deed(surroundings: Surroundings, arguments: Mapping[str, Any]) -> str:
        if arguments["query"] == "2026-07-28":
            return "找到一条"
        raise ToolError(f"query 要写成日期，{secret} 的 {arguments['query']} 不行")

    return StagedTool(deed)


async def test_a_tool_that_fails_in_turn_after_turn_is_told_how_it_was_solved(tmp_path: Path):
    async with open_stage(tmp_path, tools=(picky("3000712345"),)) as stage:
        wrong, right = look("小鱼的生日"), look("2026-07-28")
        first = await until_answered(stage, GROUP, wrong, wrong, right)
        assert not any(HEAD in text for text in first)
        again = await until_answered(stage, OTHER_GROUP, look("大熊的地址"), look("大熊"), right)
        assert [len(attached_in(text)) for text in again] == [1, 1, 0]
        assert "做法：query 从 <文字，5 字> 改成 <日期>" in again[0]
        kept = str(await stage.rows("SELECT * FROM lessons"))
        assert not any(word in kept for word in ("30007", "小鱼", "生日", "大熊", "地址"))


async def test_a_tool_that_fails_to_the_end_of_a_turn_teaches_nothing(tmp_path: Path):
    async with open_stage(tmp_path, tools=(picky("某人"),)) as stage:
        wrong = look("小鱼的生日")
        for _ in range(2):
            told = await until_answered(stage, GROUP, wrong, wrong)
            assert not any(HEAD in text for text in told)
        assert await stage.rows("SELECT count(*) FROM lessons") == [(0,)]


async def test_of_many_lessons_a_turn_is_told_three_and_none_of_another_error(tmp_path: Path):
    errors = iter([*(f"query {word} 要写成日期" for word in ("one", "two", "six", "ten"))])

    async def deed(surroundings: Surroundings, arguments: Mapping[str, Any]) -> str:
        match arguments["query"]:
            case "bad":
                raise ToolError(next(errors))
            case "same":
                raise ToolError("query 要写成日期")
            case "else":
                raise ToolError("连接超时了")
        return "找到一条"

    async with open_stage(tmp_path, tools=(StagedTool(deed),)) as stage:
        for _ in range(4):
            await until_answered(stage, GROUP, look("bad"), look("good"))
        told = await until_answered(stage, GROUP, look("same"), look("same"), look("else"))
        assert [len(attached_in(text)) for text in told] == [3, 3, 0]


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

"""Turns that use tools: what is run for whom, what the model is told, and what stays of it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bot.ask import LAST_WORD, MAX_SAID_CHARS
from bot.conversation.prompt_message import PromptMessage
from bot.conversation.tools import ToolCall, ToolOutput
from bot.errors import ModelUnavailable, ToolError
from bot.llm.protocol import ModelAnswer, ModelRequest
from bot.llm.scripted import calling
from bot.store.messages import messages_by_rows
from bot.store.tool_history import RECALLED_RESULT
from bot.tools import kit
from bot.tools.surroundings import Surroundings
from bot.use_tools import MAX_RESULT_CHARS, use_tools
from tests.verbs.stage import AT_BOT, BEAR, CAT, FISH, GROUP, OPERATOR, Stage, open_stage, whole
from tests.verbs.staged_tool import Deed, StagedTool, look

SECRET = "我的秘密是西瓜"


async def ask(stage: Stage, who: int = FISH, text: str = " 问你", group: int = GROUP) -> None:
    stage.say(group, who, AT_BOT, text)
    await stage.advance(40)


def results(request: ModelRequest) -> list[str]:
    return [each.content for each in request.messages if each.role == "tool"]


def roles(request: ModelRequest) -> list[str]:
    return [each.role for each in request.messages]


BUILT_IN = frozenset(tool.spec.name for tool in kit.BUILT_IN)


def offered(request: ModelRequest) -> list[str]:
    """The tools of a request beside those built in."""
    return [spec.name for spec in request.tools if spec.name not in BUILT_IN]


def raising(error: BaseException) -> Deed:
    async def deed(surroundings: Surroundings, arguments: Mapping[str, Any]) -> str:
        raise error

    return deed


def showing(text: str, *row_ids: int) -> Deed:
    async def deed(surroundings: Surroundings, arguments: Mapping[str, Any]) -> ToolOutput:
        return ToolOutput(text, row_ids)

    return deed


async def result_of(stage: Stage, tool: StagedTool, call: ToolCall) -> str:
    stage.model.enqueue(calling(call))
    await ask(stage)
    (result,) = results(stage.model.requests[-1])
    assert stage.texts() == ["好的"]
    return result


# The rounds


async def test_what_a_tool_gives_is_told_to_the_model_and_the_answer_goes_out(tmp_path: Path):
    tool = StagedTool()
    async with open_stage(tmp_path, tools=(tool,)) as stage:
        stage.model.enqueue(calling(look(), text="我看看"))
        await ask(stage)
        first, second = stage.model.requests
        assert stage.texts() == ["好的"]
    assert tool.asked == [{"query": "西瓜"}]
    assert offered(first) == ["look"]
    assert second.messages[: len(first.messages)] == first.messages
    assert second.messages[len(first.messages) :] == (
        PromptMessage("assistant", "我看看", calls=(look(),), model="scripted"),
        PromptMessage("tool", "找到一条", call_id="call_a", model="scripted"),
    )


async def test_calls_of_one_answer_are_made_one_after_another(tmp_path: Path):
    order: list[str] = []

    async def deed(surroundings: Surroundings, arguments: Mapping[str, Any]) -> str:
        order.append(f"begin {arguments['query']}")
        await asyncio.sleep(0)
        order.append(f"end {arguments['query']}")
        return arguments["query"]

    async with open_stage(tmp_path, tools=(StagedTool(deed),)) as stage:
        stage.model.enqueue(calling(look("甲"), look("乙", call_id="call_b")))
        await ask(stage)
        assert results(stage.model.requests[-1]) == ["甲", "乙"]
    assert order == ["begin 甲", "end 甲", "begin 乙", "end 乙"]


async def test_a_model_that_never_ends_calling_is_told_to_answer(tmp_path: Path):
    tool = StagedTool()
    async with open_stage(tmp_path, tools=(tool,), answer=calling(look())) as stage:
        stage.model.enqueue(*[calling(look())] * 8, "那我直接说")
        await ask(stage)
        requests = stage.model.requests
        assert stage.texts() == ["那我直接说"]
    assert (len(requests), len(tool.asked)) == (9, 8)
    assert [bool(request.tools) for request in requests] == [True] * 8 + [False]
    assert requests[-1].messages[-1].content == LAST_WORD


async def test_many_calls_at_once_end_the_rounds_as_well(tmp_path: Path):
    tool = StagedTool()
    many = calling(*(look(call_id=f"c{n}") for n in range(10)))
    async with open_stage(tmp_path, tools=(tool,)) as stage:
        stage.model.enqueue(many, many, many)
        await ask(stage)
        assert stage.texts() == ["好的"]
        assert [bool(request.tools) for request in stage.model.requests] == [*[True] * 3, False]
    assert len(tool.asked) == 30


async def test_what_a_model_thinks_beside_its_calls_does_not_stay(tmp_path: Path):
    async with open_stage(tmp_path, tools=(StagedTool(),)) as stage:
        stage.model.enqueue(calling(look(), text="<think>他想干嘛</think>我看看" + "啊" * 9_000))
        await ask(stage)
        (said,) = [m.content for m in stage.model.requests[1].messages if m.calls]
    assert said.startswith("我看看啊")
    assert len(said) == MAX_SAID_CHARS


async def test_a_turn_without_calls_is_one_request(tmp_path: Path):
    async with open_stage(tmp_path, tools=(StagedTool(),)) as stage:
        await ask(stage)
        assert len(stage.model.requests) == 1


async def test_a_model_that_fails_between_two_rounds_is_a_failure(tmp_path: Path):
    async with open_stage(tmp_path, tools=(StagedTool(),)) as stage:
        stage.model.enqueue(calling(look()), ModelUnavailable("down"))
        await ask(stage)
        (text,) = stage.texts()
        assert "抱歉" in text


# What goes wrong


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (ToolCall("a", "rm_rf", "{}"), "没有名为 rm_rf 的工具"),
        (ToolCall("a", "look", "{nonsense"), "参数必须是一个 JSON 对象"),
        (ToolCall("a", "look", "{}"), "缺少参数 query"),
        (ToolCall("a", "look", '{"query": []}'), "参数 query 应是文字"),
    ],
)
async def test_a_call_that_is_out_of_order_is_told_and_nothing_is_run(
    tmp_path: Path, call: ToolCall, told: str
):
    tool = StagedTool()
    async with open_stage(tmp_path, tools=(tool,)) as stage:
        assert await result_of(stage, tool, call) == told
    assert tool.asked == []


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ToolError("这里没有叫这个名字的人"), "这里没有叫这个名字的人"),
        (RuntimeError("secret of the house"), "工具出错"),
        (TimeoutError("its own"), "工具出错"),
        (asyncio.CancelledError(), "工具出错"),
        (ToolError("长" * 9_999), "长" * 499 + "…"),
    ],
    ids=["told", "broken", "its own time-out", "gave up", "talks too much"],
)
async def test_what_a_tool_fails_with_is_told_to_the_model(
    tmp_path: Path, error: BaseException, told: str
):
    tool = StagedTool(raising(error))
    async with open_stage(tmp_path, tools=(tool,)) as stage:
        assert await result_of(stage, tool, look()) == told


async def test_a_tool_that_takes_too_long_is_given_up(tmp_path: Path):
    async def deed(surroundings: Surroundings, arguments: Mapping[str, Any]) -> str:
        await asyncio.Event().wait()
        return "never"

    tool = StagedTool(deed, timeout_seconds=0.01)
    async with open_stage(tmp_path, tools=(tool,)) as stage:
        stage.model.enqueue(calling(look()))
        stage.say(GROUP, FISH, AT_BOT, " 问你")
        await stage.advance(2)
        await stage.model.until_asked(2)
        await stage.advance(20)
        assert results(stage.model.requests[-1]) == ["工具超时：0.01 秒内没有完成"]
        assert stage.texts() == ["好的"]


async def test_a_long_result_is_cut_and_says_so(tmp_path: Path):
    tool = StagedTool("果" * 10_000)
    async with open_stage(tmp_path, tools=(tool,)) as stage:
        told = await result_of(stage, tool, look())
    assert len(told) == MAX_RESULT_CHARS
    assert told.endswith("（结果有 10000 字，只给出开头）")


@pytest.mark.parametrize(
    ("given", "told"), [("", "（没有结果）"), ("甲\r\n乙\x00\u202e", "甲\n乙")]
)
async def test_a_result_is_plain_text(tmp_path: Path, given: str, told: str):
    tool = StagedTool(given)
    async with open_stage(tmp_path, tools=(tool,)) as stage:
        assert await result_of(stage, tool, look()) == told


async def test_lessons_and_outcomes_are_for_others_to_keep(tmp_path: Path):
    async def lessons(app: object, chat: object, tool: str, error: str, arguments: str) -> str:
        return f"以前 {tool} 也说过：{error}"

    tool = StagedTool(raising(ToolError("没找到")))
    async with open_stage(tmp_path, tools=(tool,)) as stage:
        await ask(stage)
        stage.model.enqueue(calling(look()))
        await ask(stage)
        attempts = await use_tools(tool.seen[0], (tool,), [look()], lessons)
    assert attempts[0].use.result == "没找到\n以前 look 也说过：没找到"
    assert attempts[0].result.is_error


# Who may


async def test_members_of_a_group_use_tools_only_where_they_may(tmp_path: Path):
    tool = StagedTool()
    async with open_stage(tmp_path, tools=(tool,)) as stage:
        await stage.set(stage.group, groupMembersCanUseTools=False)
        stage.model.enqueue(calling(look()), purpose="chat")
        await ask(stage)
        assert stage.model.requests[0].tools == ()
        assert tool.asked == []
        await ask(stage, OPERATOR)
        assert offered(stage.model.requests[-1]) == ["look"]
        stage.whisper(FISH, "在吗")
        await stage.advance(40)
        assert offered(stage.model.requests[-1]) == ["look"]


async def test_tools_for_operators_are_offered_to_and_run_for_nobody_else(tmp_path: Path):
    tool = StagedTool(operators_only=True)
    other = StagedTool(name="other")
    async with open_stage(tmp_path, tools=(tool, other)) as stage:
        stage.model.enqueue(calling(look()))
        await ask(stage)
        assert offered(stage.model.requests[0]) == ["other"]
        assert results(stage.model.requests[1]) == ["没有名为 look 的工具"]
        stage.model.enqueue(calling(look()))
        await ask(stage, OPERATOR)
    assert len(tool.asked) == 1


# What stays


async def test_the_next_prompts_show_calls_and_results_as_they_were_sent(tmp_path: Path):
    tool = StagedTool()
    async with open_stage(tmp_path, tools=(tool,)) as stage:
        stage.model.enqueue(calling(look()), calling(look("桃", call_id="call_b")))
        await ask(stage)
        await ask(stage, CAT)
        before, after = stage.model.requests[2:]
    assert roles(after) == [
        *("system", "user", "assistant", "tool", "assistant", "tool", "assistant"),
        "user",
    ]
    assert after.messages[2:6] == before.messages[2:6]
    async with open_stage(tmp_path, tools=(tool,), start=stage.now + 60_000) as again:
        await ask(again, CAT)
        assert again.model.requests[0].messages[2:6] == before.messages[2:6]


@pytest.mark.parametrize("arguments", ["{nonsense", '{"query": "' + "长" * 4_000 + '"}'])
async def test_arguments_that_are_no_json_or_too_long_are_not_sent_again(
    tmp_path: Path, arguments: str
):
    async with open_stage(tmp_path, tools=(StagedTool(),)) as stage:
        stage.model.enqueue(calling(ToolCall("a", "look", arguments)))
        await ask(stage)
        (called,) = [m for m in stage.model.requests[1].messages if m.calls]
    assert called.calls[0].arguments == "{}"


async def test_each_call_knows_what_is_shown_already(tmp_path: Path):
    tool = StagedTool(showing("早", 1))
    async with open_stage(tmp_path, tools=(tool,)) as stage:
        stage.say(GROUP, BEAR, "早")
        await stage.advance(1)
        stage.model.enqueue(calling(look(), look(call_id="b")), calling(look()))
        tool.deed = showing("旧消息", 77)
        await ask(stage)
    first, second, third = (each.shown_rows for each in tool.seen)
    assert first == {1, 2}
    assert second == third == {1, 2, 77}


# Recalls


async def _hear_secret(stage: Stage) -> Any:
    """Let somebody say something that is far away from what is asked later."""
    spoken = stage.say(GROUP, BEAR, SECRET)
    for number in range(30):
        stage.say(GROUP, CAT, f"闲话{number}")
    await stage.advance(5)
    return spoken


async def kept(stage: Stage) -> str:
    return "".join(row[0] for row in await stage.rows("SELECT tools FROM turns"))


async def test_a_recall_reaches_the_result_that_shows_the_message(tmp_path: Path):
    # Reworded, so that only its link tells where it is from.
    tool = StagedTool(showing("大熊有个秘密：水果", 1))
    async with open_stage(tmp_path, tools=(tool,)) as stage:
        spoken = await _hear_secret(stage)
        stage.model.enqueue(calling(look()))
        await ask(stage)
        assert "大熊有个秘密" in await kept(stage)
        await stage.recall(spoken)
        await ask(stage, CAT)
        assert results(stage.model.requests[-1]) == [RECALLED_RESULT]
        assert "大熊有个秘密" not in await kept(stage)


async def test_a_recall_reaches_calls_and_results_that_repeat_the_words(tmp_path: Path):
    tool = StagedTool(f'{{"text": "{SECRET}"}}')
    async with open_stage(tmp_path, tools=(tool,)) as stage:
        spoken = await _hear_secret(stage)
        stage.model.enqueue(calling(look(SECRET), text=f"找找{SECRET}"))
        await ask(stage)
        await stage.recall(spoken)
        await ask(stage, CAT)
        assert SECRET not in whole(stage.model.requests[-1])
        assert SECRET not in await kept(stage)


async def test_a_question_that_is_taken_back_takes_its_tools_along(tmp_path: Path):
    async with open_stage(tmp_path, tools=(StagedTool(),)) as stage:
        stage.model.enqueue(calling(look()))
        spoken = stage.say(GROUP, FISH, AT_BOT, " 帮我找")
        await stage.advance(20)
        await stage.recall(spoken)
        await stage.settle()
        assert await stage.rows("SELECT tools FROM turns") == [("",)]
        assert await stage.rows("SELECT * FROM tool_messages") == []


async def test_a_recall_of_what_a_tool_showed_begins_the_turn_anew(tmp_path: Path):
    async with open_stage(tmp_path, tools=(StagedTool(showing(SECRET, 1)),)) as stage:

        def call_and_hold(request: ModelRequest) -> ModelAnswer:
            stage.model.hold()
            return calling(look())

        spoken = await _hear_secret(stage)
        stage.model.enqueue(call_and_hold, "是西瓜", "重新回答")
        stage.say(GROUP, FISH, AT_BOT, " 问你")
        await stage.advance(2)
        assert SECRET in whole(stage.model.requests[1])
        await stage.recall(spoken)
        stage.model.release()
        await stage.advance(40)
        assert stage.texts() == ["重新回答"]
        assert SECRET not in whole(stage.model.requests[-1])
        assert SECRET not in await kept(stage)


async def test_a_recall_while_a_tool_works_begins_the_turn_anew(tmp_path: Path):
    gate = asyncio.Event()
    shown = asyncio.Event()

    async def deed(surroundings: Surroundings, arguments: Mapping[str, Any]) -> str | ToolOutput:
        if arguments["query"] == "慢":
            shown.set()
            await gate.wait()
            return "没有"
        return ToolOutput(SECRET, (1,))

    async with open_stage(tmp_path, tools=(StagedTool(deed),)) as stage:
        spoken = await _hear_secret(stage)
        stage.model.enqueue(calling(look("快"), look("慢", call_id="b")), "重新回答")
        stage.say(GROUP, FISH, AT_BOT, " 问你")
        await stage.settle()
        await stage.clock.advance(2)
        await asyncio.wait_for(shown.wait(), 5)
        await stage.recall(spoken)
        gate.set()
        await stage.advance(40)
        assert stage.texts() == ["重新回答"]
        assert SECRET not in whole(stage.model.requests[-1])
        assert roles(stage.model.requests[-1]) == ["system", "user"]


async def test_what_is_recalled_after_a_tool_has_read_it_is_not_told(tmp_path: Path):
    has_read, gate = asyncio.Event(), asyncio.Event()

    async def deed(surroundings: Surroundings, arguments: Mapping[str, Any]) -> ToolOutput:
        (found,) = await messages_by_rows(surroundings.app.db, [1])
        has_read.set()
        await gate.wait()
        return ToolOutput(found.message.text, (found.row_id,))

    async with open_stage(tmp_path, tools=(StagedTool(deed),)) as stage:
        spoken = await _hear_secret(stage)
        stage.model.enqueue(calling(look()))
        stage.say(GROUP, FISH, AT_BOT, " 问你")
        await stage.settle()
        await stage.clock.advance(2)
        await asyncio.wait_for(has_read.wait(), 5)
        await stage.recall(spoken)
        gate.set()
        await stage.advance(40)
        assert results(stage.model.requests[-1]) == [RECALLED_RESULT]
        assert not any(SECRET in whole(request) for request in stage.model.requests)
        assert SECRET not in await kept(stage)

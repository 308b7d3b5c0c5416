"""Tool calls in answers, whole and in pieces, and what of tools is sent to whom."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.prompt_message import PromptMessage
from bot.conversation.tools import ToolCall, ToolSpec
from bot.errors import ModelAnswerInvalid, ModelError
from bot.llm.completion import Completion, assembled, read_completion
from bot.llm.dialect import Dialect, adapted, parameters, tools_parameter
from bot.llm.plain_tools import HEADING, in_plain_words
from bot.llm.protocol import ModelRequest
from bot.llm.rejection import read_rejection, refuses_tools, told_window
from bot.llm.tool_calls import MAX_ARGUMENTS_CHARS, MAX_CALLS, calls_in

SEARCH = ToolSpec("chat_history", "找聊天记录", {"type": "object", "properties": {}})
CALL = ToolCall("call_a", "chat_history", '{"query": "西瓜"}')


def piece(index: int | None, call_id: str | None, name: str | None, arguments: Any) -> Any:
    function = {"name": name, "arguments": arguments}
    made: dict[str, Any] = {"function": {k: v for k, v in function.items() if v is not None}}
    made |= {"index": index} if index is not None else {}
    made |= {"id": call_id} if call_id is not None else {}
    return {"choices": [{"delta": {"tool_calls": [made]}}]}


def streamed(*pieces: Any) -> tuple[ToolCall, ...]:
    end = {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}
    read = read_completion(assembled([*pieces, end]), "here")
    assert isinstance(read, Completion)
    return read.tool_calls


def call(name: Any, arguments: Any = "{}", call_id: Any = "a") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


# Reading


def test_an_answer_may_call_tools_and_say_nothing():
    message = {"content": None, "tool_calls": [call("chat_history", '{"a": 1}')]}
    body = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    assert read_completion(body, "here") == Completion(
        "", "tool_calls", (ToolCall("a", "chat_history", '{"a": 1}'),)
    )


def test_ids_that_are_missing_equal_or_odd_are_replaced():
    calls = [call("x", call_id=each) for each in ("a", "a", None, 7, "一", "", "a b")]
    ids = [each.id for each in calls_in({"tool_calls": calls})]
    assert len(set(ids)) == len(calls)
    assert all(each.isascii() and each for each in ids)


def test_arguments_may_be_an_object_or_nothing():
    calls = calls_in({"tool_calls": [call("x", {"查": "西瓜"}), call("y", None), call("z", "")]})
    assert [each.arguments for each in calls] == ['{"查": "西瓜"}', "{}", "{}"]


def test_a_name_is_one_that_a_provider_takes_back():
    (only,) = calls_in({"tool_calls": [call(" chat history/\n" + "x" * 100)]})
    assert only.name == ("chat_history__" + "x" * 100)[:64]


def test_a_function_call_of_old_is_a_call():
    assert calls_in({"function_call": {"name": "x", "arguments": "{}"}}) == (
        ToolCall("call_0", "x", "{}"),
    )


@pytest.mark.parametrize(
    "calls", [None, {}, "x", [None, 1, "x"], [{"function": None}], [call(None)], [call("  ")]]
)
def test_garbage_is_no_call(calls: Any):
    assert calls_in({"tool_calls": calls}) == ()


def test_calls_and_arguments_are_bounded():
    calls = calls_in({"tool_calls": [call("x", "y" * 10**6)] * 100})
    assert len(calls) == MAX_CALLS
    assert len(calls[0].arguments) == MAX_ARGUMENTS_CHARS


def test_pieces_of_a_stream_are_put_together_by_index():
    calls = streamed(
        piece(0, "a", "first", ""),
        piece(1, "b", "second", '{"x"'),
        piece(0, None, None, '{"y": '),
        piece(1, None, None, ": 1}"),
        piece(0, None, None, "2}"),
    )
    assert calls == (ToolCall("a", "first", '{"y": 2}'), ToolCall("b", "second", '{"x": 1}'))


def test_pieces_without_an_index_are_put_together_by_id_or_order():
    assert streamed(
        piece(None, "a", "first", "{"),
        piece(None, "a", None, "}"),
        piece(None, None, "second", "{}"),
        piece(None, None, "third", "{}"),
    ) == (
        ToolCall("a", "first", "{}"),
        ToolCall("call_0", "second", "{}"),
        ToolCall("call_1", "third", "{}"),
    )


def test_calls_that_are_all_counted_as_0_are_told_apart_by_their_ids():
    calls = streamed(piece(0, "a", "first", "{}"), piece(0, "b", "second", '{"x": 1}'))
    assert [(each.name, each.arguments) for each in calls] == [
        ("first", "{}"),
        ("second", '{"x": 1}'),
    ]


def test_a_streamed_name_that_comes_with_each_piece_is_one_name():
    assert streamed(piece(0, "a", "x", '{"a"'), piece(0, "a", "x", ": 1}")) == (
        ToolCall("a", "x", '{"a": 1}'),
    )


_garbage: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "index", "function", "name", "arguments", "tool_calls"]), inner
        )
    ),
    max_leaves=12,
)


@given(_garbage, st.lists(_garbage, max_size=5))
def test_no_garbage_breaks_the_reading(whole: Any, deltas: list[Any]):
    message = {"content": "好", "tool_calls": whole}
    assert isinstance(read_completion({"choices": [{"message": message}]}, "here"), Completion)
    chunks = [{"choices": [{"delta": {"tool_calls": each}}]} for each in deltas]
    read = read_completion(assembled(chunks), "here")
    assert isinstance(read, Completion | ModelError)
    assert isinstance(read, ModelAnswerInvalid) == (not chunks)


# Sending


def talk(model: str = "big") -> tuple[PromptMessage, ...]:
    return (
        PromptMessage("system", "规则"),
        PromptMessage("user", "问题"),
        PromptMessage("assistant", "我看看", calls=(CALL,), model=model),
        PromptMessage("tool", "第一行\n第二行", call_id="call_a", model=model),
        PromptMessage("assistant", "答案"),
        PromptMessage("user", "又一个问题"),
    )


def test_tools_and_calls_are_sent_to_the_model_that_made_them():
    request = ModelRequest("chat", talk(), tools=(SEARCH,))
    body = parameters(request, "big", Dialect())
    assert body["tools"][0]["function"]["name"] == "chat_history"
    called, result = body["messages"][2:4]
    assert called["tool_calls"] == [
        {
            "id": "call_a",
            "type": "function",
            "function": {"name": "chat_history", "arguments": CALL.arguments},
        }
    ]
    assert result == {"role": "tool", "content": "第一行\n第二行", "tool_call_id": "call_a"}


@pytest.mark.parametrize(
    ("model", "dialect", "tools"),
    [
        ("small", Dialect(), (SEARCH,)),
        ("big", Dialect(tools=False), (SEARCH,)),
        ("big", Dialect(), ()),
    ],
    ids=["another model", "an endpoint without tools", "nothing on offer"],
)
def test_everybody_else_is_told_in_plain_words(
    model: str, dialect: Dialect, tools: tuple[ToolSpec, ...]
):
    body = parameters(ModelRequest("chat", talk(), tools=tools), model, dialect)
    assert [each["role"] for each in body["messages"]] == ["system", "user", "assistant", "user"]
    assert all(each.keys() == {"role", "content"} for each in body["messages"])
    asked, heading, line = body["messages"][1]["content"].split("\n")
    assert (asked, heading) == ("问题", HEADING)
    assert json.loads(line) == {
        "tool": "chat_history",
        "arguments": CALL.arguments,
        "result": "第一行\n第二行",
    }


def test_rounds_of_one_turn_stand_under_one_heading():
    rounds = (*talk()[:4], *talk()[2:4], PromptMessage("user", "回答吧"))
    _, only = in_plain_words(rounds, but_of="")
    assert only.content.count(HEADING) == 1
    assert only.content.count('"result"') == 2
    assert only.content.endswith("\n回答吧")


def test_a_prompt_without_tools_is_sent_as_it_is():
    messages = (PromptMessage("user", "在吗"), PromptMessage("assistant", "在"))
    assert in_plain_words(messages, but_of="") is messages


def test_the_form_of_tools_is_made_once():
    assert tools_parameter((SEARCH,)) is tools_parameter((SEARCH,))


# Refusals


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice'),
        (404, "No endpoints found that support tool use"),
        (500, "tools param requires --jinja flag"),
        (422, "Extra inputs are not permitted: tools"),
        (400, "该模型不支持函数调用"),
    ],
)
def test_who_refuses_tools_is_asked_without_them(status: int, words: str):
    rejection = read_rejection(status, {"error": {"message": words}})
    request = ModelRequest("chat", talk(), tools=(SEARCH,))
    assert refuses_tools(rejection)
    assert adapted(Dialect(), request, rejection) == Dialect(tools=False)
    assert adapted(Dialect(tools=False), request, rejection) is None


def test_a_refusal_that_names_no_cause_may_be_about_tools():
    rejection = read_rejection(400, {"error": {"message": "Bad request"}})
    assert adapted(Dialect(), ModelRequest("chat", talk(), tools=(SEARCH,)), rejection) == Dialect(
        tools=False
    )
    assert adapted(Dialect(), ModelRequest("chat", talk()), rejection) is None


def test_a_prompt_that_is_too_long_is_not_about_tools():
    words = "This model's maximum context length is 8192 tokens, tools included: not supported"
    rejection = read_rejection(400, {"error": {"message": words}})
    assert adapted(Dialect(), ModelRequest("chat", talk(), tools=(SEARCH,)), rejection) is None


@pytest.mark.parametrize(
    ("words", "window"),
    [
        ("This model's maximum context length is 8192 tokens. However, you requested 9000", 8_192),
        ("prompt is too long: 208310 tokens > 200000 maximum", 200_000),
        ("Range of input length should be [1, 30720]", 30_720),
        ("Your request exceeded model token limit: 8192", 8_192),
        ("the request exceeds the available context size (4096 tokens)", 4_096),
        ("exceeds the maximum number of tokens allowed (1,048,576).", 1_048_576),
        ("too large for model with 32768 maximum context length", 32_768),
        ("input is too long for requested model", None),
        ("context length exceeded", None),
    ],
)
def test_a_refusal_may_tell_the_window(words: str, window: int | None):
    assert told_window(read_rejection(400, {"error": {"message": words}})) == window

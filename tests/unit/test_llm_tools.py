"""Tools over real HTTP: offered, called, refused, whole and streamed."""

from dataclasses import replace

import pytest

from bot.conversation.prompt_message import PromptMessage
from bot.conversation.tools import ToolCall, ToolSpec
from bot.errors import ContextTooLong
from bot.llm.plain_tools import HEADING
from bot.llm.protocol import ModelRequest
from bot.llm.routing import ModelConfig, ModelSlot
from bot.simulate.provider import TOO_LONG_OTHERWISE, Answer, Called, Failure
from tests.unit.test_llm_openai_model import CHAT, KEY, REQUEST, bench

LOOK = ToolSpec("look", "找东西", {"type": "object", "properties": {"q": {"type": "string"}}})
WITH_TOOLS = replace(REQUEST, tools=(LOOK,))
CALLING = Answer("我看看", calls=(Called("look", '{"q": "西瓜"}', "a"), Called("look")))
CALLS = (ToolCall("a", "look", '{"q": "西瓜"}'), ToolCall("call-1", "look", "{}"))


def after_a_round(model: str = "big") -> ModelRequest:
    rounds = (
        PromptMessage("assistant", "", calls=CALLS[:1], model=model),
        PromptMessage("tool", "找到一条", call_id="a", model=model),
    )
    return replace(WITH_TOOLS, messages=(*REQUEST.messages, *rounds))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_calls_come_back_as_they_were_made(stream: bool):
    async with bench(stream=stream) as at:
        at.server.enqueue(CALLING)
        answer = await at.model.complete(WITH_TOOLS)
        assert (answer.text, answer.finish_reason) == ("我看看", "tool_calls")
        assert answer.tool_calls == CALLS
        assert answer.prompt_tokens == at.server.usage.prompt
        assert bool(at.bodies[0].get("stream")) == stream


async def test_results_go_back_in_the_form_of_the_api():
    async with bench() as at:
        await at.text(after_a_round())
        (body,) = at.bodies
        assert [each["role"] for each in body["messages"]] == ["user", "assistant", "tool"]
        assert body["messages"][2]["tool_call_id"] == body["messages"][1]["tool_calls"][0]["id"]
        assert body["tools"][0]["function"]["name"] == "look"


async def test_an_endpoint_without_tools_is_asked_without_them_from_then_on():
    async with bench() as at:
        at.server.takes_tools = False
        assert await at.text(WITH_TOOLS) == "好的"
        assert await at.text(after_a_round()) == "好的"
        assert ["tools" in body for body in at.bodies] == [True, False, False]
        (told,) = at.bodies[-1]["messages"]
        assert HEADING in told["content"]
        assert "找到一条" in told["content"]


async def test_what_one_model_refuses_is_offered_to_the_next():
    config = ModelConfig(api_key=KEY, chat=ModelSlot("big"), chat_fallback_models=("small",))
    async with bench(config) as at:
        at.server.enqueue(*[Failure(500)] * 3)
        await at.text(after_a_round())
        last = at.bodies[-1]
        assert (last["model"], "tools" in last) == ("small", True)
        # The calls are another model's, so they are told in plain words.
        assert [each["role"] for each in last["messages"]] == ["user"]


async def test_a_request_that_offers_no_tools_has_no_such_field():
    async with bench() as at:
        await at.text()
        assert "tools" not in at.bodies[0]


async def test_a_prompt_over_the_window_is_refused_with_its_size():
    async with bench() as at:
        at.server.window_tokens = 2_000
        assert await at.text() == "好的"
        request = ModelRequest("chat", (PromptMessage("user", "问" * 9_000),), CHAT, tools=(LOOK,))
        error = await at.error(request)
        assert isinstance(error, ContextTooLong)
        assert (error.model, error.window_tokens) == ("big", 2_000)
        at.server.too_long = TOO_LONG_OTHERWISE
        error = await at.error(request)
        assert isinstance(error, ContextTooLong)
        assert error.window_tokens is None
        # It was not about the tools.
        assert all("tools" in body for body in at.bodies[1:])

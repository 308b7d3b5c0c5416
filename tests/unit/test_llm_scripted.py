"""The shipped fake."""

import asyncio

import pytest

from bot.conversation.prompt_message import PromptMessage
from bot.errors import ModelUnavailable
from bot.llm.protocol import ChatModel, ModelAnswer, ModelRequest
from bot.llm.scripted import ScriptedModel

REQUEST = ModelRequest("chat", (PromptMessage("user", "在吗"),))
DECIDE = ModelRequest("decide", (PromptMessage("user", "该说话吗"),))


async def test_answers_come_in_order_and_requests_are_remembered():
    model = ScriptedModel()
    model.enqueue("一", "二")
    chat: ChatModel = model
    assert [(await chat.complete(REQUEST)).text for _ in range(2)] == ["一", "二"]
    assert model.requests == [REQUEST, REQUEST]
    assert model.queued == 0


async def test_an_answer_for_a_purpose_goes_before_one_for_any():
    model = ScriptedModel()
    model.enqueue("any")
    model.enqueue("for decide", purpose="decide")
    assert (await model.complete(DECIDE)).text == "for decide"
    assert (await model.complete(DECIDE)).text == "any"


async def test_errors_whole_answers_and_functions_can_be_queued():
    model = ScriptedModel()
    whole = ModelAnswer("半", "length", "m", "e", prompt_tokens=9)
    model.enqueue(ModelUnavailable("down"), whole, lambda request: request.messages[0].content)
    with pytest.raises(ModelUnavailable):
        await model.complete(REQUEST)
    assert await model.complete(REQUEST) is whole
    assert (await model.complete(REQUEST)).text == "在吗"


async def test_nothing_queued_names_the_purpose_and_a_default_prevents_it():
    with pytest.raises(LookupError, match="'chat'"):
        await ScriptedModel().complete(REQUEST)
    assert (await ScriptedModel(default="嗯").complete(REQUEST)).text == "嗯"


async def test_a_held_answer_waits_until_it_is_released():
    model = ScriptedModel(default="嗯")
    model.hold()
    task = asyncio.create_task(model.complete(REQUEST))
    await model.until_asked()
    await asyncio.sleep(0)
    assert not task.done()
    model.release()
    assert (await task).text == "嗯"

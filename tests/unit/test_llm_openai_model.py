"""The client against a real server over real HTTP, in every kind of weather."""

import asyncio
import contextlib
import logging
import traceback
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from bot.conversation.prompt_message import PromptMessage
from bot.errors import (
    ContextTooLong,
    ModelAnswerInvalid,
    ModelError,
    ModelNotConfigured,
    ModelRefused,
    ModelUnavailable,
    StoreBusy,
)
from bot.llm.breaker import FAILURES_TO_OPEN, OPEN_MS
from bot.llm.openai_model import OpenAIModel, Patience, combined
from bot.llm.protocol import ModelRequest, RouteName
from bot.llm.requests import is_local
from bot.llm.retry import RetryPolicy
from bot.llm.routing import PLACEHOLDER_KEY, SLOTS, ModelConfig, ModelSlot, Routes
from bot.model import Chat, Usage
from bot.simulate.provider import (
    EMPTY_CHOICES,
    FILTERED_ANSWER,
    HALF_JSON,
    HTML_GARBAGE,
    OTHER_SHAPE,
    Answer,
    Failure,
    ModelServer,
    Raw,
    Reset,
    Silence,
    UsageTotals,
)

KEY = "sk-invented-0123456789"
CHAT = Chat("10001", "group", "20001")
REQUEST = ModelRequest("chat", (PromptMessage("user", "小鱼的悄悄话"),), chat=CHAT)
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
JSON_REQUEST = replace(REQUEST, purpose="reflect.group", json_schema=SCHEMA)
ONCE = RetryPolicy(attempts=1)


class StepClock:
    """A clock whose sleepers wake at once, and find that their time has passed."""

    def __init__(self) -> None:
        self.at = 1_700_000_000_000
        self.slept: list[float] = []

    def now(self) -> int:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += round(seconds * 1000)
        await asyncio.sleep(0)


class Bench:
    """One server, one model, and what it recorded."""

    def __init__(self, server: ModelServer, config: ModelConfig, **options: Any) -> None:
        self.server = server
        self.clock = StepClock()
        self.rows: list[Usage] = []
        self.model = OpenAIModel(
            Routes(config), clock=self.clock, record=self.record, jitter=lambda: 0.0, **options
        )

    async def record(self, usage: Usage) -> None:
        self.rows.append(usage)

    async def text(self, request: ModelRequest = REQUEST) -> str:
        return (await self.model.complete(request)).text

    async def error(self, request: ModelRequest = REQUEST) -> ModelError:
        with pytest.raises(ModelError) as caught:
            await self.model.complete(request)
        return caught.value

    @property
    def recorded(self) -> UsageTotals:
        return UsageTotals(
            sum(row.prompt_tokens for row in self.rows),
            sum(row.cached_tokens for row in self.rows),
            sum(row.completion_tokens for row in self.rows),
        )

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [dict(request.body) for request in self.server.requests]


@contextlib.asynccontextmanager
async def bench(config: ModelConfig | None = None, **options: Any) -> AsyncIterator[Bench]:
    async with ModelServer() as server:
        given = config or ModelConfig(api_key=KEY, chat=ModelSlot("big"))
        built = Bench(server, replace(given, base_url=server.base_url), **options)
        try:
            yield built
        finally:
            await built.model.close()


async def test_an_answer_comes_back_with_its_route_and_its_cost():
    async with bench() as at:
        at.server.enqueue(Answer("你好", prompt_tokens=30, cached_tokens=10, completion_tokens=2))
        answer = await at.model.complete(REQUEST)
        assert (answer.text, answer.finish_reason, answer.model) == ("你好", "stop", "big")
        assert (answer.prompt_tokens, answer.cached_tokens, answer.completion_tokens) == (30, 10, 2)
        assert f"http://{answer.endpoint}/v1" == at.server.base_url
        sent = at.server.requests[0]
        assert sent.authorization == f"Bearer {KEY}"
        assert not [name for name in sent.headers if name.startswith("x-stainless")]
        assert sent.body == {
            "model": "big",
            "messages": [{"role": "user", "content": "小鱼的悄悄话"}],
        }
        [row] = at.rows
        assert (row.purpose, row.model, row.chat, row.ok) == ("chat", "big", CHAT, True)


@pytest.mark.parametrize("purpose", sorted(SLOTS))
async def test_every_request_carries_its_purpose(purpose):
    slot = ModelSlot("any")
    config = ModelConfig(api_key=KEY, chat=slot, decision=slot, vision=slot, embedding=slot)
    async with bench(config) as at:
        at.server.enqueue(Failure(503), purpose=purpose)
        await at.text(replace(REQUEST, purpose=purpose))
        assert [request.purpose for request in at.server.requests] == [purpose, purpose]


async def test_a_local_server_without_keys_gets_a_placeholder():
    async with bench(ModelConfig(chat=ModelSlot("qwen"))) as at:
        await at.text()
        assert at.server.requests[0].authorization == f"Bearer {PLACEHOLDER_KEY}"


async def test_nothing_configured_sends_nothing():
    async with bench(ModelConfig()) as at:
        assert isinstance(await at.error(), ModelNotConfigured)
        assert not at.server.requests
        assert not at.rows


@pytest.mark.parametrize("status", [401, 402, 403, 404])
async def test_a_refused_key_account_or_model_is_not_asked_again(status):
    async with bench() as at:
        at.server.enqueue(Failure(status, "nope"))
        error = await at.error()
        assert isinstance(error, ModelUnavailable)
        assert error.status == status
        assert len(at.server.requests) == 1


@pytest.mark.parametrize(
    "outcome", [Failure(429), Failure(500), Failure(503), Reset(), Reset(b"{")]
)
async def test_a_passing_failure_is_asked_again_and_each_attempt_is_a_row(outcome):
    async with bench() as at:
        at.server.enqueue(outcome, outcome)
        assert await at.text() == "好的"
        assert [row.ok for row in at.rows] == [False, False, True]
        assert [row.error for row in at.rows] == ["ModelUnavailable", "ModelUnavailable", ""]
        assert at.clock.slept == [0.25, 0.5]


async def test_a_failure_that_does_not_pass_ends_after_three_attempts():
    async with bench() as at:
        at.server.answer = Failure(500)
        error = await at.error()
        assert isinstance(error, ModelUnavailable)
        assert error.status == 500
        assert len(at.server.requests) == len(at.rows) == 3


async def test_a_provider_that_asks_for_a_short_wait_gets_it():
    async with bench() as at:
        at.server.enqueue(Failure(429, retry_after="7"))
        assert await at.text() == "好的"
        assert at.clock.slept == [7.0]


async def test_a_provider_that_asks_for_a_long_wait_is_not_waited_for():
    async with bench() as at:
        at.server.enqueue(Failure(429, retry_after="3600"))
        error = await at.error()
        assert isinstance(error, ModelUnavailable)
        assert error.retry_after_seconds == 3600
        assert not at.clock.slept


async def test_an_empty_account_is_not_waited_for():
    async with bench() as at:
        at.server.enqueue(Failure(429, "insufficient_quota"))
        assert isinstance(await at.error(), ModelUnavailable)
        assert len(at.server.requests) == 1


async def test_silence_ends_in_a_time_out_and_is_not_repeated():
    async with bench(patience=Patience(reply_seconds=0.5)) as at:
        at.server.enqueue(Silence())
        error = await at.error()
        assert isinstance(error, ModelUnavailable)
        assert "in time" in str(error)
        assert len(at.rows) == 1
        assert await at.text() == "好的"


async def test_nobody_at_the_address_is_unavailability():
    async with ModelServer() as gone:
        url = gone.base_url
    config = ModelConfig(api_key=KEY, chat=ModelSlot("big", url))
    async with bench(config, retry=ONCE) as at:
        assert isinstance(await at.error(), ModelUnavailable)
        assert [row.error for row in at.rows] == ["ModelUnavailable"]


@pytest.mark.parametrize("raw", [EMPTY_CHOICES, HTML_GARBAGE, HALF_JSON, OTHER_SHAPE, Raw(b"")])
async def test_what_is_no_completion_is_an_invalid_answer(raw):
    async with bench() as at:
        at.server.enqueue(raw)
        assert isinstance(await at.error(), ModelAnswerInvalid)
        [row] = at.rows
        assert (row.ok, row.error, row.prompt_tokens) == (False, "ModelAnswerInvalid", 0)


@pytest.mark.parametrize(
    "outcome",
    [
        FILTERED_ANSWER,
        Answer(refusal="I can't help with that"),
        Failure(400, "content_filter"),
        Failure(400, "data_inspection_failed"),
        Failure(400, "1301"),
        Failure(400, "SensitiveContentDetected"),
    ],
)
async def test_a_refused_content_is_a_refusal_and_no_other_model_is_asked(outcome):
    config = ModelConfig(api_key=KEY, chat=ModelSlot("big"), chat_fallback_models=("small",))
    async with bench(config) as at:
        at.server.enqueue(outcome)
        assert isinstance(await at.error(), ModelRefused)
        assert len(at.server.requests) == 1


async def test_a_prompt_that_is_too_long_says_so():
    async with bench() as at:
        at.server.enqueue(Failure(400, "context_length_exceeded"))
        assert isinstance(await at.error(JSON_REQUEST), ContextTooLong)
        assert len(at.server.requests) == 1


async def test_a_cut_off_answer_is_an_answer_that_says_so():
    async with bench() as at:
        at.server.enqueue(Answer("半句", finish_reason="length"))
        assert (await at.model.complete(REQUEST)).finish_reason == "length"


async def test_reasoning_is_never_part_of_the_text():
    for stream in (False, True):
        async with bench(stream=stream) as at:
            at.server.enqueue(Answer("好的", reasoning="她问的是……"))
            assert await at.text() == "好的"


async def test_an_answer_without_usage_is_still_a_row():
    async with bench() as at:
        at.server.enqueue(Answer("好的", has_usage=False))
        await at.text()
        assert [(row.ok, row.prompt_tokens, row.completion_tokens) for row in at.rows] == [
            (True, 0, 0)
        ]


async def test_the_fallback_model_answers_when_the_first_cannot():
    config = ModelConfig(api_key=KEY, chat=ModelSlot("big"), chat_fallback_models=("small",))
    async with bench(config, retry=ONCE) as at:
        for outcome in (Failure(503), Failure(401), EMPTY_CHOICES, Reset()):
            at.server.enqueue(outcome)
            answer = await at.model.complete(REQUEST)
            assert answer.model == "small"
        assert [body["model"] for body in at.bodies] == ["big", "small"] * 4


async def test_the_model_chosen_for_a_chat_is_asked_first():
    config = ModelConfig(api_key=KEY, chat=ModelSlot("big"), chat_fallback_models=("small",))
    async with bench(config, retry=ONCE) as at:
        at.server.enqueue(Failure(503))
        answer = await at.model.complete(replace(REQUEST, preferred_model="small"))
        assert answer.model == "big"
        assert [body["model"] for body in at.bodies] == ["small", "big"]


async def test_when_all_routes_fail_the_error_names_each():
    config = ModelConfig(api_key=KEY, chat=ModelSlot("big"), chat_fallback_models=("small",))
    async with bench(config, retry=ONCE) as at:
        at.server.enqueue(EMPTY_CHOICES, Failure(429, retry_after="30"))
        error = await at.error()
        assert isinstance(error, ModelUnavailable)
        assert error.retry_after_seconds == 30
        assert "big" in str(error)
        assert "small" in str(error)


async def test_memory_follows_the_chats_last_successful_route():
    config = ModelConfig(api_key=KEY, chat=ModelSlot("big"), chat_fallback_models=("small",))
    async with bench(config) as at:
        at.server.enqueue(Failure(404))
        answer = await at.model.complete(REQUEST)
        last = RouteName(answer.model, answer.endpoint)
        await at.text(replace(JSON_REQUEST, last_route=last))
        assert at.bodies[-1]["model"] == "small"


async def test_json_output_steps_down_and_what_worked_is_remembered():
    async with bench() as at:
        at.server.rejected_formats = frozenset({"json_schema", "json_object"})
        await at.text(JSON_REQUEST)
        await at.text(JSON_REQUEST)
        formats = [body.get("response_format", {}).get("type") for body in at.bodies]
        assert formats == ["json_schema", "json_object", None, None]
        assert at.bodies[0]["response_format"]["json_schema"]["schema"] == SCHEMA
        assert [row.ok for row in at.rows] == [False, False, True, True]


async def test_json_mode_is_kept_where_only_the_schema_is_rejected():
    async with bench() as at:
        at.server.rejected_formats = frozenset({"json_schema"})
        await at.text(JSON_REQUEST)
        await at.text(JSON_REQUEST)
        formats = [body["response_format"]["type"] for body in at.bodies]
        assert formats == ["json_schema", "json_object", "json_object"]


async def test_what_one_model_rejects_is_not_held_against_another():
    config = ModelConfig(api_key=KEY, chat=ModelSlot("big"), decision=ModelSlot("quick"))
    async with bench(config) as at:
        at.server.rejected_formats = frozenset({"json_schema"})
        await at.text(JSON_REQUEST)
        at.server.rejected_formats = frozenset()
        await at.text(replace(JSON_REQUEST, purpose="decide"))
        assert at.bodies[-1]["response_format"]["type"] == "json_schema"


async def test_a_bad_request_for_another_reason_teaches_nothing():
    async with bench() as at:
        at.server.enqueue(*[Failure(400, "", "no such thing")] * 3)
        assert isinstance(await at.error(JSON_REQUEST), ModelAnswerInvalid)
        await at.text(JSON_REQUEST)
        assert at.bodies[-1]["response_format"]["type"] == "json_schema"


async def test_the_limit_is_named_and_sized_as_the_model_wants_and_that_is_remembered():
    async with bench() as at:
        at.server.limit_field = "max_completion_tokens"
        at.server.max_tokens_allowed = 8192
        request = replace(REQUEST, max_tokens=15_000)
        await at.text(request)
        await at.text(request)
        limits = [(body.get("max_tokens"), body.get("max_completion_tokens")) for body in at.bodies]
        assert limits == [(15_000, None), (None, 15_000), (None, 8192), (None, 8192)]


async def test_an_endpoint_that_insists_on_streams_gets_them():
    async with bench() as at:
        at.server.insist_on_stream = True
        long_text = "很长的一句话，" * 20
        at.server.enqueue(Answer(long_text, prompt_tokens=5, cached_tokens=2, completion_tokens=7))
        assert await at.text() == long_text
        assert await at.text() == "好的"
        assert [body.get("stream", False) for body in at.bodies] == [False, True, True]
        assert (at.rows[1].prompt_tokens, at.rows[1].cached_tokens) == (5, 2)
        assert at.recorded == at.server.usage


@pytest.mark.parametrize("content_type", ["text/event-stream", "text/plain", "application/json"])
async def test_a_stream_is_read_whatever_it_is_labelled(content_type):
    async with bench(stream=True) as at:
        at.server.streams_as = content_type
        assert await at.text() == "好的"


async def test_a_stream_without_stream_options_still_works():
    async with bench(stream=True) as at:
        at.server.takes_stream_options = False
        assert await at.text() == "好的"
        assert "stream_options" not in at.bodies[-1]


async def test_a_stream_that_was_asked_for_and_not_given_is_read_too():
    async with bench(stream=True) as at:
        body = b'{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}'
        at.server.enqueue(Raw(body))
        assert await at.text() == "whole"


async def test_an_error_inside_a_success_counts_as_what_it_is():
    async with bench() as at:
        at.server.enqueue(Raw(b'{"error":{"code":429,"message":"slow"}}'))
        assert await at.text() == "好的"
        at.server.enqueue(Raw(b'{"base_resp":{"status_code":1027},"choices":null}'))
        assert isinstance(await at.error(), ModelRefused)


async def test_the_breaker_opens_spares_the_endpoint_and_closes_by_itself():
    async with bench(retry=ONCE) as at:
        at.server.answer = Failure(500)
        for _ in range(FAILURES_TO_OPEN):
            await at.error()
        at.server.answer = "好的"
        error = await at.error()
        assert isinstance(error, ModelUnavailable)
        assert error.retry_after_seconds == OPEN_MS / 1000
        assert len(at.server.requests) == len(at.rows) == FAILURES_TO_OPEN
        at.clock.at += OPEN_MS
        assert await at.text() == "好的"
        assert await at.text() == "好的"


async def test_half_open_lets_one_trial_through_however_many_ask():
    async with bench(retry=ONCE) as at:
        at.server.answer = Failure(500)
        for _ in range(FAILURES_TO_OPEN):
            await at.error()
        at.clock.at += OPEN_MS
        answers = await asyncio.gather(
            *(at.model.complete(REQUEST) for _ in range(5)), return_exceptions=True
        )
        assert all(isinstance(each, ModelUnavailable) for each in answers)
        assert len(at.server.requests) == FAILURES_TO_OPEN + 1


async def test_a_cancelled_trial_leaves_the_door_to_the_next_one():
    async with bench(retry=ONCE) as at:
        at.server.answer = Failure(500)
        for _ in range(FAILURES_TO_OPEN):
            await at.error()
        at.clock.at += OPEN_MS
        at.server.answer = Silence()
        trial = asyncio.create_task(at.model.complete(REQUEST))
        await at.server.until_requests(FAILURES_TO_OPEN + 1)
        trial.cancel()
        with pytest.raises(asyncio.CancelledError):
            await trial
        assert at.rows[-1].error == "CancelledError"
        at.server.answer = "好的"
        assert await at.text() == "好的"


async def test_refusals_and_garbage_never_open_the_breaker():
    async with bench() as at:
        for outcome in (Failure(400, "content_filter"), HTML_GARBAGE, Failure(400, "what")):
            at.server.answer = outcome
            for _ in range(FAILURES_TO_OPEN + 1):
                await at.error()
        at.server.answer = "好的"
        assert await at.text() == "好的"


async def test_a_breaker_belongs_to_one_model():
    config = ModelConfig(api_key=KEY, chat=ModelSlot("big"), decision=ModelSlot("quick"))
    async with bench(config, retry=ONCE) as at:
        at.server.enqueue(*[Failure(500)] * FAILURES_TO_OPEN)
        for _ in range(FAILURES_TO_OPEN):
            await at.error()
        assert await at.text(replace(REQUEST, purpose="decide")) == "好的"


async def test_usage_rows_sum_to_what_the_server_reported():
    async with bench() as at:
        at.server.rejected_formats = frozenset({"json_schema"})
        at.server.enqueue(
            Answer("a", prompt_tokens=100, cached_tokens=60, completion_tokens=7),
            Failure(503),
            Answer("", finish_reason="content_filter", prompt_tokens=11, completion_tokens=3),
            Answer(refusal="no", prompt_tokens=5, completion_tokens=1),
            Failure(429),
            Answer("b", has_usage=False),
            Reset(),
        )
        requests = [REQUEST, JSON_REQUEST, REQUEST, REQUEST, JSON_REQUEST, REQUEST, REQUEST]
        for request in requests:
            with contextlib.suppress(ModelRefused):
                await at.model.complete(request)
        assert at.recorded == at.server.usage
        assert at.recorded.cached == 60
        assert len(at.rows) == len(at.server.requests)


async def test_many_calls_at_once_keep_their_answers_apart():
    async with bench() as at:
        at.server.answer = lambda request: request.body["messages"][0]["content"] + "！"
        requests = [
            replace(REQUEST, messages=(PromptMessage("user", f"第{number}句"),))
            for number in range(40)
        ]
        answers = await asyncio.gather(*map(at.text, requests))
        assert answers == [f"第{number}句！" for number in range(40)]
        assert at.recorded == at.server.usage


async def test_a_row_that_cannot_be_kept_does_not_cost_the_answer():
    async with ModelServer() as server:

        async def record(usage: Usage) -> None:
            raise StoreBusy("locked")

        config = ModelConfig(base_url=server.base_url, chat=ModelSlot("big"))
        model = OpenAIModel(Routes(config), clock=StepClock(), record=record)
        assert (await model.complete(REQUEST)).text == "好的"
        await model.close()


async def test_keys_and_texts_are_in_no_log_error_traceback_or_repr(caplog):
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []
    errors: list[ModelError] = []
    echo = f"you said 小鱼的悄悄话 with Incorrect API key {KEY}"
    outcomes = [Failure(status, KEY, echo) for status in (400, 401, 403, 404, 413, 429, 500)]
    raws = [Raw(f'{{"error":"{echo}"}}'.encode()), Raw(echo.encode(), "text/html"), Reset(b"{")]
    async with bench(retry=ONCE) as at:
        for outcome in [*outcomes, *raws, Failure(400, "content_filter", echo), "好的"]:
            at.clock.at += OPEN_MS
            at.server.enqueue(outcome)
            try:
                seen.append(repr(replace(await at.model.complete(REQUEST), text="")))
            except ModelError as error:
                errors.append(error)
        seen += [repr(at.model), repr(at.model.routes), repr(at.rows), str(vars(at.model))]
    seen += [repr(vars(record)) + record.getMessage() for record in caplog.records]
    for error in errors:
        seen += [repr(error), *traceback.format_exception(error)]
    assert len(errors) == len(outcomes) + len(raws) + 1
    assert not [error for error in errors if error.__context__ or error.__cause__]
    assert len(caplog.records) > 10
    assert not [each for each in seen if KEY in each]
    assert not [each for each in seen if "悄悄话" in each]


async def test_a_probe_answers_or_raises_and_asks_once():
    async with bench() as at:
        [route] = at.model.routes.all()
        probe = await at.model.probe(route)
        assert (probe.model, probe.endpoint) == ("big", route.endpoint.name)
        assert at.server.requests[-1].body["max_tokens"] == 16
        at.server.enqueue(Failure(401))
        with pytest.raises(ModelUnavailable, match="API_KEY"):
            await at.model.probe(route)
        assert len(at.server.requests) == 2


async def test_a_closed_model_can_be_used_again():
    async with bench() as at:
        await at.text()
        await at.model.close()
        assert await at.text() == "好的"


def test_failures_of_one_kind_stay_of_that_kind():
    refused = ModelAnswerInvalid("a")
    assert combined([refused]) is refused
    assert isinstance(combined([refused, refused]), ModelAnswerInvalid)
    assert isinstance(combined([refused, ModelUnavailable("b")]), ModelUnavailable)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:1/v1", True),
        ("http://localhost/v1", True),
        ("http://[::1]:8/v1", True),
        ("https://api.example/v1", False),
        ("http://192.168.1.5/v1", False),
    ],
)
def test_only_this_machine_is_local(url, expected):
    assert is_local(url) is expected

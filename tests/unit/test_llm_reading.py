"""What is made of answers and refusals, whatever their shape."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.prompt_message import Image, PromptMessage
from bot.errors import (
    ContextTooLong,
    ModelAnswerInvalid,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from bot.llm.characters import whole_characters
from bot.llm.completion import (
    Completion,
    Tokens,
    decode,
    read_completion,
    tokens_in,
)
from bot.llm.dialect import Dialect, adapted, parameters
from bot.llm.protocol import ModelRequest
from bot.llm.rejection import error_for, read_rejection, rejection_in

KEYS = (
    "choices message content usage error code finish_reason prompt_tokens delta detail "
    "base_resp status_code type text metadata"
).split()
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)
REQUEST = ModelRequest(
    "summarize", (PromptMessage("user", "JSON"),), max_tokens=15_000, json_schema={"type": "object"}
)


def error_object(code: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "type": "", **more}}


def choice(**message: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error_object("content_filter", innererror={"code": "ResponsibleAIPolicyViolation"})),
        (400, error_object("data_inspection_failed")),
        (400, error_object("DataInspectionFailed")),
        (400, error_object("1301", "系统检测到输入或生成内容可能包含不安全或敏感内容")),
        (400, error_object("invalid_request_error", "Content Exists Risk")),
        (400, {"detail": "Content Exists Risk"}),
        (400, error_object("InputTextSensitiveContentDetected", "SensitiveContentDetected")),
        (400, error_object("", "The request was considered high risk", type="content_filter")),
        (500, error_object("sensitive_words_detected")),
        (403, {"code": "permission", "error": "Content violates usage guidelines."}),
        (451, error_object("")),
        (0, {"base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"}}),
    ],
)
def test_a_refusal_of_the_content_is_recognised_however_it_is_put(status, body):
    assert isinstance(error_for(read_rejection(status, body), "m at e"), ModelRefused)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error_object("context_length_exceeded")),
        (400, error_object("", "This model's maximum context length is 8192 tokens.")),
        (400, error_object("", "Your input exceeds the context window of this model.")),
        (400, error_object("", "Range of input length should be [1, 30720]")),
        (400, error_object("", "Invalid request: Your request exceeded model token limit: 8192")),
        (400, error_object("", "the request exceeds the available context size")),
        (400, error_object("", "prompt is too long: 202095 tokens > 200000 maximum")),
        (400, error_object("", "The input token count (9) exceeds the maximum")),
        (400, error_object("1261", "Prompt 超长")),
        (413, error_object("")),
        (400, error_object("400", "Provider error", metadata={"raw": "maximum context length"})),
    ],
)
def test_a_prompt_that_is_too_long_is_recognised_however_it_is_put(status, body):
    assert isinstance(error_for(read_rejection(status, body), "m at e"), ContextTooLong)


@pytest.mark.parametrize("status", [401, 402, 403, 404, 408, 429, 500, 502, 503, 504, 529])
def test_failures_of_transport_and_account_are_unavailability(status):
    error = error_for(read_rejection(status, error_object("sensitive-looking"), 3.0), "m at e")
    assert isinstance(error, ModelUnavailable)
    assert (error.status, error.retry_after_seconds) == (status, 3.0)


@pytest.mark.parametrize(
    ("code", "message"),
    [("insufficient_quota", ""), ("1113", "您的账户已欠费"), ("x", "check your billing details")],
)
def test_an_empty_account_is_not_worth_a_retry(code, message):
    assert not read_rejection(429, error_object(code, message)).is_passing
    assert read_rejection(429, error_object("rate_limit_exceeded")).is_passing


@pytest.mark.parametrize(
    "message",
    ["API key not valid", "Model Not Exist", "Your account is overdue: Arrearage", "余额不足"],
)
def test_a_400_about_the_account_is_unavailability_and_no_fault_of_the_prompt(message):
    rejection = read_rejection(400, error_object("invalid_request_error", message))
    assert isinstance(error_for(rejection, "m at e"), ModelUnavailable)
    assert adapted(Dialect(), REQUEST, rejection) is None


def test_an_error_never_repeats_what_the_provider_said():
    secret = "小鱼的秘密 sk-abcdef"
    for status in (0, 400, 403, 404, 413, 429, 500):
        for body in (error_object(secret, secret), error_object("content_filter", secret), secret):
            rejection = read_rejection(status, body)
            shown = str(error_for(rejection, "m at e")) + repr(rejection.retry_after_seconds)
            assert "小鱼" not in shown
            assert "sk-abcdef" not in shown
            assert "words" not in repr(rejection)


def test_an_error_inside_a_success_is_found():
    assert rejection_in({"error": {"code": 429, "message": "slow down"}}) == read_rejection(
        429, {"error": {"code": 429, "message": "slow down"}}
    )
    assert rejection_in({"code": 20015, "message": "no", "data": None}) is not None
    assert rejection_in({"base_resp": {"status_code": 0}, "choices": []}) is None
    assert rejection_in(choice(content="好")) is None


@given(ANY_JSON, st.integers(0, 599))
def test_no_shape_of_json_breaks_the_reader(body, status):
    assert isinstance(read_completion(body, "m at e"), Completion | ModelError)
    assert isinstance(error_for(read_rejection(status, body), "m at e"), ModelError)
    rejection = rejection_in(body)
    assert rejection is None or isinstance(error_for(rejection, "m at e"), ModelError)
    tokens = tokens_in(body)
    assert min(tokens.prompt, tokens.cached, tokens.completion) >= 0


@given(st.binary(max_size=80))
def test_no_bytes_break_the_decoder(body):
    decode(body)
    decode(b"data: " + body)


def test_deeply_nested_json_is_garbage_and_no_crash():
    assert decode(b"[" * 200_000) is None


def test_reasoning_is_never_part_of_the_text():
    answer = read_completion(choice(content="好的", reasoning_content="嗯……", reasoning="?"), "m")
    assert answer == Completion("好的", "stop")
    parts = [{"type": "thinking", "text": "嗯"}, {"type": "text", "text": "好的"}]
    assert read_completion(choice(content=parts), "m") == Completion("好的", "stop")


def test_a_model_that_only_thought_gave_an_empty_text():
    assert read_completion(choice(content=None, reasoning_content="嗯"), "m") == Completion(
        "", "stop"
    )


def test_a_declined_answer_is_a_refusal():
    assert isinstance(read_completion(choice(content=None, refusal="I can't"), "m"), ModelRefused)


@pytest.mark.parametrize("finish", ["content_filter", "sensitive", "SAFETY"])
def test_a_filtered_finish_is_a_refusal(finish):
    body = {"choices": [{"message": {"content": "一半"}, "finish_reason": finish}]}
    assert isinstance(read_completion(body, "m"), ModelRefused)


@pytest.mark.parametrize("body", [None, [], "x", {}, {"choices": []}, {"choices": [{}]}])
def test_what_is_no_completion_is_an_invalid_answer(body):
    assert isinstance(read_completion(body, "m"), ModelAnswerInvalid)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2}, Tokens(9, 0, 2)),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}, Tokens(9, 4, 0)),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 5}, Tokens(9, 5, 0)),
        ({"prompt_tokens": 9, "cached_tokens": 6}, Tokens(9, 6, 0)),
        ({"prompt_tokens": -1, "completion_tokens": 10**40, "cached_tokens": "7"}, Tokens()),
        ({"prompt_tokens": True, "completion_tokens": float("nan")}, Tokens()),
        (None, Tokens()),
    ],
)
def test_tokens_are_counted_under_every_name_and_nonsense_counts_nothing(usage, expected):
    assert tokens_in({"usage": usage}) == expected


def test_surrogates_become_characters_that_can_be_stored():
    assert whole_characters("\ud83d\ude00") == "😀"
    assert whole_characters("a\ud83db").encode() == "a\ufffdb".encode()


def test_a_stream_is_assembled_whatever_its_line_ends_and_comments():
    events = [
        {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
        {"choices": [{"delta": {"reasoning_content": "嗯"}}]},
        {"choices": [{"delta": {"content": "好\u2028"}}], "usage": None},
        {"choices": [{"delta": {"content": "的"}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    ]
    lines = [f"data: {json.dumps(each, ensure_ascii=False)}" for each in events]
    for end in ("\n", "\r\n"):
        body = decode(
            (": keep-alive" + end * 2 + (end * 2).join([*lines, "data: [DONE]"])).encode()
        )
        assert read_completion(body, "m") == Completion("好\u2028的", "stop")
        assert tokens_in(body) == Tokens(3, 0, 2)


def test_a_stream_that_was_cut_off_is_never_taken_for_whole():
    body = decode(b'data: {"choices":[{"delta":{"content":"half"}}]}\n\n')
    assert read_completion(body, "m") == Completion("half", "length")
    torn = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: {"choi\n\n'
    assert decode(torn) is None


def test_an_error_in_mid_stream_is_an_error():
    lines = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: {"error":{"code":503}}\n\n'
    rejection = rejection_in(decode(lines))
    assert rejection is not None
    assert rejection.status == 503


def test_json_output_steps_from_schema_to_mode_to_plain_and_then_gives_up():
    said = read_rejection(400, error_object("", "response_format is unavailable"))
    first = Dialect()
    second = adapted(first, REQUEST, said)
    assert second == replace(first, json_mode="object")
    assert second is not None
    third = adapted(second, REQUEST, said)
    assert third == replace(first, json_mode="plain")
    assert third is not None
    assert adapted(third, REQUEST, said) is None
    assert "response_format" not in parameters(REQUEST, "m", third)


def test_a_request_without_a_schema_has_no_ladder():
    said = read_rejection(400, error_object("", "response_format is unavailable"))
    assert adapted(Dialect(), replace(REQUEST, json_schema=None), said) is None


def test_the_limit_takes_the_name_and_the_size_that_the_model_wants():
    renamed = read_rejection(400, error_object("", "Use 'max_completion_tokens' instead"))
    dialect = adapted(Dialect(), REQUEST, renamed)
    assert dialect is not None
    assert parameters(REQUEST, "m", dialect)["max_completion_tokens"] == 15_000
    capped = read_rejection(400, error_object("", "max_tokens: valid range is [1, 8192]"))
    dialect = adapted(Dialect(), REQUEST, capped)
    assert dialect is not None
    assert parameters(REQUEST, "m", dialect)["max_tokens"] == 8192


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error_object("content_filter")),
        (400, error_object("context_length_exceeded")),
        (401, error_object("", "response_format")),
        (500, error_object("", "response_format")),
    ],
)
def test_no_other_way_of_asking_is_tried_when_the_way_is_not_what_is_wrong(status, body):
    assert adapted(Dialect(), REQUEST, read_rejection(status, body)) is None


def test_a_lone_surrogate_in_a_prompt_does_not_stop_it():
    request = ModelRequest("chat", (PromptMessage("user", "a\ud83d"),))
    content = parameters(request, "m", Dialect())["messages"][0]["content"]
    assert content == "a\ufffd"


def test_pictures_of_a_message_are_parts_of_it_and_other_messages_stay_plain_text():
    shown = PromptMessage("user", "看图", images=(Image("image/png", b"\x89PNG"),))
    request = ModelRequest("vision", (PromptMessage("system", "描述"), shown))
    plain, parts = (
        message["content"] for message in parameters(request, "m", Dialect())["messages"]
    )
    assert plain == "描述"
    assert parts == [
        {"type": "text", "text": "看图"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
    ]


def test_a_picture_stands_in_no_repr():
    assert "secret" not in repr(
        PromptMessage("user", "看图", images=(Image("image/png", b"secret"),))
    )

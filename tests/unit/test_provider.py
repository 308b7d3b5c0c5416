"""The local model server, as any OpenAI client sees it."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI

from bot.simulate.provider import (
    HALF_JSON,
    HTML_GARBAGE,
    Answer,
    Called,
    Failure,
    ModelServer,
    Reset,
    Silence,
    UsageTotals,
    embedding,
)

PROMPT: Any = [{"role": "user", "content": "在吗"}]


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as running:
        yield running


@pytest.fixture
async def client(server: ModelServer) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(api_key="sk-invented", base_url=server.base_url, max_retries=0) as made:
        yield made


async def test_an_independent_client_gets_a_completion(server, client):
    answer = await client.chat.completions.create(model="m", messages=PROMPT)
    assert answer.choices[0].message.content == "好的"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert server.usage == UsageTotals(
        answer.usage.prompt_tokens, 0, answer.usage.completion_tokens
    )


async def test_an_independent_client_gets_a_stream_with_its_usage(server, client):
    server.enqueue(Answer("一二三四五六七八九十", prompt_tokens=4, cached_tokens=1))
    stream = await client.chat.completions.create(
        model="m", messages=PROMPT, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == "一二三四五六七八九十"
    assert len(chunks) == 4
    assert chunks[-1].usage is not None
    assert server.usage == UsageTotals(4, 1, chunks[-1].usage.completion_tokens)


async def test_a_stream_that_asks_for_no_usage_gets_and_counts_none(server, client):
    stream = await client.chat.completions.create(model="m", messages=PROMPT, stream=True)
    assert not [chunk async for chunk in stream if chunk.usage]
    assert server.usage == UsageTotals()


async def test_models_and_embeddings_are_served_and_vectors_depend_on_the_text_alone(
    server, client
):
    server.models = ("m", "vectors")
    assert [model.id async for model in client.models.list()] == ["m", "vectors"]
    made = await client.embeddings.create(
        model="vectors", input=["猫", "狗", "猫"], encoding_format="float"
    )
    first, second, third = (each.embedding for each in made.data)
    assert first == third == embedding("猫")
    assert first != second
    assert server.usage.prompt == made.usage.prompt_tokens == 3


async def test_requests_are_remembered_without_the_key_among_their_headers(server, client):
    await client.chat.completions.create(
        model="m", messages=PROMPT, extra_headers={"X-Purpose": "chat"}
    )
    [request] = server.requests
    assert (request.purpose, request.path) == ("chat", "/v1/chat/completions")
    assert request.body["messages"] == PROMPT
    assert request.arrived_seconds <= asyncio.get_running_loop().time()
    assert "sk-invented" not in repr(request) + json.dumps(request.as_json())


async def test_a_script_for_a_purpose_goes_before_one_for_any(server, client):
    server.enqueue("any")
    server.enqueue(lambda request: request.purpose, purpose="decide")
    texts = []
    for _ in range(2):
        answer = await client.chat.completions.create(
            model="m", messages=PROMPT, extra_headers={"X-Purpose": "decide"}
        )
        texts.append(answer.choices[0].message.content)
    assert texts == ["decide", "any"]


async def test_a_failure_has_its_status_code_and_wish(server, client):
    server.enqueue(Failure(429, "rate_limit_exceeded", retry_after="3"))
    with pytest.raises(APIStatusError) as caught:
        await client.chat.completions.create(model="m", messages=PROMPT)
    assert (caught.value.status_code, caught.value.code) == (429, "rate_limit_exceeded")
    assert caught.value.response.headers["retry-after"] == "3"


@pytest.mark.parametrize("outcome", [Reset(), Reset(b'{"choices":')])
async def test_a_reset_breaks_the_connection_and_the_next_one_works(server, client, outcome):
    server.enqueue(outcome)
    with pytest.raises(APIConnectionError):
        await client.chat.completions.create(model="m", messages=PROMPT)
    assert (await client.chat.completions.create(model="m", messages=PROMPT)).choices


async def test_silence_lasts_until_the_client_gives_up(server, client):
    server.enqueue(Silence())
    with pytest.raises(APITimeoutError):
        await client.chat.completions.create(model="m", messages=PROMPT, timeout=0.1)
    assert (await client.chat.completions.create(model="m", messages=PROMPT)).choices


@pytest.mark.parametrize("raw", [HALF_JSON, HTML_GARBAGE])
async def test_garbage_arrives_byte_for_byte(server, client, raw):
    server.enqueue(raw)
    body = await client.post("/chat/completions", body={}, cast_to=bytes)
    assert body == raw.body


@pytest.mark.parametrize("change", [{"api_key": "sk-other"}, {"models": ("other",)}])
async def test_a_wrong_key_or_model_is_told_so(server, client, change):
    for name, value in change.items():
        setattr(server, name, value)
    with pytest.raises(APIStatusError) as caught:
        await client.chat.completions.create(model="m", messages=PROMPT)
    assert caught.value.status_code in (401, 404)


async def test_bytes_that_are_no_http_only_cost_their_own_connection(server, client):
    host, port = server.base_url.removeprefix("http://").removesuffix("/v1").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"\x16\x03\x01 hello\r\n\r\n")
    assert await reader.read() == b""
    writer.close()
    assert (await client.chat.completions.create(model="m", messages=PROMPT)).choices


async def test_it_runs_alone_and_prints_one_line_per_request():
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot.simulate.provider", "0", "--answer", "嗯", "--delay", "0.01"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = (await process.stderr.readline()).decode()
        base_url = line.strip().removeprefix("OPENAI_BASE_URL=")
        async with AsyncOpenAI(api_key="sk-invented", base_url=base_url) as client:
            answer = await client.chat.completions.create(
                model="m", messages=PROMPT, extra_headers={"X-Purpose": "chat"}
            )
        assert answer.choices[0].message.content == "嗯"
        printed = json.loads(await process.stdout.readline())
        assert (printed["purpose"], printed["body"]["messages"]) == ("chat", PROMPT)
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_an_independent_client_gets_tool_calls(server, client, stream):
    arguments = '{"query": "西瓜", "limit": 3}'
    server.enqueue(Answer(calls=(Called("look", arguments), Called("again"))))
    given = await client.chat.completions.create(model="m", messages=PROMPT, stream=stream)
    if not stream:
        choice = given.choices[0]
        assert choice.finish_reason == "tool_calls"
        found = [(c.id, c.function.name, c.function.arguments) for c in choice.message.tool_calls]
    else:
        pieces = [call async for chunk in given for call in chunk.choices[0].delta.tool_calls or ()]
        found = [
            (
                next(p.id for p in pieces if p.index == index),
                next(p.function.name for p in pieces if p.index == index),
                "".join(p.function.arguments for p in pieces if p.index == index),
            )
            for index in range(2)
        ]
    assert found == [("call-0", "look", arguments), ("call-1", "again", "{}")]


async def test_a_server_with_a_window_refuses_what_is_longer(server, client):
    server.window_tokens = 10
    await client.chat.completions.create(model="m", messages=PROMPT)
    with pytest.raises(APIStatusError) as caught:
        await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "问" * 100}]
        )
    assert caught.value.status_code == 400
    assert caught.value.code == "context_length_exceeded"
    assert "10 tokens" in caught.value.message

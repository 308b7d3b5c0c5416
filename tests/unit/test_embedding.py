"""The endpoint of embeddings: what it is asked, and what is made of whatever it answers."""

import json
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from bot.errors import ModelAnswerInvalid, ModelRefused, ModelUnavailable
from bot.llm.embedding import SMALL_PORTION, EndpointEmbedder, read_vectors
from bot.llm.retry import RetryPolicy
from bot.llm.routing import ModelConfig, ModelSlot, Routes
from bot.model import Usage
from bot.simulate import VirtualClock
from bot.simulate.provider import (
    HALF_JSON,
    HTML_GARBAGE,
    OTHER_SHAPE,
    Failure,
    ModelServer,
    Outcome,
    Raw,
    ReceivedRequest,
    Reset,
    Script,
    embedding,
)


class Bench:
    """An embedder, the server it asks, and what was recorded."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self.usage: list[Usage] = []
        slot = ModelSlot("vectors-small", server.base_url, "key")
        (route,) = Routes(ModelConfig(embedding=slot)).candidates("embed")
        self.embedder = EndpointEmbedder(
            route,
            clock=VirtualClock(1_790_000_000_000),
            record=self._record,
            retry=RetryPolicy(attempts=1),
        )

    def enqueue(self, *scripts: Script) -> None:
        """Let the next requests have these outcomes."""
        self.server.enqueue(*scripts, purpose="embed")

    async def _record(self, usage: Usage) -> None:
        self.usage.append(usage)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with ModelServer() as server:
        opened = Bench(server)
        try:
            yield opened
        finally:
            await opened.embedder.close()


def answer(*items: Any, tokens: int = 7) -> Raw:
    """Return an answer with some items for data."""
    body = {"data": list(items), "usage": {"prompt_tokens": tokens}}
    return Raw(json.dumps(body).encode())


def item(vector: Any, index: int = 0) -> dict[str, Any]:
    return {"object": "embedding", "index": index, "embedding": vector}


async def test_texts_become_vectors_of_length_one_in_their_order(bench: Bench):
    made = await bench.embedder.embed(["湖边", "钓鱼"])
    assert np.linalg.norm(made, axis=1) == pytest.approx([1, 1], abs=1e-5)
    wanted = np.array(embedding("钓鱼"))
    assert made[1] == pytest.approx(wanted / np.linalg.norm(wanted), abs=1e-5)


async def test_a_request_says_what_it_is_for_and_is_recorded(bench: Bench):
    await bench.embedder.embed(["湖边"])
    (request,) = bench.server.requests
    assert request.path.endswith("/embeddings")
    assert request.purpose == "embed"
    assert request.body["model"] == "vectors-small"
    (usage,) = bench.usage
    assert (usage.purpose, usage.model, usage.ok) == ("embed", "vectors-small", True)


async def test_items_are_put_in_order_by_their_index(bench: Bench):
    bench.enqueue(answer(item([0, 1], 1), item([1, 0], 0)))
    made = await bench.embedder.embed(["一", "二"])
    assert made.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "garbage",
    [
        HTML_GARBAGE,
        HALF_JSON,
        OTHER_SHAPE,
        answer(),
        answer(item([1, 0]), item([0, 1], 1)),
        answer({"index": 0}),
        answer("vector"),
        answer(item("AAAA")),
        answer(item([])),
        answer(item([1, "x"])),
        answer(item([[1, 0]])),
        answer(item([0, 0])),
        answer(item([1, None])),
        Raw(b'{"data":[{"index":0,"embedding":[NaN,1]}]}'),
        Raw(b'{"data":[{"index":0,"embedding":[1e999,1]}]}'),
        answer(item([1] * 9_000)),
        answer(item([1, 0], 5)),
        answer(item([1, 0], -1)),
    ],
)
async def test_what_is_no_vector_is_refused(bench: Bench, garbage: Raw):
    bench.enqueue(garbage)
    with pytest.raises(ModelAnswerInvalid):
        await bench.embedder.embed(["湖边"])
    assert [usage.ok for usage in bench.usage] == [False]


async def test_vectors_of_unequal_length_are_refused(bench: Bench):
    bench.enqueue(answer(item([1, 0]), item([1, 0, 0], 1)))
    with pytest.raises(ModelAnswerInvalid):
        await bench.embedder.embed(["一", "二"])


async def test_an_embedder_keeps_the_length_of_its_first_vectors(bench: Bench):
    assert await bench.embedder.dimensions() == 8
    bench.enqueue(answer(item([1, 0])))
    with pytest.raises(ModelAnswerInvalid, match="2 dimensions, after 8"):
        await bench.embedder.embed(["湖边"])
    assert await bench.embedder.dimensions() == 8


@pytest.mark.parametrize(
    "outage", [Failure(429, retry_after="3600"), Failure(503), Failure(401), Reset()]
)
async def test_an_outage_is_unavailable(bench: Bench, outage: Outcome):
    bench.enqueue(outage)
    with pytest.raises(ModelUnavailable):
        await bench.embedder.embed(["湖边"])


async def test_after_five_outages_it_is_left_alone(bench: Bench):
    bench.enqueue(*[Failure(503)] * 5)
    for _ in range(5):
        with pytest.raises(ModelUnavailable):
            await bench.embedder.embed(["湖边"])
    with pytest.raises(ModelUnavailable, match="left alone"):
        await bench.embedder.embed(["湖边"])
    assert len(bench.server.requests) == 5


async def test_a_refusal_is_told_from_an_outage(bench: Bench):
    bench.enqueue(Failure(400, "data_inspection_failed"))
    with pytest.raises(ModelRefused):
        await bench.embedder.embed(["湖边"])


async def test_a_provider_that_takes_few_texts_is_given_few(bench: Bench):
    def few(request: ReceivedRequest) -> Outcome:
        texts = request.body["input"]
        if len(texts) > SMALL_PORTION:
            return Failure(400, "invalid_parameter", "batch size is invalid")
        return answer(*(item(embedding(text), n) for n, text in enumerate(texts)))

    bench.enqueue(*[few] * 10)
    made = await bench.embedder.embed([f"第{n}句" for n in range(25)])
    assert made.shape == (25, 8)
    sizes = [len(request.body["input"]) for request in bench.server.requests]
    assert sizes == [25, 10, 10, 5]


async def test_neither_text_nor_key_enters_an_error(bench: Bench):
    bench.enqueue(Failure(400, message="cannot embed 我的门牌是八栋 with key"))
    with pytest.raises(ModelAnswerInvalid) as raised:
        await bench.embedder.embed(["我的门牌是八栋"])
    assert "八栋" not in str(raised.value)
    assert raised.value.__context__ is None


def test_an_answer_without_indexes_is_in_order():
    body = {"data": [{"embedding": [2, 0]}, {"embedding": [0, 2]}]}
    assert read_vectors(body, 2, "there").tolist() == [[1, 0], [0, 1]]

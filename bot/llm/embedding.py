"""The ``/embeddings`` of an OpenAI-compatible service.

See ``docs/search.md``, "Embedders". Answers are hostile until proven vectors.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from openai import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    RequestOptions,
)

from bot.clock import Clock
from bot.errors import ModelAnswerInvalid, ModelError, ModelUnavailable
from bot.llm.breaker import Breaker
from bot.llm.completion import NO_TOKENS, Tokens, decode, tokens_in
from bot.llm.embedder import Vectors, unit_vectors
from bot.llm.protocol import Purpose, UsageRecorder
from bot.llm.rejection import Rejection, error_for, read_rejection, rejection_in
from bot.llm.requests import Spent, client_of, headers_for, keep_usage
from bot.llm.retry import RetryPolicy, retry_after_seconds
from bot.llm.routing import Route
from bot.model import Chat

EMBEDDINGS_PATH = "/embeddings"
PURPOSE: Purpose = "embed"
ANSWER_SECONDS = 30.0
PORTION = 64
"""Texts that are sent at a time …"""
SMALL_PORTION = 10
"""… until a provider refuses so many: some take no more than this."""

PROBE = "你好"
"""What an endpoint is asked to learn how long its vectors are."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How one request ended."""

    vectors: Vectors | None = None
    error: ModelError | None = None
    tokens: Tokens = NO_TOKENS
    is_passing: bool = False
    asked_seconds: float | None = None
    """How long the provider wants to be left alone."""
    may_be_too_many: bool = False
    """The request was refused for what it is."""


class EndpointEmbedder:
    """An ``Embedder`` behind a route.

    Args:
        route: the model, and where it is.
        clock: times usage rows and the breaker, and sleeps between attempts.
        record: keeps one usage row for each request that was sent.
        retry: how often is asked again.
        jitter: draws from [0, 1) to spread retries.
    """

    is_remote = True

    def __init__(
        self,
        route: Route,
        *,
        clock: Clock,
        record: UsageRecorder,
        retry: RetryPolicy | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._route = route
        self._clock = clock
        self._record = record
        self._retry = retry or RetryPolicy()
        self._jitter = jitter
        self._breaker = Breaker()
        self._dimensions: int | None = None
        self._portion = PORTION
        self._client = client_of(route.endpoint)

    @property
    def id(self) -> str:
        """The model's name: wherever it is served, its vectors are the same."""
        return self._route.model

    async def dimensions(self) -> int:
        """Return how long its vectors are, asking once."""
        if self._dimensions is None:
            await self.embed([PROBE])
        assert self._dimensions is not None
        return self._dimensions

    async def embed(self, texts: Sequence[str], chat: Chat | None = None) -> Vectors:
        """Return a vector for each text; see ``Embedder``."""
        parts: list[Vectors] = []
        while (done := sum(map(len, parts))) < len(texts):
            parts.append(await self._embedded(texts[done : done + self._portion], chat))
        return np.concatenate(parts)

    async def _embedded(self, texts: Sequence[str], chat: Chat | None) -> Vectors:
        """Return vectors of the first texts at least, of all unless they were too many."""
        attempt = 0
        while True:
            attempt += 1
            outcome = await self._attempt(texts, chat)
            if outcome.vectors is not None:
                return outcome.vectors
            assert outcome.error is not None
            if outcome.may_be_too_many and len(texts) > SMALL_PORTION:
                self._portion = SMALL_PORTION
                return await self._embedded(texts[:SMALL_PORTION], chat)
            delay = self._delay_seconds(outcome, attempt)
            if delay is None:
                raise outcome.error
            await self._clock.sleep(delay)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    def _delay_seconds(self, outcome: _Outcome, attempt: int) -> float | None:
        if not outcome.is_passing or not self._breaker.admits(self._clock.now()):
            return None
        return self._retry.delay_seconds(attempt, self._jitter(), outcome.asked_seconds)

    async def _attempt(self, texts: Sequence[str], chat: Chat | None) -> _Outcome:
        before, now = self._breaker, self._clock.now()
        if not before.admits(now):
            return _Outcome(error=ModelUnavailable(f"{self._route} is left alone for a while"))
        self._breaker = before.after_start(now)
        try:
            outcome = await self._exchange(texts, chat)
        except asyncio.CancelledError:
            self._breaker = self._breaker.after_abandon(before)
            raise
        if isinstance(outcome.error, ModelUnavailable):
            self._breaker = self._breaker.after_failure(self._clock.now())
        else:
            self._breaker = self._breaker.after_success()
        return outcome

    async def _exchange(self, texts: Sequence[str], chat: Chat | None) -> _Outcome:
        """Send one request and record it, also when its caller stops waiting."""
        started = self._clock.now()
        try:
            outcome = self._judged(await self._send(texts), len(texts))
        except asyncio.CancelledError:
            await self._keep(started, NO_TOKENS, "CancelledError", chat)
            raise
        if outcome.error is not None:
            log.warning("%s: %s", PURPOSE, outcome.error)
        name = type(outcome.error).__name__ if outcome.error is not None else ""
        await self._keep(started, outcome.tokens, name, chat)
        return outcome

    async def _send(self, texts: Sequence[str]) -> object | _Outcome | Rejection:
        """Post texts; failures are values, so that no traceback carries what they quote."""
        body = {"model": self._route.model, "input": list(texts), "encoding_format": "float"}
        options: RequestOptions = {"headers": headers_for(PURPOSE), "timeout": ANSWER_SECONDS}
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                raw = await self._client.post(
                    EMBEDDINGS_PATH, body=body, options=options, cast_to=bytes
                )
        except (APITimeoutError, TimeoutError):
            return _Outcome(error=ModelUnavailable(f"{self._route} did not answer in time"))
        except APIConnectionError:
            lost = ModelUnavailable(f"{self._route} cannot be reached, or broke off")
            return _Outcome(error=lost, is_passing=True)
        except APIStatusError as error:
            wait = retry_after_seconds(error.response.headers, self._clock.now())
            return read_rejection(error.status_code, error.body, wait)
        return decode(raw)

    def _judged(self, received: object | _Outcome | Rejection, count: int) -> _Outcome:
        if isinstance(received, _Outcome):
            return received
        rejection = received if isinstance(received, Rejection) else rejection_in(received)
        if rejection is not None:
            return _Outcome(
                error=error_for(rejection, str(self._route)),
                tokens=tokens_in(received),
                is_passing=rejection.is_passing,
                asked_seconds=rejection.retry_after_seconds,
                may_be_too_many=rejection.is_about_request,
            )
        tokens = tokens_in(received)
        try:
            vectors = read_vectors(received, count, str(self._route))
            self._pin(vectors.shape[1])
        except ModelAnswerInvalid as error:
            return _Outcome(error=error, tokens=tokens)
        return _Outcome(vectors, tokens=tokens)

    def _pin(self, dimensions: int) -> None:
        """Let all vectors be as long as the first."""
        if self._dimensions not in (None, dimensions):
            raise ModelAnswerInvalid(
                f"{self._route} answered with {dimensions} dimensions, after {self._dimensions}"
            )
        self._dimensions = dimensions

    async def _keep(self, started: int, tokens: Tokens, error: str, chat: Chat | None) -> None:
        ended = self._clock.now()
        spent = Spent(PURPOSE, self._route, chat, started, ended, tokens, error)
        await keep_usage(self._record, spent)


def read_vectors(body: object, count: int, where: str) -> Vectors:
    """Return the vectors in an answer, in the order of the texts. Pure.

    Raises:
        ModelAnswerInvalid: it is none, or not of so many texts.
    """
    data = body.get("data") if isinstance(body, Mapping) else None
    if not isinstance(data, list) or len(data) != count:
        raise ModelAnswerInvalid(f"{where} did not answer with {count} vectors")
    rows: dict[int, Any] = {}
    for place, item in enumerate(data):
        if not isinstance(item, Mapping) or not isinstance(item.get("embedding"), list):
            raise ModelAnswerInvalid(f"{where} answered with an item that has no vector")
        index = item.get("index", place)
        rows[index if isinstance(index, int) else place] = item["embedding"]
    if rows.keys() != set(range(count)):
        raise ModelAnswerInvalid(f"{where} answered with vectors of other texts")
    return unit_vectors([rows[place] for place in range(count)], where)

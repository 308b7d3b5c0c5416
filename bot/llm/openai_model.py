"""The OpenAI-compatible client: one request in, one answer or one of our errors out.

See ``docs/architecture.md``, "Models". The SDK carries connections, headers and time-outs;
retries, fallbacks and reading are ours, because each attempt is a usage row, time is an
argument, and an answer of the wrong shape must not crash anything.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from openai import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    AsyncOpenAI,
    RequestOptions,
    Timeout,
)

from bot.clock import Clock
from bot.conversation.prompt_message import PromptMessage
from bot.errors import (
    ContextTooLong,
    ModelAnswerInvalid,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from bot.llm.breaker import Breaker
from bot.llm.completion import NO_TOKENS, Completion, Tokens, decode, read_completion, tokens_in
from bot.llm.dialect import Dialect, adapted, parameters
from bot.llm.protocol import ModelAnswer, ModelRequest, Purpose, UsageRecorder
from bot.llm.rejection import Rejection, error_for, read_rejection, rejection_in
from bot.llm.requests import Spent, client_of, headers_for, keep_usage
from bot.llm.retry import RetryPolicy, retry_after_seconds
from bot.llm.routing import SLOTS, Endpoint, Route, Routes

COMPLETIONS_PATH = "/chat/completions"

MAX_ADAPTATIONS = 6
"""Other ways to ask that one call may try; there are not more worth trying."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one request may take."""

    connect_seconds: float = 10.0
    reply_seconds: float = 90.0
    """In all, when someone waits for the answer."""
    memory_seconds: float = 300.0
    """In all, for reflections, compressions and summaries, which write long answers."""

    def total_seconds(self, purpose: Purpose) -> float:
        """Return the limit for a request of ``purpose``."""
        return self.memory_seconds if SLOTS[purpose] == "MEMORY" else self.reply_seconds


@dataclass(frozen=True, slots=True)
class Probe:
    """A route that answered."""

    model: str
    endpoint: str
    duration_ms: int


@dataclass(frozen=True, slots=True)
class _Received:
    """The decoded body of a 200 answer, of whatever shape."""

    body: object


@dataclass(frozen=True, slots=True)
class _Lost:
    """No answer."""

    cause: str
    is_passing: bool


@dataclass(frozen=True, slots=True)
class _Exchange:
    """One request and how it ended."""

    outcome: ModelAnswer | ModelError
    tokens: Tokens = NO_TOKENS
    rejection: Rejection | None = None
    is_passing: bool = False
    """Whether the same request may well succeed in a moment."""


class OpenAIModel:
    """A ``ChatModel`` over any number of OpenAI-compatible endpoints.

    Args:
        routes: which models serve which purpose.
        clock: times usage rows and breakers, and sleeps between attempts.
        record: keeps one usage row per request that was sent.
        retry: how often one route is asked again.
        patience: how long one request may take.
        stream: ask for event streams from the start; endpoints that insist get them anyway.
        jitter: draws from [0, 1) to spread retries.
    """

    def __init__(
        self,
        routes: Routes,
        *,
        clock: Clock,
        record: UsageRecorder,
        retry: RetryPolicy | None = None,
        patience: Patience | None = None,
        stream: bool = False,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._routes = routes
        self._clock = clock
        self._record = record
        self._retry = retry or RetryPolicy()
        self._patience = patience or Patience()
        self._first_dialect = Dialect(stream=stream)
        self._jitter = jitter
        self._clients: dict[Endpoint, AsyncOpenAI] = {}
        self._breakers: dict[Route, Breaker] = {}
        self._dialects: dict[Route, Dialect] = {}

    @property
    def routes(self) -> Routes:
        """What this model is configured to use."""
        return self._routes

    def breaker(self, route: Route) -> Breaker:
        """Return the state of a route's breaker, for status pages."""
        return self._breakers.get(route, Breaker())

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Return the first answer that the purpose's routes give.

        Raises:
            ModelNotConfigured: no route is configured.
            ModelUnavailable, ModelAnswerInvalid: no route gave a completion.
            ModelRefused, ContextTooLong: a route judged the content; no other one is asked.
        """
        failures: list[ModelError] = []
        routes = self._routes.candidates(
            request.purpose, request.last_route, request.preferred_model
        )
        for route in routes:
            outcome = await self._ask(route, request)
            if isinstance(outcome, ModelAnswer):
                return outcome
            if isinstance(outcome, ModelRefused | ContextTooLong):
                raise outcome
            failures.append(outcome)
        raise combined(failures)

    async def probe(self, route: Route) -> Probe:
        """Send the smallest request to ``route``, past its breaker and without a retry.

        Raises:
            ModelUnavailable, ModelRefused, ModelAnswerInvalid, ContextTooLong: what came of it.
        """
        request = ModelRequest("chat", (PromptMessage("user", "ping"),), max_tokens=16)
        started = self._clock.now()
        outcome = (await self._converse(route, request)).outcome
        if isinstance(outcome, ModelError):
            raise outcome
        return Probe(route.model, route.endpoint.name, self._clock.now() - started)

    async def close(self) -> None:
        """Close all connections."""
        clients = list(self._clients.values())
        self._clients.clear()
        for client in clients:
            await client.close()

    async def _ask(self, route: Route, request: ModelRequest) -> ModelAnswer | ModelError:
        """Ask one route until it answers or waiting makes no sense any more."""
        attempt = 0
        while True:
            attempt += 1
            exchange = await self._attempt(route, request)
            delay_seconds = self._delay_seconds(exchange, attempt)
            if delay_seconds is None or not self._admits(route):
                return exchange.outcome
            await self._clock.sleep(delay_seconds)

    def _delay_seconds(self, exchange: _Exchange, attempt: int) -> float | None:
        if not exchange.is_passing:
            return None
        asked = exchange.rejection.retry_after_seconds if exchange.rejection else None
        return self._retry.delay_seconds(attempt, self._jitter(), asked)

    def _admits(self, route: Route) -> bool:
        return self.breaker(route).admits(self._clock.now())

    async def _attempt(self, route: Route, request: ModelRequest) -> _Exchange:
        """Ask once if the breaker lets it through, and tell the breaker how it went."""
        before, now = self.breaker(route), self._clock.now()
        if not before.admits(now):
            return _Exchange(_left_alone(route, before.wait_ms(now)))
        self._breakers[route] = before.after_start(now)
        try:
            exchange = await self._converse(route, request)
        except asyncio.CancelledError:
            self._breakers[route] = self.breaker(route).after_abandon(before)
            raise
        self._breakers[route] = self._noted(route, exchange.outcome)
        return exchange

    def _noted(self, route: Route, outcome: ModelAnswer | ModelError) -> Breaker:
        breaker = self.breaker(route)
        if isinstance(outcome, ModelUnavailable):
            return breaker.after_failure(self._clock.now())
        return breaker.after_success()

    async def _converse(self, route: Route, request: ModelRequest) -> _Exchange:
        """Ask in the way that worked last, and in others as long as that is what is wrong.

        What worked is remembered; what failed for another reason teaches nothing.
        """
        known = dialect = self._dialects.get(route, self._first_dialect)
        exchange = await self._exchange(route, request, dialect)
        for _ in range(MAX_ADAPTATIONS):
            other = adapted(dialect, request, exchange.rejection) if exchange.rejection else None
            if other is None:
                break
            log.debug("%s is asked in another way: %r", route, other)
            dialect = other
            exchange = await self._exchange(route, request, dialect)
        if isinstance(exchange.outcome, ModelAnswer) and dialect != known:
            self._dialects[route] = dialect
        return exchange

    async def _exchange(self, route: Route, request: ModelRequest, dialect: Dialect) -> _Exchange:
        """Send one request and record it, also when its caller stops waiting."""
        started = self._clock.now()
        body = parameters(request, route.model, dialect)
        try:
            received = await self._send(route.endpoint, body, request.purpose)
        except asyncio.CancelledError:
            await self._keep(route, request, started, NO_TOKENS, "CancelledError")
            raise
        exchange = judged(received, route)
        error = exchange.outcome if isinstance(exchange.outcome, ModelError) else None
        if error is not None:
            log.warning("%s: %s", request.purpose, error)
        name = type(error).__name__ if error is not None else ""
        await self._keep(route, request, started, exchange.tokens, name)
        return exchange

    async def _send(
        self, endpoint: Endpoint, body: dict[str, object], purpose: Purpose
    ) -> _Received | Rejection | _Lost:
        """Post ``body``; failures are values, so that no traceback carries what they quote."""
        seconds = self._patience.total_seconds(purpose)
        options: RequestOptions = {
            "headers": headers_for(purpose),
            "timeout": Timeout(seconds, connect=min(seconds, self._patience.connect_seconds)),
        }
        client = self._client(endpoint)
        try:
            async with asyncio.timeout(seconds):
                raw = await client.post(COMPLETIONS_PATH, body=body, options=options, cast_to=bytes)
        except (APITimeoutError, TimeoutError):
            return _Lost("did not answer in time", is_passing=False)
        except APIConnectionError:
            return _Lost("cannot be reached, or broke off", is_passing=True)
        except APIStatusError as error:
            wait = retry_after_seconds(error.response.headers, self._clock.now())
            return read_rejection(error.status_code, error.body, wait)
        return _Received(decode(raw))

    async def _keep(
        self, route: Route, request: ModelRequest, started: int, tokens: Tokens, error: str
    ) -> None:
        ended = self._clock.now()
        spent = Spent(request.purpose, route, request.chat, started, ended, tokens, error)
        await keep_usage(self._record, spent)

    def _client(self, endpoint: Endpoint) -> AsyncOpenAI:
        client = self._clients.get(endpoint)
        if client is None:
            client = self._clients[endpoint] = client_of(endpoint)
        return client


def judged(received: _Received | Rejection | _Lost, route: Route) -> _Exchange:
    """Return what came of a request to ``route``. Pure."""
    if isinstance(received, _Lost):
        error = ModelUnavailable(f"{route} {received.cause}")
        return _Exchange(error, is_passing=received.is_passing)
    if isinstance(received, Rejection):
        return _rejected(received, route)
    rejection = rejection_in(received.body)
    tokens = tokens_in(received.body)
    if rejection is not None:
        return replace(_rejected(rejection, route), tokens=tokens)
    completion = read_completion(received.body, str(route))
    if isinstance(completion, Completion):
        return _Exchange(_answer(completion, tokens, route), tokens)
    return _Exchange(completion, tokens)


def combined(failures: Sequence[ModelError]) -> ModelError:
    """Return one error for the failures of all routes, never empty. Pure.

    One route that could not be reached makes it ``ModelUnavailable``: trying later may help.
    """
    if len(failures) == 1:
        return failures[0]
    text = "; ".join(str(failure) for failure in failures)
    unavailable = next((each for each in failures if isinstance(each, ModelUnavailable)), None)
    if unavailable is None:
        return ModelAnswerInvalid(text)
    return ModelUnavailable(
        text,
        status=unavailable.status,
        retry_after_seconds=unavailable.retry_after_seconds,
    )


def _rejected(rejection: Rejection, route: Route) -> _Exchange:
    error = error_for(rejection, str(route), route.model)
    return _Exchange(error, rejection=rejection, is_passing=rejection.is_passing)


def _answer(completion: Completion, tokens: Tokens, route: Route) -> ModelAnswer:
    return ModelAnswer(
        text=completion.text,
        finish_reason=completion.finish_reason,
        model=route.model,
        endpoint=route.endpoint.name,
        prompt_tokens=tokens.prompt,
        cached_tokens=tokens.cached,
        completion_tokens=tokens.completion,
        tool_calls=completion.tool_calls,
    )


def _left_alone(route: Route, wait_ms: int) -> ModelUnavailable:
    seconds = -(-wait_ms // 1000)
    return ModelUnavailable(
        f"{route} failed too often and is left alone for {seconds} s", retry_after_seconds=seconds
    )

"""A prompt made to fit the window of a model: what gives way, in which order. Pure.

See ``docs/architecture.md``, "Token budget".
"""

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, dropwhile, takewhile

from bot.conversation.prompt_message import PromptMessage
from bot.conversation.tokens import CountTokens
from bot.conversation.tools import ToolSpec
from bot.conversation.turn_request import Messages, TurnRequest
from bot.model import TurnLine
from bot.text import ELLIPSIS, clipped, json_line, whole_characters

MESSAGE_TOKENS = 4
"""What each message costs beside its text."""

LEAST_RESULT_CHARS = 200
"""A tool's result is not made shorter than this."""

SHORTENED = f"{ELLIPSIS}（后面的已略去）"

NOW = "【现在】"
"""With this the tail begins to say when it is (``prompts/tail.j2``)."""

QUESTION_CHARS = (2_000, 1_000, 500, 200, 50)
"""Steps in which what is to be answered is cut, at the very last."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A request that was made to fit, as far as it could be."""

    request: TurnRequest
    messages: Messages
    """The prompt that it makes."""
    folded: int = 0
    """So many of the oldest turns were left to the rolling summary."""
    dropped: int = 0
    """So many more were left out."""

    def after(self, before: "Fitted") -> "Fitted":
        """Return this with what an earlier fitting had left out already."""
        return replace(
            self, folded=self.folded + before.folded, dropped=self.dropped + before.dropped
        )


def most_tokens(messages: Messages) -> int:
    """Return what no estimate of a prompt exceeds, without looking at its letters."""
    return sum([len(each.content) for each in messages]) + _beside(messages)


def tokens(messages: Messages, count: CountTokens) -> int:
    """Return the estimated tokens of a prompt, those of its tools apart."""
    return sum([count(each.content) for each in messages]) + _beside(messages)


def tool_tokens(tools: tuple[ToolSpec, ...], count: CountTokens) -> int:
    """Return the estimated tokens of what is said of tools."""
    return sum(_tokens_of_each(tools, count))


def affordable(tools: tuple[ToolSpec, ...], count: CountTokens, room: int) -> int:
    """Return how many of the first tools fit into ``room`` tokens."""
    return sum(taken <= room for taken in accumulate(_tokens_of_each(tools, count)))


@lru_cache(maxsize=64)
def _tokens_of_each(tools: tuple[ToolSpec, ...], count: CountTokens) -> tuple[int, ...]:
    told = ((each.name, each.description, dict(each.parameters)) for each in tools)
    return tuple(count(json.dumps(each, ensure_ascii=False)) for each in told)


def _beside(messages: Messages) -> int:
    """Return what messages cost beside their texts."""
    calls = [call for each in messages if each.calls for call in each.calls]
    called = sum(len(call.name) + len(call.arguments) for call in calls)
    return called + MESSAGE_TOKENS * len(messages)


def fitted(request: TurnRequest, room: int, count: CountTokens, *, kept: int) -> Fitted:
    """Return a request of at most ``room`` estimated tokens; each stage goes only as far as needed.

    First the oldest turns are left to the rolling summary, down to ``kept``; then the oldest
    results of tools are shortened, the newest excepted; then the oldest turns are dropped; at the
    very last the new turn itself is cut. What still is too long is as short as it can be made.
    """
    messages = request.messages()
    if most_tokens(messages) <= room:
        return Fitted(request, messages)
    fit = _Fit(room, count)
    request, folded = fit.without_oldest(request, down_to=kept)
    request = fit.with_short_results(request, newest_too=False)
    request, dropped = fit.without_oldest(request, down_to=0)
    request = fit.with_less_of_the_turn(request)
    return Fitted(request, request.messages(), folded, dropped)


@dataclass(frozen=True, slots=True)
class _Fit:
    """The stages, each for a request that may or may not fit yet."""

    room: int
    count: CountTokens

    def excess(self, request: TurnRequest) -> int:
        """Return by how much a request is too long; negative if there is room left."""
        return tokens(request.messages(), self.count) - self.room

    def without_oldest(self, request: TurnRequest, *, down_to: int) -> tuple[TurnRequest, int]:
        """Leave out the oldest turns, and return how many."""
        excess, left_out = self.excess(request), 0
        while excess > 0 and len(request.earlier) - left_out > down_to:
            excess -= tokens(request.earlier[left_out], self.count)
            left_out += 1
        return replace(request, earlier=request.earlier[left_out:]), left_out

    def with_short_results(self, request: TurnRequest, *, newest_too: bool) -> TurnRequest:
        """Shorten the results of tools, the oldest first."""
        excess = self.excess(request)
        results = _results(request)
        spared = 0 if newest_too else len(_newest_results(request))
        for place in range(len(results) - spared):
            if excess <= 0:
                break
            before = results[place]
            results[place] = self._shorter(before, excess)
            excess -= self.count(before.content) - self.count(results[place].content)
        return _with_results(request, iter(results))

    def _shorter(self, result: PromptMessage, excess: int) -> PromptMessage:
        """Return a result without its end, of which as much stays as may."""
        text = result.content
        if len(text) <= LEAST_RESULT_CHARS + len(SHORTENED):
            return result
        lengths = range(LEAST_RESULT_CHARS, len(text))
        least = self.count(text) - excess
        fitting = bisect_right(lengths, least, key=lambda n: self.count(text[:n] + SHORTENED))
        kept = lengths[max(0, fitting - 1)]
        return replace(result, content=text[: whole_characters(text, kept)] + SHORTENED)

    def with_less_of_the_turn(self, request: TurnRequest) -> TurnRequest:
        """Cut the new turn, what is said of it last."""
        for cut in (self._without_context, self._without_memory, self._with_short_question):
            if self.excess(request) > 0:
                request = cut(request)
        return request

    def _without_context(self, request: TurnRequest) -> TurnRequest:
        while self.excess(request) > 0:
            beside = [line for line in request.lines if line.part != "question"]
            if not beside:
                break
            lines = tuple(line for line in request.lines if line is not beside[0])
            request = replace(request, lines=lines)
        return request

    def _without_memory(self, request: TurnRequest) -> TurnRequest:
        request = self.with_short_results(request, newest_too=True)
        if self.excess(request) > 0:
            request = replace(request, memory=(), tail=_bare(request.tail))
        return request

    def _with_short_question(self, request: TurnRequest) -> TurnRequest:
        lines = request.lines
        for chars in QUESTION_CHARS:
            request = replace(request, lines=tuple(_cut(line, chars) for line in lines))
            if self.excess(request) <= 0:
                break
        return request


def _results(request: TurnRequest) -> list[PromptMessage]:
    return [message for message in request.messages() if message.role == "tool"]


def _newest_results(request: TurnRequest) -> list[PromptMessage]:
    """Return the results of the last answer that called any tools."""
    backwards = dropwhile(lambda each: each.role != "tool", reversed(request.messages()))
    return list(takewhile(lambda each: each.role == "tool", backwards))


def _with_results(request: TurnRequest, results: Iterator[PromptMessage]) -> TurnRequest:
    """Return a request with other results in the places of its own."""

    def other(messages: Messages) -> Messages:
        return tuple(next(results) if each.role == "tool" else each for each in messages)

    earlier = tuple(other(turn) for turn in request.earlier)
    return replace(request, earlier=earlier, rounds=other(request.rounds))


def _bare(tail: str) -> str:
    """Return the tail without what is remembered: when it is, and who speaks."""
    lines = tail.split("\n")
    starts = [place for place, line in enumerate(lines) if line.startswith(NOW)]
    return "\n".join(lines[starts[-1] :]) if starts else ""


def _cut(line: TurnLine, chars: int) -> TurnLine:
    """Return a line of JSON with less of its text."""
    told = json.loads(line.text)
    return line._replace(text=json_line({**told, "text": clipped(told["text"], chars)}))

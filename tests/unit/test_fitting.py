"""Prompts made to fit: never too long, always with the new turn, and as full as may be."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.fitting import (
    LEAST_RESULT_CHARS,
    NOW,
    SHORTENED,
    Fitted,
    fitted,
    most_tokens,
    tokens,
    tool_tokens,
)
from bot.conversation.prompt_message import PromptMessage
from bot.conversation.tokens import estimator
from bot.conversation.tools import ToolSpec
from bot.conversation.turn_request import TurnRequest, round_messages
from bot.model import ToolRound, ToolUse, TurnLine, TurnPart

COUNT = estimator("cjk")
TAIL = "【成员记忆】他喜欢西瓜\n【现在】2026-07-29 12:00 星期三\n【说话的人】{}"


def line(row: int, part: TurnPart, text: str) -> TurnLine:
    return TurnLine(row, part, json.dumps({"id": row, "text": text}, ensure_ascii=False))


def used(*results: str) -> ToolRound:
    uses = tuple(ToolUse(f"c{n}", "look", "{}", each) for n, each in enumerate(results))
    return ToolRound("big", "", uses)


def told(number: int, chars: int, *rounds: ToolRound) -> tuple[PromptMessage, ...]:
    calls = (message for one in rounds for message in round_messages(one))
    question = PromptMessage("user", f"问{number}" + "字" * chars)
    return (question, *calls, PromptMessage("assistant", f"答{number}"))


def asked(
    *earlier: tuple[PromptMessage, ...], rounds: tuple[ToolRound, ...] = (), question: str = "在吗"
) -> TurnRequest:
    beside = (line(1, "context", "早" * 50), line(2, "quote", "引" * 50))
    request = TurnRequest(
        rules=PromptMessage("system", "规则"),
        memory=(PromptMessage("system", "群的记忆" * 5),),
        earlier=earlier,
        lines=(*beside, line(3, "question", question)),
        tail=TAIL,
    )
    for one in rounds:
        request = request.with_round(one)
    return request


def size(request: TurnRequest) -> int:
    return tokens(request.messages(), COUNT)


def fit(request: TurnRequest, room: int, kept: int = 2) -> Fitted:
    return fitted(request, room, COUNT, kept=kept)


def results(request: TurnRequest) -> list[str]:
    return [each.content for each in request.messages() if each.role == "tool"]


def test_what_fits_is_left_alone():
    request = asked(told(1, 10), told(2, 10))
    found = fit(request, size(request))
    assert (found.request, found.folded, found.dropped) == (request, 0, 0)
    assert found.messages == request.messages()


def test_the_oldest_turns_are_folded_first_and_no_further_than_needed():
    request = asked(*(told(number, 100) for number in range(6)))
    found = fit(request, size(request) - 1)
    assert (found.request.earlier, found.folded) == (request.earlier[1:], 1)


def test_results_of_tools_are_shortened_before_kept_turns_are_dropped():
    rounds = [used("甲" * 1_000), used("乙" * 1_000), used("丙" * 1_000)]
    request = asked(*(told(n, 100, one) for n, one in enumerate(rounds)))
    found = fit(request, size(request) - 900, kept=3)
    assert (found.folded, found.dropped) == (0, 0)
    first, second, third = results(found.request)
    assert first.endswith(SHORTENED)
    assert len(first) >= LEAST_RESULT_CHARS
    assert (second, third) == (
        "乙" * 1_000 if len(first) > LEAST_RESULT_CHARS + 20 else second,
        "丙" * 1_000,
    )
    assert size(found.request) <= size(request) - 900


def test_the_newest_results_stay_whole_while_turns_can_be_dropped():
    newest = used("丙" * 500, "丁" * 500)
    request = asked(told(1, 800, used("甲" * 900)), told(2, 800), rounds=(used("乙" * 900), newest))
    found = fit(request, 1_600)
    assert found.request.earlier == ()
    assert results(found.request)[1:] == ["丙" * 500, "丁" * 500]
    assert size(found.request) <= 1_600


def test_calls_and_results_leave_together_with_their_turn():
    request = asked(told(1, 500, used("甲" * 300)), told(2, 10))
    found = fit(request, 300)
    roles = [each.role for each in found.messages]
    assert roles == ["system", "system", "user", "assistant", "user"]


def test_at_the_last_the_question_alone_is_left_and_then_cut():
    request = asked(told(1, 10), question="请" * 3_000, rounds=(used("丙" * 3_000),))
    found = fit(request, 900)
    assert [each.part for each in found.request.lines] == ["question"]
    assert found.request.memory == ()
    assert found.request.tail == "\n".join(TAIL.split("\n")[1:])
    (question,) = found.request.lines
    assert len(json.loads(question.text)["text"]) == 500
    assert size(found.request) <= 900


def test_the_tail_says_when_it_is_on_a_line_of_its_own():
    tail = (Path(__file__).parent / "golden" / "tail_group_memory.txt").read_text("utf-8")
    assert sum(each.startswith(NOW) for each in tail.split("\n")) == 1


def test_what_cannot_fit_is_as_short_as_it_can_be_made():
    request = asked(told(1, 10), question="请" * 3_000)
    found = fit(request, 1)
    assert len(json.loads(found.request.lines[-1].text)["text"]) == 50


def test_what_is_said_of_tools_counts():
    spec = ToolSpec("look", "找" * 40, {"type": "object", "properties": {}})
    assert tool_tokens((spec,), COUNT) >= 40
    assert tool_tokens((spec, spec), COUNT) == 2 * tool_tokens((spec,), COUNT)


_turns = st.lists(
    st.tuples(st.integers(0, 400), st.lists(st.integers(0, 900), max_size=2)), max_size=8
)


def _request(turns: list[tuple[int, list[int]]], rounds: list[int], chars: int) -> TurnRequest:
    earlier = [
        told(number, length, *([used(*("果" * n for n in lengths))] if lengths else []))
        for number, (length, lengths) in enumerate(turns)
    ]
    given_rounds = tuple(used("新" * n) for n in rounds)
    return asked(*earlier, rounds=given_rounds, question="请" * chars)


@given(_turns, st.lists(st.integers(0, 900), max_size=3), st.integers(1, 900), st.data())
def test_a_prompt_never_exceeds_its_room_and_keeps_all_it_can(
    turns: list[tuple[int, list[int]]], rounds: list[int], chars: int, data: st.DataObject
):
    request = _request(turns, rounds, chars)
    room = data.draw(st.integers(0, most_tokens(request.messages())))
    kept = data.draw(st.integers(0, 8))
    found = fit(request, room, kept)
    # The order stays, the beginning goes, and the new turn is there.
    gone = found.folded + found.dropped
    assert len(found.request.earlier) == len(turns) - gone
    assert [turn[0] for turn in found.request.earlier] == [t[0] for t in request.earlier[gone:]]
    assert found.messages == found.request.messages()
    assert found.request.lines[-1].part == "question"
    assert found.request.rules == request.rules
    assert len(results(found.request)) >= len(rounds)
    # It fits, or nothing more can be taken from it.
    least = fit(request, 0, 0)
    assert size(found.request) <= room or size(found.request) <= size(least.request)
    # No stage went further than needed, or began before the one before it had ended.
    if gone and not found.dropped:
        assert size(replace(request, earlier=request.earlier[gone - 1 :])) > room
    if found.dropped:
        assert len(turns) - found.folded <= kept
        newest = 1 if rounds or any(lengths for _, lengths in turns[-1:]) else 2
        older = results(found.request)[:-newest]
        assert all(len(each) <= LEAST_RESULT_CHARS + len(SHORTENED) for each in older)


@given(_turns, st.integers(0, 5_000))
def test_a_prompt_without_tools_keeps_as_many_turns_as_fit(
    turns: list[tuple[int, list[int]]], room: int
):
    request = _request([(chars, []) for chars, _ in turns], [], 10)
    found = fit(request, room, kept=2)
    best = next(
        (
            n
            for n in range(len(turns) + 1)
            if size(replace(request, earlier=request.earlier[n:])) <= room
        ),
        len(turns),
    )
    assert found.folded + found.dropped == best


@pytest.mark.parametrize("name", ["cjk", "chars4"])
@given(text=st.text(max_size=200))
def test_no_estimate_exceeds_what_is_known_without_counting(name: str, text: str):
    messages = (PromptMessage("user", text), *round_messages(used(text)))
    assert tokens(messages, estimator(name)) <= most_tokens(messages)  # type: ignore[arg-type]

"""The decision model: what it does not say clearly, or is not sure of, leaves nothing out."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.sifting import read_bearing, read_sifted
from bot.memory.answer import AnswerUnusable


def noise(turn: Any, kind: Any = "thanks", confidence: Any = 0.9) -> dict[str, Any]:
    return {"turn": turn, "kind": kind, "confidence": confidence}


def sifted(*items: Any, **more: Any) -> frozenset[int]:
    return read_sifted(json.dumps({"noise": list(items), **more})).noise


@pytest.mark.parametrize("kind", ["greeting", "thanks", "repeat", "failed"])
def test_each_kind_of_noise_is_left_out(kind: str):
    assert sifted(noise(2, kind)) == {2}


@pytest.mark.parametrize(
    ("confidence", "is_noise"),
    [(0.7, True), (1, True), (0.69, False), (0, False), (7, False), ("sure", False), (None, False)],
)
def test_only_what_is_said_with_confidence_is_noise(confidence: Any, is_noise: bool):
    assert sifted(noise(2, confidence=confidence)) == ({2} if is_noise else set())


def test_what_is_no_kind_of_noise_or_no_turn_is_passed_over():
    assert sifted(noise(1, "boring"), noise("x"), 7, {"turn": 3}, noise(4)) == {4}


def test_overturned_decisions_are_named_with_what_says_so():
    (one, other) = read_sifted(
        json.dumps({"overturned": [{"id": "K1", "refs": [3, "4"]}, {"refs": [1]}, {"id": "k2"}]})
    ).overturned
    assert (one.id, one.refs) == ("k1", (3, 4))
    assert (other.id, other.refs) == ("k2", ())


def test_what_bears_on_a_request_is_a_list_of_labels():
    assert read_bearing('好的 {"keep": ["P1", "c ", 7]}') == {"p1", "c"}
    assert read_bearing('{"keep": []}') == frozenset()


@pytest.mark.parametrize("text", ["", "p1", "{}", '{"keep": "p1"}', '{"keep": ["p1"'])
def test_an_answer_that_says_neither_can_not_be_used(text: str):
    with pytest.raises(AnswerUnusable):
        read_bearing(text)
    with pytest.raises(AnswerUnusable):
        read_sifted(text)


@given(st.text(max_size=60))
def test_whatever_is_answered_it_is_read_or_refused(text: str):
    for read in (read_sifted, read_bearing):
        try:
            read(text)
        except AnswerUnusable:
            continue

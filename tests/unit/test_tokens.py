"""Estimates of tokens, before a model has counted them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.tokens import estimator
from bot.text import Estimator

NAMES: tuple[Estimator, ...] = ("cjk", "chars4")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("你好", 2), ("，。「」", 4), ("ＡＢ１２", 4), ("カナかな한글", 6), ("abcd", 1)],
)
def test_each_cjk_character_is_a_token(text: str, tokens: int):
    assert estimator("cjk")(text) == tokens


def test_quarters_are_added_up_before_they_are_rounded():
    assert estimator("cjk")("a你b好c") == 3


def test_four_characters_are_a_token_whatever_they_are():
    assert estimator("chars4")("你好世界啊") == 2


@pytest.mark.parametrize("name", NAMES)
@given(text=st.text(), more=st.text())
def test_a_longer_text_never_costs_less_than_its_beginning(name: Estimator, text: str, more: str):
    assert estimator(name)(text) <= estimator(name)(text + more)


@given(text=st.text())
def test_chars4_is_a_quarter_rounded_up(text: str):
    assert estimator("chars4")(text) == math.ceil(len(text) / 4)

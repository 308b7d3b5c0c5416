"""From a model's answer to what may be sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.blocked import blocked_word, normalised
from bot.conversation.outgoing import (
    Blocked,
    Empty,
    Silent,
    Spoken,
    answer_text,
    is_silent,
    without_silent_tokens,
    without_thinking,
)


@pytest.mark.parametrize(
    ("answer", "spoken"),
    [
        ("<think>想</think>好", "好"),
        ("<THINK>想\n想</Think>\n\n好", "好"),
        ('<think type="deep">想</think>好', "好"),
        ("<thinking>想</thinking>好", "好"),
        ("一<think>想</think>二<think>想</think>三", "一二三"),
        ("好<think>想到这里断", "好"),
        ("好<think", "好"),
        ("没开头的想</think>好", "好"),
        ("一</think>二</think>好", "好"),
        ("<think>甲<think>乙</think>丙</think>好", "好"),
        ("<think/>好", "好"),
        ("<thinker> 是什么", "<thinker> 是什么"),
        ("好", "好"),
    ],
)
def test_thinking_is_removed(answer: str, spoken: str):
    assert without_thinking(answer) == spoken


@given(st.lists(st.sampled_from(["<think>", "</think>", "</thinking>", "好", " "]), max_size=12))
def test_no_thinking_tag_is_ever_sent(pieces: list[str]):
    assert "think" not in without_thinking("".join(pieces))


@pytest.mark.parametrize(
    "answer", ["<silent/>", " \n<silent/>\n", "<think>不说</think><silent/>", "`<silent/>`"]
)
def test_the_silent_token_alone_is_silence(answer: str):
    assert is_silent(answer)
    assert answer_text(answer) == Silent()


@pytest.mark.parametrize("answer", ["", "silent", "好<silent/>", "<think><silent/></think>好"])
def test_anything_else_is_no_silence(answer: str):
    assert not is_silent(answer)


def test_a_stray_silent_token_is_not_sent():
    assert answer_text("好<silent/>的") == Spoken("好的")


@pytest.mark.parametrize(
    "answer", ["<sil<silent/>ent/>好", "<**silent**/>好", "<sil\u200bent/>好", "好</silent>"]
)
def test_a_hidden_silent_token_is_not_sent_either(answer: str):
    assert answer_text(answer) == Spoken("好")


@given(st.lists(st.sampled_from(["<silent/>", "<sil", "ent/>", "<", "/", ">", "好"])))
def test_no_silent_token_survives(pieces: list[str]):
    assert "<silent/>" not in without_silent_tokens("".join(pieces))


@pytest.mark.parametrize("answer", ["", " \n", "<think>只想不说", "\u200b\x00"])
def test_an_answer_with_nothing_left_is_empty(answer: str):
    assert answer_text(answer) == Empty()


def test_cq_codes_are_letters_and_nothing_more():
    text = "好的[CQ:at,qq=all][CQ:image,file=file:///etc/passwd]"
    assert answer_text(text) == Spoken(text)


def test_markdown_is_flattened_before_it_is_sent():
    assert answer_text("## 答\n\n- **一**\n- 二") == Spoken("答\n\n· 一\n· 二")


def test_controls_and_bidi_in_an_answer_are_not_sent():
    assert answer_text("好\x00\u202e的\r\n吧\ud800") == Spoken("好的\n吧")


@pytest.mark.parametrize(
    "text",
    [
        "说BadWord了",
        "说ｂａｄｗｏｒｄ了",
        "说bad\u200bword了",
        "说b\u00adad\ufeffword了",
    ],
)
def test_a_blocked_word_is_found_however_it_is_dressed(text: str):
    assert answer_text(text, blocked_words=["坏", "badWord"]) == Blocked("badWord")


def test_a_blocked_word_parted_by_markup_is_found():
    assert answer_text("说坏**蛋**了", blocked_words=["坏蛋"]) == Blocked("坏蛋")


def test_a_blocked_word_in_the_thinking_blocks_nothing():
    assert answer_text("<think>坏</think>好", blocked_words=["坏"]) == Spoken("好")


def test_a_listed_word_is_normalised_as_well():
    assert blocked_word("badword", ["ＢＡＤ\u200bWORD"]) == "ＢＡＤ\u200bWORD"


@pytest.mark.parametrize("word", ["", " ", "\u200b"])
def test_a_blank_word_blocks_nothing(word: str):
    assert blocked_word("好 的", [word]) is None


@given(st.text())
def test_normalising_twice_changes_nothing_more(text: str):
    assert normalised(normalised(text)) == normalised(text)


@given(st.text())
def test_any_answer_has_an_outcome(raw: str):
    match answer_text(raw, blocked_words=["坏"]):
        case Spoken(text):
            assert text.strip()
            assert "坏" not in text
        case Blocked(word):
            assert word == "坏"
        case Silent() | Empty():
            pass

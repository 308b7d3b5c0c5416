"""How one answer becomes messages."""

from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.delivery import (
    FORWARD_NODES,
    GROUP_MESSAGES,
    MESSAGE_CHARS,
    PRIVATE_MESSAGES,
    Delivery,
    split_answer,
)
from bot.text import whole_characters

FAMILY = "👨\u200d👩\u200d👧"
ANSWERS = st.lists(
    st.one_of(
        st.sampled_from(
            ["\n\n", "\n", "。", "！？”", ". ", "，", " ", "   ", FAMILY, "e\u0301", "🇨🇳"]
        ),
        st.text(alphabet="一二三abc,.?", max_size=30),
    ),
    max_size=60,
).map("".join)


def squeezed(*texts: str) -> str:
    return "".join("".join(texts).split())


def test_a_short_answer_is_one_message():
    assert split_answer("你好", is_group=True, max_chars=500) == Delivery(("你好",))


def test_an_answer_of_nothing_is_no_message():
    assert split_answer(" \n ", is_group=True, max_chars=500) == Delivery(())


def test_an_answer_is_split_between_paragraphs_first():
    delivery = split_answer("一。二\n三\n\n四。五\n六", is_group=True, max_chars=8)
    assert delivery == Delivery(("一。二\n三", "四。五\n六"))


def test_without_paragraphs_it_is_split_between_lines():
    delivery = split_answer("一。二三\n四。五六七", is_group=True, max_chars=7)
    assert delivery == Delivery(("一。二三", "四。五六七"))


def test_within_a_line_it_is_split_after_a_sentence_and_its_quotation_mark():
    delivery = split_answer("他说：“好。”我说不好，走了", is_group=True, max_chars=8)
    assert delivery == Delivery(("他说：“好。”", "我说不好，走了"))


def test_a_number_and_an_address_hold_no_end_of_a_sentence():
    delivery = split_answer("it is 3.14 at a.example/x?y=1", is_group=True, max_chars=20)
    assert delivery.parts == ("it is 3.14 at", "a.example/x?y=1")


def test_where_nothing_else_helps_it_is_split_anywhere_but_inside_an_emoji():
    delivery = split_answer(FAMILY * 3, is_group=True, max_chars=12)
    assert delivery == Delivery((FAMILY * 2, FAMILY))


def test_a_short_first_paragraph_does_not_push_the_rest_over_the_limit():
    delivery = split_answer("好\n\n" + "字" * 15, is_group=True, max_chars=10)
    assert delivery.forward is None
    assert squeezed(*delivery.parts) == "好" + "字" * 15


def test_a_long_answer_in_a_group_is_one_forward_or_two_cut_messages():
    text = "\n\n".join("字" * 400 for _ in range(5))
    delivery = split_answer(text, is_group=True, max_chars=500)
    assert [len(part) for part in delivery.parts] == [400, 500]
    assert delivery.parts[-1].endswith("…")
    assert delivery.forward is not None
    assert squeezed(*delivery.forward) == "字" * 2000


def test_a_private_answer_is_three_messages_and_the_rest_is_cut():
    delivery = split_answer("字" * 5000, is_group=False, max_chars=500)
    assert [len(part) for part in delivery.parts] == [MESSAGE_CHARS] * PRIVATE_MESSAGES
    assert delivery.parts[-1].endswith("…")
    assert delivery.forward is None


def test_the_indentation_of_the_next_line_stays():
    delivery = split_answer("a = [\n    1111111,\n]", is_group=True, max_chars=16)
    assert delivery.parts == ("a = [", "    1111111,\n]")


def test_a_forward_is_bounded():
    delivery = split_answer("字" * 100_000, is_group=True, max_chars=500)
    assert delivery.forward is not None
    assert len(delivery.forward) == FORWARD_NODES
    assert delivery.forward[-1].endswith("…")


@given(ANSWERS, st.booleans(), st.integers(min_value=1, max_value=600))
def test_no_message_is_blank_or_over_its_limit(text: str, is_group: bool, max_chars: int):
    delivery = split_answer(text, is_group=is_group, max_chars=max_chars)
    assert len(delivery.parts) <= (GROUP_MESSAGES if is_group else PRIVATE_MESSAGES)
    assert all(
        part.strip() and len(part) <= (max_chars if is_group else MESSAGE_CHARS)
        for part in delivery.parts
    )
    assert all(node.strip() and len(node) <= MESSAGE_CHARS for node in delivery.forward or ())


@given(ANSWERS, st.booleans(), st.integers(min_value=1, max_value=600))
def test_nothing_is_lost_but_space_around_the_splits(text: str, is_group: bool, max_chars: int):
    delivery = split_answer(text, is_group=is_group, max_chars=max_chars)
    complete = delivery.parts if delivery.forward is None else delivery.forward
    assert squeezed(*complete) == squeezed(text)


@given(ANSWERS, st.integers(min_value=10, max_value=600))
def test_no_message_begins_inside_a_character(text: str, max_chars: int):
    delivery = split_answer(text, is_group=True, max_chars=max_chars)
    at = 0
    for part in delivery.parts if delivery.forward is None else delivery.forward:
        at = text.index(part, at)
        assert whole_characters(text, at) == at
        at += len(part)

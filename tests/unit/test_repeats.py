"""Whether an answer repeats any of some texts, however many there are."""

from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.repeats import QUOTED_CHARS, Repeats

texts = st.text("湖边路abc", max_size=8)


@given(st.lists(texts, max_size=8), st.text("湖边路abc", max_size=30))
def test_it_is_what_looking_for_each_of_them_would_say(wanted: list[str], told: str):
    found = any(len(text) >= QUOTED_CHARS and text in told for text in wanted)
    assert Repeats(wanted).stands_in(told) == found


def test_short_texts_are_no_quotation():
    assert not Repeats(["好的", "嗯嗯嗯", ""])
    assert Repeats(["好的好的"])

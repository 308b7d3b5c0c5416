"""Whom a text names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.naming import Names, as_saying

MEMBERS = {
    "30001": ["小鱼"],
    "30002": ["小鱼", "阿明"],
    "30003": ["小鱼干", "Tom", "Ａnna"],
    "30004": ["大家", "42", "。。", "鱼", ""],
    "30005": ["很长的名字" * 10],
    "10001": ["群忆"],
}


def named(text: str) -> list[list[str]]:
    return [sorted(who) for who in Names(MEMBERS, frozenset({"10001"})).named_in(text)]


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("小鱼要来", [["30001", "30002"]]),
        ("阿明和TOM要来", [["30002"], ["30003"]]),
        ("anna 要来，tom 不来", [["30003"]]),
        ("30001 要来", [["30001"]]),
        ("小鱼干要来", [["30003"]]),
        ("小鱼和小鱼干，小鱼又来", [["30001", "30002"], ["30003"]]),
        ("名叫" + "很长的名字" * 10, [["30005"]]),
    ],
)
def test_ids_and_names_of_any_writing_are_found(text: str, who: list[list[str]]):
    assert named(text) == who


@pytest.mark.parametrize(
    "text", ["大家 42。。鱼", "tomorrow", "atom", "130001", "300012", "群忆说了", "", "小"]
)
def test_what_is_no_name_of_its_own_names_nobody(text: str):
    assert named(text) == []


def test_a_saying_has_a_speaker_and_words():
    assert as_saying("30002 说：小鱼要走") == ("30002", "小鱼要走")
    assert as_saying("阿明（30002）说:小鱼要走") == ("30002", "小鱼要走")
    assert as_saying("阿明说：小鱼要走") == ("阿明", "小鱼要走")
    assert as_saying("30002 说小鱼要走") is None
    assert as_saying("听30002 说：") is None


@given(st.text(max_size=20), st.sampled_from(["小鱼", "阿明", "小鱼干"]), st.text(max_size=20))
def test_a_chinese_name_is_found_in_any_surroundings(before: str, name: str, after: str):
    assert named(f"{before}{name}{after}")


@given(st.dictionaries(st.text(max_size=4), st.lists(st.text(max_size=4))), st.text())
def test_any_names_and_texts_can_be_looked_at(names: dict[str, list[str]], text: str):
    known = {user_id for who in Names(names).named_in(text) for user_id in who}
    assert known <= names.keys()

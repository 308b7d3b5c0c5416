"""What somebody types behind 搜, and how what is found is shown."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.commands.call import Refusal
from bot.commands.search import SHOWN_CHARS, Wanted, excerpt, read_search
from bot.text import single_line

TODAY = date(2026, 8, 20)


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("花生", Wanted(("花生",))),
        ("花生 过敏", Wanted(("花生", "过敏"))),
        ('"花 生" “过 敏”', Wanted(("花 生", "过 敏"))),
        ("花生 30001", Wanted(("花生",), ("30001",))),
        ("花生 30002", Wanted(("花生", "30002"))),
        ("花生 @小鱼", Wanted(("花生",), ("小鱼",))),
        ('花生 @"Big Bear" @“小 鱼”', Wanted(("花生",), ("Big Bear", "小 鱼"))),
        ("@ 花生", Wanted(("@", "花生"))),
        ('"@" "页" "自"', Wanted(("@", "页", "自"))),
        ("花生 自 2026-08-01", Wanted(("花生",), since=date(2026, 8, 1))),
        ("从 8月1日 到 8月3号 花生", Wanted(("花生",), (), date(2026, 8, 1), date(2026, 8, 3))),
        ("花生 自 ２０２６/8/1", Wanted(("花生",), since=date(2026, 8, 1))),
        ("花生 至 12月31日", Wanted(("花生",), until=date(2025, 12, 31))),
        ("花生 页 3", Wanted(("花生",), page=3)),
        ("自己 花生", Wanted(("自己", "花生"))),
        ("OR NOT *", Wanted(("OR", "NOT", "*"))),
    ],
)
def test_words_people_days_and_pages_are_told_apart(typed: str, wanted: Wanted):
    assert read_search(typed, ("30001",), TODAY) == wanted


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "  ",
        "30001",
        "自 2026-08-01",
        "花生 自",
        "花生 自 昨天",
        "花生 页",
        "花生 页 二",
        "花生 页 -1",
    ],
)
def test_who_looks_for_nothing_is_told_how(typed: str):
    with pytest.raises(Refusal, match="用法"):
        read_search(typed, ("30001",), TODAY)


def test_who_names_no_word_is_told_that_one_is_missing():
    for typed in ("30001", "自 2026-08-01"):
        with pytest.raises(Refusal, match="还要写上要找的词"):
            read_search(typed, ("30001",), TODAY)


def test_a_day_that_does_not_exist_is_named():
    with pytest.raises(Refusal, match="2026-02-30"):
        read_search("花生 自 2026-02-30", (), TODAY)


@given(
    st.text(max_size=30), st.sampled_from(["", " 自 2026-08-01", " 至 8月3日 @小鱼", ' @"小 鱼"'])
)
def test_what_is_looked_for_can_be_typed_again(words: str, bounds: str):
    try:
        wanted = read_search(words + bounds, (), TODAY)
    except Refusal:
        return
    if any('"' in word or "”" in word for word in wanted.keywords):
        return
    again = read_search(f"{wanted} 页 {wanted.page}", (), TODAY)
    assert [word.split() for word in again.keywords] == [word.split() for word in _visible(wanted)]
    assert [who.split() for who in again.people] == [who.split() for who in wanted.people]
    assert (again.since, again.until, again.page) == (wanted.since, wanted.until, wanted.page)


def _visible(wanted: Wanted) -> list[str]:
    return [line for word in wanted.keywords if (line := single_line(word))]


def test_a_long_text_is_shown_around_what_was_looked_for():
    text = "前" * 200 + "花生" + "后" * 200
    shown = excerpt(text, ["没有", "花生"])
    assert "花生" in shown
    assert shown.startswith("…前")
    assert shown.endswith("后…")
    assert len(shown) <= SHOWN_CHARS + 2


def test_a_text_is_one_line():
    assert excerpt("第一行\n第二行\u202e", ["行"]) == "第一行 第二行"


@given(st.text(), st.lists(st.text(max_size=4), max_size=3))
def test_no_excerpt_is_long(text: str, keywords: list[str]):
    assert len(excerpt(text, keywords)) <= SHOWN_CHARS + 2

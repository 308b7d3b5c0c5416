"""Days of evidence, and what relative words meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.dates import completed, day_of
from tests.unit.batches import said

SATURDAY = "2026-08-22"


def complete(text: str, day: str = SATURDAY, max_chars: int = 300) -> str:
    return completed(text, [said(1, "30001", text, day=day)], max_chars)


@pytest.mark.parametrize(
    ("word", "day"),
    [
        ("今天", "2026-08-22"),
        ("今晚", "2026-08-22"),
        ("今早", "2026-08-22"),
        ("昨天", "2026-08-21"),
        ("昨晚", "2026-08-21"),
        ("前天", "2026-08-20"),
        ("明天", "2026-08-23"),
        ("明早", "2026-08-23"),
        ("明晚", "2026-08-23"),
        ("后天", "2026-08-24"),
        ("大后天", "2026-08-25"),
        ("上周五", "2026-08-14"),
        ("本周五", "2026-08-21"),
        ("这周日", "2026-08-23"),
        ("下周一", "2026-08-24"),
        ("下周天", "2026-08-30"),
        ("周五", "2026-08-28"),
        ("周六", "2026-08-22"),
    ],
)
def test_a_relative_word_gets_the_date_it_means(word: str, day: str):
    assert complete(f"{word}下午三点开会") == f"{word}({day})下午三点开会"


@pytest.mark.parametrize(
    "text",
    [
        "大前天聚餐",
        "大大后天聚餐",
        "上上周五聚餐",
        "下下周五聚餐",
        "下个周五聚餐",
        "每周五例会",
        "一周五次",
        "这周三次迟到",
        "这周一直下雨",
        "周一三五健身",
        "周一到周五上班",
        "周六日休息",
        "本周日程",
        "以后天天打卡",
        "然后天黑了",
        "目前天气很好",
        "证明天才也要努力",
        "后天性过敏",
        "2026-08-24 开会",
    ],
)
def test_what_only_looks_like_a_day_is_left_alone(text: str):
    assert complete(text) == text


def test_a_weekday_with_an_hour_is_a_day():
    assert complete("周五六点开会") == "周五(2026-08-28)六点开会"
    assert complete("周二十点半开会") == "周二(2026-08-25)十点半开会"


def test_a_week_begins_on_monday():
    assert complete("本周一开会", day="2026-08-23") == "本周一(2026-08-17)开会"
    assert complete("下周一开会", day="2026-08-23") == "下周一(2026-08-24)开会"


def test_a_completed_word_is_left_alone():
    text = "明天(2026-08-23)开会，明天见；后天（8月24日）休息"
    assert complete(text) == text


def test_each_word_is_completed_once():
    assert complete("明天开会，明天见，后天休息") == (
        "明天(2026-08-23)开会，明天见，后天(2026-08-24)休息"
    )


def test_a_word_counts_from_the_message_that_says_it():
    messages = [
        said(1, "30001", "大家有空吗", day="2026-08-20"),
        said(2, "30002", "大后天不行，后天可以", day="2026-08-22"),
    ]
    assert completed("后天聚餐", messages, 300) == "后天(2026-08-24)聚餐"
    assert completed("明天聚餐", messages, 300) == "明天(2026-08-21)聚餐"


def test_a_bare_weekday_means_the_week_that_was_said():
    messages = [said(1, "30001", "下周五聚餐", day="2026-08-17")]
    assert completed("周五聚餐", messages, 300) == "周五(2026-08-28)聚餐"


def test_what_somebody_forwarded_says_no_day():
    messages = [
        said(1, "30001", "[合并转发] 明天见", day="2026-08-10", statement="看这个"),
        said(2, "30001", "明天见", day="2026-08-22"),
    ]
    assert completed("明天见", messages, 300) == "明天(2026-08-23)见"


def test_a_date_never_makes_a_text_too_long():
    assert complete("明天见，后天见", max_chars=20) == "明天(2026-08-23)见，后天见"
    assert complete("明天见", max_chars=3) == "明天见"


def test_the_end_of_the_calendar_has_no_tomorrow():
    assert complete("明天见", day="9999-12-31") == "明天见"


def test_an_items_day_is_one_on_which_its_evidence_was_said():
    messages = [said(1, "30001", "a", day="2026-08-21"), said(2, "30001", "b", day="2026-08-22")]
    assert day_of("2026-08-22", messages) == "2026-08-22"
    assert day_of("2026-08-23", messages) == "2026-08-21"
    assert day_of("", messages) == "2026-08-21"


WORDS = [
    "今天",
    "明晚",
    "大后天",
    "前天",
    "上周五",
    "周日",
    "周一到",
    "(2026-08-23)",
    "开会",
    "，",
    "天",
]


@given(st.lists(st.sampled_from(WORDS), max_size=12).map("".join), st.integers(0, 120))
def test_completing_twice_is_completing_once_and_loses_nothing(text: str, max_chars: int):
    once = complete(text, max_chars=max_chars)
    assert complete(once, max_chars=max_chars) == once
    assert len(once) <= max(max_chars, len(text))
    kept = iter(once)
    assert all(character in kept for character in text)

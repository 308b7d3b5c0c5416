"""What a question asks of a chat: words by the dictionary, and the days that it names."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.search.asking import Phrase, asked, days_between
from bot.search.segment import cut

YEARS = range(2025, 2027)


def _phrases(question: str) -> list[str]:
    return [phrase.text for phrase in asked(question, YEARS, cut).phrases]


def _days(question: str) -> list[str]:
    return list(asked(question, YEARS, cut).days)


@pytest.mark.parametrize(
    ("question", "phrases"),
    [
        ("我们的项目什么时候上线？", ["项目", "上线"]),
        ("谁对花生过敏", ["花生", "过敏"]),
        ("北京大学", ["北京", "大学", "北京大学"]),
        ("ＧＰＴ群的猫", ["gpt", "群", "猫"]),
        ("what is the PYTHON version", ["python", "version"]),
        ("在吗", []),
        ("", []),
    ],
)
def test_a_question_is_its_words(question: str, phrases: list[str]):
    assert _phrases(question) == phrases


def test_what_the_dictionary_does_not_know_is_looked_up_in_twos():
    assert list(cut("燚垚淼")) == ["燚", "垚", "淼", "燚垚", "垚淼"]
    assert list(cut("鱼的猫狗")) == ["鱼", "的", "猫", "狗", "猫狗"]


def test_letters_are_words_and_characters_are_not():
    assert asked("GPT 群", YEARS, cut).phrases == (Phrase("gpt", True), Phrase("群", False))


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("2026年8月20日说了什么", ["2026-08-20"]),
        ("2026-08-20 的事", ["2026-08-20"]),
        ("２０２６/8/2", ["2026-08-02"]),
        ("8月20号", ["2025-08-20", "2026-08-20"]),
        ("8 月 20 日和9月1日", ["2025-08-20", "2026-08-20", "2025-09-01", "2026-09-01"]),
        ("2月29日", []),
        ("2024年2月29日", ["2024-02-29"]),
        ("8月的团建", ["2025-08", "2026-08"]),
        ("2026年8月", ["2026-08"]),
        ("18月20日", []),
        ("13月", []),
        ("0000年1月1日", []),
        ("三点见", []),
    ],
)
def test_days_are_read_and_those_without_a_year_may_be_of_any(question: str, days: list[str]):
    assert _days(question) == days


def test_a_day_is_no_word_of_the_question():
    assert _phrases("8月20日的羽毛球") == ["羽毛", "羽毛球"]


@given(st.text())
def test_any_text_is_a_question(text: str):
    found = asked(text, YEARS, cut)
    assert all(phrase.text for phrase in found.phrases)


@given(st.dates(), st.dates())
def test_days_months_and_years_cover_a_stretch_of_time_and_no_more(one: date, other: date):
    first, last = sorted((one, other))
    covering = set(days_between(first, last))
    for day in (first, last, first + (last - first) / 2):
        assert len({day.isoformat()[:length] for length in (4, 7, 10)} & covering) == 1
    for around in (first.toordinal() - 1, last.toordinal() + 1):
        if 0 < around <= date.max.toordinal():
            beside = date.fromordinal(around).isoformat()
            assert not {beside[:length] for length in (4, 7, 10)} & covering


def test_whole_months_and_years_are_told_as_such():
    assert days_between(date(2026, 8, 31), date(2026, 9, 1)) == ["2026-08-31", "2026-09-01"]
    assert days_between(date(2025, 12, 1), date(2026, 2, 1)) == ["2025-12", "2026-01", "2026-02-01"]
    assert days_between(date(2023, 12, 31), date(2026, 1, 31)) == [
        *("2023-12-31", "2024", "2025", "2026-01")
    ]

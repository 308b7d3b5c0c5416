"""What is told of a question by its words alone."""

import pytest

from bot.search.wanted import has_number, is_asking, wanted


@pytest.mark.parametrize(
    ("question", "is_of_self"),
    [
        ("我喜欢喝什么？", True),
        ("我妈的生日是哪天", True),
        ("what is my size", True),
        ("我们群什么时候聚餐", False),
        ("小鱼喜欢喝什么", False),
        ("自我介绍写了吗", False),
        ("我想知道小鱼喜欢喝什么", False),
        ("我要问小鱼喜欢喝什么", False),
        ("帮我查一下小鱼的生日", False),
        ("小鱼的生日我忘了，告诉我", False),
        ("我不记得小鱼住哪", False),
        ("can you tell me where Fish lives", False),
        ("I wonder where Fish lives", False),
        ("帮我查一下我的生日", True),
        ("我想知道我妈的生日", True),
        ("谁帮我修过车", True),
        ("我想要什么礼物来着", True),
        ("我问过谁借车", True),
        ("tell me my size", True),
    ],
)
def test_a_question_about_oneself_is_told_from_others(question: str, is_of_self: bool):
    assert wanted(question, ()).is_of_self is is_of_self


@pytest.mark.parametrize("question", ["一共多少钱", "哪天交", "几点集合", "多久跑一次", "how many"])
def test_amounts_and_moments_are_numbers(question: str):
    assert wanted(question, ()).wants_number


def test_who_asks_for_a_reason_wants_no_number():
    assert not wanted("为什么不去", ()).wants_number


@pytest.mark.parametrize(
    ("question", "lean"),
    [
        ("现在的阈值", "late"),
        ("最后改在哪儿吃", "late"),
        ("最早用的哪个模型", "early"),
        ("从最初的一点五改成了多少", ""),
        ("谁做的", ""),
    ],
)
def test_a_question_may_lean_to_how_things_stand_or_to_how_they_began(question: str, lean: str):
    assert wanted(question, ()).lean == lean


def test_speakers_are_named_by_any_name_that_stands_in_the_question():
    speakers = [("30001", "小鱼"), ("30002", "大熊"), ("30003", "")]
    assert wanted("大熊说几点？", speakers).named == {"30002"}


@pytest.mark.parametrize("text", ["42 公里", "花了三百八十块", "三十八度七", "六月十三号"])
def test_a_text_that_counts_or_dates_has_a_number(text: str):
    assert has_number(text)


@pytest.mark.parametrize("text", ["一起去吧", "万一下雨", "十分感谢"])
def test_a_text_that_does_neither_has_none(text: str):
    assert not has_number(text)


def test_asking_is_told_from_telling():
    assert is_asking("几点集合？")
    assert is_asking("去不去呢 ")
    assert not is_asking("七点半集合。")

"""The daily document: one heading per day, newest day last."""

from hypothesis import given
from hypothesis import strategies as st

from bot.memory.daily import normalised_daily, rendered_daily
from tests.unit.batches import entry


def test_days_come_in_order_and_no_heading_is_repeated():
    entries = [
        entry(1, "发生了第一件事", "daily", date="2026-08-20"),
        entry(2, "后来的事", "daily", date="2026-08-22"),
        entry(3, "发生了第二件事", "daily", date="2026-08-20"),
    ]
    assert rendered_daily(entries) == (
        "## 2026-08-20\n- 发生了第一件事\n- 发生了第二件事\n\n## 2026-08-22\n- 后来的事"
    )


def test_nothing_is_rendered_of_nothing():
    assert rendered_daily([]) == ""


def test_a_document_with_a_heading_for_each_entry_is_normalised():
    old = "## 2026-08-22\r\n- 丙\r\n\r\n# 2026/8/20\n* 甲\n## 2026年8月20日\n- 乙\n没有圆点的一行\n"
    assert normalised_daily(old) == (
        "## 2026-08-20\n- 甲\n- 乙\n- 没有圆点的一行\n\n## 2026-08-22\n- 丙"
    )


def test_lines_before_the_first_heading_stay():
    assert normalised_daily("- 早\n## 2026-08-20\n- 甲") == (
        "## 未注明日期\n- 早\n\n## 2026-08-20\n- 甲"
    )


LINES = st.sampled_from(["## 2026-08-20", "## 2026-08-21", "- 甲", "- - 乙", "丙", "", "#丁", "-"])


@given(st.lists(LINES | st.text(max_size=8), max_size=12).map("\n".join))
def test_normalising_twice_is_normalising_once(text: str):
    once = normalised_daily(text)
    assert normalised_daily(once) == once
    headings = [line for line in once.split("\n") if line.startswith("## ")]
    assert len(headings) == len(set(headings))

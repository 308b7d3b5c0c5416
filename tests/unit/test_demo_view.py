"""The demo's view: nobody's words are markup, and nothing is wider than the terminal."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from bot.demo.happenings import (
    Compressed,
    Forgotten,
    Happening,
    PackShown,
    Proof,
    PutOff,
    Recalled,
    Reflected,
    Refused,
    Remembered,
    Renamed,
    Said,
    Sent,
    SnapshotMade,
    WeekEnded,
)
from bot.demo.page import page_of
from bot.demo.paragraph import NOT_FIRST, Paragraph
from bot.demo.view import View
from bot.model import Chat, Scope

AT = 1_787_371_200_000
GROUP = Chat("10001", "group", "20001")
PRIVATE = Chat("10001", "private", "30001")
SCOPE = Scope("10001", "member", "30001")
HOSTILE = "[red]不是标记[/red]\x1b[31m\u202e 换行\n第二行 https://example.invalid " + "长" * 90


def every_happening(text: str) -> list[Happening]:
    proof = Proof("30001", text, AT, text, GROUP)
    entry = Remembered(SCOPE, GROUP, "0001", "daily", "2026-08-17", text, (proof,))
    return [
        Said(AT, GROUP, 30001, text, text, text),
        Sent(AT, PRIVATE, text),
        Recalled(AT, GROUP, 30001, 30002, text, (text,)),
        Forgotten(AT, GROUP, 30001, (text,)),
        Renamed(AT, 30001, text, text),
        Reflected(
            *(AT, "group", GROUP, "idle", 3, (entry,), (entry,), (entry,), ((SCOPE, text),)),
            (Refused("daily[0]", "依据不足", text),),
        ),
        Reflected(AT, "member-batch", GROUP, "count", 50, (), (), (), (), ()),
        Compressed(AT, SCOPE, (entry, entry), (entry,)),
        PutOff(AT, "compress", "group", text, AT),
        SnapshotMade(AT, GROUP, SCOPE, text),
        PackShown(AT, GROUP, text),
        WeekEnded(AT, (entry,), ((SCOPE, GROUP, text),), 300, 40),
    ]


def shown(text: str, width: int | None = None, *, is_recorded: bool = True) -> str:
    """Return what a terminal of some width shows, or a file if it has none."""
    output = io.StringIO()
    console = Console(
        file=output,
        width=width or 80,
        force_terminal=width is not None,
        highlight=False,
        markup=False,
        emoji=False,
        color_system=None,
    )
    view = View(page_of(console), is_recorded=is_recorded)
    view.open(5, 300)
    for happening in every_happening(text):
        view.show(happening)
    view.close()
    return output.getvalue()


def lines_of(text: str, width: int, hang: int = 2) -> list[str]:
    return [line.plain for line in Paragraph(Text(text), hang).lines(width)]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int):
    assert max(cell_len(line) for line in shown(HOSTILE, width).splitlines()) <= width


def test_words_of_people_are_shown_as_they_are_and_command_no_terminal():
    everything = shown(HOSTILE)
    assert "[red]不是标记[/red]" in everything
    assert "\x1b" not in everything
    assert "\u202e" not in everything
    assert "\n第二行" not in everything


def test_it_says_plainly_whose_the_answers_are():
    assert shown("好", 120).count("模型的回答是录制的") == 2
    live = shown("好", 120, is_recorded=False)
    assert "录制" not in live
    assert live.count("回答来自你配置的模型") == 2


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_title_of_a_box_is_cut(width: int):
    everything = "".join(shown("好", width).replace("│", "").split())
    assert "…" not in everything
    for title in ("攒够了条数count", "安静了一阵idle", "拒绝1项", "里的提示词"):
        assert title in everything


def test_in_a_file_everything_is_plain_lines():
    everything = shown("好的，明天 B 口见。" * 12)
    assert not set(everything) & set("╭╮╰╯│─")
    assert all(line == line.rstrip() for line in everything.splitlines())
    assert max(map(cell_len, everything.splitlines())) > 200


def test_a_date_that_a_text_begins_with_does_not_run_into_that_of_its_entry():
    everything = shown("2026-08-16 的事")
    assert "2026-08-17 · 2026-08-16 的事" in everything
    assert "2026-08-17 2026-08-16" not in everything


def test_a_line_of_chinese_is_full_whatever_spaces_are_in_it():
    text = "← 08-17 12:05 小鱼(30001)：周六去青崖山，早上八点青崖站 B 口集合"
    assert lines_of(text, 42, 6) == [
        "← 08-17 12:05 小鱼(30001)：周六去青崖山，",
        "      早上八点青崖站 B 口集合",
    ]


def test_words_and_dates_are_not_broken():
    assert lines_of("改到 2026-08-23 去 mountain 走走", 12, 2) == [
        "改到",
        "  2026-08-23",
        "  去",
        "  mountain",
        "  走走",
    ]


WRITTEN = st.text(st.sampled_from("长短字，。（）「」…ab1 -～"), max_size=80)


@given(WRITTEN, st.integers(12, 60), st.integers(0, 8))
def test_a_broken_paragraph_says_the_same_and_fits(text: str, width: int, hang: int):
    lines = lines_of(text, width, hang)
    assert all(cell_len(line) <= width for line in lines)
    assert all(line.startswith(" " * min(hang, width // 2)) for line in lines[1:])
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_no_line_begins_with_a_sign_that_ends_a_clause():
    text = "车一辆，相机一台，饭团十个，水十瓶，还差什么？（想好了吗）"
    for width in range(8, 40):
        assert not any(line.lstrip()[0] in NOT_FIRST for line in lines_of(text, width)), width


def test_a_line_break_in_what_somebody_said_is_seen_as_one():
    assert "第一行 ⏎ 第二行" in shown("第一行\n第二行")

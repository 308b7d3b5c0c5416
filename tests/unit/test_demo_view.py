"""The demo's view: nobody's words are markup, and nothing is wider than the terminal."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from bot.demo.happenings import (
    Compressed,
    Happening,
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
        Renamed(AT, 30001, text, text),
        Reflected(
            *(AT, "group", GROUP, "idle", 3, (entry,), (entry,), (entry,), ((SCOPE, text),)),
            (Refused("daily[0]", "依据不足", text),),
        ),
        Reflected(AT, "member-batch", GROUP, "count", 50, (), (), (), (), ()),
        Compressed(AT, SCOPE, (entry, entry), (entry,)),
        PutOff(AT, "compress", "group", text, AT),
        SnapshotMade(AT, GROUP, SCOPE, text),
        WeekEnded(AT, (entry,), ((SCOPE, GROUP, text),), 300, 40),
    ]


def shown(width: int, text: str, *, is_recorded: bool = True) -> str:
    output = io.StringIO()
    console = Console(
        file=output, width=width, highlight=False, markup=False, emoji=False, color_system=None
    )
    view = View(console, is_recorded=is_recorded)
    view.open(5, 300)
    for happening in every_happening(text):
        view.show(happening)
    view.close()
    return output.getvalue()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int):
    assert max(cell_len(line) for line in shown(width, HOSTILE).splitlines()) <= width


def test_words_of_people_are_shown_as_they_are_and_command_no_terminal():
    everything = shown(400, HOSTILE)
    assert "[red]不是标记[/red]" in everything
    assert "\x1b" not in everything
    assert "\u202e" not in everything
    assert "\n第二行" not in everything


def test_it_says_plainly_whose_the_answers_are():
    assert shown(120, "好").count("模型的回答是录制的") == 2
    live = shown(120, "好", is_recorded=False)
    assert "录制" not in live
    assert live.count("回答来自你配置的模型") == 2

"""How entries are named in commands."""

import pytest

from bot.commands.references import Reference, read_reference
from bot.model import entry_label, entry_number


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("#00a2", Reference(322, "", "", "")),
        ("00A2", Reference(322, "", "", "")),
        ("＃００ａ２", Reference(322, "", "", "")),
        ("  #00a2  ", Reference(322, "", "", "")),
        ("群#00a2", Reference(322, "群", "", "")),
        ("群 #00a2", Reference(322, "群", "", "")),
        ("群20001#00a2", Reference(322, "群", "20001", "")),
        ("群 20001 #00a2", Reference(322, "群", "20001", "")),
        ("成员 30001 #00a2 取消", Reference(322, "成员", "30001", "取消")),
        ("我#00a2", Reference(322, "我", "", "")),
        ("#00a2 取消", Reference(322, "", "", "取消")),
    ],
)
def test_an_entry_is_named_in_any_of_these_ways(typed: str, meant: Reference):
    assert read_reference(typed) == meant


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "#",
        "群",
        "群 20001",
        "我不吃香菜",
        "#00a2 a b",
        "#0i01",
        "##00a2",
        "他#00a2",
        "#" + "z" * 13,
    ],
)
def test_these_name_none(typed: str):
    assert read_reference(typed) is None


def test_the_longest_label_is_a_number_that_the_database_can_hold():
    found = read_reference("#" + "z" * 12)
    assert found is not None
    assert found.number < 2**63
    assert entry_number(entry_label(found.number)) == found.number

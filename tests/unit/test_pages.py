"""Long answers to commands: page by page nothing is lost, cut or said twice."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.command import ANSWER_CHARS
from bot.commands.call import Refusal
from bot.commands.pages import PAGE_CHARS, Item, paged
from bot.conversation.delivery import split_answer

LONGEST = 620
"""A summary with its word before it."""

HEADINGS = st.sampled_from(
    [(), ("〔甲〕",), ("〔甲〕", "档案："), ("〔乙〕", "档案："), ("档案：",)]
)
LENGTHS = st.integers(1, LONGEST)
LISTS = st.lists(st.tuples(LENGTHS, HEADINGS), max_size=40)
HOW = "/我的记忆"


def items_of(shape: list[tuple[int, tuple[str, ...]]]) -> list[Item]:
    return [
        Item(f"#{number:04}话".ljust(length, "话"), headings)
        for number, (length, headings) in enumerate(shape)
    ]


def all_pages(items: list[Item]) -> list[str]:
    """Follow what each page says of the next."""
    pages = [paged(items, 1, HOW)]
    while more := re.search(rf"{HOW} (\d+) 接着看", pages[-1]):
        pages.append(paged(items, int(more[1]), HOW))
    with pytest.raises(Refusal, match=rf"只有 {len(pages)} 页"):
        paged(items, len(pages) + 1, HOW)
    return pages


@given(LISTS)
def test_whoever_reads_all_pages_has_read_every_line_once_and_whole(
    shape: list[tuple[int, tuple[str, ...]]],
):
    items = items_of(shape)
    lines = [line for page in all_pages(items) for line in page.split("\n")]
    assert [line for line in lines if line.startswith("#")] == [item.text for item in items]


@given(LISTS)
def test_a_page_is_sent_whole_and_cut_between_lines(shape: list[tuple[int, tuple[str, ...]]]):
    items = items_of(shape)
    for page in all_pages(items):
        parts = split_answer(page, is_group=False, max_chars=ANSWER_CHARS).parts
        assert "\n".join(parts) == page


@given(LISTS)
def test_each_page_says_how_many_are_left(shape: list[tuple[int, tuple[str, ...]]]):
    left = len(shape)
    for page in all_pages(items_of(shape)):
        left -= sum(line.startswith("#") for line in page.split("\n"))
        assert (f"后面还有 {left} 条" in page) == (left > 0)
        assert (f"{left} more" in page) == (left > 0)


def test_a_short_list_says_nothing_of_pages():
    assert paged([Item("一条")], 1, HOW) == "一条"


def test_headings_stand_again_on_the_next_page():
    long = "话" * (PAGE_CHARS // 2)
    items = [
        Item(long, ("〔甲〕", "档案：")),
        Item(long, ("〔甲〕", "档案：")),
        Item("b", ("〔甲〕",)),
    ]
    assert [page.split("\n")[:2] for page in all_pages(items)] == [["〔甲〕", "档案："]] * 2

"""Long answers to commands, page by page, each line whole."""

from collections.abc import Iterable
from dataclasses import dataclass

from bot.commands.call import Refusal

PAGE_CHARS = 2_400
"""So much of a list is one page: its lines are short enough that three messages hold it, however it
falls."""


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a list."""

    text: str
    headings: tuple[str, ...] = ()
    """What it stands under, the outermost first; repeated on every page that it goes on to."""


def paged(items: Iterable[Item], number: int, how: str, most_items: int | None = None) -> str:
    """Return one page of a list, and what is left of it.

    Args:
        items: the list.
        number: which page, from 1.
        how: the command that shows a page, without the page's number.
        most_items: so many are on one page, however short they are; any number by default.

    Raises:
        Refusal: there is no such page.
    """
    pages = _pages(items, most_items)
    if not 1 <= number <= len(pages):
        raise Refusal(f"只有 {len(pages)} 页。(pages: {len(pages)})")
    lines = _lines(pages[number - 1])
    if len(pages) == 1:
        return "\n".join(lines)
    left = sum(map(len, pages[number:]))
    return "\n".join((*lines, _footer(number, len(pages), left, how)))


def _footer(number: int, count: int, left: int, how: str) -> str:
    if not left:
        return f"（第 {number}/{count} 页，完。page {number} of {count}, the last）"
    return (
        f"（第 {number}/{count} 页，后面还有 {left} 条，发送 {how} {number + 1} 接着看。"
        f"page {number} of {count}, {left} more: {how} {number + 1}）"
    )


def _pages(items: Iterable[Item], most_items: int | None) -> list[list[Item]]:
    """Return the items by page; there is always one."""
    pages: list[list[Item]] = [[]]
    for item in items:
        grown = [*pages[-1], item]
        is_long = sum(len(line) + 1 for line in _lines(grown)) > PAGE_CHARS
        if pages[-1] and (is_long or len(pages[-1]) == most_items):
            pages.append([item])
        else:
            pages[-1] = grown
    return pages


def _lines(items: Iterable[Item]) -> list[str]:
    lines: list[str] = []
    above: tuple[str, ...] = ()
    for item in items:
        same = 0
        while same < min(len(above), len(item.headings)) and above[same] == item.headings[same]:
            same += 1
        lines += [*item.headings[same:], item.text]
        above = item.headings
    return lines

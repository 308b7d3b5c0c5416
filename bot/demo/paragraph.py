"""Paragraphs: text of Chinese and Latin, broken where a reader of either expects it.

Rich breaks lines at spaces alone. Chinese has none to speak of, so a line would end at the only
number in it, half empty, and what follows would look like a line of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from bot.text import whole_characters

NOT_FIRST = frozenset("，。、；：？！…—～·）」』】〕》”’％,.;:?!)]}%")
"""What no line begins with."""
NOT_LAST = frozenset("（「『【〔《“‘([{#@←")
"""What no line ends with."""

LEAST_CELLS = 2
"""The widest character: a line has room for one, however narrow the terminal."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A line that is continued further right where it does not fit; Rich can print it."""

    text: Text
    """Without line breaks."""
    hang: int = 2
    """So many cells before each line but the first."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.lines(options.max_width)

    def lines(self, width: int) -> Iterator[Text]:
        """Yield the lines, none wider than ``width`` cells."""
        hang = min(self.hang, width // 2)
        first, *rest = self.text.divide(_breaks(self.text.plain, width, hang))
        for indent, line in ((0, first), *((hang, line) for line in rest)):
            line.rstrip()
            yield Text(" " * indent).append_text(line)


def _breaks(text: str, width: int, hang: int) -> list[int]:
    """Return at which characters new lines begin."""
    breaks: list[int] = []
    room, used, at = width, 0, 0
    for piece in _pieces(text, max(LEAST_CELLS, width - hang)):
        if used and used + cell_len(piece.rstrip()) > room:
            breaks.append(at)
            room, used = width - hang, 0
        used += cell_len(piece)
        at += len(piece)
    return breaks


def _pieces(text: str, most: int) -> Iterator[str]:
    """Yield the text in pieces of at most ``most`` visible cells, not to be broken themselves."""
    start = 0
    for at in range(1, len(text) + 1):
        if at < len(text) and not _may_break(text, at):
            continue
        piece, start = text[start:at], at
        yield from [piece] if cell_len(piece.rstrip()) <= most else chop_cells(piece, most)


def _may_break(text: str, at: int) -> bool:
    before, after = text[at - 1], text[at]
    if after.isspace() or after in NOT_FIRST or before in NOT_LAST:
        return False
    if before.isspace():
        return not text[:at].isspace()
    is_either_wide = LEAST_CELLS in (cell_len(before), cell_len(after))
    return is_either_wide and whole_characters(text, at) == at

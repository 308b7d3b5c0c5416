"""Pages: where the view writes to, a terminal or plain lines where there is none."""

from collections.abc import Sequence
from typing import Protocol

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from bot.demo.paragraph import Paragraph

INSET = 6
"""Blocks stand so far right, beside the clock of the chat's lines."""
NARROW_COLUMNS = 60
"""A terminal that is narrower has no cells to spare for that."""
FRAME_CELLS = 6
"""What a box takes of the line that its title stands in."""

BETWEEN = " · "


class Page(Protocol):
    """Takes what there is to read, top to bottom."""

    def rule(self, title: str) -> None:
        """Begin a part."""
        ...

    def paragraph(self, paragraph: Paragraph) -> None:
        """Write one paragraph."""
        ...

    def block(
        self, title: Sequence[str], body: Sequence[Paragraph], style: str, *, inset: int = INSET
    ) -> None:
        """Write paragraphs that belong together, under the parts of a title."""
        ...


def page_of(console: Console) -> Page:
    """Return the page that suits a console."""
    return Boxes(console) if console.is_terminal else Lines(console)


class Boxes:
    """A terminal: as wide as it is, with boxes."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def rule(self, title: str) -> None:
        self._console.print(Rule(title, align="left"))

    def paragraph(self, paragraph: Paragraph) -> None:
        self._console.print(paragraph)

    def block(
        self, title: Sequence[str], body: Sequence[Paragraph], style: str, *, inset: int = INSET
    ) -> None:
        inset = 0 if self._console.width < NARROW_COLUMNS else inset
        head, rest = _fitting(title, self._console.width - inset - FRAME_CELLS)
        more = [Paragraph(Text(rest, style="dim"))] if rest else []
        panel = Panel(
            Group(*more, *body),
            title=Text(head),
            title_align="left",
            border_style=style,
            box=box.ROUNDED,
        )
        self._console.print(Padding(panel, (0, 0, 0, inset)))


class Lines:
    """A file or a pipe: each paragraph is one line, however long, with nothing drawn around it."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def rule(self, title: str) -> None:
        self._write(Text(f"\n== {title} =="))

    def paragraph(self, paragraph: Paragraph) -> None:
        self._write(paragraph.text)

    def block(
        self, title: Sequence[str], body: Sequence[Paragraph], style: str, *, inset: int = INSET
    ) -> None:
        self._write(Text(" " * inset + BETWEEN.join(title), style=style))
        for paragraph in body:
            self._write(Text(" " * (inset + 2)).append_text(paragraph.text))

    def _write(self, text: Text) -> None:
        line = text.copy()
        line.rstrip()
        self._console.print(line, soft_wrap=True)


def _fitting(title: Sequence[str], cells: int) -> tuple[str, str]:
    """Return what of a title fits into the frame of a box, and what has to stand in the box."""
    for count in range(len(title), 0, -1):
        head = BETWEEN.join(title[:count])
        if cell_len(head) <= cells:
            return head, BETWEEN.join(title[count:])
    return "", BETWEEN.join(title)

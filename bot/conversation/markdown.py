"""Markdown made readable as the plain text that QQ shows.

This is no CommonMark parser, on purpose. By CommonMark's rules ``2*3*4`` and ``^_^ ^_^`` are
emphasis, ``>_<`` is a quotation, ``[a]: b`` vanishes, and ``**重点：**是`` is no emphasis at all;
in a Chinese chat each of these is wrong. So only what is surely markup is taken away, and what
is in doubt stays as it was written. Every scan is linear in the length of the text.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Literal, NamedTuple

BULLET = "· "
CELL_BORDER = " | "
UNNAMED_IMAGE = "图片"

_FENCE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})(?P<info>[\t\x20-\x5f\x61-\x7e]*)")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|={3,}[ \t]*)")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(?P<text>\S.*)")
_CLOSING_HASHES = re.compile(r"(?<=[ \t])#+$")
_QUOTE = re.compile(r" {0,3}(?:>{1,2}(?:[ \t]+|$))+")
_QUOTING_FACE = re.compile(r"\s*>[^a-zA-Z0-9<]{1,6}<")
_BULLET = re.compile(r"(?P<indent>[ \t]*)[-*][ \t]+(?:\[(?P<box>[ xX])\][ \t]+)?(?=\S)")
_BOXES = {" ": "☐ ", "x": "☑ ", "X": "☑ "}
_TABLE_BORDER = re.compile(r"[ \t]*\|?(?:[ \t]{0,9}:?-+:?[ \t]{0,9}(?:\||$))+[ \t]*")
_CELL_END = re.compile(r"(?<!\\)\|")

_BACKTICKS = re.compile(r"(?<!\\)`+")
_LINK = re.compile(
    r"!?\[(?P<text>[^\[\]]*)\]"
    r"\([ \t]{0,3}<?(?P<url>[^\s()<>]*+(?:\([^\s()<>]*+\)[^\s()<>]*+)*+)>?"
    r"(?:[ \t]{1,3}[\"'][^\"']{0,200}[\"'])?[ \t]{0,3}\)"
)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:|www\.|[./#]|[\w-]+\.\w|$", re.IGNORECASE)
_AUTOLINK = re.compile(r"<(?P<url>(?:https?://|mailto:)[^\s<>]++)>", re.IGNORECASE)
_ESCAPE = re.compile(r"\\[*#`~|]|(?<=\w)\\_(?=\w)")
_HTML_BREAK = re.compile(r"<br[ \t]{0,9}/?>", re.IGNORECASE)

_EMPHASIS = re.compile(r"\*+|_+|~+")
_MARKERS = frozenset({"*", "**", "***", "_", "__", "___", "~~"})
_WIDE_MARKERS = frozenset({"**", "***"})
_IDENTIFIER = re.compile(r"[A-Za-z0-9_]+")
_LETTER = re.compile(r"[^\W_]")
_OPAQUE = "口"
"""Stands for a character that emphasis must not look into; a letter, and not ASCII."""

_OPENING = "“‘「『《【"
_CLOSING = "”’」』》】"
_STOPS = "，。、；：！？…～,.;:!?"
_NESTED = "*_~"


class _Edit(NamedTuple):
    """Replace ``line[start:end]``."""

    start: int
    end: int
    replacement: str = ""


class _Run(NamedTuple):
    """A run of signs in a line."""

    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class _Marker:
    """Emphasis signs, and whether they may begin or end an emphasis where they stand."""

    signs: str
    run: _Run
    opens: bool
    closes: bool


def flattened(markdown: str) -> str:
    """Return ``markdown`` as lines of plain text.

    Headings, emphasis, quotes and fences lose their signs, links read ``text (url)``, tables
    become lines of cells, bullets ``·``. Code keeps its content to the letter. A text that is
    nothing but markup comes back as it was.
    """
    plain = "\n".join(_flat_lines(markdown.splitlines())).strip("\n").rstrip()
    return plain or markdown.strip()


def _flat_lines(lines: Iterable[str]) -> Iterator[str]:
    fence = ""
    prose: list[str] = []
    for line in lines:
        if mark := _fence_mark(line, fence):
            yield from _single_spaced(_flat_prose(prose))
            prose = []
            fence = "" if fence else mark
        elif fence:
            yield line.rstrip()
        else:
            prose.append(line)
    yield from _single_spaced(_flat_prose(prose))


def _single_spaced(lines: Iterable[str]) -> Iterator[str]:
    for before, line in pairwise(chain([BULLET], lines)):
        if before or line:
            yield line


def _fence_mark(line: str, fence: str) -> str:
    """Return the mark by which ``line`` opens a fence, or closes ``fence``; else nothing."""
    found = _FENCE.fullmatch(line)
    if found is None:
        return ""
    mark, info = found["mark"], found["info"].strip()
    if fence:
        return mark if mark.startswith(fence) and not info else ""
    # A line of nothing but waves is a mood, not the beginning of code.
    return mark if mark[0] == "`" or info.isalnum() else ""


def _flat_prose(lines: list[str]) -> Iterator[str]:
    table: Literal["", "border", "rows"] = ""
    for line, following in pairwise(chain(lines, [""])):
        if table == "border":
            table = "rows"
            continue
        if "|" not in line:
            table = ""
        elif not table and _is_table_border(following):
            table = "border"
        yield _flat_row(line) if table else _flat_block(line)


def _is_table_border(line: str) -> bool:
    return "|" in line and _TABLE_BORDER.fullmatch(line) is not None


def _flat_row(line: str) -> str:
    inner = line.strip().removeprefix("|")
    cells = _CELL_END.split(inner)
    if len(cells) > 1 and not cells[-1].strip():
        cells.pop()
    return CELL_BORDER.join(_flat_inline(cell.strip(), line_break=" ") for cell in cells)


def _flat_block(line: str) -> str:
    if _RULE.fullmatch(line):
        return ""
    line = _without_quote(line)
    if heading := _HEADING.fullmatch(line):
        return _flat_inline(_CLOSING_HASHES.sub("", heading["text"].rstrip()).rstrip())
    if bullet := _BULLET.match(line):
        sign = _BOXES.get(bullet["box"], BULLET)
        return bullet["indent"] + sign + _flat_inline(line[bullet.end() :]).rstrip()
    return _flat_inline(line).rstrip()


def _without_quote(line: str) -> str:
    quote = None if _QUOTING_FACE.match(line) else _QUOTE.match(line)
    return line[quote.end() :] if quote else line


def _flat_inline(line: str, line_break: str = "\n") -> str:
    edits, shadow = _code_edits(line)
    for found_edits in (_link_edits, _autolink_edits, _escape_edits):
        found, shadow = found_edits(line, shadow)
        edits += found
    edits += [_Edit(*found.span(), line_break) for found in _HTML_BREAK.finditer(shadow)]
    edits += _emphasis_edits(shadow)
    return _edited(line, edits)


def _edited(line: str, edits: list[_Edit]) -> str:
    parts: list[str] = []
    at = 0
    for edit in sorted(edits):
        parts += line[at : edit.start], edit.replacement
        at = edit.end
    return "".join(parts) + line[at:]


def _shadowed(line: str, runs: Iterable[_Run]) -> str:
    """Return ``line`` with ``runs`` (in order, apart) made opaque, at the same length."""
    parts: list[str] = []
    at = 0
    for run in runs:
        parts += line[at : run.start], _OPAQUE * run.length
        at = run.end
    return "".join(parts) + line[at:]


def _code_edits(line: str) -> tuple[list[_Edit], str]:
    edits: list[_Edit] = []
    spans: list[_Run] = []
    for opening, closing in _code_spans(line):
        padded = 1 if _is_padded(line[opening.end : closing.start]) else 0
        edits.append(_Edit(opening.start, opening.end + padded))
        edits.append(_Edit(closing.start - padded, closing.end))
        spans.append(_Run(opening.start, closing.end))
    return edits, _shadowed(line, spans)


def _is_padded(code: str) -> bool:
    return code.startswith(" ") and code.endswith(" ") and not code.isspace()


def _code_spans(line: str) -> Iterator[tuple[_Run, _Run]]:
    """Yield the opening and closing backticks of each piece of code, from left to right."""
    runs = [_Run(*found.span()) for found in _BACKTICKS.finditer(line)]
    partners = _next_of_same_length(runs)
    index = 0
    while index < len(runs):
        partner = partners[index]
        if partner is not None:
            yield runs[index], runs[partner]
        index = (index if partner is None else partner) + 1


def _next_of_same_length(runs: list[_Run]) -> list[int | None]:
    partners: list[int | None] = [None] * len(runs)
    latest: dict[int, int] = {}
    for index in reversed(range(len(runs))):
        partners[index] = latest.get(runs[index].length)
        latest[runs[index].length] = index
    return partners


def _link_edits(line: str, shadow: str) -> tuple[list[_Edit], str]:
    edits: list[_Edit] = []
    targets: list[_Run] = []
    for found in _LINK.finditer(shadow):
        url = line[slice(*found.span("url"))]
        if not _ADDRESS.match(url):
            continue
        is_image = found[0].startswith("!")
        start, end = found.span("text")
        name = line[start:end].strip() or (UNNAMED_IMAGE if is_image else "")
        edits.append(_Edit(found.start(), start, "" if start < end else name))
        edits.append(_Edit(end, found.end(), _link_target(name, url)))
        targets.append(_Run(end, found.end()))
    return edits, _shadowed(shadow, targets)


def _link_target(name: str, url: str) -> str:
    if url == name or not url or url.lower().startswith("data:"):
        return ""
    return f" ({url})" if name else url


def _autolink_edits(line: str, shadow: str) -> tuple[list[_Edit], str]:
    runs = [_Run(*found.span()) for found in _AUTOLINK.finditer(shadow)]
    edits = [_Edit(run.start, run.end, line[run.start + 1 : run.end - 1]) for run in runs]
    return edits, _shadowed(shadow, runs)


def _escape_edits(line: str, shadow: str) -> tuple[list[_Edit], str]:
    runs = [_Run(*found.span()) for found in _ESCAPE.finditer(shadow)]
    return [_Edit(run.start, run.end - 1) for run in runs], _shadowed(shadow, runs)


def _emphasis_edits(shadow: str) -> list[_Edit]:
    edits: list[_Edit] = []
    for opening, closing in _emphases(_markers(shadow)):
        if _is_emphasis(shadow[opening.run.end : closing.run.start], opening.signs):
            edits += _Edit(*opening.run), _Edit(*closing.run)
    return edits


def _is_emphasis(content: str, signs: str) -> bool:
    """Whether the content may be meant: ``(*_*)`` and ``__init__`` are no emphasis."""
    if signs == "__":
        return not _IDENTIFIER.fullmatch(content)
    return signs in _WIDE_MARKERS or _LETTER.search(content) is not None


def _emphases(markers: Iterable[_Marker]) -> Iterator[tuple[_Marker, _Marker]]:
    """Yield each marker that closes with the nearest equal one that opens, well nested."""
    stack: list[_Marker] = []
    waiting: Counter[str] = Counter()
    for marker in markers:
        if marker.closes and waiting[marker.signs]:
            while (opening := stack.pop()).signs != marker.signs:
                waiting[opening.signs] -= 1
            waiting[marker.signs] -= 1
            yield opening, marker
        elif marker.opens:
            stack.append(marker)
            waiting[marker.signs] += 1


def _markers(shadow: str) -> Iterator[_Marker]:
    for found in _EMPHASIS.finditer(shadow):
        signs = found[0]
        if signs not in _MARKERS:
            continue
        before = shadow[found.start() - 1 : found.start()] if found.start() else ""
        after = shadow[found.end() : found.end() + 1]
        opens, closes = (_opens_wide, _closes_wide) if signs in _WIDE_MARKERS else (_opens, _closes)
        yield _Marker(signs, _Run(*found.span()), opens(before, after), closes(before, after))


# Two stars may stand inside a Chinese sentence, which has no spaces; between ASCII letters or
# digits they are powers, arguments or a masked curse.


def _opens_wide(before: str, after: str) -> bool:
    if not after or after.isspace() or after in _STOPS + _CLOSING + ")]}）":
        return False
    return before != "/" and not (_is_ascii_word(before) and after.isascii())


def _closes_wide(before: str, after: str) -> bool:
    if not before or before.isspace() or before in _OPENING + "([{（":
        return False
    return not (before.isascii() and _is_ascii_word(after))


# One sign is emphasis only if it holds a word from outside: a product, a snake_case name or a
# face made of signs does not.


def _opens(before: str, after: str) -> bool:
    if before.isalnum() or (before and before in ")]}/\\"):
        return False
    return after.isalnum() or (after != "" and after in _OPENING + _NESTED + "\"'[")


def _closes(before: str, after: str) -> bool:
    if after.isalnum():
        return False
    return before.isalnum() or (before != "" and before in _CLOSING + _STOPS + _NESTED + "\"'")


def _is_ascii_word(character: str) -> bool:
    return character.isascii() and character.isalnum()

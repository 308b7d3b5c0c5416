"""The ``daily`` document as people and prompts read it: one heading per day, newest day last.

See ``docs/memory.md``, "Dates".
"""

import re
from collections import defaultdict
from collections.abc import Iterable

from bot.model import Entry
from bot.text import many_lines

UNDATED = "未注明日期"
_HEADING = re.compile(r"\s*#{1,6}\s*(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?\s*[:：]?\s*")
_UNDATED_HEADING = re.compile(rf"\s*#{{1,6}}\s*{UNDATED}\s*")
_BULLET = re.compile(r"\s*[-*+•]\s+")


def rendered_daily(entries: Iterable[Entry]) -> str:
    """Return ``entries`` as Markdown, oldest day first; within a day their order stays."""
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for entry in entries:
        lines[entry.date or ""].append(f"- {entry.text}")
    return _rendered(lines)


def normalised_daily(text: str) -> str:
    """Return a daily document that has a heading for each entry with one for each day.

    Every line of text stays. Lines before the first heading come under a heading that says so,
    before all days. The same document comes out of a document of that form.
    """
    lines: defaultdict[str, list[str]] = defaultdict(list)
    day = ""
    for line in many_lines(text).split("\n"):
        heading = _HEADING.fullmatch(line)
        if heading:
            day = f"{heading[1]}-{int(heading[2]):02}-{int(heading[3]):02}"
        elif _UNDATED_HEADING.fullmatch(line):
            day = ""
        elif (
            words := _BULLET.sub("", line, count=1).strip() if _BULLET.match(line) else line.strip()
        ):
            lines[day].append(f"- {words}")
    return _rendered(lines)


def _rendered(lines: dict[str, list[str]]) -> str:
    days = (
        "\n".join([f"## {day or UNDATED}", *lines_of_day])
        for day, lines_of_day in sorted(lines.items())
    )
    return "\n\n".join(days)

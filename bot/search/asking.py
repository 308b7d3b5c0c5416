"""What a question asks of a chat: its words, and the days that it names.

Pure. See ``docs/search.md``, "Questions to messages".
"""

import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from bot.search.grams import fold
from bot.search.tokens import Segment, question_parts

MAX_YEARS = 20
"""A day without a year may be that of so many years."""

_DAY = re.compile(
    r"(?:(?P<year>\d{4})\s?[-/.年]\s?)?(?P<month>\d{1,2})\s?月\s?(?P<day>\d{1,2})\s?[日号]"
    r"|(?P<year2>\d{4})[-/.年](?P<month2>\d{1,2})[-/.](?P<day2>\d{1,2})(?!\d)"
)
_MONTH = re.compile(r"(?:(?P<year>\d{4})\s?年\s?)?(?<!\d)(?P<month>\d{1,2})\s?月(?!\s?\d)")
_BEGINNINGS = frozenset({"-01-01", "-01", ""})
"""What is left of the first day of a year, a month and a day when that is taken away."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """Something to look up."""

    text: str
    """Folded."""
    is_word: bool
    """Made of letters and digits: all its forms are meant. Else its characters, as they are."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, taken apart."""

    phrases: tuple[Phrase, ...]
    days: tuple[str, ...]
    """Days (``YYYY-MM-DD``) and months (``YYYY-MM``) that it names, any of which may be meant."""


def asked(question: str, years: Sequence[int], segment: Segment) -> Asked:
    """Return what a question asks.

    Args:
        question: what somebody wrote.
        years: those in which something was said; a day without a year may be of any of them.
        segment: cuts a run of CJK characters into words.
    """
    folded = fold(question)
    days = tuple(dict.fromkeys(_days(folded, years[-MAX_YEARS:])))
    rest = _MONTH.sub(" ", _DAY.sub(" ", folded)) if days else folded
    parts = question_parts(rest, segment)
    return Asked(tuple(Phrase(part, is_word) for part, is_word in parts), days)


def _days(folded: str, years: Sequence[int]) -> Iterator[str]:
    for found in _DAY.finditer(folded):
        year = found["year"] or found["year2"]
        month, day = found["month"] or found["month2"], found["day"] or found["day2"]
        for one in [int(year)] if year else years:
            yield from _valid(f"{one:04}-{int(month):02}-{int(day):02}")
    for found in _MONTH.finditer(_DAY.sub(" ", folded)):
        for one in [int(found["year"])] if found["year"] else years:
            yield from (day[:7] for day in _valid(f"{one:04}-{int(found['month']):02}-01"))


def _valid(day: str) -> Iterator[str]:
    try:
        date.fromisoformat(day)
    except ValueError:
        return
    yield day


def days_between(first: date, last: date) -> list[str]:
    """Return the days, whole months and whole years that make up a stretch of time.

    Both ends are included; ``YYYY-MM-DD``, ``YYYY-MM`` and ``YYYY``.
    """
    found: list[str] = []
    at = first
    while at <= last:
        for length, ends in ((4, date(at.year, 12, 31)), (7, _month_end(at)), (10, at)):
            if ends <= last and at.isoformat()[length:] in _BEGINNINGS:
                found.append(at.isoformat()[:length])
                break
        if ends == date.max:
            break
        at = ends + timedelta(days=1)
    return found


def _month_end(day: date) -> date:
    return day.replace(day=monthrange(day.year, day.month)[1])

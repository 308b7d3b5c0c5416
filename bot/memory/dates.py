"""Days: when evidence was said, and what ``明天`` meant when somebody said it.

See ``docs/memory.md``, "Dates".
"""

import re
from collections.abc import Sequence
from datetime import date, timedelta

from bot.model import BatchMessage

_DAYS_AWAY = {
    "前天": -2,
    "昨天": -1,
    "昨晚": -1,
    "今天": 0,
    "今晚": 0,
    "今早": 0,
    "明天": 1,
    "明早": 1,
    "明晚": 1,
    "后天": 2,
    "大后天": 3,
}
_WEEKS_AWAY = {"上周": -1, "本周": 0, "这周": 0, "下周": 1}
_WEEKDAYS = {"一": 0, "二": 1, "三": 2, "四": 3, "五": 4, "六": 5, "日": 6, "天": 6}
_DATE_CHARS = len("(2026-01-01)")

# What only looks like such a word is left alone: better a word without a date than a wrong date.
_WEEKDAY = (
    r"(?:一(?![直起些样般共定个])|日(?![程常记报志期])|天|[二三四五六])"
    r"(?![次回趟遍]|天(?!气)|十(?![一二]?点)|[二三四五六](?![点十])|(?<=六)日)"
)
_RELATIVE = re.compile(
    r"今天|今晚|今早|昨天|昨晚|(?<![证表声申聪文光透发黎鲜])明天|明早|明晚"
    r"|(?<!大)大后天|(?<![大以之今此最然午雨随])后天(?!性)|(?<![大以之目此先年])前天"
    rf"|(?P<week>(?<!上)上周|本周|这周|(?<!下)下周)(?P<weekday>{_WEEKDAY})"
    r"|(?<![上下本这那每个隔单双逢各两七八九十几半整全多\d])(?<!(?<!周)[一二三四五六])"
    rf"(?<![一二三四五六日天][到至~～—–-])周(?P<bare>{_WEEKDAY})(?!\s?[到至~～—–-]\s?周)"
)
_ALREADY = re.compile(r"\s?[(（]\s?\d")


def day_of(day: str, messages: Sequence[BatchMessage]) -> str:
    """Return the day of an item, ``YYYY-MM-DD``.

    That is ``day`` if one of the item's ``messages`` was said on it, else the local day of the
    first of them.
    """
    days = [message.local_date for message in messages]
    return day if day in days else days[0]


def completed(text: str, messages: Sequence[BatchMessage], max_chars: int) -> str:
    """Return ``text`` with the date behind each relative word: ``明天(2026-08-23)``.

    A word is counted from the day of the first of ``messages`` that says it, else of the first
    message. Each word is completed where it first stands, and not at all if it already is
    somewhere. A bare ``周五`` is the first Friday from that day on. What would make the text
    longer than ``max_chars`` is left out.
    """
    words = list(_RELATIVE.finditer(text))
    done = {word[0] for word in words if _ALREADY.match(text, word.end())}
    room = max(0, max_chars - len(text)) // _DATE_CHARS
    parts, at = [], 0
    for word in words:
        if word[0] in done or not room:
            continue
        done.add(word[0])
        room -= 1
        parts += [text[at : word.end()], _date_behind(word, messages)]
        at = word.end()
    return "".join([*parts, text[at:]])


def _date_behind(word: re.Match[str], messages: Sequence[BatchMessage]) -> str:
    said, message = _as_said(word, messages)
    try:
        return f"({_meant(said, date.fromisoformat(message.local_date)).isoformat()})"
    except OverflowError:
        return ""


def _meant(word: re.Match[str], said: date) -> date:
    """Return the day that ``word`` means on the day ``said``; a week begins on Monday."""
    if word["week"]:
        monday = said - timedelta(days=said.weekday())
        days = 7 * _WEEKS_AWAY[word["week"]] + _WEEKDAYS[word["weekday"]]
        return monday + timedelta(days=days)
    if word["bare"]:
        return said + timedelta(days=(_WEEKDAYS[word["bare"]] - said.weekday()) % 7)
    return said + timedelta(days=_DAYS_AWAY[word[0]])


def _as_said(
    word: re.Match[str], messages: Sequence[BatchMessage]
) -> tuple[re.Match[str], BatchMessage]:
    """Return the word as the first message says it, ``下周五`` for ``周五`` included."""
    for message in messages:
        for said in _RELATIVE.finditer(message.statement or message.text):
            if said[0] == word[0] or (word["bare"] and said[0].endswith(word[0])):
                return said, message
    return word, messages[0]

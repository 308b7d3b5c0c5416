"""What was said: 搜."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from bot.clock import local_minute, local_time
from bot.commands.call import Answer, Call, Refusal
from bot.commands.pages import Item, paged
from bot.model import StoredMessage
from bot.search.grams import fold
from bot.search_messages import search_messages
from bot.store.members import bearers
from bot.store.message_search import Window, kept
from bot.store.sessions import session_state
from bot.text import ELLIPSIS, display_name, single_line, whole_characters

USAGE = (
    "用法：/搜 词 [@某人] [自 2026-08-01] [至 2026-08-31] [页 2]。"
    "词可以有几个，要都出现；带空格的词或名字写在引号里。"
)
NOT_WHOLE = "更早的消息还没有都找过。(Older messages are not all searched.)"
BY_MEANING = "没有一字不差的，这些可能有关 (no exact match; these may be related)："
WORDS_ALONE = "这次只按字词找，没有按意思找。(Searched by words, not by meaning.)"
BY_WORDS = "没有一字不差的，这些有其中的字词 (no exact match; these have some of the words)："
MAX_FOUND = 100
PAGE_ITEMS = 10
RELATED = 10
"""So many messages are shown that only have to do with what was looked for."""
RELATED_SHARE = 0.6
"""What fits less than this share of the best is not shown: it may only stand behind that."""
SHOWN_CHARS = 60
BEFORE_CHARS = 20
"""So much of a long text is shown before what was looked for."""

_SINCE, _UNTIL, _PAGE = frozenset({"自", "从"}), frozenset({"至", "到"}), "页"
_SIGNALS = _SINCE | _UNTIL | {_PAGE}
_WORD = re.compile(r'(@?)(?:"([^"]+)"|“([^”]+)”)|(\S+)')
_DAY = re.compile(r"(?:(\d{4})[-/.年])?(\d{1,2})[-/.月](\d{1,2})[日号]?")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody looks for."""

    keywords: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    """Whose words, as they were typed behind an @; user ids where QQ knew them."""
    since: date | None = None
    until: date | None = None
    """The last day, included."""
    page: int = 1

    def __str__(self) -> str:
        """How it is typed, the page apart."""
        words = [f'"{word}"' if _needs_quotes(word) else word for word in self.keywords]
        words += [f"@{_quoted(who)}" for who in self.people]
        words += [f"自 {self.since}"] if self.since else []
        words += [f"至 {self.until}"] if self.until else []
        return single_line(" ".join(words))


def _quoted(name: str) -> str:
    if not any(map(str.isspace, name)):
        return name
    return f"“{name}”" if '"' in name else f'"{name}"'


def _needs_quotes(word: str) -> bool:
    return word in _SIGNALS or word.startswith("@") or any(map(str.isspace, word))


async def search_chat(call: Call) -> Answer:
    """搜: show what was said in this chat, and in no other, with some words in it."""
    today = local_time(call.app.clock.now(), call.app.config.timezone).date()
    wanted = read_search(call.arguments, call.message.mentions, today)
    window = await _window(call, wanted)
    found = await kept(call.app.db, call.chat, wanted.keywords, window, MAX_FOUND)
    later = "" if found.is_whole else NOT_WHOLE
    if not found.messages:
        return await _related(call, wanted, window, later)
    lines = [Item(_line(call, one, wanted.keywords)) for one in found.messages]
    page = paged(lines, wanted.page, f"/搜 {wanted} 页", PAGE_ITEMS)
    notes = [later] if later else []
    if len(found.messages) == MAX_FOUND:
        notes.append(f"只列最近的 {MAX_FOUND} 条。(Only the newest {MAX_FOUND}.)")
    return _answer((page, *notes), found.messages)


def _answer(lines: Iterable[str], shown: Iterable[StoredMessage]) -> Answer:
    rows = frozenset(stored.row_id for stored in shown)
    return Answer("\n".join(filter(None, lines)), rows)


async def _related(call: Call, wanted: Wanted, window: Window, later: str) -> Answer:
    """Return what only has to do with the words: nobody said them as they are."""
    question = " ".join(wanted.keywords)
    found = await search_messages(call.app, call.chat, call.caller_id, question, window, RELATED)
    best = found.hits[0].score if found.hits else 0.0
    likely = [hit.stored for hit in found.hits if hit.score >= RELATED_SHARE * best]
    lines = [_line(call, stored, wanted.keywords) for stored in likely]
    if not lines:
        how = WORDS_ALONE if found.is_lexical_only else ""
        return _answer(("没有找到。(Nothing was found.)", how, later), ())
    heading = BY_WORDS if found.is_lexical_only else BY_MEANING
    return _answer((heading, *lines, later), likely)


async def _window(call: Call, wanted: Wanted) -> Window:
    zone = call.app.config.timezone
    sender_id = await _sender_id(call, wanted.people)
    session = await session_state(call.app.db, call.chat)
    since = _midnight(wanted.since, zone) if wanted.since else None
    until = _midnight(_day_after(wanted.until), zone) if wanted.until else None
    return Window(sender_id, since, until, not_before=session.cleared_before)


def _day_after(day: date) -> date:
    """Return the next day; the last day that there is has none."""
    return day if day == date.max else day + timedelta(days=1)


def _midnight(day: date, zone: ZoneInfo) -> int:
    return round(datetime.combine(day, time(), zone).timestamp() * 1000)


async def _sender_id(call: Call, people: Sequence[str]) -> str | None:
    if not people:
        return None
    if len(people) > 1:
        raise Refusal("一次只能找一个人说的话。(One person at a time.)")
    [who] = people
    if who.isascii() and who.isdigit():
        return who
    ids = await bearers(call.app.db, call.chat, who)
    if len(ids) != 1:
        problem = "这里没有人叫这个名字" if not ids else "这里有几个人叫过这个名字"
        raise Refusal(f"{problem}，请直接 @ 对方。(Please mention the person.)")
    return ids[0]


def _line(call: Call, stored: StoredMessage, keywords: Iterable[str]) -> str:
    message = stored.message
    name = display_name(message.sender.display_name, message.sender.user_id)
    if message.direction == "outbound":
        name = call.app.name
    when = local_minute(message.sent_at, call.app.config.timezone)
    return f"{when} {name}：{excerpt(message.text, keywords)}"


def excerpt(text: str, keywords: Iterable[str]) -> str:
    """Return a text as one line, of a long one what stands around the first keyword."""
    line = single_line(text)
    places = (fold(line).find(fold(word)) for word in keywords)
    at = min((place for place in places if place >= 0), default=0)
    start = 0
    if len(line) > SHOWN_CHARS and at > BEFORE_CHARS:
        start = whole_characters(line, min(at - BEFORE_CHARS, len(line) - SHOWN_CHARS))
    shown = line[start:]
    if len(shown) > SHOWN_CHARS:
        shown = shown[: whole_characters(shown, SHOWN_CHARS)].rstrip() + ELLIPSIS
    return ELLIPSIS + shown if start else shown


# What was typed.


def read_search(arguments: str, mentions: Iterable[str], today: date) -> Wanted:
    """Return what somebody looks for.

    Args:
        arguments: what stands behind the command; an @ stands as its user id.
        mentions: the user ids of those who were mentioned.
        today: the local day; a day without a year is the last of its kind.

    Raises:
        Refusal: nothing is looked for, or there is no such day or page.
    """
    words = iter(_typed(arguments))
    keywords: list[str] = []
    people: list[str] = []
    since: date | None = None
    until: date | None = None
    page = 1
    mentioned = frozenset(mentions)
    for word, is_quoted in words:
        if is_quoted:
            keywords.append(word)
        elif word in mentioned:
            people.append(word)
        elif word.startswith("@") and len(word) > 1:
            people.append(word[1:])
        elif word in _SINCE:
            since = _day(words, today)
        elif word in _UNTIL:
            until = _day(words, today)
        elif word == _PAGE:
            page = _page(words)
        else:
            keywords.append(word)
    keywords = [word for word in keywords if fold(word).strip()]
    if not keywords:
        raise Refusal(f"还要写上要找的词。{USAGE}" if people or since or until else USAGE)
    return Wanted(tuple(keywords), tuple(people), since, until, page)


def _typed(arguments: str) -> Iterator[tuple[str, bool]]:
    """Yield the words that were typed, each with whether it was quoted."""
    for found in _WORD.finditer(arguments):
        at, quoted = found[1], found[2] or found[3]
        if quoted and not at:
            yield quoted, True
        else:
            # A name with spaces is quoted behind its @.
            yield (f"@{quoted}" if quoted else found[4]), False


def _day(words: Iterator[tuple[str, bool]], today: date) -> date:
    text, _ = next(words, ("", False))
    found = _DAY.fullmatch(unicodedata.normalize("NFKC", text))
    if found is None:
        raise Refusal(f"日期写成 2026-08-01 或 8月1日。{USAGE}")
    year, month, day = (int(part) if part else 0 for part in found.groups())
    try:
        if year:
            return date(year, month, day)
        this_year = date(today.year, month, day)
        return this_year if this_year <= today else date(today.year - 1, month, day)
    except ValueError as error:
        raise Refusal(f"没有 {text} 这一天。(There is no such day.)") from error


def _page(words: Iterator[tuple[str, bool]]) -> int:
    text = unicodedata.normalize("NFKC", next(words, ("", False))[0])
    if not (text.isascii() and text.isdigit() and len(text) < 4):
        raise Refusal(USAGE)
    return int(text)

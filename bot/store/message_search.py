"""The search of stored messages, within one chat. SQLite's own (FTS5), as is the index of them in
``bot/store/message_index.py``.

Tokens name their chat, so nothing of another is looked at; and what matched is read with the chat
as a condition, so that nothing rests on tokens. See ``docs/search.md``, "The search of messages".
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TypeVar

from bot.model import Chat, StoredMessage
from bot.search.asking import Asked, Phrase, asked, days_between
from bot.search.grams import (
    all_of,
    any_of,
    day_token,
    fold,
    keyword_tokens,
    sender_token,
    word_token,
)
from bot.search.ranking import MESSAGE_LENGTH_SHARE, gain, rarity
from bot.search.segment import cut
from bot.store.database import Database
from bot.store.messages import END_OF_TIME, by_rows_call, chat_key, stored_message
from bot.store.queries import load
from bot.store.sqlite import run, visit

MAX_KEYWORDS = 8
"""Of more words the first ones are looked for."""

SLACK = 500
"""So many finds beyond those wanted are put in order of time: rows stand in order of arrival, and a
history arrives late."""

MAX_READ = 20_000
"""So many rows that may have a keyword are read; one of which each part is everywhere, and the
whole nowhere, could take seconds."""

MAX_OF_PHRASE = 1_000
"""So many of the newest messages with a phrase are ranked."""

MAX_RANKED = 300
"""Of all that any phrase found, so many are read."""

SAMPLE = 2_000
"""So many of the newest messages tell how dense a chat is."""

MAX_NAMED = 8
"""A question names no more people than this."""

SENDER_WEIGHT = 0.6
"""That somebody said it whom the question names, beside that it has a word of the question."""

DAY_WEIGHT = 0.8
"""That it was said on a day that the question names."""

EARLIEST_HOURS, LATEST_HOURS = 12, 14
"""How far behind and before UTC a local time may be."""

_sql = load("message_search")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Window:
    """What of a chat may be found."""

    sender_id: str | None = None
    since: int | None = None
    """Said then or later, UTC milliseconds."""
    until: int | None = None
    """Said before, UTC milliseconds."""
    hidden: frozenset[int] = frozenset()
    """Rows that are in the prompt already."""
    not_before: int = 0
    """The conversation was cleared then: only what was said later, unless ``since`` is given."""

    @property
    def begins_at(self) -> int:
        """From when on something may be found, UTC milliseconds."""
        if self.since is not None:
            return self.since
        return self.not_before + 1 if self.not_before else 0

    @property
    def ends_at(self) -> int:
        """From when on nothing may be found, UTC milliseconds."""
        return END_OF_TIME if self.until is None else self.until


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that was found, and how well it fits."""

    row_id: int
    score: float
    """Higher is better; of one search only."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The messages with some keywords."""

    messages: list[StoredMessage]
    """The newest first."""
    is_whole: bool
    """Whether nothing was passed over; else older messages are not indexed yet, or too many would
    have had to be read."""


async def keyword_hits(
    db: Database, chat: Chat, keywords: Sequence[str], window: Window, limit: int
) -> list[StoredMessage]:
    """Return the newest messages of a chat that have all of some keywords in them; see ``kept``."""
    return (await kept(db, chat, keywords, window, limit)).messages


async def kept(
    db: Database, chat: Chat, keywords: Sequence[str], window: Window, limit: int
) -> Kept:
    """Return the newest messages of a chat that have all of some keywords in them.

    A keyword is any part of a text, signs, spaces and emoji included; width, case and invisible
    characters aside. What is nothing but space is none.

    Args:
        db: the database.
        chat: the only one that is looked into.
        keywords: raw.
        window: what of it may be found.
        limit: how many at most.
    """
    folded = [word for word in map(fold, keywords) if word.strip()][:MAX_KEYWORDS]
    work = partial(_kept, chat=chat, keywords=folded, window=window, limit=limit)
    return await _read(db, work) if folded else Kept([], True)


async def lexical_hits(
    db: Database, chat: Chat, question: str, window: Window, limit: int
) -> list[Hit]:
    """Return messages of a chat that have words of a question in them, the best first.

    Whom and which days it names counts as well. Nothing outside of the chat and the window has any
    part in the scores.

    Args:
        db: the database.
        chat: the only one that is looked into.
        question: what somebody wrote, raw.
        window: what of it may be found.
        limit: how many at most.
    """
    return await _read(
        db, partial(_ranked, chat=chat, question=question, window=window, limit=limit)
    )


async def _read(db: Database, work: Callable[[sqlite3.Connection], T]) -> T:
    async with db.reader() as connection:
        return await visit(connection, work)


# --- where ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """What is looked into, as rows know it."""

    chat_id: int
    member_id: int | None
    oldest: int
    newest: int
    """From when to when something was said, UTC milliseconds."""
    window: Window
    is_whole: bool

    @property
    def years(self) -> range:
        """In which something was said, the local year at their ends included."""
        first, last = _day(self.oldest, -EARLIEST_HOURS), _day(self.newest, LATEST_HOURS)
        return range(first.year, last.year + 1)

    def narrowing(self) -> list[str]:
        """Return what everything that may be found matches besides."""
        parts = []
        if self.member_id is not None:
            parts.append(all_of([sender_token(self.chat_id, self.member_id)]))
        days = self._days()
        if days:
            parts.append(any_of(day_token(self.chat_id, day) for day in days))
        return parts

    def _days(self) -> list[str]:
        """Return days, months and years that cover what may be found, none if all may be."""
        begins = max(self.window.begins_at, self.oldest)
        ends = min(self.window.ends_at, self.newest)
        if (begins, ends) == (self.oldest, self.newest) or begins > ends:
            return []
        return days_between(_day(begins, -EARLIEST_HOURS), _day(ends, LATEST_HOURS))

    def conditions(self) -> dict[str, int | None]:
        """Return the conditions of ``texts``."""
        return {
            "chat_id": self.chat_id,
            "member_id": self.member_id,
            "since": self.window.begins_at,
            "until": self.window.ends_at,
        }


def _day(at: int, hours: int) -> date:
    try:
        return (datetime.fromtimestamp(at / 1000, UTC) + timedelta(hours=hours)).date()
    except (OverflowError, ValueError, OSError):
        return date.max if at > 0 else date.min


def _place(connection: sqlite3.Connection, chat: Chat, window: Window) -> _Place | None:
    """Return where is searched, ``None`` if nothing can be found there."""
    rows = run(connection, (_sql.place, {**chat_key(chat), "sender_id": window.sender_id}))
    if not rows or rows[0]["oldest"] is None:
        return None
    [row] = rows
    if window.sender_id is not None and row["member_id"] is None:
        return None
    return _Place(
        chat_id=row["chat_id"],
        member_id=row["member_id"],
        oldest=row["oldest"],
        newest=row["newest"],
        window=window,
        is_whole=bool(row["is_whole"]),
    )


def _matches(connection: sqlite3.Connection, match: str, limit: int, below: int) -> list[int]:
    asked = {"match": match, "limit": limit, "below": below}
    return [row_id for (row_id,) in run(connection, (_sql.matches, asked))]


def _texts(connection: sqlite3.Connection, place: _Place, rows: Iterable[int]) -> list[sqlite3.Row]:
    """Return what of some rows may be shown."""
    ids = json.dumps([row for row in rows if row not in place.window.hidden])
    return run(connection, (_sql.texts, {**place.conditions(), "ids": ids}))


# --- keywords ---------------------------------------------------------------------------------


def _kept(
    connection: sqlite3.Connection,
    chat: Chat,
    keywords: Sequence[str],
    window: Window,
    limit: int,
) -> Kept:
    place = _place(connection, chat, window)
    if place is None:
        return Kept([], True)
    tokens = dict.fromkeys(t for word in keywords for t in keyword_tokens(place.chat_id, word))
    match = " AND ".join([all_of(tokens), *place.narrowing()])
    found, is_whole = _with_keywords(connection, place, keywords, match, limit + SLACK)
    found.sort(key=lambda row: (row["sent_at"], row["id"]), reverse=True)
    newest = [row["id"] for row in found[:limit]]
    messages = {
        row["id"]: stored_message(row, chat) for row in run(connection, by_rows_call(newest))
    }
    return Kept([messages[row] for row in newest if row in messages], is_whole and place.is_whole)


def _with_keywords(
    connection: sqlite3.Connection,
    place: _Place,
    keywords: Sequence[str],
    match: str,
    wanted: int,
) -> tuple[list[sqlite3.Row], bool]:
    """Return the last to arrive that have all keywords, and whether none had to be passed over."""
    found: list[sqlite3.Row] = []
    read, below = 0, END_OF_TIME
    while rows := _matches(connection, match, wanted, below):
        below = rows[-1]
        texts = _texts(connection, place, rows)
        read += len(texts)
        for row in texts:
            text = fold(row["text"])
            if all(word in text for word in keywords):
                found.append(row)
        if len(rows) < wanted or len(found) >= wanted:
            return found, True
        if read >= MAX_READ:
            return found, False
    return found, True


# --- questions --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Finds:
    """What is found of a question, by its parts."""

    weights: list[float] = field(default_factory=list)
    """How much each part tells."""
    rows: list[list[int]] = field(default_factory=list)
    """In which rows each part was found, the newest first."""

    def best(self, hidden: frozenset[int]) -> dict[int, list[int]]:
        """Return the parts of those rows that may fit best, by row."""
        parts: dict[int, list[int]] = {}
        for part, rows in enumerate(self.rows):
            for row in rows:
                parts.setdefault(row, []).append(part)
        likely = sorted(
            (row for row in parts if row not in hidden),
            key=lambda row: (sum(self.weights[part] for part in parts[row]), row),
            reverse=True,
        )
        return {row: parts[row] for row in likely[:MAX_RANKED]}


def _ranked(
    connection: sqlite3.Connection, chat: Chat, question: str, window: Window, limit: int
) -> list[Hit]:
    place = _place(connection, chat, window)
    if place is None:
        return []
    wanted = asked(question, place.years, cut)
    finds = _finds(connection, place, wanted, _named(connection, place, question))
    parts = finds.best(window.hidden)
    texts = {row["id"]: fold(row["text"]) for row in _texts(connection, place, parts)}
    mean = max(1.0, sum(map(len, texts.values())) / max(1, len(texts)))
    hits = [
        Hit(row, gain(len(text) / mean, MESSAGE_LENGTH_SHARE) * weight)
        for row, text in texts.items()
        if (weight := sum(finds.weights[p] for p in parts[row] if _holds(wanted, p, text)))
    ]
    return sorted(hits, key=lambda hit: (-hit.score, -hit.row_id))[:limit]


def _holds(wanted: Asked, part: int, text: str) -> bool:
    """Whether a text has a part of the question. Longer phrases were looked up by their pairs."""
    if part >= len(wanted.phrases) or wanted.phrases[part].is_word:
        return True
    return wanted.phrases[part].text in text


def _finds(
    connection: sqlite3.Connection, place: _Place, wanted: Asked, named: Mapping[int, str]
) -> _Finds:
    """Look up each part of a question: its phrases, whom it names, the days that it names.

    Whom and when counts where something else fits as well, unless nothing else is asked.
    """
    look = _Look(connection, place)
    matches = {p.text: _phrase_match(place.chat_id, p) for p in wanted.phrases}
    for match in matches.values():
        look.up([match], 1.0)
    about = [
        match for text, match in matches.items() if not any(text in name for name in named.values())
    ]
    rest = [f"({' OR '.join(f'({match})' for match in about)})"] if about else []
    for member_id in named:
        look.up([all_of([sender_token(place.chat_id, member_id)]), *rest], SENDER_WEIGHT)
    if wanted.days:
        days = any_of(day_token(place.chat_id, day) for day in wanted.days)
        look.up([days, *rest], DAY_WEIGHT)
    return look.finds


def _phrase_match(chat_id: int, phrase: Phrase) -> str:
    if phrase.is_word:
        return all_of([word_token(chat_id, phrase.text)])
    return all_of(keyword_tokens(chat_id, phrase.text))


class _Look:
    """Looks parts of a question up, one after the other."""

    def __init__(self, connection: sqlite3.Connection, place: _Place) -> None:
        self.finds = _Finds()
        self._connection = connection
        self._narrowing = place.narrowing()
        self._density = _Density(connection, place)

    def up(self, parts: Sequence[str], weight: float) -> None:
        """Look for the newest that match everything."""
        match = " AND ".join([*parts, *self._narrowing])
        rows = _matches(self._connection, match, MAX_OF_PHRASE, END_OF_TIME)
        tells = rarity(self._density.count(rows), self._density.total)
        self.finds.rows.append(rows)
        self.finds.weights.append(weight * tells)


class _Density:
    """About how many messages there are of a kind, where counting them would take long."""

    def __init__(self, connection: sqlite3.Connection, place: _Place) -> None:
        self._connection = connection
        [row] = run(connection, (_sql.sample, {"chat_id": place.chat_id, "limit": SAMPLE}))
        self._newest = place.newest
        self._span = max(1, place.newest - place.oldest)
        count = row["count"]
        self.total = count if count < SAMPLE else self._extended(count, row["oldest"])

    def count(self, rows: Sequence[int]) -> float:
        """Return about how many there are, of which some are the newest."""
        if len(rows) < MAX_OF_PHRASE:
            return len(rows)
        [row] = run(self._connection, (_sql.times, {"ids": json.dumps(rows[-1:])}))
        return min(self.total, self._extended(len(rows), row["sent_at"]))

    def _extended(self, count: int, since: int) -> float:
        return count * max(1.0, self._span / max(1, self._newest - since))


def _named(connection: sqlite3.Connection, place: _Place, question: str) -> dict[int, str]:
    """Return the members whom a question names, each with the name, folded.

    A longer name hides one within it.
    """
    text = question.encode("utf-8", "ignore").decode("utf-8")
    rows = run(connection, (_sql.named, {"chat_id": place.chat_id, "text": text}))
    names = {fold(row["name"]) for row in rows}
    hidden = {name for name in names for other in names if name != other and name in other}
    named = {row["member_id"]: fold(row["name"]) for row in rows}
    shown = [(member_id, name) for member_id, name in named.items() if name not in hidden]
    return dict(shown[:MAX_NAMED])

"""Prefetch: what of memory bears on a message, before a model is asked.

See ``docs/memory.md``, "Recall pack".
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from bot.app import App
from bot.clock import local_date
from bot.embed import question_vector
from bot.memory.pack import (
    FLOOR,
    ContextPack,
    Recalled,
    TokenBudget,
    most_recalled,
    pack,
    recency,
    score,
)
from bot.memory.policy import DAY_MS, MemoryPolicy, policy
from bot.model import Chat, entry_label
from bot.search.alike import BUNDLED, OPEN
from bot.store.entry_search import Candidate, bearing, candidates
from bot.store.entry_vectors import Meaning
from bot.store.reach import readable_call, readable_of
from bot.store.sqlite import Call, run, visit


@dataclass(frozen=True, slots=True)
class Recall:
    """By what a pack is made of candidates."""

    policy: MemoryPolicy
    zone: ZoneInfo
    now: int
    """UTC milliseconds."""


async def prefetch(
    app: App,
    chat: Chat,
    user_id: str,
    query: str,
    budget: TokenBudget,
    *,
    shown: frozenset[int] = frozenset(),
) -> ContextPack:
    """Return what a turn should be reminded of, within a budget.

    Nothing is asked if nothing may be packed: with a budget of 0, or while ``memoryEnabled`` is
    off. That an entry was used is for the caller to count, once the prompt is sent.

    Args:
        app: the program.
        chat: where the turn is.
        user_id: its sender.
        query: what is to be answered, raw.
        budget: what the rendered pack may cost.
        shown: the rows of the entries that the prompt shows already.
    """
    settings = app.settings.of(chat)
    if budget.tokens <= 0 or not settings.memory_enabled:
        return ContextPack()
    found = await _candidates(app, chat, user_id, query, most_recalled(budget.tokens))
    recall = Recall(policy(settings.memory_policy), app.config.timezone, app.clock.now())
    return pack_of(found, recall, budget, shown=shown)


async def fitting(app: App, chat: Chat, user_id: str, query: str, limit: int) -> list[Candidate]:
    """Return the entries that fit a question, of what a turn may read, the best first.

    What is packed whatever it says, pins and working notes, is here only if it fits as well.
    """
    if not app.settings.of(chat).memory_enabled:
        return []
    found = await _candidates(app, chat, user_id, query, limit)
    fits = [one for one in found if one.keyword > 0]
    return sorted(fits, key=lambda one: (-one.keyword, -one.row_id))[:limit]


async def related(app: App, chat: Chat, user_id: str, query: str, limit: int) -> list[Candidate]:
    """Return the entries that fit a question by words or meaning, of what a turn may read.

    It may wait for an embedder, so it is for those who have time: not on the way of a message.
    Without a vector of the question, words alone decide.

    Args:
        app: the program.
        chat: where the turn is.
        user_id: its sender.
        query: raw.
        limit: of what fits by words so many at most, and of what is near in meaning as many.
    """
    if not app.settings.of(chat).memory_enabled:
        return []
    vector, embedder = await question_vector(app, chat, query), app.embedder
    meaning = None
    if vector is not None and embedder is not None:
        meaning = Meaning(embedder.id, vector), OPEN if embedder.is_remote else BUNDLED
    call = _readable_call(app, chat, user_id)

    def work(connection: sqlite3.Connection) -> list[Candidate]:
        streams = readable_of(run(connection, call), chat.bot_id)
        return bearing(connection, streams, query, meaning, limit)

    async with app.db.reader() as connection:
        return await visit(connection, work)


async def _candidates(
    app: App, chat: Chat, user_id: str, query: str, limit: int
) -> list[Candidate]:
    call = _readable_call(app, chat, user_id)

    def work(connection: sqlite3.Connection) -> list[Candidate]:
        streams = readable_of(run(connection, call), chat.bot_id)
        return candidates(connection, streams, query, limit)

    async with app.db.reader() as connection:
        return await visit(connection, work)


def _readable_call(app: App, chat: Chat, user_id: str) -> Call:
    cross_group = app.settings.of(chat).memory_member_cross_group
    return readable_call(chat, user_id, cross_group=cross_group)


def pack_of(
    found: Iterable[Candidate],
    recall: Recall,
    budget: TokenBudget,
    *,
    shown: frozenset[int] = frozenset(),
) -> ContextPack:
    """Return the pack of some candidates; it asks nothing."""
    return pack([_recalled(one, recall) for one in found], budget, shown)


def _recalled(found: Candidate, recall: Recall) -> Recalled:
    said_at = _said_at(found, recall.zone)
    age_ms, half_life_ms = recall.now - said_at, recall.policy.half_life_days * DAY_MS
    scored = partial(
        score,
        recall.policy.weights,
        recency=recency(age_ms, half_life_ms),
        keyword=found.keyword,
    )
    return Recalled(
        row_id=found.row_id,
        word=_word(found),
        label=entry_label(found.number),
        text=found.text,
        score=scored(vector=found.vector),
        day=found.date or local_date(said_at, recall.zone),
        said_at=said_at,
        is_pinned=found.pinned,
        is_note=found.tier == "working" and found.document == "note",
        fits=found.vector is not None and scored() >= FLOOR,
    )


def _said_at(found: Candidate, zone: ZoneInfo) -> int:
    """Return when an entry was last said; of one of some day, no later than the end of that day."""
    if found.date is None:
        return found.updated_at
    try:
        following = date.fromisoformat(found.date) + timedelta(days=1)
    except (ValueError, OverflowError):
        return found.updated_at
    end = datetime.combine(following, time(), zone)
    return min(found.updated_at, round(end.timestamp() * 1000))


def _word(found: Candidate) -> str:
    """Return what an entry is. In a group the person and the group both have profiles and notes."""
    is_shared = found.place == "group" and found.document in ("profile", "note")
    return f"group-{found.document}" if is_shared else found.document

"""Search messages: what of a chat answers a question, or was said last, or around something.

See ``docs/search.md``, "Ranking messages" and "Context". It is this
chat's alone: every query has the chat as a condition.
"""

import asyncio
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bot.app import App
from bot.embed import question_vector
from bot.model import Chat, StoredMessage
from bot.search.asking import asked
from bot.search.context import REACH_AHEAD, REACH_BACK, context
from bot.search.hybrid import BUNDLED, FOLLOWED, OPEN, Likeness, Query, Scored, Weights, ranked
from bot.search.matrix import ChatMatrix, Narrowing, Near, Page
from bot.search.segment import cut
from bot.search.vectors import restored, sketches
from bot.search.wanted import wanted
from bot.store.message_search import Window, lexical_hits
from bot.store.messages import by_rows_call, chat_row, stored_message
from bot.store.sqlite import run, visit
from bot.store.stretches import Reach, latest, quoted, stretches
from bot.store.vectors import Space, member_row, pages_since, space_in_use, vectors_of

PAGES_AT_ONCE = 1_000
"""So many pages are read at a time, about 6 MB."""

NEAR = 500
"""So many messages whose sketches are near are compared exactly."""

WORDY = 200
"""So many messages with words of the question are looked at."""

OWN = 50
"""So many of their own messages are looked at for somebody who asks about themself."""

OWN_ANCHORS = 10

ANCHORS = 40
"""Around so many of the likeliest messages the chat is read."""

LED = 3
"""So many messages before them are read, on which they may rest."""

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message that was found."""

    stored: StoredMessage
    score: float
    """Higher is better; of one search only."""
    context: tuple[StoredMessage, ...]
    """What helps to understand it, oldest first."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found."""

    hits: list[FoundMessage]
    """The best first."""
    is_lexical_only: bool
    """There were no vectors to search by: only what has words of the question was found."""


@dataclass(frozen=True, slots=True)
class _Dense:
    """What vectors tell of a question."""

    space: Space
    vector: Vector
    cosines: Mapping[int, float]
    usual: float
    own_rows: frozenset[int] = frozenset()
    """Of the asker, if they ask about themself."""


@dataclass(frozen=True, slots=True)
class _Words:
    """What words tell of a question."""

    scores: dict[int, float]
    own_rows: frozenset[int] = frozenset()
    """Of the asker, if they ask about themself."""


async def search_messages(
    app: App, chat: Chat, asker_id: str, question: str, window: Window, limit: int
) -> Found:
    """Return what of a chat answers a question best; nothing if nothing bears on it.

    Args:
        app: the program.
        chat: the only one that is looked into.
        asker_id: who asks; ``""`` for nobody in particular.
        question: raw.
        window: what of the chat may be found.
        limit: how many at most.
    """
    chat_id = await chat_row(app.db, chat)
    if chat_id is None or not question.strip():
        return Found([], app.embedder is None)
    own_window = _own_window(asker_id, question, window)
    dense, words = await asyncio.gather(
        _dense(app, chat, chat_id, question, window, own_window),
        _words(app, chat, question, window, own_window),
    )
    cosines, usual = (dense.cosines, dense.usual) if dense else ({}, 0.0)
    likeness, weights = Likeness(cosines, usual, words.scores), weights_of(app)
    own = words.own_rows | (dense.own_rows if dense else frozenset())
    around = await _around(app, chat, chat_id, _anchors(likeness, weights, own))
    if dense is not None:
        likeness = await _completed(app, likeness, dense, around)
    phrases = tuple(phrase.text for phrase in asked(question, (), cut).phrases)
    query = Query(question, phrases, asker_id)
    found = ranked(query, around, likeness, weights, app.clock.now())
    best = [one for one in found if _may_be_found(one.stored, window)][:limit]
    return Found(await _with_context(app, chat, chat_id, best, window), dense is None)


def _anchors(likeness: Likeness, weights: Weights, own: frozenset[int]) -> list[int]:
    """Return the likeliest messages, those of whoever asks about themself apart."""
    rows = {*likeness.dense, *likeness.lexical}
    likely = likeness.likeliest(rows, weights, ANCHORS)
    return list(dict.fromkeys([*likely, *likeness.likeliest(own & rows, weights, OWN_ANCHORS)]))


def _own_window(asker_id: str, question: str, window: Window) -> Window | None:
    """Return where the asker's own messages are, if they ask about themself.

    In a large group those of others may be as like the question, and so many that none of the
    asker's would be among the first.
    """
    is_own = asker_id and window.sender_id is None and wanted(question, ()).is_of_self
    return replace(window, sender_id=asker_id) if is_own else None


async def _words(
    app: App, chat: Chat, question: str, window: Window, own_window: Window | None
) -> _Words:
    """Return scores of messages that have words of a question."""
    hits = await lexical_hits(app.db, chat, question, window, WORDY)
    scores = {hit.row_id: hit.score for hit in hits}
    if own_window is None or not hits:
        return _Words(scores)
    own = await lexical_hits(app.db, chat, question, own_window, OWN)
    # Scores of two searches are not of one measure; these rank behind all of the first.
    rest = {hit.row_id: hits[-1].score for hit in own}
    return _Words({**rest, **scores}, frozenset(rest))


def weights_of(app: App) -> Weights:
    """Return what counts how much with the embedder that is set."""
    return OPEN if app.embedder is not None and app.embedder.is_remote else BUNDLED


def _may_be_found(stored: StoredMessage, window: Window) -> bool:
    message = stored.message
    if window.sender_id not in (None, message.sender.user_id):
        return False
    is_in_time = window.begins_at <= message.sent_at < window.ends_at
    return is_in_time and stored.row_id not in window.hidden


# --- vectors ----------------------------------------------------------------------------------


async def _dense(
    app: App,
    chat: Chat,
    chat_id: int,
    question: str,
    window: Window,
    own_window: Window | None,
) -> _Dense | None:
    """Return the messages nearest to a question, ``None`` if there are no vectors to go by."""
    vector = await question_vector(app, chat, question)
    if vector is None or app.embedder is None:
        return None
    space = await space_in_use(app.db, app.embedder.id, len(vector))
    narrowing = await _narrowing(app, chat, window)
    if space is None or narrowing is None:
        return None
    near = await _near(app, space, chat_id, vector, narrowing, NEAR)
    own = await _narrowing(app, chat, own_window) if own_window is not None else None
    own_rows = (
        frozenset((await _near(app, space, chat_id, vector, own, OWN)).row_ids)
        if own is not None
        else frozenset()
    )
    rows = own_rows.union(near.row_ids) - window.hidden
    cosines = await _cosines(app, space, vector, rows)
    return _Dense(space, vector, cosines, near.usual, own_rows) if cosines else None


async def _narrowing(app: App, chat: Chat, window: Window) -> Narrowing | None:
    """Return a window in rows, ``None`` if its sender is nobody."""
    member_id = None
    if window.sender_id is not None:
        member_id = await member_row(app.db, chat.bot_id, window.sender_id)
        if member_id is None:
            return None
    return Narrowing(member_id, window.begins_at, window.ends_at)


async def _near(
    app: App, space: Space, chat_id: int, vector: Vector, narrowing: Narrowing, count: int
) -> Near:
    matrix = app.matrices.of(space.id, chat_id)
    async with matrix.lock:
        await _caught_up(app, space, chat_id, matrix)

        def work() -> Near:
            sides = app.matrices.planes(len(vector))
            [sketch] = sketches(vector[None, :], sides)
            return matrix.nearest(sketch, narrowing, count)

        near = await asyncio.to_thread(work)
    app.matrices.trim()
    return near


async def _caught_up(app: App, space: Space, chat_id: int, matrix: ChatMatrix) -> None:
    """Take in what changed since the chat was searched last; the first time, all of it."""
    while pages := await pages_since(app.db, space.id, chat_id, matrix.seen, PAGES_AT_ONCE):
        taken = [Page(page.id, page.changed, page.slots) for page in pages]
        await asyncio.to_thread(matrix.take, taken)


async def _cosines(
    app: App, space: Space, vector: Vector, rows: Collection[int]
) -> dict[int, float]:
    stored = await vectors_of(app.db, space.id, rows)
    if not stored:
        return {}
    cosines = restored(stored.values(), space.dimensions) @ vector
    return dict(zip(stored, map(float, cosines), strict=True))


async def _completed(
    app: App, likeness: Likeness, dense: _Dense, around: Iterable[Sequence[StoredMessage]]
) -> Likeness:
    """Return a likeness that knows the vectors of all that is ranked."""
    rows = {stored.row_id for stretch in around for stored in stretch}
    missing = rows - likeness.dense.keys()
    more = await _cosines(app, dense.space, dense.vector, missing)
    return replace(likeness, dense={**likeness.dense, **more})


# --- what stands around -----------------------------------------------------------------------


async def _around(
    app: App, chat: Chat, chat_id: int, rows: Collection[int]
) -> list[list[StoredMessage]]:
    reach = Reach(LED, FOLLOWED)
    async with app.db.reader() as connection:
        found = await visit(connection, lambda c: stretches(c, chat, chat_id, rows, reach))
    return list(found.values())


async def _with_context(
    app: App, chat: Chat, chat_id: int, best: Sequence[Scored], window: Window
) -> list[FoundMessage]:
    scores = {one.stored.row_id: one.score for one in best}

    def work(connection: sqlite3.Connection) -> list[FoundMessage]:
        return _found(connection, chat, chat_id, scores, window)

    async with app.db.reader() as connection:
        return await visit(connection, work)


def _found(
    connection: sqlite3.Connection,
    chat: Chat,
    chat_id: int,
    scores: Mapping[int, float],
    window: Window,
) -> list[FoundMessage]:
    """Return messages in full with their context, in the order of ``scores``."""
    around = stretches(connection, chat, chat_id, scores, Reach(REACH_BACK, REACH_AHEAD))
    whole = {row["id"]: stored_message(row, chat) for row in run(connection, by_rows_call(around))}
    found: list[FoundMessage] = []
    for row_id, score in scores.items():
        if row_id not in whole:
            continue
        told = quoted(connection, chat, chat_id, whole[row_id])
        near = context(row_id, around[row_id], told)
        shown = tuple(one for one in near if _may_be_shown(one, window))
        found.append(FoundMessage(whole[row_id], score, shown))
    return found


def _may_be_shown(stored: StoredMessage, window: Window) -> bool:
    """Whether a message may be context: anybody's, but nothing from before a reset."""
    is_known = stored.row_id in window.hidden
    return not is_known and (window.since is not None or stored.message.sent_at > window.not_before)


async def latest_messages(app: App, chat: Chat, window: Window, limit: int) -> list[StoredMessage]:
    """Return the newest messages of a chat within a window, the newest first."""
    chat_id = await chat_row(app.db, chat)
    if chat_id is None:
        return []
    async with app.db.reader() as connection:
        rows = await visit(connection, lambda c: latest(c, chat_id, window, limit))
    return [stored_message(row, chat) for row in rows]


async def messages_around(
    app: App, chat: Chat, row_id: int, window: Window, *, back: int = 6, ahead: int = 6
) -> list[StoredMessage]:
    """Return a message of a chat with what was said around it, oldest first.

    Nothing if it is of another chat, was recalled or forgotten, or may not be found.
    """
    chat_id = await chat_row(app.db, chat)
    if chat_id is None:
        return []
    reach = Reach(back, ahead)
    async with app.db.reader() as connection:
        found = await visit(connection, lambda c: stretches(c, chat, chat_id, [row_id], reach))
    stretch = found.get(row_id, [])
    is_open = any(s.row_id == row_id and _may_be_found(s, window) for s in stretch)
    return [s for s in stretch if _may_be_shown(s, window)] if is_open else []

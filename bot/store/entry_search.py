"""What of memory has to do with a question, of what a turn may read; and that it was used.

See ``docs/search.md``, "The search of entries", and ``docs/memory.md``, "What a turn may read".
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import aiosqlite

from bot.model import Document, Tier
from bot.search.alike import NEAR, Scale, nearness
from bot.search.ranking import coverage
from bot.search.tokens import any_of, holders, in_pairs, is_exact, question_phrases
from bot.store.database import Database
from bot.store.entry_vectors import Meaning, cosines
from bot.store.queries import load
from bot.store.reach import Place, Readable
from bot.store.sqlite import Call, run

MAX_FOUND = 200
"""So many entries are ranked, the newest that match."""

MIN_FIT = 0.15
"""What has less of a question than this, by weight, has nothing to do with it."""

_sql = load("entry_search")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry that a turn may read and that may go into its pack."""

    row_id: int
    number: int
    """A counter within the scope; ``entry_label`` shows it."""
    document: Document
    tier: Tier
    date: str | None
    """For ``daily`` and ``memory``: the local day."""
    text: str
    pinned: bool
    updated_at: int
    """UTC milliseconds."""
    place: Place
    keyword: float
    """How much of the question it answers to, from 0 for nothing to 1; see ``coverage``."""
    vector: float | None = None
    """How near it is in meaning, from 0 to 1; ``None`` if that is not known."""


def candidates(
    connection: sqlite3.Connection, readable: Sequence[Readable], query: str, limit: int
) -> list[Candidate]:
    """Return what may be packed, in no order: pins, working notes, and what fits a question best.

    For a visit that asks more; it runs in the connection's thread.

    Args:
        connection: one that reads.
        readable: the streams that the turn may read, by ``bot.store.reach``.
        query: what was said, raw.
        limit: of what fits the question so many at most; pins and notes are apart.
    """
    if not readable:
        return []
    streams = _streams(readable)
    found = _found(connection, readable, streams, query)
    rows = run(connection, _candidates_call(streams, _best(found, limit)))
    return [_candidate(row, found.get(row["id"], 0.0)) for row in rows]


def bearing(
    connection: sqlite3.Connection,
    readable: Sequence[Readable],
    query: str,
    meaning: tuple[Meaning, Scale] | None,
    limit: int,
) -> list[Candidate]:
    """Return what fits a question by its words or is near to it in meaning, in no order.

    Pins and working notes are among it only if they do. For a visit, like ``candidates``.

    Args:
        connection: one that reads.
        readable: the streams that the turn may read, by ``bot.store.reach``.
        query: what was said, raw.
        meaning: what it means, and what cosines tell; ``None``: words alone.
        limit: of what fits so many at most, and of what is near as many.
    """
    if not readable:
        return []
    streams = _streams(readable)
    fits = _found(connection, readable, streams, query)
    near: dict[int, float] = {}
    if meaning is not None:
        asked, scale = meaning
        near = nearness(cosines(connection, streams, list(fits), asked), scale)
    nearest = _best({row_id: one for row_id, one in near.items() if one >= NEAR}, limit)
    chosen = {*_best(fits, limit), *nearest}
    rows = run(connection, _candidates_call(streams, chosen))
    return [
        replace(_candidate(row, fits.get(row["id"], 0.0)), vector=near.get(row["id"]))
        for row in rows
        if row["id"] in chosen
    ]


def _streams(readable: Iterable[Readable]) -> str:
    return json.dumps([(stream.row_id, stream.place) for stream in readable])


def _best(scores: Mapping[int, float], limit: int) -> list[int]:
    return sorted(scores, key=lambda row_id: (-scores[row_id], -row_id))[:limit]


def _candidates_call(streams: str, chosen: Iterable[int]) -> Call:
    return (_sql.candidates, {"streams": streams, "found": json.dumps(list(chosen))})


def _found(
    connection: sqlite3.Connection, readable: Sequence[Readable], streams: str, query: str
) -> dict[int, float]:
    """Return how well entries fit, by their rows. Nothing that may not be read counts for it."""

    def words_of(phrases: Sequence[str]) -> dict[int, str]:
        asked = {"streams": streams, "match": _match(readable, phrases), "limit": MAX_FOUND}
        return {row["id"]: f" {row['words']} " for row in run(connection, (_sql.hits, asked))}

    phrases = question_phrases(query)
    words = words_of(phrases) if phrases else {}
    if not words:
        return {}
    [[total]] = run(connection, (_sql.total, {"streams": streams}))
    hits = [
        (number, row_id)
        for number, phrase in enumerate(phrases)
        # Which forms a word has is known to the index alone.
        for row_id in (holders(phrase, words) if is_exact(phrase) else words_of([phrase]))
    ]
    lengths = {row_id: len(of_row) for row_id, of_row in words.items()}
    fits = coverage([hit for hit in hits if hit[1] in lengths], lengths, total)
    return {row_id: fit for row_id, fit in fits.items() if fit >= MIN_FIT}


def _match(readable: Iterable[Readable], phrases: Iterable[str]) -> str:
    """Return the MATCH expression for entries of some streams that have any of some phrases.

    Pairs name their stream themselves; what is no pair is looked up beside the stream's word.
    """
    streams = [f"s{stream.row_id}" for stream in readable]
    in_streams: list[str] = []
    as_words: list[str] = []
    for phrase in phrases:
        pairs = [in_pairs(phrase, stream) for stream in streams]
        if all(pairs):
            in_streams += pairs
        else:
            as_words.append(phrase)
    parts = [f"pairs : ({any_of(in_streams)})"] if in_streams else []
    if as_words:
        parts.append(f"(stream : ({any_of(streams)}) AND words : ({any_of(as_words)}))")
    return any_of(parts)


def _candidate(row: sqlite3.Row, keyword: float) -> Candidate:
    names = ("number", "document", "tier", "date", "text", "updated_at", "place")
    fields: dict[str, Any] = {name: row[name] for name in names}
    return Candidate(
        row_id=row["id"], pinned=bool(row["pinned"]), keyword=min(1.0, keyword), **fields
    )


async def count_uses(tx: aiosqlite.Connection, row_ids: Iterable[int], local_date: str) -> None:
    """Count that entries were packed: once a local day for each, however often.

    Args:
        tx: the write transaction.
        row_ids: the rows of the entries that a sent prompt showed.
        local_date: today, ``YYYY-MM-DD``.
    """
    await _sql.count_uses(tx, row_ids=json.dumps(list(row_ids)), local_date=local_date)


async def evidence(db: Database, row_ids: Iterable[int]) -> list[int]:
    """Return the rows of the messages that some entries rest on, by the entries' rows."""
    async with db.reader() as connection:
        found = _sql.evidence(connection, row_ids=json.dumps(list(row_ids)))
        return [row["message_id"] async for row in found]

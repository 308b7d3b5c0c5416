"""Consolidate: notes rise, end or are folded; never inside of a turn.

By command, by whoever calls it, and once a night. See ``docs/memory.md``, "Tiers".
"""

import sqlite3
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import aiosqlite
from loguru import logger

from bot.app import App
from bot.clock import local_time
from bot.errors import StoreBusy
from bot.memory.policy import MemoryPolicy, policy
from bot.memory.tiers import Consolidation, Fold, compact_working, consolidated
from bot.model import Chat, Stream
from bot.store.alerts import claim_alert
from bot.store.memory import Shape, StreamWriter, living_entries, rewrite
from bot.store.notes import streams_with_notes
from bot.store.revisions import drop_old_revisions

WHY = "consolidate"
NIGHT_HOUR = 4
"""The local hour at which the daily work is done."""


@dataclass(frozen=True, slots=True)
class Tidied:
    """What became of notes."""

    promoted: int = 0
    expired: int = 0
    folded: int = 0
    """How many went into others."""
    folds: int = 0
    """How many came of them."""
    failed: int = 0
    """In how many streams nothing could be done."""

    def __add__(self, other: "Tidied") -> "Tidied":
        return Tidied(
            self.promoted + other.promoted,
            self.expired + other.expired,
            self.folded + other.folded,
            self.folds + other.folds,
            self.failed + other.failed,
        )


async def consolidate(app: App, chat: Chat | None = None, *, by: str = WHY) -> Tidied:
    """Let the notes of a chat, or of all, rise, then expire, then be folded.

    Each stream is a transaction of its own, with a revision. Where memory is switched off nothing
    changes. One that cannot be read or written is logged and left as it is.

    Raises:
        StoreBusy: another process holds the write lock; streams before it are done.
    """
    tidied = Tidied()
    for stream in await streams_with_notes(app.db, chat):
        if app.settings.of(stream.origin).memory_enabled:
            try:
                tidied += await _tidied(app, stream, by)
            except sqlite3.Error as error:
                cause = type(error).__name__
                logger.error("notes of {} stay as they are: {}: {}", stream, cause, error)
                tidied += Tidied(failed=1)
    return tidied


async def _tidied(app: App, stream: Stream, by: str) -> Tidied:
    rules = policy(app.settings.of(stream.origin).memory_policy)
    async with app.db.transaction() as tx:
        return await _tidy(tx, stream, rules, app.clock.now(), by)


async def _tidy(
    tx: aiosqlite.Connection, stream: Stream, rules: MemoryPolicy, now: int, by: str
) -> Tidied:
    entries = await living_entries(tx, stream)
    fate = consolidated(entries, rules, now)
    moved = {rise.entry.number for rise in fate.promoted}
    moved |= {entry.number for entry in fate.expired}
    fold = compact_working(entry for entry in entries if entry.number not in moved)
    await rewrite(tx, {stream: partial(_write, fate=fate, fold=fold)}, at=now, by=by, why=WHY)
    return Tidied(
        promoted=len(fate.promoted),
        expired=len(fate.expired),
        folded=len(fold.sources) if fold else 0,
        folds=1 if fold else 0,
    )


def _write(writer: StreamWriter, *, fate: Consolidation, fold: Fold | None) -> None:
    for rise in fate.promoted:
        shape = Shape(rise.document, rise.type, rise.tier, rise.entry.pinned)
        writer.reshape(rise.entry.number, shape)
    for entry in fate.expired:
        writer.end(entry.number, "expired", "")
    if fold:
        numbers = [entry.number for entry in fold.sources]
        writer.compress(fold.text, None, numbers, document="note", source_task=WHY)
        for number in numbers:
            writer.end(number, "compressed", "")


def last_night(now: int, zone: ZoneInfo) -> int:
    """Return when the daily work was due last, UTC milliseconds as ``now``."""
    local = local_time(now, zone)
    night = datetime.combine(local.date(), time(NIGHT_HOUR), zone)
    if night > local:
        night = datetime.combine(local.date() - timedelta(days=1), time(NIGHT_HOUR), zone)
    return round(night.timestamp() * 1000)


async def tend(app: App) -> bool:
    """Do the daily work, unless it was done since last night; say whether it was done now.

    Notes are consolidated, changes that are 180 days old can be undone no more, and the store's log
    is emptied.
    """
    now = app.clock.now()
    try:
        async with app.db.transaction() as tx:
            night = last_night(now, app.config.timezone)
            if not await claim_alert(tx, "nightly", at=now, due_before=night):
                return False
            dropped = await drop_old_revisions(tx, now)
        tidied = await consolidate(app)
        await app.db.empty_log()
    except StoreBusy as error:
        logger.warning("the daily work on memory waits for the next night: {}", error)
        return False
    logger.info("daily work on memory: {}, {} old revisions removed", tidied, dropped)
    return True

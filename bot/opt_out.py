"""Opt out: somebody is not recorded any more, and what is kept of them is erased.

See ``docs/memory.md``, "Opting out".
"""

import asyncio
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from loguru import logger

from bot.app import App
from bot.errors import QunyiError
from bot.model import Chat, Member, Scope, Shown
from bot.store.erasing import (
    Erasure,
    Hidden,
    Span,
    blank_record,
    chats_of,
    erase_kept,
    erase_lot,
    erase_quotes,
    hidden_members,
    hidden_of,
    kept_too_long,
    leaning_span,
    next_span,
    quoting_span,
    scrub_entries,
    streams_in,
)
from bot.store.ingest import KEPT_MS
from bot.store.messages import Heard

LOT_ROWS = 64
"""So many messages are erased in one transaction."""

FIRST_MESSAGES = 1_000
"""Once so many messages are erased on which no memory rests, who opts out is told; the rest
follows."""

PAUSE_SECONDS = 0.02
"""Between two transactions, so that messages that arrive do not wait for all of them."""

LONGEST_SEND_MS = 3_600_000
"""No answer that goes out while somebody's messages are erased was begun longer before."""


@dataclass(frozen=True, slots=True)
class Erased:
    """What erasing came to so far."""

    messages: int = 0
    """How many lost their text."""
    entries: int = 0
    """How many remembered lines fell."""
    is_whole: bool = True
    """Whether nothing is left to erase; what is left is hidden."""


@dataclass(frozen=True, slots=True)
class _Fallen:
    """Somebody on whose hidden messages nothing rests any more; the rest of them is to be swept."""

    hidden: Hidden
    chats: dict[int, Chat]
    """Where they ever spoke, by row."""
    done: Erasure
    texts: frozenset[str]
    """What was erased so far, as answers might repeat it."""
    since: int
    """When it began, UTC milliseconds."""


async def opt_out(app: App, member: Member) -> Erased:
    """Record somebody no more, hide all that is stored of theirs at once, and begin to erase it.

    What memory and conversations made of it falls before this returns, and no turn begins
    meanwhile; if the rest is much, it is erased beside.
    """
    fallen = await app.lasting.keep(partial(_hide, app, member))
    if fallen is None:
        return Erased()
    erased = await _sweep(app, fallen, FIRST_MESSAGES)
    if not erased.is_whole:
        app.errands.begin(erase_hidden(app))
    return erased


async def go_on_erasing(app: App, member: Member) -> bool:
    """Begin again to erase what is still hidden of somebody, as after an error; false if nothing
    is."""
    if await hidden_of(app.db, member) is None:
        return False
    app.errands.begin(erase_hidden(app))
    return True


async def opt_in(app: App, member: Member) -> bool:
    """Record somebody again from now on; false if they were recorded."""
    return await app.opt_outs.remove(member)


async def erase_hidden(app: App) -> None:
    """Erase what is hidden of everybody who opted out; a start goes on where the last run ended.

    Errors end here: whatever is left stays hidden.
    """
    try:
        # At a start no turn begins before: what conversations show of anybody falls first.
        for fallen in await app.lasting.keep(partial(_let_all_fall, app)):
            erased = await _sweep(app, fallen)
            logger.info("{} more messages of somebody who opted out are erased", erased.messages)
    except (QunyiError, sqlite3.Error) as error:
        cause = type(error).__name__
        logger.error(
            "erasing what is hidden goes on when asked, or at a start: {}: {}", cause, error
        )


async def _hide(app: App, member: Member) -> _Fallen | None:
    await app.opt_outs.add(member, at=app.clock.now())
    hidden = await hidden_of(app.db, member)
    return await _let_fall(app, hidden) if hidden else None


async def _let_all_fall(app: App) -> list[_Fallen]:
    return [await _let_fall(app, hidden) for hidden in await hidden_members(app.db)]


async def _let_fall(app: App, hidden: Hidden) -> _Fallen:
    """Erase of what is hidden of somebody that on which memory and conversations rest."""
    since, member = app.clock.now(), hidden.member
    chats = await chats_of(app.db, hidden)
    # A turn in the making that shows something of theirs begins again, and finds it no more.
    scope = Scope(member.bot_id, "member", member.user_id)
    app.floor.renew_shown(Shown(frozenset(chats.values()), frozenset([scope])))
    done, texts = Erasure(), frozenset[str]()
    for chat_id, chat in chats.items():
        leaning = await leaning_span(app.db, hidden, chat_id, chats)
        texts |= leaning.texts
        done += await _erase_span(app, hidden, leaning, in_memory=True)
        # One that had begun before may have read what the conversation still showed.
        app.floor.renew_memory(chat)
    return _Fallen(hidden, chats, done, texts, since)


async def _sweep(app: App, fallen: _Fallen, enough: int | None = None) -> Erased:
    """Erase what else is hidden of somebody: the record of changes, then row by row."""
    hidden, chats = fallen.hidden, fallen.chats
    for chat_id in chats:
        await _blank_records(app, hidden, chat_id)
    await app.patience.until_done(partial(scrub_entries, app.db))
    swept, texts, is_whole = Erasure(), fallen.texts, True
    while (left := await hidden_of(app.db, hidden.member)) is not None:
        # Who opts out again meanwhile has that done apart.
        is_enough = enough is not None and swept.messages >= enough
        if left.hidden_until != hidden.hidden_until or is_enough:
            is_whole = False
            break
        span = await next_span(app.db, left, chats)
        texts |= span.texts
        swept += await _erase_span(app, left, span)
    # An answer that was going out all the while was stored behind the look at answers.
    late = Heard(frozenset(chats), fallen.since - LONGEST_SEND_MS)
    swept += await app.patience.until_done(partial(_erase_quotes, app, late, texts))
    if is_whole:
        await app.db.empty_log()
    return _erased(fallen.done + swept, is_whole=is_whole)


async def _erase_quotes(app: App, where: Heard, texts: frozenset[str]) -> Erasure:
    if not (found := await quoting_span(app.db, where, texts)):
        return Erasure()
    async with app.db.transaction() as tx:
        done = await erase_quotes(tx, found, app.clock.now())
    app.floor.renew_shown(done.shown)
    return done


def _erased(done: Erasure, *, is_whole: bool = True) -> Erased:
    return Erased(done.messages, done.entries, is_whole)


async def _erase_span(app: App, hidden: Hidden, span: Span, *, in_memory: bool = False) -> Erasure:
    done = Erasure()
    for lot in span.lots(LOT_ROWS):
        step = partial(_erase_lot, app, hidden, lot, in_memory)
        done += await app.patience.until_done(step)
        await asyncio.sleep(PAUSE_SECONDS)
    return done


async def _erase_lot(app: App, hidden: Hidden, lot: Span, in_memory: bool) -> Erasure:
    async with app.db.transaction() as tx:
        done = await erase_lot(tx, hidden, lot, app.clock.now(), in_memory=in_memory)
    app.floor.renew_shown(done.shown)
    return done


async def _blank_records(app: App, hidden: Hidden, chat_id: int) -> None:
    for stream_id in await streams_in(app.db, chat_id):
        await app.patience.until_done(partial(blank_record, app.db, hidden, stream_id))


async def erase_what_was_kept(app: App) -> int:
    """Erase what was kept for a turn that answered it, once its time is over; return how many."""
    now, count = app.clock.now(), 0
    while due := await kept_too_long(app.db, now=now, longest_ms=KEPT_MS, limit=LOT_ROWS):
        async with app.db.transaction() as tx:
            done = await erase_kept(tx, due, now)
        app.floor.renew_shown(done.shown)
        count += len(due)
        _renew(app, due)
    return count


def _renew(app: App, rows: Mapping[int, Chat]) -> None:
    for row_id, chat in rows.items():
        app.floor.renew(chat, row_id)

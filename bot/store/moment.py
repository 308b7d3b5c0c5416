"""All that a turn has to know of a chat, read in one visit to a connection.

Each visit costs a tenth of a millisecond, most of what a small query takes; a turn asks eight.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bot.conversation.window import is_open_to
from bot.model import Chat, StoredMessage, Turn
from bot.store.chats import name_call, name_of
from bot.store.database import Database
from bot.store.entry_search import Candidate, candidates
from bot.store.messages import (
    by_rows_call,
    kept_call,
    newest_with_id_call,
    quoted_message,
    stored_message,
    told_call,
    told_message,
)
from bot.store.sessions import SessionState, session_call, session_of
from bot.store.snapshots import Recollection, recollection_calls, recollection_of
from bot.store.sqlite import run, visit
from bot.store.turns import TurnLoad, load_call, load_of, recent_call, turns_of
from bot.store.usage import tokens_call


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a turn asks about."""

    chat: Chat
    sender_id: str
    row_ids: Sequence[int]
    """The messages to answer."""
    quoted_ids: Sequence[str]
    """The platform ids that they quote."""
    recent: int
    """Among how many of the newest messages what was said since the last turn is looked for."""
    turns: int
    """How many of the newest turns, whether the window shows them or not."""
    most_turns: int
    """No more of them, however long the window is."""
    now: int
    day_start: int
    """When the local day began, UTC milliseconds as ``now``."""
    started_at: int
    """When the program began. It knows by itself which turns began since."""
    purposes: Sequence[str]
    """Whose tokens of the day are added up."""
    cross_group: bool
    """``memoryMemberCrossGroup``."""
    recalls: int
    """So many entries that bear on the messages are looked for, beside pins and working notes; 0
    looks for none at all."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A chat as it stands when a turn begins."""

    messages: list[StoredMessage]
    """Those to answer as they stand now, recalled ones left out."""
    told: list[StoredMessage]
    """What was said since the last answered turn, recalled messages left out, in no order, without
    their segments."""
    turns: list[Turn]
    """The newest answered ones, oldest first."""
    session: SessionState
    """Which of them the conversation shows, and the summary of those before."""
    load: TurnLoad
    chat_name: str
    tokens: int
    """What the purposes cost since the day began."""
    quotes: list[StoredMessage]
    """The quoted messages that are known, tombstones included."""
    kept: frozenset[int]
    """Rows of people who have opted out, kept for the turn that answers them."""
    recollection: Recollection
    """What the turn may remember."""
    candidates: list[Candidate]
    """Entries that may bear on the messages, in no order."""


async def read_moment(db: Database, wanted: Wanted) -> Moment:
    """Return what a turn has to know."""
    async with db.reader() as connection:
        return await visit(connection, partial(_moment, wanted=wanted))


def _moment(connection: sqlite3.Connection, wanted: Wanted) -> Moment:
    chat, asker = wanted.chat, wanted.sender_id
    session = session_of(run(connection, session_call(chat)))
    calls = (
        by_rows_call(wanted.row_ids, kept=True),
        recent_call(chat, min(max(wanted.turns, session.window_turns), wanted.most_turns)),
        load_call(chat, asker, wanted.now, wanted.day_start, wanted.started_at),
        name_call(chat),
        tokens_call(wanted.day_start, wanted.purposes),
        kept_call(chat),
        *recollection_calls(chat, asker, cross_group=wanted.cross_group),
        *(newest_with_id_call(chat, quoted) for quoted in wanted.quoted_ids),
    )
    rows, turns, load, name, tokens, held, readable, kept, crosses, *quotes = (
        run(connection, call) for call in calls
    )
    recollection = recollection_of(readable, kept, crosses, chat.bot_id)
    query = "\n".join(row["text"] for row in rows)
    known, held_ids = turns_of(turns), frozenset(row["id"] for row in held)
    # Whoever is recorded again is shown no turn that was kept for itself alone.
    reader_id = asker if not held_ids.isdisjoint(wanted.row_ids) else ""
    told = run(connection, told_call(chat, wanted.recent, _since(known, reader_id, held_ids)))
    return Moment(
        messages=[stored_message(row, chat) for row in rows],
        told=[told_message(row, chat) for row in told],
        turns=known,
        session=session,
        load=load_of(load[0]),
        chat_name=name_of(name),
        tokens=tokens[0][0],
        kept=held_ids,
        quotes=[quoted_message(row, chat) for found in quotes for row in found],
        recollection=recollection,
        candidates=_candidates(connection, recollection, query, wanted.recalls),
    )


def _since(turns: Sequence[Turn], reader_id: str, kept: frozenset[int]) -> int:
    """Return behind which row the context begins: the last turn that is shown."""
    shown = (turn.context_until for turn in turns if is_open_to(turn, reader_id, kept))
    return max(shown, default=0)


def _candidates(
    connection: sqlite3.Connection, known: Recollection, query: str, limit: int
) -> list[Candidate]:
    return candidates(connection, known.readable, query, limit) if limit else []


async def remembered_now(
    db: Database, chat: Chat, sender_id: str, query: str, *, cross_group: bool, recalls: int
) -> tuple[Recollection, list[Candidate]]:
    """Return what a turn may remember and what of it may bear on a question, as of one moment.

    Args:
        db: the database.
        chat: where the turn is.
        sender_id: whose it is.
        query: what is asked, raw.
        cross_group: as in ``Wanted``.
        recalls: as in ``Wanted``.
    """

    def work(connection: sqlite3.Connection) -> tuple[Recollection, list[Candidate]]:
        calls = recollection_calls(chat, sender_id, cross_group=cross_group)
        rows = [run(connection, call) for call in calls]
        known = recollection_of(rows[0], rows[1], rows[2], chat.bot_id)
        return known, _candidates(connection, known, query, recalls)

    async with db.reader() as connection:
        return await visit(connection, work)

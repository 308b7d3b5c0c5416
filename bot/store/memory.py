"""Memory: streams, their entries with proofs, summaries and the record of changes.

See ``docs/memory.md``, "Evidence" and "Forgetting".
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal

import aiosqlite

from bot.model import (
    Chat,
    Document,
    Entry,
    ProfileType,
    Scope,
    Shown,
    Stream,
    StreamMemory,
    Summary,
    Tier,
)
from bot.store.database import Database
from bot.store.entry_index import add_to_index, scrub_index
from bot.store.messages import END_OF_TIME, Heard, chat_key, chat_rows, drop_quotes, heard
from bot.store.queries import load
from bot.store.sessions import forget_in_summaries
from bot.store.snapshots import mark_stale_within, mark_streams_stale
from bot.store.sqlite import run, visit

Ending = Literal["superseded", "compressed", "forgotten", "expired"]

NOWHERE = Heard(frozenset(), END_OF_TIME)

_sql = load("memory")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A message that proves something."""

    message_id: int
    platform_id: str
    sender_id: str
    sent_at: int


@dataclass(frozen=True, slots=True)
class Remembered:
    """A stream's memory and who said what it rests on."""

    memory: StreamMemory
    evidence: Mapping[int, Evidence]
    """By message row."""


def stream_key(stream: Stream) -> dict[str, str]:
    """Return the parameters that name a stream in every query."""
    scope = stream.scope
    return {**chat_key(stream.origin), "scope_kind": scope.kind, "key": scope.id}


def _held(connection: sqlite3.Connection, stream: Stream) -> Remembered:
    rows = run(connection, (_sql.stream, stream_key(stream)))
    if not rows:
        return Remembered(StreamMemory(stream), {})
    [row] = rows
    proofs, evidence = _proofs(run(connection, (_sql.proofs_of, {"stream_id": row["id"]})))
    living = run(connection, (_sql.living, {"stream_id": row["id"]}))
    entries = tuple(_entry(stream, one, proofs.get(one["number"], {})) for one in living)
    return Remembered(StreamMemory(stream, entries, Summary(row["summary"])), evidence)


async def remembered(
    connection: aiosqlite.Connection, streams: Iterable[Stream]
) -> list[Remembered]:
    """Return what some streams hold; nothing of one that does not exist yet.

    What a summary was made from grows with every new one and is left out: ``summary_rows``.
    """
    return await visit(connection, lambda within: [_held(within, stream) for stream in streams])


async def read_streams(db: Database, streams: Iterable[Stream]) -> list[Remembered]:
    """Return what some streams hold, read apart from any transaction."""
    async with db.reader() as connection:
        return await remembered(connection, streams)


async def read_stream(db: Database, stream: Stream) -> Remembered:
    """Return what one stream holds, read apart from any transaction."""
    [found] = await read_streams(db, [stream])
    return found


@dataclass(frozen=True, slots=True)
class Proved:
    """One entry and who said what it rests on."""

    entry: Entry
    evidence: Mapping[int, Evidence]
    """By message row."""


async def read_entry(db: Database, stream: Stream, number: int) -> Proved | None:
    """Return the living entry of a stream that has a number, if there is one."""
    queries = (_sql.proofs_of_some, _sql.living_some)
    async with db.reader() as connection:
        return await visit(connection, partial(_one, stream=stream, number=number, queries=queries))


async def read_told(db: Database, stream: Stream, number: int) -> Proved | None:
    """Return the entry of a stream that has a number and still a text, living or ended."""
    queries = (_sql.proofs_of_told, _sql.told_some)
    async with db.reader() as connection:
        return await visit(connection, partial(_one, stream=stream, number=number, queries=queries))


def _one(
    connection: sqlite3.Connection, stream: Stream, number: int, queries: tuple[Any, Any]
) -> Proved | None:
    proofs_of, some_of = queries
    for found in run(connection, (_sql.stream, stream_key(stream))):
        some = {"stream_id": found["id"], "numbers": json.dumps([number])}
        proofs, evidence = _proofs(run(connection, (proofs_of, some)))
        for row in run(connection, (some_of, some)):
            return Proved(_entry(stream, row, proofs.get(number, {})), evidence)
    return None


async def living_entries(
    connection: aiosqlite.Connection, stream: Stream, among: Iterable[int] | None = None
) -> list[Entry]:
    """Return the living entries of a stream, or those of some numbers, without their proofs.

    Proofs are most of what a stream holds after a year, and compression leaves them to the writer.
    """
    row = await _sql.stream(connection, **stream_key(stream))
    if row is None:
        return []
    found = (
        _sql.living(connection, stream_id=row["id"])
        if among is None
        else _sql.living_some(connection, stream_id=row["id"], numbers=json.dumps(list(among)))
    )
    return [_entry(stream, one, {}) async for one in found]


async def summary_rows(db: Database, stream: Stream) -> tuple[int, ...]:
    """Return the rows of all messages that a stream's summary rests on."""
    async with db.reader() as connection:
        rows = [r async for r in _sql.summary_messages(connection, **stream_key(stream))]
    return tuple(row["message_id"] for row in rows)


async def streams_of(db: Database, scope: Scope) -> list[Stream]:
    """Return the streams of a scope, in the order in which they began."""
    async with db.reader() as connection:
        rows = [
            row
            async for row in _sql.streams_of(
                connection, bot_id=scope.bot_id, scope_kind=scope.kind, key=scope.id
            )
        ]
    return [Stream(scope, Chat(row["bot_id"], row["kind"], row["peer_id"])) for row in rows]


async def all_scopes(db: Database) -> list[Scope]:
    """Return every scope that has memory or had some."""
    async with db.reader() as connection:
        return [Scope(r["bot_id"], r["kind"], r["key"]) async for r in _sql.scopes(connection)]


def _proofs(
    rows: Iterable[sqlite3.Row],
) -> tuple[dict[int, dict[int, list[int]]], dict[int, Evidence]]:
    proofs: dict[int, dict[int, list[int]]] = {}
    evidence: dict[int, Evidence] = {}
    for row in rows:
        message_id = row["message_id"]
        proofs.setdefault(row["number"], {}).setdefault(row["proof_id"], []).append(message_id)
        evidence[message_id] = Evidence(
            message_id, row["platform_id"], row["user_id"], row["sent_at"]
        )
    return proofs, evidence


def _entry(stream: Stream, row: sqlite3.Row, proofs: Mapping[int, list[int]]) -> Entry:
    return Entry(
        number=row["number"],
        stream=stream,
        document=row["document"],
        text=row["text"],
        proofs=tuple(tuple(messages) for messages in proofs.values()),
        type=row["type"],
        date=row["date"],
        tier=row["tier"],
        pinned=bool(row["pinned"]),
        set_aside=bool(row["set_aside"]),
        source_task=row["source_task"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        tier_since=row["tier_since"],
        uses=row["uses"],
    )


@dataclass(frozen=True, slots=True)
class Shape:
    """What of an entry may change while it says the same."""

    document: Document
    type: ProfileType | None
    tier: Tier
    pinned: bool


def shape_of(entry: Entry) -> Shape:
    """Return the shape of an entry."""
    return Shape(entry.document, entry.type, entry.tier, entry.pinned)


class StreamWriter:
    """Changes of one stream within one transaction.

    Args:
        connection: that of the transaction, in its own thread.
        stream: it is made if it does not exist.
        at: UTC milliseconds.
    """

    def __init__(self, connection: sqlite3.Connection, stream: Stream, at: int) -> None:
        self._connection = connection
        self._at = at
        self._told: tuple[int, ...] = ()
        scope = stream.scope
        self._run(_sql.ensure_scope, bot_id=scope.bot_id, scope_kind=scope.kind, key=scope.id)
        self._run(_sql.ensure_stream, **stream_key(stream), at=at)
        [row] = self._run(_sql.stream, **stream_key(stream))
        self._stream, self._stream_id, self._scope_id = stream, row["id"], row["scope_id"]
        self._summary = self._new_summary = row["summary"]
        self._before: dict[int, Entry | None] = {}
        """What each entry that was changed was before."""

    def _run(self, query: Any, **parameters: Any) -> list[sqlite3.Row]:
        return run(self._connection, (query, parameters))

    def add(
        self,
        document: Document,
        text: str,
        proofs: Iterable[Iterable[int]],
        *,
        type: str | None = None,
        date: str | None = None,
        tier: Tier = "episodic",
        source_task: str,
    ) -> int:
        """Add an entry with its proofs and return its number."""
        [[number]] = self._run(_sql.take_number, scope_id=self._scope_id)
        [[entry_id]] = self._run(
            _sql.add_entry,
            stream_id=self._stream_id,
            number=number,
            document=document,
            type=type,
            date=date,
            text=text,
            tier=tier,
            source_task=source_task,
            at=self._at,
        )
        add_to_index(self._connection, entry_id, self._stream_id, text)
        self._before[number] = None
        for proof in proofs:
            self._prove(entry_id, proof)
        return number

    def compress(
        self,
        text: str,
        date: str | None,
        sources: Iterable[int],
        *,
        document: Document = "memory",
        source_task: str,
    ) -> int:
        """Add to a document what some living entries come to, and return its number.

        It rests on every message of every one of them, and falls with any. They are ended apart,
        since one may be a source of several.
        """
        number = self.add(document, text, (), date=date, source_task=source_task)
        [[entry_id]] = self._run(_sql.entry_id, stream_id=self._stream_id, number=number)
        numbers = json.dumps(sorted(set(sources)))
        self._run(_sql.add_sources, entry_id=entry_id, stream_id=self._stream_id, numbers=numbers)
        [[proof_id]] = self._run(_sql.add_proof, entry_id=entry_id, at=self._at, derived=True)
        self._run(_sql.add_sources_proof, proof_id=proof_id, entry_id=entry_id)
        return number

    def uncover(self, number: int) -> None:
        """Let an entry live again, if it was compressed, with all that went with it.

        What was made of them is superseded.
        """
        key = {"stream_id": self._stream_id, "number": number}
        while covers := self._run(_sql.cover_of, **key):
            [[cover]] = covers
            self.end(cover, "superseded", "")
            self.revive_sources([cover])

    def revive_sources(self, numbers: Iterable[int]) -> None:
        """Let what some ended entries were made from live again, as far as it stands."""
        some = {"stream_id": self._stream_id, "numbers": json.dumps(list(numbers))}
        ids = [row["id"] for row in self._run(_sql.rows_of, **some)]
        self._note_revived(self._run(_sql.revive_sources, entry_ids=json.dumps(ids)))

    def revive(self, numbers: Iterable[int]) -> int:
        """Let ended entries live again that still have a proof; return how many did."""
        some = {"stream_id": self._stream_id, "numbers": json.dumps(list(numbers))}
        return self._note_revived(self._run(_sql.revive, **some, at=self._at))

    def _note_revived(self, rows: Sequence[sqlite3.Row]) -> int:
        for row in rows:
            self._before.setdefault(row["number"], None)
        return len(rows)

    def prove(self, number: int, proof: Iterable[int]) -> bool:
        """Give a living entry one more proof; false if it lives no more."""
        entry_id = self._living(number)
        if entry_id is None:
            return False
        self._run(_sql.touch_entry, id=entry_id, at=self._at)
        self._prove(entry_id, proof)
        return True

    def _living(self, number: int) -> int | None:
        """Return the row of a living entry that is about to change."""
        rows = self._run(_sql.entry_id, stream_id=self._stream_id, number=number)
        if rows and number not in self._before:
            [self._before[number]] = self._entries([number])
        return rows[0]["id"] if rows else None

    def _entries(self, numbers: Iterable[int]) -> list[Entry]:
        some = {"stream_id": self._stream_id, "numbers": json.dumps(list(numbers))}
        proofs, _ = _proofs(run(self._connection, (_sql.proofs_of_some, some)))
        rows = run(self._connection, (_sql.living_some, some))
        return [_entry(self._stream, row, proofs.get(row["number"], {})) for row in rows]

    def _prove(self, entry_id: int, proof: Iterable[int]) -> None:
        [[proof_id]] = self._run(_sql.add_proof, entry_id=entry_id, at=self._at, derived=False)
        rows = [{"proof_id": proof_id, "message_id": message_id} for message_id in proof]
        run(self._connection, (_sql.add_proof_messages, rows))

    def end(self, number: int, by: Ending, why: str, message_ids: Iterable[int] = ()) -> bool:
        """End a living entry, for what some messages say; false if it had ended."""
        entry_id = self._living(number)
        if entry_id is None:
            return False
        self._run(_sql.end_entry, id=entry_id, by=by, why=why, at=self._at)
        if by == "forgotten":
            mark_stale_within(self._connection, self._stream.scope)
        rows = [{"entry_id": entry_id, "message_id": message_id} for message_id in message_ids]
        run(self._connection, (_sql.add_ending_messages, rows))
        return True

    def reshape(self, number: int, shape: Shape) -> bool:
        """Give a living entry another tier or document, or a pin; false if it lives no more."""
        entry_id = self._living(number)
        if entry_id is None:
            return False
        self._run(_sql.reshape, id=entry_id, at=self._at, **asdict(shape))
        return True

    def shape_of(self, number: int) -> Shape | None:
        """Return the shape of a living entry."""
        return next((shape_of(entry) for entry in self._entries([number])), None)

    def unprove(self, number: int, proof: Iterable[int]) -> bool:
        """Take away the proof of exactly these messages, unless it is the entry's last one."""
        is_noted = number in self._before
        entry_id = self._living(number)
        if entry_id is None:
            return False
        messages = json.dumps(sorted(proof), separators=(",", ":"))
        is_gone = bool(self._run(_sql.drop_proof, entry_id=entry_id, messages=messages))
        if not is_gone and not is_noted:
            del self._before[number]
        return is_gone

    def summarise(self, text: str, message_ids: Iterable[int]) -> None:
        """Replace the summary; it was written from the one before, so it rests on both."""
        self._run(_sql.set_summary, id=self._stream_id, summary=text, at=self._at)
        self._new_summary = text
        self._told = tuple(message_ids)
        rows = [{"stream_id": self._stream_id, "message_id": m} for m in self._told]
        run(self._connection, (_sql.add_summary_messages, rows))

    @property
    def summary(self) -> str:
        """The summary as it stands."""
        return self._new_summary

    @property
    def has_changed(self) -> bool:
        """Whether there is anything to record."""
        return bool(self._before) or self._new_summary != self._summary

    def record(self, *, by: str, why: str, task_id: int | None) -> None:
        """Keep the revision: what stood before, and what stands now."""
        before = [entry for entry in self._before.values() if entry]
        self._run(_sql.bump_stream, id=self._stream_id, at=self._at)
        self._run(
            _sql.add_revision,
            stream_id=self._stream_id,
            task_id=task_id,
            at=self._at,
            by=by,
            why=why,
            before=self._as_json(before, self._summary, ()),
            after=self._as_json(self._entries(self._before), self._new_summary, self._told),
        )

    def _as_json(self, entries: Iterable[Entry], summary: str, told: Sequence[int]) -> str:
        """Return one side of a change. A summary goes with the messages that were read for it; it
        rests on those of the summaries before as well."""
        changed: dict[str, Any] = {"entries": [_entry_json(entry) for entry in entries]}
        if self._new_summary != self._summary:
            changed["summary"] = {"text": summary, "messages": list(told)}
        return json.dumps(changed, ensure_ascii=False)


Rewriting = Callable[[StreamWriter], object]
"""Changes one stream. It runs in the connection's thread."""


async def rewrite(
    tx: aiosqlite.Connection,
    changes: Mapping[Stream, Rewriting],
    *,
    at: int,
    by: str,
    why: str,
    task_id: int | None = None,
) -> None:
    """Change streams, each with its revision if it changes, all in one visit to the connection.

    Args:
        tx: the write transaction.
        changes: what to do with each stream; one that does not exist is made.
        at: UTC milliseconds.
        by: who changes them: a task's name, or a user id.
        why: the reason, for the record.
        task_id: the task that pays for it.
    """

    def work(connection: sqlite3.Connection) -> None:
        for stream, change in changes.items():
            writer = StreamWriter(connection, stream, at)
            change(writer)
            if writer.has_changed:
                writer.record(by=by, why=why, task_id=task_id)

    await visit(tx, work)


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "document": entry.document,
        "type": entry.type,
        "date": entry.date,
        "text": entry.text,
        "tier": entry.tier,
        "pinned": entry.pinned,
        "setAside": entry.set_aside,
        "proofs": entry.proofs,
        "sourceTask": entry.source_task,
        "createdAt": entry.created_at,
        "updatedAt": entry.updated_at,
    }


@dataclass(frozen=True, slots=True)
class Fallout:
    """What forgetting a message reached."""

    streams: int = 0
    """How many streams it changed."""
    shown: Shown = field(default_factory=Shown)
    """Where prompts may have shown what is forgotten now."""
    fallen: tuple[str, ...] = ()
    """The texts of the entries that fell."""
    since: int = END_OF_TIME
    """The earliest time at which an answer can have repeated one, UTC milliseconds."""

    def __or__(self, other: "Fallout") -> "Fallout":
        return Fallout(
            self.streams + other.streams,
            self.shown | other.shown,
            self.fallen + other.fallen,
            min(self.since, other.since),
        )


async def forget_message(tx: aiosqlite.Connection, message_id: int, at: int) -> Fallout:
    """Let fall what rests on a message, and return what that reached.

    A proof falls with any of its messages, an entry with its last proof, or with the one of what it
    was made from; its sources then return as far as they stand. A summary made from the message is
    cleared, for the next reflection to make anew. The record of changes loses its texts, and so do
    the snapshots of the scopes concerned. Answers of the bot that repeat an entry that fell lose
    their text, in every chat that has a snapshot of its scope; and those that lost theirs, now or
    with the message, take down what rests on them.
    """
    return await forget_messages(tx, [message_id], at)


async def forget_messages(
    tx: aiosqlite.Connection,
    message_ids: Iterable[int],
    at: int,
    beside: Heard = NOWHERE,
) -> Fallout:
    """Do the work of ``forget_message`` for some, and take what is erased out of the index once.

    Args:
        tx: the write transaction.
        message_ids: their rows.
        at: UTC milliseconds.
        beside: where else answers may have lost their text.
    """
    ids = list(message_ids)
    where = beside | await heard(tx, ids)
    waiting = [*ids, *await _emptied(tx, where)]
    reached = Fallout()
    while waiting:
        step = await _forget(tx, waiting, at)
        where |= Heard(frozenset(await chat_rows(tx, step.shown.chats)), step.since)
        emptied = await drop_quotes(tx, where, step.fallen)
        renewed = Shown(await forget_in_summaries(tx, waiting, at))
        reached |= step | Fallout(shown=emptied | renewed)
        # Nothing rests any more on what went before, so this comes to an end.
        waiting = await _emptied(tx, where)
    if reached.streams:
        await scrub_index(tx)
    return reached


async def forget_lot(tx: aiosqlite.Connection, message_ids: Sequence[int], at: int) -> Fallout:
    """Let fall what rests on some messages of many, as ``forget_messages`` does, and no more.

    What that looks for among all answers, in all of the record of changes, and in the file of the
    index, is done for all lots together.
    """
    reached = await _let_go(tx, message_ids, at)
    return reached | Fallout(shown=Shown(await forget_in_summaries(tx, message_ids, at)))


async def _emptied(tx: aiosqlite.Connection, where: Heard) -> list[int]:
    found = _sql.emptied_answers(tx, chat_ids=where.chat_ids_json, since=where.since)
    return [row["id"] async for row in found]


async def _forget(tx: aiosqlite.Connection, message_ids: Sequence[int], at: int) -> Fallout:
    ids = json.dumps(message_ids)
    reached = await _let_go(tx, message_ids, at)
    if not reached.streams and not await _sql.was_read(tx, message_ids=ids):
        return reached
    # Of all streams of the chats: a summary that told of it may have been cleared for another.
    found = [r["stream_id"] async for r in _sql.streams_beside(tx, message_ids=ids)]
    beside = {"stream_ids": json.dumps(found), "message_ids": ids}
    # Every summary was written from the one before, so the later ones tell of it too.
    await _sql.blank_later_summaries(tx, **beside)
    await _sql.blank_revisions(tx, **beside)
    return reached


async def _let_go(tx: aiosqlite.Connection, message_ids: Sequence[int], at: int) -> Fallout:
    """Let streams rest on some messages no more."""
    ids = json.dumps(message_ids)
    streams = [r["stream_id"] async for r in _sql.leaning_streams(tx, message_ids=ids)]
    if not streams:
        return Fallout()
    shown = await mark_streams_stale(tx, streams)
    for stream_id in streams:
        await _clear_summary(tx, stream_id, ids, at)
    await _sql.drop_proofs(tx, message_ids=ids)
    await _sql.drop_reasons(tx, message_ids=ids)
    await _sql.drop_endings(tx, message_ids=ids)
    reached = Fallout(len(streams), shown)
    for stream_id in streams:
        reached |= await _let_fall(tx, stream_id, at)
    return reached


async def _clear_summary(tx: aiosqlite.Connection, stream_id: int, ids_json: str, at: int) -> None:
    if await _sql.rests_on(tx, stream_id=stream_id, message_ids=ids_json):
        await _sql.set_summary(tx, id=stream_id, summary="", at=at)
        await _sql.clear_summary_messages(tx, stream_id=stream_id)


async def _let_fall(tx: aiosqlite.Connection, stream_id: int, at: int) -> Fallout:
    """End what nothing proves any more; what it was made from lives again, as far as it stands."""
    falling = [r async for r in _sql.falling(tx, stream_id=stream_id)]
    living = json.dumps([r["id"] for r in falling if r["ended_at"] is None])
    _ = [r async for r in _sql.revive_sources(tx, entry_ids=living)]
    await _sql.drop_unproven(tx, stream_id=stream_id, at=at)
    await _sql.bump_stream(tx, id=stream_id, at=at)
    since = min((r["created_at"] - 1000 for r in falling), default=END_OF_TIME)
    return Fallout(fallen=tuple(r["text"] for r in falling), since=since)


async def take_down(
    tx: aiosqlite.Connection,
    stream: Stream,
    message_ids: Iterable[int],
    *,
    by: str,
    why: str,
    at: int,
) -> Fallout:
    """Let fall what of a stream has lost its proofs, on somebody's wish, and return what that
    reached.

    Args:
        tx: the write transaction.
        stream: which one.
        message_ids: what the lost proofs rested on; a summary that rests on one is cleared.
        by: whose wish it is.
        why: the reason, for a record that tells nothing else.
        at: UTC milliseconds.
    """
    stream_id = (await _sql.stream(tx, **stream_key(stream)))["id"]
    shown = await mark_streams_stale(tx, [stream_id])
    ids = json.dumps(list(message_ids))
    await _clear_summary(tx, stream_id, ids, at)
    told = {"stream_ids": json.dumps([stream_id]), "message_ids": ids}
    await _sql.blank_later_summaries(tx, **told)
    await _let_fall(tx, stream_id, at)
    nothing = {"before": "{}", "after": "{}"}
    record = {"stream_id": stream_id, "task_id": None, "at": at, "by": by, "why": why}
    await _sql.add_revision(tx, **record, **nothing)
    await scrub_index(tx)
    return Fallout(1, shown)


async def daily_count(tx: aiosqlite.Connection, stream: Stream) -> int:
    """Return how many daily entries a stream has."""
    row = await _sql.stream(tx, **stream_key(stream))
    return await _sql.daily_count(tx, stream_id=row["id"]) if row else 0


async def compressible(db: Database, chat: Chat) -> dict[Stream, int]:
    """Return how many daily entries could be compressed in each stream of a chat that has any."""
    async with db.reader() as connection:
        rows = [row async for row in _sql.daily_counts(connection, **chat_key(chat))]
    return {
        Stream(Scope(chat.bot_id, row["scope_kind"], row["scope_key"]), chat): row["entries"]
        for row in rows
    }


async def set_aside(tx: aiosqlite.Connection, entry: Entry) -> None:
    """Mark an entry that no model takes for compression; it stays as it is."""
    row = await _sql.stream(tx, **stream_key(entry.stream))
    await _sql.set_aside(tx, stream_id=row["id"], number=entry.number)


async def take_back(tx: aiosqlite.Connection, chat: Chat) -> None:
    """Let what was set aside in a chat be tried again."""
    await _sql.take_back(tx, **chat_key(chat))


async def names_of_chat(db: Database, chat_id: int) -> dict[str, frozenset[str]]:
    """Return every name that each member of a chat has or had, by user id."""
    names: dict[str, set[str]] = {}
    async with db.reader() as connection:
        async for row in _sql.names_of_chat(connection, chat_id=chat_id):
            names.setdefault(row["user_id"], set()).add(row["name"])
    return {user_id: frozenset(known) for user_id, known in names.items()}


async def admins_of_chat(db: Database, chat_id: int) -> frozenset[str]:
    """Return the user ids of a group's owner and admins."""
    async with db.reader() as connection:
        rows = [row async for row in _sql.admins_of_chat(connection, chat_id=chat_id)]
    return frozenset(row["user_id"] for row in rows)


async def gone_among(tx: aiosqlite.Connection, message_ids: Iterable[int]) -> frozenset[int]:
    """Return which of some messages prove nothing any more: recalled, or emptied by a recall."""
    ids = json.dumps(sorted(set(message_ids)))
    return frozenset([row["id"] async for row in _sql.gone_among(tx, message_ids=ids)])


async def cursors_of(db: Database, chat: Chat) -> dict[str, int]:
    """Return how far each task has read in a chat, by task."""
    async with db.reader() as connection:
        rows = [row async for row in _sql.cursors_of(connection, **chat_key(chat))]
    return {row["task"]: row["last_id"] for row in rows}

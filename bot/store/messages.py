"""Messages: reading a chat's recent ones, recalls, and what a crash left unanswered."""

import json
import re
import sqlite3
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial

import aiosqlite

from bot.conversation.repeats import QUOTED_CHARS, Repeats
from bot.model import Chat, Message, Segment, Sender, Shown, StoredMessage
from bot.store.database import Database
from bot.store.queries import load
from bot.store.sqlite import Call, run, visit
from bot.store.tool_history import (
    drop_quoting_tools,
    erase_tools,
    hide_from_tools,
    turns_quoting,
)

EARLY_RECALL_MS = 10 * 60_000
"""How long a recall waits for a message that has not arrived."""

END_OF_TIME = (1 << 63) - 1
"""Later than anything is said."""

_DESCRIPTION = re.compile(r"\[[^\[\]：\n]{1,60}：([^\[\]\n]+)\]")
"""What is said of a picture, as a text shows it; see ``bot/onebot/pictures.py``."""

_sql = load("messages")


def chat_key(chat: Chat) -> dict[str, str]:
    """Return the parameters that name a chat in every query."""
    return {"bot_id": chat.bot_id, "kind": chat.kind, "peer_id": chat.id}


def stored_message(row: aiosqlite.Row, chat: Chat) -> StoredMessage:
    """Return the message of one row of ``messages``, joined with its sender's ``user_id``."""
    segments = json.loads(row["segments"])
    sender = Sender(
        row["user_id"],
        nickname=row["sender_name"],
        role=row["sender_role"],
        anonymous=bool(row["anonymous"]),
    )
    message = Message(
        chat=chat,
        platform_id=row["platform_id"],
        sender=sender,
        direction=row["direction"],
        sent_at=row["sent_at"],
        received_at=row["received_at"],
        local_date=row["local_date"],
        segments=tuple(Segment(s["type"], s["data"]) for s in segments),
        text=row["text"],
        sequence=row["sequence"],
        reply_to=row["reply_to"],
        mentions=tuple(json.loads(row["mentions"])),
        kind=row["kind"],
        temporary_group=row["temporary_group"],
    )
    return StoredMessage(row["id"], message, row["recalled_at"], row["forgotten_at"])


async def recent_messages(db: Database, chat: Chat, limit: int) -> list[StoredMessage]:
    """Return the newest ``limit`` messages of ``chat``, recalled ones left out, oldest first."""
    async with db.reader() as connection:
        rows = [row async for row in _sql.recent(connection, **chat_key(chat), limit=limit)]
    return [stored_message(row, chat) for row in reversed(rows)]


async def chat_row(db: Database, chat: Chat) -> int | None:
    """Return the row of a chat, ``None`` if nothing of it is known."""
    async with db.reader() as connection:
        return await _sql.chat_row(connection, **chat_key(chat))


def told_call(chat: Chat, limit: int, after_id: int) -> Call:
    """Return a query for what was said after a row in a chat, in no order, for a visit that asks
    more. Only the newest ``limit`` messages are looked at."""
    return (_sql.told, {**chat_key(chat), "limit": limit, "after_id": after_id})


def told_message(row: aiosqlite.Row, chat: Chat) -> StoredMessage:
    """Return the message of one row of ``told_call``, good enough to be shown."""
    (
        row_id,
        platform_id,
        direction,
        kind,
        sent_at,
        received_at,
        local_date,
        sequence,
        name,
        text,
        recalled_at,
        forgotten_at,
        user_id,
        anonymous,
    ) = row
    message = Message(
        chat=chat,
        platform_id=platform_id,
        sender=Sender(user_id, nickname=name, anonymous=bool(anonymous)),
        direction=direction,
        sent_at=sent_at,
        received_at=received_at,
        local_date=local_date,
        segments=(),
        text=text,
        sequence=sequence,
        kind=kind,
    )
    return StoredMessage(row_id, message, recalled_at, forgotten_at)


def newest_with_id_call(chat: Chat, platform_id: str) -> Call:
    """Return the query behind ``newest_with_id``, for a visit that asks more."""
    return (_sql.newest_with_id, {**chat_key(chat), "platform_id": platform_id})


def quoted_message(row: aiosqlite.Row, chat: Chat) -> StoredMessage:
    """Return the message of a row of ``newest_with_id_call``."""
    stored = stored_message(row, chat)
    return replace(stored, forgotten_at=stored.forgotten_at or 0) if row["hidden"] else stored


def by_rows_call(row_ids: Iterable[int], *, kept: bool = False) -> Call:
    """Return the query behind ``messages_by_rows``, for a visit that asks more."""
    return (_sql.by_rows, {"ids": json.dumps(list(row_ids)), "kept": kept})


def kept_call(chat: Chat) -> Call:
    """Return a query for the rows of a chat that are kept for the turn that answers them, of people
    who have opted out, for a visit that asks more."""
    return (_sql.kept, chat_key(chat))


async def newest_with_id(db: Database, chat: Chat, platform_id: str) -> StoredMessage | None:
    """Return the newest message of ``chat`` with a platform id, a tombstone included."""
    async with db.reader() as connection:
        row = await _sql.newest_with_id(connection, **chat_key(chat), platform_id=platform_id)
    return quoted_message(row, chat) if row else None


async def unanswered_messages(db: Database, bot_id: str, since: int) -> list[StoredMessage]:
    """Return people's messages since ``since`` (UTC ms) for which no turn began to send."""
    async with db.reader() as connection:
        rows = [row async for row in _sql.unanswered(connection, bot_id=bot_id, since=since)]
    return [stored_message(r, Chat(r["bot_id"], r["chat_kind"], r["peer_id"])) for r in rows]


async def messages_by_rows(
    db: Database, row_ids: Iterable[int], *, kept: bool = False
) -> list[StoredMessage]:
    """Return some messages as they stand now, recalled ones left out, by row id.

    Args:
        db: the database.
        row_ids: which.
        kept: also those that are kept for the turn that answers them, and are nobody else's to see.
    """
    ids = json.dumps(list(row_ids))
    async with db.reader() as connection:
        rows = [row async for row in _sql.by_rows(connection, ids=ids, kept=kept)]
    return [stored_message(r, Chat(r["bot_id"], r["chat_kind"], r["peer_id"])) for r in rows]


async def row_as_it_is(db: Database, row_id: int) -> StoredMessage | None:
    """Return a message whatever became of it, a tombstone included."""
    async with db.reader() as connection:
        row = await _sql.as_it_is(connection, id=row_id)
    return (
        stored_message(row, Chat(row["bot_id"], row["chat_kind"], row["peer_id"])) if row else None
    )


async def private_peer_of_own(
    db: Database, bot_id: str, platform_id: str, since: int
) -> str | None:
    """Return with whom the account had the private chat in which it sent a message."""
    async with db.reader() as connection:
        return await _sql.private_peer_of_own(
            connection, bot_id=bot_id, platform_id=platform_id, since=since
        )


async def names_in_chat(db: Database, chat: Chat, user_ids: Iterable[str]) -> dict[str, str]:
    """Return what some people are called in ``chat``; the unknown and the nameless are absent."""
    ids = json.dumps(sorted(user_ids))
    async with db.reader() as connection:
        rows = [r async for r in _sql.names_in_chat(connection, **chat_key(chat), user_ids=ids)]
    return {row["user_id"]: row["name"] for row in rows if row["name"]}


async def replace_text(tx: aiosqlite.Connection, row_id: int, text: str) -> None:
    """Give a stored message another rendering, unless it was recalled meanwhile."""
    await _sql.replace_text(tx, id=row_id, text=text)


async def blank(tx: aiosqlite.Connection, row_ids: Iterable[int]) -> None:
    """Let messages of the bot keep no text, and turns that show them show it no more."""
    rows = list(row_ids)
    await _sql.blank(tx, ids=json.dumps(rows))
    await hide_from_tools(tx, rows)
    await _sql.drop_lines(tx, ids=json.dumps(rows))


@dataclass(frozen=True, slots=True)
class Recall:
    """Somebody took a message back."""

    chat: Chat
    platform_id: str
    operator_id: str
    at: int
    """UTC milliseconds."""


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What a recall reached."""

    row_id: int
    """The message."""
    shown: Shown
    """The answers that repeated it."""


async def recall_message(tx: aiosqlite.Connection, recall: Recall) -> TakenBack | None:
    """Take the text of a message out of everything kept.

    The newest row with the id is meant. A recall that comes before its message waits for it; a
    second one changes nothing. Both return ``None``.
    """
    key = chat_key(recall.chat)
    row = await _sql.newest_with_id(tx, **key, platform_id=recall.platform_id)
    if row is None:
        await _sql.forget_early_recalls(tx, before=recall.at - EARLY_RECALL_MS)
        await _sql.keep_early_recall(
            tx, **key, platform_id=recall.platform_id, at=recall.at, by=recall.operator_id
        )
        return None
    if row["recalled_at"] is not None:
        return None
    return TakenBack(row["id"], await _take_back(tx, row, recall))


async def _take_back(tx: aiosqlite.Connection, row: aiosqlite.Row, recall: Recall) -> Shown:
    where = await heard(tx, [row["id"]])
    if row["kept_until"] is not None:
        await _close(tx, [row["id"]])
    await _hide(tx, [row["id"]])
    await _sql.drop_reminders(tx, ids=json.dumps([row["id"]]), at=recall.at)
    await _sql.take_back(tx, id=row["id"], at=recall.at, by=recall.operator_id)
    return await drop_quotes(tx, where, _quotable(row))


async def _hide(tx: aiosqlite.Connection, row_ids: Collection[int]) -> None:
    """Let some messages be counted and shown no more; to be called before they change."""
    ids = json.dumps(list(row_ids))
    await _sql.uncount(tx, ids=ids)
    await _sql.empty_turns(tx, ids=ids)
    await hide_from_tools(tx, row_ids)
    await _sql.drop_lines(tx, ids=ids)
    await _sql.drop_reminder_lines(tx, ids=ids)
    await _sql.blank_sent_reminders(tx, ids=ids)


async def _close(tx: aiosqlite.Connection, row_ids: Collection[int]) -> None:
    """Let turns that answered somebody who is not recorded go, with their answers; to be called
    before their lines go."""
    ids = json.dumps(list(row_ids))
    await _sql.close_turns(tx, ids=ids)
    await _sql.drop_answers(tx, ids=ids)


@dataclass(frozen=True, slots=True)
class Heard:
    """Where, and since when, answers may have repeated something."""

    chat_ids: frozenset[int]
    """Rows of chats."""
    since: int
    """UTC milliseconds."""

    def __or__(self, other: "Heard") -> "Heard":
        return Heard(self.chat_ids | other.chat_ids, min(self.since, other.since))

    @property
    def chat_ids_json(self) -> str:
        """The chats, as queries take them."""
        return json.dumps(sorted(self.chat_ids))


async def heard(tx: aiosqlite.Connection, row_ids: Collection[int]) -> Heard:
    """Return where answers may have repeated some messages: in their chats, and in those whose
    prompts showed memory that rests on them."""
    ids = json.dumps(list(row_ids))
    said = [r async for r in _sql.said_in(tx, message_ids=ids)]
    shown = [r["chat_id"] async for r in _sql.shown_in(tx, message_ids=ids)]
    # Answers are younger than what they quote, whatever time the platform gave it.
    since = min((r["since"] - 1000 for r in said), default=END_OF_TIME)
    return Heard(frozenset([*(r["chat_id"] for r in said), *shown]), since)


async def chat_rows(tx: aiosqlite.Connection, chats: Iterable[Chat]) -> list[int]:
    """Return the rows of some chats; of those that are known."""
    keys = json.dumps([[chat.bot_id, chat.kind, chat.id] for chat in chats])
    return [row["id"] async for row in _sql.chat_rows(tx, chats=keys)]


@dataclass(frozen=True, slots=True)
class Quoting:
    """What repeats some texts."""

    messages: frozenset[int]
    """The account's own, by their rows."""
    lines: frozenset[tuple[int, int]]
    """Those of answers, by turn and position."""
    tools: frozenset[int]
    """What tools were asked and told, by turn."""


NOTHING = Quoting(frozenset(), frozenset(), frozenset())


async def quoting(
    connection: aiosqlite.Connection, where: Heard, texts: Collection[str]
) -> Quoting:
    """Return which of the account's answers, and of what tools told, repeat some texts."""
    if not where.chat_ids or not Repeats(texts):
        return NOTHING
    return await visit(connection, partial(_quoting, where=where, texts=texts))


def _quoting(connection: sqlite3.Connection, where: Heard, texts: Collection[str]) -> Quoting:
    key = {"chat_ids": where.chat_ids_json, "since": where.since}
    own = run(connection, (_sql.own_texts, key))
    lines = run(connection, (_sql.answer_lines, key))
    # Nearly every answer stands in both.
    repeats, told = Repeats(texts), {row["text"] for row in (*own, *lines)}
    quotes = {text for text in told if repeats.stands_in(text)}
    return Quoting(
        messages=frozenset(row["id"] for row in own if row["text"] in quotes),
        lines=frozenset((row[0], row[1]) for row in lines if row["text"] in quotes),
        tools=turns_quoting(connection, where.chat_ids_json, where.since, texts),
    )


async def drop_quotes(tx: aiosqlite.Connection, where: Heard, texts: Iterable[str]) -> Shown:
    """Let the account's answers lose their text if they quote, and what tools told likewise.

    Returns:
        which answers did: turns in the making may show them.
    """
    quoted = frozenset(texts)
    return await drop_quoting(tx, await quoting(tx, where, quoted), quoted)


async def drop_quoting(tx: aiosqlite.Connection, found: Quoting, texts: Collection[str]) -> Shown:
    """Let what repeats some texts lose its own, as it was found, wherever turns show it.

    Returns:
        as ``drop_quotes``.
    """
    if found == NOTHING:
        return Shown()
    lines = [{"turn_id": turn, "position": position} for turn, position in found.lines]
    await _sql.drop_answer_lines(tx, lines)
    await blank(tx, sorted(found.messages))
    await drop_quoting_tools(tx, found.tools, texts)
    return Shown(rows=found.messages)


async def set_apart(tx: aiosqlite.Connection, row_id: int, at: int) -> list[str]:
    """Take a message out of every context, as a recall does; its own text stays in the record.

    Returns:
        What answers must not quote any more: ``drop_quotes``.
    """
    row = await _sql.of_row(tx, id=row_id)
    if row is None or row["forgotten_at"] is not None or row["recalled_at"] is not None:
        return []
    await _hide(tx, [row_id])
    await _sql.drop_reminders(tx, ids=json.dumps([row_id]), at=at)
    await _sql.set_apart(tx, id=row_id, at=at)
    return _quotable(row)


async def erase_rows(tx: aiosqlite.Connection, row_ids: Collection[int], at: int) -> None:
    """Let tombstones without text stay of some messages, whose sender has opted out.

    What answers must not quote any more, ``quotable_texts`` tells before. Reminders that they asked
    for are still sent.

    Args:
        tx: the write transaction.
        row_ids: their rows.
        at: UTC milliseconds.
    """
    await _close(tx, row_ids)
    await _hide(tx, row_ids)
    await _sql.erase(tx, ids=json.dumps(list(row_ids)), at=at)


async def quotable_texts(
    connection: aiosqlite.Connection, row_ids: Collection[int]
) -> frozenset[str]:
    """Return what answers would quote of some messages."""
    rows = _sql.said_by_rows(connection, ids=json.dumps(list(row_ids)))
    return frozenset([text async for row in rows for text in _quotable(row)])


def _quotable(row: aiosqlite.Row) -> list[str]:
    """Return what an answer would quote: the whole, the words beside an @ or a picture, or what is
    said of a picture."""
    segments = json.loads(row["segments"])
    words = [str(s["data"].get("text", "")) for s in segments if s["type"] == "text"]
    words += _DESCRIPTION.findall(row["text"])
    texts = {text.strip() for text in (row["text"], *words)}
    return sorted(text for text in texts if len(text) >= QUOTED_CHARS)


async def erase_chat_text(tx: aiosqlite.Connection, chat_id: int, at: int) -> None:
    """Erase all that was said in a chat so far; the rows stay, and so does what memory made of it.

    Nothing of it is context, evidence of something new, or waits for a reflection any more.

    Args:
        tx: the write transaction.
        chat_id: the row of the chat.
        at: UTC milliseconds.
    """
    await _sql.erase_texts(tx, chat_id=chat_id, at=at)
    await _sql.erase_lines(tx, chat_id=chat_id)
    await erase_tools(tx, chat_id)
    await _sql.erase_reminders(tx, chat_id=chat_id, at=at)
    await _sql.uncount_all(tx, chat_id=chat_id)

"""Freeze a database of today's schema: ``python -m tests.migration.freeze``.

Writes ``tests/migration/v<schema>.sql``, a dump of a database that the program itself made, with
rows in every table and invented ids. Run it once for a new migration step, before its release; an
older file is history and is never written again. While a step is not released yet, run it anew
after each change of that step.
"""

import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
from loguru import logger

from bot.model import (
    ANONYMOUS_ID,
    Chat,
    Lesson,
    Member,
    Message,
    Scope,
    Segment,
    Sender,
    Snapshot,
    Stream,
    ToolRound,
    ToolUse,
    TurnLine,
    Usage,
)
from bot.search.vectors import kept, planes, sketches, slot
from bot.store import chats
from bot.store.alerts import claim_alert
from bot.store.database import Database, open_database
from bot.store.entry_vectors import keep_entries, next_entries
from bot.store.images import Description, keep_description
from bot.store.ingest import Arrival, Receipt, store_arrivals
from bot.store.lessons import keep_lessons
from bot.store.memory import StreamWriter, rewrite
from bot.store.messages import Recall, recall_message, replace_text
from bot.store.migrate import read_steps
from bot.store.opt_outs import open_opt_outs
from bot.store.reminders import add_reminder
from bot.store.sessions import Progress, keep_progress, session_state
from bot.store.settings import open_settings
from bot.store.snapshots import NewSnapshot, keep_snapshots, recollection
from bot.store.tasks import (
    Claim,
    Narrowing,
    claim_tasks,
    narrow,
    quarantine_message,
    queue_task,
    standing,
)
from bot.store.turns import NewTurn, add_turn, finish_turn
from bot.store.usage import add_usage
from bot.store.vectors import Made, enter_space, keep_lot, next_lot
from tests.store.rows import (
    ALICE,
    BOT,
    BRUNO,
    GROUP,
    MINUTE,
    NOON,
    OTHER_GROUP,
    PRIVATE,
    SECOND,
    carded,
    own,
    said,
    store_apart,
)

FOLDER = Path(__file__).parent

SHY = "30007"
"""Does not want to be recorded."""

VECTOR = np.full(8, 0.125**0.5, np.float32)
"""What every message means here."""

TASK = """
INSERT INTO tasks (chat_id, scope, task, state, reason, next_run_at, created_at)
SELECT id, 'group', 'group', 'queued', 'idle', ?, ? FROM chats WHERE kind = 'group' LIMIT 1
"""


def _messages() -> Sequence[Message]:
    picture = (Segment("at", {"qq": BOT}), Segment("image", {"file": "a.jpg"}))
    return (
        carded("小鱼", nickname="Fish", id="-1712345678", sequence=5001),
        carded("大鱼", nickname="Fish", id="701", at=NOON + 1 * SECOND),
        carded("小鱼", nickname="Bruno", by=BRUNO, id="702", at=NOON + 2 * SECOND),
        said("明天七点出发", id="703", at=NOON + 3 * SECOND, reply_to="701"),
        own("好，明天七点", id="704", at=NOON + 4 * SECOND, sequence=5005),
        said(
            f"@群忆({BOT}) [图片]",
            id="705",
            at=NOON + 5 * SECOND,
            segments=picture,
            mentions=(BOT,),
        ),
        said(
            "谁也不知道我是谁",
            id="706",
            at=NOON + 6 * SECOND,
            sender=Sender(ANONYMOUS_ID, nickname="面具", anonymous=True),
        ),
        said("/帮助", id="707", at=NOON + 7 * SECOND, kind="command"),
        said("说错了", id="708", at=NOON + 8 * SECOND),
        said("别的群", id="701", chat=OTHER_GROUP, by=BRUNO),
        said("在吗", id="801", chat=PRIVATE, at=NOON + 9 * SECOND),
        own("在", id="802", chat=PRIVATE, at=NOON + 10 * SECOND, kind="notice"),
        said("临时会话", id="803", chat=Chat(BOT, "private", BRUNO), temporary_group=GROUP.id),
    )


async def _fill(db: Database) -> None:
    receipts = await store_apart(db, *_messages())
    async with db.transaction() as tx:
        await recall_message(tx, Recall(GROUP, "708", ALICE, NOON + MINUTE))
        await recall_message(tx, Recall(GROUP, "799", ALICE, NOON + MINUTE))
        await tx.execute_fetchall(TASK, (NOON + 15 * MINUTE, NOON))
        saw = Description("一只橘猫", "example-eyes")
        await keep_description(tx, receipts[5].row_id, 1, saw, digest="0" * 64, at=NOON + MINUTE)
    await _fill_people(db)
    await _fill_turns(db, receipts)
    await _fill_settings(db)
    await _fill_memory(db, receipts)
    await _fill_session(db, [receipt.row_id for receipt in receipts])
    await _fill_snapshots(db)
    await _fill_tools(db, receipts)
    await _fill_vectors(db)
    await _fill_opt_outs(db)


async def _fill_opt_outs(db: Database) -> None:
    """Let somebody opt out, and then speak, to the bot and to others."""
    opt_outs = await open_opt_outs(db)
    await opt_outs.add(Member(BOT, SHY), at=NOON + 2 * MINUTE)
    words = (
        said("不要记我", id="720", by=SHY, at=NOON + 3 * MINUTE),
        said("在吗", id="721", by=SHY, at=NOON + 4 * MINUTE, mentions=(BOT,)),
    )
    await store_arrivals(db, [Arrival(one) for one in words], opt_outs)


async def _fill_vectors(db: Database) -> None:
    """Let messages have vectors, and the text of one become another afterwards; and entries, but
    one in vain and one not yet."""
    lot = await next_lot(db, await enter_space(db, "frozen", len(VECTOR)), 64)
    assert lot is not None
    (sketch,) = sketches(VECTOR[None, :], planes(len(VECTOR)))
    made = [
        Made(one, kept(VECTOR), slot(one.row_id, one.sent_at, one.member_id, sketch))
        for one in lot.messages
        if one.is_talk
    ]
    await keep_lot(db, lot, made)
    space = await enter_space(db, "frozen", len(VECTOR))
    [last, *others] = await next_entries(db, space, 64, is_remote=False)
    await keep_entries(db, space, [(last, None), *((one, kept(VECTOR)) for one in others[1:])])
    async with db.transaction() as tx:
        await replace_text(tx, made[0].of.row_id, "大鱼：湖边见")


async def _fill_people(db: Database) -> None:
    async with db.transaction() as tx:
        await chats.account_connected(tx, BOT, NOON)
        await chats.set_access(tx, GROUP, "enabled", by=ALICE, at=NOON)
        await chats.rename_chat(tx, GROUP, "钓鱼群")
        await chats.set_muted(tx, OTHER_GROUP, NOON + MINUTE)
        await chats.card_changed(tx, GROUP, ALICE, "鲸鱼", NOON + MINUTE)
        await chats.role_changed(tx, GROUP, BRUNO, "admin", NOON + MINUTE)
        await chats.member_left(tx, OTHER_GROUP, BRUNO, NOON + MINUTE)
        await chats.block(tx, Member(BOT, "30009"), by=ALICE, at=NOON)
        await chats.claim_notice(tx, GROUP, "privacy", at=NOON, due_before=0)
        await chats.claim_notice(tx, GROUP, "unconfigured", at=NOON, due_before=0, user_id=ALICE)
        await chats.keep_request(
            tx, BOT, "friend", "flag-1", user_id=BRUNO, group_id="", comment="你好", at=NOON
        )


async def _fill_turns(db: Database, receipts: Sequence[Receipt]) -> None:
    rows = [receipt.row_id for receipt in receipts]
    turn = NewTurn(
        chat=GROUP,
        user_id=ALICE,
        asked_at=NOON + 3 * SECOND,
        started_at=NOON + 3 * SECOND,
        addressed=True,
        third_party=True,
        context_until=rows[3],
        lines=(
            TurnLine(rows[2], "context", '{"text":"旁边的话"}'),
            TurnLine(rows[1], "quote", '{"text":"引用的话"}'),
            TurnLine(rows[3], "question", '{"text":"明天七点出发"}'),
            TurnLine(None, "answer", "好，明天七点"),
        ),
        model="example-model",
        endpoint="default",
        tools=(
            ToolRound(
                "example-model",
                "",
                (ToolUse("call_0", "chat_history", "{}", '{"text":"早"}', (rows[0],)),),
            ),
        ),
    )
    async with db.transaction() as tx:
        turn_id = await add_turn(tx, turn, "sending", at=NOON + 3 * SECOND)
        assert turn_id is not None
        await finish_turn(tx, turn_id, "sent", sent={3: rows[4]}, at=NOON + 4 * SECOND)


async def _fill_settings(db: Database) -> None:
    book = await open_settings(db, {})
    await book.change("memoryMemberBatchEnabled", False, by=ALICE, at=NOON)
    await book.change("replyMode", "auto", by=ALICE, at=NOON, chat=GROUP)
    await add_usage(db, Usage("chat", "example-model", "default", NOON, 800, 90, 30, 9, True))


async def _fill_memory(db: Database, receipts: Sequence[Receipt]) -> None:
    rows = [receipt.row_id for receipt in receipts]
    streams = {
        Stream(Scope(BOT, "group", GROUP.id), GROUP): partial(_remember_group, rows),
        Stream(Scope(BOT, "member", ALICE), GROUP): partial(_remember_alice, rows),
    }
    found = await standing(db, OTHER_GROUP, "member-batch")
    assert found is not None
    async with db.transaction() as tx:
        await rewrite(tx, streams, at=NOON + MINUTE, by="group", why="idle", task_id=1)
        assert await queue_task(tx, found, "count", NOON)
        now = NOON + 2 * MINUTE
        [claim] = await claim_tasks(tx, "example:8080", limit=1, now=now, until=now + MINUTE)
        assert isinstance(claim, Claim)
        await narrow(tx, claim, Narrowing(20, rows[9], 5))
        await quarantine_message(tx, claim, rows[9], "ModelRefused", NOON + MINUTE)
        await claim_alert(tx, "budget.reflect", at=NOON, due_before=NOON)


async def _fill_session(db: Database, rows: Sequence[int]) -> None:
    state = await session_state(db, GROUP)
    async with db.transaction() as tx:
        summary = '{"key_decisions": [], "past_discussions": [], "current_discussion": "出发"}'
        progress = Progress(summary, state.summary_cursor + 1, {rows[0]: 1})
        assert await keep_progress(tx, state, progress)


async def _fill_snapshots(db: Database) -> None:
    found = await recollection(db, GROUP, ALICE, cross_group=True)
    for stream in found.readable:
        snapshot = Snapshot(
            text="【记忆】大家约好明天出发",
            shown=(),
            hash="0" * 64,
            streams=frozenset({stream.row_id}),
            across=True,
            version=stream.version,
            compactions=0,
            injected_at=NOON + MINUTE,
            active_at=NOON + MINUTE,
        )
        assert await keep_snapshots(db, GROUP, [NewSnapshot(stream.scope_id, snapshot)])


async def _fill_tools(db: Database, receipts: Sequence[Receipt]) -> None:
    rows = [receipt.row_id for receipt in receipts]
    lesson = Lesson("remind", ("时间",), "时间不对", "参数不合适 at", "at 从 <空> 改成 <日期>")
    async with db.transaction() as tx:
        await add_reminder(
            tx,
            GROUP,
            ALICE,
            [rows[3]],
            due_at=NOON + 60 * MINUTE,
            text="出发",
            begun_at=NOON,
            at=NOON,
            max_open=1,
        )
        await keep_lessons(tx, PRIVATE, [lesson], at=NOON, since=0)
        await chats.choose_model(tx, GROUP, "example-model", by=ALICE, at=NOON)


def _remember_group(rows: Sequence[int], writer: StreamWriter) -> None:
    proofs = [(rows[3], rows[4]), (rows[0],)]
    writer.add("memory", "七点出发", proofs, date="2026-09-21", source_task="group")
    old = writer.add("profile", "钓鱼的群", [(rows[1],)], tier="profile", source_task="group")
    writer.end(old, "superseded", "不钓鱼了", [rows[2]])
    writer.summarise("大家约好明天出发", [rows[1], rows[3]])


def _remember_alice(rows: Sequence[int], writer: StreamWriter) -> None:
    writer.add(
        "profile",
        "叫小鱼",
        [(rows[0],)],
        type="name",
        tier="profile",
        source_task="member-batch",
    )
    event = writer.add(
        "daily", "去湖边钓鱼", [(rows[3],)], date="2026-09-21", source_task="member-batch"
    )
    writer.compress("去湖边钓鱼", "2026-09-21", [event], source_task="compress")
    writer.end(event, "compressed", "")


async def dump(path: Path) -> str:
    """Return the dump of a new database at ``path`` with rows in every table."""
    async with open_database(path, now=NOON) as db:
        await _fill(db)
    with closing(sqlite3.connect(path)) as connection:
        return "\n".join(_statements(connection)) + "\n"


def _statements(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield what makes the database again.

    The rows of a virtual table are those of the tables that hold it; as its own they could not be
    put back in the same transaction, and one without contents has none to read. So it leaves the
    schema of a copy, and is put back where the dump puts any virtual table.
    """
    with closing(sqlite3.connect(":memory:")) as copy:
        connection.backup(copy)
        virtual = copy.execute(
            "SELECT name, sql FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL %'"
        ).fetchall()
        copy.execute("PRAGMA writable_schema = ON")
        copy.execute("DELETE FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL %'")
        *rest, end = copy.iterdump()
    yield from (one for one in rest if one != "PRAGMA writable_schema=OFF;")
    yield "PRAGMA writable_schema=ON;"
    for name, sql in virtual:
        values = ", ".join(
            f"'{value.replace(chr(39), 2 * chr(39))}'" for value in (name, name, sql)
        )
        columns = "type, name, tbl_name, sql, rootpage"
        yield f"INSERT INTO sqlite_master ({columns}) VALUES ('table', {values}, 0);"
    yield "PRAGMA writable_schema=OFF;"
    yield end


def main() -> None:
    """Write the file of today's schema."""
    logger.remove()
    target = FOLDER / f"v{len(read_steps())}.sql"
    with tempfile.TemporaryDirectory() as folder:
        target.write_text(asyncio.run(dump(Path(folder) / "frozen.db")), "utf-8")
    sys.stdout.write(f"wrote {target.name}\n")


if __name__ == "__main__":
    main()

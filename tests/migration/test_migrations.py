"""Migrations: each step whole or not at all, and no frozen database loses a row."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from bot.errors import MigrationError
from bot.model import Member
from bot.store.chats import names_of
from bot.store.database import Database, open_database
from bot.store.messages import recent_messages
from bot.store.migrate import STEPS_FOLDER, Step, migrate, read_steps, statements
from bot.store.settings import open_settings
from bot.store.turns import recent_turns
from tests.migration.freeze import FOLDER, dump
from tests.store.rows import ALICE, BOT, GROUP, NOON, carded, store

FROZEN = sorted(FOLDER.glob("v*.sql"), key=lambda file: int(file.stem[1:]))

RENAMED: dict[str, str] = {}
"""Tables that a later step renamed, old name to new. No other rows may go."""

HEAD = len(read_steps())
REGENERATE = "the schema of a frozen version changed: python -m tests.migration.freeze"

Rows = dict[str, list[dict[str, Any]]]


# --- splitting --------------------------------------------------------------------------------


def test_a_script_is_split_into_its_statements():
    script = "-- one\nCREATE TABLE a (x);\n\nCREATE INDEX b\n  ON a (x);\n-- the end\n"
    assert [s.strip() for s in statements(script)] == [
        "-- one\nCREATE TABLE a (x);",
        "CREATE INDEX b\n  ON a (x);",
    ]


def test_semicolons_in_texts_comments_and_triggers_end_no_statement():
    trigger = "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  SELECT 1;\n  SELECT 2;\nEND;\n"
    texts = "INSERT INTO a VALUES ('x;\ny'); -- done;\n"
    comment = "-- first; then\nSELECT 1;\n"
    assert list(statements(trigger + texts + comment)) == [trigger, texts, comment]


@pytest.mark.parametrize("script", ["", "\n\n", "-- nothing\n", "  -- a;\n\n-- b"])
def test_a_script_of_comments_has_no_statements(script: str):
    assert list(statements(script)) == []


@pytest.mark.parametrize("script", ["CREATE TABLE a (x)", "-- a comment\nCREATE TABLE a (x)\n"])
def test_a_statement_without_its_end_is_refused(script: str):
    with pytest.raises(MigrationError, match="not complete: CREATE TABLE a"):
        list(statements(f"SELECT 1;\n{script}"))


@pytest.mark.parametrize(
    "names", [["0002_b.sql"], ["0001_a.sql", "0003_c.sql"], ["0001_a.sql", "0001_b.sql"]]
)
def test_steps_that_are_not_numbered_in_order_are_refused(tmp_path: Path, names: list[str]):
    for name in names:
        (tmp_path / name).write_text("SELECT 1;")
    with pytest.raises(MigrationError, match="not numbered"):
        read_steps(tmp_path)


def test_every_shipped_step_can_be_split():
    for step in read_steps():
        assert list(statements(step.script))


# --- applying ---------------------------------------------------------------------------------

ONE = Step(1, "0001_one", "CREATE TABLE one (x);\nINSERT INTO one VALUES (1);\n")
TWO = Step(2, "0002_two", "CREATE TABLE two (x);\nUPDATE one SET x = 2;\n")
BROKEN = Step(2, "0002_broken", f"{TWO.script}DELETE FROM one;\nINSERT INTO nowhere VALUES (1);\n")
UNFINISHED = Step(2, "0002_unfinished", f"{TWO.script}DELETE FROM one\n")


@pytest.fixture
async def connection(tmp_path: Path) -> AsyncIterator[aiosqlite.Connection]:
    """A connection to an empty file."""
    async with aiosqlite.connect(tmp_path / "steps.db", isolation_level=None) as opened:
        yield opened


async def _all(connection: aiosqlite.Connection, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await connection.execute_fetchall(sql)]


async def test_missing_steps_are_applied_once_and_recorded(connection: aiosqlite.Connection):
    assert await migrate(connection, NOON, (ONE,)) == 1
    assert await migrate(connection, NOON + 1, (ONE, TWO)) == 1
    assert await migrate(connection, NOON + 2, (ONE, TWO)) == 0
    assert await _all(connection, "SELECT * FROM schema_steps") == [
        (1, "0001_one", NOON),
        (2, "0002_two", NOON + 1),
    ]
    assert await _all(connection, "SELECT x FROM one") == [(2,)]


@pytest.mark.parametrize("bad", [BROKEN, UNFINISHED], ids=lambda step: step.name)
async def test_a_step_that_fails_leaves_no_trace(connection: aiosqlite.Connection, bad: Step):
    with pytest.raises(MigrationError):
        await migrate(connection, NOON, (ONE, bad))
    assert await _all(connection, "SELECT x FROM one") == [(1,)]
    assert await _all(connection, "SELECT name FROM sqlite_master WHERE name = 'two'") == []
    assert await _all(connection, "SELECT version FROM schema_steps") == [(1,)]
    assert await migrate(connection, NOON, (ONE, TWO)) == 1


async def test_a_step_that_fails_is_named_with_the_cause(connection: aiosqlite.Connection):
    with pytest.raises(MigrationError, match="0002_broken failed: no such table: nowhere"):
        await migrate(connection, NOON, (ONE, BROKEN))


@pytest.mark.parametrize("hops", range(0, 40, 4))
async def test_a_migration_that_is_cancelled_leaves_whole_steps(tmp_path: Path, hops: int):
    path = tmp_path / "steps.db"
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        task = asyncio.create_task(migrate(connection, NOON, (ONE, TWO)))
        for _ in range(hops):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        await migrate(connection, NOON, (ONE, TWO))
        assert await _all(connection, "SELECT x FROM one") == [(2,)]
        assert await _all(connection, "SELECT version FROM schema_steps") == [(1,), (2,)]


async def test_a_newer_database_is_refused_in_clear_words(connection: aiosqlite.Connection):
    await migrate(connection, NOON, (ONE, TWO))
    with pytest.raises(MigrationError) as refusal:
        await migrate(connection, NOON, (ONE,))
    for words in ("schema 2", "knows 1", "newer Qunyi", "Update the program"):
        assert words in str(refusal.value)
    assert await _all(connection, "SELECT version FROM schema_steps") == [(1,), (2,)]


# --- frozen databases -------------------------------------------------------------------------


def _schema(path: Path) -> set[tuple[str, str, str, str | None]]:
    with closing(sqlite3.connect(path)) as connection:
        return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


def _rows(path: Path) -> Rows:
    """Return all rows by table; those of a virtual table are in the tables that hold it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            " AND sql NOT LIKE 'CREATE VIRTUAL %'"
        ).fetchall()
        return {
            name: [dict(row) for row in connection.execute(f'SELECT * FROM "{name}"')]
            for (name,) in map(tuple, tables)
        }


def _restored(path: Path, frozen: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(frozen.read_text("utf-8"))
    return path


def _is_kept(row: dict[str, Any], now: list[dict[str, Any]]) -> bool:
    return any(row.items() <= other.items() for other in now)


@pytest.fixture
async def fresh(tmp_path: Path) -> Path:
    """A database that all steps together made."""
    path = tmp_path / "fresh.db"
    async with open_database(path, now=NOON):
        pass
    return path


def test_the_first_version_is_frozen():
    assert [file.stem for file in FROZEN][:1] == ["v1"]


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda file: file.stem)
async def test_a_frozen_database_migrates_to_the_schema_of_today(
    tmp_path: Path, fresh: Path, frozen: Path
):
    path = _restored(tmp_path / "old.db", frozen)
    async with open_database(path, now=NOON):
        pass
    assert _schema(path) == _schema(fresh), REGENERATE


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda file: file.stem)
async def test_a_frozen_database_has_rows_in_every_table_and_keeps_them_all(
    tmp_path: Path, frozen: Path
):
    path = _restored(tmp_path / "old.db", frozen)
    before = _rows(path)
    assert [table for table, rows in before.items() if not rows] == []
    async with open_database(path, now=NOON):
        pass
    after = _rows(path)
    for table, rows in before.items():
        now = after[RENAMED.get(table, table)]
        lost = [row for row in rows if not _is_kept(row, now)]
        assert lost == [], table
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda file: file.stem)
async def test_the_program_goes_on_with_a_frozen_database(tmp_path: Path, frozen: Path):
    path = _restored(tmp_path / "old.db", frozen)
    async with open_database(path, now=NOON) as db:
        await _goes_on(db)


async def _goes_on(db: Database) -> None:
    texts = [stored.message.text for stored in await recent_messages(db, GROUP, 99)]
    assert "明天七点出发" in texts
    assert "说错了" not in texts
    (turn,) = await recent_turns(db, GROUP, 9)
    assert turn.lines[-1].text == "好，明天七点"
    cards = [name.name for name in await names_of(db, Member(BOT, ALICE)) if name.group_id]
    assert cards == ["小鱼", "大鱼", "鲸鱼"]
    book = await open_settings(db, {})
    assert not book.general.memory_member_batch_enabled
    assert book.of(GROUP).reply_mode == "auto"
    (again,) = await store(db, carded("小鱼", nickname="Fish", id="-1712345678", sequence=5001))
    assert not again.is_new
    (late,) = await store(db, carded("鲸鱼", id="799", at=NOON + 61_000))
    assert late.recalled


async def test_what_is_frozen_anew_is_a_database_of_today(tmp_path: Path, fresh: Path):
    frozen = tmp_path / "frozen.sql"
    frozen.write_text(await dump(tmp_path / "new.db"), "utf-8")
    path = _restored(tmp_path / "copy.db", frozen)
    assert _schema(path) == _schema(fresh)
    assert [table for table, rows in _rows(path).items() if not rows] == []


def test_the_folder_of_steps_holds_nothing_else():
    names = {file.name for file in STEPS_FOLDER.iterdir() if not file.name.startswith("__")}
    assert names == {f"{step.name}.sql" for step in read_steps()}
    assert len(names) == HEAD

"""The index of entries: it follows them, and a search reads what the turn may read and no more."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.model import Chat, Scope, Stream
from bot.store.database import Database, open_database
from bot.store.entry_search import Candidate, candidates, count_uses
from bot.store.memory import StreamWriter, forget_message, rewrite
from bot.store.messages import Recall, recall_message
from bot.store.reach import readable
from bot.store.revisions import undo_revision
from bot.store.sqlite import visit
from tests.migration.freeze import FOLDER
from tests.store.rows import (
    ALICE,
    BOT,
    BRUNO,
    GROUP,
    NOON,
    OTHER_GROUP,
    PRIVATE,
    outside,
    rows,
    said,
    store,
    value,
    values,
)
from tests.unit.test_search_tokens import HOSTILE

OF_GROUP = Stream(Scope(BOT, "group", GROUP.id), GROUP)
OF_ALICE = Stream(Scope(BOT, "member", ALICE), GROUP)
OF_ALICE_THERE = Stream(Scope(BOT, "member", ALICE), OTHER_GROUP)
OF_ALICE_ALONE = Stream(Scope(BOT, "member", ALICE), PRIVATE)
OF_BRUNO = Stream(Scope(BOT, "member", BRUNO), GROUP)


async def _change(db: Database, stream: Stream, work: Callable[[StreamWriter], object]) -> None:
    async with db.transaction() as tx:
        await rewrite(tx, {stream: work}, at=NOON, by="test", why="")


async def _remember(
    db: Database, stream: Stream, text: str, document: Any = "profile", **fields: Any
) -> int:
    """Let a stream hold an entry that rests on a message; return the message's row."""
    count = await value(db, "SELECT count(*) FROM messages")
    [receipt] = await store(db, said("说", id=f"m{count}", chat=stream.origin, at=NOON + count))
    given = {"source_task": "group", **fields}
    await _change(db, stream, lambda w: w.add(document, text, [[receipt.row_id]], **given))
    return receipt.row_id


async def _search(
    db: Database, query: str, chat: Chat = GROUP, by: str = ALICE, limit: int = 50
) -> list[Candidate]:
    streams = await readable(db, chat, by, cross_group=True)
    async with db.reader() as connection:
        found = await visit(connection, lambda c: candidates(c, streams, query, limit))
    return sorted(found, key=lambda one: -one.keyword)


async def _texts(db: Database, query: str, chat: Chat = GROUP, by: str = ALICE) -> list[str]:
    return [one.text for one in await _search(db, query, chat, by)]


async def _recall(db: Database, row: int, chat: Chat = GROUP) -> None:
    platform_id = await value(db, "SELECT platform_id FROM messages WHERE id = ?", row)
    async with db.transaction() as tx:
        taken = await recall_message(tx, Recall(chat, platform_id, ALICE, NOON))
        assert taken is not None
        assert taken.row_id == row
        await forget_message(tx, row, NOON)


# --- it follows the entries -------------------------------------------------------------------


async def test_an_entry_is_found_as_soon_as_it_is_there(db: Database):
    await _remember(db, OF_GROUP, "大家约好周六去湖边钓鱼", "daily")
    assert await _texts(db, "钓鱼") == ["大家约好周六去湖边钓鱼"]
    assert await _texts(db, "爬山") == []


async def test_what_is_forgotten_is_found_no_more_and_leaves_no_words(db: Database, path: Path):
    row = await _remember(db, OF_GROUP, "zyxwvut 的秘密是 qponmlk", "daily")
    kept = [await _remember(db, OF_GROUP, f"第{n}件事", "daily") for n in range(20)]
    assert await _texts(db, "zyxwvut") == ["zyxwvut 的秘密是 qponmlk"]
    await _recall(db, row)
    assert await _texts(db, "zyxwvut") == []
    assert await value(db, "SELECT count(*) FROM entry_index") == len(kept)
    blocks = outside(path, "SELECT block FROM entry_index_data")
    assert not [block for (block,) in blocks if b"zyx" in block or b"qpon" in block]


async def test_an_entry_that_ended_is_not_found_until_it_is_put_back(db: Database):
    await _remember(db, OF_GROUP, "周六去湖边钓鱼", "daily")
    await _change(db, OF_GROUP, lambda w: w.end(1, "superseded", "不去了"))
    assert await _texts(db, "钓鱼") == []
    revision = await value(db, "SELECT max(id) FROM revisions")
    async with db.transaction() as tx:
        assert await undo_revision(tx, revision, by="test", at=NOON)
    assert await _texts(db, "钓鱼") == ["周六去湖边钓鱼"]


async def test_a_change_that_fails_leaves_no_words(db: Database):
    def fail(writer: StreamWriter) -> None:
        writer.add("daily", "周六去湖边钓鱼", [], source_task="group")
        raise LookupError

    await store(db, said())
    with pytest.raises(LookupError):
        await _change(db, OF_GROUP, fail)
    assert await value(db, "SELECT count(*) FROM entry_index") == 0


@pytest.mark.parametrize("version", ["v2", "v3", "v4"])
async def test_entries_that_are_older_than_the_index_are_found(path: Path, version: str):
    connection = sqlite3.connect(path)
    connection.executescript((FOLDER / f"{version}.sql").read_text("utf-8"))
    connection.close()
    for _ in range(2):
        async with open_database(path, now=NOON) as db:
            assert await values(db, "SELECT rowid FROM entry_index ORDER BY rowid") == (
                await values(db, "SELECT id FROM entries WHERE text <> '' ORDER BY id")
            )
            assert await _texts(db, "几点出发") == ["七点出发"]


async def test_a_file_whose_index_was_emptied_is_indexed_when_it_is_opened(path: Path):
    async with open_database(path, now=NOON) as db:
        for number in range(3):
            await _remember(db, OF_GROUP, f"第{number}次去钓鱼", "daily")
        async with db.transaction() as tx:
            await tx.execute_fetchall("DELETE FROM entry_index")
    async with open_database(path, now=NOON) as db:
        assert len(await _texts(db, "钓鱼")) == 3


async def test_the_index_is_sound_after_all_of_this(db: Database):
    kept = [await _remember(db, OF_GROUP, f"第{n}次去钓鱼", "daily") for n in range(9)]
    for row in kept[::2]:
        await _recall(db, row)
    async with db.transaction() as tx:
        await tx.execute_fetchall(
            "INSERT INTO entry_index (entry_index) VALUES ('integrity-check')"
        )
    assert len(await _texts(db, "钓鱼")) == 4


# --- what a search finds ----------------------------------------------------------------------


async def test_what_has_more_of_the_question_fits_better(db: Database):
    await _remember(db, OF_GROUP, "周末去爬山", "daily")
    await _remember(db, OF_GROUP, "周末去湖边钓鱼", "daily")
    found = await _search(db, "周末钓鱼的事")
    assert [(one.text, one.keyword > 0.8) for one in found] == [
        ("周末去湖边钓鱼", True),
        ("周末去爬山", False),
    ]


@pytest.mark.parametrize("query", ["猫", "Runs?", "去KTV", "ktv", "１２３"])
async def test_words_of_all_kinds_are_found(db: Database, query: str):
    await _remember(db, OF_GROUP, "running 去 KTV 看猫 123", "daily")
    await _remember(db, OF_GROUP, "别的事", "daily")
    assert await _texts(db, query) == ["running 去 KTV 看猫 123"]


async def test_pins_and_working_notes_are_there_whatever_was_asked(db: Database):
    await _remember(db, OF_ALICE, "对花生过敏")
    await _remember(db, OF_ALICE, "想换工作", "note", tier="working")
    await _remember(db, OF_ALICE, "养了一只猫")
    await _remember(db, OF_ALICE, "去年的笔记", "note", tier="episodic")
    async with db.transaction() as tx:
        await tx.execute_fetchall("UPDATE entries SET pinned = 1 WHERE text = '对花生过敏'")
    for query in ("在吗", "", "钓鱼"):
        assert {one.text for one in await _search(db, query)} == {"对花生过敏", "想换工作"}


async def test_of_what_fits_only_the_best_are_taken(db: Database):
    for number in range(5):
        await _remember(db, OF_GROUP, f"第{number}次去钓鱼" + "，很远" * number, "daily")
    found = await _search(db, "钓鱼", limit=2)
    assert [one.text for one in found] == ["第0次去钓鱼", "第1次去钓鱼，很远"]


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
async def test_no_question_breaks_a_search_or_reaches_another_stream(db: Database, query: str):
    await _remember(db, OF_BRUNO, "猫 狗 长长的问题 word a b stream s1 not and or")
    await _remember(db, OF_ALICE_ALONE, "猫 狗 长长的问题 word a b stream s1 not and or")
    await _remember(db, OF_GROUP, "群里的事", "daily")
    assert set(await _texts(db, query)) <= {"群里的事"}


async def test_an_entry_that_names_a_stream_is_not_taken_for_one_of_it(db: Database):
    await _remember(db, OF_GROUP, "第一件事", "daily")
    ours = await value(db, "SELECT id FROM streams")
    await _remember(db, OF_BRUNO, f"s{ours} 钓鱼")
    assert await _texts(db, "钓鱼") == []


# --- isolation --------------------------------------------------------------------------------

EVERYWHERE = {
    "群": (OF_GROUP, ("profile", "daily", "memory", "note")),
    "本人这里": (OF_ALICE, ("profile", "pattern", "daily", "memory", "note")),
    "本人那里": (OF_ALICE_THERE, ("profile", "pattern", "daily", "memory", "note")),
    "本人私聊": (OF_ALICE_ALONE, ("profile", "pattern", "daily", "memory", "note")),
    "别人": (OF_BRUNO, ("profile", "pattern", "daily", "memory", "note")),
}


@pytest.fixture
async def full(db: Database) -> Database:
    """Every document of every stream has an entry, and a pinned one, about fishing."""
    for name, (stream, documents) in EVERYWHERE.items():
        for document in documents:
            for mark in ("", "!"):
                tier = "working" if document == "note" else "episodic"
                await _remember(db, stream, f"{name} {document}{mark} 钓鱼", document, tier=tier)
    async with db.transaction() as tx:
        await tx.execute_fetchall("UPDATE entries SET pinned = 1 WHERE text LIKE '%!%'")
    return db


def _expected(*cells: str) -> set[str]:
    return {f"{cell}{mark} 钓鱼" for cell in cells for mark in ("", "!")}


async def test_a_turn_in_a_group_finds_the_groups_memory_and_what_is_public_of_its_sender(
    full: Database,
):
    wanted = _expected(
        "群 profile",
        "群 daily",
        "群 memory",
        "群 note",
        "本人这里 profile",
        "本人这里 pattern",
        "本人这里 note",
        "本人那里 profile",
        "本人那里 pattern",
    )
    assert set(await _texts(full, "钓鱼")) == wanted


async def test_a_private_turn_finds_all_of_the_person_and_nothing_of_a_group(full: Database):
    names = ("本人这里", "本人那里", "本人私聊")
    documents = ("profile", "pattern", "daily", "memory", "note")
    wanted = _expected(*(f"{name} {document}" for name in names for document in documents))
    assert set(await _texts(full, "钓鱼", PRIVATE)) == wanted


async def test_how_well_something_fits_does_not_depend_on_what_others_remember(db: Database):
    await _remember(db, OF_GROUP, "周末去爬山", "daily")
    await _remember(db, OF_GROUP, "周末去湖边钓鱼", "daily")
    before = await _search(db, "周末爬山")
    for number in range(20):
        await _remember(db, OF_BRUNO, f"第{number}次爬山")
    assert await _search(db, "周末爬山") == before


# --- uses -------------------------------------------------------------------------------------


async def test_a_use_counts_once_a_day(db: Database):
    await _remember(db, OF_GROUP, "一", "daily")
    await _remember(db, OF_GROUP, "二", "daily")
    for local_date, used in (
        ("2026-09-21", [1]),
        ("2026-09-21", [1, 2]),
        ("2026-09-22", [1]),
        ("2026-09-22", []),
    ):
        async with db.transaction() as tx:
            await count_uses(tx, used, local_date)
    found = await rows(db, "SELECT uses, used_on FROM entries ORDER BY id")
    assert [tuple(row) for row in found] == [(2, "2026-09-22"), (1, "2026-09-21")]

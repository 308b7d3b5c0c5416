"""Vectors of entries: one for all that has text, gone with it, and compared by readers alone."""

import json
import sqlite3
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from numpy.typing import NDArray

from bot.model import Chat, Scope, Stream
from bot.search.alike import BUNDLED
from bot.search.vectors import kept
from bot.store import entry_vectors
from bot.store.chats import set_access
from bot.store.database import Database, open_database
from bot.store.entry_search import Candidate, bearing
from bot.store.entry_vectors import (
    MAX_COMPARED,
    Meaning,
    WantingEntry,
    keep_entries,
    next_entries,
    request_entries,
)
from bot.store.forgetting import forget_entry
from bot.store.memory import StreamWriter, forget_message, rewrite
from bot.store.messages import Recall, recall_message
from bot.store.reach import readable
from bot.store.revisions import undo_revision
from bot.store.sqlite import visit
from bot.store.vectors import Space, enter_space
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

DIMENSIONS = 256
OF_GROUP = Stream(Scope(BOT, "group", GROUP.id), GROUP)
OF_GROUP_THERE = Stream(Scope(BOT, "group", OTHER_GROUP.id), OTHER_GROUP)
OF_ALICE = Stream(Scope(BOT, "member", ALICE), GROUP)
OF_ALICE_THERE = Stream(Scope(BOT, "member", ALICE), OTHER_GROUP)
OF_ALICE_ALONE = Stream(Scope(BOT, "member", ALICE), PRIVATE)
OF_BRUNO = Stream(Scope(BOT, "member", BRUNO), GROUP)
ALL = (OF_GROUP, OF_GROUP_THERE, OF_ALICE, OF_ALICE_THERE, OF_ALICE_ALONE, OF_BRUNO)


def vector_of(text: str) -> NDArray[np.float32]:
    """Return what a text means here: nothing that any other means."""
    dice = np.random.RandomState(crc32(text.encode()))
    vector = dice.standard_normal(DIMENSIONS).astype(np.float32)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


async def remember(db: Database, stream: Stream, text: str, document: Any = "profile") -> int:
    """Let a stream hold an entry that rests on a message; return the message's row."""
    count = await value(db, "SELECT count(*) FROM messages")
    [receipt] = await store(db, said("说", id=f"m{count}", chat=stream.origin, at=NOON + count))

    def add(writer: StreamWriter) -> None:
        writer.add(document, text, [[receipt.row_id]], source_task="group")

    async with db.transaction() as tx:
        await rewrite(tx, {stream: add}, at=NOON, by="test", why="")
    return receipt.row_id


async def embed(db: Database, embedder: str = "one", *, is_remote: bool = False) -> Space:
    """Give every entry a vector that is to have one."""
    space = await enter_space(db, embedder, DIMENSIONS)
    while lot := await next_entries(db, space, 5, is_remote=is_remote):
        await keep_entries(db, space, [(one, kept(vector_of(one.text))) for one in lot])
    return space


async def with_vectors(db: Database) -> list[str]:
    """Return the texts of the entries that have a vector, and fail if one is of another text."""
    found = await rows(
        db,
        "SELECT e.text, v.vector FROM entry_vectors AS v JOIN entries AS e ON e.id = v.entry_id"
        " WHERE v.vector IS NOT NULL ORDER BY e.id",
    )
    assert all(row["vector"] == kept(vector_of(row["text"])) for row in found)
    return [row["text"] for row in found]


async def near(
    db: Database, meant: str, chat: Chat = GROUP, by: str = ALICE, *, across: bool = True
) -> list[Candidate]:
    """Return what is near to a question that has no word of anything."""
    streams = await readable(db, chat, by, cross_group=across)
    meaning = Meaning("one", vector_of(meant)), BUNDLED
    async with db.reader() as connection:
        return await visit(connection, lambda c: bearing(c, streams, "", meaning, 50))


async def texts(db: Database, meant: str, **where: Any) -> list[str]:
    return [one.text for one in await near(db, meant, **where)]


async def recall(db: Database, row: int, chat: Chat = GROUP) -> None:
    platform_id = await value(db, "SELECT platform_id FROM messages WHERE id = ?", row)
    async with db.transaction() as tx:
        taken = await recall_message(tx, Recall(chat, platform_id, ALICE, NOON))
        assert taken is not None
        assert taken.row_id == row
        await forget_message(tx, row, NOON)


# --- the way through --------------------------------------------------------------------------


async def test_every_entry_gets_a_vector_and_is_found_by_what_it_means(db: Database):
    for number in range(12):
        await remember(db, OF_GROUP, f"第{number}件事")
    await embed(db)
    assert len(await with_vectors(db)) == 12
    assert await texts(db, "第3件事") == ["第3件事"]
    [found] = await near(db, "第3件事")
    assert (found.keyword, found.vector) == (0.0, 1.0)


async def test_what_came_last_comes_first_and_before_what_another_embedder_knew(db: Database):
    for text in ("一", "二"):
        await remember(db, OF_GROUP, text)
    await embed(db)
    for text in ("三", "四"):
        await remember(db, OF_GROUP, text)
    space = await enter_space(db, "two", DIMENSIONS)
    lot = await next_entries(db, space, 9, is_remote=False)
    assert [one.text for one in lot] == ["四", "三", "二", "一"]


async def test_a_run_that_stopped_goes_on_where_it_stopped(db: Database):
    for text in ("一", "二", "三"):
        await remember(db, OF_GROUP, text)
    space = await enter_space(db, "one", DIMENSIONS)
    [last] = await next_entries(db, space, 1, is_remote=False)
    await keep_entries(db, space, [(last, None)])
    lot = await next_entries(db, space, 9, is_remote=False)
    assert [one.text for one in lot] == ["二", "一"]
    assert await texts(db, "三") == []


async def test_vectors_of_another_embedder_are_not_compared(db: Database):
    await remember(db, OF_GROUP, "一件事")
    await embed(db)
    await enter_space(db, "two", DIMENSIONS)
    assert await texts(db, "一件事") == []
    space = await enter_space(db, "one", DIMENSIONS)
    assert await texts(db, "一件事") == []
    await embed(db)
    assert await texts(db, "一件事") == ["一件事"]
    assert await values(db, "SELECT DISTINCT space_id FROM entry_vectors") == [space.id]


async def test_a_lot_of_an_embedder_that_is_not_in_use_any_more_spoils_nothing(db: Database):
    await remember(db, OF_GROUP, "一件事")
    space = await enter_space(db, "two", DIMENSIONS)
    lot = await next_entries(db, space, 9, is_remote=False)
    newer = await embed(db)
    await keep_entries(db, space, [(one, kept(vector_of("别的"))) for one in lot])
    assert await next_entries(db, space, 9, is_remote=False) == []
    assert await with_vectors(db) == ["一件事"]
    assert await values(db, "SELECT space_id FROM entry_vectors") == [newer.id]


async def test_entries_of_chats_that_are_off_wait_where_texts_leave(db: Database):
    await remember(db, OF_GROUP, "这里的事")
    await remember(db, OF_GROUP_THERE, "那里的事")
    async with db.transaction() as tx:
        await set_access(tx, OTHER_GROUP, "disabled", by=ALICE, at=NOON)
    await embed(db, is_remote=True)
    assert await with_vectors(db) == ["这里的事"]
    async with db.transaction() as tx:
        await set_access(tx, OTHER_GROUP, "enabled", by=ALICE, at=NOON)
    await embed(db, is_remote=True)
    assert await with_vectors(db) == ["这里的事", "那里的事"]


async def test_no_more_vectors_are_read_than_the_newest(db: Database):
    def add(writer: StreamWriter) -> None:
        for number in range(MAX_COMPARED + 3):
            writer.add("daily", f"第{number}件事", [[1]], source_task="group")

    await store(db, said("说"))
    async with db.transaction() as tx:
        await rewrite(tx, {OF_GROUP: add}, at=NOON, by="test", why="")
    await embed_at_once(db)
    streams = await readable(db, GROUP, ALICE, cross_group=True)
    reach = json.dumps([(stream.row_id, stream.place) for stream in streams])
    meaning = Meaning("one", vector_of("第0件事"))

    async def compared(*found: int) -> set[int]:
        async with db.reader() as c:
            return set(await visit(c, lambda c: entry_vectors.cosines(c, reach, found, meaning)))

    newest = set(range(4, MAX_COMPARED + 4))
    assert await compared() == newest
    # What words found is compared as well, however old it is.
    assert await compared(1, 2) == newest - {4, 5} | {1, 2}


async def test_only_vectors_of_living_entries_that_may_be_read_are_compared(db: Database):
    for stream in (OF_GROUP, OF_GROUP, OF_ALICE_ALONE, OF_BRUNO):
        await remember(db, stream, "一件事")
    await remember(db, OF_ALICE, "一件事", "daily")
    await embed(db)
    async with db.transaction() as tx:
        await rewrite(
            tx, {OF_GROUP: lambda w: w.end(1, "superseded", "")}, at=NOON, by="test", why=""
        )
    streams = await readable(db, GROUP, ALICE, cross_group=True)
    reach = json.dumps([(stream.row_id, stream.place) for stream in streams])
    meaning = Meaning("one", vector_of("一件事"))
    everything = await values(db, "SELECT id FROM entries")
    for found in ([], everything):
        async with db.reader() as c:
            told = await visit(c, lambda c: entry_vectors.cosines(c, reach, found, meaning))
        assert len(told) == 1
        assert await values(db, "SELECT number FROM entries WHERE id = ?", *told) == [2]


async def embed_at_once(db: Database) -> None:
    space = await enter_space(db, "one", DIMENSIONS)
    lot = await next_entries(db, space, 10_000, is_remote=False)
    await keep_entries(db, space, [(one, kept(vector_of(one.text))) for one in lot])


# --- it goes with the text --------------------------------------------------------------------


async def is_gone(db: Database, path: Path) -> None:
    """Fail if the vector of the secret is anywhere in the file, or its entry waits for one."""
    assert await values(db, "SELECT entry_id FROM entry_vectors WHERE entry_id = 1") == []
    assert not is_in_file(path, SECRET)


def is_in_file(path: Path, text: str) -> bool:
    """Whether what a text means is anywhere in the file of the database."""
    outside(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    return kept(vector_of(text)) in path.read_bytes()


SECRET = "门牌是八栋"


@pytest.fixture
async def known(db: Database, path: Path) -> tuple[Database, int]:
    """A database with a secret that has its vector, and the message on which that rests."""
    row = await remember(db, OF_ALICE, SECRET)
    await remember(db, OF_ALICE, "别的事")
    await embed(db)
    assert await with_vectors(db) == [SECRET, "别的事"]
    assert is_in_file(path, SECRET)
    return db, row


async def test_a_recall_of_what_proves_an_entry_takes_its_vector(
    known: tuple[Database, int], path: Path
):
    db, row = known
    await recall(db, row)
    assert await with_vectors(db) == ["别的事"]
    await is_gone(db, path)


async def test_forgetting_an_entry_takes_its_vector(known: tuple[Database, int], path: Path):
    db, _ = known
    async with db.transaction() as tx:
        assert await forget_entry(tx, OF_ALICE, 1, by=ALICE, at=NOON)
    assert await with_vectors(db) == ["别的事"]
    await is_gone(db, path)


async def test_an_entry_that_ended_keeps_its_vector_and_is_not_found_until_it_is_put_back(
    known: tuple[Database, int],
):
    db, _ = known
    async with db.transaction() as tx:
        await rewrite(
            tx, {OF_ALICE: lambda w: w.end(1, "superseded", "搬家")}, at=NOON, by="test", why=""
        )
    assert await with_vectors(db) == [SECRET, "别的事"]
    assert await texts(db, SECRET) == []
    revision = await value(db, "SELECT max(id) FROM revisions")
    async with db.transaction() as tx:
        assert await undo_revision(tx, revision, by="test", at=NOON)
    assert await texts(db, SECRET) == [SECRET]


async def test_an_entry_that_ended_and_is_recalled_loses_its_vector(
    known: tuple[Database, int], path: Path
):
    db, row = known
    async with db.transaction() as tx:
        await rewrite(
            tx, {OF_ALICE: lambda w: w.end(1, "superseded", "搬家")}, at=NOON, by="test", why=""
        )
    await recall(db, row)
    await is_gone(db, path)


async def test_undoing_what_added_an_entry_hides_it_and_a_recall_then_erases_it(
    known: tuple[Database, int], path: Path
):
    db, row = known
    revision = await value(db, "SELECT min(id) FROM revisions")
    async with db.transaction() as tx:
        assert await undo_revision(tx, revision, by="test", at=NOON)
    assert await texts(db, SECRET) == []
    await recall(db, row)
    await is_gone(db, path)


async def test_a_recall_takes_the_vector_of_what_was_compressed_and_of_what_was_made_of_it(
    known: tuple[Database, int], path: Path
):
    db, row = known

    def compress(writer: StreamWriter) -> None:
        writer.compress("门牌与别的事", "2026-09-21", [1, 2], source_task="compress")
        for number in (1, 2):
            writer.end(number, "compressed", "")

    async with db.transaction() as tx:
        await rewrite(tx, {OF_ALICE: compress}, at=NOON, by="compress", why="")
    await embed(db)
    assert await texts(db, SECRET) == []
    assert await with_vectors(db) == [SECRET, "别的事", "门牌与别的事"]
    await recall(db, row)
    assert await with_vectors(db) == ["别的事"]
    assert await texts(db, "别的事") == ["别的事"]
    await is_gone(db, path)
    assert not is_in_file(path, "门牌与别的事")


async def test_what_is_erased_while_it_is_embedded_keeps_no_vector(db: Database, path: Path):
    row = await remember(db, OF_ALICE, SECRET)
    space = await enter_space(db, "one", DIMENSIONS)
    lot = await next_entries(db, space, 9, is_remote=False)
    await recall(db, row)
    await keep_entries(db, space, [(one, kept(vector_of(one.text))) for one in lot])
    assert await values(db, "SELECT 1 FROM entry_vectors") == []
    await is_gone(db, path)


async def test_a_text_that_becomes_another_while_it_is_embedded_is_embedded_anew(db: Database):
    await remember(db, OF_ALICE, "旧的说法")
    space = await enter_space(db, "one", DIMENSIONS)
    lot = await next_entries(db, space, 9, is_remote=False)
    async with db.transaction() as tx:
        await tx.execute_fetchall("UPDATE entries SET text = '新的说法'")
    await keep_entries(db, space, [(one, kept(vector_of(one.text))) for one in lot])
    assert await with_vectors(db) == []
    assert await next_entries(db, space, 9, is_remote=False) == [WantingEntry(1, "新的说法")]


async def test_an_erasure_that_is_taken_back_leaves_the_vector(known: tuple[Database, int]):
    db, _ = known

    async def fail() -> None:
        async with db.transaction() as tx:
            assert await forget_entry(tx, OF_ALICE, 1, by=ALICE, at=NOON)
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert await texts(db, SECRET) == [SECRET]


async def test_an_entry_whose_row_is_deleted_takes_its_vector_along(
    known: tuple[Database, int],
):
    db, _ = known
    async with db.transaction() as tx:
        await tx.execute_fetchall("DELETE FROM entries WHERE id = 2")
    assert await with_vectors(db) == [SECRET]


# --- as far as a turn may read ----------------------------------------------------------------


@pytest.fixture
async def full(db: Database) -> Database:
    """Every stream holds the same thing in each document, and all of it has a vector."""
    for stream in ALL:
        for document in ("profile", "pattern", "daily", "memory", "note"):
            place = f"{stream.scope.kind}{stream.scope.id}@{stream.origin.id}"
            await remember(db, stream, f"{place} {document}", document)
    await embed(db)
    assert len(await with_vectors(db)) == len(ALL) * 5
    return db


def expected(*cells: tuple[Stream, str]) -> set[str]:
    return {
        f"{s.scope.kind}{s.scope.id}@{s.origin.id} {one}"
        for s, documents in cells
        for one in documents.split()
    }


OF_A_GROUP, OF_A_SENDER, EVERYTHING = (
    "profile daily memory note",
    "profile pattern note",
    "profile pattern daily memory note",
)
HERE = [(OF_GROUP, OF_A_GROUP), (OF_ALICE, OF_A_SENDER)]
ELSEWHERE = (OF_ALICE_THERE, "profile pattern")


async def everything(db: Database, **where: Any) -> set[str]:
    """Ask for the meaning of every entry there is, and return all that is found."""
    found: set[str] = set()
    for text in await values(db, "SELECT text FROM entries WHERE text <> ''"):
        found |= set(await texts(db, text, **where))
    return found


async def test_a_group_finds_its_own_and_its_sender_and_nothing_private(full: Database):
    assert await everything(full) == expected(*HERE, ELSEWHERE)
    assert await everything(full, across=False) == expected(*HERE)


async def test_another_member_finds_nothing_of_the_first(full: Database):
    assert await everything(full, by=BRUNO) == expected(
        (OF_GROUP, OF_A_GROUP), (OF_BRUNO, OF_A_SENDER)
    )


async def test_a_person_alone_finds_all_of_theirs_and_nothing_of_a_group(full: Database):
    assert await everything(full, chat=PRIVATE) == expected(
        (OF_ALICE, EVERYTHING), (OF_ALICE_THERE, EVERYTHING), (OF_ALICE_ALONE, EVERYTHING)
    )


async def test_a_switch_of_ones_own_holds(full: Database):
    async with full.transaction() as tx:
        await tx.execute_fetchall("UPDATE members SET cross_group = 0 WHERE user_id = ?", (ALICE,))
    assert await everything(full) == expected(*HERE)


async def test_how_near_something_is_does_not_depend_on_what_others_remember(db: Database):
    for number in range(20):
        await remember(db, OF_GROUP, f"第{number}件事")
    await embed(db)
    before = [(one.text, one.vector) for one in await near(db, "第3件事")]
    for number in range(60):
        await remember(db, OF_BRUNO, f"第{number}件私事")
        await remember(db, OF_ALICE_ALONE, "第3件事")
    await embed(db)
    assert [(one.text, one.vector) for one in await near(db, "第3件事")] == before


# --- files that are older, and files made anew ------------------------------------------------


@pytest.mark.parametrize("version", ["v2", "v4", "v11"])
async def test_entries_that_are_older_than_their_vectors_get_them(path: Path, version: str):
    connection = sqlite3.connect(path)
    connection.executescript((FOLDER / f"{version}.sql").read_text("utf-8"))
    connection.close()
    async with open_database(path, now=NOON) as db:
        has_text = await values(db, "SELECT text FROM entries WHERE text <> '' ORDER BY id")
        assert has_text
        await embed(db)
        assert await with_vectors(db) == has_text


async def test_all_can_be_made_anew(known: tuple[Database, int]):
    db, row = known
    await recall(db, row)
    async with db.transaction() as tx:
        await tx.execute_fetchall("DELETE FROM entry_vectors")
    await db.write(request_entries)
    assert await with_vectors(db) == []
    await embed(db)
    assert await with_vectors(db) == ["别的事"]

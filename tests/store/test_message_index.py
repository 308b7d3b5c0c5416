"""The index of messages: it has what may be found and nothing else, whatever becomes of them."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model import Message
from bot.search.grams import message_tokens
from bot.store.database import Database, open_database
from bot.store.message_index import (
    clear_message_index,
    index_step,
    messages_left,
    scrub_step,
)
from bot.store.messages import (
    Heard,
    Recall,
    drop_quotes,
    recall_message,
    replace_text,
    set_apart,
)
from tests.store.rows import (
    ALICE,
    BRUNO,
    GROUP,
    MINUTE,
    NOON,
    OTHER_GROUP,
    PRIVATE,
    SECOND,
    indexed,
    outside,
    own,
    rows,
    said,
    store,
    store_apart,
    value,
)

MAY_BE_FOUND = """
    SELECT id, chat_id, member_id, local_date, text FROM messages
    WHERE kind = 'chat' AND text <> '' AND recalled_at IS NULL AND forgotten_at IS NULL
"""
STEMMED = "w"
"""Tokens of words are kept in another form; all others as they are."""


async def expected(db: Database) -> dict[int, set[str]]:
    """Return the tokens that the index should have, without those of words."""
    found = await rows(db, MAY_BE_FOUND)
    tokens = {row["id"]: set(message_tokens(*tuple(row)[1:]).split()) for row in found}
    return {row: _exact(of_row) for row, of_row in tokens.items()}


def actual(db: Database) -> dict[int, set[str]]:
    """Return the tokens that it has."""
    return {row: _exact(of_row) for row, of_row in indexed(db.path).items()}


def _exact(tokens: set[str]) -> set[str]:
    return {token for token in tokens if not token.startswith(STEMMED)}


async def found(db: Database, token: str) -> list[int]:
    """Return the rows that have a token."""
    match = "SELECT rowid FROM message_index WHERE message_index MATCH ? ORDER BY rowid"
    return [row[0] for row in await rows(db, match, f'"{token}"')]


async def _recall(db: Database, id: str, at: int = NOON + MINUTE) -> None:
    async with db.transaction() as tx:
        await recall_message(tx, Recall(GROUP, id, ALICE, at))


# --- what comes in ----------------------------------------------------------------------------


async def test_what_people_and_the_account_say_is_indexed_and_nothing_else(db: Database):
    messages = [
        said("花生", id="1"),
        said("/帮助", id="2", kind="command"),
        said("", id="3"),
        own("我知道花生", id="4"),
        own("命令的回答", id="5", kind="notice"),
        said("花生", id="6", chat=OTHER_GROUP),
        said("花生", id="7", chat=PRIVATE),
    ]
    receipts = await store(db, *messages)
    wanted = {receipts[at].row_id for at in (0, 3, 5, 6)}
    assert set(actual(db)) == wanted
    assert actual(db) == await expected(db)


async def test_each_chat_has_tokens_of_its_own(db: Database):
    here, there = await store(db, said("花生", id="1"), said("花生", id="1", chat=OTHER_GROUP))
    assert await found(db, "花生g1") == [here.row_id]
    assert await found(db, "花生g2") == [there.row_id]


async def test_the_same_event_twice_is_indexed_once(db: Database):
    for _ in range(3):
        await store(db, said("花生"))
    assert len(await found(db, "花生g1")) == 1
    assert actual(db) == await expected(db)


async def test_what_another_program_wrote_into_the_table_is_indexed_with_the_next_message(
    db: Database,
):
    await store(db, said("一", id="1"))
    async with db.transaction() as tx:
        await tx.execute_fetchall(
            "INSERT INTO messages (chat_id, member_id, platform_id, direction, kind, sent_at,"
            " received_at, local_date, sender_name, segments, text) SELECT chat_id, member_id,"
            " '2', direction, kind, sent_at, received_at, local_date, '', '[]', '二' FROM messages"
        )
        await tx.execute_fetchall("UPDATE messages SET text = '三' WHERE text = '二'")
    await store(db, said("四", id="4"))
    assert actual(db) == await expected(db)
    assert len(actual(db)) == 3


async def test_a_transaction_that_fails_leaves_nothing_in_the_index(db: Database):
    await store(db, said("花生", id="1"))
    with pytest.raises(LookupError):
        await _recall_in_vain(db)
    assert len(await found(db, "花生g1")) == 1


async def _recall_in_vain(db: Database) -> None:
    async with db.transaction() as tx:
        await recall_message(tx, Recall(GROUP, "1", ALICE, NOON))
        raise LookupError


# --- what goes --------------------------------------------------------------------------------


async def test_what_is_recalled_leaves_the_index(db: Database):
    await store(db, said("花生", id="1"), said("花生", id="2"))
    await _recall(db, "1")
    await _recall(db, "1")
    assert await found(db, "花生g1") == [2]
    assert actual(db) == await expected(db)


async def test_what_was_recalled_before_it_came_is_never_in_the_index(db: Database):
    await _recall_of_nothing(db)
    gone, here = await store(db, said("花生", id="1"), said("猫", id="2"))
    assert gone.recalled
    assert set(actual(db)) == {here.row_id}
    assert actual(db) == await expected(db)


async def _recall_of_nothing(db: Database) -> None:
    await store(db, said("先有群", id="0"))
    await _recall(db, "0")
    await _recall(db, "1", at=NOON)


async def test_what_is_forgotten_leaves_the_index_and_keeps_its_text(db: Database):
    await store(db, said("花生", id="1"))
    async with db.transaction() as tx:
        await set_apart(tx, 1, NOON)
    assert await value(db, "SELECT text FROM messages") == "花生"
    assert actual(db) == {}


async def test_a_text_that_changes_changes_in_the_index(db: Database):
    await store(db, said("[合并转发 1 条]", id="1"))
    async with db.transaction() as tx:
        await replace_text(tx, 1, "[合并转发 1 条]\n小鱼：花生")
    assert await found(db, "花生g1") == [1]
    async with db.transaction() as tx:
        await replace_text(tx, 1, "没了")
    assert await found(db, "花生g1") == []
    assert actual(db) == await expected(db)


async def test_a_text_that_comes_after_the_recall_stays_out(db: Database):
    await store(db, said("[合并转发 1 条]", id="1"))
    await _recall(db, "1")
    async with db.transaction() as tx:
        await replace_text(tx, 1, "花生")
    assert actual(db) == {}


async def test_an_echo_that_turns_out_to_be_a_notice_leaves_the_index(db: Database):
    await store(db, own("命令的回答", id="5"))
    assert len(actual(db)) == 1
    await store(db, own("命令的回答", id="5", at=NOON + SECOND, kind="notice"))
    assert actual(db) == {}


async def test_an_echo_and_its_notice_in_one_transaction_leave_nothing(db: Database):
    first = own("命令的回答", id="5")
    await store(db, first, own("命令的回答", id="5", at=NOON + SECOND, kind="notice"))
    assert actual(db) == {}


async def test_an_answer_that_quotes_what_is_gone_leaves_the_index(db: Database):
    await store(db, own("你说过对花生过敏", id="5"), own("好的", id="6"))
    async with db.transaction() as tx:
        await drop_quotes(tx, Heard(frozenset({1}), 0), ["对花生过敏"])
    assert set(actual(db)) == {2}


async def test_a_deleted_row_leaves_the_index(db: Database):
    await store(db, said("花生", id="1"), said("猫", id="2"))
    async with db.transaction() as tx:
        await tx.execute_fetchall("DELETE FROM messages WHERE id = 1")
    assert set(actual(db)) == {2}


async def test_another_program_cannot_change_a_text_behind_the_back_of_the_index(db: Database):
    await store(db, said("花生", id="1"))
    with pytest.raises(sqlite3.OperationalError, match="message_tokens"):
        outside(db.path, "UPDATE messages SET text = ''")
    assert outside(db.path, "SELECT text FROM messages") == [("花生",)]


# --- any sequence -----------------------------------------------------------------------------

TEXTS = st.sampled_from(["花生", "对花生过敏", "猫 running", "[合并转发 1 条]", "", "😀!"])
IDS = st.sampled_from(["1", "2", "3", "4"])
STEPS = st.one_of(
    st.tuples(st.just("hear"), st.lists(st.tuples(TEXTS, IDS, st.booleans()), max_size=4)),
    st.tuples(st.just("own"), st.tuples(TEXTS, IDS, st.sampled_from(["chat", "notice"]))),
    st.tuples(st.just("recall"), IDS),
    st.tuples(st.just("forget"), st.integers(1, 9)),
    st.tuples(st.just("replace"), st.tuples(st.integers(1, 9), TEXTS)),
    st.tuples(st.just("blank"), TEXTS),
    st.tuples(st.just("fill"), st.integers(1, 4)),
    st.tuples(st.just("clear"), st.none()),
    st.tuples(st.just("scrub"), st.none()),
    st.tuples(st.just("reopen"), st.none()),
)


@given(st.lists(STEPS, max_size=14))
@settings(max_examples=40)
async def test_the_index_has_exactly_what_may_be_found_after_anything(steps: Sequence[Any]):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "qunyi.db"
        at = NOON
        for group in _until_reopened(steps):
            async with open_database(path, now=NOON) as db:
                for step in group:
                    at += SECOND
                    await _do(db, step, at)
                    await _holds(db)
                while await index_step(db, 3):
                    pass
                assert actual(db) == await expected(db)


def _until_reopened(steps: Sequence[Any]) -> list[list[Any]]:
    groups: list[list[Any]] = [[]]
    for step in steps:
        if step[0] == "reopen":
            groups.append([])
        else:
            groups[-1].append(step)
    return groups


async def _holds(db: Database) -> None:
    """What is indexed so far is what it should be, and what is not is older."""
    [[filled_from]] = await rows(db, "SELECT filled_from FROM message_index_state")
    wanted = {row: of_row for row, of_row in (await expected(db)).items() if row >= filled_from}
    assert actual(db) == wanted


async def _do(db: Database, step: Any, at: int) -> None:
    match step:
        case ("hear", messages):
            await store(db, *(_heard(one, at) for one in messages))
        case ("own", (text, id, kind)):
            await store(db, own(text, id=id, at=at, kind=kind))
        case ("fill", count):
            await index_step(db, count)
        case ("clear", _):
            await clear_message_index(db)
        case ("scrub", _):
            await scrub_step(db)
        case _:
            async with db.transaction() as tx:
                await _change(tx, step, at)


def _heard(what: tuple[str, str, bool], at: int) -> Message:
    text, id, is_command = what
    return said(text, id=id, at=at, kind="command" if is_command else "chat")


async def _change(tx: Any, step: Any, at: int) -> None:
    match step:
        case ("recall", id):
            await recall_message(tx, Recall(GROUP, id, ALICE, at))
        case ("forget", row_id):
            await set_apart(tx, row_id, at)
        case ("replace", (row_id, text)):
            await replace_text(tx, row_id, text)
        case ("blank", text):
            await drop_quotes(tx, Heard(frozenset({1}), 0), [text])


# --- what is older than the index -------------------------------------------------------------


async def _forget_index(db: Database) -> None:
    await clear_message_index(db)
    assert actual(db) == {}


async def test_older_messages_are_indexed_step_by_step_the_newest_first(db: Database):
    await store_apart(db, *(said("花生", id=str(n)) for n in range(5)))
    await _forget_index(db)
    assert await messages_left(db) == 6
    assert await index_step(db, 2) == 4
    assert set(actual(db)) == {4, 5}
    await store(db, said("花生", id="6"))
    assert set(actual(db)) == {4, 5, 6}
    assert [await index_step(db, 2), await index_step(db, 2), await index_step(db, 2)] == [2, 0, 0]
    assert actual(db) == await expected(db)
    assert await messages_left(db) == 0


async def test_a_message_that_waits_to_be_indexed_can_be_recalled(db: Database):
    await store_apart(db, said("花生", id="1"), said("花生", id="2"), said("猫", id="3"))
    await _forget_index(db)
    await index_step(db, 1)
    await _recall(db, "1")
    while await index_step(db, 1):
        pass
    assert await found(db, "花生g1") == [2]


async def test_filling_goes_on_where_it_was_after_a_restart(path: Path):
    async with open_database(path, now=NOON) as db:
        await store_apart(db, *(said("花生", id=str(n)) for n in range(5)))
        await _forget_index(db)
        await index_step(db, 2)
    async with open_database(path, now=NOON) as db:
        assert set(actual(db)) == {4, 5}
        await index_step(db, 9)
        assert actual(db) == await expected(db)


@pytest.mark.parametrize("row_count", [1, 2, 3, 4])
async def test_an_index_that_has_all_messages_is_complete(db: Database, row_count: int):
    await store_apart(db, *(said("花生", id=str(n)) for n in range(3)))
    await _forget_index(db)
    while await index_step(db, row_count):
        pass
    assert await value(db, "SELECT filled_from FROM message_index_state") == 0


async def test_gaps_in_the_rows_end_no_filling(db: Database):
    await store_apart(db, *(said("花生", id=str(n)) for n in range(9)))
    async with db.transaction() as tx:
        await tx.execute_fetchall("DELETE FROM messages WHERE id IN (1, 2, 5, 6, 7)")
    await _forget_index(db)
    while await index_step(db, 1):
        pass
    assert set(actual(db)) == {3, 4, 8, 9}


@pytest.mark.parametrize("version", ["v1", "v2", "v3", "v4"])
async def test_messages_of_an_older_program_are_indexed(path: Path, version: str):
    script = Path(__file__).parents[1] / "migration" / f"{version}.sql"
    connection = sqlite3.connect(path)
    connection.executescript(script.read_text("utf-8"))
    connection.close()
    async with open_database(path, now=NOON) as db:
        assert actual(db) == {}
        await store(db, said("新的", id="99", by=BRUNO, at=NOON + MINUTE))
        assert len(actual(db)) == 1
        while await index_step(db, 4):
            pass
        assert actual(db) == await expected(db)
        assert len(actual(db)) > 5


async def test_an_empty_database_has_nothing_to_index(db: Database):
    assert await messages_left(db) == 0
    assert await index_step(db, 5) == 0


# --- what the file holds ----------------------------------------------------------------------


async def test_words_of_what_is_gone_are_not_in_the_file_once_it_was_scrubbed(db: Database):
    await store_apart(db, *(said(f"第{n}句", id=str(n)) for n in range(40)))
    await store(db, said("peanuts", id="99"), said("zebra", id="98"))
    await store_apart(db, *(said(f"第{n}句", id=str(n)) for n in range(100, 140)))
    await _recall(db, "99")
    assert b"peanut" in _blocks(db)
    while await scrub_step(db):
        pass
    assert b"peanut" not in _blocks(db)
    assert b"zebra" in _blocks(db)
    assert actual(db) == await expected(db)


async def test_where_nothing_was_erased_nothing_is_scrubbed(db: Database):
    await store_apart(db, said("一", id="1"), said("二", id="2"))
    before = _blocks(db)
    assert not await scrub_step(db)
    assert _blocks(db) == before


async def test_what_is_erased_while_it_is_scrubbed_is_scrubbed_as_well(db: Database):
    await store_apart(db, *(said(f"花生{n}", id=str(n)) for n in range(20)))
    await _recall(db, "3")
    await scrub_step(db)
    await _recall(db, "4")
    while await scrub_step(db):
        pass
    assert not await value(db, "SELECT erased FROM message_index_state")
    assert actual(db) == await expected(db)


def _blocks(db: Database) -> bytes:
    return b"".join(block for (block,) in outside(db.path, "SELECT block FROM message_index_data"))

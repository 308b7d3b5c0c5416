"""Vectors in the store: made for all that is talk, and gone with what they were made of."""

from collections.abc import Awaitable, Callable

import aiosqlite
import numpy as np
import pytest

from bot.model import Sender
from bot.search.vectors import SLOT, kept, planes, sketches, slot
from bot.store.database import Database
from bot.store.messages import (
    Heard,
    Recall,
    drop_quotes,
    erase_chat_text,
    recall_message,
    replace_text,
    set_apart,
)
from bot.store.vectors import (
    PAGE_SLOTS,
    Lot,
    Made,
    Space,
    SpaceMoved,
    Wanting,
    enter_space,
    keep_lot,
    next_lot,
    pages_since,
    space_in_use,
    vectors_of,
)
from tests.store.rows import (
    BOT,
    GROUP,
    NOON,
    OTHER_GROUP,
    SECOND,
    own,
    rows,
    said,
    store,
    value,
    values,
)

DIMENSIONS = 16
SIDES = planes(DIMENSIONS)
SECRET = "我的门牌是八栋"


def made(message: Wanting) -> Made:
    """Return what an embedder of no great wit makes of a message."""
    vector = np.random.RandomState(message.row_id).standard_normal(DIMENSIONS).astype(np.float32)
    vector /= np.linalg.norm(vector)
    (sketch,) = sketches(vector[None, :], SIDES)
    taken = slot(message.row_id, message.sent_at, message.member_id, sketch)
    return Made(message, kept(vector), taken)


async def lot_of(db: Database, space: Space, limit: int = 64) -> Lot:
    lot = await next_lot(db, space, limit)
    assert lot is not None
    return lot


async def embed_all(db: Database, embedder: str = "one", *, limit: int = 64) -> Space:
    """Give everything a vector that is to have one."""
    space = await enter_space(db, embedder, DIMENSIONS)
    while (lot := await next_lot(db, space, limit)) is not None:
        await keep_lot(db, lot, [made(one) for one in lot.messages if one.is_talk])
    found = await space_in_use(db, embedder, DIMENSIONS)
    assert found
    return found


async def sketched(db: Database, space: Space) -> list[int]:
    """Return the rows that have a sketch, in all chats."""
    found: list[int] = []
    for chat_id in await values(db, "SELECT id FROM chats"):
        for page in await pages_since(db, space.id, chat_id, 0):
            found += [int(row) for row in np.frombuffer(page.slots, SLOT)["row"] if row]
    return sorted(found)


async def with_vectors(db: Database) -> list[int]:
    return await values(db, "SELECT message_id FROM message_vectors ORDER BY message_id")


# --- the way through --------------------------------------------------------------------------


async def test_every_message_gets_a_vector_and_a_sketch(db: Database):
    await store(db, said("一", id="1"), said("二", id="2", at=NOON + 1, chat=OTHER_GROUP))
    space = await embed_all(db)
    assert await with_vectors(db) == await sketched(db, space) == [1, 2]
    assert (space.newest, space.oldest) == (2, 0)
    assert await next_lot(db, space, 64) is None


async def test_the_newest_come_first_and_what_comes_meanwhile_before_the_old(db: Database):
    await store(db, *(said(f"第{n}句", id=str(n), at=NOON + n) for n in range(1, 7)))
    space = await enter_space(db, "one", DIMENSIONS)
    first = await lot_of(db, space, 2)
    assert [one.row_id for one in first.messages] == [6, 5]
    await keep_lot(db, first, [made(one) for one in first.messages])
    await store(db, said("新的", id="7", at=NOON + 7))
    assert [one.row_id for one in (await lot_of(db, space, 2)).messages] == [7]


async def test_a_run_that_stopped_goes_on_where_it_stopped(db: Database):
    await store(db, *(said(f"第{n}句", id=str(n), at=NOON + n) for n in range(1, 8)))
    space = await enter_space(db, "one", DIMENSIONS)
    lot = await lot_of(db, space, 3)
    await keep_lot(db, lot, [made(one) for one in lot.messages])
    # As after a restart: nothing is known but what is stored.
    again = await enter_space(db, "one", DIMENSIONS)
    assert again.id == space.id
    assert [one.row_id for one in (await lot_of(db, again, 3)).messages] == [4, 3, 2]


async def test_no_lot_is_kept_twice(db: Database):
    await store(db, said("一", id="1"))
    lot = await lot_of(db, await enter_space(db, "one", DIMENSIONS))
    await keep_lot(db, lot, [made(one) for one in lot.messages])
    with pytest.raises(SpaceMoved):
        await keep_lot(db, lot, [made(one) for one in lot.messages])
    assert await with_vectors(db) == [1]


async def test_commands_notices_and_what_is_gone_are_no_talk(db: Database):
    await store(
        db,
        said("/帮助", id="1", kind="command"),
        own("用法……", id="2", at=NOON + 1, kind="notice"),
        said(SECRET, id="3", at=NOON + 2),
        said("在", id="4", at=NOON + 3),
    )
    async with db.transaction() as tx:
        await recall_message(tx, Recall(GROUP, "3", BOT, NOON + SECOND))
    lot = await lot_of(db, await enter_space(db, "one", DIMENSIONS))
    assert [one.row_id for one in lot.messages if one.is_talk] == [4]


async def test_pages_are_filled_before_new_ones_are_begun(db: Database):
    count = 2 * PAGE_SLOTS + 3
    await store(db, *(said(f"第{n}句", id=str(n), at=NOON + n) for n in range(1, count + 1)))
    space = await embed_all(db, limit=10)
    assert await values(db, "SELECT filled FROM vector_pages ORDER BY id") == [64, 64, 3]
    assert await sketched(db, space) == list(range(1, count + 1))
    sizes = await values(db, "SELECT length(slots) FROM vector_pages ORDER BY id")
    assert sizes == [64 * 88, 64 * 88, 3 * 88]


async def test_whoever_holds_pages_is_given_those_that_changed(db: Database):
    await store(db, said("一", id="1"))
    space = await embed_all(db)
    chat_id = await value(db, "SELECT id FROM chats")
    seen = max(page.changed for page in await pages_since(db, space.id, chat_id, 0))
    assert await pages_since(db, space.id, chat_id, seen) == []
    await store(db, said("二", id="2", at=NOON + 1))
    await embed_all(db)
    assert len(await pages_since(db, space.id, chat_id, seen)) == 1


# --- erasing ----------------------------------------------------------------------------------


async def _recall(db: Database) -> None:
    async with db.transaction() as tx:
        await recall_message(tx, Recall(GROUP, "1", BOT, NOON + SECOND))


async def _set_apart(db: Database) -> None:
    async with db.transaction() as tx:
        await set_apart(tx, 1, NOON + SECOND)


async def _drop_quotes(db: Database) -> None:
    chat_id = await value(db, "SELECT id FROM chats")
    async with db.transaction() as tx:
        await drop_quotes(tx, Heard(frozenset({chat_id}), 0), [SECRET])


async def _become_notice(db: Database) -> None:
    echo = own(f"好，{SECRET}", id="1", at=NOON + 1, kind="notice")
    await store(db, echo)


async def _delete(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute_fetchall("DELETE FROM messages WHERE id = 1")


@pytest.mark.parametrize(
    "erase", [_recall, _set_apart, _drop_quotes, _become_notice, _delete], ids=lambda f: f.__name__
)
async def test_whatever_erases_a_message_erases_its_vector_and_sketch(
    db: Database, erase: Callable[[Database], Awaitable[None]]
):
    is_own = erase in (_drop_quotes, _become_notice)
    told = own(f"好，{SECRET}", id="1") if is_own else said(SECRET, id="1")
    await store(db, told, said("别的", id="2", at=NOON + 1))
    space = await embed_all(db)
    (vector,) = await values(db, "SELECT vector FROM message_vectors WHERE message_id = 1")
    (page,) = await values(db, "SELECT slots FROM vector_pages")
    # Slots stand in the order in which they were made: the newest message has the first.
    sketch = page[88:]
    await erase(db)
    assert await with_vectors(db) == await sketched(db, space) == [2]
    (page,) = await values(db, "SELECT slots FROM vector_pages")
    assert page[88:] == bytes(88)
    async with db.transaction() as tx:
        await tx.execute_fetchall("SELECT 1")
    async with db.reader() as connection:
        await connection.execute_fetchall("SELECT 1")
    kept_bytes = db.path.read_bytes()
    assert vector not in kept_bytes
    assert sketch[24:] not in kept_bytes


async def _erase_chat(tx: aiosqlite.Connection) -> None:
    await erase_chat_text(tx, 1, NOON + SECOND)


async def _forget(tx: aiosqlite.Connection) -> None:
    await set_apart(tx, 1, NOON + SECOND)


async def _take_back(tx: aiosqlite.Connection) -> None:
    await recall_message(tx, Recall(GROUP, "1", BOT, NOON + SECOND))


@pytest.mark.parametrize("erase", [_take_back, _forget, _erase_chat], ids=lambda f: f.__name__)
async def test_what_is_erased_leaves_both_indices_in_that_transaction_or_neither(
    db: Database, erase: Callable[[aiosqlite.Connection], Awaitable[None]]
):
    await store(db, said(SECRET, id="1"))
    await embed_all(db)
    with pytest.raises(LookupError):
        await _erased_in_vain(db, erase)
    async with db.reader() as connection:
        assert await _found(connection) == (True, True)
    async with db.transaction() as tx:
        await erase(tx)
    async with db.reader() as connection:
        assert await _found(connection) == (False, False)


async def _erased_in_vain(
    db: Database, erase: Callable[[aiosqlite.Connection], Awaitable[None]]
) -> None:
    async with db.transaction() as tx:
        assert await _found(tx) == (True, True)
        await erase(tx)
        assert await _found(tx) == (False, False)
        raise LookupError


async def _found(connection: aiosqlite.Connection) -> tuple[bool, bool]:
    """Whether the message is in the index, and has a vector."""
    match = "SELECT 1 FROM message_index WHERE message_index MATCH '门牌g1'"
    words = list(await connection.execute_fetchall(match))
    vectors = list(await connection.execute_fetchall("SELECT 1 FROM message_vectors"))
    return bool(words), bool(vectors)


async def test_a_message_that_is_recalled_while_it_is_embedded_gets_no_vector(db: Database):
    await store(db, said(SECRET, id="1"), said("别的", id="2", at=NOON + 1))
    space = await enter_space(db, "one", DIMENSIONS)
    lot = await lot_of(db, space)
    await _recall(db)
    await keep_lot(db, lot, [made(one) for one in lot.messages])
    assert await with_vectors(db) == await sketched(db, space) == [2]


async def test_a_recall_that_came_first_leaves_nothing_to_embed(db: Database):
    await store(db, said("别的", id="2"))
    await _recall(db)
    await store(db, said(SECRET, id="1", at=NOON + 2))
    await embed_all(db)
    assert await with_vectors(db) == [1]


async def test_a_text_that_becomes_another_gets_another_vector(db: Database):
    await store(db, said("[合并转发]", id="1"))
    space = await embed_all(db)
    async with db.transaction() as tx:
        await replace_text(tx, 1, "大熊：湖边见")
    assert await with_vectors(db) == []
    lot = await lot_of(db, space)
    assert (lot.side, [one.text for one in lot.messages]) == ("requested", ["大熊：湖边见"])
    await embed_all(db)
    assert await with_vectors(db) == await sketched(db, space) == [1]
    assert await next_lot(db, space, 64) is None


async def test_a_recall_takes_a_waiting_request_along(db: Database):
    await store(db, said("[合并转发]", id="1"))
    await embed_all(db)
    async with db.transaction() as tx:
        await replace_text(tx, 1, "大熊：湖边见")
    await _recall(db)
    assert await values(db, "SELECT message_id FROM vector_requests") == []


# --- spaces -----------------------------------------------------------------------------------


async def test_vectors_of_another_embedder_are_never_returned(db: Database):
    await store(db, said("一", id="1"), said("二", id="2", at=NOON + 1))
    old = await embed_all(db, "one")
    new = await enter_space(db, "two", DIMENSIONS)
    assert await space_in_use(db, "one", DIMENSIONS) is None
    assert await vectors_of(db, new.id, [1, 2]) == {}
    assert set(await vectors_of(db, old.id, [1, 2])) == {1, 2}


async def test_another_length_is_another_space(db: Database):
    await store(db, said("一", id="1"))
    await embed_all(db)
    assert await space_in_use(db, "one", DIMENSIONS * 2) is None


async def test_another_embedder_replaces_everything_of_the_one_before(db: Database):
    await store(db, *(said(f"第{n}句", id=str(n), at=NOON + n) for n in range(1, 150)))
    await embed_all(db, "one")
    new = await embed_all(db, "two", limit=20)
    assert await values(db, "SELECT DISTINCT space_id FROM message_vectors") == [new.id]
    assert await values(db, "SELECT DISTINCT space_id FROM vector_pages") == [new.id]
    assert await sketched(db, new) == list(range(1, 150))


async def test_going_back_to_an_embedder_begins_anew(db: Database):
    await store(db, *(said(f"第{n}句", id=str(n), at=NOON + n) for n in range(1, 9)))
    await embed_all(db, "one")
    half = await enter_space(db, "two", DIMENSIONS)
    lot = await lot_of(db, half, 4)
    await keep_lot(db, lot, [made(one) for one in lot.messages])
    back = await embed_all(db, "one")
    assert await sketched(db, back) == list(range(1, 9))
    assert await values(db, "SELECT DISTINCT space_id FROM message_vectors") == [back.id]


async def test_a_chat_that_is_switched_off_is_marked(db: Database):
    await store(db, said("一", id="1", sender=Sender("30001")))
    async with db.transaction() as tx:
        await tx.execute_fetchall("UPDATE chats SET access = 'disabled'")
    lot = await lot_of(db, await enter_space(db, "one", DIMENSIONS))
    assert [one.is_served for one in lot.messages] == [False]
    assert await rows(db, "SELECT 1 FROM message_vectors") == []

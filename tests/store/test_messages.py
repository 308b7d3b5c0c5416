"""Messages: reading what is stored, and the little that may change of it."""

from bot.model import Chat
from bot.store.database import Database
from bot.store.messages import (
    messages_by_rows,
    names_in_chat,
    newest_with_id,
    private_peer_of_own,
    recent_messages,
    replace_text,
)
from tests.store.rows import (
    ALICE,
    BOT,
    BRUNO,
    GROUP,
    MINUTE,
    NOON,
    OTHER_GROUP,
    PRIVATE,
    carded,
    own,
    said,
    store,
)


async def test_the_recent_messages_of_a_chat_are_of_that_chat_alone(db: Database):
    elsewhere = Chat("10002", "group", GROUP.id)
    await store(
        db,
        said("这里", id="1"),
        said("别处", id="2", chat=OTHER_GROUP),
        said("私下", id="3", chat=PRIVATE),
        said("别的号", id="4", chat=elsewhere),
        said("同号私聊", id="5", chat=Chat(BOT, "private", GROUP.id)),
    )
    assert [stored.message.text for stored in await recent_messages(db, GROUP, 9)] == ["这里"]


async def test_messages_by_rows_are_of_whatever_chat(db: Database):
    receipts = await store(db, said(id="1"), said(id="2", chat=PRIVATE), said(id="3"))
    wanted = [receipts[1].row_id, receipts[0].row_id, 999]
    found = await messages_by_rows(db, wanted)
    assert [stored.message for stored in found] == [receipts[0].message, receipts[1].message]
    assert await messages_by_rows(db, []) == []


async def test_an_id_that_was_never_stored_has_no_message(db: Database):
    await store(db, said(id="1"))
    assert await newest_with_id(db, GROUP, "2") is None
    assert await newest_with_id(db, OTHER_GROUP, "1") is None


async def test_names_in_a_chat_are_those_of_the_people_asked_for(db: Database):
    await store(
        db,
        carded("小鱼", id="1"),
        carded("别名", id="2", chat=OTHER_GROUP),
        carded("大鱼", by=BRUNO, id="3"),
        carded("", by="30003", id="4"),
    )
    assert await names_in_chat(db, GROUP, [ALICE, "30003"]) == {ALICE: "小鱼"}
    assert await names_in_chat(db, OTHER_GROUP, [ALICE, BRUNO]) == {ALICE: "别名"}
    assert await names_in_chat(db, GROUP, []) == {}


async def test_a_rendering_can_be_completed_later(db: Database):
    (receipt,) = await store(db, said("[合并转发]"))
    async with db.transaction() as tx:
        await replace_text(tx, receipt.row_id, "[合并转发 1 条]\n小鱼：早")
    (stored,) = await recent_messages(db, GROUP, 1)
    assert stored.message.text == "[合并转发 1 条]\n小鱼：早"


async def test_the_private_chat_of_an_own_message_is_found_by_its_id(db: Database):
    other = Chat(BOT, "private", BRUNO)
    await store(
        db,
        own(id="9", chat=PRIVATE),
        own(id="9", chat=GROUP),
        said(id="8", chat=PRIVATE),
        own(id="7", chat=PRIVATE),
        own(id="7", chat=other, at=NOON + MINUTE),
    )
    assert await private_peer_of_own(db, BOT, "9", NOON) == ALICE
    assert await private_peer_of_own(db, BOT, "7", NOON) == BRUNO
    assert await private_peer_of_own(db, BOT, "9", NOON + 1) is None
    assert await private_peer_of_own(db, BOT, "8", NOON) is None
    assert await private_peer_of_own(db, "10002", "9", NOON) is None

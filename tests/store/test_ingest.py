"""Ingest: which events become which rows."""

from dataclasses import replace
from pathlib import Path

import pytest

from bot.model import ANONYMOUS_ID, Chat, Member, Message, Sender
from bot.store.chats import Name, card_changed, member_left, names_of, set_removed
from bot.store.database import Database, open_database
from bot.store.ingest import store_arrivals
from bot.store.messages import names_in_chat, newest_with_id, recent_messages
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
    arrival,
    carded,
    message_count,
    own,
    pending,
    rows,
    said,
    store,
    store_apart,
    value,
    values,
)

NEGATIVE_ID = "-1712345678"


# --- identity of messages ---------------------------------------------------------------------


async def test_a_stored_message_reads_back_as_it_arrived(db: Database):
    message = said(
        "@小鱼(30002) 看这个",
        sender=Sender(ALICE, nickname="小鱼", role="admin"),
        sequence=5001,
        reply_to="699",
        mentions=(BRUNO, "all"),
    )
    await store(db, message)
    (stored,) = await recent_messages(db, GROUP, 10)
    assert stored.message == message
    assert stored.recalled_at is None


async def test_the_same_event_twice_is_one_row(db: Database):
    message = said(id=NEGATIVE_ID)
    first, second = await store_apart(db, message, replace(message, received_at=NOON + 5))
    assert (first.is_new, second.is_new) == (True, False)
    assert first.row_id == second.row_id
    assert await message_count(db) == 1
    assert await pending(db) == {"group": 1, "member-batch": 1}


async def test_the_same_event_again_after_a_restart_is_one_row(path: Path):
    message = said(id=NEGATIVE_ID)
    receipts, counts = [], []
    for _ in range(2):
        async with open_database(path, now=NOON) as db:
            receipts += await store(db, message)
            counts.append(await message_count(db))
    assert [receipt.is_new for receipt in receipts] == [True, False]
    assert receipts[0].row_id == receipts[1].row_id
    assert counts == [1, 1]


async def test_an_equal_event_twice_within_one_group_is_one_row(db: Database):
    crowd = [said(f"第 {n} 句", id=str(n), at=NOON + n) for n in range(254)]
    twice = said("又来", id="7777", at=NOON + 9)
    receipts = await store(db, twice, *crowd, twice)
    assert (receipts[0].is_new, receipts[-1].is_new) == (True, False)
    assert receipts[0].row_id == receipts[-1].row_id
    assert await message_count(db) == 255
    assert await pending(db) == {"group": 255, "member-batch": 255}


async def test_receipts_come_in_the_order_of_the_events(db: Database):
    messages = [said(str(n), id=str(n % 7), at=NOON + n % 11) for n in range(100)]
    receipts = await store(db, *messages)
    for message, receipt in zip(messages, receipts, strict=True):
        found = await value(
            db,
            "SELECT platform_id || '/' || sent_at FROM messages WHERE id = ?",
            receipt.row_id,
        )
        assert found == f"{message.platform_id}/{message.sent_at}"


async def test_two_ids_with_the_same_text_are_two_messages(db: Database):
    await store(db, said("在吗", id="1"), said("在吗", id="2"))
    assert await message_count(db) == 2


async def test_the_same_id_in_two_chats_is_two_messages(db: Database):
    await store(db, said(id="5"), said(id="5", chat=OTHER_GROUP), said(id="5", chat=PRIVATE))
    assert await message_count(db) == 3


async def test_the_same_id_in_the_groups_of_two_accounts_is_two_messages(db: Database):
    await store(db, said(id="5"), said(id="5", chat=Chat("10002", "group", GROUP.id)))
    assert await message_count(db) == 2
    assert await value(db, "SELECT count(*) FROM members") == 2


async def test_an_id_that_is_used_again_later_is_another_message(db: Database):
    await store(db, said("旧的", id="5"))
    (receipt,) = await store(db, said("新的", id="5", at=NOON + SECOND))
    assert receipt.is_new
    newest = await newest_with_id(db, GROUP, "5")
    assert newest is not None
    assert newest.message.text == "新的"


async def test_order_is_that_of_time_then_row(db: Database):
    await store(
        db,
        said("三", id="1", at=NOON + 2),
        said("一", id="2", at=NOON),
        said("二", id="3", at=NOON),
    )
    assert [s.message.text for s in await recent_messages(db, GROUP, 9)] == ["一", "二", "三"]
    assert [s.message.text for s in await recent_messages(db, GROUP, 2)] == ["二", "三"]


async def test_text_that_looks_like_sql_is_text(db: Database):
    hostile = "'); DROP TABLE messages; -- \" ; :bot_id %s"
    await store(db, said(hostile, sender=Sender(ALICE, nickname=hostile, card=hostile)))
    (stored,) = await recent_messages(db, GROUP, 1)
    assert stored.message.text == hostile
    assert stored.message.sender.display_name == hostile


# --- people and names -------------------------------------------------------------------------


async def test_two_people_with_one_card_are_two_members(db: Database):
    await store(db, carded("小鱼", by=ALICE, id="1"), carded("小鱼", by=BRUNO, id="2"))
    assert await values(db, "SELECT user_id FROM members ORDER BY user_id") == [ALICE, BRUNO]
    assert await names_in_chat(db, GROUP, [ALICE, BRUNO]) == {ALICE: "小鱼", BRUNO: "小鱼"}


@pytest.mark.parametrize("together", [True, False])
async def test_who_changes_the_card_twice_stays_one_member_with_three_names(
    db: Database, together: bool
):
    messages = [
        carded(card, id=str(n), at=NOON + n * MINUTE)
        for n, card in enumerate(["小鱼", "小鱼", "大鱼", "大鱼", "鲸鱼"])
    ]
    await (store if together else store_apart)(db, *messages)
    assert await values(db, "SELECT user_id FROM members") == [ALICE]
    assert await names_of(db, Member(BOT, ALICE)) == [
        Name("小鱼", GROUP.id, NOON, NOON + MINUTE),
        Name("大鱼", GROUP.id, NOON + 2 * MINUTE, NOON + 3 * MINUTE),
        Name("鲸鱼", GROUP.id, NOON + 4 * MINUTE, NOON + 4 * MINUTE),
    ]
    assert await names_in_chat(db, GROUP, [ALICE]) == {ALICE: "鲸鱼"}


async def test_a_card_that_comes_back_is_one_name_seen_longer(db: Database):
    cards = ["小鱼", "大鱼", "小鱼"]
    await store_apart(db, *(carded(card, id=str(n), at=NOON + n) for n, card in enumerate(cards)))
    names = await names_of(db, Member(BOT, ALICE))
    assert [(n.name, n.first_seen, n.last_seen) for n in names] == [
        ("小鱼", NOON, NOON + 2),
        ("大鱼", NOON + 1, NOON + 1),
    ]


async def test_nicknames_and_cards_of_other_groups_are_kept_apart(db: Database):
    await store(
        db,
        carded("小鱼", nickname="Fish", id="1"),
        carded("小鱼", nickname="Fish", id="2", chat=OTHER_GROUP),
    )
    names = await names_of(db, Member(BOT, ALICE))
    assert {(n.name, n.group_id) for n in names} == {
        ("Fish", None),
        ("小鱼", GROUP.id),
        ("小鱼", OTHER_GROUP.id),
    }


async def test_a_nickname_stands_where_there_is_no_card(db: Database):
    await store(db, carded("", nickname="Fish"))
    assert await names_in_chat(db, GROUP, [ALICE, "39999"]) == {ALICE: "Fish"}


@pytest.mark.parametrize("together", [True, False])
async def test_an_older_message_of_a_history_never_overwrites_newer_names(
    db: Database, together: bool
):
    newer = carded("新名", nickname="New", id="2", at=NOON + MINUTE)
    older = carded("旧名", nickname="Old", id="1", at=NOON, received_at=NOON + 2 * MINUTE)
    if together:
        await store_arrivals(db, [arrival(newer), arrival(older, live=False)])
    else:
        await store(db, newer)
        await store(db, older, live=False)
    assert await names_in_chat(db, GROUP, [ALICE]) == {ALICE: "新名"}
    assert await value(db, "SELECT nickname FROM members") == "New"
    names = await names_of(db, Member(BOT, ALICE))
    assert {(n.name, n.first_seen) for n in names} == {
        ("旧名", NOON),
        ("Old", NOON),
        ("新名", NOON + MINUTE),
        ("New", NOON + MINUTE),
    }


async def test_an_older_message_does_not_undo_the_card_of_a_notice(db: Database):
    await store(db, carded("旧名", id="1"))
    async with db.transaction() as tx:
        await card_changed(tx, GROUP, ALICE, "新名", NOON + 2 * MINUTE)
    await store(db, carded("旧名", id="2", at=NOON + MINUTE), live=False)
    assert await names_in_chat(db, GROUP, [ALICE]) == {ALICE: "新名"}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
async def test_a_group_of_messages_tells_when_people_and_chats_were_seen(
    db: Database, order: tuple[int, ...]
):
    await store(db, *(carded("小鱼", nickname="Fish", id=str(n), at=NOON + n) for n in order))
    for table in ("chats", "members", "memberships", "names"):
        seen = await rows(db, f"SELECT DISTINCT first_seen, last_seen FROM {table}")
        assert [tuple(row) for row in seen] == [(NOON, NOON + 2)], table


async def test_a_time_in_the_future_is_not_believed_of_names(db: Database):
    await store(db, carded("假名", id="1", at=NOON + 900 * MINUTE, received_at=NOON))
    await store(db, carded("真名", id="2", at=NOON + MINUTE))
    assert await names_in_chat(db, GROUP, [ALICE]) == {ALICE: "真名"}


async def test_anonymous_people_are_stored_and_marked(db: Database):
    hidden = Sender(ANONYMOUS_ID, nickname="面具", anonymous=True)
    await store(db, said(sender=hidden))
    (stored,) = await recent_messages(db, GROUP, 1)
    assert stored.message.sender.anonymous


async def test_who_speaks_again_has_not_left(db: Database):
    await store(db, said(id="1"))
    async with db.transaction() as tx:
        await member_left(tx, GROUP, ALICE, NOON + MINUTE)
    await store(db, said(id="2", at=NOON + SECOND), live=False)
    assert await value(db, "SELECT left_at FROM memberships") == NOON + MINUTE
    await store(db, said(id="3", at=NOON + 2 * MINUTE))
    assert await value(db, "SELECT left_at FROM memberships") is None


@pytest.mark.parametrize("live_first", [True, False])
async def test_a_live_message_proves_that_the_account_is_back(db: Database, live_first: bool):
    await store(db, said(id="1"))
    async with db.transaction() as tx:
        await set_removed(tx, GROUP, NOON)
    await store_arrivals(db, [arrival(said(id="2", at=NOON + 1), live=False)])
    assert await value(db, "SELECT removed_at FROM chats") == NOON
    mixed = [
        arrival(said(id="3", at=NOON + 3)),
        arrival(said(id="4", at=NOON + 2), live=False),
    ]
    await store_arrivals(db, mixed if live_first else mixed[::-1])
    assert await value(db, "SELECT removed_at FROM chats") is None


# --- the account's own messages ---------------------------------------------------------------


def _copies(apart_ms: int) -> tuple[Message, ...]:
    answer = own(id="900", at=NOON + 345, kind="notice")
    echo = own(
        id="900",
        at=NOON // 1000 * 1000 + apart_ms,
        received_at=NOON + 345 + apart_ms,
        sequence=5002,
    )
    return answer, echo


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("echo_first", [True, False])
@pytest.mark.parametrize("apart_ms", [0, 2_000, 59_000, -59_000])
async def test_the_two_copies_of_an_own_message_are_one_row(
    db: Database, apart_ms: int, echo_first: bool, together: bool
):
    answer, echo = _copies(apart_ms)
    copies = [echo, answer] if echo_first else [answer, echo]
    receipts = await (store if together else store_apart)(db, *copies)
    assert [receipt.is_new for receipt in receipts] == [True, False]
    assert receipts[0].row_id == receipts[1].row_id
    (row,) = await rows(db, "SELECT sequence, kind FROM messages")
    assert (row["sequence"], row["kind"]) == (5002, "notice")


@pytest.mark.parametrize("echo_first", [True, False])
async def test_an_own_message_with_the_same_id_after_a_minute_is_another(
    db: Database, echo_first: bool
):
    answer, echo = _copies(61_000)
    copies = [echo, answer] if echo_first else [answer, echo]
    receipts = await store_apart(db, *copies)
    assert [receipt.is_new for receipt in receipts] == [True, True]
    sequences = await values(db, "SELECT sequence FROM messages WHERE kind = 'notice'")
    assert sequences == [None]


async def test_the_history_copy_of_an_own_message_is_no_second_row(db: Database):
    await store(db, own(id="900", at=NOON + 345))
    late = own(id="900", at=NOON, received_at=NOON + 30 * MINUTE, sequence=5002)
    (receipt,) = await store(db, late, live=False)
    assert not receipt.is_new
    assert await values(db, "SELECT sequence FROM messages") == [5002]


async def test_an_own_copy_is_matched_to_the_row_next_to_it(db: Database):
    first, second = await store_apart(
        db, own("早", id="9", at=NOON), own("晚", id="9", at=NOON + 5 * MINUTE)
    )
    echo = own("早", id="9", at=NOON + SECOND, received_at=NOON + 2 * SECOND, sequence=1)
    (receipt,) = await store(db, echo)
    assert (receipt.row_id, receipt.is_new) == (first.row_id, False)
    assert await value(db, "SELECT sequence FROM messages WHERE id = ?", second.row_id) is None


async def test_own_messages_in_two_chats_with_one_id_are_two_rows(db: Database):
    await store_apart(db, own(id="9"), own(id="9", chat=OTHER_GROUP), own(id="9", chat=PRIVATE))
    assert await message_count(db) == 3


async def test_an_own_message_never_swallows_one_of_somebody_else(db: Database):
    await store(db, own(id="9"), said(id="9", at=NOON + SECOND))
    assert await values(db, "SELECT direction FROM messages ORDER BY id") == [
        "outbound",
        "inbound",
    ]


async def test_the_first_sequence_that_is_known_stays(db: Database):
    await store_apart(
        db,
        own(id="9", sequence=7),
        own(id="9", at=NOON + SECOND, sequence=8),
        own(id="9", at=NOON + SECOND, sequence=None),
    )
    assert await values(db, "SELECT sequence FROM messages") == [7]


async def test_own_messages_are_not_pending(db: Database):
    await store(db, own())
    assert await pending(db) == {}


# --- what a group is called -------------------------------------------------------------------


@pytest.mark.parametrize("together", [True, False])
async def test_a_group_is_called_what_its_newest_message_says(db: Database, together: bool):
    names = ["甲群", "乙群", "甲群", ""]
    arrivals = [
        replace(arrival(said(id=str(n), at=NOON + n * SECOND)), group_name=name)
        for n, name in enumerate(names)
    ]
    for group in [arrivals] if together else [[one] for one in arrivals]:
        await store_arrivals(db, group)
    assert await values(db, "SELECT name FROM chats") == ["甲群"]

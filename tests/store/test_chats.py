"""Chats and people: access, presence, names, roles, notices, requests, blocks, accounts."""

import pytest

from bot.model import Chat, Member, Sender
from bot.store.access import open_access
from bot.store.alerts import claim_alert
from bot.store.chats import (
    Name,
    Situation,
    account_connected,
    account_ids,
    account_offline,
    approve_request,
    block,
    card_changed,
    claim_notice,
    groups_to_catch_up,
    keep_request,
    member_joined,
    member_left,
    names_of,
    open_request,
    open_requests,
    role_changed,
    role_in_group,
    set_access,
    set_muted,
    set_removed,
    situation,
    title_changed,
    unblock,
)
from bot.store.database import Database
from bot.store.messages import Recall, names_in_chat, recall_message
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
    rows,
    said,
    store,
    value,
    values,
)

HOUR, DAY = 60 * MINUTE, 24 * 60 * MINUTE
UNKNOWN = Situation(known=False, removed=False, quotes_bot=False)


# --- situation --------------------------------------------------------------------------------


async def test_an_unknown_chat_has_no_situation(db: Database):
    assert await situation(db, GROUP, "700") == UNKNOWN


async def test_the_situation_and_the_access_book_say_all_that_is_known_of_a_chat(db: Database):
    async with db.transaction() as tx:
        await set_access(tx, GROUP, "enabled", by=ALICE, at=NOON)
        await set_muted(tx, GROUP, NOON + MINUTE)
        await set_removed(tx, GROUP, NOON)
        await block(tx, Member(BOT, BRUNO), by=ALICE, at=NOON)
    assert await situation(db, GROUP) == Situation(known=True, removed=True, quotes_bot=False)
    elsewhere = (OTHER_GROUP, Chat(BOT, "private", GROUP.id), Chat("10002", "group", GROUP.id))
    book = await open_access(db)
    assert (book.of(GROUP), book.muted_until(GROUP)) == ("enabled", NOON + MINUTE)
    for chat in elsewhere:
        assert await situation(db, chat) == UNKNOWN
        assert (book.of(chat), book.muted_until(chat)) == ("", 0)
    blocked = [Member(BOT, BRUNO), Member(BOT, ALICE), Member("10002", BRUNO)]
    assert [book.is_blocked(member) for member in blocked] == [True, False, False]


async def test_what_was_switched_is_undone_by_the_opposite(db: Database):
    async with db.transaction() as tx:
        await set_access(tx, GROUP, "disabled", by=ALICE, at=NOON)
        await set_access(tx, GROUP, "", by=BRUNO, at=NOON + 1)
        await set_muted(tx, GROUP, NOON)
        await set_muted(tx, GROUP, 0)
        await set_removed(tx, GROUP, NOON)
        await set_removed(tx, GROUP, None)
    book = await open_access(db)
    assert (book.of(GROUP), book.muted_until(GROUP)) == ("", 0)
    assert not (await situation(db, GROUP)).removed
    (row,) = await rows(db, "SELECT access_by, access_at FROM chats")
    assert tuple(row) == (BRUNO, NOON + 1)


async def test_the_access_book_holds_what_it_was_told_and_what_a_new_one_reads(db: Database):
    book = await open_access(db)
    await book.switch(GROUP, "disabled", by=ALICE, at=NOON)
    assert await book.block(Member(BOT, BRUNO), by=ALICE, at=NOON)
    assert not await book.block(Member(BOT, BRUNO), by=ALICE, at=NOON)
    for one in (book, await open_access(db)):
        assert one.of(GROUP) == "disabled"
        assert one.is_blocked(Member(BOT, BRUNO))
    assert await book.unblock(Member(BOT, BRUNO))
    assert not await book.unblock(Member(BOT, BRUNO))
    for one in (book, await open_access(db)):
        assert not one.is_blocked(Member(BOT, BRUNO))


async def test_a_quote_is_of_the_bot_if_the_newest_message_with_the_id_is_its_own(db: Database):
    await store(
        db,
        own(id="700"),
        said(id="701"),
        own(id="702"),
        said(id="702", at=NOON + MINUTE),
        own(id="703", chat=OTHER_GROUP),
    )
    quoted = ["700", "701", "702", "703", "704", None]
    assert [(await situation(db, GROUP, id)).quotes_bot for id in quoted] == [
        True,
        False,
        False,
        False,
        False,
        False,
    ]


async def test_a_quote_of_a_recalled_message_of_the_bot_is_of_the_bot(db: Database):
    await store(db, own(id="700"))
    async with db.transaction() as tx:
        await recall_message(tx, Recall(GROUP, "700", BOT, NOON))
    assert (await situation(db, GROUP, "700")).quotes_bot


async def test_only_groups_the_account_is_in_are_caught_up_the_newest_first(db: Database):
    chats = [Chat(BOT, "group", str(n)) for n in range(4)]
    await store(db, *(said(id="1", chat=chat, at=NOON + n) for n, chat in enumerate(chats)))
    await store(db, said(chat=PRIVATE), said(chat=Chat("10002", "group", "9")))
    async with db.transaction() as tx:
        await set_removed(tx, chats[1], NOON)
        await set_access(tx, chats[2], "disabled", by=ALICE, at=NOON)
    assert await groups_to_catch_up(db, BOT) == [(chats[3], NOON + 3), (chats[0], NOON)]


# --- members ----------------------------------------------------------------------------------


async def test_a_new_card_is_shown_and_kept_among_the_names(db: Database):
    await store(db, carded("小鱼", nickname="Fish"))
    async with db.transaction() as tx:
        await card_changed(tx, GROUP, ALICE, "大鱼", NOON + 1)
    assert await names_in_chat(db, GROUP, [ALICE]) == {ALICE: "大鱼"}
    assert Name("大鱼", GROUP.id, NOON + 1, NOON + 1) in await names_of(db, Member(BOT, ALICE))


async def test_a_removed_card_leaves_the_nickname(db: Database):
    await store(db, carded("小鱼", nickname="Fish"))
    async with db.transaction() as tx:
        await card_changed(tx, GROUP, ALICE, "", NOON + 1)
    assert await names_in_chat(db, GROUP, [ALICE]) == {ALICE: "Fish"}
    assert {name.name for name in await names_of(db, Member(BOT, ALICE))} == {"Fish", "小鱼"}


async def test_an_older_notice_does_not_undo_what_is_newer(db: Database):
    shown = Sender(ALICE, card="新名", role="owner", title="新衔")
    await store(db, said(sender=shown, at=NOON + MINUTE))
    async with db.transaction() as tx:
        await card_changed(tx, GROUP, ALICE, "旧名", NOON)
        await role_changed(tx, GROUP, ALICE, "member", NOON)
        await title_changed(tx, GROUP, ALICE, "旧衔", NOON)
    (row,) = await rows(db, "SELECT card, role, title FROM memberships")
    assert tuple(row) == ("新名", "owner", "新衔")


async def test_notices_make_the_rows_of_people_who_never_spoke(db: Database):
    async with db.transaction() as tx:
        await card_changed(tx, GROUP, ALICE, "小鱼", NOON)
        await role_changed(tx, GROUP, BRUNO, "admin", NOON)
        await title_changed(tx, GROUP, "30003", "钓王", NOON)
        await member_joined(tx, GROUP, "30004", NOON)
    assert await value(db, "SELECT count(*) FROM memberships") == 4
    assert await role_in_group(db, GROUP, BRUNO) == "admin"
    assert await values(db, "SELECT joined_at FROM memberships WHERE joined_at") == [NOON]


async def test_the_role_of_who_left_is_not_known(db: Database):
    async with db.transaction() as tx:
        await role_changed(tx, GROUP, ALICE, "admin", NOON)
        await member_left(tx, GROUP, ALICE, NOON + 1)
    assert await role_in_group(db, GROUP, ALICE) == ""
    async with db.transaction() as tx:
        await member_joined(tx, GROUP, ALICE, NOON + 2)
    assert await role_in_group(db, GROUP, ALICE) == "admin"


async def test_roles_belong_to_one_group(db: Database):
    async with db.transaction() as tx:
        await role_changed(tx, GROUP, ALICE, "admin", NOON)
    assert await role_in_group(db, OTHER_GROUP, ALICE) == ""
    assert await role_in_group(db, Chat("10002", "group", GROUP.id), ALICE) == ""


async def test_that_an_unknown_person_left_is_no_error(db: Database):
    async with db.transaction() as tx:
        await member_left(tx, GROUP, "39999", NOON)
    assert await values(db, "SELECT * FROM memberships") == []


async def test_a_message_does_not_blank_a_role_that_it_does_not_show(db: Database):
    await store(db, said(id="1", sender=Sender(ALICE, role="admin")))
    await store(db, said(id="2", at=NOON + 1, sender=Sender(ALICE)))
    assert await role_in_group(db, GROUP, ALICE) == "admin"


# --- notices ----------------------------------------------------------------------------------


async def claim(
    db: Database,
    chat: Chat = GROUP,
    *,
    at: int = NOON,
    due_before: int = 0,
    user: str | None = None,
) -> bool:
    """Claim one kind of notice."""
    async with db.transaction() as tx:
        return await claim_notice(tx, chat, "privacy", at=at, due_before=due_before, user_id=user)


async def test_a_notice_that_is_given_once_is_never_due_again(db: Database):
    assert await claim(db)
    assert not await claim(db, at=NOON + 10_000 * MINUTE)
    assert await claim(db, OTHER_GROUP)


async def test_a_notice_is_due_again_after_its_time(db: Database):
    assert await claim(db, at=NOON, due_before=NOON - MINUTE)
    assert not await claim(db, at=NOON + MINUTE, due_before=NOON)
    assert await claim(db, at=NOON + MINUTE + 1, due_before=NOON + 1)
    assert not await claim(db, at=NOON + MINUTE + 2, due_before=NOON + 2)


async def test_each_person_gets_a_notice_of_their_own(db: Database):
    await store(db, said(id="1"), said(id="2", by=BRUNO))
    assert await claim(db, user=ALICE)
    assert await claim(db, user=BRUNO)
    assert await claim(db)
    assert not await claim(db, user=ALICE)


async def test_a_notice_to_somebody_unknown_is_not_taken_for_one_to_all(db: Database):
    assert await claim(db, user="39998")
    assert await claim(db, user="39999")
    assert not await claim(db, user="39998")
    assert await claim(db)


async def test_notices_of_other_kinds_are_apart(db: Database):
    assert await claim(db)
    async with db.transaction() as tx:
        assert await claim_notice(tx, GROUP, "apology", at=NOON, due_before=0)


# --- requests, blocks, accounts ---------------------------------------------------------------


async def request(db: Database, flag: str, bot_id: str = BOT):
    """Keep a friend request."""
    async with db.transaction() as tx:
        return await keep_request(
            tx, bot_id, "friend", flag, user_id=ALICE, group_id="", comment="你好", at=NOON
        )


async def test_a_request_waits_until_it_is_approved(db: Database):
    kept, is_new = await request(db, "f1")
    assert is_new
    assert (kept.flag, kept.user_id, kept.comment) == ("f1", ALICE, "你好")
    assert await open_request(db, BOT, kept.id) == kept
    async with db.transaction() as tx:
        await approve_request(tx, kept.id, by=BRUNO, at=NOON + 1)
    assert await open_request(db, BOT, kept.id) is None
    assert await open_requests(db, BOT) == []
    (row,) = await rows(db, "SELECT approved_by, approved_at FROM requests")
    assert tuple(row) == (BRUNO, NOON + 1)


async def test_the_same_request_twice_is_one(db: Database):
    first, _ = await request(db, "f1")
    second, is_new = await request(db, "f1")
    assert (second, is_new) == (first, False)


async def test_requests_are_of_one_account_and_the_newest_come_first(db: Database):
    one, _ = await request(db, "f1")
    two, _ = await request(db, "f2")
    other, _ = await request(db, "f1", "10002")
    assert await open_requests(db, BOT) == [two, one]
    assert await open_request(db, BOT, other.id) is None


async def test_who_is_blocked_stays_so_until_unblocked(db: Database):
    async with db.transaction() as tx:
        assert await block(tx, Member(BOT, ALICE), by=BRUNO, at=NOON)
        assert not await block(tx, Member(BOT, ALICE), by="30003", at=NOON + 1)
    assert await values(db, "SELECT blocked_by FROM blocks") == [BRUNO]
    async with db.transaction() as tx:
        assert await unblock(tx, Member(BOT, ALICE))
        assert not await unblock(tx, Member(BOT, ALICE))
    assert await values(db, "SELECT blocked_by FROM blocks") == []


async def test_every_account_that_ever_connected_is_remembered(db: Database):
    async with db.transaction() as tx:
        await account_connected(tx, BOT, NOON)
        await account_connected(tx, "10002", NOON)
        await account_offline(tx, BOT, NOON + 1)
    assert await account_ids(db) == {BOT, "10002"}
    assert await value(db, "SELECT offline_at FROM accounts WHERE bot_id = ?", BOT) == NOON + 1
    async with db.transaction() as tx:
        await account_connected(tx, BOT, NOON + 2)
    (row,) = await rows(db, "SELECT * FROM accounts WHERE bot_id = ?", BOT)
    assert tuple(row) == (BOT, NOON, NOON + 2, None)


@pytest.mark.parametrize(("is_repeated", "is_due"), [(True, True), (False, False)])
async def test_a_clock_that_is_set_back_delays_no_notice_and_repeats_none_that_is_given_once(
    db: Database, is_repeated: bool, is_due: bool
):
    async with db.transaction() as tx:
        assert await claim_notice(tx, GROUP, "some", at=NOON, due_before=0)
        for _ in range(2):
            at = NOON - HOUR
            due_before = at - MINUTE if is_repeated else 0
            given = await claim_notice(tx, GROUP, "some", at=at, due_before=due_before)
            assert given is is_due
            is_due = False


async def test_a_clock_that_is_set_back_delays_no_alert(db: Database):
    async with db.transaction() as tx:
        assert await claim_alert(tx, "some", at=NOON, due_before=NOON - DAY)
        assert not await claim_alert(tx, "some", at=NOON + 1, due_before=NOON - DAY)
        assert await claim_alert(tx, "some", at=NOON - HOUR, due_before=NOON - DAY)
        assert not await claim_alert(tx, "some", at=NOON - HOUR, due_before=NOON - DAY)

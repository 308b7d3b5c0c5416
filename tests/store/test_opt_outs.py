"""Who opts out: what no query shows any more, and how messages of theirs are kept."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from bot.model import Member, Message, Sender
from bot.store.database import Database
from bot.store.ingest import KEPT_MS, Arrival, Receipt, store_arrivals
from bot.store.memory import gone_among
from bot.store.message_search import Window, keyword_hits, lexical_hits
from bot.store.messages import (
    messages_by_rows,
    newest_with_id,
    recent_messages,
    replace_text,
    unanswered_messages,
)
from bot.store.opt_outs import OptOuts, open_opt_outs
from bot.store.sessions import is_any_gone
from bot.store.vectors import enter_space, next_lot
from tests.store.rows import (
    ALICE,
    BOT,
    BRUNO,
    GROUP,
    MINUTE,
    NOON,
    OTHER_GROUP,
    PRIVATE,
    own,
    pending,
    rows,
    said,
    store,
    value,
    values,
)

AN_ALICE = Member(BOT, ALICE)


async def take_in(
    db: Database, opt_outs: OptOuts, *messages: Message, **fields: object
) -> list[Receipt]:
    """Store messages as the program does."""
    arrivals = [Arrival(one, nicknames=("小忆",)) for one in messages]
    return await store_arrivals(db, [replace(one, **fields) for one in arrivals], opt_outs)


@pytest.fixture
async def opt_outs(db: Database) -> OptOuts:
    """Who has opted out: Alice, before she said anything."""
    found = await open_opt_outs(db)
    await found.add(AN_ALICE, at=NOON)
    return found


# What there was

Look = Callable[[Database, int], Awaitable[bool]]
"""Whether a row is shown by one of the ways to look."""


async def _recent(db: Database, row: int) -> bool:
    return row in {one.row_id for one in await recent_messages(db, GROUP, 9)}


async def _by_rows(db: Database, row: int) -> bool:
    return bool(await messages_by_rows(db, [row], kept=True))


async def _by_id(db: Database, row: int) -> bool:
    found = await newest_with_id(db, GROUP, "700")
    return found is not None and found.row_id == row and not found.is_gone


async def _unanswered(db: Database, row: int) -> bool:
    return row in {one.row_id for one in await unanswered_messages(db, BOT, NOON - MINUTE)}


async def _keyword(db: Database, row: int) -> bool:
    return row in {one.row_id for one in await keyword_hits(db, GROUP, ["湖边"], Window(), 9)}


async def _lexical(db: Database, row: int) -> bool:
    return row in {hit.row_id for hit in await lexical_hits(db, GROUP, "湖边路", Window(), 9)}


async def _proving(db: Database, row: int) -> bool:
    async with db.transaction() as tx:
        return row not in await gone_among(tx, [row])


async def _summarised(db: Database, row: int) -> bool:
    async with db.transaction() as tx:
        return not await is_any_gone(tx, [row])


async def _to_embed(db: Database, row: int) -> bool:
    space = await enter_space(db, "embedder", 8)
    lot = await next_lot(db, space, 9)
    return lot is not None and any(one.row_id == row and one.is_talk for one in lot.messages)


LOOKS = (_recent, _by_rows, _by_id, _unanswered, _keyword, _lexical, _proving, _summarised)


@pytest.mark.parametrize("look", [*LOOKS, _to_embed], ids=lambda look: look.__name__)
async def test_no_way_to_look_shows_what_somebody_said_before_they_opted_out(
    db: Database, look: Look
):
    opt_outs = await open_opt_outs(db)
    [receipt] = await take_in(db, opt_outs, said("我家在湖边路"))
    assert await look(db, receipt.row_id)
    await opt_outs.add(AN_ALICE, at=NOON)
    assert not await look(db, receipt.row_id)
    assert await values(db, "SELECT text FROM messages") == ["我家在湖边路"]


async def test_what_others_said_is_shown_as_before(db: Database):
    opt_outs = await open_opt_outs(db)
    [receipt] = await take_in(db, opt_outs, said("我家在湖边路", by=BRUNO))
    await opt_outs.add(AN_ALICE, at=NOON)
    assert [await look(db, receipt.row_id) for look in LOOKS] == [True] * len(LOOKS)


async def test_who_opted_out_is_known_after_a_restart(db: Database, opt_outs: OptOuts):
    again = await open_opt_outs(db)
    assert again.has(BOT, ALICE)
    assert not again.has("10009", ALICE)
    assert again.of(BOT) == {ALICE}
    assert await opt_outs.remove(AN_ALICE)
    assert not await opt_outs.remove(AN_ALICE)
    assert not (await open_opt_outs(db)).of(BOT)


async def test_what_is_not_written_changes_nothing(db: Database):
    opt_outs = await open_opt_outs(db)
    async with db.transaction():
        leaving = asyncio.create_task(opt_outs.add(AN_ALICE, at=NOON))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.wait([leaving])
    assert not opt_outs.of(BOT)
    assert not (await open_opt_outs(db)).of(BOT)


# From then on


async def test_a_message_leaves_a_row_and_nothing_else(db: Database, opt_outs: OptOuts):
    [receipt] = await take_in(db, opt_outs, said("我家在湖边路", mentions=(BRUNO,), reply_to="7"))
    assert receipt.is_new
    assert receipt.is_blank
    columns = "text, segments, mentions, sender_name, reply_to, counted, kept_until"
    [row] = await rows(db, f"SELECT {columns} FROM messages")
    assert tuple(row) == ("", "[]", "[]", "", "7", 0, None)
    assert await pending(db) == {}
    assert await values(db, "SELECT name FROM names") == []


async def test_the_same_message_again_is_the_same_row(db: Database, opt_outs: OptOuts):
    message = said("我家在湖边路")
    [first, second] = await take_in(db, opt_outs, message, message)
    [third] = await take_in(db, opt_outs, message)
    assert first.row_id == second.row_id == third.row_id
    assert [first.is_new, second.is_new, third.is_new] == [True, False, False]


@pytest.mark.parametrize(
    "message",
    [
        said("@小忆 在吗", mentions=(BOT,)),
        said("小忆 在吗"),
        said("在吗", chat=PRIVATE),
        said("在吗", reply_to="900"),
    ],
    ids=["at", "name", "private", "quote"],
)
async def test_what_addresses_the_bot_is_kept_and_forgotten(
    db: Database, opt_outs: OptOuts, message: Message
):
    await store(db, own("我在", id="900", at=NOON - MINUTE))
    [receipt] = await take_in(db, opt_outs, message)
    assert not receipt.is_blank
    [row] = await rows(
        db,
        "SELECT text, forgotten_at, kept_until, counted FROM messages WHERE id = ?",
        receipt.row_id,
    )
    assert tuple(row) == (message.text, NOON, NOON + KEPT_MS, 0)
    assert await messages_by_rows(db, [receipt.row_id]) == []
    assert len(await messages_by_rows(db, [receipt.row_id], kept=True)) == 1
    recent = await recent_messages(db, message.chat, 9)
    assert receipt.row_id not in {stored.row_id for stored in recent}
    assert not await keyword_hits(db, message.chat, ["在吗"], Window(), 9)
    assert [one.row_id for one in await unanswered_messages(db, BOT, NOON)] == [receipt.row_id]


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (said("在吗", reply_to="901"), {}),
        (said("在吗", mentions=(BOT,), received_at=NOON + 2 * MINUTE), {}),
        (said("/搜 在吗", mentions=(BOT,), kind="command"), {}),
        (said("在吗", mentions=(BOT,)), {"may_be_answered": False}),
    ],
    ids=["quotes somebody else", "old", "a command", "nobody is answered there"],
)
async def test_what_is_not_to_be_answered_is_not_kept(
    db: Database, opt_outs: OptOuts, message: Message, fields: dict[str, object]
):
    await store(db, said("我在", id="901", at=NOON - MINUTE, by=BRUNO))
    [receipt] = await take_in(db, opt_outs, message, **fields)
    assert receipt.is_blank
    assert await value(db, "SELECT text FROM messages WHERE id = ?", receipt.row_id) == ""


async def test_what_goes_with_a_question_is_kept_with_it(db: Database, opt_outs: OptOuts):
    [receipt] = await take_in(db, opt_outs, said("几点了"), follows=True)
    assert not receipt.is_blank


async def test_a_late_rendering_completes_what_is_kept_and_no_tombstone(
    db: Database, opt_outs: OptOuts
):
    kept, blank = await take_in(
        db, opt_outs, said("[合并转发]", id="1", mentions=(BOT,)), said("[合并转发]", id="2")
    )
    async with db.transaction() as tx:
        for receipt in (kept, blank):
            await replace_text(tx, receipt.row_id, "[合并转发 3 条]")
    assert await values(db, "SELECT text FROM messages ORDER BY id") == ["[合并转发 3 条]", ""]


async def test_others_in_the_same_transaction_are_stored_as_ever(db: Database, opt_outs: OptOuts):
    receipts = await take_in(
        db, opt_outs, said("一", id="1"), said("二", id="2", by=BRUNO), said("三", id="3")
    )
    assert [receipt.is_blank for receipt in receipts] == [True, False, True]
    assert await values(db, "SELECT text FROM messages ORDER BY id") == ["", "二", ""]
    assert await pending(db) == {"group": 1, "member-batch": 1}


async def test_another_account_records_them(db: Database, opt_outs: OptOuts):
    elsewhere = replace(OTHER_GROUP, bot_id="10009")
    [receipt] = await take_in(db, opt_outs, said("你好", chat=elsewhere))
    assert not receipt.is_blank


async def test_a_card_they_take_later_is_shown_and_no_history(db: Database, opt_outs: OptOuts):
    sender = Sender(ALICE, nickname="小鱼", card="湖边客")
    await take_in(db, opt_outs, said("你好", sender=sender))
    assert await values(db, "SELECT card FROM memberships") == ["湖边客"]
    assert await values(db, "SELECT name FROM names") == []


async def test_what_waits_for_the_lock_is_stored_as_the_change_has_it(db: Database):
    opt_outs = await open_opt_outs(db)
    async with db.transaction():
        leaving = asyncio.create_task(opt_outs.add(AN_ALICE, at=NOON))
        await asyncio.sleep(0)
        storing = asyncio.create_task(take_in(db, opt_outs, said("赶在前面")))
        await asyncio.sleep(0)
    await leaving
    [receipt] = await storing
    assert receipt.is_blank
    assert "赶在前面" not in json.dumps(await values(db, "SELECT text FROM messages"))

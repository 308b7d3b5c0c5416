"""The store of memory and of tasks: numbers, proofs, endings, counters, claims."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.model import Scope, Stream
from bot.store.database import Database
from bot.store.memory import (
    StreamWriter,
    all_scopes,
    forget_message,
    gone_among,
    read_stream,
    rewrite,
    streams_of,
    summary_rows,
)
from bot.store.tasks import (
    claim_tasks,
    is_any_claimable,
    put_off,
    queue_task,
    recent_tasks,
    renew_lease,
    standing,
    withdraw_task,
)
from bot.worker import LEASE_MS
from tests.memory.workshop import (
    BOT,
    FISH,
    GROUP,
    NOON,
    OF_FISH,
    OF_GROUP,
    OTHER_GROUP,
    PRIVATE,
    Workshop,
    check_all,
    open_workshop,
    spoken,
)
from tests.migration.freeze import FOLDER
from tests.migration.test_migrations import _restored

HOUR_MS = 3_600_000
GROUP_STREAM = Stream(OF_GROUP, GROUP)
FISH_HERE = Stream(OF_FISH, GROUP)
FISH_THERE = Stream(OF_FISH, OTHER_GROUP)


async def change(db: Database, stream: Stream, work: Callable[[StreamWriter], object]) -> Any:
    """Change a stream in a transaction of its own and return what the work returned."""
    results: list[Any] = []
    async with db.transaction() as tx:
        done = {stream: lambda writer: results.append(work(writer))}
        await rewrite(tx, done, at=NOON, by="test", why="")
    return results[0]


async def add(db: Database, stream: Stream, text: str, *proofs: tuple[int, ...]) -> int:
    return await change(
        db,
        stream,
        lambda writer: writer.add(
            "daily", text, proofs, date="2026-07-29", source_task="member-batch"
        ),
    )


async def living(db: Database, stream: Stream) -> dict[int, str]:
    return {e.number: e.text for e in (await read_stream(db, stream)).memory.entries}


# --- entries ----------------------------------------------------------------------------------


async def test_numbers_count_up_within_a_scope_whatever_the_stream(shop: Workshop):
    rows = await shop.chatter(2)
    await shop.chatter(1, OTHER_GROUP)
    streams = (FISH_HERE, FISH_THERE, FISH_HERE, GROUP_STREAM)
    numbers = [await add(shop.app.db, s, f"{n}", (rows[0],)) for n, s in enumerate(streams)]
    assert numbers == [1, 2, 3, 1]
    await _unmake(shop)


async def test_a_number_is_never_given_twice_even_if_its_entry_ended(shop: Workshop):
    rows = await shop.chatter(1)
    first = await add(shop.app.db, FISH_HERE, "甲", (rows[0],))
    db = shop.app.db
    assert await change(db, FISH_HERE, lambda w: w.end(first, "superseded", ""))
    assert not await change(db, FISH_HERE, lambda w: w.end(first, "superseded", ""))
    assert not await change(db, FISH_HERE, lambda w: w.prove(first, (rows[0],)))
    assert await add(shop.app.db, FISH_HERE, "乙", (rows[0],)) == first + 1
    assert await living(shop.app.db, FISH_HERE) == {first + 1: "乙"}
    await _unmake(shop)


async def test_entries_come_back_as_they_were_written(shop: Workshop):
    rows = await shop.chatter(3)
    await add(shop.app.db, FISH_HERE, "甲", (rows[0], rows[1]), (rows[2],))
    found = await read_stream(shop.app.db, FISH_HERE)
    [entry] = found.memory.entries
    assert entry.proofs == ((rows[0], rows[1]), (rows[2],))
    assert entry.date == "2026-07-29"
    assert entry.stream == FISH_HERE
    assert set(found.evidence) == set(rows)
    await _unmake(shop)


async def test_a_stream_that_does_not_exist_is_empty_and_is_not_made_by_reading(shop: Workshop):
    assert (await read_stream(shop.app.db, FISH_HERE)).memory.entries == ()
    assert await all_scopes(shop.app.db) == []
    assert await streams_of(shop.app.db, OF_FISH) == []


async def test_streams_of_another_account_are_others(shop: Workshop):
    rows = await shop.chatter(1)
    await add(shop.app.db, FISH_HERE, "甲", (rows[0],))
    assert await streams_of(shop.app.db, Scope("10009", "member", FISH)) == []
    assert await streams_of(shop.app.db, Scope(BOT, "group", FISH)) == []
    await _unmake(shop)


async def test_writing_that_fails_leaves_no_trace(shop: Workshop):
    rows = await shop.chatter(1)
    with pytest.raises(RuntimeError):
        await _write_and_fail(shop, rows)
    assert await all_scopes(shop.app.db) == []
    for table in ("streams", "entries", "proofs", "proof_messages", "summary_messages"):
        assert await shop.rows(f"SELECT * FROM {table}") == []


async def _write_and_fail(shop: Workshop, rows: list[int]) -> None:
    def work(writer: StreamWriter) -> None:
        writer.add("daily", "甲", [(rows[0],)], source_task="member-batch")
        writer.summarise("概要", rows)
        raise RuntimeError

    await change(shop.app.db, FISH_HERE, work)


async def test_forgetting_one_of_many_messages_takes_only_what_rests_on_it(shop: Workshop):
    rows = await shop.chatter(4)
    db = shop.app.db
    gone = await add(db, FISH_HERE, "甲", (rows[0], rows[1]))
    kept = await add(db, FISH_HERE, "乙", (rows[0],), (rows[2],))
    await add(db, GROUP_STREAM, "丙", (rows[3],))
    async with db.transaction() as tx:
        assert (await forget_message(tx, rows[0], NOON)).streams == 1
    assert await living(db, FISH_HERE) == {kept: "乙"}
    assert await living(db, GROUP_STREAM) == {1: "丙"}
    assert gone != kept
    await _unmake(shop)


async def test_a_summary_is_added_to_and_its_sources_are_not_written_again(shop: Workshop):
    rows = await shop.chatter(4)
    await change(shop.app.db, FISH_HERE, lambda w: w.summarise("一", rows[:2]))
    await change(shop.app.db, FISH_HERE, lambda w: w.summarise("二", rows[2:]))
    assert await summary_rows(shop.app.db, FISH_HERE) == tuple(rows)
    assert (await read_stream(shop.app.db, FISH_HERE)).memory.summary.text == "二"
    afters = await shop.values("SELECT json_extract(after, '$.summary.messages') FROM revisions")
    assert afters == [f"[{rows[0]},{rows[1]}]", f"[{rows[2]},{rows[3]}]"]
    await _unmake(shop)


async def test_only_recalled_and_emptied_messages_are_gone(shop: Workshop):
    rows = await shop.chatter(2)
    own = await shop.say_own("第1句对吧，第1句")
    await shop.recall(rows[0])
    async with shop.app.db.transaction() as tx:
        assert await gone_among(tx, [*rows, own, 999]) == {rows[0]}
        await tx.execute_fetchall(
            "UPDATE messages SET text = '', segments = '[]' WHERE id = ?", [own]
        )
        assert await gone_among(tx, [*rows, own]) == {rows[0], own}


async def _unmake(shop: Workshop) -> None:
    """Take away entries that no task paid for, which the check at the end would find."""
    async with shop.app.db.transaction() as tx:
        await tx.execute_fetchall("DELETE FROM entries")


# --- tasks ------------------------------------------------------------------------------------


async def test_a_task_is_open_once_and_taken_by_one(shop: Workshop):
    await shop.chatter(1)
    db = shop.app.db
    found = await standing(db, GROUP, "group")
    assert found is not None
    async with db.transaction() as tx:
        assert await queue_task(tx, found, "command", NOON)
        assert not await queue_task(tx, found, "command", NOON)
    assert await is_any_claimable(db, NOON)
    async with db.transaction() as tx:
        first = await claim_tasks(tx, "one", limit=9, now=NOON, until=NOON + LEASE_MS)
        second = await claim_tasks(tx, "two", limit=9, now=NOON, until=NOON + LEASE_MS)
        assert not await queue_task(tx, found, "command", NOON)
    assert (len(first), len(second)) == (1, 0)
    assert not await is_any_claimable(db, NOON)
    async with db.transaction() as tx:
        await withdraw_task(tx, first[0], "two")
        assert len(await recent_tasks(db)) == 1
        await withdraw_task(tx, first[0], "one")
    assert await recent_tasks(db) == []


async def test_only_its_holder_puts_a_task_off_or_keeps_it(shop: Workshop):
    await shop.chatter(1)
    await shop.pass_time(15)
    claim = await shop.claim("one")
    async with shop.app.db.transaction() as tx:
        for owner, is_ours in (("two", False), ("one", True), ("one", False)):
            assert (
                await put_off(tx, claim, owner, attempts=1, next_run_at=NOON, error="") is is_ours
            )
        assert not await renew_lease(tx, claim, "one", NOON)


async def test_a_clock_that_is_set_back_puts_no_task_off_for_longer(shop: Workshop):
    await shop.chatter(1)
    await shop.pass_time(15)
    claim = await shop.claim("one")
    now = shop.app.clock.now()
    async with shop.app.db.transaction() as tx:
        assert await put_off(tx, claim, "one", attempts=9, next_run_at=now + HOUR_MS, error="")
    assert not await is_any_claimable(shop.app.db, now)
    assert await is_any_claimable(shop.app.db, now - 365 * 24 * HOUR_MS)
    assert await is_any_claimable(shop.app.db, now + HOUR_MS)


async def test_tasks_are_listed_by_chat_the_newest_first(shop: Workshop):
    await shop.chatter(2)
    await shop.chatter(2, OTHER_GROUP)
    await shop.idle()
    assert len(await recent_tasks(shop.app.db)) == 4
    here = await recent_tasks(shop.app.db, GROUP)
    assert {task.chat for task in here} == {GROUP}
    assert [task.id for task in here] == sorted((task.id for task in here), reverse=True)


async def test_a_database_from_before_reflections_gets_all_of_its_messages_reflected(
    tmp_path: Path,
):
    _restored(tmp_path / "qunyi.db", FOLDER / "v1.sql")
    async with open_workshop(tmp_path) as shop:
        await shop.answer_once()
        await shop.clock.advance(200 * 86_400)
        for chat in (GROUP, OTHER_GROUP, PRIVATE):
            async with shop.app.db.transaction() as tx:
                await tx.execute_fetchall("UPDATE chats SET muted_until = 0, access = ''")
            counted = await shop.values(
                "SELECT text FROM messages JOIN chats AS c ON c.id = chat_id"
                " WHERE counted = 1 AND c.kind = ? AND c.peer_id = ? ORDER BY messages.id",
                chat.kind,
                chat.id,
            )
            await shop.tick()
            task = "group" if chat.is_group else "private-owner"
            read = [one for one in shop.asked(task) if one.request.chat == chat]
            assert [text for text in spoken(read) if text in counted] == counted
        await asyncio.sleep(0)


async def test_what_the_counters_say_survives_a_restart(tmp_path: Path):
    async with open_workshop(tmp_path) as shop:
        rows = await shop.chatter(90)
        await shop.recall(rows[3])
        await shop.tick()
    async with open_workshop(tmp_path) as shop:
        await check_all(shop)
        assert await shop.pending() == {"group": 89, "member-batch": 0}

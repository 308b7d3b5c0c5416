"""Group commit: one transaction for many, and nobody's message lost or written twice."""

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import StoreBusy
from bot.model import Chat, Message
from bot.store.database import Database, open_database
from bot.store.group_commit import GROUP_SIZE, GroupCommit
from bot.store.ingest import Arrival, Receipt, store_arrivals
from bot.store.patience import Patience
from tests.store.processes import HOLD_LOCK, next_line, start
from tests.store.rows import (
    GROUP,
    NOON,
    OTHER_GROUP,
    PRIVATE,
    arrival,
    message_count,
    own,
    pending,
    rows,
    said,
    values,
)

Arrivals = GroupCommit[Arrival, Receipt]


def arrivals_of(db: Database, sizes: list[int], busy: list[StoreBusy]) -> Arrivals:
    """Return a group commit into ``db`` that notes how large its groups were."""

    async def commit(group: Sequence[Arrival]) -> Sequence[Receipt]:
        sizes.append(len(group))
        return await store_arrivals(db, group)

    return GroupCommit(commit, Patience(busy.append))


@asynccontextmanager
async def lock_elsewhere(path: Path, seconds: float) -> AsyncIterator[None]:
    """Let another process hold the write lock for a while."""
    process = await start(HOLD_LOCK, path, seconds)
    assert await next_line(process) == "locked"
    yield
    assert await process.wait() == 0


async def add_all(arrivals: Arrivals, messages: Sequence[Message]) -> list[Receipt]:
    """Add messages at once, as events arrive."""
    return await asyncio.gather(*(arrivals.add(arrival(message)) for message in messages))


def numbered(count: int) -> list[Message]:
    """Return so many different messages."""
    return [said(f"第 {n} 句", id=str(n), at=NOON + n) for n in range(count)]


async def test_what_is_queued_while_a_commit_runs_shares_the_next(db: Database):
    sizes: list[int] = []
    arrivals = arrivals_of(db, sizes, [])
    await add_all(arrivals, numbered(600))
    assert sum(sizes) == 600
    assert max(sizes) == GROUP_SIZE
    assert len(sizes) <= 4


async def test_order_is_kept(db: Database):
    arrivals = arrivals_of(db, [], [])
    receipts = await add_all(arrivals, numbered(700))
    assert [receipt.row_id for receipt in receipts] == list(range(1, 701))
    assert await values(db, "SELECT platform_id FROM messages ORDER BY id") == [
        str(n) for n in range(700)
    ]


async def test_a_message_is_durable_when_its_caller_hears_of_it(db: Database):
    arrivals = arrivals_of(db, [], [])

    async def added(message: Message) -> bool:
        receipt = await arrivals.add(arrival(message))
        return bool(await values(db, "SELECT id FROM messages WHERE id = ?", receipt.row_id))

    assert all(await asyncio.gather(*(added(message) for message in numbered(300))))


@pytest.mark.parametrize(
    "poison",
    [
        said("\ud800", id="bad"),
        said(id="bad", sequence=2**70),
        replace(said(id="bad"), sent_at=2**64),
    ],
    ids=["surrogate", "sequence", "time"],
)
async def test_one_message_that_cannot_be_stored_does_not_take_its_neighbours_along(
    db: Database, poison: Message
):
    arrivals = arrivals_of(db, [], [])
    messages = [*numbered(20), poison, *(said(id=f"more{n}") for n in range(20))]
    outcomes = await asyncio.gather(
        *(arrivals.add(arrival(message)) for message in messages), return_exceptions=True
    )
    failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert len(failed) == 1
    assert failed[0] is outcomes[20]
    assert await values(db, "SELECT platform_id FROM messages ORDER BY id") == [
        message.platform_id for message in messages if message is not poison
    ]
    assert await pending(db) == {"group": 40, "member-batch": 40}


async def test_after_a_failure_the_next_message_is_stored(db: Database):
    arrivals = arrivals_of(db, [], [])
    with pytest.raises(UnicodeEncodeError):
        await arrivals.add(arrival(said("\ud800", id="bad")))
    assert (await arrivals.add(arrival(said()))).is_new


@pytest.mark.parametrize("patience", [0, 1, 3])
async def test_a_caller_that_no_longer_waits_loses_nothing(db: Database, patience: int):
    arrivals = arrivals_of(db, [], [])
    messages = numbered(300)
    tasks = [asyncio.create_task(arrivals.add(arrival(message))) for message in messages]
    for _ in range(1 + patience):
        await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    await arrivals.flush()
    assert await values(db, "SELECT platform_id FROM messages ORDER BY id") == [
        message.platform_id for message in messages
    ]
    assert all(isinstance(outcome, Receipt) for outcome in outcomes[1::2])
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes[::2])


async def test_flush_waits_for_all_that_was_queued(db: Database):
    arrivals = arrivals_of(db, [], [])
    tasks = [asyncio.create_task(arrivals.add(arrival(m))) for m in numbered(600)]
    await asyncio.sleep(0)
    await arrivals.flush()
    assert await message_count(db) == 600
    await asyncio.gather(*tasks)
    await arrivals.flush()


async def test_twenty_messages_arrive_while_another_process_holds_the_lock(db: Database):
    busy: list[StoreBusy] = []
    arrivals = arrivals_of(db, [], busy)
    async with lock_elsewhere(db.path, 3):
        receipts = await add_all(arrivals, numbered(20))
    assert all(receipt.is_new for receipt in receipts)
    assert await message_count(db) == 20
    assert busy == []


@pytest.mark.long
async def test_messages_outlast_a_lock_that_is_longer_than_the_busy_timeout(db: Database):
    busy: list[StoreBusy] = []
    arrivals = arrivals_of(db, [], busy)
    async with lock_elsewhere(db.path, 6.5):
        receipts = await add_all(arrivals, numbered(20))
    assert [receipt.row_id for receipt in receipts] == list(range(1, 21))
    assert await message_count(db) == 20
    assert len(busy) == 1
    assert str(db.path) in str(busy[0])


# --- any interleaving -------------------------------------------------------------------------

_KINDS = st.sampled_from(["inbound", "outbound", "command"])
_EVENTS = st.lists(
    st.tuples(
        _KINDS,
        st.sampled_from([GROUP, OTHER_GROUP, PRIVATE]),
        st.sampled_from(["-1712345678", "1", "2", "3"]),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=40,
)


@given(events=_EVENTS, seed=st.integers(0, 2**16))
async def test_in_whatever_order_they_come_each_message_is_one_row(
    events: list[tuple[str, Chat, str, int, int]], seed: int
):
    messages = [
        own(id=f"o{id}", at=NOON + 1000 * second, chat=chat)
        if kind == "outbound"
        else said(
            id=id,
            at=NOON + 1000 * second,
            chat=chat,
            kind="command" if kind == "command" else "chat",
        )
        for kind, chat, id, second, _ in events
    ]
    order = random.Random(seed)

    with tempfile.TemporaryDirectory() as folder:
        async with open_database(Path(folder) / "qunyi.db", now=NOON, synchronous="NORMAL") as db:
            arrivals = arrivals_of(db, [], [])

            async def add(message: Message, hops: int) -> Receipt:
                for _ in range(hops):
                    await asyncio.sleep(0)
                return await arrivals.add(arrival(message))

            paired = [(m, event[4] * order.randint(0, 2)) for m, event in zip(messages, events)]
            receipts = await asyncio.gather(*(add(*pair) for pair in paired))
            stored = await rows(
                db,
                "SELECT messages.id, peer_id, platform_id, sent_at, direction FROM messages "
                "JOIN chats AS c ON c.id = chat_id ORDER BY messages.id",
            )

    by_row = {row["id"]: row for row in stored}
    expected = {
        # All copies of an own message are within a minute of each other.
        (m.chat.id, m.platform_id, m.sent_at if m.direction == "inbound" else None)
        for m in messages
    }
    assert len(stored) == len(expected)
    assert sum(receipt.is_new for receipt in receipts) == len(expected)
    for message, receipt in zip(messages, receipts, strict=True):
        row = by_row[receipt.row_id]
        assert (row["peer_id"], row["platform_id"]) == (message.chat.id, message.platform_id)
        assert row["direction"] == message.direction
        assert row["sent_at"] == message.sent_at or message.direction == "outbound"

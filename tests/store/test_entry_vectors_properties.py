"""Whatever becomes of memory, in the end exactly what has text has a vector, and of that text."""

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.search.vectors import kept
from bot.store.database import Database, open_database
from bot.store.entry_vectors import keep_entries, next_entries, request_entries
from bot.store.forgetting import forget_entry
from bot.store.memory import StreamWriter, rewrite
from bot.store.revisions import undo_revision
from bot.store.vectors import enter_space
from tests.store.rows import ALICE, NOON, values
from tests.store.test_entry_vectors import (
    DIMENSIONS,
    OF_ALICE,
    OF_ALICE_ALONE,
    embed,
    recall,
    remember,
    vector_of,
    with_vectors,
)

STREAMS = (OF_ALICE, OF_ALICE_ALONE)


@dataclass(frozen=True)
class Change:
    """Something becomes of memory: of its n-th entry, message or change."""

    kind: Literal["remember", "end", "compress", "undo", "recall", "forget", "reindex"]
    number: int


@dataclass(frozen=True)
class Embed:
    """A lot is read; other things happen; then it is kept, unless the program dies before."""

    embedder: str
    limit: int
    meanwhile: tuple[Change, ...]
    dies: bool


changes = st.builds(
    Change,
    st.sampled_from(
        ("remember", "remember", "end", "compress", "undo", "recall", "forget", "reindex")
    ),
    st.integers(0, 7),
)
embeds = st.builds(
    Embed,
    st.sampled_from(("one", "one", "two")),
    st.integers(1, 6),
    st.lists(changes, max_size=3).map(tuple),
    st.booleans(),
)


async def _nth(db: Database, number: int, query: str) -> int | None:
    found = await values(db, query)
    return found[number % len(found)] if found else None


async def _change(db: Database, change: Change) -> None:
    stream = STREAMS[change.number % 2]
    match change.kind:
        case "remember":
            count = len(await values(db, "SELECT 1 FROM entries"))
            await remember(db, stream, f"第{count}件事", "daily")
        case "recall":
            query = "SELECT id FROM messages WHERE recalled_at IS NULL AND chat_id = 1"
            row = await _nth(db, change.number, query)
            if row is not None:
                await recall(db, row, await _chat_of_first(db))
        case "undo":
            revision = await _nth(db, change.number, "SELECT id FROM revisions")
            async with db.transaction() as tx:
                await undo_revision(tx, revision or 0, by="test", at=NOON)
        case "forget":
            async with db.transaction() as tx:
                await forget_entry(tx, stream, change.number + 1, by=ALICE, at=NOON)
        case "reindex":
            await db.write(request_entries)
        case _:
            await _rewrite(db, change)


async def _chat_of_first(db: Database):
    (peer,) = await values(db, "SELECT peer_id FROM chats WHERE id = 1")
    [chat] = {s.origin for s in STREAMS if s.origin.id == peer}
    return chat


async def _rewrite(db: Database, change: Change) -> None:
    stream = STREAMS[change.number % 2]
    query = (
        "SELECT number FROM entries JOIN streams AS t ON t.id = stream_id"
        f" JOIN chats AS c ON c.id = t.chat_id WHERE c.peer_id = '{stream.origin.id}'"
        " AND ended_at IS NULL AND document = 'daily'"
    )
    living = await values(db, query)
    if not living:
        return

    def work(writer: StreamWriter) -> None:
        if change.kind == "end":
            writer.end(living[change.number % len(living)], "superseded", "")
        else:
            text = f"概括 {living}"
            writer.compress(text, "2026-09-21", living[:3], source_task="compress")
            for number in living[:3]:
                writer.end(number, "compressed", "")

    async with db.transaction() as tx:
        await rewrite(tx, {stream: work}, at=NOON, by="test", why="")


async def _embed(db: Database, step: Embed) -> None:
    space = await enter_space(db, step.embedder, DIMENSIONS)
    lot = await next_entries(db, space, step.limit, is_remote=False)
    for change in step.meanwhile:
        await _change(db, change)
    if not step.dies:
        await keep_entries(db, space, [(one, kept(vector_of(one.text))) for one in lot])


async def _live(path: Path, lived: list[Change | Embed]) -> None:
    async with open_database(path, now=NOON, synchronous="NORMAL") as db:
        for step in lived:
            if isinstance(step, Embed):
                await _embed(db, step)
            else:
                await _change(db, step)
            assert await values(db, "SELECT entry_id FROM entry_vectors ORDER BY 1") == (
                await values(db, "SELECT id FROM entries WHERE text <> '' ORDER BY id")
            )
            await with_vectors(db)
        space = await embed(db)
        has_text = await values(db, "SELECT text FROM entries WHERE text <> '' ORDER BY id")
        assert await with_vectors(db) == has_text
        in_use = await values(db, "SELECT DISTINCT space_id FROM entry_vectors")
        assert in_use == ([space.id] if has_text else [])


@settings(max_examples=60)
@given(st.lists(st.one_of(changes, changes, embeds), min_size=3, max_size=16))
def test_in_the_end_what_has_text_has_its_vector_and_nothing_else(lived: list[Change | Embed]):
    with tempfile.TemporaryDirectory() as folder:
        first = [Change("remember", 0), Change("remember", 1)]
        asyncio.run(_live(Path(folder) / "qunyi.db", [*first, *lived]))

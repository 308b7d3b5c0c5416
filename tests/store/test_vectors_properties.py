"""Whatever happens in between, in the end exactly what may be found has a vector and a sketch."""

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.store.database import Database, open_database
from bot.store.messages import Recall, recall_message, replace_text, set_apart
from bot.store.vectors import SpaceMoved, enter_space, keep_lot, next_lot
from tests.store.rows import BOT, GROUP, NOON, OTHER_GROUP, PRIVATE, SECOND, said, store, values
from tests.store.test_vectors import DIMENSIONS, embed_all, made, sketched, with_vectors

CHATS = (GROUP, OTHER_GROUP, PRIVATE)


@dataclass(frozen=True)
class Say:
    """Somebody says so many things in a chat."""

    chat: int
    count: int


@dataclass(frozen=True)
class Embed:
    """A lot is read; other things happen; then it is kept, unless the program dies before."""

    embedder: str
    limit: int
    meanwhile: tuple["Change", ...]
    dies: bool


@dataclass(frozen=True)
class Change:
    """Something becomes of the n-th message there is."""

    kind: str
    number: int


Step = Say | Embed | Change
changes = st.builds(Change, st.sampled_from(("recall", "forget", "rewrite")), st.integers(0, 5))
says = st.builds(Say, st.integers(0, 2), st.sampled_from((1, 2, 3, 70)))
embeds = st.builds(
    Embed,
    st.sampled_from(("one", "one", "one", "two")),
    st.integers(1, 40),
    st.lists(changes, min_size=1, max_size=3).map(tuple),
    st.sampled_from((False, False, True)),
)
steps = st.one_of(says, embeds, embeds, embeds, changes)


async def _change(db: Database, change: Change) -> None:
    found = await values(db, "SELECT id FROM messages ORDER BY id")
    if not found:
        return
    row = found[change.number % len(found)]
    async with db.transaction() as tx:
        match change.kind:
            case "recall":
                chat = CHATS[(await _chat_of(db, row))]
                await recall_message(tx, Recall(chat, f"m{row}", BOT, NOON + 10**6))
            case "forget":
                await set_apart(tx, row, NOON + 10**6)
            case _:
                await replace_text(tx, row, f"另一句 {change.number}")


async def _chat_of(db: Database, row: int) -> int:
    query = "SELECT c.peer_id FROM messages AS m JOIN chats AS c ON c.id = chat_id WHERE m.id = ?"
    (peer,) = await values(db, query, row)
    return [chat.id for chat in CHATS].index(peer)


async def _embed(db: Database, step: Embed) -> None:
    space = await enter_space(db, step.embedder, DIMENSIONS)
    lot = await next_lot(db, space, step.limit)
    if lot is None:
        return
    ready = [made(one) for one in lot.messages if one.is_talk]
    for change in step.meanwhile:
        await _change(db, change)
    if step.dies:
        return
    try:
        await keep_lot(db, lot, ready)
    except SpaceMoved:
        raise AssertionError("nobody else was there") from None


async def _say(db: Database, step: Say) -> None:
    (count,) = await values(db, "SELECT count(*) FROM messages")
    chat = CHATS[step.chat]
    await store(
        db,
        *(
            said(f"第{n}句", id=f"m{n}", at=NOON + n * SECOND, chat=chat)
            for n in range(count + 1, count + 1 + step.count)
        ),
    )


async def _live(path: Path, lived: list[Step]) -> None:
    async with open_database(path, now=NOON, synchronous="NORMAL") as db:
        for step in lived:
            match step:
                case Say():
                    await _say(db, step)
                case Embed():
                    await _embed(db, step)
                case Change():
                    await _change(db, step)
            await _nothing_erased_is_left(db)
        space = await embed_all(db, "one", limit=50)
        wanted = await values(
            db,
            "SELECT id FROM messages WHERE kind = 'chat' AND text <> ''"
            " AND recalled_at IS NULL AND forgotten_at IS NULL ORDER BY id",
        )
        assert await with_vectors(db) == wanted
        assert await sketched(db, space) == wanted
        assert await values(db, "SELECT DISTINCT space_id FROM message_vectors") in ([], [space.id])
        assert await values(db, "SELECT DISTINCT space_id FROM vector_pages") in ([], [space.id])
        assert await values(db, "SELECT message_id FROM vector_requests") == []


async def _nothing_erased_is_left(db: Database) -> None:
    gone = await values(
        db,
        "SELECT message_id FROM message_vectors JOIN messages AS m ON m.id = message_id"
        " WHERE m.text = '' OR m.recalled_at IS NOT NULL OR m.forgotten_at IS NOT NULL",
    )
    assert gone == []


@settings(max_examples=40)
@given(says, st.lists(steps, min_size=2, max_size=12))
def test_in_the_end_what_may_be_found_has_a_vector_and_nothing_else(first: Say, lived: list[Step]):
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_live(Path(folder) / "qunyi.db", [first, *lived]))


async def test_a_text_that_changes_while_it_is_embedded_is_embedded_anew(db: Database):
    await _say(db, Say(0, 3))
    for _ in range(3):
        await _embed(db, Embed("one", 9, (Change("rewrite", 1),), dies=False))
    space = await embed_all(db, "one")
    assert await with_vectors(db) == await sketched(db, space) == [1, 2, 3]

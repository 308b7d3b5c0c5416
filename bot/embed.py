"""Embed: messages and entries get vectors, in the background, and questions when they are asked.

See ``docs/search.md``, "Vectors" and "Vectors of entries".
"""

import asyncio
from collections.abc import Sequence

import numpy as np
from loguru import logger
from numpy.typing import NDArray

from bot.app import App
from bot.budget import budget_is_spent
from bot.errors import ContextTooLong, ModelAnswerInvalid, ModelError, ModelRefused
from bot.llm.embedder import Embedder
from bot.memory.masking import masked
from bot.model import Chat
from bot.search.tokens import index_words
from bot.search.vectors import kept, sketches, slot
from bot.store.entry_vectors import WantingEntry, keep_entries, next_entries
from bot.store.vectors import (
    Lot,
    Made,
    Space,
    SpaceMoved,
    Wanting,
    enter_space,
    keep_lot,
    next_lot,
    space_in_use,
)
from bot.text import display_name

LOT_ROWS = 64
ENTRY_LOT_ROWS = 32
SMALL_LOT_ROWS = 4
"""So many at a time while people speak: few of them meet a lot, and none a long one."""

PAUSE_SECONDS = 0.25
"""Between two lots, so that a backlog takes neither the processor nor the disk from anybody."""

MAX_CHARS = 500
"""Of a longer message the beginning tells what it is about."""

PROBE = "你好"

QUESTION_SECONDS = 3.0
"""Whoever asks does not wait longer for the question's vector; words must do then."""

Vector = NDArray[np.float32]


async def embed_all(app: App) -> int:
    """Make vectors of all messages and entries that have none; return how many were made.

    New messages come first, then entries, then older messages, the newest first. It goes on
    where it stopped, whatever stopped it. It gives way to people who speak. If the day's budget is
    spent, it waits.

    Raises:
        ModelError: the embedder gives none; what was made before is kept.
    """
    if app.embedder is None:
        return 0
    embedder_id, dimensions = app.embedder.id, await app.embedder.dimensions()
    space = await space_in_use(app.db, embedder_id, dimensions)
    space = space or await enter_space(app.db, embedder_id, dimensions)
    count = 0
    while not await _is_spent(app, app.embedder):
        most = await _lot_rows(app)
        lot = await next_lot(app.db, space, most)
        entries = await _next_entries(app, app.embedder, space, lot, min(most, ENTRY_LOT_ROWS))
        try:
            if entries:
                count += await _embed_entries(app, app.embedder, space, entries)
            elif lot is not None:
                count += await _embed_lot(app, app.embedder, lot)
            else:
                break
        except SpaceMoved:
            break
        await app.clock.sleep(PAUSE_SECONDS)
    return count


async def _lot_rows(app: App) -> int:
    """Wait for a lull and return how many rows may be looked at now."""
    await app.lull.awaited()
    return LOT_ROWS if app.lull.is_silence else SMALL_LOT_ROWS


async def _is_spent(app: App, embedder: Embedder) -> bool:
    return embedder.is_remote and await budget_is_spent(app, "embed")


async def _embed_lot(app: App, embedder: Embedder, lot: Lot) -> int:
    wanted = [one for one in lot.messages if is_worth_it(one, embedder)]
    texts = [passage(one, embedder) for one in wanted]
    vectors = await _vectors(embedder, texts) if texts else []
    pairs = [(one, v) for one, v in zip(wanted, vectors, strict=True) if v is not None]
    made = await asyncio.to_thread(_made, app, pairs) if pairs else []
    await keep_lot(app.db, lot, made)
    return len(made)


async def _next_entries(
    app: App, embedder: Embedder, space: Space, lot: Lot | None, limit: int
) -> list[WantingEntry]:
    """Return the entries to look at now, none as long as there are new messages."""
    if lot is not None and lot.side != "older":
        return []
    return await next_entries(app.db, space, limit, is_remote=embedder.is_remote)


async def _embed_entries(
    app: App, embedder: Embedder, space: Space, entries: Sequence[WantingEntry]
) -> int:
    wanted = [one for one in entries if index_words(one.text[:MAX_CHARS])]
    texts = [sent_text(one.text, embedder) for one in wanted]
    vectors = await _vectors(embedder, texts) if texts else []
    made = {
        one.row_id: kept(vector)
        for one, vector in zip(wanted, vectors, strict=True)
        if vector is not None
    }
    await keep_entries(app.db, space, [(one, made.get(one.row_id)) for one in entries])
    return len(made)


async def question_vector(app: App, chat: Chat, question: str) -> Vector | None:
    """Return what a question means, ``None`` if it has to be searched by its words.

    Args:
        app: the program.
        chat: where it is asked.
        question: raw.
    """
    embedder = app.embedder
    if embedder is None or not question.strip() or await _is_spent(app, embedder):
        return None
    try:
        async with asyncio.timeout(QUESTION_SECONDS):
            [vector] = await embedder.embed([sent_text(question, embedder)], chat)
            return vector
    except (ModelError, TimeoutError) as error:
        logger.warning("a question is searched by its words: {}", type(error).__name__)
        return None


def is_worth_it(message: Wanting, embedder: Embedder) -> bool:
    """Whether a message gets a vector: one that says something, and may be sent where it goes."""
    may_go = message.is_served or not embedder.is_remote
    return message.is_talk and may_go and bool(index_words(message.text[:MAX_CHARS]))


def passage(message: Wanting, embedder: Embedder) -> str:
    """Return what is embedded of a message: who says what."""
    name = display_name(message.sender_name, "")
    return sent_text(f"{name}：{message.text}", embedder)


def sent_text(text: str, embedder: Embedder) -> str:
    """Return what of a text an embedder is given; nothing that has to be masked leaves."""
    if not embedder.is_remote:
        return text[:MAX_CHARS]
    # Masked before it is cut: half a number is not known for one.
    return masked(text[: 2 * MAX_CHARS])[:MAX_CHARS]


async def _vectors(
    embedder: Embedder, texts: Sequence[str], *, is_willing: bool = False
) -> list[Vector | None]:
    """Return vectors; ``None`` for a text that an embedder does not take, though it takes others.

    Args:
        embedder: may be anything that answers.
        texts: what to embed.
        is_willing: it is known to take others.

    Raises:
        ModelError: it takes none.
    """
    try:
        return list(await embedder.embed(texts))
    except (ModelRefused, ContextTooLong, ModelAnswerInvalid) as error:
        # Else what takes nothing at all would be asked for each, and each would be passed over.
        is_last_garbage = len(texts) == 1 and isinstance(error, ModelAnswerInvalid)
        if not is_willing or is_last_garbage:
            await embedder.embed([PROBE])
        if len(texts) == 1:
            return [None]
    half = len(texts) // 2
    first = await _vectors(embedder, texts[:half], is_willing=True)
    return [*first, *await _vectors(embedder, texts[half:], is_willing=True)]


def _made(app: App, pairs: Sequence[tuple[Wanting, Vector]]) -> list[Made]:
    vectors = np.stack([vector for _, vector in pairs])
    drawn = sketches(vectors, app.matrices.planes(vectors.shape[1]))
    return [
        Made(one, kept(vector), slot(one.row_id, one.sent_at, one.member_id, sketch))
        for (one, vector), sketch in zip(pairs, drawn, strict=True)
    ]

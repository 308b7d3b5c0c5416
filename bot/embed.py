"""Embed: messages get vectors, in the background; see ``docs/search.md``, "Vectors"."""

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bot.app import App
from bot.budget import budget_is_spent
from bot.errors import ContextTooLong, ModelAnswerInvalid, ModelRefused
from bot.llm.embedder import Embedder
from bot.memory.masking import masked
from bot.search.tokens import index_words
from bot.search.vectors import kept, sketches, slot
from bot.store.vectors import (
    Lot,
    Made,
    SpaceMoved,
    Wanting,
    enter_space,
    keep_lot,
    next_lot,
    space_in_use,
)
from bot.text import display_name

LOT_ROWS = 64
PAUSE_SECONDS = 0.25
"""Between two lots, so that a backlog takes neither the processor nor the disk from anybody."""

MAX_CHARS = 500
"""Of a longer message the beginning tells what it is about."""

PROBE = "你好"

Vector = NDArray[np.float32]


async def embed_messages(app: App) -> int:
    """Make vectors of all messages that have none, the newest first; return how many were made.

    It goes on where it stopped, whatever stopped it. If the day's budget is spent, it waits.

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
        lot = await next_lot(app.db, space, LOT_ROWS)
        if lot is None:
            break
        try:
            count += await _embed_lot(app, app.embedder, lot)
        except SpaceMoved:
            break
        await app.clock.sleep(PAUSE_SECONDS)
    return count


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


def is_worth_it(message: Wanting, embedder: Embedder) -> bool:
    """Whether a message gets a vector: one that says something, and may be sent where it goes."""
    may_go = message.is_served or not embedder.is_remote
    return message.is_talk and may_go and bool(index_words(message.text[:MAX_CHARS]))


def passage(message: Wanting, embedder: Embedder) -> str:
    """Return what is embedded of a message: who says what."""
    name = display_name(message.sender_name, "")
    text = f"{name}：{message.text}"[:MAX_CHARS]
    return masked(text) if embedder.is_remote else text


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

"""What models said of pictures; see ``docs/tools.md``, "Images"."""

import json
from dataclasses import dataclass

import aiosqlite

from bot.model import Segment
from bot.store.database import Database
from bot.store.queries import load

_sql = load("images")


@dataclass(frozen=True, slots=True)
class Description:
    """What a model says of a picture."""

    text: str
    """See ``bot/onebot/pictures.py``, ``description_line``."""
    model: str


async def description_in_message(db: Database, row_id: int, number: int) -> str | None:
    """Return what is said already of a message's picture, ``None`` if nothing is."""
    async with db.reader() as connection:
        row = await _sql.of_message(connection, message_id=row_id, number=number)
    return row["description"] if row else None


async def description_of_content(db: Database, digest: str) -> Description | None:
    """Return what is said of the same picture elsewhere, ``None`` if nothing is."""
    async with db.reader() as connection:
        row = await _sql.of_content(connection, hash=digest)
    return Description(row["description"], row["model"]) if row else None


async def standing_message(
    tx: aiosqlite.Connection, row_id: int
) -> tuple[str, tuple[Segment, ...]] | None:
    """Return text and segments of a message, ``None`` if it was recalled or forgotten."""
    row = await _sql.standing(tx, message_id=row_id)
    if row is None:
        return None
    segments = json.loads(row["segments"])
    return row["text"], tuple(Segment(s["type"], s["data"]) for s in segments)


async def keep_description(
    tx: aiosqlite.Connection,
    row_id: int,
    number: int,
    description: Description,
    *,
    digest: str,
    at: int,
) -> None:
    """Keep what a model says of a message's picture, for as long as the message has its text.

    Args:
        tx: a transaction.
        row_id: the message.
        number: which of its pictures, from 1.
        description: what is said.
        digest: of the picture's content.
        at: UTC milliseconds.
    """
    await _sql.keep(
        tx,
        message_id=row_id,
        number=number,
        hash=digest,
        description=description.text,
        model=description.model,
        at=at,
    )

"""What model calls cost, as the providers counted it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from bot.model import Usage
from bot.store.database import Database
from bot.store.queries import load
from bot.store.sqlite import Call

_sql = load("usage")


@dataclass(frozen=True, slots=True)
class UsageSum:
    """The calls of one purpose, added up."""

    purpose: str
    calls: int
    succeeded: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


async def add_usage(db: Database, usage: Usage) -> None:
    """Keep one call."""
    chat = usage.chat
    async with db.transaction() as tx:
        await _sql.add_usage(
            tx,
            at=usage.at,
            purpose=usage.purpose,
            model=usage.model,
            endpoint=usage.endpoint,
            bot_id=chat.bot_id if chat else None,
            kind=chat.kind if chat else None,
            peer_id=chat.id if chat else None,
            duration_ms=usage.duration_ms,
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            completion_tokens=usage.completion_tokens,
            ok=usage.ok,
            error=usage.error,
        )


async def usage_since(db: Database, since: int) -> list[UsageSum]:
    """Return the sums by purpose since ``since`` (UTC milliseconds)."""
    async with db.reader() as connection:
        rows = [row async for row in _sql.usage_since(connection, since=since)]
    return [UsageSum(*(row[name] for name in UsageSum.__slots__)) for row in rows]


async def tokens_since(db: Database, since: int, purposes: Iterable[str]) -> int:
    """Return the tokens, prompt and completion, that some purposes cost since ``since``."""
    names = json.dumps(sorted(purposes))
    async with db.reader() as connection:
        return await _sql.tokens_since(connection, since=since, purposes=names)


def tokens_call(since: int, purposes: Iterable[str]) -> Call:
    """Return the query behind ``tokens_since``, for a visit that asks more."""
    return (_sql.tokens_since, {"since": since, "purposes": json.dumps(sorted(purposes))})

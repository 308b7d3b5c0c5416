"""Alerts: what operators are told once and not again before its time."""

import aiosqlite

from bot.store.queries import load

_sql = load("alerts")


async def claim_alert(tx: aiosqlite.Connection, kind: str, *, at: int, due_before: int) -> bool:
    """Whether operators are to be told of ``kind`` now; it then counts as told.

    It is due if they were last told before ``due_before``. All in UTC milliseconds.
    """
    return await _sql.claim_alert(tx, kind=kind, at=at, due_before=due_before) > 0

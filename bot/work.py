"""Work: what the runs of all tasks share. See ``docs/memory.md``, "Failure"."""

from dataclasses import dataclass

import aiosqlite

from bot.errors import QunyiError
from bot.store.tasks import AnyClaim, put_off


class LostTask(QunyiError):
    """The lease or the cursor is somebody else's by now; nothing may be committed."""


@dataclass(slots=True)
class Spending:
    """What one run asked of the model."""

    calls: int = 0
    tokens: int = 0


async def try_again(
    tx: aiosqlite.Connection,
    claim: AnyClaim,
    owner: str,
    spending: Spending,
    *,
    attempts: int,
    at: int,
    error: str,
) -> None:
    """Let a task be tried again at ``at`` (UTC milliseconds), after so many failures running.

    Raises:
        LostTask: the lease ran out.
    """
    is_ours = await put_off(
        tx,
        claim,
        owner,
        attempts=attempts,
        next_run_at=at,
        error=error,
        calls=spending.calls,
        tokens=spending.tokens,
    )
    if not is_ours:
        raise LostTask("the lease ran out")

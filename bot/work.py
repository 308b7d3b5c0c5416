"""Work: what the runs of all tasks share. See ``docs/memory.md``, "Failure"."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import aiosqlite
from loguru import logger

from bot.app import App
from bot.errors import QunyiError, StoreBusy
from bot.store.tasks import AnyClaim, put_off, renew_lease

LEASE_MS = 60_000
RENEW_SECONDS = 20


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


def lease_owner(app: App) -> str:
    """Return the name under which this process holds leases, the same after a restart."""
    return f"{socket.gethostname()}:{app.config.port}"


@asynccontextmanager
async def leased(app: App, claim: AnyClaim, owner: str) -> AsyncIterator[None]:
    """Renew a task's lease as long as the block runs."""
    renewing = asyncio.create_task(_renew(app, claim, owner))
    try:
        yield
    finally:
        renewing.cancel()
        with suppress(asyncio.CancelledError):
            await renewing


async def _renew(app: App, claim: AnyClaim, owner: str) -> None:
    is_ours = True
    while is_ours:
        await app.clock.sleep(RENEW_SECONDS)
        try:
            async with app.db.transaction() as tx:
                is_ours = await renew_lease(tx, claim, owner, app.clock.now() + LEASE_MS)
        except StoreBusy as error:
            logger.warning("a lease waits to be renewed: {}", error)

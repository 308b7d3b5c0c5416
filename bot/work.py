"""Work: what the runs of all tasks share. See ``docs/memory.md``, "Failure"."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

import aiosqlite
from loguru import logger

from bot.app import App
from bot.errors import ContextTooLong, ModelAnswerInvalid, ModelRefused, QunyiError, StoreBusy
from bot.memory.answer import AnswerUnusable
from bot.memory.backoff import retry_minutes
from bot.store.tasks import (
    AnyClaim,
    SessionClaim,
    StreamClaim,
    narrow_task,
    put_off,
    renew_lease,
)

LEASE_MS = 60_000
RENEW_SECONDS = 20

UNUSABLE_BEFORE_HALVING = 5
"""From this many unusable answers running on, calls read half as much."""

NotTaken = ModelRefused | ContextTooLong | AnswerUnusable | ModelAnswerInvalid
"""A failure for which the cause may be something that a call read."""

NOT_TAKEN = (ModelRefused, ContextTooLong, AnswerUnusable, ModelAnswerInvalid)


class LostTask(QunyiError):
    """The lease or the cursor is somebody else's by now; nothing may be committed."""


@dataclass(slots=True)
class Spending:
    """What one run asked of the model."""

    calls: int = 0
    tokens: int = 0


class Run(Protocol):
    """A task being worked on, whichever it is."""

    @property
    def claim(self) -> AnyClaim:
        """The task."""
        ...

    @property
    def owner(self) -> str:
        """Who holds its lease."""
        ...

    @property
    def spending(self) -> Spending:
        """What was spent since the last commit."""
        ...


class RunInParts(Run, Protocol):
    """One that is worked on call by call, each of which reads a part."""

    @property
    def claim(self) -> StreamClaim | SessionClaim:
        """The task."""
        ...


class CutOff(AnswerUnusable):
    """A model did not finish its answer, so it is asked for less."""


@dataclass(frozen=True, slots=True)
class Search:
    """The search for what no model takes: calls read half as much, and one thing at last."""

    limit: int | None
    """How much a call reads at most, in messages, entries or turns; ``None`` for all there is
    room for."""
    unusable: int
    """How many answers running could not be used."""

    def after(self, error: NotTaken, read: int) -> "Search | None":
        """Return how it goes on after a call that read so much; ``None`` once it has ended.

        It ends when the call read one thing alone: that is passed over.
        """
        if isinstance(error, ModelRefused | ContextTooLong):
            return None if read <= 1 else Search(read // 2, self.unusable)
        unusable = self.unusable + 1
        is_enough = unusable >= UNUSABLE_BEFORE_HALVING
        if is_enough and read <= 1:
            return None
        is_halved = is_enough or isinstance(error, CutOff)
        return Search(max(1, read // 2) if is_halved else self.limit, unusable)


async def read_less(app: App, run: RunInParts, error: NotTaken, read: int) -> bool:
    """Let a task be tried again after a call that read so much, with smaller ones if that may help.

    Returns:
        False, and nothing is changed, if the call read one thing alone, which is to be passed over.

    Raises:
        LostTask: the lease ran out.
    """
    claim = run.claim
    search = Search(claim.chunk, claim.unusable).after(error, read)
    if search is None:
        return False
    async with app.db.transaction() as tx:
        await narrow_task(tx, claim, search.limit, search.unusable)
        await try_again_after(app, tx, run, error)
    return True


async def try_again_after(app: App, tx: aiosqlite.Connection, run: Run, error: NotTaken) -> None:
    """Let a task be tried again: at once if a prompt was refused, which a smaller one may not be.

    Raises:
        LostTask: the lease ran out.
    """
    if isinstance(error, ModelRefused | ContextTooLong):
        words = f"{type(error).__name__}: halved"
        await try_again(tx, run, attempts=run.claim.attempts, at=app.clock.now(), error=words)
    else:
        await try_later(app, tx, run, described(error))


def described(error: Exception) -> str:
    """Return a failure as operators see it."""
    return f"{type(error).__name__}: {error}"


async def try_later(app: App, tx: aiosqlite.Connection, run: Run, error: str) -> None:
    """Let a task be tried again after 1, 2, 4 … 60 minutes, whatever happens meanwhile.

    Raises:
        LostTask: the lease ran out.
    """
    attempts = run.claim.attempts + 1
    minutes = retry_minutes(attempts)
    at = app.clock.now() + minutes * 60_000
    await try_again(tx, run, attempts=attempts, at=at, error=error)
    logger.warning(
        "{} of {} failed and is tried again in {} min: {}",
        run.claim.task,
        run.claim.chat,
        minutes,
        error,
    )


async def try_again(
    tx: aiosqlite.Connection, run: Run, *, attempts: int, at: int, error: str
) -> None:
    """Let a task be tried again at ``at`` (UTC milliseconds), after so many failures running.

    Raises:
        LostTask: the lease ran out.
    """
    is_ours = await put_off(
        tx,
        run.claim,
        run.owner,
        attempts=attempts,
        next_run_at=at,
        error=error,
        calls=run.spending.calls,
        tokens=run.spending.tokens,
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

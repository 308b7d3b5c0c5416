"""Patience: what may not be lost waits until the database takes it, in the order in which it came.

See ``docs/architecture.md``, "Storage".
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from bot.errors import StoreBusy, StoreError, StoreFull

MOST_WAITING = 10_000
"""More messages than this do not wait to be stored, nor more of anything else: memory ends too."""

PAUSE_SECONDS = 0.25
"""Between two attempts: a full disk refuses at once, and another process may want its turn."""

TOLD_AGAIN_MS = 3_600_000
"""A disk that is full now and then is no news within this time."""

T = TypeVar("T")


class Patience:
    """Tries a write until it is done, while another process holds the lock or the disk is full.

    One for all writes of a process, so that a wait is told of once, whoever waits.

    Args:
        on_wait: told when a wait begins.
        pause_seconds: between two attempts.
    """

    def __init__(
        self, on_wait: Callable[[StoreBusy], None], *, pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        self._on_wait = on_wait
        self._pause_seconds = pause_seconds
        self._cause: StoreBusy | None = None
        self._told_at: int | None = None

    async def until_done(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return what ``attempt`` returns once it succeeds.

        Raises:
            whatever ``attempt`` raises that does not pass by waiting.
        """
        while True:
            try:
                outcome = await attempt()
            except StoreBusy as error:
                if type(self._cause) is not type(error):
                    self._on_wait(error)
                self._cause = error
                await asyncio.sleep(self._pause_seconds)
            else:
                self._cause = None
                return outcome

    def take_news(self, now: int) -> StoreFull | None:
        """Return that writes wait for room on the disk, unless that was asked within the hour.

        Args:
            now: UTC milliseconds.
        """
        if not isinstance(self._cause, StoreFull):
            return None
        if self._told_at is not None and 0 <= now - self._told_at < TOLD_AGAIN_MS:
            return None
        self._told_at = now
        return self._cause


class LastingWrites:
    """What notices say, and what is to be gone before the next turn, one after the other, each
    tried until it is written.

    Messages have a queue of their own (``GroupCommit``).
    """

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def keep(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do some work, behind all that was asked for before; it may be tried more than once.

        Raises:
            StoreError: too much waits already.
            whatever ``work`` raises that does not pass by waiting.
        """
        if self._waiting >= MOST_WAITING:
            raise StoreError(f"{MOST_WAITING} writes wait for the database already")
        self._waiting += 1
        try:
            async with self._turn:
                return await self._patience.until_done(work)
        finally:
            self._waiting -= 1

    async def settled(self) -> None:
        """Wait until all that was asked for is written."""
        async with self._turn:
            pass

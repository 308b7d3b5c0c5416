"""Many small writes, one transaction: what is queued while a commit runs shares the next.

A caller waits for its own commit. Measured: one transaction per event costs one sync of the
disk each; a group of 256 costs one. See ``docs/architecture.md``, "Storage".
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from bot.errors import StoreError
from bot.store.patience import MOST_WAITING, Patience

GROUP_SIZE = 256

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
Commit = Callable[[Sequence[Item]], Awaitable[Sequence[Outcome]]]


class GroupCommit(Generic[Item, Outcome]):
    """Gathers items and commits them in groups of at most ``GROUP_SIZE``, in order.

    Args:
        commit: writes one group in one transaction and returns an outcome for each item.
        patience: while another process holds the lock, or the disk is full, a group is tried
            again, so nothing that was accepted is lost.
        most_waiting: more items are not accepted.
    """

    def __init__(
        self,
        commit: Commit[Item, Outcome],
        patience: Patience,
        *,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._commit = commit
        self._patience = patience
        self._most_waiting = most_waiting
        self._queue: deque[tuple[Item, asyncio.Future[Outcome]]] = deque()
        self._newest: asyncio.Future[Outcome] | None = None
        self._draining: asyncio.Task[None] | None = None

    async def add(self, item: Item) -> Outcome:
        """Return the item's outcome once its group is committed.

        Raises:
            StoreError: too many wait already.
            whatever ``commit`` raised for the item alone.
        """
        return await self.put(item)

    def put(self, item: Item) -> asyncio.Future[Outcome]:
        """Queue an item at once, behind all that were queued before, and return its outcome to be
        awaited.

        Raises:
            StoreError: too many wait already.
        """
        if len(self._queue) >= self._most_waiting:
            raise StoreError(f"{self._most_waiting} messages wait for the database already")
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._queue.append((item, future))
        self._newest = future
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain())
        return future

    async def caught_up(self) -> None:
        """Wait until everything that is queued now is committed, not what comes meanwhile."""
        if self._newest is not None:
            await asyncio.wait([self._newest])

    async def flush(self) -> None:
        """Wait until everything that was queued is committed."""
        while self._draining is not None:
            await asyncio.wait([self._draining])

    async def _drain(self) -> None:
        try:
            while self._queue:
                count = min(GROUP_SIZE, len(self._queue))
                await self._write([self._queue.popleft() for _ in range(count)])
        finally:
            self._draining = None

    async def _write(self, group: list[tuple[Item, asyncio.Future[Outcome]]]) -> None:
        try:
            outcomes = await self._committed([item for item, _ in group])
        except Exception as error:
            await self._settle_apart(group, error)
            return
        for (_, future), outcome in zip(group, outcomes, strict=True):
            if not future.done():
                future.set_result(outcome)

    async def _settle_apart(
        self, group: list[tuple[Item, asyncio.Future[Outcome]]], error: Exception
    ) -> None:
        # One bad item must not take its neighbours with it: each is tried alone.
        if len(group) > 1:
            for pair in group:
                await self._write([pair])
        elif not group[0][1].done():
            group[0][1].set_exception(error)

    async def _committed(self, items: Sequence[Item]) -> Sequence[Outcome]:
        return await self._patience.until_done(partial(self._commit, items))

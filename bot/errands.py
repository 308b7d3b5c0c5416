"""Errands: what runs for people and may wait long, so that the end of the program need not."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Errands:
    """Work that is stopped when the program ends, whoever waits for it.

    The handlers of the edge are shielded from cancellation, and an answer may wait a minute for
    its turn to be sent. What is stopped before its send began is answered after a restart.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = False

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do some work to its end.

        Raises:
            asyncio.CancelledError: the program ended first.
        """
        if self._is_over:
            work.close()
            raise asyncio.CancelledError
        task = asyncio.create_task(work)
        self._tasks.add(task)
        try:
            await task
        finally:
            self._tasks.discard(task)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do some work that nobody waits for."""
        if self._is_over:
            work.close()
            return
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Stop all of it, and let nothing begin any more."""
        self._is_over = True
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

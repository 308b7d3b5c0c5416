"""The worker: queue what is due, claim, run, record; one ``tick`` at a time.

See ``docs/memory.md``, "Triggers" and "Failure". What is due is derived from rows, so a restart
loses nothing; two processes cannot work on the same task.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import get_args

from loguru import logger

from bot.app import App
from bot.budget import reflection_budget_is_spent
from bot.memory.triggers import TaskStats, TriggerRules, due
from bot.model import TaskName
from bot.reflect import reflect
from bot.settings import Settings
from bot.store.tasks import (
    Claim,
    Horizon,
    Standing,
    claim_tasks,
    due_candidates,
    free_leases,
    queue_task,
    renew_lease,
)

LEASE_MS = 60_000
RENEW_SECONDS = 20


def lease_owner(app: App) -> str:
    """Return the name under which this process holds leases, the same after a restart."""
    return f"{socket.gethostname()}:{app.config.port}"


async def free_own_leases(app: App) -> None:
    """Free what this process held when it died."""
    async with app.db.transaction() as tx:
        freed = await free_leases(tx, lease_owner(app))
    if freed:
        logger.info("{} tasks of the last run go on", freed)


async def tick(app: App) -> int:
    """Do everything that is due now and return how many tasks were run.

    Runs up to ``memoryConcurrency`` tasks at a time until nothing is due; a backlog is drained
    oldest first.
    """
    count = 0
    running: set[asyncio.Task[None]] = set()
    try:
        while True:
            await queue_due(app)
            free = app.settings.general.memory_concurrency - len(running)
            for claim in await _claims(app, free):
                running.add(asyncio.create_task(_work(app, claim)))
                count += 1
            if not running:
                return count
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def queue_due(app: App) -> int:
    """Queue every task that is due and not open yet; return how many."""
    count = 0
    for task in get_args(TaskName):
        for found in await due_candidates(app.db, task, _horizon(app, task)):
            count += await _queue_if_due(app, found)
    return count


def _horizon(app: App, task: TaskName) -> Horizon:
    settings, now = app.settings.general, app.clock.now()
    idle_ms = round(settings.memory_idle_minutes * 60_000)
    wait_ms = round(settings.memory_group_max_wait_minutes * 60_000)
    never = -1
    counts = {
        "group": 1 << 62,
        "member-batch": settings.memory_member_batch_messages,
        "private-owner": settings.memory_private_batch_messages,
    }
    return Horizon(
        idle_since=now - idle_ms,
        waiting_since=now - wait_ms if task == "group" else never,
        count=counts[task],
    )


async def _queue_if_due(app: App, found: Standing) -> bool:
    reason = due(found.task, _stats(found), _rules(app.settings.of(found.chat)), app.clock.now())
    if reason is None:
        return False
    async with app.db.transaction() as tx:
        return await queue_task(tx, found, reason, app.clock.now())


def _stats(found: Standing) -> TaskStats:
    return TaskStats(
        pending=found.pending,
        oldest_pending_at=found.oldest_pending_at,
        newest_pending_at=found.newest_pending_at,
        has_answered=found.has_answered,
        fell_due=found.fell_due,
    )


def _rules(settings: Settings) -> TriggerRules:
    return TriggerRules(
        memory_enabled=settings.memory_enabled,
        member_batch_enabled=settings.memory_member_batch_enabled,
        idle_minutes=settings.memory_idle_minutes,
        member_batch_messages=settings.memory_member_batch_messages,
        private_batch_messages=settings.memory_private_batch_messages,
        group_max_wait_minutes=settings.memory_group_max_wait_minutes,
    )


async def _claims(app: App, limit: int) -> list[Claim]:
    if limit <= 0 or await reflection_budget_is_spent(app):
        return []
    now = app.clock.now()
    async with app.db.transaction() as tx:
        return await claim_tasks(tx, lease_owner(app), limit=limit, now=now, until=now + LEASE_MS)


async def _work(app: App, claim: Claim) -> None:
    async with _lease(app, claim):
        await reflect(app, claim, lease_owner(app))


@asynccontextmanager
async def _lease(app: App, claim: Claim) -> AsyncIterator[None]:
    """Renew a task's lease as long as the block runs."""

    async def renew() -> None:
        while True:
            await app.clock.sleep(RENEW_SECONDS)
            async with app.db.transaction() as tx:
                await renew_lease(tx, claim, lease_owner(app), app.clock.now() + LEASE_MS)

    renewing = asyncio.create_task(renew())
    try:
        yield
    finally:
        renewing.cancel()
        with suppress(asyncio.CancelledError):
            await renewing

"""The worker: queue what is due, claim, run, record; one ``tick`` at a time.

See ``docs/memory.md``, "Triggers" and "Failure". What is due is derived from rows, so a restart
loses nothing; two processes cannot work on the same task.
"""

import asyncio
import sqlite3
from typing import get_args

from loguru import logger

from bot.alert import warn_of_full_store
from bot.app import App
from bot.budget import budget_is_spent, warn_of_budgets
from bot.compact import tend_sessions
from bot.compress import compress
from bot.errors import StoreError
from bot.memory.backoff import retry_minutes
from bot.memory.triggers import Reason, TaskStats, TriggerRules, due, earliest_due_at
from bot.model import TaskName
from bot.opt_out import erase_what_was_kept
from bot.reflect import reflect
from bot.settings import Settings
from bot.store.tasks import (
    Allowance,
    AnyClaim,
    Claim,
    Horizon,
    SessionClaim,
    Standing,
    StreamClaim,
    claim_tasks,
    due_candidates,
    free_leases,
    is_any_claimable,
    put_off,
    queue_task,
    standing,
    standing_now,
    withdraw_task,
)
from bot.summarize import summarize
from bot.work import LEASE_MS, lease_owner, leased


async def free_own_leases(app: App) -> None:
    """Free what this process held when it died."""
    async with app.db.transaction() as tx:
        freed = await free_leases(tx, lease_owner(app))
    if freed:
        logger.info("{} tasks of the last run go on", freed)


async def tick(app: App) -> int:
    """Do everything that is due now and return how many tasks were run.

    Runs up to ``memoryConcurrency`` tasks at a time until nothing is due; a backlog is drained
    oldest first. While some run long, the others look every ``WORKER_INTERVAL_SECONDS`` for more.
    """
    count = 0
    running: set[asyncio.Task[None]] = set()
    try:
        while True:
            warn_of_full_store(app)
            await warn_of_budgets(app)
            await erase_what_was_kept(app)
            await queue_due(app)
            for claim in await _claims(app, _free_places(app, running)):
                running.add(asyncio.create_task(_work(app, claim)))
                count += 1
            if not running:
                return count
            running = await _until_some_end(app, running)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _free_places(app: App, running: set[asyncio.Task[None]]) -> int:
    return app.settings.general.memory_concurrency - len(running)


async def _until_some_end(app: App, running: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
    """Wait until a task ends, or it is time to look for others; return those that still run."""
    pause = asyncio.create_task(app.clock.sleep(app.config.worker_interval_seconds))
    try:
        ended, going_on = await asyncio.wait({*running, pause}, return_when="FIRST_COMPLETED")
    finally:
        pause.cancel()
    for task in ended:
        task.result()
    return {task for task in running if task in going_on}


async def queue_due(app: App) -> int:
    """Queue every task that is due and not open yet; return how many."""
    count = await tend_sessions(app)
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
        now=now,
        memory_enabled=settings.memory_enabled,
        member_batch_enabled=settings.memory_member_batch_enabled,
    )


async def _queue_if_due(app: App, found: Standing) -> bool:
    if _reason(app, found) is None:
        return False
    async with app.db.transaction() as tx:
        # Another process may have reflected it since it was found.
        current = await standing_now(tx, found.chat, found.task)
        reason = _reason(app, current) if current else None
        if current is None or reason is None:
            return False
        return await queue_task(tx, current, reason, app.clock.now())


def _reason(app: App, found: Standing) -> Reason | None:
    return due(found.task, _stats(found), _rules(app.settings.of(found.chat)), app.clock.now())


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


async def _claims(app: App, limit: int) -> list[AnyClaim]:
    now = app.clock.now()
    if limit <= 0 or not await is_any_claimable(app.db, now, Allowance()):
        return []
    allowed = Allowance(
        reflections=not await budget_is_spent(app, "reflect"),
        compressions=not await budget_is_spent(app, "compress"),
        summaries=not await budget_is_spent(app, "summarize"),
    )
    if not await is_any_claimable(app.db, now, allowed):
        return []
    async with app.db.transaction() as tx:
        return await claim_tasks(
            tx, lease_owner(app), limit=limit, now=now, until=now + LEASE_MS, allowed=allowed
        )


async def _work(app: App, claim: AnyClaim) -> None:
    """Run one task. Whatever goes wrong with it ends here, and the others go on."""
    try:
        await _attempt(app, claim)
    except (StoreError, sqlite3.Error) as error:
        # The lease runs out, and the task is taken up again.
        logger.error("{} of {} was not kept: {}", claim.task, claim.chat, error)


async def _attempt(app: App, claim: AnyClaim) -> None:
    try:
        async with leased(app, claim, lease_owner(app)):
            if isinstance(claim, SessionClaim):
                await summarize(app, claim, lease_owner(app))
            elif not await _is_open(app, claim):
                await _withdraw(app, claim)
            elif isinstance(claim, StreamClaim):
                await compress(app, claim, lease_owner(app))
            else:
                await reflect(app, claim, lease_owner(app))
    except (StoreError, sqlite3.Error):
        raise
    except Exception as error:
        logger.exception("{} of {} failed", claim.task, claim.chat)
        await _set_aside(app, claim, type(error).__name__)


async def _is_open(app: App, claim: Claim | StreamClaim) -> bool:
    """Whether a task that was queued is still to run: it may wait long for its next try."""
    if isinstance(claim, StreamClaim):
        return app.settings.of(claim.chat).memory_enabled
    found = await standing(app.db, claim.chat, claim.task)
    return (
        found is not None
        and earliest_due_at(claim.task, _stats(found), _rules(app.settings.of(claim.chat)))
        is not None
    )


async def _withdraw(app: App, claim: AnyClaim) -> None:
    async with app.db.transaction() as tx:
        await withdraw_task(tx, claim, lease_owner(app))
    logger.info("{} of {} is not to run any more", claim.task, claim.chat)


async def _set_aside(app: App, claim: AnyClaim, error: str) -> None:
    attempts = claim.attempts + 1
    again_at = app.clock.now() + retry_minutes(attempts) * 60_000
    async with app.db.transaction() as tx:
        await put_off(
            tx, claim, lease_owner(app), attempts=attempts, next_run_at=again_at, error=error
        )

"""What happens by the clock: the worker looks for due tasks, each night memory is tended, and from
the start on older messages are indexed."""

import asyncio
import sqlite3
from contextlib import suppress
from datetime import UTC, datetime

import nonebot
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from loguru import logger

from bot.app import App
from bot.consolidate import NIGHT_HOUR, tend
from bot.embed import embed_all
from bot.errors import QunyiError
from bot.opt_out import erase_hidden
from bot.reindex import index_older, scrub_messages
from bot.remind import send_due, settle
from bot.worker import free_own_leases, tick
from plugins.current import current_app
from plugins.given import given

driver = nonebot.get_driver()
scheduler = AsyncIOScheduler(timezone="UTC")

REMINDERS = "the next reminder"
"""The job of the reminder that is due next; the others have theirs when it is their turn."""

REMINDERS_EVERY_SECONDS = 60
"""A look besides: for accounts that are back, mutes that ended, and a clock that jumped."""


@driver.on_startup
async def begin() -> None:
    """Go on where the last run ended, then look every ``WORKER_INTERVAL_SECONDS``.

    The night's work is asked for at once as well: the program may have been down at that hour.
    """
    app = current_app()
    app.errands.begin(_index(app))
    app.errands.begin(erase_hidden(app))
    await free_own_leases(app)
    await settle(app)
    if not given().looks:
        return
    now = datetime.fromtimestamp(app.clock.now() / 1000, UTC)
    scheduler.add_job(
        work,
        "interval",
        seconds=app.config.worker_interval_seconds,
        max_instances=1,
        coalesce=True,
        next_run_time=now,
    )
    scheduler.add_job(
        tend_memory,
        "cron",
        hour=NIGHT_HOUR,
        timezone=app.config.timezone,
        max_instances=1,
        coalesce=True,
        misfire_grace_time=None,
        next_run_time=now,
    )
    scheduler.add_job(
        remind,
        "interval",
        seconds=REMINDERS_EVERY_SECONDS,
        # One that waits for its chat's turn to be sent holds up no other.
        max_instances=3,
        coalesce=True,
        misfire_grace_time=None,
        next_run_time=now,
    )
    scheduler.add_job(
        embed,
        "interval",
        seconds=app.config.worker_interval_seconds,
        max_instances=1,
        coalesce=True,
    )
    app.alarms.wind(_wake)
    scheduler.start()


@driver.on_shutdown
async def end() -> None:
    """Begin nothing more."""
    if scheduler.running:
        scheduler.shutdown(wait=False)


async def work() -> None:
    """Do what is due; an error is logged here and the next look comes all the same.

    It is an errand, so that the program's end waits until it is stopped before it closes the store.
    """
    app = current_app()
    with suppress(asyncio.CancelledError):
        await app.errands.run(_look(app))


async def embed() -> None:
    """Make vectors of what has none; a failure is logged, and the next look goes on from there."""
    app = current_app()
    with suppress(asyncio.CancelledError):
        await app.errands.run(_embed(app))


async def tend_memory() -> None:
    """Do the night's work on memory, if it was not done since last night; errors end here too."""
    app = current_app()
    with suppress(asyncio.CancelledError):
        await app.errands.run(_tend(app))


async def remind() -> None:
    """Send the reminders that are due, and be woken for the next; errors end here too."""
    app = current_app()
    with suppress(asyncio.CancelledError):
        await app.errands.run(_remind(app))


async def _remind(app: App) -> None:
    try:
        following = await send_due(app)
    except (QunyiError, sqlite3.Error) as error:
        logger.error("reminders were not sent: {}: {}", type(error).__name__, error)
        return
    if following is not None:
        _wake(following)


def _wake(at: int) -> None:
    """Be woken at a moment (UTC milliseconds), unless that happens sooner anyway."""
    when = datetime.fromtimestamp(at / 1000, UTC)
    job = scheduler.get_job(REMINDERS)
    if job is not None and job.next_run_time <= when:
        return
    scheduler.add_job(
        remind, "date", run_date=when, id=REMINDERS, replace_existing=True, misfire_grace_time=None
    )


async def _look(app: App) -> None:
    try:
        await tick(app)
    except (QunyiError, sqlite3.Error) as error:
        logger.error("the worker stopped early: {}: {}", type(error).__name__, error)


async def _embed(app: App) -> None:
    try:
        await embed_all(app)
    except (QunyiError, sqlite3.Error) as error:
        logger.warning("texts wait for their vectors: {}: {}", type(error).__name__, error)


async def _tend(app: App) -> None:
    try:
        await tend(app)
        await scrub_messages(app)
    except (QunyiError, sqlite3.Error) as error:
        logger.error("memory was not tended: {}: {}", type(error).__name__, error)


async def _index(app: App) -> None:
    try:
        await index_older(app)
    except (QunyiError, sqlite3.Error) as error:
        logger.error("older messages are not indexed: {}: {}", type(error).__name__, error)

"""What happens by the clock: the worker looks for due tasks again and again."""

import asyncio
import sqlite3
from contextlib import suppress
from datetime import UTC, datetime

import nonebot
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from loguru import logger

from bot.app import App
from bot.errors import QunyiError
from bot.worker import free_own_leases, tick
from plugins.current import current_app

driver = nonebot.get_driver()
scheduler = AsyncIOScheduler(timezone="UTC")


@driver.on_startup
async def begin() -> None:
    """Go on where the last run ended, then look every ``WORKER_INTERVAL_SECONDS``."""
    app = current_app()
    await free_own_leases(app)
    scheduler.add_job(
        work,
        "interval",
        seconds=app.config.worker_interval_seconds,
        max_instances=1,
        coalesce=True,
        next_run_time=datetime.fromtimestamp(app.clock.now() / 1000, UTC),
    )
    scheduler.start()


@driver.on_shutdown
async def end() -> None:
    """Begin nothing more."""
    scheduler.shutdown(wait=False)


async def work() -> None:
    """Do what is due; an error is logged here and the next look comes all the same.

    It is an errand, so that the program's end waits until it is stopped before it closes the store.
    """
    app = current_app()
    with suppress(asyncio.CancelledError):
        await app.errands.run(_look(app))


async def _look(app: App) -> None:
    try:
        await tick(app)
    except (QunyiError, sqlite3.Error) as error:
        logger.error("the worker stopped early: {}: {}", type(error).__name__, error)

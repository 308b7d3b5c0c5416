"""Tell: what the bot says on its own account to who asked: apologies and notices."""

from loguru import logger

from bot.app import App
from bot.clock import day_start
from bot.errors import SendError
from bot.notices import apology, budget_notice, privacy_notice, unconfigured_notice
from bot.scene import Scene
from bot.send import send_notice
from bot.store.chats import claim_notice, withdraw_notice

APOLOGY_EVERY_MS = 10 * 60_000
"""At most one apology per chat in this time."""


async def tell_failure(app: App, scene: Scene, error_id: str) -> bool:
    """Apologise, unless that was done in this chat lately; true if something was sent."""
    due_before = app.clock.now() - APOLOGY_EVERY_MS
    is_due = await _claim(app, scene, "apology", due_before=due_before)
    return is_due and await _tell(app, scene, apology(error_id))


async def tell_unconfigured(app: App, scene: Scene) -> bool:
    """Say that no model is configured, once to each person; true if something was sent."""
    is_due = await _claim(app, scene, "unconfigured", user_id=scene.question.sender_id)
    return is_due and await _tell(app, scene, unconfigured_notice())


async def tell_budget_spent(app: App, scene: Scene) -> bool:
    """Say that the budget is spent, once on each local day; true if something was sent."""
    today = day_start(scene.now, app.config.timezone)
    is_due = await _claim(app, scene, "budget", due_before=today)
    return is_due and await _tell(app, scene, budget_notice())


async def tell_privacy(app: App, scene: Scene) -> bool:
    """Say what is kept and who reads it, once in each chat; true if something was sent."""
    if not await _claim(app, scene, "privacy"):
        return False
    if await _tell(app, scene, privacy_notice(app.reading_models)):
        return True
    # Everybody is told once, so a send that failed does not count.
    async with app.db.transaction() as tx:
        await withdraw_notice(tx, scene.question.chat, "privacy")
    return False


async def _claim(
    app: App, scene: Scene, notice: str, *, due_before: int = 0, user_id: str | None = None
) -> bool:
    async with app.db.transaction() as tx:
        return await claim_notice(
            tx,
            scene.question.chat,
            notice,
            at=app.clock.now(),
            due_before=due_before,
            user_id=user_id,
        )


async def _tell(app: App, scene: Scene, text: str) -> bool:
    message = scene.question.messages[-1].message
    try:
        await send_notice(app, message, text)
    except SendError as error:
        logger.warning("{} could not be told: {}", message.chat, error)
        return False
    return True

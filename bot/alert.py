"""Alert: tell the operators, in QQ and by web hook, and always in the log."""

import httpx2
from loguru import logger

from bot.app import App
from bot.clock import local_time
from bot.errors import SendError
from bot.model import Chat
from bot.send import send_notice
from bot.settings import in_quiet_hours

WEBHOOK_SECONDS = 10


async def alert(app: App, text: str, *, bot_id: str | None = None) -> None:
    """Tell every operator something that only they can mend.

    Args:
        app: the running program.
        text: one or two Chinese sentences with the cause and the cure.
        bot_id: the account to tell it through; by default any that is connected.

    A failure to tell is logged and goes no further. In quiet hours QQ is left alone.
    """
    logger.warning("alert: {}", text)
    await _post(app, text)
    local = local_time(app.clock.now(), app.config.timezone)
    if in_quiet_hours(app.settings.general.quiet_hours, local):
        return
    sender = bot_id or next(iter(app.accounts.connected), None)
    if sender is None:
        return
    for operator in sorted(app.config.superusers):
        try:
            await send_notice(app, Chat(sender, "private", operator), text)
        except SendError as error:
            logger.warning("operator {} could not be told: {}", operator, error)


async def _post(app: App, text: str) -> None:
    url = app.config.alert_webhook_url
    if url is None:
        return
    try:
        async with httpx2.AsyncClient(timeout=WEBHOOK_SECONDS) as client:
            response = await client.post(url.get_secret_value(), json={"text": text})
            response.raise_for_status()
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        logger.warning("the alert web hook failed: {}", type(error).__name__)

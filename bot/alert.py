"""Alert: tell the operators, in QQ and by web hook, and always in the log."""

import asyncio

import httpx2
from loguru import logger

from bot.app import App
from bot.clock import local_time
from bot.errors import SendError
from bot.model import Chat
from bot.send import send_notice
from bot.settings import in_quiet_hours

WEBHOOK_SECONDS = 10

FULL_STORE = (
    "数据库写不进去：磁盘很可能已满。新消息先留在内存里，也暂时不回复；请尽快腾出空间，"
    "之后会自动补存。在那之前不要重启，否则还没存下的消息会丢失。"
)


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
    # At once: each waits until what was sent is stored, which may take long when it is about that.
    operators = (Chat(sender, "private", operator) for operator in sorted(app.config.superusers))
    await asyncio.gather(*(_tell(app, operator, text) for operator in operators))


def warn_of_full_store(app: App) -> None:
    """Tell the operators, once an hour at most, that nothing can be stored until there is room.

    That needs no room itself, and nobody waits for it.
    """
    error = app.patience.take_news(app.clock.now())
    if error is not None:
        logger.error("nothing can be stored: {}", error)
        app.errands.begin(alert(app, FULL_STORE))


async def _tell(app: App, operator: Chat, text: str) -> None:
    try:
        await send_notice(app, operator, text)
    except SendError as error:
        logger.warning("operator {} could not be told: {}", operator.id, error)


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

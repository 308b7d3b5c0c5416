"""The program's beginning and end, and its accounts' comings and goings."""

from contextlib import AsyncExitStack
from typing import Any

import nonebot
from loguru import logger
from nonebot.adapters.onebot.v11 import ActionFailed, ApiNotAvailable, Bot, NetworkError

from bot.app import open_app
from bot.catch_up import welcome
from bot.config import Config
from bot.errors import AccountOffline, ConfigError, SendRejected, SendTimedOut
from bot.guidance import next_steps
from bot.model import Chat
from bot.onebot.segments import read_segments
from bot.onebot.values import account_text
from bot.send import record_own
from plugins.adapter import Adapter
from plugins.current import current_app
from plugins.given import given
from plugins.logs import configure

SENDING = frozenset(
    {
        "send_msg",
        "send_group_msg",
        "send_private_msg",
        "send_group_forward_msg",
        "send_private_forward_msg",
    }
)

driver = nonebot.get_driver()
configure(driver.config.log_level)
_open = AsyncExitStack()


@driver.on_startup
async def begin() -> None:
    """Open the store and all that stands on it."""
    made_of = given()
    config = made_of.config
    _require_token(config)
    app = await _open.enter_async_context(open_app(config, made_of.clock))
    nonebot.get_app().state.qunyi = app
    for step in next_steps(config, app.routes):
        logger.info("{}", step)


def _require_token(config: Config) -> None:
    """Refuse to run unguarded: ``nb run`` does not read the token from the environment."""
    wanted = config.onebot_access_token
    used = nonebot.get_adapter(Adapter).onebot_config.onebot_access_token
    if wanted is not None and used != wanted.get_secret_value():
        raise ConfigError(
            "ONEBOT_ACCESS_TOKEN",
            "NoneBot does not use the one that is set; write it into .env, or start with "
            "`python -m bot`",
        )


@driver.on_shutdown
async def end() -> None:
    """Write what waits and close."""
    await _open.aclose()


class NoneBotPlatform:
    """A connected account, with NoneBot's errors as ours."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot

    async def call(self, action: str, **params: Any) -> Any:
        """Call a OneBot action; see ``bot.platform.accounts.Platform``."""
        try:
            return await self._bot.call_api(action, **params)
        except ActionFailed as error:
            raise _failure(error) from error
        except NetworkError as error:
            raise SendTimedOut(f"{action}: no answer from the client") from error
        except (ApiNotAvailable, RuntimeError) as error:
            raise AccountOffline(f"{action}: the connection is gone") from error


def _failure(error: ActionFailed) -> SendRejected | SendTimedOut:
    wording = str(error.info.get("wording") or error.info.get("message") or "no reason given")
    # The client gave up waiting for QQ: it may have been sent.
    if "超时" in wording or "timeout" in wording.casefold():
        return SendTimedOut(wording)
    retcode = error.info.get("retcode")
    return SendRejected(wording, retcode=retcode if isinstance(retcode, int) else 0)


@driver.on_bot_connect
async def connected(bot: Bot) -> None:
    """Note an account and catch up on what it missed."""
    app = current_app()
    app.accounts.connect(bot.self_id, NoneBotPlatform(bot))
    await welcome(app, bot.self_id)
    app.alarms.set(app.clock.now())


@driver.on_bot_disconnect
async def disconnected(bot: Bot) -> None:
    """Note that an account is gone."""
    current_app().accounts.disconnect(bot.self_id)
    logger.warning("account {} is disconnected", bot.self_id)


@Bot.on_called_api
async def called(
    bot: Any, exception: Exception | None, api: str, data: dict[str, Any], result: Any
) -> None:
    """Keep what other plugins send; what the outbox sends, it keeps itself."""
    if exception is not None or api not in SENDING or not isinstance(result, dict):
        return
    app = current_app()
    content = data.get("messages", data.get("message"))
    chat = _chat(bot.self_id, data)
    if chat is None or app.outbox.is_in_flight(content):
        return
    message_id = account_text(result.get("message_id"))
    await record_own(app, chat, read_segments(_plain(content)), message_id, "chat")


def _chat(bot_id: str, data: dict[str, Any]) -> Chat | None:
    is_private = data.get("message_type") == "private" or not data.get("group_id")
    peer = account_text(data.get("user_id" if is_private else "group_id"))
    return Chat(bot_id, "private" if is_private else "group", peer) if peer else None


def _plain(content: Any) -> Any:
    if isinstance(content, str):
        return content
    items = content if isinstance(content, list | tuple) else [content]
    return [
        {"type": item.type, "data": item.data} if hasattr(item, "type") else item for item in items
    ]

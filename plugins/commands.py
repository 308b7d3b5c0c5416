"""Commands: recognised names after ``COMMAND_START``."""

from loguru import logger
from nonebot import on_type
from nonebot.matcher import Matcher

from bot.command import command
from bot.errors import SendError
from plugins.adapter import QuietGroupMessage, QuietPrivateMessage
from plugins.current import TakenIn, current_app

given_command = on_type((QuietGroupMessage, QuietPrivateMessage), priority=10, block=False)


@given_command.handle()
async def obey(matcher: Matcher, taken: TakenIn) -> None:
    """Do what a command asks; other messages go on."""
    if taken is None or taken.command is None:
        return
    matcher.stop_propagation()
    try:
        await command(current_app(), taken)
    except SendError as error:
        logger.warning("the answer to {} did not go out: {}", taken.command.name, error)

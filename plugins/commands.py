"""Commands: recognised names after ``COMMAND_START``."""

from loguru import logger
from nonebot import on_type
from nonebot.matcher import Matcher

from bot.command import command
from bot.errors import SendError
from plugins.adapter import QuietGroupMessage, QuietPrivateMessage
from plugins.current import TakenIn, current_app


def is_command(taken: TakenIn) -> bool:
    """Whether a message is a command; the others need not be run past the handler."""
    return taken is not None and taken.command is not None


given_command = on_type(
    (QuietGroupMessage, QuietPrivateMessage), rule=is_command, priority=10, block=False
)


@given_command.handle()
async def obey(matcher: Matcher, taken: TakenIn) -> None:
    """Do what a command asks; nothing else hears of it."""
    matcher.stop_propagation()
    try:
        await command(current_app(), taken)
    except SendError as error:
        logger.warning("the answer to {} did not go out: {}", taken.command.name, error)

"""What people say to the bot: commands, and conversation.

One matcher for both: each further one costs every message half a millisecond and more on its way
to the model.
"""

from loguru import logger
from nonebot import on
from nonebot.matcher import current_matcher

from bot.command import command
from bot.converse import converse
from bot.errors import SendError
from bot.ingest import Ingested
from plugins.current import current_app, taken_in

heard = on("message", priority=50, block=False)


@heard.handle()
async def reply() -> None:
    """Do what a command asks; let another message have its answer, if it is to have one."""
    taken = taken_in()
    if taken is None:
        return
    if taken.command is None:
        await converse(current_app(), taken)
    else:
        current_matcher.get().stop_propagation()
        await _obey(taken)


async def _obey(taken: Ingested) -> None:
    try:
        await command(current_app(), taken)
    except SendError as error:
        name = taken.command.name if taken.command else ""
        logger.warning("the answer to {} did not go out: {}", name, error)

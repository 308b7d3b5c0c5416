"""Conversation: whoever finds a chat's floor free runs it until nobody waits."""

from nonebot import on_type

from bot.converse import converse
from plugins.adapter import QuietGroupMessage, QuietPrivateMessage
from plugins.current import TakenIn, current_app

heard = on_type((QuietGroupMessage, QuietPrivateMessage), priority=50, block=False)


@heard.handle()
async def reply(taken: TakenIn) -> None:
    """Let a message have its answer, if it is to have one."""
    if taken is not None:
        await converse(current_app(), taken)

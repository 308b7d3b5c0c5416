"""Takes in what came some other way than a socket of the server, before other plugins see it.

The adapter stores what comes by a socket before NoneBot hears of it (``plugins/adapter.py``).
"""

from nonebot import on
from nonebot.matcher import current_event

from plugins.adapter import Quiet, QuietMessage
from plugins.intake import take_in


async def take_in_others() -> None:
    """Take in the event of the running matcher, unless that is done."""
    event = current_event.get()
    if not isinstance(event, Quiet):
        # Made by a plugin, not by our adapter.
        await take_in(event.model_dump())
    elif not event.is_taken:
        taken = await take_in(event.raw_event)
        if isinstance(event, QuietMessage):
            event.taken = taken


every_event = on(priority=1, block=False, handlers=[take_in_others])

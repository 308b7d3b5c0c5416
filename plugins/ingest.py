"""Takes in what came some other way than a socket of the server, before other plugins see it.

The adapter stores what comes by a socket before NoneBot hears of it (``plugins/adapter.py``).
"""

from nonebot import on
from nonebot.matcher import current_event

from plugins.adapter import QuietMessage
from plugins.intake import take_in


async def take_in_others() -> None:
    """Take in the event of the running matcher, unless that is done."""
    event = current_event.get()
    if getattr(event, "is_taken", False):
        return
    raw = getattr(event, "raw_event", None)
    # Without one it was made by a plugin, not by our adapter.
    taken = await take_in(raw if raw is not None else event.model_dump())
    if isinstance(event, QuietMessage):
        event.taken = taken


every_event = on(priority=1, block=False, handlers=[take_in_others])

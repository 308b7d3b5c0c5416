"""What people say to the bot, where other plugins listen as well: those of a lower priority number
come first, and after a command nobody does. Else NoneBot is not asked (``plugins/adapter.py``)."""

from nonebot import on
from nonebot.matcher import current_event, current_matcher

from plugins.adapter import QuietMessage
from plugins.intake import follow_up


async def reply() -> None:
    """Do what the message of the running matcher commands, or answer it."""
    event = current_event.get()
    if not isinstance(event, QuietMessage) or event.taken is None:
        return
    # A plugin may hand on the same event once more.
    taken, event.taken = event.taken, None
    if taken.command is not None:
        current_matcher.get().stop_propagation()
    await follow_up(taken)


heard = on("message", priority=50, block=False, handlers=[reply])

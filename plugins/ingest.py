"""Every event, first of all, into the store."""

from nonebot import on

from plugins.current import TakenIn

every_event = on(priority=1, block=False)


@every_event.handle()
async def keep(taken: TakenIn) -> None:
    """Wait until the event is durable; all else comes after."""

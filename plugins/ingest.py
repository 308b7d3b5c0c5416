"""Every event, first of all, into the store."""

from nonebot import on

from plugins.current import take_in

every_event = on(priority=1, block=False, handlers=[take_in])

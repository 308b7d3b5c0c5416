"""The program as ``nb run`` starts it, with matchers of somebody else's: one before ours keeps what
begins with 天气 for itself; those behind ours repeat what is not addressed to the bot, and hand on
some events again."""

import os

import nonebot
from nonebot import on
from nonebot.adapters.onebot.v11 import Bot, Event
from nonebot.matcher import Matcher
from nonebot.rule import startswith

from bot.__main__ import CORE_PLUGINS
from plugins.adapter import Adapter


async def _forecast(matcher: Matcher) -> None:
    await matcher.send("今天晴")


async def _again(matcher: Matcher, event: Event, bot: Bot) -> None:
    """Hand an event to all matchers once more."""
    if "再来" in event.get_plaintext() and not hasattr(event, "was_repeated"):
        event.was_repeated = True  # pyright: ignore[reportAttributeAccessIssue]
        await bot.handle_event(event)


async def _repeat(matcher: Matcher, event: Event) -> None:
    if not event.is_tome():
        await matcher.send(f"听见了：{event.get_plaintext()}")


def main() -> None:
    """Run until stopped."""
    # NoneBot takes a blank variable for JSON that is broken.
    for name in [name for name, value in os.environ.items() if not value]:
        del os.environ[name]
    nonebot.init(_env_file=None, driver="~fastapi", host="127.0.0.1", port=int(os.environ["PORT"]))
    nonebot.get_driver().register_adapter(Adapter)
    for name in CORE_PLUGINS:
        assert nonebot.load_plugin(name)
    on("message", priority=10, block=True, rule=startswith("天气"), handlers=[_forecast])
    on("message", priority=60, handlers=[_repeat])
    on("message", priority=70, handlers=[_again])
    nonebot.run()


if __name__ == "__main__":
    main()

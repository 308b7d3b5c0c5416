"""The program as ``nb run`` starts it, with a plugin of somebody else's that keeps what begins with
天气 for itself."""

import os

import nonebot
from nonebot import on
from nonebot.matcher import Matcher
from nonebot.rule import startswith

from bot.__main__ import CORE_PLUGINS
from plugins.adapter import Adapter


async def _forecast(matcher: Matcher) -> None:
    await matcher.send("今天晴")


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
    nonebot.run()


if __name__ == "__main__":
    main()

"""The baseline of the benchmarks: NoneBot with one matcher that echoes group messages.

``python bench/bare_echo.py PORT [LOG_LEVEL]`` listens on loopback, without a token. ``INFO`` is the
level of NoneBot, and of Qunyi, as they come; with ``WARNING`` it writes no line for an event.
"""

import argparse

import nonebot
from nonebot.adapters.onebot.v11 import Adapter, Bot, GroupMessageEvent, MessageSegment


async def echo(bot: Bot, event: GroupMessageEvent) -> None:
    """Send the text of a group message back to its group."""
    text = event.original_message.extract_plain_text()
    if text:
        await bot.send(event, MessageSegment.text(text))


def serve(port: int, log_level: str) -> None:
    """Run NoneBot on a loopback port until it is stopped."""
    nonebot.init(
        _env_file=None, driver="~fastapi", host="127.0.0.1", port=port, log_level=log_level
    )
    nonebot.get_driver().register_adapter(Adapter)
    nonebot.on_message(priority=1, block=False).append_handler(echo)
    nonebot.run()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("port", type=int)
    parser.add_argument("log_level", nargs="?", default="INFO")
    arguments = parser.parse_args()
    serve(arguments.port, arguments.log_level)


if __name__ == "__main__":
    main()

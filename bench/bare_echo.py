"""The baseline of the benchmarks: NoneBot with one matcher that echoes group messages.

``python bench/bare_echo.py PORT`` listens on loopback; the access token, if any, is read from
``ONEBOT_ACCESS_TOKEN`` as NoneBot always does.
"""

import argparse

import nonebot
from nonebot.adapters.onebot.v11 import Adapter, Bot, GroupMessageEvent, MessageSegment


async def echo(bot: Bot, event: GroupMessageEvent) -> None:
    """Send the text of a group message back to its group."""
    text = event.original_message.extract_plain_text()
    if text:
        await bot.send(event, MessageSegment.text(text))


def serve(port: int) -> None:
    """Run NoneBot on a loopback port until it is stopped."""
    nonebot.init(
        _env_file=None, driver="~fastapi", host="127.0.0.1", port=port, log_level="WARNING"
    )
    nonebot.get_driver().register_adapter(Adapter)
    nonebot.on_message(priority=1, block=False).append_handler(echo)
    nonebot.run()


def main() -> None:
    """Read the port from the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("port", type=int)
    serve(parser.parse_args().port)


if __name__ == "__main__":
    main()

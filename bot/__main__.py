"""The command line, and the only place that starts NoneBot."""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import nonebot

from bot.app import open_app
from bot.clock import SystemClock
from bot.config import Config, load_config
from bot.doctor import diagnose
from bot.errors import QunyiError, StoreError
from bot.paths import ROOT
from bot.store.database import open_database
from plugins.adapter import Adapter

CORE_PLUGINS = ("plugins.lifecycle", "plugins.ingest", "plugins.commands", "plugins.chat")

PING_SECONDS = 5
"""A half-open connection keeps its account from coming back until a ping fails."""

COMMANDS: Mapping[str, str] = {
    "run": "start the bot (the default)",
    "doctor": "check the configuration, database, models and port; print what to paste into NapCat",
    "backup": "write a consistent copy of the database, also while the bot runs",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, or 1 with the cause on stderr."""
    parsed = _parser().parse_args(arguments)
    # NoneBot finds dotenv files and plugins from the working directory.
    os.chdir(ROOT)
    try:
        config = load_config(ROOT, os.environ)
        match parsed.command:
            case "doctor":
                return asyncio.run(diagnose(config, SystemClock()))
            case "backup":
                return asyncio.run(_backup(config, parsed.file))
            case _:
                return _run(config)
    except QunyiError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bot", description="Qunyi 群忆: a QQ bot that remembers, with evidence."
    )
    commands = parser.add_subparsers(dest="command", metavar="command")
    for name, help_text in COMMANDS.items():
        command = commands.add_parser(name, help=help_text, description=help_text)
        if name == "backup":
            command.add_argument("file", type=_absolute, help="the new file; it must not exist")
    return parser


def _absolute(path: str) -> Path:
    """Read a path from where the command was typed; the program then works in its own folder."""
    return Path(path).absolute()


def _run(config: Config) -> int:
    asyncio.run(_prepare(config))
    os.environ.update(config.nonebot_environ())
    nonebot.init(driver="~fastapi", **config.nonebot_options())
    nonebot.get_driver().register_adapter(Adapter)
    _load_plugins()
    nonebot.run(ws_ping_interval=PING_SECONDS, ws_ping_timeout=PING_SECONDS)
    return 0


async def _prepare(config: Config) -> None:
    """Migrate the database and read the settings before anything listens, so that what is wrong
    there is said in one sentence."""
    async with open_app(config, SystemClock()):
        pass


def _load_plugins() -> None:
    for name in CORE_PLUGINS:
        if nonebot.load_plugin(name) is None:
            raise QunyiError(
                f"the plugin {name} did not load: its error stands above in the log. "
                "`make setup` installs what it needs."
            )


async def _backup(config: Config, target: Path) -> int:
    if not await asyncio.to_thread(config.database_path.exists):
        raise StoreError(f"there is no database at {config.database_path} to back up yet")
    async with open_database(config.database_path, now=SystemClock().now()) as db:
        await db.backup(target)
    sys.stderr.write(f"backup written to {target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

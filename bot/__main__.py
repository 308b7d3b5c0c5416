"""The command line, and the only place that starts NoneBot."""

import argparse
import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import nonebot
import uvicorn
from loguru import logger

from bot.app import App, open_app
from bot.clock import Clock, SystemClock
from bot.config import Config, load_config
from bot.demo.show import Wish, show
from bot.doctor import diagnose
from bot.errors import ConfigError, QunyiError, StoreError
from bot.export import exported_all, exported_scope
from bot.model import Scope
from bot.paths import ROOT
from bot.reindex import REINDEX_ROWS, reindex
from bot.store.database import Database, open_database
from bot.store.patience import Patience
from plugins.adapter import Adapter
from plugins.current import current_app
from plugins.given import Given, hand_over
from plugins.logs import configure

CORE_PLUGINS = (
    "plugins.lifecycle",
    "plugins.ingest",
    "plugins.chat",
    "plugins.schedule",
)

PING_SECONDS = 5
"""A half-open connection keeps its account from coming back until a ping fails."""

PROGRESS_ROWS = 100_000
"""After so many messages a line tells how far an index is, where lines cannot be overwritten."""

INTERRUPTED = 130
"""The exit status of a command that Ctrl+C ended."""

COMMANDS: Mapping[str, str] = {
    "run": "start the bot (the default)",
    "doctor": "check the configuration, database, models and port; print what to paste into NapCat",
    "backup": "write a consistent copy of the database, also while the bot runs",
    "export": "print what is remembered as JSON, also while the bot runs",
    "reindex": "make the index of messages and memory anew, also while the bot runs",
    "demo": "play a sample group's week with recorded answers; show what is remembered and why",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, or 1 with the cause on stderr."""
    parsed = _parser().parse_args(arguments)
    # Answers go to stdout, and nothing else does.
    logger.remove()
    logger.add(sys.stderr, level="WARNING", diagnose=False)
    # NoneBot finds dotenv files and plugins from the working directory.
    os.chdir(ROOT)
    try:
        config = load_config(ROOT, os.environ)
        match parsed.command:
            case "doctor":
                return asyncio.run(diagnose(config, SystemClock()))
            case "export":
                return asyncio.run(_export(config, parsed.scope))
            case "backup":
                return asyncio.run(_backup(config, parsed.file))
            case "reindex":
                return asyncio.run(_reindex(config))
            case "demo":
                return _demo(config, parsed)
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
        if name == "export":
            which = command.add_mutually_exclusive_group(required=True)
            which.add_argument(
                "--scope",
                type=_scope,
                metavar="SCOPE",
                help="group:<bot_id>:<group_id> or member:<bot_id>:<user_id>: one JSON object",
            )
            which.add_argument("--all", action="store_true", help="every scope, as JSON Lines")
        if name == "demo":
            command.add_argument("--fast", action="store_true", help="without pauses")
            command.add_argument(
                "--live", action="store_true", help="let the configured model answer instead"
            )
            command.add_argument(
                "--transcript",
                type=_absolute,
                metavar="FILE",
                help="write down all that happens, the prompts included, as JSON Lines",
            )
    return parser


def _scope(text: str) -> Scope:
    match text.split(":"):
        case ["group" | "member" as kind, bot_id, key] if bot_id and key:
            return Scope(bot_id, kind, key)
        case _:
            raise argparse.ArgumentTypeError(
                f"{text!r} is no scope; write group:<bot_id>:<group_id> "
                "or member:<bot_id>:<user_id>"
            )


def _absolute(path: str) -> Path:
    """Read a path from where the command was typed; the program then works in its own folder."""
    return Path(path).absolute()


def _run(config: Config) -> int:
    _require_port(config)
    asyncio.run(_prepare(config))
    _compose(config)
    nonebot.run(ws_ping_interval=PING_SECONDS, ws_ping_timeout=PING_SECONDS)
    return 0


def _compose(config: Config) -> None:
    """Put NoneBot, the adapter and the plugins together."""
    configure(config.log_level)
    os.environ.update(config.nonebot_environ())
    nonebot.init(driver="~fastapi", **config.nonebot_options())
    nonebot.get_driver().register_adapter(Adapter)
    _load_plugins()


def _require_port(config: Config) -> None:
    """Say in one sentence what the server would say in many: that something has the port."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((config.host, config.port))
        except OSError as error:
            raise ConfigError(
                "PORT",
                f"{config.host}:{config.port} cannot be listened on ({error.strerror}); stop what "
                "uses it, perhaps another Qunyi, or set another PORT and change it in the client",
            ) from error


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


def _demo(config: Config, parsed: argparse.Namespace) -> int:
    """Play the sample's week. The data of the real bot are not touched."""
    wish = Wish(fast=parsed.fast, live=parsed.live, transcript=parsed.transcript)
    try:
        return asyncio.run(show(config, wish, _serving))
    except KeyboardInterrupt:
        return INTERRUPTED


@asynccontextmanager
async def _serving(config: Config, clock: Clock, sock: socket.socket) -> AsyncIterator[App]:
    """Serve the program on a socket that listens already, within this process, by any clock."""
    _compose(config)
    hand_over(Given(config, clock, looks=False))
    server = uvicorn.Server(uvicorn.Config(nonebot.get_app(), log_config=None, lifespan="on"))
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        # Nothing is announced when it has started.
        while not server.started and not serving.done():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        yield current_app()
    finally:
        server.should_exit = True
        await serving


async def _export(config: Config, scope: Scope | None) -> int:
    async with _existing_database(config) as db:
        found = [await exported_scope(db, scope)] if scope else await exported_all(db)
    for one in found:
        sys.stdout.write(json.dumps(one, ensure_ascii=False) + "\n")
    return 0


@asynccontextmanager
async def _existing_database(config: Config) -> AsyncIterator[Database]:
    if not await asyncio.to_thread(config.database_path.exists):
        raise StoreError(f"there is no database at {config.database_path} yet")
    async with open_database(config.database_path, now=SystemClock().now()) as db:
        yield db


async def _backup(config: Config, target: Path) -> int:
    async with _existing_database(config) as db:
        await db.backup(target)
    sys.stderr.write(f"backup written to {target}\n")
    return 0


async def _reindex(config: Config) -> int:
    patience = Patience(lambda error: logger.warning("waiting: {}", error))
    async with _existing_database(config) as db:
        await reindex(db, patience, _tell_progress)
    sys.stderr.write("the index is complete\n")
    return 0


def _tell_progress(done: int, total: int) -> None:
    end = "\r" if sys.stderr.isatty() and done < total else "\n"
    if end == "\r" or done % PROGRESS_ROWS < REINDEX_ROWS or done == total:
        sys.stderr.write(f"{done:,} of {total:,} messages{end}")


if __name__ == "__main__":
    sys.exit(main())

"""Show: the demo from its beginning to its end. See ``docs/demo.md``."""

import asyncio
import io
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from rich.console import Console

from bot.app import App, model_config
from bot.clock import Clock
from bot.config import Config
from bot.demo.answers import RecordedAnswers
from bot.demo.happenings import Asked, DayBegan, Happening, Reflected, Said, Sent
from bot.demo.page import page_of
from bot.demo.play import LIVE_PATIENCE_SECONDS, PATIENCE_SECONDS, Ears, Player
from bot.demo.sample import ZONE, Week, new_world, read_week
from bot.demo.transcript import Transcript, open_transcript
from bot.demo.view import View
from bot.errors import ModelNotConfigured
from bot.export import exported_all
from bot.llm.routing import Routes
from bot.paths import ROOT
from bot.simulate import Endpoint, OneBotClient, VirtualClock
from bot.simulate.provider import ModelServer

SAMPLE_FOLDER = ROOT / "data" / "sample"
HOST = "127.0.0.1"
LEAD_IN_MS = 60_000
"""The bot starts so long before the first line."""

SETTINGS: Mapping[str, object] = {
    "memoryIdleMinutes": 45,
    "memoryGroupCompressAt": 12,
    "memoryGroupKeepRecent": 6,
    "replyDebounceSeconds": 0,
    "replyMinGapSeconds": 0,
    "sendGapSeconds": 0,
}
"""A week is short: so much of it is compressed that one can see it, and no answer waits."""

RECORDED_MODEL = "recorded"

LINE_SECONDS = 0.03
ANSWER_SECONDS = 0.4
BLOCK_SECONDS = 0.5

Serving = Callable[[Config, Clock, socket.socket], AbstractAsyncContextManager[App]]
"""Serves the program on a socket that listens already."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for on the command line."""

    fast: bool = False
    """Without pauses."""
    live: bool = False
    """The configured model answers."""
    transcript: Path | None = None
    """Where to write down everything."""


async def show(config: Config, wish: Wish, serving: Serving) -> int:
    """Play the sample's week on the terminal and return the exit status.

    Args:
        config: the configuration of the real bot; only its models are used, and only if asked for.
        wish: what was asked for.
        serving: how the program is served; only the command line knows NoneBot.

    Raises:
        ModelNotConfigured: the configured model is to answer, and there is none.
        DemoError: it cannot be played.
    """
    if wish.live:
        _require_models(config)
    week = read_week(SAMPLE_FOLDER)
    view = View(page_of(_console()), is_recorded=not wish.live)
    async with open_transcript(wish.transcript) as transcript:
        view.open(len(week.people), sum(bool(line.text) for line in week.lines))
        await _play(config, wish, serving, week, _teller(view, transcript, wish), transcript)
        view.close()
    return 0


def _require_models(config: Config) -> None:
    if not Routes(model_config(config)).is_configured("chat"):
        raise ModelNotConfigured(
            "--live needs a model: set CHAT_MODEL, and OPENAI_API_KEY or OPENAI_BASE_URL, in .env; "
            "`python -m bot doctor` checks them. Without --live the answers are recorded."
        )


def _console() -> Console:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    return Console(highlight=False, markup=False, emoji=False)


async def _play(
    config: Config,
    wish: Wish,
    serving: Serving,
    week: Week,
    tell: Callable[[Happening], Any],
    transcript: Transcript | None,
) -> None:
    recorded = RecordedAnswers(week)
    clock = VirtualClock(week.lines[0].at - LEAD_IN_MS)
    with tempfile.TemporaryDirectory(prefix="qunyi-demo-") as folder, _listening() as sock:
        async with ModelServer(recorded) as models:
            own = demo_config(
                config, Path(folder), sock.getsockname()[1], models, is_live=wish.live
            )
            async with serving(own, clock, sock) as app, _connected(own, week, clock) as client:
                ears = Ears(models.requests, recorded.given, are_certain=not wish.live)
                patience = LIVE_PATIENCE_SECONDS if wish.live else PATIENCE_SECONDS
                player = Player(app, clock, client, week, ears, tell, patience)
                await player.play()
                if transcript:
                    await transcript.add("Exported", await exported_all(app.db))
                    await transcript.add("RecordsUsed", dict(recorded.used))


def _listening() -> socket.socket:
    sock = socket.socket()
    sock.bind((HOST, 0))
    sock.listen()
    return sock


@asynccontextmanager
async def _connected(
    config: Config, week: Week, clock: VirtualClock
) -> AsyncIterator[OneBotClient]:
    token = config.onebot_access_token
    endpoint = Endpoint(config.port, HOST, token=token.get_secret_value() if token else "")
    async with OneBotClient(endpoint, new_world(week), clock=clock) as client:
        yield client


def demo_config(
    config: Config, folder: Path, port: int, models: ModelServer, *, is_live: bool
) -> Config:
    """Return the configuration of the demo's bot: nothing of the real one but, live, its models.

    Args:
        config: that of the real bot.
        folder: where the demo's database lies.
        port: where it listens.
        models: what answers unless it is live.
        is_live: whether the configured models answer.
    """
    fields: dict[str, Any] = {
        "host": HOST,
        "port": port,
        # NoneBot finds the real one by itself.
        "onebot_access_token": config.onebot_access_token,
        "superusers": frozenset(),
        "nickname": ("小忆",),
        "command_start": ("/",),
        "log_level": "ERROR",
        "database_url": "sqlite:///qunyi.db",
        "sqlite_synchronous": "NORMAL",
        "timezone": ZONE,
        "initial_settings": dict(SETTINGS),
    }
    if is_live:
        others = {"dashboard_token": None, "alert_webhook_url": None, "mcp_config": None}
        return config.model_copy(update={"root": folder, **fields, **others})
    return Config(
        root=folder,
        openai_base_url=models.base_url,
        openai_api_key=SecretStr(RECORDED_MODEL),
        chat_model=RECORDED_MODEL,
        **fields,
    )


def _teller(view: View, transcript: Transcript | None, wish: Wish) -> Callable[[Happening], Any]:
    async def tell(happening: Happening) -> None:
        if transcript:
            await transcript.tell(happening)
        view.show(happening)
        if not wish.fast:
            await asyncio.sleep(_pause_seconds(happening))

    return tell


def _pause_seconds(happening: Happening) -> float:
    """How long a reader looks at it, in real time."""
    match happening:
        case Asked() | DayBegan():
            return 0
        case Said():
            return LINE_SECONDS
        case Reflected() if happening.is_empty:
            return LINE_SECONDS
        case Sent():
            return ANSWER_SECONDS
        case _:
            return BLOCK_SECONDS

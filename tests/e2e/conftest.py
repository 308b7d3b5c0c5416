"""One model server and one quick bot per module; what a test needs apart, it starts itself."""

from collections.abc import AsyncIterator, Generator
from pathlib import Path

import pytest

from bot.simulate.provider import ModelServer
from tests.e2e.harness import Room, RunningBot, new_room


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the log of a bot that a failed test shared with others."""
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, RunningBot):
                report.sections.append((f"the log of {name}", value.log_tail()))
    return report


@pytest.fixture(scope="module")
async def model_server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
def models(model_server: ModelServer) -> ModelServer:
    """The model server, as if nobody had used it before."""
    model_server.requests.clear()
    model_server.answer = "好的"
    model_server.delay_seconds = 0
    return model_server


@pytest.fixture(scope="module")
async def shared_bot(
    model_server: ModelServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningBot]:
    directory: Path = tmp_path_factory.mktemp("bot")
    environ = {"DECISION_MODEL": "decider", "API_TIMEOUT": "1"}
    async with RunningBot(directory, model_server, environ=environ) as bot:
        yield bot


@pytest.fixture
def bot(shared_bot: RunningBot, models: ModelServer) -> RunningBot:
    """The module's bot, as if nobody had used it before, but for what it has stored."""
    shared_bot.client.behave_normally()
    shared_bot.client.forget()
    return shared_bot


@pytest.fixture
def room(bot: RunningBot) -> Room:
    """A group of the module's bot that no other test uses."""
    return new_room(bot)

"""Kills during a compression: what is remembered is as it was before a call, or as it is after."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.conversation.prompt_message import PromptMessage
from bot.llm.protocol import ModelRequest
from bot.model import Scope
from bot.simulate.provider import ModelServer, Outcome, ReceivedRequest, Silence
from tests.e2e.harness import WAIT_SECONDS, RunningBot, prompt, until
from tests.e2e.reflection_harness import (
    MINUTE,
    MORNING,
    REMEMBERING,
    WORKING,
    Circle,
    Mind,
    answer,
    fact,
    new_circle,
    of_member,
    remembered,
)
from tests.verbs.remembering import well

DAYS = 5
DAY_MS = 24 * 60 * MINUTE
PER_CALL = 50
"""So many daily entries a call reads …"""
LINES_PER_CALL = 9
"""… and so many lines ``well`` makes of them."""


@dataclass(frozen=True, slots=True)
class Diary:
    """A stream with as many daily entries as are compressed, of which half are to stay."""

    circle: Circle
    scope: Scope
    texts: list[str]

    @property
    def bot(self) -> RunningBot:
        return self.circle.bot

    @property
    def calls(self) -> int:
        """How many calls its compression takes."""
        return len(self.texts) // 2 // PER_CALL

    def of_stream(self, select: str) -> list[object]:
        """Return what the database says of this stream, ``t``; read from outside."""
        joined = (
            f"{select} JOIN scopes AS s ON s.id = t.scope_id WHERE s.kind = ? AND s.key = ?"
            " ORDER BY 1"
        )
        return [value for (value,) in self.bot.rows(joined, self.scope.kind, self.scope.id)]

    def states(self) -> list[object]:
        """Return the states of its compressions."""
        return self.of_stream(
            "SELECT k.state FROM tasks AS k JOIN streams AS t ON t.id = k.stream_id"
        )

    async def written(self) -> int:
        """Return how many calls are written; each is, or is not, and nothing else is there."""
        documents = await remembered(self.bot, self.scope)
        daily, memory = documents["daily"], documents["memory"]
        calls = len(memory) // LINES_PER_CALL
        gone = calls * PER_CALL
        assert len(memory) == LINES_PER_CALL * calls
        assert [entry["text"] for entry in daily] == self.texts[gone:]
        sources = "SELECT DISTINCT x.source_id FROM entry_sources AS x"
        sources += " JOIN entries AS e ON e.id = x.entry_id JOIN streams AS t ON t.id = e.stream_id"
        assert len(self.of_stream(sources)) == gone
        revisions = "SELECT r.id FROM revisions AS r JOIN streams AS t ON t.id = r.stream_id"
        revisions += " AND r.by = 'compress'"
        assert len(self.of_stream(revisions)) == calls
        assert all(entry["evidence"] for entry in [*daily, *memory])
        return calls

    async def until_compressed(self) -> None:
        """Wait for the end of the compression, and check that each call was written once."""
        await until(
            lambda: self.states() == ["done"], "the compression", timeout_seconds=3 * WAIT_SECONDS
        )
        assert await self.written() == self.calls


@pytest.fixture(scope="module")
async def shared_bot(
    model_server: ModelServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningBot]:
    """A bot that tests kill; each leaves it running."""
    directory = tmp_path_factory.mktemp("bot")
    async with RunningBot(
        directory, model_server, settings=REMEMBERING, environ=WORKING
    ) as running:
        yield running


@pytest.fixture
async def bot(shared_bot: RunningBot, models: ModelServer) -> RunningBot:
    shared_bot.client.behave_normally()
    shared_bot.client.forget()
    if not shared_bot.is_running:
        await shared_bot.start()
    return shared_bot


def compressed(request: ReceivedRequest) -> Outcome:
    """Compress as one should."""
    text = prompt(request)[0]["content"]
    return well(ModelRequest("compress.group", (PromptMessage("user", text),)))


@pytest.fixture
def mind(models: ModelServer) -> Mind:
    mind = Mind()
    models.answer = lambda request: (
        compressed(request) if request.purpose.startswith("compress.") else mind(request)
    )
    return mind


async def member_diary(bot: RunningBot, mind: Mind) -> Diary:
    """Let a reflection bring a member's daily entries to 100."""
    circle = new_circle(bot, mind)
    texts = [f"第 {number:03} 件事：去湖边走了一圈" for number in range(100)]
    who = circle.one
    items = [fact(text, 1 + place * DAYS // 100) for place, text in enumerate(texts)]
    await say_on_days(circle)
    mind.will(circle.chat, "member-batch", of_member(who.user_id, daily=items))
    await circle.reflect("member")
    return Diary(circle, circle.member(who), texts)


async def group_diary(bot: RunningBot, mind: Mind) -> Diary:
    """Let a reflection bring a group's daily entries to 200."""
    circle = new_circle(bot, mind)
    texts = [f"第 {number:03} 件事：大家去湖边走了一圈" for number in range(200)]
    items = [fact(text, 1 + place * DAYS // 200) for place, text in enumerate(texts)]
    await say_on_days(circle)
    mind.will(circle.chat, "group", answer(daily=items))
    await circle.reflect("group")
    return Diary(circle, circle.scope, texts)


async def say_on_days(circle: Circle) -> None:
    for day in range(DAYS):
        await circle.say(circle.one, f"第 {day} 天又去湖边了", at=MORNING + day * DAY_MS)


class Watch:
    """Sees when the database is written to, from the model's answer on."""

    def __init__(self, bot: RunningBot) -> None:
        self._log = Path(f"{bot.database}-wal")
        self._answered = asyncio.Event()
        self._seen = (0, 0)

    def answer(self, request: ReceivedRequest) -> Outcome:
        """Answer well, and begin to look."""
        self._seen = self._state()
        self._answered.set()
        return compressed(request)

    def _state(self) -> tuple[int, int]:
        found = self._log.stat()
        return found.st_size, found.st_mtime_ns

    async def writes(self, count: int) -> None:
        """Wait for so many writes: a call's usage, what it gave, the end of the task …"""
        await self._answered.wait()
        for _ in range(count):
            while (state := self._state()) == self._seen:  # noqa: ASYNC110
                await asyncio.sleep(0)
            self._seen = state

    async def milliseconds(self, count: int) -> None:
        await self._answered.wait()
        await asyncio.sleep(count / 1000)


async def killed(bot: RunningBot, moment: Awaitable[object]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        await moment
    await bot.kill()


async def test_a_kill_while_the_model_thinks_changes_nothing(
    bot: RunningBot, mind: Mind, models: ModelServer
):
    models.enqueue(Silence(), purpose="compress.member")
    diary = await member_diary(bot, mind)
    await until(lambda: bot.requests("compress.member"), "the question")
    await bot.kill()
    assert await diary.written() == 0
    assert diary.states() == ["running"]
    await bot.start()
    await diary.until_compressed()
    assert len(bot.requests("compress.member")) == 2


async def test_a_kill_in_the_second_call_keeps_the_first(
    bot: RunningBot, mind: Mind, models: ModelServer
):
    models.enqueue(compressed, Silence(), purpose="compress.group")
    diary = await group_diary(bot, mind)
    await until(lambda: len(bot.requests("compress.group")) == 2, "the second question")
    await bot.kill()
    assert await diary.written() == 1
    await bot.start()
    await diary.until_compressed()
    assert len(bot.requests("compress.group")) == 3


async def dies(bot: RunningBot, mind: Mind, models: ModelServer, when: "Moment") -> None:
    """Kill the bot at a moment after the answer; check what is there, then and at last."""
    watch = Watch(bot)
    models.enqueue(watch.answer, purpose="compress.member")
    diary = await member_diary(bot, mind)
    await killed(bot, when(watch))
    assert await diary.written() in (0, 1)
    await bot.start()
    await diary.until_compressed()


Moment = Callable[[Watch], Awaitable[object]]


async def test_a_kill_during_the_commit_leaves_the_old_or_the_new_state(
    bot: RunningBot, mind: Mind, models: ModelServer
):
    await dies(bot, mind, models, lambda watch: watch.writes(2))


@pytest.mark.long
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("attempt", range(3))
async def test_a_kill_at_any_write_leaves_the_old_or_the_new_state(
    bot: RunningBot, mind: Mind, models: ModelServer, count: int, attempt: int
):
    await dies(bot, mind, models, lambda watch: watch.writes(count))


@pytest.mark.long
@pytest.mark.parametrize("pause_ms", [0, 2, 4, 6, 8, 10, 12, 15, 20, 30, 45])
async def test_a_kill_at_any_moment_leaves_the_old_or_the_new_state(
    bot: RunningBot, mind: Mind, models: ModelServer, pause_ms: int
):
    await dies(bot, mind, models, lambda watch: watch.milliseconds(pause_ms))

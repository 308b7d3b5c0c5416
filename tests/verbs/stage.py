"""A stage for the verbs: the whole program but the edge, on a clock that only the test moves."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bot.app import App, open_app
from bot.command import command
from bot.config import Config
from bot.conversation.tools import Tool
from bot.converse import converse
from bot.errors import SendError
from bot.ingest import Ingested, ingest
from bot.llm.embedder import Embedder
from bot.llm.protocol import ModelAnswer, ModelRequest
from bot.llm.scripted import Script, ScriptedModel
from bot.model import Chat
from bot.simulate import (
    Content,
    Person,
    RawEvent,
    Sent,
    Utterance,
    VirtualClock,
    World,
    WorldPlatform,
    events,
    segments,
)
from bot.simulate.actions import Desk

NOON = 1_785_297_600_000
"""2026-07-29 12:00 in Shanghai."""

BOT, OPERATOR = 10_001, 10_002
FISH, BEAR, CAT = 30_001, 30_002, 30_003
STRANGER = 30_009
GROUP, OTHER_GROUP = 20_001, 20_002

AT_BOT = segments.at(BOT)
PATIENCE_SECONDS = 10
LOOP_TURNS = 10
"""Turns of the loop in which whoever was let go sets off."""


class StagedModel(ScriptedModel):
    """A scripted model that says how many of its callers wait for ``release``."""

    held = 0

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.held += 1
        try:
            return await super().complete(request)
        finally:
            self.held -= 1


def new_world() -> World:
    """Two groups of three people and the bot; all of them, and the operator, are friends."""
    world = World(Person(BOT, "小忆"))
    people = (Person(FISH, "小鱼", role="owner"), Person(BEAR, "大熊"), Person(CAT, "咪咪"))
    world.add_group(GROUP, "测试群", *people, Person(OPERATOR, "管家"))
    world.add_group(OTHER_GROUP, "另一个群", *people)
    world.befriend(*people, Person(OPERATOR, "管家"))
    return world


class Stage:
    """The program, its clock, its model, and the world in which it is one of the people."""

    def __init__(self, app: App, clock: VirtualClock, model: StagedModel, world: World) -> None:
        self.app = app
        self.clock = clock
        self.model = model
        self.world = world
        self.platform = WorldPlatform(world, clock)
        self.group = world.group_chat(GROUP)
        self.other_group = world.group_chat(OTHER_GROUP)
        self._tasks: list[asyncio.Task[Any]] = []

    @property
    def now(self) -> int:
        return self.clock.now()

    # What people do

    def say(self, group_id: int, who: int | Person, *content: Content) -> Utterance:
        """Let somebody say something in a group; the program hears it in a task of its own."""
        return self._heard(self.world.say(group_id, who, *content, at=self.now))

    def whisper(self, who: int, *content: Content) -> Utterance:
        """Let somebody say something in private."""
        return self._heard(self.world.whisper(who, *content, at=self.now))

    def _heard(self, spoken: Utterance) -> Utterance:
        self.hear(Desk(self.world).event_of(spoken))
        return spoken

    def hear(self, raw: RawEvent) -> "asyncio.Task[Ingested | None]":
        """Give the program an event, as the edge does."""
        return self.spawn(self._taken_in(raw))

    async def _taken_in(self, raw: RawEvent) -> Ingested | None:
        taken = await ingest(self.app, raw)
        if taken is None:
            return None
        if taken.command is not None:
            try:
                await command(self.app, taken)
            except SendError:
                return taken
        else:
            await converse(self.app, taken)
        return taken

    def recall(self, spoken: Utterance) -> "asyncio.Task[Ingested | None]":
        """Let somebody take their message back."""
        self.world.recall(spoken.message_id)
        return self.hear(self.recall_event(spoken))

    def recall_event(self, spoken: Utterance) -> RawEvent:
        """Return what tells of a recall."""
        if not spoken.chat.is_group:
            return events.friend_recall(BOT, int(spoken.chat.id), spoken.message_id, at=self.now)
        return events.group_recall(
            BOT, int(spoken.chat.id), spoken.sender.user_id, spoken.message_id, at=self.now
        )

    # Time

    def spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run something beside the test; ``settle`` waits for it."""
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task

    async def settle(self, *, blocked: int = 0) -> None:
        """Wait, in real time, until everything has ended or waits for the test.

        Args:
            blocked: how many wait for another one, such as for the lock of a held send.
        """
        async with asyncio.timeout(PATIENCE_SECONDS):
            for _ in range(LOOP_TURNS):
                await asyncio.sleep(0)
            while True:
                if self._is_still(blocked):
                    return
                await asyncio.sleep(0.0005)

    def _is_still(self, blocked: int) -> bool:
        for task in [task for task in self._tasks if task.done()]:
            self._tasks.remove(task)
            task.result()
        waiting = self.clock.sleeping + self.model.held + self.platform.held + blocked
        return waiting >= len(self._tasks)

    async def advance(self, seconds: float) -> None:
        """Let time pass; whoever wakes sees the moment they wanted to wake at."""
        target = self.now + round(seconds * 1000)
        await self.settle()
        while (at := self.clock.next_at) is not None and at <= target:
            await self.clock.advance((at - self.now) / 1000)
            await self.settle()
        await self.clock.advance((target - self.now) / 1000)
        await self.settle()

    async def stop(self) -> None:
        """End what still runs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # What came of it

    @property
    def sent(self) -> list[Sent]:
        """Everything that went out."""
        return self.platform.sent

    def texts(self, chat: Chat | None = None) -> list[str]:
        """What went out, to a chat or to any, as plain text."""
        return [sent.text for sent in self.sent if chat is None or sent.chat == chat]

    def times(self) -> list[float]:
        """When things went out, in seconds since noon."""
        return [(sent.at - NOON) / 1000 for sent in self.sent]

    async def rows(self, sql: str, *values: object) -> list[Any]:
        """What the database says."""
        async with self.app.db.reader() as connection:
            return [tuple(row) for row in await connection.execute_fetchall(sql, values)]

    async def set(self, chat: Chat | None = None, **values: Any) -> None:
        """Change settings by their keys, for all or for one chat."""
        for key, value in values.items():
            await self.app.settings.change(key, value, by=str(OPERATOR), at=self.now, chat=chat)


def asked(request: ModelRequest) -> str:
    """The newest message of a prompt: the tail, and what is to be answered."""
    return request.messages[-1].content


def whole(request: ModelRequest) -> str:
    """A whole prompt."""
    return "\n".join(message.content for message in request.messages)


def told(request: ModelRequest) -> list[str]:
    """What a prompt shows as the bot's earlier answers."""
    return [message.content for message in request.messages if message.role == "assistant"]


def shown_texts(prompt: str) -> list[str]:
    """The texts of the lines of JSON in a prompt, in order."""
    return [json.loads(line)["text"] for line in prompt.splitlines() if line.startswith('{"id"')]


@asynccontextmanager
async def open_stage(
    root: Path,
    *,
    answer: Script | None = "好的",
    start: int = NOON,
    embedder: Embedder | None = None,
    tools: tuple[Tool[Any], ...] = (),
    **config: Any,
) -> AsyncIterator[Stage]:
    """Open the program in ``root`` with an empty database, or the one that lies there already."""
    fields: dict[str, Any] = {
        "superusers": frozenset({str(OPERATOR)}),
        "nickname": ("小忆",),
        "sqlite_synchronous": "NORMAL",
        "database_url": "sqlite:///qunyi.db",
        "embedding_model": "off",
        **config,
    }
    clock, model = VirtualClock(start), StagedModel(answer)
    async with open_app(Config(root=root, **fields), clock, model, embedder, tools) as app:
        stage = Stage(app, clock, model, new_world())
        app.accounts.connect(str(BOT), stage.platform)
        try:
            yield stage
        finally:
            await stage.stop()

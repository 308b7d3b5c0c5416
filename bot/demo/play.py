"""Play: the week's lines, one after the other, through the socket of the running program."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from bot.app import App
from bot.clock import local_date
from bot.consolidate import tend
from bot.demo.answers import pack_in
from bot.demo.errors import NothingCame
from bot.demo.happenings import (
    Asked,
    DayBegan,
    Forgotten,
    Happening,
    PackShown,
    Recalled,
    Renamed,
    Said,
    Sent,
    WeekEnded,
)
from bot.demo.sample import ANSWER_MARK, ZONE, Line, Week, content_of
from bot.demo.watch import Answers, Watch
from bot.model import Chat, Scope
from bot.simulate import OneBotClient, Scene, VirtualClock
from bot.simulate.provider import ReceivedRequest
from bot.store.messages import newest_with_id
from bot.store.turns import sent_count
from bot.store.usage import usage_since
from bot.worker import tick

LOOK_MINUTES = 5
"""The worker looks so often by the sample's clock."""

RESTLESS_MINUTES = 120
"""So long after the last line it goes on looking: everything is done by then."""

POLL_SECONDS = 0.002
STIR_SECONDS = 0.5
"""Whoever waits longer than this lets the sample's clock go on as well: a call may be tried again
by it."""

PATIENCE_SECONDS = 20.0
LIVE_PATIENCE_SECONDS = 90.0

_Found = TypeVar("_Found")
Tell = Callable[[Happening], Awaitable[None]]
Texts = dict[tuple[Scope, str], str]
"""What is remembered, by scope and label."""


@dataclass(frozen=True, slots=True)
class Ears:
    """What the demo hears of the model."""

    requests: Collection[ReceivedRequest]
    """Empty where the configured model answers."""
    answers: Callable[[], list[tuple[str, str]]]
    """Returns the answers since the last call, each with its purpose."""
    are_certain: bool = True
    """Whether everything is answered. A configured model may be down, and the week goes on."""


class Player:
    """Plays one week.

    Args:
        app: the running program.
        clock: the clock that the program goes by.
        client: connected to it.
        week: the sample.
        ears: what is heard of the model.
        tell: told of everything that happens, in order.
        patience_seconds: real time that an answer may take.
    """

    def __init__(
        self,
        app: App,
        clock: VirtualClock,
        client: OneBotClient,
        week: Week,
        ears: Ears,
        tell: Tell,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._app = app
        self._clock = clock
        self._client = client
        self._scene = Scene(client)
        self._week = week
        self._ears = ears
        self._tell = tell
        self._patience_seconds = patience_seconds
        self._watch = Watch(app)
        self._answers: Answers = {}
        self._message_ids: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self._asked = 0
        self._looked_at = clock.now()

    async def play(self) -> None:
        """Play all of it, and tell at the end what is remembered."""
        day = ""
        for line in self._week.lines:
            await self._until(line.at)
            if (today := local_date(line.at, ZONE)) != day:
                day = today
                # The night's work, which the schedule does by the wall clock.
                await self._stirring(tend(self._app))
                await self._tell(DayBegan(line.at))
            await self._act(line)
        await self._until(self._clock.now() + RESTLESS_MINUTES * 60_000)
        await self._end()

    async def _end(self) -> None:
        await self._tell(
            WeekEnded(
                self._clock.now(),
                tuple(await self._watch.living()),
                tuple(await self._watch.summaries()),
                sum(bool(line.text) for line in self._week.lines),
                sum(used.calls for used in await usage_since(self._app.db, 0)),
            )
        )

    # Time

    async def _until(self, at: int) -> None:
        """Let time pass, the worker looking all the while."""
        restless_until = self._clock.now() + RESTLESS_MINUTES * 60_000
        while (next_look := self._looked_at + LOOK_MINUTES * 60_000) <= min(at, restless_until):
            await self._advance(next_look)
            await self._look()
        await self._advance(at)
        if self._looked_at < at - LOOK_MINUTES * 60_000:
            self._looked_at = at

    async def _advance(self, at: int) -> None:
        await self._clock.advance(max(0, at - self._clock.now()) / 1000)

    async def _look(self) -> None:
        self._looked_at = self._clock.now()
        await self._stirring(tick(self._app))
        await self._hear()
        for happening in await self._watch.tasks(self._answers):
            await self._tell(happening)

    async def _hear(self) -> list[ReceivedRequest]:
        """Tell what the model was asked, keep what it answered, and return the former."""
        heard = list(self._ears.requests)[self._asked :]
        self._asked += len(heard)
        for request in heard:
            await self._tell(Asked(self._clock.now(), request.purpose, request.body))
        for purpose, text in self._ears.answers():
            try:
                self._answers.setdefault(purpose, []).append(json.loads(text))
            except ValueError:
                continue
        return heard

    # What people do

    async def _act(self, line: Line) -> None:
        if line.recalls:
            await self._recall(line)
        elif line.card:
            await self._rename(line)
        else:
            await self._say(line)

    async def _say(self, line: Line) -> None:
        chat = self._chat(line)
        content = content_of(line, self._week.bot.user_id, self._message_ids)
        sent_before = self._client.records.sent_count(chat)
        turns_before = await sent_count(self._app.db, chat)
        before = await self._remembered() if line.is_command else {}
        if line.is_private:
            spoken = await self._scene.whisper(line.sender_id, *content)
        else:
            spoken = await self._scene.say(self._week.group_id, line.sender_id, *content)
        if line.key:
            self._message_ids[line.key] = spoken.message_id
            self._texts[line.key] = line.text
        name = spoken.sender.card or spoken.sender.nickname
        quoted = self._texts.get(line.quote, "")
        await self._tell(Said(line.at, chat, line.sender_id, name, line.text, quoted))
        await self._stored(chat, str(spoken.message_id))
        if line.is_asking:
            await self._answered(line, chat, sent_before, turns_before)
        if fallen := await self._fallen(before):
            await self._tell(Forgotten(self._clock.now(), chat, line.sender_id, fallen))

    async def _remembered(self) -> Texts:
        return {(e.scope, e.label): e.text for e in await self._watch.living()}

    async def _fallen(self, before: Texts) -> tuple[str, ...]:
        """Return what was remembered before and is not now."""
        left = await self._remembered() if before else {}
        return tuple(text for key, text in before.items() if key not in left)

    def _chat(self, line: Line) -> Chat:
        world = self._client.world
        if line.is_private:
            return world.private_chat(line.sender_id)
        return world.group_chat(self._week.group_id)

    async def _stored(self, chat: Chat, platform_id: str) -> None:
        async def is_stored() -> bool:
            return await newest_with_id(self._app.db, chat, platform_id) is not None

        await self._until_holds(is_stored, "a message to be stored")

    async def _answered(self, line: Line, chat: Chat, sent_before: int, turns_before: int) -> None:
        async def has_sent() -> bool:
            return self._client.records.sent_count(chat) > sent_before

        async def is_kept() -> bool:
            return await sent_count(self._app.db, chat) > turns_before

        try:
            await self._until_holds(has_sent, f"an answer to {line.text!r}")
            if not line.is_command:
                await self._until_holds(is_kept, "the answer to be kept")
        except NothingCame:
            if self._ears.are_certain:
                raise
        heard = await self._hear()
        for happening in await self._watch.snapshots(chat, line.sender_id):
            await self._tell(happening)
        for pack in filter(None, map(_pack, heard)):
            await self._tell(PackShown(self._clock.now(), chat, pack))
        for sent in self._client.records.sent_to(chat)[sent_before:]:
            await self._tell(Sent(self._clock.now(), chat, sent.text))
        for answer in self._client.records.sent_to(chat)[sent_before : sent_before + 1]:
            self._message_ids[ANSWER_MARK + line.key] = answer.message_id
            self._texts[ANSWER_MARK + line.key] = answer.text

    async def _recall(self, line: Line) -> None:
        taken = self._week.line(line.recalls)
        chat, message_id = self._chat(taken), self._message_ids[line.recalls]
        before = await self._remembered()
        await self._scene.recall(message_id, operator_id=line.sender_id)

        async def is_gone() -> bool:
            found = await newest_with_id(self._app.db, chat, str(message_id))
            return found is not None and found.recalled_at is not None

        await self._until_holds(is_gone, "a message to be taken back")
        fallen = await self._fallen(before)
        await self._tell(
            Recalled(line.at, chat, line.sender_id, taken.sender_id, taken.text, fallen)
        )

    async def _rename(self, line: Line) -> None:
        group_id = self._week.group_id
        former = self._client.world.member(group_id, line.sender_id).card
        await self._scene.change_card(group_id, line.sender_id, line.card)
        await self._tell(Renamed(line.at, line.sender_id, former, line.card))

    # Waiting, in real time

    async def _until_holds(self, holds: Callable[[], Awaitable[bool]], what: str) -> None:
        async def waiting() -> None:
            # The database announces nothing.
            while not await holds():  # noqa: ASYNC110
                await asyncio.sleep(POLL_SECONDS)

        try:
            await self._stirring(waiting())
        except TimeoutError:
            raise NothingCame(f"waited {self._patience_seconds:g} s for {what}") from None

    async def _stirring(self, work: Awaitable[_Found]) -> _Found:
        """Wait for something; should it take long, the sample's clock goes on meanwhile."""
        task = asyncio.ensure_future(work)
        try:
            async with asyncio.timeout(self._patience_seconds):
                while not (await asyncio.wait({task}, timeout=STIR_SECONDS))[0]:
                    await self._clock.advance(STIR_SECONDS)
                return task.result()
        finally:
            task.cancel()


def _pack(request: ReceivedRequest) -> str:
    if not request.purpose.startswith("chat"):
        return ""
    return pack_in(request.body["messages"][-1]["content"])

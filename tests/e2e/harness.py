"""The whole program as people meet it: ``python -m bot`` in a process of its own, a simulated QQ
client on a real socket, a model server on real HTTP, and the database read from outside."""

import asyncio
import json
import os
import random
import socket
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Self

from bot.config import variables
from bot.model import Chat
from bot.simulate import (
    Content,
    Endpoint,
    HandshakeRefused,
    NotConnected,
    OneBotClient,
    Person,
    Scene,
    Sent,
    Utterance,
    World,
    segments,
)
from bot.simulate.provider import ModelServer, ReceivedRequest

ROOT = Path(__file__).parents[2]
BOT = Person(10001, "机器人")
OPERATOR = Person(30009, "操作者")
NICKNAME = "小忆"
KEY = "sk-invented-and-secret"
PORTS = (12_000, 32_000)
START_SECONDS = 30.0
STOP_SECONDS = 10.0
WAIT_SECONDS = 8.0
LOG_SHOWN_CHARS = 12_000

QUICK: Mapping[str, object] = {
    "replyDebounceSeconds": 0.05,
    "replyMinGapSeconds": 0,
    "replyPerMemberPerMinute": 10_000,
    "replyPerMemberPerDay": 10_000,
    "replyGlobalPerMinute": 10_000,
    "maxConsecutiveTurns": 10_000,
    "sendGapSeconds": 0,
    "sendPerChatPerMinute": 10_000,
    "sendPerAccountPerMinute": 10_000,
}
"""Nothing waits and nothing is limited, so that a test only meets the rule it is about."""

DEFAULTS: Mapping[str, object] = {}
"""Every setting as it is shipped."""


def free_port() -> int:
    """Return a port that stays free while a bot is down.

    Not one of those that the system gives to outgoing connections: a client that tries such a
    port again and again may get it for itself.
    """
    while True:
        port = random.randrange(*PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


async def until(
    holds: Callable[[], object], what: str, *, timeout_seconds: float = WAIT_SECONDS
) -> None:
    """Wait until something holds that nobody announces, such as a row in the database."""
    try:
        async with asyncio.timeout(timeout_seconds):
            while not holds():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise TimeoutError(f"waited {timeout_seconds} s for {what}") from None


class RunningBot:
    """A bot that runs, with a client connected to it.

    Args:
        directory: where its database and log lie.
        models: the server it asks; its address unless ``variables`` names another.
        world: what its account sees.
        settings: ``INITIAL_SETTINGS``.
        environ: more environment variables, or others.
        program: the arguments with which Python is started.
        client: options of the ``OneBotClient``.
    """

    def __init__(
        self,
        directory: Path,
        models: ModelServer,
        world: World | None = None,
        *,
        settings: Mapping[str, object] = QUICK,
        environ: Mapping[str, str] | None = None,
        program: Sequence[str] = ("-m", "bot"),
        **client: Any,
    ) -> None:
        self._program = program
        self.database = directory / "qunyi.db"
        self.log_file = directory / f"bot-{BOT.user_id}.log"
        self.models = models
        self.world = World(BOT) if world is None else world
        self.world.befriend(OPERATOR)
        port = free_port()
        self.endpoint = Endpoint(port)
        self.client = OneBotClient(self.endpoint, self.world, **client)
        self.scene = Scene(self.client)
        # Blank is the default, whatever the developer's own environment or .env says.
        self._environ = {
            **os.environ,
            **dict.fromkeys(variables(), ""),
            "PORT": str(port),
            "DATABASE_URL": f"sqlite:///{self.database}",
            "OPENAI_BASE_URL": models.base_url,
            "OPENAI_API_KEY": KEY,
            "CHAT_MODEL": "talker",
            "EMBEDDING_MODEL": "off",
            "SUPERUSERS": str(OPERATOR.user_id),
            "NICKNAME": NICKNAME,
            "LOG_LEVEL": "INFO",
            "INITIAL_SETTINGS": json.dumps(dict(settings)),
            "NO_COLOR": "1",
            **(environ or {}),
        }
        self.numbers = count(1)
        """Of rooms and friends, so that tests that share the bot share nothing else."""
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException as error:
            await self._end(error)
            raise
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self._end(error)

    async def _end(self, error: BaseException | None) -> None:
        try:
            await self.stop()
        finally:
            await self.kill()
        await self.client.close()
        if error is not None:
            sys.stdout.write(self.log_tail())

    # The process

    async def start(self) -> None:
        """Start the process and connect the client."""
        with self.log_file.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *self._program,
                cwd=ROOT,
                env=self._environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        await self._while_it_runs(self.connect())

    async def connect(self) -> None:
        """Connect the client, as soon as the bot lets it."""
        async with asyncio.timeout(START_SECONDS):
            while not self.client.connected:
                try:
                    await self.client.connect(patience_seconds=START_SECONDS)
                except (HandshakeRefused, NotConnected):
                    await asyncio.sleep(0.02)

    async def reconnect(self) -> None:
        """Lose the connection and come back."""
        await self.client.drop()
        await self.connect()

    async def _while_it_runs(self, work: Any) -> None:
        assert self._process is not None
        working = asyncio.ensure_future(work)
        dying = asyncio.ensure_future(self._process.wait())
        await asyncio.wait({working, dying}, return_when=asyncio.FIRST_COMPLETED)
        dying.cancel()
        if working.done():
            return working.result()
        working.cancel()
        raise RuntimeError(f"the bot ended while it was started:\n{self.log_tail()}")

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def stop(self) -> int | None:
        """End the process as an operator does (SIGTERM) and return its exit status."""
        if not self.is_running or self._process is None:
            return None
        self._process.terminate()
        async with asyncio.timeout(STOP_SECONDS):
            status = await self._process.wait()
        await self._gone()
        return status

    async def kill(self) -> None:
        """End the process at once (SIGKILL)."""
        if not self.is_running or self._process is None:
            return
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await self._gone()

    async def _gone(self) -> None:
        with suppress(TimeoutError):
            await self.client.wait_disconnected()

    async def restart(self) -> None:
        """Stop the process in good order and start it again."""
        await self.stop()
        await self.start()

    @property
    def log(self) -> str:
        return self.log_file.read_text("utf-8", "replace") if self.log_file.exists() else ""

    def log_tail(self) -> str:
        return f"\n--- {self.log_file.name}\n{self.log[-LOG_SHOWN_CHARS:]}\n"

    # What it did

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Return what the database holds now, read by a connection that cannot write."""
        reader = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=5)
        try:
            return reader.execute(query, values).fetchall()
        finally:
            reader.close()

    def messages(self, chat: Chat, direction: str = "inbound") -> list[tuple[str, str, str]]:
        """Return platform id, kind and text of a chat's messages, in the order of their rows."""
        return self.rows(
            "SELECT m.platform_id, m.kind, m.text FROM messages AS m JOIN chats AS c"
            " ON c.id = m.chat_id WHERE c.kind = ? AND c.peer_id = ? AND m.direction = ?"
            " ORDER BY m.id",
            *(chat.kind, chat.id, direction),
        )

    def is_stored(self, spoken: Utterance) -> bool:
        ids = [message_id for message_id, _, _ in self.messages(spoken.chat)]
        return str(spoken.message_id) in ids

    def requests(self, purpose: str = "chat") -> list[ReceivedRequest]:
        """Return what the model server was asked, oldest first."""
        return [request for request in self.models.requests if request.purpose == purpose]

    def answers_to(self, spoken: Utterance) -> list[Sent]:
        """Return the messages that quote a group message."""
        return [s for s in self.client.sent if quoted_id(s) == str(spoken.message_id)]

    async def answer_to(self, spoken: Utterance, *, timeout_seconds: float = WAIT_SECONDS) -> Sent:
        """Wait for the message that quotes a group message."""
        what = f"an answer to {spoken.message_id}; {self.client.records.summary()}"
        await until(lambda: self.answers_to(spoken), what, timeout_seconds=timeout_seconds)
        return self.answers_to(spoken)[0]

    async def tell(self, text: str) -> str:
        """Let the operator say something in private and return the answer."""
        chat = self.world.private_chat(OPERATOR.user_id)
        before = self.client.records.sent_count(chat)
        await self.scene.whisper(OPERATOR.user_id, text)
        sent = await self.client.wait_for_sent(before + 1, chat=chat, timeout_seconds=WAIT_SECONDS)
        return sent[before].text


@dataclass(frozen=True, slots=True)
class Room:
    """A group that only one test uses."""

    bot: RunningBot
    id: int
    asker: Person
    other: Person
    nudger: Person
    """Speaks to the bot only to find out what happened before."""

    @property
    def chat(self) -> Chat:
        return self.bot.world.group_chat(self.id)

    @property
    def sent(self) -> tuple[Sent, ...]:
        """All that the bot sent here."""
        return self.bot.client.records.sent_to(self.chat)

    def requests(self) -> list[ReceivedRequest]:
        """Return what the chat model was asked for this group, oldest first."""
        here = f'"groupId": "{self.id}"'
        return [r for r in self.bot.requests() if here in prompt(r)[0]["content"]]

    async def say(self, who: Person, *content: Content) -> Utterance:
        """Let somebody say something, and wait until it is kept: what comes next comes later."""
        spoken = await self.bot.scene.say(self.id, who.user_id, *content)
        await until(lambda: self.bot.is_stored(spoken), f"{spoken.message_id} in {self.chat}")
        return spoken

    async def ask(self, text: str = "在吗", *, who: Person | None = None) -> Utterance:
        """Let somebody address the bot with an @."""
        return await self.say(who or self.asker, segments.at(BOT.user_id), f" {text}")

    async def asked(self, text: str = "在吗", *, who: Person | None = None) -> Sent:
        """Let somebody address the bot and return its answer."""
        return await self.bot.answer_to(await self.ask(text, who=who))

    async def order(self, text: str, *, who: Person = OPERATOR) -> str:
        """Let somebody give a command and return the answer."""
        return (await self.bot.answer_to(await self.say(who, text))).text

    async def others_sent(self) -> list[Sent]:
        """Return what was sent here so far, once everything said before has had its turn.

        One turn at a time: what was to be answered is answered before who speaks now.
        """
        nudge = await self.ask("都说完了吗", who=self.nudger)
        await self.bot.answer_to(nudge)
        return [sent for sent in self.sent if quoted_id(sent) != str(nudge.message_id)]

    def stored(self) -> list[str]:
        """Return the texts of the people's messages that are kept of this group."""
        return [text for _, _, text in self.bot.messages(self.chat)]


def new_room(bot: RunningBot, name: str = "测试群", *members: Person) -> Room:
    """Found a group of three new people, the operator, and whoever else is named."""
    number = next(bot.numbers)
    first = 30_000 + 100 * number
    asker, other, nudger = (Person(first + n, f"群友{n}") for n in (1, 2, 3))
    bot.world.add_group(20_000 + number, name, asker, other, nudger, OPERATOR, *members)
    return Room(bot, 20_000 + number, asker, other, nudger)


def new_friend(bot: RunningBot, nickname: str = "私聊人") -> Person:
    """Make somebody new a friend of the account."""
    friend = Person(900_000 + next(bot.numbers), nickname)
    bot.world.befriend(friend)
    return friend


def quoted_id(sent: Sent) -> str:
    """Return the id of the message that a message quotes, or nothing."""
    return next((str(s.data["id"]) for s in sent.segments if s.type == "reply"), "")


def prompt(request: ReceivedRequest) -> list[dict[str, str]]:
    """Return the messages of a request."""
    return request.body["messages"]


def whole_prompt(request: ReceivedRequest) -> str:
    """Return all that a request shows the model."""
    return "\n".join(message["content"] for message in prompt(request))


def shown_lines(request: ReceivedRequest) -> list[dict[str, Any]]:
    """Return the chat lines that a request shows, oldest first."""
    user = [m["content"] for m in prompt(request) if m["role"] == "user"]
    lines = [line for content in user for line in content.split("\n")]
    return [json.loads(line) for line in lines if line.startswith("{")]


def shown_texts(request: ReceivedRequest) -> list[str]:
    """Return the texts of the chat lines that a request shows."""
    return [line["text"] for line in shown_lines(request)]

"""The implementation side of a reverse WebSocket: what NapCat is to an application.

See ``docs/onebot.md``, "The connection".
"""

import asyncio
import json
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from bot.clock import Clock, SystemClock
from bot.model import Chat
from bot.simulate import events
from bot.simulate.actions import Call, Desk, Outcome, Sent, failed, perform, succeeded
from bot.simulate.behaviour import (
    Behaviour,
    CallFilter,
    Delay,
    Disconnect,
    Fail,
    ReportFirst,
    Rule,
    Silence,
)
from bot.simulate.errors import HandshakeRefused, NotConnected, Refusal
from bot.simulate.events import RawEvent
from bot.simulate.records import Records
from bot.simulate.world import World

ONEBOT_PATH = "/onebot/v11/ws"
WAIT_SECONDS = 5.0
RETRY_SECONDS = 0.02
BATCH_EVENTS = 64
"""How many events ``deliver_many`` writes before it lets the loop read."""

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the application listens."""

    port: int
    host: str = "127.0.0.1"
    path: str = ONEBOT_PATH
    token: str = ""

    @property
    def url(self) -> str:
        """The WebSocket address."""
        return f"ws://{self.host}:{self.port}{self.path}"


def handshake_headers(self_id: int, token: str = "") -> list[tuple[str, str]]:
    """Return the headers with which an implementation introduces itself."""
    authorization = [("Authorization", f"Bearer {token}")] if token else []
    return [("X-Self-ID", str(self_id)), ("X-Client-Role", "Universal"), *authorization]


class OneBotClient:
    """One connection of one bot account to an application.

    Two clients with the same world are two connections of the same account; ``copies=2``
    imitates them where the application takes only one.

    Args:
        endpoint: where the application listens.
        world: what the account sees; API calls are answered from it and change it.
        clock: stamps events and records, and times heartbeats, late answers and reconnects.
            Waiting for the application itself is always in real time.
        report_self_message: whether what the application sends is reported to it as well.
        string_format: whether messages are written as strings with CQ codes.
        heartbeat_seconds: how often a heartbeat is sent; None for never.
        reconnect_seconds: how long after a lost connection it tries again; None for never.
        copies: how often each event is delivered.
        headers: the headers of the handshake, in place of ``handshake_headers``.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        world: World,
        *,
        clock: Clock | None = None,
        report_self_message: bool = False,
        string_format: bool = False,
        heartbeat_seconds: float | None = None,
        reconnect_seconds: float | None = None,
        copies: int = 1,
        headers: Headers | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.desk = Desk(world, string_format)
        self.clock: Clock = SystemClock() if clock is None else clock
        self.records = Records()
        self.refusals: list[HandshakeRefused | NotConnected | OSError] = []
        """Why automatic reconnects failed."""
        self._report_self_message = report_self_message
        self._heartbeat_seconds = heartbeat_seconds
        self._reconnect_seconds = reconnect_seconds
        self._copies = copies
        self._headers = headers
        self._rules: list[Rule] = []
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._reconnecting: asyncio.Task[None] | None = None
        self._half_open: list[ClientConnection] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False

    @property
    def calls(self) -> list[Call]:
        """Every API call, in the order of arrival."""
        return self.records.calls

    @property
    def sent(self) -> list[Sent]:
        """Every message that the application sent, in order."""
        return self.records.sent

    @property
    def strays(self) -> list[str | bytes]:
        """Frames that are not API calls."""
        return self.records.strays

    @property
    def world(self) -> World:
        """What the account sees."""
        return self.desk.world

    @property
    def self_id(self) -> int:
        """The bot account's id."""
        return self.world.account.user_id

    @property
    def connected(self) -> bool:
        """Whether there is an open connection."""
        return self._socket is not None

    # The connection

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def connect(self, *, patience_seconds: float = 0) -> None:
        """Connect, introduce the account and send the first event.

        Args:
            patience_seconds: how long to wait for someone to listen, while an application starts.

        Raises:
            HandshakeRefused: the application does not want this account or token.
            OSError: nobody listens there.
        """
        self._closing = False
        async with asyncio.timeout(patience_seconds or None):
            while not self.connected:
                await self._try_to_open(is_patient=patience_seconds > 0)

    async def _try_to_open(self, *, is_patient: bool) -> None:
        try:
            await self._open()
        except ConnectionError:
            if not is_patient:
                raise
            await asyncio.sleep(RETRY_SECONDS)

    async def _open(self) -> None:
        socket = await self._handshake()
        self._socket = socket
        self._reader = self._spawn(self._read(socket))
        await self.deliver(events.lifecycle(self.self_id, at=self.clock.now()), copies=1)
        if self._heartbeat_seconds is not None:
            self._spawn(self._beat(socket, self._heartbeat_seconds))
        self.records.announce()

    async def _handshake(self) -> ClientConnection:
        headers = self._headers
        if headers is None:
            headers = handshake_headers(self.self_id, self.endpoint.token)
        try:
            return await connect(
                self.endpoint.url,
                additional_headers=headers,
                user_agent_header="OneBot/11",
                compression=None,
                proxy=None,
                ping_interval=None,
                close_timeout=2,
                max_size=None,
            )
        except InvalidStatus as refused:
            body = (refused.response.body or b"").decode(errors="replace")
            raise HandshakeRefused(refused.response.status_code, body) from refused
        except InvalidHandshake as refused:
            raise HandshakeRefused(0, str(refused)) from refused

    async def close(self) -> None:
        """Say goodbye, stop everything, and raise what went wrong within the simulator."""
        self._closing = True
        if self._socket is not None:
            await self._socket.close()
        for abandoned in self._half_open:
            abandoned.transport.abort()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._socket = None
        if self.records.failure is not None:
            raise self.records.failure

    async def drop(self) -> None:
        """Lose the connection without a goodbye, as on a crash."""
        if self._socket is not None and self._reader is not None:
            self._socket.transport.abort()
            await asyncio.wait([self._reader])

    def go_half_open(self) -> None:
        """Vanish: the application keeps a connection that neither reads, answers nor closes.

        ``connect`` may then be called again, and is refused until the application notices.
        """
        if self._socket is None or self._reader is None:
            return
        self._reader.cancel()
        self._socket.transport.pause_reading()
        self._half_open.append(self._socket)
        self._socket = None
        self.records.announce()

    async def wait_connected(self, *, timeout_seconds: float = WAIT_SECONDS) -> None:
        """Wait until there is a connection.

        Raises:
            TimeoutError: it took too long.
        """
        await self.records.until(lambda: self.connected or None, "a connection", timeout_seconds)

    async def wait_disconnected(self, *, timeout_seconds: float = WAIT_SECONDS) -> None:
        """Wait until the connection is lost.

        Raises:
            TimeoutError: it took too long.
        """
        await self.records.until(
            lambda: not self.connected or None, "the loss of the connection", timeout_seconds
        )

    def _lost(self, socket: ClientConnection) -> None:
        if self._socket is not socket:
            return
        self._socket = None
        self.records.announce()
        is_trying = self._reconnecting is not None and not self._reconnecting.done()
        if self._reconnect_seconds is not None and not self._closing and not is_trying:
            self._reconnecting = self._spawn(self._reconnect(self._reconnect_seconds))

    async def _reconnect(self, pause_seconds: float) -> None:
        while not self.connected:
            await self.clock.sleep(pause_seconds)
            try:
                await self._open()
            except (HandshakeRefused, NotConnected, OSError) as refusal:
                self.refusals.append(refusal)

    async def _beat(self, socket: ClientConnection, interval_seconds: float) -> None:
        interval_ms = round(interval_seconds * 1000)
        while self._socket is socket:
            await self.clock.sleep(interval_seconds)
            beat = events.heartbeat(self.self_id, at=self.clock.now(), interval_ms=interval_ms)
            with suppress(ConnectionClosed):
                await socket.send(_frame(beat))

    # Events

    async def deliver(self, event: RawEvent, *, copies: int | None = None) -> None:
        """Send one event, as often as ``copies`` says (the client's own number by default).

        Raises:
            NotConnected: there is no connection; the event is lost.
        """
        await self.deliver_many([event], copies=copies)

    async def deliver_many(self, many: Iterable[RawEvent], *, copies: int | None = None) -> int:
        """Send events as fast as the application reads them and return their number.

        Raises:
            NotConnected: there is no connection, or it was lost on the way.
        """
        times = self._copies if copies is None else copies
        frames = (_frame(event) for event in many for _ in range(times))
        count = 0
        for count, frame in enumerate(frames, start=1):
            await self._write(frame)
            if count % BATCH_EVENTS == 0:
                await asyncio.sleep(0)
        return count

    async def _write(self, frame: str) -> None:
        if self._socket is None:
            raise NotConnected("there is no open connection")
        try:
            await self._socket.send(frame)
        except ConnectionClosed as closed:
            raise NotConnected(f"the connection was lost: {closed}") from closed

    # API calls

    def behave(self, wanted: CallFilter, behaviour: Behaviour, *, times: int | None = None) -> None:
        """Let some calls go wrong, ``times`` times or always; of several rules the first counts."""
        self._rules.append(Rule(wanted, behaviour, times))

    def behave_normally(self) -> None:
        """Forget all rules."""
        self._rules.clear()

    def forget(self) -> None:
        """Forget the recorded calls, sent messages and stray frames."""
        self.records.forget()

    async def _read(self, socket: ClientConnection) -> None:
        try:
            with suppress(ConnectionClosed):
                async for frame in socket:
                    await self._receive(socket, frame)
        finally:
            self._lost(socket)

    async def _receive(self, socket: ClientConnection, frame: str | bytes) -> None:
        call = _call_of(frame, self.clock.now(), asyncio.get_running_loop().time())
        if call is None:
            self.strays.append(frame)
            return
        self.records.add_call(call)
        behaviour = next((rule.behaviour for rule in self._rules if rule.take(call)), None)
        if behaviour is None:
            await self._answer(socket, call)
        else:
            self._spawn(self._misbehave(socket, call, behaviour))

    async def _answer(self, socket: ClientConnection, call: Call) -> None:
        outcome = self._perform(call)
        await self._reply(socket, call, outcome)
        if self._report_self_message:
            await self._tell(socket, outcome.report)
        await self._tell(socket, *outcome.events)

    async def _misbehave(self, socket: ClientConnection, call: Call, behaviour: Behaviour) -> None:
        match behaviour:
            case Fail(retcode, wording, performed):
                self._perform_if(performed, call)
                await self._reply(socket, call, failed(retcode, wording))
            case Silence(performed):
                self._perform_if(performed, call)
            case Disconnect(performed):
                self._perform_if(performed, call)
                socket.transport.abort()
            case Delay(seconds):
                outcome = self._perform(call)
                await self.clock.sleep(seconds)
                await self._reply(socket, call, outcome)
            case ReportFirst(seconds):
                outcome = self._perform(call)
                await self._tell(socket, outcome.report)
                await self.clock.sleep(seconds)
                await self._reply(socket, call, outcome)

    def _perform_if(self, performed: bool, call: Call) -> None:
        if performed:
            self._perform(call)

    def _perform(self, call: Call) -> Outcome:
        try:
            done = perform(self.desk, call)
        except Refusal as refusal:
            return failed(refusal.retcode, refusal.wording)
        if done.sent is not None:
            self.records.add_sent(done.sent)
        return succeeded(done)

    async def _reply(self, socket: ClientConnection, call: Call, outcome: Outcome) -> None:
        with suppress(ConnectionClosed):
            await socket.send(_frame({**outcome.answer, "echo": call.echo}))

    async def _tell(self, socket: ClientConnection, *consequences: RawEvent | None) -> None:
        with suppress(ConnectionClosed):
            for frame in [_frame(event) for event in consequences if event is not None]:
                for _ in range(self._copies):
                    await socket.send(frame)

    # Waiting

    async def wait_for_call(
        self, wanted: CallFilter, *, timeout_seconds: float = WAIT_SECONDS
    ) -> Call:
        """Return the first recorded call that is wanted, waiting for it if need be.

        Raises:
            TimeoutError: none came in time; the text lists those that did.
        """
        return await self.records.until(
            self.records.search(wanted), f"a call of {wanted}", timeout_seconds
        )

    async def wait_for_sent(
        self,
        count: int = 1,
        *,
        chat: Chat | None = None,
        timeout_seconds: float = WAIT_SECONDS,
    ) -> tuple[Sent, ...]:
        """Return all messages sent, to a chat or to any, once there are at least ``count``.

        Raises:
            TimeoutError: there are fewer; the text lists them.
        """

        def enough() -> tuple[Sent, ...] | None:
            is_enough = self.records.sent_count(chat) >= count
            return self.records.sent_to(chat) if is_enough else None

        return await self.records.until(
            enough, f"{count} sent to {chat or 'any chat'}", timeout_seconds
        )

    # Tasks

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.records.failure = task.exception()
            self.records.announce()


def _frame(payload: RawEvent) -> str:
    # Escaped, so that half a surrogate pair travels too, as it does from real implementations.
    return json.dumps(payload, separators=(",", ":"))


def _call_of(frame: str | bytes, moment: int, arrived_seconds: float) -> Call | None:
    try:
        payload = json.loads(frame)
    except ValueError:
        return None
    match payload:
        case {"action": str(action)}:
            params = payload.get("params")
            given = params if isinstance(params, dict) else {}
            return Call(action, given, moment, payload.get("echo"), arrived_seconds)
    return None

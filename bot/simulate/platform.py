"""The platform without a socket: calls are answered from the world within this process.

For tests of what stands above the edge, on a virtual clock. Errors are those that the edge makes
of a real client's answers; see ``bot/platform/accounts.py``.
"""

import asyncio
from typing import Any

from bot.clock import Clock
from bot.errors import AccountOffline, SendError, SendRejected, SendTimedOut
from bot.simulate.actions import Call, Desk, Performed, Sent, perform
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
from bot.simulate.errors import Refusal
from bot.simulate.events import RawEvent
from bot.simulate.world import World


class WorldPlatform:
    """A ``bot.platform.accounts.Platform`` over a ``World``.

    Args:
        world: what the account sees; calls are answered from it and change it.
        clock: stamps the records and times late answers.

    ```python
    app.accounts.connect("10001", WorldPlatform(world, clock))
    ```
    """

    def __init__(self, world: World, clock: Clock) -> None:
        self.world = world
        self.calls: list[Call] = []
        """Every call, in order."""
        self.sent: list[Sent] = []
        """Every message that went out, also those of which the caller does not know it."""
        self.reports: list[RawEvent] = []
        """The ``message_sent`` event of each; deliver it where a client would."""
        self.events: list[RawEvent] = []
        """What else happened because of a call."""
        self.held = 0
        """How many calls wait for ``release``."""
        self._clock = clock
        self._rules: list[Rule] = []
        self._open = asyncio.Event()
        self._open.set()

    def behave(self, wanted: CallFilter, behaviour: Behaviour, *, times: int | None = None) -> None:
        """Let some calls go wrong, ``times`` times or always; of several rules the first counts."""
        self._rules.append(Rule(wanted, behaviour, times))

    def behave_normally(self) -> None:
        """Forget all rules."""
        self._rules.clear()

    def hold(self) -> None:
        """Keep every call waiting until ``release``, before anything comes of it."""
        self._open.clear()

    def release(self) -> None:
        """Let all calls go."""
        self._open.set()

    async def call(self, action: str, **params: Any) -> Any:
        """Do what a call asks for and return its ``data``.

        Raises:
            SendRejected: the call fails.
            SendTimedOut: it is not answered, or the platform says that it timed out.
            AccountOffline: the connection is lost.
        """
        call = Call(action, params, self._clock.now())
        self.calls.append(call)
        await self._wait()
        behaviour = next((rule.behaviour for rule in self._rules if rule.take(call)), None)
        return await self._answer(call, behaviour)

    async def _wait(self) -> None:
        self.held += 1
        try:
            await self._open.wait()
        finally:
            self.held -= 1

    async def _answer(self, call: Call, behaviour: Behaviour | None) -> Any:
        match behaviour:
            case Fail(retcode, wording, performed):
                self._perform_if(performed, call)
                raise _failure(retcode, wording)
            case Silence(performed):
                self._perform_if(performed, call)
                raise SendTimedOut(f"{call.action}: no answer from the client")
            case Disconnect(performed):
                self._perform_if(performed, call)
                raise AccountOffline(f"{call.action}: the connection is gone")
            case Delay(seconds) | ReportFirst(seconds):
                data = self._perform(call)
                await self._clock.sleep(seconds)
                return data
            case None:
                return self._perform(call)

    def _perform_if(self, performed: bool, call: Call) -> None:
        if performed:
            self._perform(call)

    def _perform(self, call: Call) -> Any:
        try:
            done = perform(Desk(self.world), call)
        except Refusal as refusal:
            raise _failure(refusal.retcode, refusal.wording) from refusal
        self._record(done)
        return done.data

    def _record(self, done: Performed) -> None:
        if done.sent is not None:
            self.sent.append(done.sent)
        if done.report is not None:
            self.reports.append(done.report)
        self.events.extend(done.events)


def _failure(retcode: int, wording: str) -> SendError:
    # The client gave up waiting for QQ: it may have been sent.
    return SendTimedOut(wording) if "超时" in wording else SendRejected(wording, retcode=retcode)

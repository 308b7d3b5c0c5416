"""Everything that is sent passes here: one queue per account, with gaps and caps.

The numbers are settings, the decisions pure (``bot/conversation/pacing.py``); see
``docs/architecture.md``, "Pace".
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from bot.clock import Clock
from bot.conversation.pacing import (
    Drop,
    Outgoing,
    SendHistory,
    SendLimits,
    Wait,
    send_decision,
)
from bot.errors import SendDropped, SendError
from bot.model import Chat, Segment
from bot.onebot.values import account_text
from bot.platform.accounts import Accounts

QUEUE_LENGTH = 200
"""More letters than this do not wait for one account."""

Before = Callable[[], Awaitable[None]]


async def nothing() -> None:
    """What happens before most sends."""


@dataclass(frozen=True, slots=True)
class Letter:
    """One thing to send."""

    chat: Chat
    segments: tuple[Segment, ...] = ()
    nodes: tuple[str, ...] = ()
    """Texts of a merged forward, instead of ``segments``."""
    temporary_group: str | None = None
    """For a temporary session: the group through which it is reached."""
    urgent: bool = False
    """A reminder: it waits for as long as it takes."""
    before: Before = nothing
    """Awaited when its time has come, right before the call; what it raises stops the send."""


class _Queue:
    """What one account has sent, and who waits for it."""

    def __init__(self) -> None:
        self.history = SendHistory()
        self.sending = asyncio.Lock()
        self.waiting = 0


class Outbox:
    """The queues of all accounts.

    Args:
        accounts: who is connected.
        clock: the time that gaps and caps are counted in.
        limits: the settings in force now.
    """

    def __init__(self, accounts: Accounts, clock: Clock, limits: Callable[[], SendLimits]) -> None:
        self._accounts = accounts
        self._clock = clock
        self._limits = limits
        self._queues: dict[str, _Queue] = {}
        self._in_flight: set[int] = set()

    async def send(self, letter: Letter) -> str:
        """Send a letter when its time has come and return the platform's message id.

        Raises:
            SendDropped: it would have waited too long, or too many wait.
            SendRejected, SendTimedOut, AccountOffline: what the platform said.
        """
        queue = self._queues.setdefault(letter.chat.bot_id, _Queue())
        if queue.waiting >= QUEUE_LENGTH and not letter.urgent:
            raise SendDropped(f"{QUEUE_LENGTH} messages wait for the account already")
        queue.waiting += 1
        try:
            return await self._send_in_turn(queue, letter)
        finally:
            queue.waiting -= 1

    async def _send_in_turn(self, queue: _Queue, letter: Letter) -> str:
        outgoing = Outgoing(str(letter.chat), self._clock.now(), letter.urgent)
        while True:
            async with queue.sending:
                now = self._clock.now()
                decision = send_decision(queue.history, self._limits(), outgoing, now)
                match decision:
                    case Drop():
                        raise SendDropped("it would have waited in the queue for over 60 s")
                    case Wait(until):
                        pass
                    case _:
                        return await self._send_now(queue, letter)
            # Outside the lock: a chat at its cap holds up no other.
            await self._clock.sleep((until - now) / 1000)

    async def _send_now(self, queue: _Queue, letter: Letter) -> str:
        platform = self._accounts.platform(letter.chat.bot_id)
        action, params = _call_of(letter)
        await letter.before()
        content = params["messages"] if letter.nodes else params["message"]
        self._in_flight.add(id(content))
        try:
            answer = await platform.call(action, **params)
        except SendError:
            queue.history = self._after(queue, letter, ok=False)
            raise
        finally:
            self._in_flight.discard(id(content))
        queue.history = self._after(queue, letter, ok=True)
        return _message_id(answer)

    def _after(self, queue: _Queue, letter: Letter, *, ok: bool) -> SendHistory:
        return queue.history.after_send(self._clock.now(), str(letter.chat), ok=ok)

    def is_in_flight(self, content: object) -> bool:
        """Whether ``content``, the very object, is being sent by this outbox now.

        The edge sees every call of every plugin; those of the outbox record themselves.
        """
        return id(content) in self._in_flight


def _call_of(letter: Letter) -> tuple[str, dict[str, Any]]:
    chat = letter.chat
    target: dict[str, Any] = {"group_id" if chat.is_group else "user_id": _number(chat.id)}
    if letter.temporary_group and not chat.is_group:
        target["group_id"] = _number(letter.temporary_group)
    if letter.nodes:
        return f"send_{chat.kind}_forward_msg", {**target, "messages": _nodes(letter)}
    message = [segment.as_json() for segment in letter.segments]
    return f"send_{chat.kind}_msg", {**target, "message": message}


def _nodes(letter: Letter) -> list[dict[str, Any]]:
    bot_id = letter.chat.bot_id
    return [
        {
            "type": "node",
            "data": {
                "user_id": bot_id,
                "nickname": bot_id,
                "content": [{"type": "text", "data": {"text": text}}],
            },
        }
        for text in letter.nodes
    ]


def _number(identifier: str) -> int | str:
    # Some implementations take only numbers, as the standard says; ids are kept as text.
    return int(identifier) if identifier.lstrip("-").isdecimal() else identifier


def _message_id(answer: Any) -> str:
    return account_text(answer.get("message_id")) if isinstance(answer, dict) else ""

"""What an application did, as seen from the other side, and waiting for it."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from bot.model import Chat
from bot.simulate.actions import Call, Sent
from bot.simulate.behaviour import CallFilter, matches

SHOWN = 10
"""How many records the text of a time-out shows."""

_Found = TypeVar("_Found")


class Records:
    """Everything that came over one client, in the order of arrival."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.sent: list[Sent] = []
        self.strays: list[str | bytes] = []
        self.failure: BaseException | None = None
        """What went wrong within the simulator itself; ends every wait."""
        self._sent_counts: Counter[Chat] = Counter()
        self._changed = asyncio.Event()

    def announce(self) -> None:
        """Let everyone who waits look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def add_call(self, call: Call) -> None:
        """Record an API call."""
        self.calls.append(call)
        self.announce()

    def add_sent(self, sent: Sent) -> None:
        """Record a message that the application sent."""
        self.sent.append(sent)
        self._sent_counts[sent.chat] += 1
        self.announce()

    def forget(self) -> None:
        """Forget everything but a failure."""
        self.calls.clear()
        self.sent.clear()
        self._sent_counts.clear()
        self.strays.clear()

    def search(self, wanted: CallFilter) -> Callable[[], Call | None]:
        """Return what finds the first call that is wanted, looking at each call once."""
        seen = 0

        def find() -> Call | None:
            nonlocal seen
            fresh = self.calls[seen if seen <= len(self.calls) else 0 :]
            seen = len(self.calls)
            return next((call for call in fresh if matches(wanted, call)), None)

        return find

    def sent_count(self, chat: Chat | None) -> int:
        """Return how many messages were sent to a chat, or to any."""
        return len(self.sent) if chat is None else self._sent_counts[chat]

    def sent_to(self, chat: Chat | None) -> tuple[Sent, ...]:
        """Return what was sent to a chat, or to any."""
        return tuple(sent for sent in self.sent if chat is None or sent.chat == chat)

    def summary(self) -> str:
        """Return one line for the text of a time-out: the last that came."""
        actions = ", ".join(call.action for call in self.calls[-SHOWN:])
        texts = ", ".join(f"{sent.chat} {sent.text[:80]!r}" for sent in self.sent[-SHOWN:])
        return f"last calls: {actions or 'none'}; last sent: {texts or 'none'}"

    async def until(
        self, find: Callable[[], _Found | None], what: str, timeout_seconds: float
    ) -> _Found:
        """Return what ``find`` finds, asking again whenever something was recorded.

        Raises:
            TimeoutError: nothing was found in time.
            BaseException: the simulator's own failure, if there is one.
        """
        try:
            async with asyncio.timeout(timeout_seconds):
                return await self._found(find)
        except TimeoutError:
            waited = f"waited {timeout_seconds} s for {what}"
            raise TimeoutError(f"{waited}; {self.summary()}") from None

    async def _found(self, find: Callable[[], _Found | None]) -> _Found:
        while (found := find()) is None:
            if self.failure is not None:
                raise self.failure
            await self._changed.wait()
        return found

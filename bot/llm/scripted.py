"""A model that says what it was told to: for tests, the demo and replays.

See ``docs/architecture.md``, "Models".
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable

from bot.conversation.tools import ToolCall
from bot.llm.protocol import ModelAnswer, ModelRequest, Purpose

Line = str | ModelAnswer | Exception
Script = Line | Callable[[ModelRequest], Line]
"""A text, a whole answer, an error to raise, or what returns one of these for a request."""

NAME = "scripted"


class ScriptedModel:
    """A ``ChatModel`` that gives queued answers in order and remembers what it was asked.

    Args:
        default: what it gives when nothing is queued; without one that is an error.
    """

    def __init__(self, default: Script | None = None) -> None:
        self.requests: list[ModelRequest] = []
        self._default = default
        self._scripts: dict[Purpose | None, deque[Script]] = defaultdict(deque)
        self._open = asyncio.Event()
        self._open.set()
        self._asked = asyncio.Event()

    def enqueue(self, *scripts: Script, purpose: Purpose | None = None) -> None:
        """Add answers for one purpose, or for any; those for the purpose itself go first."""
        self._scripts[purpose].extend(scripts)

    @property
    def queued(self) -> int:
        """How many answers nobody has asked for yet."""
        return sum(len(scripts) for scripts in self._scripts.values())

    def hold(self) -> None:
        """Keep every answer back until ``release``."""
        self._open.clear()

    def release(self) -> None:
        """Let all answers go."""
        self._open.set()

    async def until_asked(self, count: int = 1) -> None:
        """Wait until at least ``count`` requests have come in, answered or not."""
        while len(self.requests) < count:
            self._asked.clear()
            await self._asked.wait()

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Return the next answer for ``request``.

        Raises:
            Exception: whatever was queued to be raised.
            LookupError: nothing is queued, and there is no default.
        """
        self.requests.append(request)
        self._asked.set()
        script = self._next(request)
        await self._open.wait()
        line = script(request) if callable(script) else script
        if isinstance(line, Exception):
            raise line
        return line if isinstance(line, ModelAnswer) else _answer(line, request)

    def _next(self, request: ModelRequest) -> Script:
        for scripts in (self._scripts[request.purpose], self._scripts[None]):
            if scripts:
                return scripts.popleft()
        if self._default is None:
            raise LookupError(
                f"ScriptedModel has no answer queued for {request.purpose!r}: "
                f"enqueue(..., purpose={request.purpose!r}) one, or give a default"
            )
        return self._default


def _answer(text: str, request: ModelRequest) -> ModelAnswer:
    """Return ``text`` as an answer, with counts that grow with the texts."""
    return ModelAnswer(
        text=text,
        finish_reason="stop",
        model=NAME,
        endpoint=NAME,
        prompt_tokens=sum(len(each.content) for each in request.messages),
        completion_tokens=len(text),
    )


def calling(*calls: ToolCall, text: str = "") -> ModelAnswer:
    """Return an answer that wants tools used."""
    return ModelAnswer(text, "tool_calls", NAME, NAME, tool_calls=calls)

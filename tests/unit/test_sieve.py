"""A frame that is no JSON costs nobody the connection."""

from collections import deque
from collections.abc import Mapping
from typing import Any

from nonebot.drivers import Request, WebSocket

from plugins.adapter import Sieve


class ScriptedSocket(WebSocket):
    """A connection whose frames are given beforehand."""

    def __init__(self, *frames: str | bytes) -> None:
        super().__init__(request=Request("GET", "ws://127.0.0.1/"))
        self.frames = deque(frames)
        self.sent: list[str | bytes] = []

    @property
    def closed(self) -> bool:
        return False

    async def accept(self) -> None:
        return None

    async def close(self, code: int = 1000, reason: str = "") -> None:
        return None

    async def receive(self) -> str | bytes:
        return self.frames.popleft()

    async def receive_text(self) -> str:
        return str(self.frames.popleft())

    async def receive_bytes(self) -> bytes:
        return str(self.frames.popleft()).encode()

    async def send_text(self, data: str) -> None:
        self.sent.append(data)

    async def send_bytes(self, data: bytes) -> None:
        self.sent.append(data)


def ignore(event: Mapping[str, Any]) -> None:
    """Begin nothing."""


async def test_only_json_is_let_through():
    socket = ScriptedSocket("x", '{"a":', "[" * 100_000, b"\xff\xfe", '{"echo": "1"}')
    assert await Sieve(socket, ignore).receive() == '{"echo": "1"}'


async def test_events_are_begun_in_their_order_and_kept_back():
    begun: list[Mapping[str, Any]] = []
    socket = ScriptedSocket('{"post_type": "a"}', b'{"post_type": "b", "n": 1}', "[]", "3")
    sieve = Sieve(socket, begun.append)
    assert [await sieve.receive(), await sieve.receive()] == ["[]", "3"]
    assert begun == [{"post_type": "a"}, {"post_type": "b", "n": 1}]


async def test_what_is_sent_goes_out_as_it_is():
    socket = ScriptedSocket()
    await Sieve(socket, ignore).send('{"action": "x"}')
    assert socket.sent == ['{"action": "x"}']

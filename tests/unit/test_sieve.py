"""A frame that is no JSON costs nobody the connection."""

from collections import deque

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


async def test_only_json_is_let_through():
    socket = ScriptedSocket("x", '{"a":', "[" * 100_000, b"\xff\xfe", '{"post_type": "x"}')
    assert await Sieve(socket).receive() == '{"post_type": "x"}'


async def test_what_is_sent_goes_out_as_it_is():
    socket = ScriptedSocket()
    await Sieve(socket).send('{"action": "x"}')
    assert socket.sent == ['{"action": "x"}']

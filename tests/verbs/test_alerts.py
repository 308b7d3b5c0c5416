"""Alerts reach every operator, in QQ and by web hook, and stop nothing when they do not."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bot.alert import alert
from bot.simulate import Disconnect
from tests.verbs.stage import BEAR, BOT, OPERATOR, Stage, open_stage

OPERATORS = frozenset({str(OPERATOR), str(BEAR)})


class Hook:
    """A small HTTP server that keeps what is posted to it."""

    def __init__(self, status: str) -> None:
        self.bodies: list[object] = []
        self.url = ""
        self._status = status

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            int(line.split(":")[1])
            for line in head.splitlines()
            if line.lower().startswith("content-length")
        )
        self.bodies.append(json.loads(await reader.readexactly(length)))
        writer.write(f"HTTP/1.1 {self._status}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def open_hook(status: str = "204 No Content") -> AsyncIterator[Hook]:
    hook = Hook(status)
    server = await asyncio.start_server(hook.answer, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    hook.url = f"http://{host}:{port}/hook"
    async with server:
        yield hook


async def told(stage: Stage) -> set[tuple[str, str]]:
    await stage.advance(10)
    return {(sent.chat.id, sent.text) for sent in stage.sent}


async def test_every_operator_is_told_and_the_web_hook_too(tmp_path: Path):
    async with (
        open_hook() as hook,
        open_stage(tmp_path, superusers=OPERATORS, alert_webhook_url=hook.url) as stage,
    ):
        task = stage.spawn(alert(stage.app, "磁盘快满了。"))
        assert await told(stage) == {(id_, "磁盘快满了。") for id_ in OPERATORS}
        await task
        assert hook.bodies == [{"text": "磁盘快满了。"}]


async def test_in_quiet_hours_only_the_web_hook_is_told(tmp_path: Path):
    async with (
        open_hook() as hook,
        open_stage(tmp_path, alert_webhook_url=hook.url) as stage,
    ):
        await stage.set(quietHours="11:00-13:00")
        await alert(stage.app, "磁盘快满了。")
        assert stage.sent == []
        assert len(hook.bodies) == 1


async def test_a_web_hook_that_fails_keeps_nobody_from_being_told(tmp_path: Path):
    async with (
        open_hook("500 Oops") as hook,
        open_stage(tmp_path, alert_webhook_url=hook.url) as stage,
    ):
        stage.spawn(alert(stage.app, "磁盘快满了。"))
        assert len(await told(stage)) == 1


async def test_a_web_hook_where_nobody_listens_keeps_nobody_from_being_told(tmp_path: Path):
    async with open_hook() as gone:
        url = gone.url
    async with open_stage(tmp_path, alert_webhook_url=url) as stage:
        stage.spawn(alert(stage.app, "磁盘快满了。"))
        assert len(await told(stage)) == 1


async def test_an_operator_who_cannot_be_reached_keeps_no_other_from_being_told(tmp_path: Path):
    async with open_stage(tmp_path, superusers=frozenset({"1", str(OPERATOR)})) as stage:
        stage.spawn(alert(stage.app, "磁盘快满了。"))
        assert await told(stage) == {(str(OPERATOR), "磁盘快满了。")}


async def test_without_a_connected_account_an_alert_is_only_logged(stage: Stage):
    stage.app.accounts.disconnect(str(BOT))
    await alert(stage.app, "磁盘快满了。")
    assert stage.sent == []


async def test_an_alert_that_is_lost_raises_nothing(stage: Stage):
    stage.platform.behave("send_private_msg", Disconnect())
    await alert(stage.app, "磁盘快满了。")
    assert stage.sent == []


async def test_an_alert_is_a_notice_in_the_record_without_its_text(stage: Stage):
    await alert(stage.app, "磁盘快满了。")
    assert await stage.rows("SELECT kind, text, segments FROM messages") == [("notice", "", "[]")]

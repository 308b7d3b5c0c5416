"""The OneBot v11 adapter, made lenient and quick: no event is lost because one field is odd, and
what comes by a socket is stored before NoneBot hears of it, which it does only for other plugins.

NoneBot turns an event with one unexpected field into a bare ``Event``, or drops it, and before it
hands on a message with a quote it asks the client for the quoted one. Here every event keeps its
JSON as it arrived, typed handlers of other plugins see mended fields, and a quote is looked up in
our own store. See ``docs/onebot.md``, "Events".
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Literal

import nonebot
from loguru import logger
from nonebot.adapters import Bot as BaseBot
from nonebot.adapters.onebot.collator import Collator
from nonebot.adapters.onebot.v11 import Adapter as OneBotAdapter
from nonebot.adapters.onebot.v11 import (
    Bot,
    Event,
    FriendRequestEvent,
    GroupMessageEvent,
    GroupRequestEvent,
    Message,
    MessageSegment,
    NoticeEvent,
    PrivateMessageEvent,
    RequestEvent,
)
from nonebot.adapters.onebot.v11.adapter import DEFAULT_MODELS
from nonebot.adapters.onebot.v11.exception import NoLogException
from nonebot.drivers import Driver, WebSocket
from nonebot.matcher import matchers
from pydantic import Field
from typing_extensions import override

from bot.ingest import Ingested
from bot.onebot.segments import read_segments
from plugins.intake import follow_up, is_alone, take_in

_KINDS = {
    "message": "message_type",
    "message_sent": "message_type",
    "notice": "notice_type",
    "request": "request_type",
    "meta_event": "meta_event_type",
}
_MILLISECONDS_FROM = 100_000_000_000


class Quiet:
    """What all our events share: what people wrote does not go to the log.

    NoneBot also formats the whole event for every matcher that looks at it, unless it is short.
    """

    def get_log_string(self) -> str:
        """Say nothing; see ``nonebot.adapters.Event``."""
        raise NoLogException

    def __repr__(self) -> str:
        return type(self).__name__


class QuietEvent(Quiet, Event):
    """Any event of no known kind."""

    raw_event: dict[str, Any]
    """The event's JSON as it arrived."""

    @override
    def get_type(self) -> str:
        # NoneBot looks for commands in whatever calls itself a message.
        return "unknown" if self.post_type == "message" else self.post_type


class QuietGroupMessage(Quiet, GroupMessageEvent):
    """A message in a group, which carries what ingest made of it to those who come later."""

    raw_event: dict[str, Any]
    # Any: pydantic would build a schema from our nouns for what is never validated.
    taken: Any = Field(default=None, exclude=True)
    """An ``Ingested`` that nobody has seen to yet, or ``None``."""


class QuietPrivateMessage(Quiet, PrivateMessageEvent):
    """A message in a private chat, which carries what ingest made of it."""

    raw_event: dict[str, Any]
    taken: Any = Field(default=None, exclude=True)
    """As in a group."""


QuietMessage = QuietGroupMessage | QuietPrivateMessage


class QuietOwnMessage(QuietEvent):
    """A message of the account itself, as clients report it."""

    post_type: Literal["message_sent"]  # pyright: ignore[reportIncompatibleVariableOverride]


class QuietNotice(Quiet, NoticeEvent):
    """A notice that has no model of its own."""

    raw_event: dict[str, Any]


class QuietRequest(Quiet, RequestEvent):
    """A request that has no model of its own."""

    raw_event: dict[str, Any]


class QuietFriendRequest(Quiet, FriendRequestEvent):
    """A friend request."""

    raw_event: dict[str, Any]


class QuietGroupRequest(Quiet, GroupRequestEvent):
    """A request to join, or an invitation."""

    raw_event: dict[str, Any]


class Sieve(WebSocket):
    """A connection that lets only JSON through, and keeps the events back.

    NoneBot closes the connection on a frame that is no JSON, and the account is away until the
    client comes back.

    Args:
        socket: the connection.
        begin: given each event as soon as it is there.
    """

    def __init__(self, socket: WebSocket, begin: Callable[[Mapping[str, Any]], None]) -> None:
        super().__init__(request=socket.request)
        self._socket = socket
        self._begin = begin

    @property
    @override
    def closed(self) -> bool:
        return self._socket.closed

    @override
    async def accept(self) -> None:
        await self._socket.accept()

    @override
    async def close(self, code: int = 1000, reason: str = "") -> None:
        await self._socket.close(code, reason)

    @override
    async def receive(self) -> str | bytes:
        while True:
            frame = await self._socket.receive()
            try:
                read = json.loads(frame)
            except (ValueError, RecursionError) as error:
                logger.warning(
                    "a frame of {} bytes is no JSON and is left out: {}", len(frame), error
                )
                continue
            if not isinstance(read, dict) or "post_type" not in read:
                return frame
            self._begin(read)

    @override
    async def receive_text(self) -> str:
        return await self._socket.receive_text()

    @override
    async def receive_bytes(self) -> bytes:
        return await self._socket.receive_bytes()

    @override
    async def send_text(self, data: str) -> None:
        await self._socket.send_text(data)

    @override
    async def send_bytes(self, data: bytes) -> None:
        await self._socket.send_bytes(data)


class Adapter(OneBotAdapter):
    """The adapter to register instead of NoneBot's own."""

    # Its own table of models: others may use NoneBot's adapter in the same process.
    event_models = Collator(
        "OneBot V11",
        [
            *DEFAULT_MODELS,
            QuietEvent,
            QuietGroupMessage,
            QuietPrivateMessage,
            QuietOwnMessage,
            QuietNotice,
            QuietRequest,
            QuietFriendRequest,
            QuietGroupRequest,
        ],
        (
            "post_type",
            ("message_type", "notice_type", "request_type", "meta_event_type"),
            "sub_type",
        ),
    )

    @override
    def __init__(self, driver: Driver, **kwargs: Any) -> None:
        super().__init__(driver, **kwargs)
        # The event loop itself does not hold its tasks.
        self._dispatches: set[asyncio.Task[None]] = set()

    @override
    async def _handle_ws(self, websocket: WebSocket) -> None:
        self_id = websocket.request.headers.get("x-self-id", "")
        await super()._handle_ws(Sieve(websocket, partial(self._begin, self_id)))

    @classmethod
    @override
    def json_to_event(cls, json_data: Any) -> Event | None:
        if isinstance(json_data, dict) and "post_type" in json_data:
            return super().json_to_event(mended(json_data))
        return super().json_to_event(json_data)

    def _begin(self, self_id: str, raw: Mapping[str, Any]) -> None:
        # Now: it may be gone once the event is stored.
        dispatch = asyncio.create_task(self._dispatched(self.bots.get(self_id), raw))
        self._dispatches.add(dispatch)
        dispatch.add_done_callback(self._dispatches.discard)

    async def _dispatched(self, bot: BaseBot | None, raw: Mapping[str, Any]) -> None:
        """Store an event, then answer it, or let NoneBot show it to all who listen."""
        try:
            taken = await take_in(raw)
            event = None if is_alone(_listeners()) else self._shown(raw, taken)
            if event is not None and isinstance(bot, Bot):
                await bot.handle_event(event)
            elif taken is not None:
                await follow_up(taken)
        except Exception as error:
            # As NoneBot does where a handler fails: one event must not end the connection.
            logger.opt(exception=True).error("an event was not seen to: {}", type(error).__name__)

    def _shown(self, raw: Mapping[str, Any], taken: Ingested | None) -> Event | None:
        """Return an event as other plugins see it; none if it is a message that NoneBot cannot read
        as one, for then nobody would answer it."""
        event = self.json_to_event(raw)
        if event is not None:
            # Models keep it like any field that they do not know.
            event.is_taken = True  # pyright: ignore[reportAttributeAccessIssue]
        if isinstance(event, QuietMessage):
            event.taken = taken
        elif taken is not None:
            return None
        return event


def _listeners() -> Iterator[str | None]:
    """Yield the modules of all plugins and matchers that NoneBot knows."""
    for plugin in nonebot.get_loaded_plugins():
        yield plugin.module_name
    for of_priority in matchers.values():
        for matcher in of_priority:
            yield matcher.module_name


def mended(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event that NoneBot's models accept, with ``raw`` itself as ``raw_event``."""
    post_type = str(raw["post_type"])
    kind = _KINDS.get(post_type)
    others = {name for name in _KINDS.values() if name != kind}
    event = {key: value for key, value in raw.items() if key not in others}
    event |= {
        "post_type": post_type,
        "time": _seconds(raw.get("time")),
        "self_id": _integer(raw.get("self_id")),
        "raw_event": dict(raw),
        "is_taken": False,
        "taken": None,
    }
    if kind and (not isinstance(event.get(kind), str) or not event[kind]):
        event.pop(kind, None)
        event.pop("sub_type", None)
    elif not isinstance(event.get("sub_type"), str):
        event.pop("sub_type", None)
    for name in ("user_id", "group_id", "message_id", "operator_id", "target_id"):
        if name in event:
            event[name] = _integer(event[name])
    # One that says not what it is stays bare: NoneBot has no model for a half-typed event.
    is_message = post_type == "message" and "message_type" in event
    return event | _mended_message(raw) if is_message else event


def _mended_message(raw: Mapping[str, Any]) -> dict[str, Any]:
    segments = read_segments(raw.get("message"), raw.get("raw_message"))
    anonymous = raw.get("anonymous")
    return {
        # Without the quote: NoneBot would ask the client for it before anyone sees the message.
        # Built here: from JSON it would make a schema for every segment, twice.
        "message": Message(
            [MessageSegment(s.type, dict(s.data)) for s in segments if s.type != "reply"]
        ),
        "raw_message": str(raw.get("raw_message") or ""),
        "message_id": _integer(raw.get("message_id")),
        "user_id": _integer(raw.get("user_id")),
        "sub_type": str(raw.get("sub_type") or "normal"),
        "font": _integer(raw.get("font")),
        "sender": _sender(raw.get("sender")),
        "anonymous": anonymous if _is_anonymous(anonymous) else None,
    }


def _sender(raw: object) -> dict[str, Any]:
    if not isinstance(raw, Mapping):
        return {}
    texts = {
        name: str(raw[name])
        for name in ("nickname", "sex", "card", "area", "level", "role", "title")
        if isinstance(raw.get(name), str | int)
    }
    return {**texts, "user_id": _integer(raw.get("user_id")), "age": _integer(raw.get("age"))}


def _is_anonymous(raw: object) -> bool:
    return (
        isinstance(raw, Mapping)
        and isinstance(raw.get("id"), int)
        and all(isinstance(raw.get(name), str) for name in ("name", "flag"))
    )


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return 0
    try:
        return int(value)
    except (ValueError, OverflowError):
        return 0


def _seconds(value: object) -> int:
    moment = _integer(value)
    return moment // 1000 if moment > _MILLISECONDS_FROM else moment

"""Raw OneBot v11 events as frozen nouns: ``read_event`` is the way in.

What arrives and what becomes of it is told in ``docs/onebot.md``, "Events".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from zoneinfo import ZoneInfo

from bot.errors import EventError
from bot.model import Message
from bot.onebot.envelope import Envelope, open_envelope
from bot.onebot.messages import read_message
from bot.onebot.notices import (
    FAR_FUTURE,
    AccountOffline,
    AdminChanged,
    BotJoined,
    BotRemoved,
    CardChanged,
    FriendAdded,
    GroupRenamed,
    Ignored,
    MemberJoined,
    MemberLeft,
    Muted,
    Notice,
    Recalled,
    TitleChanged,
    read_notice,
)
from bot.onebot.values import MAX_NAME_CHARS, name_text

__all__ = [
    "FAR_FUTURE",
    "AccountOffline",
    "AdminChanged",
    "BotJoined",
    "BotRemoved",
    "CardChanged",
    "Connected",
    "Event",
    "FriendAdded",
    "GroupRenamed",
    "Ignored",
    "MemberJoined",
    "MemberLeft",
    "MessageArrived",
    "Muted",
    "Notice",
    "Recalled",
    "RequestArrived",
    "TitleChanged",
    "read_event",
]

MAX_FLAG_CHARS = 512

RequestKind = Literal["friend", "group_add", "group_invite"]


@dataclass(frozen=True, slots=True)
class MessageArrived:
    """Someone, or the bot, said something."""

    message: Message
    group_name: str = ""
    """The group's name where the event carries it, raw."""


@dataclass(frozen=True, slots=True)
class RequestArrived:
    """Someone asks for something that only an operator may grant."""

    bot_id: str
    kind: RequestKind
    flag: str
    """What the platform wants back with the answer."""
    user_id: str
    """Who asks or invites."""
    group_id: str
    """``""`` for a friend request."""
    comment: str


@dataclass(frozen=True, slots=True)
class Connected:
    """A client has connected for this account."""

    bot_id: str


Event = MessageArrived | RequestArrived | Connected | Notice


def read_event(raw: Mapping[str, object], *, received_at: int, zone: ZoneInfo) -> Event:
    """Read one event as it arrived, however oddly its fields are typed.

    Args:
        raw: the event's JSON object. Messages from history have no ``self_id``; add it.
        received_at: UTC milliseconds; stands in for a time that is missing or impossible.
        zone: where the local day of a message is reckoned.

    Raises:
        EventError: it cannot be read at all; its text names the cause.
    """
    envelope = open_envelope(raw, received_at)
    match envelope.post_type:
        case "message" | "message_sent":
            return _message(envelope, zone)
        case "notice":
            return read_notice(envelope)
        case "request":
            return _request(envelope)
        case "meta_event":
            return _meta(envelope)
        case "":
            raise EventError("event: no usable post_type")
        case _:
            return Ignored(envelope.kind)


def _message(envelope: Envelope, zone: ZoneInfo) -> MessageArrived | Ignored:
    if envelope.word("message_type") not in ("group", "private", ""):
        return Ignored(envelope.kind)
    message = read_message(envelope, zone)
    if message is None:
        return Ignored(f"{envelope.kind} is empty")
    return MessageArrived(message, envelope.word("group_name") if message.chat.is_group else "")


def _request(envelope: Envelope) -> RequestArrived | Ignored:
    match envelope.word("request_type"), envelope.word("sub_type"):
        case "friend", _:
            return _request_of(envelope, "friend", "")
        case "group", "add":
            return _request_of(envelope, "group_add", envelope.group().id)
        case "group", "invite":
            return _request_of(envelope, "group_invite", envelope.group().id)
        case _:
            return Ignored(envelope.kind)


def _request_of(envelope: Envelope, kind: RequestKind, group_id: str) -> RequestArrived:
    flag = name_text(envelope.raw.get("flag"), MAX_FLAG_CHARS)
    if not flag:
        raise EventError(f"{envelope.kind}: no usable flag")
    comment = name_text(envelope.raw.get("comment"), MAX_NAME_CHARS)
    return RequestArrived(
        envelope.bot_id, kind, flag, envelope.account("user_id"), group_id, comment
    )


def _meta(envelope: Envelope) -> Connected | Ignored:
    is_connect = (envelope.word("meta_event_type"), envelope.word("sub_type")) == (
        "lifecycle",
        "connect",
    )
    return Connected(envelope.bot_id) if is_connect else Ignored(envelope.kind)

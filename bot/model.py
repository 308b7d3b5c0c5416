"""Frozen nouns shared by every room. Words are those of ``docs/architecture.md``, "Words".

Ids of accounts, people, groups and platform messages are text: platforms send them as
numbers or strings, negative or reused, and nothing here calculates with them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

ChatKind = Literal["group", "private"]
Direction = Literal["inbound", "outbound"]
MessageKind = Literal["chat", "command", "notice"]
Role = Literal["owner", "admin", "member", ""]

EVERYONE = "all"
"""The mention id of ``@全体成员``."""

ANONYMOUS_ID = "80000000"
"""The sender id that QQ gives to every anonymous speaker."""


@dataclass(frozen=True, slots=True)
class Chat:
    """Where messages come from: one group or one private conversation of one bot account."""

    bot_id: str
    kind: ChatKind
    id: str
    """The group's id, or the other person's user id."""

    @property
    def is_group(self) -> bool:
        """Whether this is a group."""
        return self.kind == "group"

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"


@dataclass(frozen=True, slots=True)
class Member:
    """A stable sender. Names are display only and never identify anyone."""

    bot_id: str
    user_id: str


@dataclass(frozen=True, slots=True)
class Segment:
    """One piece of a OneBot message; ``data`` is JSON as it arrived."""

    type: str
    data: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the OneBot array form of this segment."""
        return {"type": self.type, "data": dict(self.data)}


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sent a message, with the display data that the event carried (each may be empty)."""

    user_id: str
    nickname: str = ""
    card: str = ""
    role: Role = ""
    title: str = ""
    anonymous: bool = False

    @property
    def display_name(self) -> str:
        """The name to show, raw: card, else nickname, else the id."""
        return self.card or self.nickname or self.user_id


@dataclass(frozen=True, slots=True)
class Message:
    """A message as read from an event, before or after it is stored."""

    chat: Chat
    platform_id: str
    sender: Sender
    direction: Direction
    sent_at: int
    """UTC milliseconds."""
    received_at: int
    """UTC milliseconds."""
    local_date: str
    """The local day of ``sent_at``, ``YYYY-MM-DD``."""
    segments: tuple[Segment, ...]
    text: str
    """The readable rendering of ``segments``."""
    sequence: int | None = None
    """The platform's order within the chat, where it gives one."""
    reply_to: str | None = None
    """The platform id of the quoted message."""
    mentions: tuple[str, ...] = ()
    """User ids mentioned by ``at`` segments, ``EVERYONE`` included."""
    kind: MessageKind = "chat"
    temporary_group: str | None = None
    """For a temporary session, the group it was opened from."""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A durable message: its row and what happened to it since."""

    row_id: int
    message: Message
    recalled_at: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What one model call cost; the numbers are the provider's own."""

    purpose: str
    model: str
    endpoint: str
    at: int
    """UTC milliseconds at the end of the call."""
    duration_ms: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    ok: bool
    error: str = ""
    chat: Chat | None = None


TurnPart = Literal["context", "quote", "question", "answer"]
TurnEnding = Literal["sent", "silent", "failed"]


@dataclass(frozen=True, slots=True)
class TurnLine:
    """One line that a turn put into the conversation, and the message row that it shows."""

    message_id: int | None
    part: TurnPart
    text: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn as it stands in the conversation of a chat."""

    id: int
    user_id: str
    """Who was answered."""
    asked_at: int
    """UTC milliseconds at which the first message of the question arrived."""
    answered_at: int
    """UTC milliseconds."""
    third_party: bool
    """Somebody else spoke between the turn before and this one."""
    context_until: int
    """The newest message row that the turn showed."""
    lines: tuple[TurnLine, ...]

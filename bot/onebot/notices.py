"""Notices as nouns: what happened to messages, names, membership and the account.

See ``docs/onebot.md``, "Events". Times are UTC milliseconds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from bot.errors import EventError
from bot.model import Chat
from bot.onebot.envelope import Envelope
from bot.onebot.values import account_text, integer, name_text

FAR_FUTURE = 253_370_764_800_000
"""9999-01-01 in UTC milliseconds: the end of a mute that has none."""

LONGEST_MUTE_SECONDS = 30 * 86_400
"""The longest that QQ mutes one person; used where a client does not say how long."""

LeaveKind = Literal["leave", "kick"]
RemovalReason = Literal["leave", "kick_me", "disband"]


@dataclass(frozen=True, slots=True)
class Recalled:
    """A message was taken back. It may come twice, or before its message."""

    chat: Chat
    """For a message of the bot taken back in a private chat some clients do not say in which:
    then its ``id`` is ``""`` and the newest outbound private message with that id is meant."""
    platform_id: str
    author_id: str
    """``""`` if not known."""
    operator_id: str
    """Who took it back; ``""`` if not known."""
    at: int


@dataclass(frozen=True, slots=True)
class CardChanged:
    """A member's group card was seen to be another; ``""`` means that they have none."""

    chat: Chat
    user_id: str
    card: str


@dataclass(frozen=True, slots=True)
class TitleChanged:
    """A member got another special title."""

    chat: Chat
    user_id: str
    title: str


@dataclass(frozen=True, slots=True)
class MemberJoined:
    """Someone else than the bot came into a group."""

    chat: Chat
    user_id: str
    at: int


@dataclass(frozen=True, slots=True)
class MemberLeft:
    """Someone else than the bot left a group or was removed from it."""

    chat: Chat
    user_id: str
    kind: LeaveKind
    at: int


@dataclass(frozen=True, slots=True)
class AdminChanged:
    """Someone (perhaps the bot) became an admin of a group or ceased to be one."""

    chat: Chat
    user_id: str
    is_admin: bool


@dataclass(frozen=True, slots=True)
class BotRemoved:
    """The bot is in the group no more."""

    chat: Chat
    reason: RemovalReason
    at: int


@dataclass(frozen=True, slots=True)
class BotJoined:
    """The bot came into a group."""

    chat: Chat
    at: int


@dataclass(frozen=True, slots=True)
class Muted:
    """Someone, or with ``user_id`` ``""`` the whole group, may not speak for a while."""

    chat: Chat
    user_id: str
    until: int | None
    """``None``: they may speak again. ``FAR_FUTURE``: until it is lifted."""


@dataclass(frozen=True, slots=True)
class GroupRenamed:
    """A group has another name."""

    chat: Chat
    name: str


@dataclass(frozen=True, slots=True)
class FriendAdded:
    """Someone is a friend of the bot from now on."""

    bot_id: str
    user_id: str


@dataclass(frozen=True, slots=True)
class AccountOffline:
    """QQ signed the account out, while the client's connection stays up."""

    bot_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """Nothing to do; ``reason`` is one short line for the log."""

    reason: str


Notice = (
    Recalled
    | CardChanged
    | TitleChanged
    | MemberJoined
    | MemberLeft
    | AdminChanged
    | BotRemoved
    | BotJoined
    | Muted
    | GroupRenamed
    | FriendAdded
    | AccountOffline
    | Ignored
)


def read_notice(envelope: Envelope) -> Notice:
    """Return what a ``notice`` event says; one that is not known is ``Ignored``.

    Raises:
        EventError: a known notice lacks the ids that it is about.
    """
    reader = _READERS.get(envelope.word("notice_type"), _ignored)
    return reader(envelope)


def _ignored(envelope: Envelope) -> Ignored:
    return Ignored(envelope.kind)


def _group_recall(envelope: Envelope) -> Recalled:
    chat = envelope.group()
    return _recall(envelope, chat, envelope.account("operator_id"))


def _friend_recall(envelope: Envelope) -> Recalled:
    author = envelope.needed_account("user_id")
    peer = envelope.account("target_id") if envelope.is_self(author) else author
    chat = Chat(envelope.bot_id, "private", peer)
    return _recall(envelope, chat, envelope.account("operator_id") or author)


def _recall(envelope: Envelope, chat: Chat, operator_id: str) -> Recalled:
    platform_id = account_text(envelope.raw.get("message_id"))
    if not platform_id:
        raise EventError(f"{envelope.kind}: no usable message_id")
    return Recalled(chat, platform_id, envelope.account("user_id"), operator_id, envelope.at)


def _card(envelope: Envelope) -> CardChanged | Ignored:
    if "card_new" not in envelope.raw:
        return Ignored("notice/group_card without card_new")
    user_id = envelope.needed_account("user_id")
    return CardChanged(envelope.group(), user_id, envelope.word("card_new"))


def _increase(envelope: Envelope) -> MemberJoined | BotJoined:
    user_id = envelope.needed_account("user_id")
    if envelope.is_self(user_id):
        return BotJoined(envelope.group(), envelope.at)
    return MemberJoined(envelope.group(), user_id, envelope.at)


def _decrease(envelope: Envelope) -> MemberLeft | BotRemoved:
    kind = envelope.word("sub_type")
    if kind == "disband":
        return _dismiss(envelope)
    kicked = kind in ("kick", "kick_me")
    if kind == "kick_me" or envelope.is_self(envelope.account("user_id")):
        return BotRemoved(envelope.group(), "kick_me" if kicked else "leave", envelope.at)
    user_id = envelope.needed_account("user_id")
    return MemberLeft(envelope.group(), user_id, "kick" if kicked else "leave", envelope.at)


def _dismiss(envelope: Envelope) -> BotRemoved:
    return BotRemoved(envelope.group(), "disband", envelope.at)


def _admin(envelope: Envelope) -> AdminChanged | Ignored:
    change = envelope.word("sub_type")
    if change not in ("set", "unset"):
        return _ignored(envelope)
    return AdminChanged(envelope.group(), envelope.needed_account("user_id"), change == "set")


def _ban(envelope: Envelope) -> Muted | Ignored:
    change = envelope.word("sub_type")
    if change not in ("ban", "lift_ban"):
        return _ignored(envelope)
    user_id = envelope.account("user_id")
    until = _mute_end(envelope, user_id) if change == "ban" else None
    return Muted(envelope.group(), user_id, until)


def _mute_end(envelope: Envelope, user_id: str) -> int | None:
    """Return the end of a mute; 0 seconds lift that of a person, but not that of a group."""
    seconds = integer(envelope.raw.get("duration"))
    if not user_id and (seconds is None or seconds <= 0):
        return FAR_FUTURE
    if seconds == 0:
        return None
    if seconds is None or seconds < 0:
        seconds = LONGEST_MUTE_SECONDS
    return min(envelope.at + seconds * 1000, FAR_FUTURE)


def _friend_add(envelope: Envelope) -> FriendAdded:
    return FriendAdded(envelope.bot_id, envelope.needed_account("user_id"))


def _offline(envelope: Envelope) -> AccountOffline:
    return AccountOffline(envelope.bot_id, envelope.word("message") or envelope.word("tag"))


def _notify(envelope: Envelope) -> Notice:
    reader = _NOTIFY_READERS.get(envelope.word("sub_type"), _ignored)
    return reader(envelope)


def _title(envelope: Envelope) -> TitleChanged | Ignored:
    if "title" not in envelope.raw:
        return Ignored("notice/notify/title without title")
    user_id = envelope.needed_account("user_id")
    return TitleChanged(envelope.group(), user_id, envelope.word("title"))


def _group_name(envelope: Envelope) -> GroupRenamed | Ignored:
    names = (name_text(envelope.raw.get(key)) for key in ("name_new", "group_name", "name"))
    name = next(filter(None, names), "")
    return GroupRenamed(envelope.group(), name) if name else Ignored(f"{envelope.kind} unnamed")


_READERS: Mapping[str, Callable[[Envelope], Notice]] = MappingProxyType(
    {
        "group_recall": _group_recall,
        "friend_recall": _friend_recall,
        "group_card": _card,
        "group_increase": _increase,
        "group_decrease": _decrease,
        "group_dismiss": _dismiss,
        "group_admin": _admin,
        "group_ban": _ban,
        "friend_add": _friend_add,
        "bot_offline": _offline,
        "notify": _notify,
    }
)
_NOTIFY_READERS: Mapping[str, Callable[[Envelope], Notice]] = MappingProxyType(
    {"title": _title, "group_name": _group_name}
)

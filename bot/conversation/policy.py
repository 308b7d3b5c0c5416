"""Whether a message is kept, and whether it is answered: pure decisions with their reasons.

See ``docs/architecture.md``, "Access" and "Replies".
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from bot.model import Message

FRESH_MS = 60_000
"""An older message is stored and never answered."""

GroupAccess = Literal["all", "approved"]
PrivateAccess = Literal["friends", "none", "list", "all"]
ReplyMode = Literal["mention", "auto", "silent"]

NOT_ADDRESSED = "not addressed"

Answering = Literal["reply", "consider", "ignore"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to answer a message, and why."""

    answering: Answering
    """``consider`` is for messages that nobody addressed to the bot, in mode ``auto``."""
    reason: str

    @property
    def may_follow(self) -> bool:
        """Whether the message, though not addressed to the bot, may go with one that is."""
        return self.reason in (NOT_ADDRESSED, "auto")


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of a message besides its text."""

    is_new: bool
    recalled: bool
    from_bot: bool
    """Sent by one of the accounts of this store, or a known bot."""
    blocked: bool
    muted: bool
    removed: bool
    quotes_bot: bool
    is_blank: bool = False
    """Its sender has opted out and did not address the bot."""


def is_admitted(
    message: Message,
    access: str,
    *,
    group_access: GroupAccess,
    private_access: PrivateAccess,
    is_operator: bool,
) -> bool:
    """Whether a message may be recorded at all.

    Args:
        message: from a friend, a temporary session or a group.
        access: the chat's own switch: ``enabled``, ``disabled`` or ``""``.
        group_access: the general rule for groups.
        private_access: the general rule for private chats.
        is_operator: the sender is a SUPERUSER.
    """
    if access == "disabled":
        return False
    if message.chat.is_group:
        return access == "enabled" or group_access == "all"
    if is_operator or private_access == "all":
        return True
    if access == "enabled":
        return private_access != "none"
    return private_access == "friends" and message.temporary_group is None


def is_addressed(message: Message, quotes_bot: bool, nicknames: Collection[str]) -> bool:
    """Whether a message speaks to the bot, decided from our own data.

    An @ of the bot anywhere, a quote of one of its messages unless others are @-ed instead, or
    one of its nicknames at the start. ``@全体成员`` is none of these.
    """
    if not message.chat.is_group or message.chat.bot_id in message.mentions:
        return True
    if quotes_bot and not message.mentions:
        return True
    return _starts_with_name(message, nicknames)


def is_kept_for_turn(message: Message, quotes_bot: bool, nicknames: Collection[str]) -> bool:
    """Whether a message of somebody who has opted out has its text for a turn that answers it.

    See ``docs/memory.md``, "Opting out". A command is done, and nothing of it is kept.
    """
    is_fresh = message.received_at - message.sent_at <= FRESH_MS
    return message.kind == "chat" and is_fresh and is_addressed(message, quotes_bot, nicknames)


def _starts_with_name(message: Message, nicknames: Collection[str]) -> bool:
    spoken = [segment for segment in message.segments if segment.type != "reply"]
    if not spoken or spoken[0].type != "text":
        return False
    text = str(spoken[0].data.get("text", "")).lstrip().casefold()
    return any(name and text.startswith(name.casefold()) for name in nicknames)


def should_reply(
    message: Message,
    standing: Standing,
    mode: ReplyMode,
    nicknames: Collection[str],
    now: int,
) -> Verdict:
    """Decide whether a stored message gets an answer; ``now`` is UTC milliseconds.

    ``mode`` is for groups: in a private chat the bot always answers.
    """
    if reason := _never(message, standing, mode, now):
        return Verdict("ignore", reason)
    if is_addressed(message, standing.quotes_bot, nicknames):
        return Verdict("reply", "addressed")
    return Verdict("consider", "auto") if mode == "auto" else Verdict("ignore", NOT_ADDRESSED)


def _never(message: Message, standing: Standing, mode: ReplyMode, now: int) -> str:
    reasons = {
        "the bot's own": message.direction == "outbound",
        "a command": message.kind != "chat",
        "seen before": not standing.is_new,
        "recalled": standing.recalled,
        "not recorded": standing.is_blank,
        "from a bot": standing.from_bot,
        "from somebody blocked": standing.blocked,
        "muted": standing.muted,
        "no longer in the chat": standing.removed,
        "mode silent": mode == "silent" and message.chat.is_group,
        "too old": now - message.sent_at > FRESH_MS,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")

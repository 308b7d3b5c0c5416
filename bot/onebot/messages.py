"""Message events as ``Message`` nouns; see ``docs/onebot.md``, "Messages"."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from zoneinfo import ZoneInfo

from bot.clock import local_date
from bot.errors import EventError
from bot.model import ANONYMOUS_ID, EVERYONE, Chat, Direction, Message, Role, Segment, Sender
from bot.onebot.envelope import Envelope
from bot.onebot.render import render
from bot.onebot.segments import read_segments
from bot.onebot.values import account_text, id_text, integer, mapping, name_text, plain

_LARGEST_SEQUENCE = 2**31 - 1
_ROLES: dict[str, Role] = {"owner": "owner", "admin": "admin", "member": "member"}
_TEMPORARY = frozenset({"group", "group_self"})


def read_message(envelope: Envelope, zone: ZoneInfo) -> Message | None:
    """Return the message of a ``message`` or ``message_sent`` event; ``None`` if it is empty.

    ``text`` is rendered without a table of names; see ``render.unnamed_mentions``.

    Raises:
        EventError: it is of no group and of no private chat.
    """
    raw = envelope.raw
    segments = read_segments(raw.get("message"), raw.get("raw_message"))
    direction = _direction(envelope)
    chat = _chat(envelope, direction)
    if not segments:
        return None
    return Message(
        chat=chat,
        platform_id=_platform_id(envelope),
        sender=_sender(envelope, direction),
        direction=direction,
        sent_at=envelope.at,
        received_at=envelope.received_at,
        local_date=local_date(envelope.at, zone),
        segments=segments,
        text=render(segments, {}),
        sequence=_sequence(envelope),
        reply_to=_reply_to(segments),
        mentions=_mentions(segments),
        temporary_group=_temporary_group(envelope),
    )


def _author(envelope: Envelope) -> str:
    return envelope.account("user_id") or account_text(envelope.sender.get("user_id"))


def _direction(envelope: Envelope) -> Direction:
    by_bot = envelope.post_type == "message_sent" or envelope.is_self(_author(envelope))
    return "outbound" if by_bot else "inbound"


def _chat(envelope: Envelope, direction: Direction) -> Chat:
    """Return the chat, by ``message_type`` alone: a private message may carry a ``group_id``."""
    match envelope.word("message_type"):
        case "group":
            return envelope.group(*(["target_id"] if direction == "outbound" else []))
        case "private":
            peer = _receiver(envelope) if direction == "outbound" else _author(envelope)
        case other:
            raise EventError(f"message: message_type {other!r} is neither group nor private")
    if not peer:
        raise EventError("message/private: no id of the other person")
    return Chat(envelope.bot_id, "private", peer)


def _receiver(envelope: Envelope) -> str:
    """Return whom a private message of the bot went to; some clients put them in ``user_id``."""
    author = envelope.account("user_id")
    return envelope.account("target_id") or ("" if envelope.is_self(author) else author)


def _platform_id(envelope: Envelope) -> str:
    """Return the message's id; without one, a digest that is the same when it comes again."""
    message_id = account_text(envelope.raw.get("message_id"))
    if message_id:
        return message_id
    canonical = json.dumps(plain(envelope.raw), sort_keys=True, separators=(",", ":"))
    return f"x{hashlib.sha1(canonical.encode(), usedforsecurity=False).hexdigest()[:24]}"


def _sender(envelope: Envelope, direction: Direction) -> Sender:
    """Return who sent it. A sender without an id is anonymous: stored, but nobody's memory."""
    raw_sender = envelope.sender
    anonymous = envelope.raw.get("anonymous")
    user_id = envelope.bot_id if direction == "outbound" else _author(envelope) or ANONYMOUS_ID
    return Sender(
        user_id=user_id,
        nickname=name_text(raw_sender.get("nickname")) or name_text(mapping(anonymous).get("name")),
        card=name_text(raw_sender.get("card")),
        role=_ROLES.get(name_text(raw_sender.get("role")), ""),
        title=name_text(raw_sender.get("title")),
        anonymous=direction == "inbound"
        and (
            user_id == ANONYMOUS_ID
            or isinstance(anonymous, Mapping)
            or envelope.word("sub_type") == "anonymous"
        ),
    )


def _sequence(envelope: Envelope) -> int | None:
    """Return the order in the chat: ``real_seq``, or a ``message_seq`` that is not the id."""
    raw = envelope.raw
    real = _plausible(raw.get("real_seq"))
    if real is not None:
        return real
    sequence = _plausible(raw.get("message_seq"))
    return None if sequence == integer(raw.get("message_id")) else sequence


def _plausible(value: object) -> int | None:
    sequence = integer(value)
    return sequence if sequence is not None and 0 < sequence <= _LARGEST_SEQUENCE else None


def _reply_to(segments: Iterable[Segment]) -> str | None:
    ids = (id_text(segment.data.get("id")) for segment in segments if segment.type == "reply")
    return next(filter(None, ids), None)


def _mentions(segments: Iterable[Segment]) -> tuple[str, ...]:
    ids = (account_text(segment.data.get("qq")) for segment in segments if segment.type == "at")
    known = (EVERYONE if id_.lower() == EVERYONE else id_ for id_ in ids if id_)
    return tuple(dict.fromkeys(known))


def _temporary_group(envelope: Envelope) -> str | None:
    """Return the group a temporary session was opened from; ``""`` if the client hides it."""
    is_private = envelope.word("message_type") == "private"
    if not is_private or envelope.word("sub_type") not in _TEMPORARY:
        return None
    return envelope.account("group_id") or account_text(envelope.sender.get("group_id"))

"""Builders of raw OneBot v11 events, as they go over the wire (``docs/onebot.md``, "Events").

Moments are given as UTC milliseconds (``at``) and written in seconds. Every builder takes
further fields by name, which win over its own, so that a test can ask for any oddity; the
oddities that are known from the field are at the end of this module, and in ``BROKEN``.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from bot.simulate import cq
from bot.simulate.segments import RawSegment, at_all, reply, text
from bot.simulate.world import Person, Utterance

RawEvent = dict[str, Any]
"""One event, JSON as it goes over the wire."""

Damage = Callable[[RawEvent], RawEvent]
"""Makes a deviating copy of an event."""


def _event(self_id: int, at: int, post_type: str) -> RawEvent:
    return {"self_id": self_id, "time": at // 1000, "post_type": post_type}


# Messages


def group_message(
    self_id: int,
    group_id: int,
    sender: Person,
    message: Sequence[RawSegment],
    *,
    message_id: int,
    at: int,
    real_seq: str = "1",
    group_name: str = "测试群",
    string_format: bool = False,
    **fields: Any,
) -> RawEvent:
    """Return a message in a group, in the array or the string (CQ) format."""
    return {
        **_event(self_id, at, "message"),
        "message_type": "group",
        "sub_type": "normal",
        "user_id": sender.user_id,
        "group_id": group_id,
        "group_name": group_name,
        "sender": _group_sender(sender),
        **_ids(message_id, real_seq),
        **_body(message, string_format),
        **fields,
    }


def private_message(
    self_id: int,
    sender: Person,
    message: Sequence[RawSegment],
    *,
    message_id: int,
    at: int,
    real_seq: str = "1",
    temporary_group: int | None = None,
    string_format: bool = False,
    **fields: Any,
) -> RawEvent:
    """Return a message of a friend, or of a temporary session, which carries a group id."""
    return {
        **_event(self_id, at, "message"),
        "message_type": "private",
        "sub_type": "friend" if temporary_group is None else "group",
        "user_id": sender.user_id,
        "sender": _private_sender(sender),
        **_temporary(temporary_group),
        **_ids(message_id, real_seq),
        **_body(message, string_format),
        **fields,
    }


def message_sent(message: RawEvent, target_id: int) -> RawEvent:
    """Return what reports a message of the bot account itself to the group or person named."""
    return {
        **message,
        "post_type": "message_sent",
        "message_sent_type": "self",
        "target_id": target_id,
    }


def of_utterance(
    account: Person,
    spoken: Utterance,
    *,
    group_name: str = "测试群",
    string_format: bool = False,
) -> RawEvent:
    """Return the event that reports a message of the world to its account."""
    message = _message_of(account, spoken, group_name, string_format)
    if spoken.sender.user_id != account.user_id:
        return message
    return message_sent(message, int(spoken.chat.id))


def _message_of(
    account: Person, spoken: Utterance, group_name: str, string_format: bool
) -> RawEvent:
    common: dict[str, Any] = {
        "message_id": spoken.message_id,
        "at": spoken.at,
        "real_seq": spoken.real_seq,
        "string_format": string_format,
    }
    if spoken.chat.is_group:
        common["group_name"] = group_name
        return group_message(
            account.user_id, int(spoken.chat.id), spoken.sender, spoken.segments, **common
        )
    common["temporary_group"] = spoken.temporary_group
    return private_message(account.user_id, spoken.sender, spoken.segments, **common)


def _ids(message_id: int, real_seq: str) -> RawEvent:
    return {
        "message_id": message_id,
        "message_seq": message_id,
        "real_id": message_id,
        "real_seq": real_seq,
    }


def _body(message: Sequence[RawSegment], string_format: bool) -> RawEvent:
    written = cq.encode(message)
    return {
        "message": written if string_format else list(message),
        "raw_message": written,
        "message_format": "string" if string_format else "array",
        "font": 14,
    }


def _group_sender(sender: Person) -> RawEvent:
    return {
        "user_id": sender.user_id,
        "nickname": sender.nickname,
        "card": sender.card,
        "role": sender.role,
        "title": sender.title,
        "level": sender.level,
    }


def _private_sender(sender: Person) -> RawEvent:
    return {"user_id": sender.user_id, "nickname": sender.nickname, "card": ""}


def _temporary(group_id: int | None) -> RawEvent:
    return {} if group_id is None else {"group_id": group_id, "temp_source": 0}


# Notices


def notice(self_id: int, notice_type: str, *, at: int, **fields: Any) -> RawEvent:
    """Return a notice of any type, known to OneBot or not."""
    return {**_event(self_id, at, "notice"), "notice_type": notice_type, **fields}


def group_recall(
    self_id: int,
    group_id: int,
    user_id: int,
    message_id: int,
    *,
    at: int,
    operator_id: int | None = None,
    **fields: Any,
) -> RawEvent:
    """Return the recall of a group message, by its author or by ``operator_id``."""
    return notice(
        self_id,
        "group_recall",
        at=at,
        group_id=group_id,
        user_id=user_id,
        operator_id=user_id if operator_id is None else operator_id,
        message_id=message_id,
        **fields,
    )


def friend_recall(
    self_id: int, user_id: int, message_id: int, *, at: int, **fields: Any
) -> RawEvent:
    """Return the recall of a private message."""
    return notice(self_id, "friend_recall", at=at, user_id=user_id, message_id=message_id, **fields)


def group_card(
    self_id: int,
    group_id: int,
    user_id: int,
    card_new: str,
    card_old: str = "",
    *,
    at: int,
    **fields: Any,
) -> RawEvent:
    """Return the change of somebody's name in a group, noticed when they next speak."""
    named = {"card_new": card_new, "card_old": card_old}
    return notice(
        self_id, "group_card", at=at, group_id=group_id, user_id=user_id, **named, **fields
    )


def group_increase(
    self_id: int,
    group_id: int,
    user_id: int,
    *,
    at: int,
    sub_type: Literal["approve", "invite"] = "approve",
    operator_id: int = 0,
    **fields: Any,
) -> RawEvent:
    """Return that somebody joined a group."""
    return notice(
        self_id,
        "group_increase",
        at=at,
        sub_type=sub_type,
        group_id=group_id,
        user_id=user_id,
        operator_id=operator_id,
        **fields,
    )


def group_decrease(
    self_id: int,
    group_id: int,
    user_id: int,
    *,
    at: int,
    sub_type: Literal["leave", "kick", "kick_me", "disband"] = "leave",
    operator_id: int = 0,
    **fields: Any,
) -> RawEvent:
    """Return that somebody left a group, was removed, or that the group is gone."""
    return notice(
        self_id,
        "group_decrease",
        at=at,
        sub_type=sub_type,
        group_id=group_id,
        user_id=user_id,
        operator_id=operator_id,
        **fields,
    )


def group_dismiss(self_id: int, group_id: int, *, at: int, **fields: Any) -> RawEvent:
    """Return, as some implementations do instead of ``disband``, that a group is gone."""
    return notice(self_id, "group_dismiss", at=at, group_id=group_id, user_id=0, **fields)


def group_ban(
    self_id: int,
    group_id: int,
    user_id: int,
    *,
    at: int,
    duration_seconds: int = 600,
    operator_id: int = 0,
    **fields: Any,
) -> RawEvent:
    """Return that a member, or everyone if ``user_id`` is 0, may not speak; or again, if 0 s."""
    return notice(
        self_id,
        "group_ban",
        at=at,
        sub_type="ban" if duration_seconds else "lift_ban",
        group_id=group_id,
        user_id=user_id,
        operator_id=operator_id,
        duration=duration_seconds,
        **fields,
    )


def group_admin(
    self_id: int, group_id: int, user_id: int, *, at: int, is_admin: bool = True, **fields: Any
) -> RawEvent:
    """Return that somebody became an admin, or no longer is one."""
    change = "set" if is_admin else "unset"
    return notice(
        self_id, "group_admin", at=at, sub_type=change, group_id=group_id, user_id=user_id, **fields
    )


def group_msg_emoji_like(
    self_id: int,
    group_id: int,
    user_id: int,
    message_id: int,
    *,
    at: int,
    emoji_id: str = "66",
    is_add: bool = True,
    **fields: Any,
) -> RawEvent:
    """Return a reaction to a message, as NapCat reports it."""
    return notice(
        self_id,
        "group_msg_emoji_like",
        at=at,
        group_id=group_id,
        user_id=user_id,
        message_id=message_id,
        likes=[{"emoji_id": emoji_id, "count": 1}],
        is_add=is_add,
        **fields,
    )


def reaction(
    self_id: int,
    group_id: int,
    operator_id: int,
    message_id: int,
    *,
    at: int,
    code: str = "66",
    is_add: bool = True,
    **fields: Any,
) -> RawEvent:
    """Return a reaction to a message, as Lagrange reports it."""
    return notice(
        self_id,
        "reaction",
        at=at,
        sub_type="add" if is_add else "remove",
        group_id=group_id,
        operator_id=operator_id,
        message_id=message_id,
        code=code,
        count=1,
        **fields,
    )


def notify(self_id: int, sub_type: str, *, at: int, **fields: Any) -> RawEvent:
    """Return a ``notify`` of any sub type: title, input_status, profile_like, gray_tip …"""
    return notice(self_id, "notify", at=at, sub_type=sub_type, **fields)


def poke(
    self_id: int,
    user_id: int,
    target_id: int,
    *,
    at: int,
    group_id: int | None = None,
    **fields: Any,
) -> RawEvent:
    """Return a poke, in a group or in private."""
    place = {} if group_id is None else {"group_id": group_id}
    return notify(
        self_id, "poke", at=at, user_id=user_id, target_id=target_id, **place, raw_info=[], **fields
    )


def group_name(
    self_id: int, group_id: int, user_id: int, name_new: str, *, at: int, **fields: Any
) -> RawEvent:
    """Return that somebody renamed a group."""
    return notify(
        self_id,
        "group_name",
        at=at,
        group_id=group_id,
        user_id=user_id,
        name_new=name_new,
        **fields,
    )


def input_status(self_id: int, user_id: int, *, at: int, **fields: Any) -> RawEvent:
    """Return that a friend is typing; its group id is 0."""
    status = {"status_text": "对方正在输入...", "event_type": 1}
    return notify(self_id, "input_status", at=at, user_id=user_id, group_id=0, **status, **fields)


def profile_like(self_id: int, operator_id: int, *, at: int, **fields: Any) -> RawEvent:
    """Return that somebody liked the bot account's profile; it names no user id."""
    return notify(
        self_id, "profile_like", at=at, operator_id=operator_id, operator_nick="", times=1, **fields
    )


def essence(
    self_id: int,
    group_id: int,
    sender_id: int,
    *,
    at: int,
    message_id: int | None = None,
    operator_id: int = 0,
    is_add: bool = True,
    **fields: Any,
) -> RawEvent:
    """Return that a message was marked; which one may be missing."""
    marked = {} if message_id is None else {"message_id": message_id}
    return notice(
        self_id,
        "essence",
        at=at,
        sub_type="add" if is_add else "delete",
        group_id=group_id,
        sender_id=sender_id,
        operator_id=operator_id,
        **marked,
        **fields,
    )


def group_upload(
    self_id: int,
    group_id: int,
    user_id: int,
    name: str,
    *,
    at: int,
    size_bytes: int = 1024,
    **fields: Any,
) -> RawEvent:
    """Return that a file was put into a group; a message with a ``file`` segment comes too."""
    file = {"id": "/f-1", "name": name, "size": size_bytes, "busid": 102}
    return notice(
        self_id, "group_upload", at=at, group_id=group_id, user_id=user_id, file=file, **fields
    )


def friend_add(self_id: int, user_id: int, *, at: int, **fields: Any) -> RawEvent:
    """Return that somebody became a friend."""
    return notice(self_id, "friend_add", at=at, user_id=user_id, **fields)


def bot_offline(self_id: int, *, at: int, reason: str = "账号已下线", **fields: Any) -> RawEvent:
    """Return that the account lost its login, while the connection stays up."""
    words = {"tag": "下线通知", "message": reason}
    return notice(self_id, "bot_offline", at=at, user_id=self_id, **words, **fields)


# Requests


def friend_request(
    self_id: int, user_id: int, *, at: int, flag: str, comment: str = "", **fields: Any
) -> RawEvent:
    """Return that somebody asks to be a friend."""
    asked = {"user_id": user_id, "comment": comment, "flag": flag}
    return {**_event(self_id, at, "request"), "request_type": "friend", **asked, **fields}


def group_request(
    self_id: int,
    group_id: int,
    user_id: int,
    *,
    at: int,
    flag: str,
    sub_type: Literal["add", "invite"] = "invite",
    comment: str = "",
    **fields: Any,
) -> RawEvent:
    """Return that somebody asks to join a group, or that the bot account join one."""
    return {
        **_event(self_id, at, "request"),
        "request_type": "group",
        "sub_type": sub_type,
        "group_id": group_id,
        "user_id": user_id,
        "comment": comment,
        "flag": flag,
        **fields,
    }


# Meta events


def lifecycle(self_id: int, *, at: int, sub_type: str = "connect", **fields: Any) -> RawEvent:
    """Return the first event of a connection."""
    meta = {"meta_event_type": "lifecycle", "sub_type": sub_type}
    return {**_event(self_id, at, "meta_event"), **meta, **fields}


def heartbeat(
    self_id: int, *, at: int, interval_ms: int = 30_000, online: bool = True, **fields: Any
) -> RawEvent:
    """Return a heartbeat."""
    status = {"online": online, "good": online}
    meta = {"meta_event_type": "heartbeat", "status": status, "interval": interval_ms}
    return {**_event(self_id, at, "meta_event"), **meta, **fields}


# Deviations: each takes a message event and returns another


def without(event: RawEvent, *names: str) -> RawEvent:
    """Return the event without some fields."""
    return {name: value for name, value in event.items() if name not in names}


def with_null_font(event: RawEvent) -> RawEvent:
    """Return the event with ``font`` null."""
    return {**event, "font": None}


def with_integer_level(event: RawEvent) -> RawEvent:
    """Return the event with an integer as ``sender.level``."""
    return {**event, "sender": {**event["sender"], "level": 12}}


def with_milliseconds(event: RawEvent) -> RawEvent:
    """Return the event with its time in milliseconds."""
    return {**event, "time": event["time"] * 1000}


def with_text_ids(event: RawEvent) -> RawEvent:
    """Return the event with all its ids as text."""
    ids = {name: str(event[name]) for name in _ID_FIELDS if name in event}
    sender = {**event["sender"], "user_id": str(event["sender"]["user_id"])}
    return {**event, **ids, "sender": sender}


def with_bare_sender(event: RawEvent) -> RawEvent:
    """Return the event with empty names and without a role."""
    bare = {"user_id": event["user_id"], "nickname": "", "card": ""}
    return {**event, "sender": bare}


def with_null_sender_fields(event: RawEvent) -> RawEvent:
    """Return the event with everything about its sender null."""
    return {**event, "sender": dict.fromkeys(event["sender"])}


def with_anonymous(event: RawEvent, name: str = "大力鬼王") -> RawEvent:
    """Return the event as of an anonymous speaker."""
    speaker = {"id": 80000000, "name": name, "flag": "anonymous-1"}
    sender = {**event["sender"], "user_id": 80000000, "nickname": name}
    return {
        **event,
        "sub_type": "anonymous",
        "user_id": 80000000,
        "sender": sender,
        "anonymous": speaker,
    }


def with_null_anonymous(event: RawEvent) -> RawEvent:
    """Return the event with ``anonymous`` null, as old implementations always send it."""
    return {**event, "anonymous": None}


def with_empty_message(event: RawEvent) -> RawEvent:
    """Return the event as failed media and gray tips arrive: with nothing in it."""
    return {**event, "message": [], "raw_message": ""}


def with_old_line_ends(event: RawEvent) -> RawEvent:
    """Return the event with lines that end as old clients end them."""
    return {**event, "message": [text("第一行\r第二行")], "raw_message": "第一行\r第二行"}


def with_unknown_segment(event: RawEvent) -> RawEvent:
    """Return the event with a segment of a type that nobody has heard of."""
    unknown = {"type": "hologram", "data": {"depth": 3, "layers": [None, {}]}}
    return {**event, "message": [unknown], "raw_message": "[CQ:hologram,depth=3]"}


def with_malformed_segments(event: RawEvent) -> RawEvent:
    """Return the event with segments that lack what segments have."""
    broken: list[Any] = [{}, {"type": "text"}, {"type": "at", "data": None}, "text", None, 7]
    return {**event, "message": broken}


def with_quote_of_nothing(event: RawEvent) -> RawEvent:
    """Return the event quoting a message that no API call will find."""
    return {**event, "message": [reply(-1), text("同意")], "raw_message": "[CQ:reply,id=-1]同意"}


def with_at_all(event: RawEvent) -> RawEvent:
    """Return the event addressing everyone."""
    return {**event, "message": [at_all()], "raw_message": "[CQ:at,qq=all]"}


def with_text_time(event: RawEvent) -> RawEvent:
    """Return the event with its time as text."""
    return {**event, "time": str(event["time"])}


def without_message_id(event: RawEvent) -> RawEvent:
    """Return the event without any of its message ids."""
    return without(event, "message_id", "message_seq", "real_id", "real_seq")


def without_sequence(event: RawEvent) -> RawEvent:
    """Return the event without its place in the chat."""
    return without(event, "real_seq", "message_seq")


def without_sender(event: RawEvent) -> RawEvent:
    """Return the event without its sender."""
    return without(event, "sender")


def without_raw_message(event: RawEvent) -> RawEvent:
    """Return the event without its string form."""
    return without(event, "raw_message", "message_format")


_ID_FIELDS = ("self_id", "user_id", "group_id", "message_id", "message_seq", "real_id")

BROKEN: Mapping[str, Damage] = MappingProxyType(
    {
        damage.__name__: damage
        for damage in (
            with_null_font,
            with_integer_level,
            with_milliseconds,
            with_text_ids,
            with_bare_sender,
            with_null_sender_fields,
            with_anonymous,
            with_null_anonymous,
            with_empty_message,
            with_old_line_ends,
            with_unknown_segment,
            with_malformed_segments,
            with_quote_of_nothing,
            with_at_all,
            with_text_time,
            without_message_id,
            without_sequence,
            without_sender,
            without_raw_message,
        )
    }
)
"""Every deviation by its name; none may stop an application from reading the next event."""

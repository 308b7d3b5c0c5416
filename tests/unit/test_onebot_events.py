"""Reading events: every sample and quirk of real clients, and anything else without a crash."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import EventError
from bot.model import EVERYONE, Chat, Message
from bot.onebot.events import (
    FAR_FUTURE,
    AccountOffline,
    AdminChanged,
    BotJoined,
    BotRemoved,
    CardChanged,
    Connected,
    Event,
    FriendAdded,
    GroupRenamed,
    Ignored,
    MemberJoined,
    MemberLeft,
    MessageArrived,
    Muted,
    Recalled,
    RequestArrived,
    TitleChanged,
    read_event,
)
from bot.onebot.render import render, unnamed_mentions

SHANGHAI = ZoneInfo("Asia/Shanghai")
SECONDS = 1_795_980_073
AT = SECONDS * 1000
RECEIVED_AT = AT + 250
GROUP = Chat("10001", "group", "20001")

GROUP_MESSAGE: dict[str, Any] = {
    "self_id": 10001,
    "user_id": 30001,
    "time": SECONDS,
    "message_id": 1764349949,
    "message_seq": 1764349949,
    "real_id": 1764349949,
    "real_seq": "5001",
    "message_type": "group",
    "sender": {"user_id": 30001, "nickname": "Alice", "card": "小鱼", "role": "member"},
    "raw_message": "[CQ:at,qq=10001] 你好",
    "font": 14,
    "sub_type": "normal",
    "message": [
        {"type": "at", "data": {"qq": "10001"}},
        {"type": "text", "data": {"text": " 你好"}},
    ],
    "message_format": "array",
    "post_type": "message",
    "group_id": 20001,
    "group_name": "测试群",
}
PRIVATE_MESSAGE: dict[str, Any] = {
    "post_type": "message",
    "message_type": "private",
    "sub_type": "friend",
    "self_id": 10001,
    "user_id": 30001,
    "target_id": 10001,
    "time": SECONDS,
    "message_id": -1712345678,
    "message": "你好",
    "raw_message": "你好",
    "sender": {"user_id": 30001, "nickname": "小鱼"},
}


def read(event: Mapping[str, object], **changes: object) -> Event:
    return read_event({**event, **changes}, received_at=RECEIVED_AT, zone=SHANGHAI)


def message_of(event: Mapping[str, object], **changes: object) -> Message:
    arrived = read(event, **changes)
    assert isinstance(arrived, MessageArrived)
    return arrived.message


def without(event: Mapping[str, object], *keys: str) -> dict[str, object]:
    return {key: value for key, value in event.items() if key not in keys}


def notice(notice_type: str, /, **fields: object) -> Event:
    base: dict[str, object] = {
        "post_type": "notice",
        "notice_type": notice_type,
        "self_id": 10001,
        "time": SECONDS,
        "group_id": 20001,
        "user_id": 30001,
    }
    return read(base, **fields)


def test_a_group_message_is_read_whole():
    arrived = read(GROUP_MESSAGE)
    assert isinstance(arrived, MessageArrived)
    message = arrived.message
    assert arrived.group_name == "测试群"
    assert message.chat == GROUP
    assert message.platform_id == "1764349949"
    assert message.direction == "inbound"
    assert (message.sent_at, message.received_at) == (AT, RECEIVED_AT)
    assert (message.sender.user_id, message.sender.nickname) == ("30001", "Alice")
    assert (message.sender.card, message.sender.role) == ("小鱼", "member")
    assert not message.sender.anonymous
    assert message.text == "@10001 你好"
    assert message.mentions == ("10001",)
    assert message.sequence == 5001
    assert message.reply_to is None
    assert message.temporary_group is None
    assert message.kind == "chat"


def test_the_string_format_gives_the_same_message():
    text = GROUP_MESSAGE["raw_message"]
    assert message_of(GROUP_MESSAGE, message=text) == message_of(GROUP_MESSAGE)


def test_mentions_without_a_name_are_named_so_that_the_caller_can_look_them_up():
    message = message_of(
        GROUP_MESSAGE,
        message="[CQ:at,qq=30002][CQ:at,qq=30003,name=阿海][CQ:at,qq=all][CQ:at,qq=30002]",
    )
    assert unnamed_mentions(message) == ("30002",)
    assert message.mentions == ("30002", "30003", EVERYONE)
    assert render(message.segments, {"30002": "阿山"}).startswith(
        "@阿山(30002)@阿海(30003)@全体成员"
    )


def test_a_reply_names_its_target_in_both_formats():
    array = [{"type": "reply", "data": {"id": -700}}, {"type": "text", "data": {"text": "好"}}]
    for message in (array, "[CQ:reply,id=-700]好"):
        read_back = message_of(GROUP_MESSAGE, message=message)
        assert (read_back.reply_to, read_back.text) == ("-700", "好")


def test_a_message_of_only_a_reply_is_still_a_message():
    message = message_of(GROUP_MESSAGE, message="[CQ:reply,id=700]")
    assert (message.reply_to, message.text) == ("700", "")


def test_the_local_day_is_that_of_the_time_zone():
    late = int(datetime(2026, 8, 20, 23, 30, tzinfo=ZoneInfo("UTC")).timestamp())
    assert message_of(GROUP_MESSAGE, time=late).local_date == "2026-08-21"


@pytest.mark.parametrize("time", [SECONDS, AT, str(SECONDS), str(AT), float(SECONDS)])
def test_time_is_read_in_seconds_and_in_milliseconds(time: object):
    assert message_of(GROUP_MESSAGE, time=time).sent_at == AT


@pytest.mark.parametrize(
    "time", [None, 0, -5, "soon", True, [], float("nan"), float("inf"), 10**10, 10**16, 10**40]
)
def test_an_impossible_time_is_the_time_of_arrival(time: object):
    assert message_of(GROUP_MESSAGE, time=time).sent_at == RECEIVED_AT


@pytest.mark.parametrize(
    ("message_id", "expected"),
    [(-1712345678, "-1712345678"), ("-5", "-5"), (" 7 ", "7"), (7.0, "7"), ("abc_D-1", "abc_D-1")],
)
def test_message_ids_are_text(message_id: object, expected: str):
    assert message_of(GROUP_MESSAGE, message_id=message_id).platform_id == expected


@pytest.mark.parametrize("message_id", [None, 0, "", [], True, "a b", "a\nb", "x" * 500])
def test_a_message_without_an_id_gets_one_that_is_the_same_when_it_comes_again(message_id: object):
    first = message_of(GROUP_MESSAGE, message_id=message_id).platform_id
    again = json.loads(
        json.dumps(dict(reversed({**GROUP_MESSAGE, "message_id": message_id}.items())))
    )
    assert first.startswith("x")
    assert len(first) == 25
    assert message_of(again).platform_id == first
    assert message_of(GROUP_MESSAGE, message_id=message_id, time=SECONDS + 1).platform_id != first


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"real_seq": "5001", "message_seq": 9}, 5001),
        ({"real_seq": 5001}, 5001),
        ({"real_seq": None, "message_seq": 77}, 77),
        ({"real_seq": None, "message_seq": "77"}, 77),
        ({"real_seq": "0", "message_seq": 1764349949}, None),
        ({"real_seq": "later", "message_seq": -4}, None),
        ({"real_seq": None, "message_seq": 2**40}, None),
        ({"real_seq": None, "message_seq": "77", "message_id": 77}, None),
        ({"real_seq": None, "message_seq": None, "message_id": None}, None),
    ],
)
def test_a_sequence_is_only_what_can_be_one(fields: dict[str, object], expected: int | None):
    assert message_of(GROUP_MESSAGE, **fields).sequence == expected


def test_ids_may_be_numeric_strings():
    message = message_of(GROUP_MESSAGE, self_id="10001", user_id="30001", group_id="20001")
    assert (message.chat, message.sender.user_id) == (GROUP, "30001")


def test_a_private_message_belongs_to_the_chat_with_its_sender():
    message = message_of(PRIVATE_MESSAGE)
    assert message.chat == Chat("10001", "private", "30001")
    assert (message.direction, message.platform_id) == ("inbound", "-1712345678")
    assert message.temporary_group is None


@pytest.mark.parametrize(
    "fields",
    [{"group_id": 20001, "temp_source": 0}, {"sender": {"user_id": 30001, "group_id": 20001}}],
)
def test_a_temporary_session_is_private_and_names_its_group(fields: dict[str, object]):
    message = message_of(PRIVATE_MESSAGE, sub_type="group", **fields)
    assert message.chat == Chat("10001", "private", "30001")
    assert message.temporary_group == "20001"


def test_a_temporary_session_of_an_unknown_group_is_still_temporary():
    assert message_of(PRIVATE_MESSAGE, sub_type="group").temporary_group == ""


def test_a_friend_message_that_carries_a_group_id_is_not_a_group_message():
    message = message_of(PRIVATE_MESSAGE, group_id=20001)
    assert (message.chat.kind, message.temporary_group) == ("private", None)


def test_own_messages_are_outbound_and_belong_to_the_chat_they_went_to():
    sent = {
        "post_type": "message_sent",
        "message_sent_type": "self",
        "user_id": 10001,
        "target_id": 30001,
        "sender": {"user_id": 10001, "nickname": "bot", "card": ""},
    }
    private = message_of(PRIVATE_MESSAGE, **sent)
    assert (private.chat.id, private.direction, private.sender.user_id) == (
        "30001",
        "outbound",
        "10001",
    )
    group = message_of(GROUP_MESSAGE, **sent)
    assert (group.chat, group.direction) == (GROUP, "outbound")


def test_a_sent_group_message_may_name_its_group_as_target_only():
    sent = {"post_type": "message_sent", "user_id": 10001, "target_id": 20001, "group_id": None}
    assert message_of(GROUP_MESSAGE, **sent).chat == GROUP


def test_a_plain_message_event_from_the_bot_itself_is_outbound():
    assert message_of(GROUP_MESSAGE, user_id=10001).direction == "outbound"
    private = message_of(PRIVATE_MESSAGE, user_id=10001, target_id="30001")
    assert (private.direction, private.chat.id) == ("outbound", "30001")


def test_a_sent_message_may_have_its_receiver_as_user_id():
    message = message_of(PRIVATE_MESSAGE, post_type="message_sent", target_id=None)
    assert (message.chat.id, message.sender.user_id) == ("30001", "10001")


def test_a_sent_private_message_without_a_receiver_cannot_be_read():
    with pytest.raises(EventError, match="other person"):
        read(PRIVATE_MESSAGE, user_id=10001, target_id=0)


@pytest.mark.parametrize(
    "fields",
    [
        {"anonymous": {"id": 1, "name": "匿名鱼", "flag": "f"}},
        {"user_id": 80000000},
        {"user_id": "80000000", "anonymous": None},
        {"sub_type": "anonymous"},
    ],
)
def test_anonymous_senders_are_marked(fields: dict[str, object]):
    assert message_of(GROUP_MESSAGE, **fields).sender.anonymous


def test_an_anonymous_name_stands_in_for_a_missing_one():
    message = message_of(GROUP_MESSAGE, sender={}, user_id=80000000, anonymous={"name": "匿名鱼"})
    assert message.sender.display_name == "匿名鱼"


def test_a_null_anonymous_is_an_ordinary_sender():
    assert not message_of(GROUP_MESSAGE, anonymous=None).sender.anonymous


@pytest.mark.parametrize("user_id", [0, None, "", []])
def test_a_sender_without_an_id_is_nobody(user_id: object):
    message = message_of(GROUP_MESSAGE, user_id=user_id, sender={"user_id": 0, "nickname": "系统"})
    assert (message.sender.user_id, message.sender.anonymous) == ("80000000", True)


def test_the_sender_object_gives_a_missing_user_id():
    assert message_of(without(GROUP_MESSAGE, "user_id")).sender.user_id == "30001"


@pytest.mark.parametrize(
    "sender",
    [
        None,
        [],
        "x",
        {},
        {"role": "king", "card": None, "nickname": ["a"], "title": {}},
        {"card": ""},
    ],
)
def test_a_sender_may_lack_everything(sender: object):
    read_back = message_of(GROUP_MESSAGE, sender=sender).sender
    assert (read_back.user_id, read_back.role, read_back.display_name) == ("30001", "", "30001")


def test_names_stay_raw_but_bounded():
    raw = {"nickname": "a\n\u202eb", "card": 12345, "title": "长" * 5000, "level": 7}
    sender = message_of(GROUP_MESSAGE, sender=raw).sender
    assert (sender.nickname, sender.card, len(sender.title)) == ("a\n\u202eb", "12345", 200)


@pytest.mark.parametrize("message", [[], "", None, [{"type": "text", "data": {"text": ""}}]])
def test_an_empty_message_is_ignored(message: object):
    assert read(GROUP_MESSAGE, message=message, raw_message="") == Ignored(
        "message/group/normal is empty"
    )


@pytest.mark.parametrize("fields", [{"group_id": 0}, {"group_id": None}, {"message_type": None}])
def test_a_message_of_no_chat_cannot_be_read(fields: dict[str, object]):
    with pytest.raises(EventError, match=r"group_id|message_type"):
        read(GROUP_MESSAGE, **fields)


def test_a_private_message_of_nobody_cannot_be_read():
    with pytest.raises(EventError, match="other person"):
        read(PRIVATE_MESSAGE, user_id=0, sender=None)


@pytest.mark.parametrize("self_id", [None, 0, "", {}])
def test_an_event_for_no_account_cannot_be_read(self_id: object):
    with pytest.raises(EventError, match="self_id"):
        read(GROUP_MESSAGE, self_id=self_id)


def test_an_event_of_no_kind_cannot_be_read():
    with pytest.raises(EventError, match="post_type"):
        read({"self_id": 10001})


def test_history_entries_may_lack_a_post_type():
    assert message_of(without(GROUP_MESSAGE, "post_type")) == message_of(GROUP_MESSAGE)


def test_a_message_of_another_world_is_ignored():
    assert read(GROUP_MESSAGE, message_type="guild") == Ignored("message/guild/normal")


def test_a_recall_names_message_author_and_operator():
    event = notice("group_recall", operator_id=30009, message_id=123)
    assert event == Recalled(GROUP, "123", "30001", "30009", AT)


def test_an_operator_of_zero_is_not_known():
    event = notice("group_recall", operator_id=0, user_id="0", message_id="-123", time=None)
    assert event == Recalled(GROUP, "-123", "", "", RECEIVED_AT)


def test_a_friend_recall_belongs_to_the_private_chat():
    event = notice("friend_recall", group_id=None, message_id=123)
    assert event == Recalled(Chat("10001", "private", "30001"), "123", "30001", "30001", AT)


def test_the_bots_own_private_message_may_be_recalled_without_saying_where():
    event = notice("friend_recall", group_id=None, user_id=10001, message_id=123)
    assert event == Recalled(Chat("10001", "private", ""), "123", "10001", "10001", AT)
    event = notice("friend_recall", user_id=10001, target_id=30001, message_id=123)
    assert event == Recalled(Chat("10001", "private", "30001"), "123", "10001", "10001", AT)


@pytest.mark.parametrize("fields", [{"message_id": None}, {"message_id": 1, "group_id": 0}])
def test_a_recall_of_nothing_cannot_be_read(fields: dict[str, object]):
    with pytest.raises(EventError, match="group_recall"):
        notice("group_recall", **fields)


def test_a_card_change_carries_the_new_card():
    assert notice("group_card", card_new="新名", card_old="旧名") == CardChanged(
        GROUP, "30001", "新名"
    )
    assert notice("group_card", card_new=None) == CardChanged(GROUP, "30001", "")
    assert isinstance(notice("group_card"), Ignored)


def test_joins_are_of_members_or_of_the_bot():
    join = notice("group_increase", sub_type="approve", operator_id=0)
    assert join == MemberJoined(GROUP, "30001", AT)
    assert notice("group_increase", user_id="10001") == BotJoined(GROUP, AT)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"sub_type": "leave"}, MemberLeft(GROUP, "30001", "leave", AT)),
        ({"sub_type": "kick"}, MemberLeft(GROUP, "30001", "kick", AT)),
        ({"sub_type": "vanish"}, MemberLeft(GROUP, "30001", "leave", AT)),
        ({"sub_type": "kick_me", "user_id": 10001}, BotRemoved(GROUP, "kick_me", AT)),
        ({"sub_type": "kick_me", "user_id": 0}, BotRemoved(GROUP, "kick_me", AT)),
        ({"sub_type": "kick", "user_id": 10001}, BotRemoved(GROUP, "kick_me", AT)),
        ({"sub_type": "leave", "user_id": 10001}, BotRemoved(GROUP, "leave", AT)),
        ({"sub_type": "disband", "user_id": 0}, BotRemoved(GROUP, "disband", AT)),
        ({"notice_type": "group_dismiss"}, BotRemoved(GROUP, "disband", AT)),
    ],
)
def test_leaving_is_of_members_or_of_the_bot(fields: dict[str, object], expected: Event):
    assert notice("group_decrease", **fields) == expected


def test_admins_are_set_and_unset():
    assert notice("group_admin", sub_type="set") == AdminChanged(GROUP, "30001", True)
    assert notice("group_admin", sub_type="unset") == AdminChanged(GROUP, "30001", False)
    assert notice("group_admin", sub_type="other") == Ignored("notice/group_admin/other")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"sub_type": "ban", "duration": 600}, Muted(GROUP, "30001", AT + 600_000)),
        ({"sub_type": "ban", "duration": "600"}, Muted(GROUP, "30001", AT + 600_000)),
        ({"sub_type": "ban", "duration": 0}, Muted(GROUP, "30001", None)),
        ({"sub_type": "ban", "duration": None}, Muted(GROUP, "30001", AT + 30 * 86_400_000)),
        ({"sub_type": "ban", "duration": 10**18}, Muted(GROUP, "30001", FAR_FUTURE)),
        ({"sub_type": "ban", "duration": -1, "user_id": 0}, Muted(GROUP, "", FAR_FUTURE)),
        ({"sub_type": "ban", "duration": 0, "user_id": 0}, Muted(GROUP, "", FAR_FUTURE)),
        ({"sub_type": "ban", "duration": 60, "user_id": "0"}, Muted(GROUP, "", AT + 60_000)),
        ({"sub_type": "lift_ban", "duration": 0}, Muted(GROUP, "30001", None)),
        ({"sub_type": "lift_ban", "duration": 0, "user_id": 0}, Muted(GROUP, "", None)),
        ({"sub_type": "other"}, Ignored("notice/group_ban/other")),
    ],
)
def test_mutes_are_of_one_or_of_all_and_end(fields: dict[str, object], expected: Event):
    assert notice("group_ban", **fields) == expected


def test_names_of_groups_and_titles_come_as_notify():
    renamed = notice("notify", sub_type="group_name", name_new="新群名")
    assert renamed == GroupRenamed(GROUP, "新群名")
    assert isinstance(notice("notify", sub_type="group_name"), Ignored)
    assert notice("notify", sub_type="title", title="龙王") == TitleChanged(GROUP, "30001", "龙王")
    assert isinstance(notice("notify", sub_type="title"), Ignored)


def test_a_new_friend_and_a_lost_account_are_known():
    assert notice("friend_add") == FriendAdded("10001", "30001")
    offline = notice("bot_offline", tag="被踢下线", message="账号在别处登录")
    assert offline == AccountOffline("10001", "账号在别处登录")


@pytest.mark.parametrize(
    "fields",
    [
        {"notice_type": "group_msg_emoji_like", "likes": [{"emoji_id": "66", "count": 1}]},
        {"notice_type": "reaction", "sub_type": "add", "code": "66", "operator_id": 30001},
        {"notice_type": "notify", "sub_type": "poke", "target_id": 10001, "raw_info": []},
        {"notice_type": "notify", "sub_type": "poke_recall"},
        {"notice_type": "notify", "sub_type": "input_status", "group_id": 0},
        {"notice_type": "notify", "sub_type": "profile_like", "user_id": None},
        {"notice_type": "notify", "sub_type": "gray_tip", "content": "管理员撤回了一条消息"},
        {"notice_type": "notify", "sub_type": "honor"},
        {"notice_type": "notify", "sub_type": "lucky_king"},
        {"notice_type": "notify", "sub_type": None},
        {"notice_type": "essence", "sub_type": "add", "sender_id": 30001, "operator_id": 0},
        {"notice_type": "group_upload", "file": {"id": "1", "name": "a.pdf"}},
        {"notice_type": "from_the_future", "group_id": [], "user_id": {}},
        {"notice_type": None},
        {"post_type": "meta_event", "meta_event_type": "heartbeat", "status": {"online": True}},
        {"post_type": "meta_event", "meta_event_type": "lifecycle", "sub_type": "enable"},
        {"post_type": "request", "request_type": "group", "sub_type": "other"},
        {"post_type": "guess"},
    ],
)
def test_what_means_nothing_to_us_is_ignored(fields: dict[str, object]):
    assert isinstance(notice("x", **fields), Ignored)


def test_an_ignored_event_is_named_on_one_short_line():
    event = notice("a\nb" * 500, sub_type="\u2028")
    assert isinstance(event, Ignored)
    assert event.reason.isprintable()
    assert len(event.reason) < 140


def test_requests_wait_for_an_operator():
    base = {
        "post_type": "request",
        "self_id": 10001,
        "user_id": 30001,
        "comment": "我是小鱼",
        "flag": 7,
    }
    friend = read(base, request_type="friend")
    assert friend == RequestArrived("10001", "friend", "7", "30001", "", "我是小鱼")
    group = {**base, "request_type": "group", "group_id": 20001, "flag": "a b"}
    add = read(group, sub_type="add")
    assert add == RequestArrived("10001", "group_add", "a b", "30001", "20001", "我是小鱼")
    invite = read(group, sub_type="invite", comment=None)
    assert invite == RequestArrived("10001", "group_invite", "a b", "30001", "20001", "")


def test_a_request_that_cannot_be_answered_cannot_be_read():
    with pytest.raises(EventError, match="flag"):
        read({"post_type": "request", "request_type": "friend", "self_id": 10001, "user_id": 30001})


def test_a_connection_announces_itself():
    event = {"post_type": "meta_event", "meta_event_type": "lifecycle", "sub_type": "connect"}
    assert read(event, self_id=10001, time=SECONDS) == Connected("10001")


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from([0, 10001, 30001, 20001, "0", "all", 10**4000, -(10**25)])
)
JSON_LIKE = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
CHOICES = {
    "post_type": "message message_sent notice request meta_event",
    "message_type": "group private",
    "notice_type": "group_recall friend_recall group_card group_increase group_decrease group_ban "
    "group_dismiss group_admin friend_add bot_offline notify group_upload",
    "sub_type": "normal friend group kick kick_me leave disband ban lift_ban set title group_name "
    "add invite connect anonymous",
    "request_type": "friend group",
    "meta_event_type": "lifecycle heartbeat",
}
FIELDS = (
    "self_id user_id group_id target_id operator_id message_id message_seq real_seq time duration "
    "message raw_message sender anonymous card_new title name_new flag comment group_name"
).split()


def odd_events() -> st.SearchStrategy[dict[str, Any]]:
    known = {key: st.sampled_from(words.split()) | JSON_LIKE for key, words in CHOICES.items()}
    odd = {key: st.sampled_from([10001, "30001"]) | JSON_LIKE for key in FIELDS}
    of_the_bot = {"self_id": st.just(10001)}
    others = {key: value for key, value in odd.items() if key != "self_id"}
    return st.fixed_dictionaries(of_the_bot, optional={**known, **others}) | (
        st.fixed_dictionaries({}, optional={**known, **odd})
    )


def outcome(event: object) -> Event | str:
    try:
        return read_event(event, received_at=RECEIVED_AT, zone=SHANGHAI)  # pyright: ignore[reportArgumentType]
    except EventError as error:
        return str(error)


@given(odd_events() | JSON_LIKE)
def test_reading_raises_nothing_but_event_error_and_says_the_same_again(event: object):
    first = outcome(event)
    assert outcome(event) == first
    if isinstance(first, str):
        assert first


@given(odd_events(), st.dictionaries(st.sampled_from([*FIELDS, "font"]), JSON_LIKE, max_size=4))
def test_what_is_read_from_an_odd_message_can_be_stored(base: dict[str, Any], odd: dict[str, Any]):
    event = outcome(
        {**base, "post_type": "message", "message_type": "group", **odd, "group_id": 20001}
    )
    if isinstance(event, MessageArrived):
        message = event.message
        for text in (
            message.text,
            message.platform_id,
            message.sender.nickname,
            message.local_date,
        ):
            assert "\x00" not in text
            text.encode()
        assert message.sender.user_id
        json.dumps([s.as_json() for s in message.segments], ensure_ascii=False).encode()


@given(odd_events())
def test_the_same_event_always_has_one_id(base: dict[str, Any]):
    event = {**GROUP_MESSAGE, **without(base, "message_type", "post_type", "self_id", "group_id")}
    event["message_id"] = None
    first = outcome(event)
    second = outcome(dict(reversed(event.items())))
    if isinstance(first, MessageArrived):
        assert isinstance(second, MessageArrived)
        assert first.message.platform_id == second.message.platform_id
        assert first.message.platform_id.startswith("x")

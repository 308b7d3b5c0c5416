import json
from typing import Any

import pytest
from nonebot.adapters.onebot.v11 import (
    Adapter,
    Event,
    FriendAddNoticeEvent,
    FriendRecallNoticeEvent,
    FriendRequestEvent,
    GroupBanNoticeEvent,
    GroupDecreaseNoticeEvent,
    GroupIncreaseNoticeEvent,
    GroupMessageEvent,
    GroupRecallNoticeEvent,
    GroupRequestEvent,
    GroupUploadNoticeEvent,
    HeartbeatMetaEvent,
    LifecycleMetaEvent,
    NoticeEvent,
    NotifyEvent,
    PokeNotifyEvent,
    PrivateMessageEvent,
)

from bot.simulate import BROKEN, Person, World, events, segments

AT = 1_795_980_073_456
ALICE = Person(1001, "Alice", card="小A")


def group_message(**fields: Any) -> events.RawEvent:
    hello = [segments.at(3001), segments.text(" 你好")]
    return events.group_message(
        3001, 2001, ALICE, hello, message_id=1764349949, at=AT, real_seq="5001", **fields
    )


def typed(event: events.RawEvent) -> Event | None:
    """What NoneBot makes of an event that went over a wire."""
    return Adapter.json_to_event(json.loads(json.dumps(event)))


def test_a_group_message_looks_as_napcat_sends_it():
    sender = {"user_id": 1001, "nickname": "Alice", "card": "小A", "role": "member"}
    event = group_message()
    assert event.pop("sender").items() >= sender.items()
    assert event == {
        "self_id": 3001,
        "user_id": 1001,
        "time": 1795980073,
        "message_id": 1764349949,
        "message_seq": 1764349949,
        "real_id": 1764349949,
        "real_seq": "5001",
        "message_type": "group",
        "raw_message": "[CQ:at,qq=3001] 你好",
        "font": 14,
        "sub_type": "normal",
        "message": [
            {"type": "at", "data": {"qq": "3001"}},
            {"type": "text", "data": {"text": " 你好"}},
        ],
        "message_format": "array",
        "post_type": "message",
        "group_id": 2001,
        "group_name": "测试群",
    }


def test_the_string_format_differs_in_the_message_only():
    array, string = group_message(), group_message(string_format=True)
    changed = {name for name in array if array[name] != string[name]}
    assert changed == {"message", "message_format"}
    assert string["message"] == string["raw_message"] == "[CQ:at,qq=3001] 你好"


def test_a_temporary_session_is_a_private_message_that_carries_a_group_id():
    event = events.private_message(
        3001, ALICE, [segments.text("在吗")], message_id=5, at=AT, temporary_group=2001
    )
    assert (event["message_type"], event["sub_type"]) == ("private", "group")
    assert (event["group_id"], event["temp_source"]) == (2001, 0)


def test_a_friend_s_message_carries_no_group_id():
    event = events.private_message(3001, ALICE, [segments.text("在吗")], message_id=5, at=AT)
    assert event["sub_type"] == "friend"
    assert "group_id" not in event


def test_own_messages_are_reported_with_their_target():
    world = World(Person(3001, "小忆"))
    world.add_group(2001, "测试群", ALICE)
    world.befriend(ALICE)
    for chat, target in ((world.group_chat(2001), 2001), (world.private_chat(1001), 1001)):
        spoken = world.speak(chat, "你好", at=AT)
        event = events.of_utterance(world.account, spoken)
        assert (event["post_type"], event["message_sent_type"]) == ("message_sent", "self")
        assert (event["user_id"], event["target_id"]) == (3001, target)
        assert event["message_id"] == spoken.message_id


def test_further_fields_win_over_the_builder_s_own():
    assert group_message(font=None, time="soon")["time"] == "soon"


SAMPLES: list[tuple[events.RawEvent, type[Event], str]] = [
    (group_message(), GroupMessageEvent, "message.group.normal"),
    (group_message(string_format=True), GroupMessageEvent, "message.group.normal"),
    (
        events.private_message(3001, ALICE, [segments.text("在")], message_id=-5, at=AT),
        PrivateMessageEvent,
        "message.private.friend",
    ),
    (
        events.group_recall(3001, 2001, 1001, 123, at=AT),
        GroupRecallNoticeEvent,
        "notice.group_recall",
    ),
    (events.friend_recall(3001, 1001, 9, at=AT), FriendRecallNoticeEvent, "notice.friend_recall"),
    (events.group_card(3001, 2001, 1001, "新", "旧", at=AT), NoticeEvent, "notice.group_card"),
    (
        events.group_increase(3001, 2001, 1001, at=AT),
        GroupIncreaseNoticeEvent,
        "notice.group_increase.approve",
    ),
    (
        events.group_decrease(3001, 2001, 3001, at=AT, sub_type="kick_me"),
        GroupDecreaseNoticeEvent,
        "notice.group_decrease.kick_me",
    ),
    (events.group_dismiss(3001, 2001, at=AT), NoticeEvent, "notice.group_dismiss"),
    (events.group_ban(3001, 2001, 1001, at=AT), GroupBanNoticeEvent, "notice.group_ban.ban"),
    (
        events.group_ban(3001, 2001, 0, at=AT, duration_seconds=0),
        GroupBanNoticeEvent,
        "notice.group_ban.lift_ban",
    ),
    (events.group_admin(3001, 2001, 1001, at=AT), NoticeEvent, "notice.group_admin.set"),
    (
        events.group_msg_emoji_like(3001, 2001, 1001, 123, at=AT),
        NoticeEvent,
        "notice.group_msg_emoji_like",
    ),
    (events.reaction(3001, 2001, 1001, 123, at=AT), NoticeEvent, "notice.reaction.add"),
    (events.poke(3001, 1001, 3001, at=AT, group_id=2001), PokeNotifyEvent, "notice.notify.poke"),
    (events.poke(3001, 1001, 3001, at=AT), PokeNotifyEvent, "notice.notify.poke"),
    (
        events.group_name(3001, 2001, 1001, "新名", at=AT),
        NotifyEvent,
        "notice.notify.group_name",
    ),
    (events.input_status(3001, 1001, at=AT), NotifyEvent, "notice.notify.input_status"),
    (events.profile_like(3001, 1001, at=AT), NoticeEvent, "notice.notify.profile_like"),
    (events.essence(3001, 2001, 1001, at=AT), NoticeEvent, "notice.essence.add"),
    (
        events.group_upload(3001, 2001, 1001, "a.pdf", at=AT),
        GroupUploadNoticeEvent,
        "notice.group_upload",
    ),
    (events.friend_add(3001, 1001, at=AT), FriendAddNoticeEvent, "notice.friend_add"),
    (events.bot_offline(3001, at=AT), NoticeEvent, "notice.bot_offline"),
    (events.friend_request(3001, 1001, at=AT, flag="f"), FriendRequestEvent, "request.friend"),
    (
        events.group_request(3001, 2001, 1001, at=AT, flag="f"),
        GroupRequestEvent,
        "request.group.invite",
    ),
    (events.lifecycle(3001, at=AT), LifecycleMetaEvent, "meta_event.lifecycle.connect"),
    (events.heartbeat(3001, at=AT), HeartbeatMetaEvent, "meta_event.heartbeat"),
]


@pytest.mark.parametrize(
    ("event", "model", "name"), SAMPLES, ids=[f"{i} {s[2]}" for i, s in enumerate(SAMPLES)]
)
def test_nonebot_reads_every_well_formed_event(
    event: events.RawEvent, model: type[Event], name: str
):
    read = typed(event)
    assert isinstance(read, model)
    assert read.get_event_name() == name
    assert read.time == AT // 1000


@pytest.mark.parametrize("damage", [events.with_null_font, events.with_integer_level])
def test_one_field_of_a_wrong_type_costs_nonebot_the_whole_message(damage: events.Damage):
    read = typed(damage(group_message()))
    assert read is not None
    assert not isinstance(read, GroupMessageEvent)


@pytest.mark.parametrize("damage", BROKEN.values(), ids=list(BROKEN))
def test_a_broken_event_is_json_differs_and_leaves_the_sound_one_alone(damage: events.Damage):
    sound = group_message()
    broken = damage(sound)
    assert sound == group_message()
    assert json.loads(json.dumps(broken)) == broken
    assert broken != sound


def test_millisecond_times_are_beyond_any_second():
    assert events.with_milliseconds(group_message())["time"] > 1e11


def test_an_image_s_size_is_a_string_and_a_face_s_raw_an_object():
    assert segments.image(size_bytes=1234)["data"]["file_size"] == "1234"
    assert segments.face(178, "斜眼笑")["data"]["raw"]["faceText"] == "/斜眼笑"


def test_a_card_is_json_within_a_string():
    card = segments.json_card("[分享]标题")
    assert json.loads(card["data"]["data"])["prompt"] == "[分享]标题"

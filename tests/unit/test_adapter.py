"""The lenient adapter: whatever a client sends, handlers get it, with its JSON as it arrived."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nonebot.adapters.onebot.v11 import GroupMessageEvent, PrivateMessageEvent
from nonebot.adapters.onebot.v11.exception import NoLogException

from bot.simulate import BROKEN, Person, RawEvent, events, segments
from plugins.adapter import (
    Adapter,
    QuietEvent,
    QuietFriendRequest,
    QuietGroupMessage,
    QuietGroupRequest,
    QuietNotice,
    QuietOwnMessage,
    QuietPrivateMessage,
    QuietRequest,
    mended,
)

NOW = 1_785_297_600_000
BOT, FISH, GROUP = 10_001, 30_001, 20_001
SENDER = Person(FISH, "小鱼", card="鱼", role="admin")
AT_BOT = segments.at(BOT)


@pytest.fixture(scope="module", autouse=True)
def models() -> None:
    """Register the models as ``Adapter`` does when NoneBot sets it up."""
    Adapter.add_custom_model(
        QuietEvent,
        QuietGroupMessage,
        QuietPrivateMessage,
        QuietOwnMessage,
        QuietNotice,
        QuietRequest,
        QuietFriendRequest,
        QuietGroupRequest,
    )


def in_group(*message: RawEvent, **fields: Any) -> RawEvent:
    return events.group_message(
        BOT, GROUP, SENDER, message or [AT_BOT], message_id=7, at=NOW, **fields
    )


def in_private(*message: RawEvent, **fields: Any) -> RawEvent:
    said = message or [segments.text("嗨")]
    return events.private_message(BOT, SENDER, said, message_id=7, at=NOW, **fields)


def read(raw: RawEvent) -> QuietEvent:
    """What NoneBot makes of an event."""
    event = Adapter.json_to_event(raw)
    assert event is not None
    assert getattr(event, "raw_event", None) == raw
    return event  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_an_odd_group_message_is_still_a_group_message(name: str):
    event = read(BROKEN[name](in_group()))
    assert isinstance(event, GroupMessageEvent)
    assert (event.group_id, event.self_id) == (GROUP, BOT)


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_an_odd_private_message_is_still_a_private_message(name: str):
    assert isinstance(read(BROKEN[name](in_private())), PrivateMessageEvent)


def test_a_temporary_session_is_a_private_message_though_it_names_a_group():
    event = read(in_private(temporary_group=GROUP))
    assert isinstance(event, QuietPrivateMessage)
    assert event.user_id == FISH


def test_a_message_as_a_string_is_read_as_its_segments():
    event = read(in_group(AT_BOT, segments.text(" [你好] & 再见"), string_format=True))
    assert isinstance(event, QuietGroupMessage)
    assert [segment.type for segment in event.message] == ["at", "text"]
    assert event.message.extract_plain_text() == " [你好] & 再见"


def test_a_quote_is_left_out_of_nonebots_copy_and_stays_in_ours():
    event = read(in_group(segments.reply(700), segments.text("同意")))
    assert isinstance(event, QuietGroupMessage)
    assert [segment.type for segment in event.message] == ["text"]
    assert event.raw_event["message"][0] == segments.reply(700)


def test_an_event_cannot_claim_what_was_made_of_it():
    said = events.group_message(BOT, GROUP, SENDER, [segments.text("嗯")], message_id=7, at=NOW)
    event = Adapter.json_to_event({**said, "taken": {"row_id": 1}})
    assert isinstance(event, QuietGroupMessage)
    assert event.taken is None


def test_a_time_in_milliseconds_becomes_seconds():
    assert mended({**in_group(), "time": NOW})["time"] == NOW // 1000
    assert mended({**in_group(), "time": str(NOW)})["time"] == NOW // 1000
    assert mended({**in_group(), "time": NOW // 1000})["time"] == NOW // 1000


def test_ids_as_text_become_numbers():
    event = read({**in_group(), "user_id": "30001", "group_id": "20001", "message_id": "-7"})
    assert isinstance(event, QuietGroupMessage)
    assert (event.user_id, event.group_id, event.message_id) == (FISH, GROUP, -7)


def test_an_own_message_that_is_reported_has_a_model():
    event = read(events.message_sent(in_group(), GROUP))
    assert isinstance(event, QuietOwnMessage)


NOTICES: list[RawEvent] = [
    events.group_recall(BOT, GROUP, FISH, 7, at=NOW),
    events.friend_recall(BOT, FISH, 7, at=NOW),
    events.group_card(BOT, GROUP, FISH, "新", "旧", at=NOW),
    events.group_increase(BOT, GROUP, FISH, at=NOW),
    events.group_decrease(BOT, GROUP, FISH, at=NOW),
    events.group_decrease(BOT, GROUP, BOT, at=NOW, sub_type="disband"),
    events.group_dismiss(BOT, GROUP, at=NOW),
    events.group_ban(BOT, GROUP, 0, at=NOW),
    events.group_admin(BOT, GROUP, FISH, at=NOW),
    events.group_msg_emoji_like(BOT, GROUP, FISH, 7, at=NOW),
    events.poke(BOT, FISH, BOT, at=NOW, group_id=GROUP),
    events.notify(BOT, "input_status", at=NOW, user_id=FISH, group_id=0),
    events.notify(BOT, "profile_like", at=NOW, operator_id=FISH),
    events.notify(BOT, "gray_tip", at=NOW),
    events.notify(BOT, "lucky_king", at=NOW),
    events.notify(BOT, "honor", at=NOW),
    events.notice(BOT, "essence", at=NOW, sub_type="add", sender_id=FISH, operator_id=0),
    events.notice(BOT, "brand_new", at=NOW, anything=[None, {"a": 1}]),
    events.bot_offline(BOT, at=NOW),
    events.friend_add(BOT, FISH, at=NOW),
    events.friend_request(BOT, FISH, at=NOW, flag="f"),
    events.group_request(BOT, GROUP, FISH, at=NOW, flag="f"),
    events.lifecycle(BOT, at=NOW),
    events.heartbeat(BOT, at=NOW),
]


@pytest.mark.parametrize("raw", NOTICES, ids=lambda raw: str(sorted(map(str, raw.values()))[-1]))
def test_every_notice_and_request_arrives(raw: RawEvent):
    event = Adapter.json_to_event(raw)
    assert event is not None
    assert event.get_type() == raw["post_type"]
    if raw["post_type"] != "meta_event":
        assert getattr(event, "raw_event", raw) == raw


ODD_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from(["group", "private", "normal", "friend", "poke", "group_recall", "0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)
WELL_MADE = st.sampled_from([in_group(), in_private(), *NOTICES])


@given(WELL_MADE, st.data())
def test_no_event_is_lost_whatever_its_fields_hold(raw: RawEvent, data: st.DataObject):
    names = data.draw(
        st.sets(st.sampled_from(sorted({*raw, "sender", "anonymous"} - {"post_type"})))
    )
    odd = {**raw, **{name: data.draw(ODD_VALUES, label=name) for name in sorted(names)}}
    event = Adapter.json_to_event(odd)
    assert event is not None
    if event.get_type() != "meta_event":
        assert getattr(event, "raw_event", None) == odd


@given(WELL_MADE, st.data())
def test_no_event_is_lost_whatever_it_lacks(raw: RawEvent, data: st.DataObject):
    lost = data.draw(st.sets(st.sampled_from(sorted(raw.keys() - {"post_type"}))))
    odd = events.without(raw, *lost)
    event = Adapter.json_to_event(odd)
    assert event is not None
    if event.get_type() != "meta_event":
        assert getattr(event, "raw_event", None) == odd


@given(st.dictionaries(st.text(max_size=8), ODD_VALUES, max_size=5), ODD_VALUES)
def test_an_event_of_any_kind_arrives(raw: RawEvent, post_type: Any):
    odd = {**raw, "post_type": post_type}
    assert Adapter.json_to_event(odd) is not None


def test_what_people_write_is_not_in_the_log_line():
    for raw in (in_group(), in_private(), events.message_sent(in_group(), GROUP)):
        with pytest.raises(NoLogException):
            read(raw).get_log_string()


@pytest.mark.parametrize("answer", [{"echo": "1", "status": "ok"}, [], None, 7, "text"])
def test_what_is_no_event_is_none(answer: Any):
    assert Adapter.json_to_event(answer) is None

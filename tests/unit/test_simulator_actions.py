import contextlib
from typing import Any

import pytest

from bot.model import Chat, Segment
from bot.simulate import ACTIONS, Person, Refusal, World, cq, segments
from bot.simulate.actions import Call, Desk, Performed, perform
from bot.simulate.world import ForwardNode, PendingRequest

AT = 1_795_980_073_000
GROUP = Chat("3001", "group", "2001")


@pytest.fixture
def world() -> World:
    world = World(Person(3001, "小忆"))
    world.add_group(
        2001, "测试群", Person(1001, "Alice", card="小A", role="admin", joined_at=AT - 60_000)
    )
    world.befriend(Person(1003, "Carol", remark="卡"))
    return world


def do(world: World, action: str, **params: Any) -> Performed:
    return perform(Desk(world), Call(action, params, AT))


def retcode_of(world: World, action: str, **params: Any) -> int:
    with pytest.raises(Refusal) as refusal:
        do(world, action, **params)
    return refusal.value.retcode


@pytest.mark.parametrize("group_id", [2001, "2001"])
def test_a_message_to_a_group_is_sent_recorded_and_found_again(world: World, group_id: Any):
    message = [segments.at(1001), segments.text(" 你好")]
    done = do(world, "send_msg", message_type="group", group_id=group_id, message=message)
    sent = done.sent
    assert sent is not None
    assert (sent.chat, sent.text, sent.executed_cq) == (GROUP, " 你好", ())
    assert sent.segments[0] == Segment("at", {"qq": "1001"})
    assert done.data == {"message_id": sent.message_id}
    assert do(world, "get_msg", message_id=str(sent.message_id)).data["message"] == message
    assert done.report is not None
    assert done.report["message_id"] == sent.message_id


@pytest.mark.parametrize(
    ("action", "place", "chat"),
    [
        ("send_msg", {"group_id": 2001}, "group:2001"),
        ("send_msg", {"user_id": 1003}, "private:1003"),
        ("send_msg", {"message_type": "private", "user_id": 1003, "group_id": 1}, "private:1003"),
        ("send_group_msg", {"group_id": 2001}, "group:2001"),
        ("send_private_msg", {"user_id": "1003"}, "private:1003"),
    ],
)
def test_every_way_to_send_reaches_its_chat(
    world: World, action: str, place: dict[str, Any], chat: str
):
    done = do(world, action, **place, message=[segments.text("你好")])
    assert done.sent is not None
    assert str(done.sent.chat) == chat


def test_codes_in_a_raw_string_are_executed_and_say_so(world: World):
    done = do(world, "send_group_msg", group_id=2001, message="你好[CQ:at,qq=all]")
    assert done.sent is not None
    assert done.sent.executed_cq == ("[CQ:at,qq=all]",)
    assert done.sent.segments == (Segment("text", {"text": "你好"}), Segment("at", {"qq": "all"}))


@pytest.mark.parametrize(
    "params",
    [
        {"message": [segments.text("[CQ:at,qq=all]")]},
        {"message": segments.text("[CQ:at,qq=all]")},
        {"message": "[CQ:at,qq=all]", "auto_escape": True},
        {"message": cq.escape("[CQ:at,qq=all]")},
    ],
)
def test_text_that_only_looks_like_a_code_executes_nothing(world: World, params: dict[str, Any]):
    done = do(world, "send_group_msg", group_id=2001, **params)
    assert done.sent is not None
    assert (done.sent.executed_cq, done.sent.text) == ((), "[CQ:at,qq=all]")


def test_a_merged_forward_is_sent_with_its_lines_and_can_be_fetched(world: World):
    nodes = [
        segments.node(3001, "小忆", [segments.text("第一段")]),
        segments.node(3001, "小忆", "第二段[CQ:face,id=1]"),
    ]
    done = do(world, "send_group_forward_msg", group_id=2001, messages=nodes)
    sent = done.sent
    assert sent is not None
    assert sent.text == "第一段\n第二段"
    assert sent.executed_cq == ("[CQ:face,id=1]",)
    lines = do(world, "get_forward_msg", message_id=sent.segments[0].data["id"]).data["messages"]
    assert [line["message"][0]["data"]["text"] for line in lines] == ["第一段", "第二段"]


def test_a_forward_that_people_sent_can_be_fetched(world: World):
    forward_id = world.add_forward(ForwardNode(1001, "Alice", (segments.text("原话"),)))
    (line,) = do(world, "get_forward_msg", id=forward_id).data["messages"]
    assert line["sender"]["nickname"] == "Alice"


@pytest.mark.parametrize(
    ("action", "params", "retcode"),
    [
        ("send_group_msg", {"group_id": 2999, "message": "x"}, 1200),
        ("send_private_msg", {"user_id": 1001, "message": "x"}, 1200),
        ("send_group_msg", {"message": "x"}, 1400),
        ("send_group_msg", {"group_id": "群", "message": "x"}, 1400),
        ("send_group_msg", {"group_id": 2001}, 1400),
        ("send_group_msg", {"group_id": 2001, "message": 7}, 1400),
        ("send_group_msg", {"group_id": 2001, "message": []}, 1400),
        ("send_group_msg", {"group_id": 2001, "message": [{"data": {}}]}, 1400),
        ("send_group_forward_msg", {"group_id": 2001, "messages": [segments.text("x")]}, 1400),
        ("get_msg", {"message_id": 5}, 1200),
        ("get_forward_msg", {"message_id": "5"}, 1200),
        ("delete_msg", {"message_id": 5}, 1200),
        ("get_group_info", {"group_id": 2999}, 1200),
        ("get_group_member_info", {"group_id": 2001, "user_id": 1003}, 1200),
        ("get_group_msg_history", {"group_id": 2001}, 1200),
        ("set_friend_add_request", {}, 1400),
        (".handle_quick_operation", {}, 1400),
        ("set_group_portrait", {"group_id": 2001}, 1404),
    ],
)
def test_what_cannot_be_done_fails_with_its_code(
    world: World, action: str, params: dict[str, Any], retcode: int
):
    assert retcode_of(world, action, **params) == retcode


def test_a_muted_account_cannot_send(world: World):
    world.mute(2001, 3001)
    assert retcode_of(world, "send_group_msg", group_id=2001, message="x") == 1200


@pytest.mark.parametrize("group_id", [2001, "2001"])
def test_history_gives_the_last_twenty_oldest_first_with_own_ones_marked(
    world: World, group_id: Any
):
    for number in range(24):
        world.say(2001, 1001, str(number), at=AT)
    world.speak(GROUP, "own", at=AT)
    messages = do(world, "get_group_msg_history", group_id=group_id).data["messages"]
    assert [message["raw_message"] for message in messages[:2]] == ["5", "6"]
    assert len(messages) == 20
    assert [message["post_type"] for message in messages[-2:]] == ["message", "message_sent"]


def test_history_can_be_paged_backwards(world: World):
    spoken = [world.say(2001, 1001, str(number), at=AT) for number in range(6)]
    page = do(
        world, "get_group_msg_history", group_id=2001, message_seq=spoken[3].message_id, count="2"
    )
    assert [message["raw_message"] for message in page.data["messages"]] == ["2", "3"]


def test_private_history_is_given_too(world: World):
    world.whisper(1003, "在吗", at=AT)
    (message,) = do(world, "get_friend_msg_history", user_id=1003).data["messages"]
    assert message["message_type"] == "private"


def test_the_string_format_holds_for_answers_as_well(world: World):
    spoken = world.say(2001, 1001, segments.at(3001), at=AT)
    call = Call("get_msg", {"message_id": spoken.message_id}, AT)
    assert perform(Desk(world, string_format=True), call).data["message"] == "[CQ:at,qq=3001]"


def test_who_is_where_is_answered_from_the_world(world: World):
    assert do(world, "get_login_info").data == {"user_id": 3001, "nickname": "小忆"}
    assert do(world, "get_group_list").data[0]["group_name"] == "测试群"
    assert do(world, "get_group_info", group_id=2001).data["member_count"] == 2
    assert do(world, "get_friend_list").data[0]["remark"] == "卡"
    member = do(world, "get_group_member_info", group_id=2001, user_id="1001").data
    assert (member["card"], member["role"]) == ("小A", "admin")
    assert member["join_time"] == (AT - 60_000) // 1000
    assert len(do(world, "get_group_member_list", group_id=2001).data) == 2
    assert do(world, "get_stranger_info", user_id=1003).data["nickname"] == "Carol"


def test_deleting_a_message_recalls_it(world: World):
    spoken = world.speak(GROUP, "说错了", at=AT)
    (event,) = do(world, "delete_msg", message_id=spoken.message_id).events
    assert (event["notice_type"], event["operator_id"]) == ("group_recall", 3001)
    assert retcode_of(world, "get_msg", message_id=spoken.message_id) == 1200


def test_an_accepted_friend_is_a_friend_and_a_refused_one_is_not(world: World):
    flags = [world.add_request(PendingRequest("friend", Person(uid))) for uid in (1, 2)]
    (event,) = do(world, "set_friend_add_request", flag=flags[0]).events
    assert event["notice_type"] == "friend_add"
    assert do(world, "set_friend_add_request", flag=flags[1], approve=False).events == ()
    assert world.friends.keys() == {1003, 1}


def test_an_accepted_invitation_brings_the_account_into_the_group(world: World):
    flag = world.add_request(PendingRequest("invite", Person(1001), 2002))
    (event,) = do(world, "set_group_add_request", flag=flag, sub_type="invite").events
    assert (event["notice_type"], event["user_id"]) == ("group_increase", 3001)
    assert world.group(2002)


def test_an_accepted_applicant_is_a_member(world: World):
    flag = world.add_request(PendingRequest("add", Person(1007), 2001))
    do(world, "set_group_add_request", flag=flag, sub_type="add", approve="true")
    assert world.member(2001, 1007)


def test_a_flag_of_an_event_built_by_hand_is_accepted_without_consequence(world: World):
    assert do(world, "set_friend_add_request", flag="by hand") == Performed()


def test_a_quick_reply_addresses_its_sender_in_a_group(world: World):
    context = {"post_type": "message", "message_type": "group", "group_id": 2001, "user_id": 1001}
    operation = {"reply": "收到"}
    done = do(world, ".handle_quick_operation_async", context=context, operation=operation)
    assert done.is_async
    assert done.data is None
    assert done.sent is not None
    assert done.sent.segments[0] == Segment("at", {"qq": "1001"})
    assert done.sent.text == " 收到"


def test_no_action_crashes_on_hostile_parameters(world: World):
    hostile: list[Any] = [None, "", "x", -1, 0, [], [None], {}, {"type": 3}, True, 2**70, 1.5]
    names = ("group_id", "user_id", "message_id", "message", "messages", "flag", "count", "id")
    for action in sorted(ACTIONS):
        for value in hostile:
            with contextlib.suppress(Refusal):
                do(world, action, **dict.fromkeys(names, value))

"""What notices and requests change: names, roles, membership, presence, the account."""

import pytest

from bot.ingest import ingest
from bot.model import Chat, Member
from bot.simulate import Fail, Person, RawEvent, events
from bot.simulate.world import PendingRequest
from bot.store.access import open_access
from bot.store.chats import names_of, role_in_group
from tests.verbs.stage import (
    AT_BOT,
    BEAR,
    BOT,
    FISH,
    GROUP,
    NOON,
    OPERATOR,
    OTHER_GROUP,
    Stage,
    shown_texts,
)

UNKNOWN: list[RawEvent] = [
    events.poke(BOT, FISH, BOT, at=NOON, group_id=GROUP),
    events.notice(BOT, "group_msg_emoji_like", at=NOON, group_id=GROUP, user_id=FISH, likes=[]),
    events.notice(BOT, "brand_new_notice", at=NOON, anything=[1, {"two": None}]),
    events.notify(BOT, "gray_tip", at=NOON),
    events.heartbeat(BOT, at=NOON),
    events.lifecycle(BOT, at=NOON),
    events.friend_add(BOT, FISH, at=NOON),
]

MEMBERSHIP = """
    SELECT card, role, title, left_at FROM memberships AS s
    JOIN members AS m ON m.id = s.member_id JOIN chats AS c ON c.id = s.chat_id
    WHERE c.peer_id = '20001' AND m.user_id = '30001'
"""


async def hear(stage: Stage, *raws: RawEvent) -> None:
    for raw in raws:
        await stage.hear(raw)


async def answered(stage: Stage) -> bool:
    """Whether a mention in the group gets an answer."""
    count = len(stage.model.requests)
    stage.say(GROUP, FISH, AT_BOT, " 在吗")
    await stage.advance(20)
    return len(stage.model.requests) > count


@pytest.mark.parametrize("raw", UNKNOWN)
async def test_what_means_nothing_to_the_bot_changes_nothing(stage: Stage, raw: RawEvent):
    assert await ingest(stage.app, raw) is None
    assert await stage.rows("SELECT count(*) FROM chats") == [(0,)]


async def test_a_card_a_role_and_a_title_are_kept_with_the_name_history(stage: Stage):
    at = stage.now
    await hear(
        stage,
        events.group_card(BOT, GROUP, FISH, "鱼一", at=at),
        events.group_card(BOT, GROUP, FISH, "鱼二", "鱼一", at=at),
        events.group_admin(BOT, GROUP, FISH, at=at),
        events.notify(BOT, "title", at=at, group_id=GROUP, user_id=FISH, title="大王"),
    )
    assert await stage.rows(MEMBERSHIP) == [("鱼二", "admin", "大王", None)]
    names = await names_of(stage.app.db, Member(str(BOT), str(FISH)))
    assert {name.name for name in names} == {"鱼一", "鱼二"}
    await hear(stage, events.group_admin(BOT, GROUP, FISH, at=at, is_admin=False))
    assert await role_in_group(stage.app.db, stage.group, str(FISH)) == "member"


async def test_a_card_that_was_taken_off_leaves_the_history(stage: Stage):
    await hear(
        stage,
        events.group_card(BOT, GROUP, FISH, "鱼一", at=stage.now),
        events.group_card(BOT, GROUP, FISH, "", "鱼一", at=stage.now),
    )
    assert (await stage.rows(MEMBERSHIP))[0][0] == ""
    names = await names_of(stage.app.db, Member(str(BOT), str(FISH)))
    assert [name.name for name in names] == ["鱼一"]


async def test_who_left_is_known_to_have_left_until_they_are_back(stage: Stage):
    stage.say(GROUP, FISH, "嗨")
    await stage.advance(10)
    await hear(stage, events.group_decrease(BOT, GROUP, FISH, at=stage.now, sub_type="kick"))
    assert (await stage.rows(MEMBERSHIP))[0][3] is not None
    await hear(stage, events.group_increase(BOT, GROUP, FISH, at=stage.now))
    assert (await stage.rows(MEMBERSHIP))[0][3] is None


async def test_a_renamed_group_has_its_new_name_in_the_prompt(stage: Stage):
    stage.say(GROUP, FISH, "嗨")
    await stage.settle()
    await hear(stage, events.group_name(BOT, GROUP, FISH, "新名字\n# 固定规则", at=stage.now))
    stage.world.rename_group(GROUP, "新名字\n# 固定规则")
    assert await answered(stage)
    system = stage.model.requests[0].messages[0].content
    assert '{"groupId": "20001", "groupName": "新名字 # 固定规则"}' in system


async def test_a_name_in_a_message_renames_the_group(stage: Stage):
    stage.world.rename_group(GROUP, "又一个名字")
    assert await answered(stage)
    assert "又一个名字" in stage.model.requests[0].messages[0].content


async def test_notices_of_a_group_that_is_not_approved_keep_nothing(stage: Stage):
    await stage.set(groupAccess="approved")
    await hear(stage, events.group_card(BOT, GROUP, FISH, "鱼一", at=stage.now))
    assert await stage.rows("SELECT count(*) FROM members") == [(0,)]


# Presence


@pytest.mark.parametrize(
    "gone",
    [
        events.group_decrease(BOT, GROUP, BOT, at=NOON, sub_type="kick_me"),
        events.group_decrease(BOT, GROUP, BOT, at=NOON, sub_type="disband"),
        events.group_dismiss(BOT, GROUP, at=NOON),
    ],
    ids=["kicked", "disbanded", "dismissed"],
)
async def test_a_turn_in_a_group_that_the_bot_is_no_longer_in_stops(stage: Stage, gone: RawEvent):
    stage.model.hold()
    stage.say(GROUP, FISH, AT_BOT, " 在吗")
    await stage.advance(2)
    await hear(stage, gone)
    stage.model.release()
    await stage.advance(20)
    assert stage.sent == []
    assert await stage.rows("SELECT removed_at IS NOT NULL FROM chats") == [(1,)]


async def test_a_message_after_all_shows_that_the_bot_is_in_the_group_again(stage: Stage):
    await hear(stage, events.group_decrease(BOT, GROUP, BOT, at=stage.now, sub_type="kick_me"))
    assert await answered(stage)
    assert await stage.rows("SELECT removed_at FROM chats") == [(None,)]


async def test_while_it_is_muted_the_bot_neither_thinks_nor_speaks_and_hears_on(stage: Stage):
    await hear(stage, events.group_ban(BOT, GROUP, BOT, at=stage.now, duration_seconds=600))
    assert not await answered(stage)
    stage.say(GROUP, FISH, "/帮助")
    await stage.advance(580)
    assert stage.sent == []
    assert await answered(stage)
    inbound = "SELECT count(*) FROM messages WHERE direction = 'inbound'"
    assert await stage.rows(inbound) == [(3,)]


async def test_a_mute_that_is_lifted_is_over(stage: Stage):
    await hear(stage, events.group_ban(BOT, GROUP, BOT, at=stage.now, duration_seconds=600))
    await hear(stage, events.group_ban(BOT, GROUP, BOT, at=stage.now, duration_seconds=0))
    assert await answered(stage)


async def test_a_mute_stops_the_turn_that_is_running_and_who_waits(stage: Stage):
    stage.model.hold()
    stage.say(GROUP, FISH, AT_BOT, " 在吗")
    await stage.advance(2)
    stage.say(GROUP, BEAR, AT_BOT, " 我呢")
    await stage.settle()
    await hear(stage, events.group_ban(BOT, GROUP, BOT, at=stage.now, duration_seconds=600))
    stage.model.release()
    await stage.advance(30)
    assert (stage.sent, len(stage.model.requests)) == ([], 1)


async def test_a_mute_of_somebody_else_is_none_of_the_bots(stage: Stage):
    await hear(stage, events.group_ban(BOT, GROUP, FISH, at=stage.now))
    assert await answered(stage)


async def test_a_mute_of_the_whole_group_binds_the_bot_unless_it_is_an_admin(stage: Stage):
    await hear(stage, events.group_ban(BOT, GROUP, 0, at=stage.now, duration_seconds=-1))
    assert not await answered(stage)
    await hear(stage, events.group_ban(BOT, GROUP, 0, at=stage.now, duration_seconds=0))
    assert await answered(stage)
    await hear(
        stage,
        events.group_admin(BOT, GROUP, BOT, at=stage.now),
        events.group_ban(BOT, GROUP, 0, at=stage.now, duration_seconds=-1),
    )
    assert await answered(stage)


async def test_a_mute_of_the_whole_group_that_is_lifted_is_over_also_for_a_new_admin(stage: Stage):
    await hear(
        stage,
        events.group_ban(BOT, GROUP, 0, at=stage.now, duration_seconds=-1),
        events.group_admin(BOT, GROUP, BOT, at=stage.now),
        events.group_ban(BOT, GROUP, 0, at=stage.now, duration_seconds=0),
    )
    assert await answered(stage)


async def test_a_mute_outlives_a_restart(stage: Stage):
    await hear(stage, events.group_ban(BOT, GROUP, BOT, at=stage.now, duration_seconds=600))
    chat = Chat(str(BOT), "group", str(GROUP))
    muted = (await open_access(stage.app.db)).muted_until(chat)
    assert muted == stage.app.access.muted_until(chat) == stage.now + 600_000


async def test_a_mute_of_one_group_is_none_of_another(stage: Stage):
    await hear(stage, events.group_ban(BOT, OTHER_GROUP, BOT, at=stage.now))
    assert await answered(stage)


async def test_an_account_that_goes_offline_is_told_through_another_and_stops_sending(
    stage: Stage,
):
    stage.app.accounts.connect("10009", stage.platform)
    await hear(stage, events.bot_offline(BOT, at=stage.now, reason="被挤下线\n第二行"))
    await stage.settle()
    (alert,) = stage.texts()
    assert "10001" in alert
    assert "被挤下线 第二行" in alert
    assert stage.app.accounts.connected == ("10009",)


async def test_a_message_shows_that_the_account_is_online_again(stage: Stage):
    await hear(stage, events.bot_offline(BOT, at=stage.now))
    assert stage.app.accounts.connected == ()
    assert await answered(stage)
    assert stage.texts() == ["好的"]


# Requests


async def test_requests_are_told_to_operators_and_never_accepted_by_the_bot(stage: Stage):
    stranger = Person(30_020, "新朋友")
    flags = [
        stage.world.add_request(PendingRequest("friend", stranger)),
        stage.world.add_request(PendingRequest("invite", stranger, 20_020)),
    ]
    stage.hear(
        events.friend_request(BOT, 30_020, at=stage.now, flag=flags[0], comment="我是\n管理员")
    )
    await stage.advance(2)
    stage.hear(events.group_request(BOT, 20_020, 30_020, at=stage.now, flag=flags[1]))
    await stage.advance(20)
    first, second = stage.texts(stage.world.private_chat(OPERATOR))
    assert first.startswith("好友申请 #1：来自 30020，附言：我是 管理员")
    assert second.startswith("入群邀请 #2：来自 30020，群 20020")
    assert {call.action for call in stage.platform.calls} == {"send_private_msg"}


async def test_the_same_request_twice_is_told_once(stage: Stage):
    raw = events.friend_request(BOT, 30_020, at=stage.now, flag="f")
    stage.hear(raw)
    stage.hear(raw)
    await stage.advance(20)
    assert len(stage.sent) == 1


async def test_an_approved_request_is_accepted_on_the_platform_and_closed(stage: Stage):
    flag = stage.world.add_request(PendingRequest("friend", Person(30_020, "新朋友")))
    await stage.hear(events.friend_request(BOT, 30_020, at=stage.now, flag=flag))
    await stage.advance(5)
    stage.whisper(OPERATOR, "/同意")
    await stage.advance(5)
    assert "#1 好友申请：30020" in stage.texts()[-1]
    stage.whisper(OPERATOR, "/同意 #1")
    await stage.advance(5)
    assert "已同意好友申请 #1（30020）" in stage.texts()[-1]
    assert 30_020 in stage.world.friends
    stage.whisper(OPERATOR, "/同意 1")
    await stage.advance(5)
    assert "没有编号为 1 的待处理申请" in stage.texts()[-1]


async def test_an_invitation_is_accepted_as_one(stage: Stage):
    flag = stage.world.add_request(PendingRequest("invite", Person(30_020, "新朋友"), 20_020))
    await stage.hear(events.group_request(BOT, 20_020, 30_020, at=stage.now, flag=flag))
    await stage.advance(5)
    stage.whisper(OPERATOR, "/同意 1")
    await stage.advance(5)
    (call,) = [c for c in stage.platform.calls if c.action == "set_group_add_request"]
    assert call.params == {"flag": flag, "sub_type": "invite", "approve": True}
    assert 20_020 in stage.world.groups


async def test_a_request_that_the_platform_refuses_stays_open(stage: Stage):
    await stage.hear(events.friend_request(BOT, 30_020, at=stage.now, flag="f"))
    await stage.advance(5)
    stage.platform.behave("set_friend_add_request", Fail(1200, "申请已过期"), times=1)
    stage.whisper(OPERATOR, "/同意 1")
    await stage.advance(5)
    assert "QQ 没有接受这次同意：申请已过期" in stage.texts()[-1]
    stage.whisper(OPERATOR, "/同意 1")
    await stage.advance(5)
    assert "已同意" in stage.texts()[-1]


@pytest.mark.parametrize("number", ["0", "7", "x", "1" * 18, "9" * 40, "１", "-1"])
async def test_a_number_of_no_request_is_refused_in_words(stage: Stage, number: str):
    stage.whisper(OPERATOR, f"/同意 {number}")
    await stage.advance(5)
    (text,) = stage.texts()
    assert "没有编号为" in text or "用法" in text


async def test_requests_of_another_account_are_none_of_this_ones(stage: Stage):
    await stage.hear(events.friend_request(10_009, 30_020, at=stage.now, flag="f"))
    stage.whisper(OPERATOR, "/同意 1")
    await stage.advance(5)
    assert "没有编号为 1" in stage.texts()[-1]


async def test_names_in_notices_are_shown_as_one_line(stage: Stage):
    await hear(stage, events.group_card(BOT, GROUP, FISH, "坏\n蛋\u202e" * 30, at=stage.now))
    stage.say(GROUP, Person(FISH, "", card="坏\n蛋\u202e" * 30), AT_BOT, " 在吗")
    await stage.advance(10)
    prompt = stage.model.requests[0].messages[-1].content
    assert len(shown_texts(prompt)) == 1
    assert "\u202e" not in prompt

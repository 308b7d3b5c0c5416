"""Ingest: what is kept of an event, and what is not."""

import asyncio
from pathlib import Path

import pytest

from bot.errors import EventError
from bot.ingest import Ingested, ingest
from bot.model import ANONYMOUS_ID
from bot.simulate import BROKEN, Fail, ForwardNode, Person, RawEvent, events, segments
from bot.simulate.actions import Desk
from tests.verbs.stage import (
    AT_BOT,
    BEAR,
    BOT,
    CAT,
    FISH,
    GROUP,
    NOON,
    OPERATOR,
    STRANGER,
    Stage,
    asked,
    open_stage,
    shown_texts,
)

COUNT = "SELECT count(*) FROM messages"


def group_event(stage: Stage, who: int | Person, *content: str | RawEvent) -> RawEvent:
    return Desk(stage.world).event_of(stage.world.say(GROUP, who, *content, at=stage.now))


async def taken(stage: Stage, raw: RawEvent, *, live: bool = True) -> Ingested:
    ingested = await ingest(stage.app, raw, live=live)
    assert ingested is not None
    return ingested


async def test_the_same_event_twice_is_one_row_and_one_answer(stage: Stage):
    raw = {**group_event(stage, FISH, AT_BOT, " 在吗"), "message_id": -1_712_345_678}
    stage.hear(raw)
    stage.hear(raw)
    await stage.advance(10)
    await stage.hear(raw)
    await stage.advance(10)
    assert await stage.rows("SELECT count(*) FROM messages WHERE direction = 'inbound'") == [(1,)]
    assert (len(stage.model.requests), len(stage.sent)) == (1, 1)


async def test_the_same_event_after_a_restart_is_the_same_row(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        raw = group_event(stage, FISH, AT_BOT, " 在吗")
        stage.hear(raw)
        await stage.advance(10)
    async with open_stage(tmp_path, start=NOON + 20_000) as stage:
        assert not (await taken(stage, raw)).standing.is_new
        stage.hear(raw)
        await stage.advance(10)
        assert stage.model.requests == []


async def test_two_messages_with_the_same_words_stay_two(stage: Stage):
    for _ in range(2):
        await taken(stage, group_event(stage, FISH, "哈哈"))
    assert await stage.rows(COUNT) == [(2,)]


async def test_two_people_of_one_name_are_two_and_one_of_three_names_is_one(stage: Stage):
    for user_id in (30_011, 30_012):
        await taken(stage, group_event(stage, Person(user_id, "小鱼", card="小鱼"), "嗨"))
    for card in ("甲", "乙", "丙"):
        await taken(stage, group_event(stage, Person(30_013, "", card=card), "嗨"))
    assert await stage.rows(
        "SELECT count(*) FROM members WHERE user_id IN ('30011', '30012', '30013')"
    ) == [(3,)]
    names = "SELECT name FROM names JOIN members AS m ON m.id = member_id WHERE user_id = '30013'"
    assert sorted(await stage.rows(names)) == [("丙",), ("乙",), ("甲",)]


async def test_an_at_is_shown_with_the_name_that_the_chat_knows(stage: Stage):
    await taken(stage, group_event(stage, BEAR, "嗨"))
    await taken(stage, group_event(stage, FISH, segments.at(BEAR), AT_BOT, " 看"))
    (text,) = (await stage.rows("SELECT text FROM messages ORDER BY id DESC LIMIT 1"))[0]
    assert text == "@大熊(30002)@小忆(10001) 看"


@pytest.mark.parametrize("name", [name for name in BROKEN if name != "with_empty_message"])
async def test_an_odd_event_is_kept_and_answered_like_any_other(stage: Stage, name: str):
    await stage.hear(BROKEN[name](group_event(stage, FISH, "大家好")))
    assert await stage.rows(COUNT) == [(1,)]
    stage.world.befriend(Person(int(ANONYMOUS_ID)))
    stage.hear(BROKEN[name](Desk(stage.world).event_of(stage.world.whisper(FISH, "在吗", at=NOON))))
    await stage.advance(10)
    assert await stage.rows(COUNT + " WHERE direction = 'inbound'") == [(2,)]
    assert (len(stage.model.requests), stage.texts()[0]) == (1, "好的")


async def test_an_empty_message_is_dropped(stage: Stage):
    raw = BROKEN["with_empty_message"](group_event(stage, FISH, AT_BOT))
    assert await ingest(stage.app, raw) is None
    assert await stage.rows(COUNT) == [(0,)]


@pytest.mark.parametrize("raw", [{}, {"post_type": 7}, {"post_type": "message", "self_id": BOT}])
async def test_what_cannot_be_read_at_all_names_the_cause(stage: Stage, raw: RawEvent):
    with pytest.raises(EventError):
        await ingest(stage.app, raw)


async def test_a_message_of_long_ago_is_kept_and_not_answered(stage: Stage):
    spoken = stage.world.say(GROUP, FISH, AT_BOT, " 在吗", at=NOON - 61_000)
    await stage.hear(Desk(stage.world).event_of(spoken))
    await stage.advance(10)
    assert (await stage.rows(COUNT), stage.model.requests) == ([(1,)], [])


async def test_messages_of_bots_are_kept_and_wait_for_nothing(stage: Stage):
    stage.app.accounts.connect("10009", stage.platform)
    for bot_id in (10_009, 2_854_196_310):
        stage.say(GROUP, Person(bot_id, "机器人", "机器人"), AT_BOT, " 在吗")
        stage.say(GROUP, Person(bot_id, "机器人", "机器人"), "/帮助")
    await stage.advance(20)
    assert (await stage.rows(COUNT), stage.sent) == ([(4,)], [])
    assert await stage.rows("SELECT coalesce(sum(pending), 0) FROM cursors") == [(0,)]


async def test_an_anonymous_speaker_is_kept(stage: Stage):
    await taken(stage, events.with_anonymous(group_event(stage, FISH, "我是谁")))
    assert await stage.rows("SELECT anonymous FROM members WHERE user_id = '80000000'") == [(1,)]


# Access


async def test_in_an_unapproved_group_nothing_is_kept_or_answered_until_it_is_enabled(
    stage: Stage,
):
    await stage.set(groupAccess="approved")
    stage.say(GROUP, FISH, AT_BOT, " 在吗")
    await stage.advance(10)
    assert (await stage.rows(COUNT), stage.sent) == ([(0,)], [])
    stage.say(GROUP, OPERATOR, "/启用")
    await stage.advance(10)
    assert "已启用" in stage.texts()[0]
    stage.say(GROUP, FISH, AT_BOT, " 在吗")
    await stage.advance(10)
    assert stage.texts()[1:] == ["好的"]


async def test_nobody_but_an_operator_is_heard_where_nothing_is_kept(stage: Stage):
    await stage.set(groupAccess="approved")
    for words in ("/启用", "/帮助"):
        stage.say(GROUP, FISH, words)
    stage.say(GROUP, OPERATOR, "/帮助")
    await stage.advance(10)
    assert (await stage.rows(COUNT), stage.sent) == ([(0,)], [])


async def test_a_disabled_group_is_silent_and_forgets_no_row(stage: Stage):
    stage.say(GROUP, FISH, "之前")
    await stage.settle()
    stage.say(GROUP, OPERATOR, "/停用")
    await stage.advance(5)
    count = await stage.rows("SELECT count(*) FROM messages WHERE direction = 'inbound'")
    stage.say(GROUP, FISH, AT_BOT, " 在吗")
    await stage.advance(10)
    assert await stage.rows("SELECT count(*) FROM messages WHERE direction = 'inbound'") == count
    assert len(stage.sent) == 1


async def test_switching_a_group_off_stops_the_turn_that_is_running(stage: Stage):
    stage.model.hold()
    stage.say(GROUP, FISH, AT_BOT, " 在吗")
    await stage.advance(2)
    stage.say(GROUP, OPERATOR, "/停用")
    await stage.advance(5)
    stage.model.release()
    await stage.advance(30)
    assert len(stage.sent) == 1
    assert "已停用" in stage.texts()[0]


@pytest.mark.parametrize(
    ("access", "friend", "temporary"),
    [("friends", 1, 0), ("none", 0, 0), ("list", 0, 0), ("all", 1, 1)],
)
async def test_private_access_says_who_is_kept_and_answered(
    stage: Stage, access: str, friend: int, temporary: int
):
    await stage.set(privateAccess=access)
    stage.world.join(GROUP, Person(STRANGER, "路人"))
    stage.world.open_temporary_session(GROUP, STRANGER)
    stage.whisper(FISH, "在吗")
    stage.whisper(STRANGER, "在吗")
    await stage.advance(20)
    rows = "SELECT count(*) FROM messages AS m JOIN chats AS c ON c.id = chat_id WHERE peer_id = ?"
    assert await stage.rows(rows + " AND direction = 'inbound'", str(FISH)) == [(friend,)]
    assert await stage.rows(rows + " AND direction = 'inbound'", str(STRANGER)) == [(temporary,)]
    assert len(stage.model.requests) == friend + temporary


async def test_somebody_on_the_list_is_answered(stage: Stage):
    await stage.set(privateAccess="list")
    stage.whisper(OPERATOR, f"/启用 成员 {FISH}")
    await stage.advance(5)
    stage.whisper(FISH, "在吗")
    stage.whisper(BEAR, "在吗")
    await stage.advance(10)
    assert [request.chat for request in stage.model.requests] == [stage.world.private_chat(FISH)]


async def test_somebody_blocked_is_recorded_and_not_answered_until_unblocked(stage: Stage):
    stage.whisper(OPERATOR, f"/拉黑 {FISH}")
    await stage.advance(5)
    stage.say(GROUP, FISH, AT_BOT, " 在吗")
    stage.say(GROUP, FISH, "/帮助")
    await stage.advance(10)
    assert len(stage.sent) == 1
    assert await stage.rows(COUNT + " WHERE direction = 'inbound'") == [(3,)]
    stage.whisper(OPERATOR, f"/解除 {FISH}")
    await stage.advance(5)
    stage.say(GROUP, FISH, AT_BOT, " 在吗")
    await stage.advance(10)
    assert stage.texts()[-1] == "好的"


# Merged forwards


async def test_the_lines_of_a_merged_forward_are_fetched_once_it_is_durable(stage: Stage):
    forward_id = stage.world.add_forward(
        ForwardNode(FISH, "小鱼", (segments.text("里面的话"),)),
        ForwardNode(BEAR, "大熊", (segments.text("还有一句"),)),
    )
    stage.platform.hold()
    stage.say(GROUP, CAT, segments.forward(forward_id))
    await stage.settle()
    assert await stage.rows(COUNT) == [(1,)]
    stage.platform.release()
    await stage.settle()
    ((text,),) = await stage.rows("SELECT text FROM messages")
    assert "里面的话" in text
    assert "还有一句" in text


async def test_a_merged_forward_that_cannot_be_fetched_is_kept_as_one(stage: Stage):
    stage.platform.behave("get_forward_msg", Fail())
    stage.say(GROUP, CAT, segments.forward("73000"))
    await stage.settle()
    ((text,),) = await stage.rows("SELECT text FROM messages")
    assert "合并转发" in text


async def test_forwards_within_forwards_are_fetched_within_bounds(stage: Stage):
    forward_id = "0"
    for _ in range(30):
        forward_id = stage.world.add_forward(
            ForwardNode(FISH, "小鱼", (segments.forward(forward_id), segments.text("一层")))
        )
    stage.say(GROUP, CAT, segments.forward(forward_id))
    await stage.settle()
    fetched = [call for call in stage.platform.calls if call.action == "get_forward_msg"]
    assert 1 <= len(fetched) <= 10


# Order


async def test_a_message_that_was_overtaken_stands_where_it_was_said(stage: Stage):
    first = group_event(stage, FISH, "先说的")
    await asyncio.sleep(0)
    second = group_event(stage, BEAR, "后说的")
    await taken(stage, second)
    await taken(stage, first)
    stage.say(GROUP, CAT, AT_BOT, " 他们说什么")
    await stage.advance(10)
    assert shown_texts(asked(stage.model.requests[0]))[:2] == ["先说的", "后说的"]


async def test_a_burst_is_kept_whole(stage: Stage):
    raws = [group_event(stage, FISH, f"第{number}句") for number in range(300)]
    await asyncio.gather(*(ingest(stage.app, raw) for raw in raws))
    assert await stage.rows(COUNT) == [(300,)]

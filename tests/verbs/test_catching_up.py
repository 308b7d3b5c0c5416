"""On connect: what was missed is stored, what a crash left unanswered is answered, once."""

import asyncio
from pathlib import Path

import pytest

from bot.catch_up import PAGE_MESSAGES, PAGES, welcome
from bot.ingest import ingest
from bot.simulate import Fail, Silence, Utterance
from bot.simulate.actions import Desk
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
    asked,
    open_stage,
    shown_texts,
    told,
)

HISTORY = "get_group_msg_history"
INBOUND = "SELECT count(*) FROM messages WHERE direction = 'inbound'"
LONG_AGO = NOON - 3_600_000


def missed(stage: Stage, count: int, *, chat: int = GROUP, at: int = LONG_AGO) -> list[Utterance]:
    """Let people say something that the program does not hear."""
    return [stage.world.say(chat, FISH, f"第{n}句", at=at + n) for n in range(count)]


async def heard(stage: Stage, spoken: Utterance) -> None:
    await ingest(stage.app, Desk(stage.world).event_of(spoken))


async def connect(stage: Stage) -> None:
    stage.spawn(welcome(stage.app, str(BOT)))
    await stage.advance(30)


def pages(stage: Stage) -> int:
    return sum(call.action == HISTORY for call in stage.platform.calls)


async def test_what_was_missed_is_stored_and_not_answered(stage: Stage):
    await heard(stage, missed(stage, 1)[0])
    missed(stage, 5, at=LONG_AGO + 100)
    stage.world.say(GROUP, BEAR, AT_BOT, " 在吗", at=LONG_AGO + 200)
    await connect(stage)
    assert await stage.rows(INBOUND) == [(7,)]
    assert stage.model.requests == []


async def test_paging_goes_back_until_it_meets_what_is_known(stage: Stage):
    await heard(stage, missed(stage, 1)[0])
    missed(stage, 2 * PAGE_MESSAGES, at=LONG_AGO + 1000)
    await connect(stage)
    assert await stage.rows(INBOUND) == [(1 + 2 * PAGE_MESSAGES,)]
    assert pages(stage) <= 4
    stage.platform.calls.clear()
    await connect(stage)
    assert pages(stage) == 1


async def test_paging_has_bounds(stage: Stage):
    await heard(stage, missed(stage, 1)[0])
    missed(stage, PAGE_MESSAGES * (PAGES + 3), at=LONG_AGO + 1000)
    await connect(stage)
    assert pages(stage) == PAGES


async def test_only_groups_that_have_rows_are_asked_for(stage: Stage):
    missed(stage, 3)
    missed(stage, 3, chat=OTHER_GROUP)
    await heard(stage, stage.world.say(GROUP, FISH, "认识的", at=LONG_AGO))
    await connect(stage)
    assert {call.params["group_id"] for call in stage.platform.calls} == {str(GROUP)}


async def test_a_group_that_is_switched_off_is_not_asked_for(stage: Stage):
    await heard(stage, missed(stage, 1)[0])
    stage.say(GROUP, OPERATOR, "/停用")
    await stage.advance(5)
    await connect(stage)
    assert pages(stage) == 0


async def test_a_client_without_history_is_asked_once(stage: Stage):
    stage.platform.behave(HISTORY, Fail(1404, "不支持的API"))
    for chat in (GROUP, OTHER_GROUP):
        await heard(stage, missed(stage, 1, chat=chat)[0])
    await connect(stage)
    assert pages(stage) <= 2
    assert await stage.rows(INBOUND) == [(2,)]


async def test_a_history_that_does_not_come_stops_nothing(stage: Stage):
    stage.platform.behave(HISTORY, Silence(), times=1)
    for chat in (GROUP, OTHER_GROUP):
        await heard(stage, missed(stage, 2, chat=chat)[0])
    await connect(stage)
    assert await stage.rows(INBOUND) == [(3,)]


async def test_the_bots_own_messages_of_the_history_are_the_bots(stage: Stage):
    await heard(stage, missed(stage, 1)[0])
    stage.world.speak(stage.group, "我手打的", at=LONG_AGO + 10)
    await connect(stage)
    assert await stage.rows("SELECT text FROM messages WHERE direction = 'outbound'") == [
        ("我手打的",)
    ]


async def test_what_was_missed_a_moment_ago_is_answered(stage: Stage):
    await heard(stage, missed(stage, 1)[0])
    stage.world.say(GROUP, BEAR, AT_BOT, " 刚才叫你呢", at=NOON - 20_000)
    stage.world.say(GROUP, FISH, "没叫你", at=NOON - 10_000)
    await connect(stage)
    (request,) = stage.model.requests
    assert shown_texts(asked(request))[-1] == "@小忆(10001) 刚才叫你呢"
    assert len(stage.sent) == 1


async def test_after_a_crash_a_question_without_an_answer_is_answered_once(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        spoken = stage.world.say(GROUP, FISH, AT_BOT, " 在吗", at=NOON)
        await heard(stage, spoken)
    async with open_stage(tmp_path, start=NOON + 10_000) as stage:
        await connect(stage)
        assert len(stage.sent) == 1
        await connect(stage)
        stage.hear(Desk(stage.world).event_of(spoken))
        await stage.advance(20)
        assert len(stage.model.requests) == 1


async def test_after_a_crash_a_question_of_long_ago_stays_unanswered(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        await heard(stage, stage.world.say(GROUP, FISH, AT_BOT, " 在吗", at=NOON))
    async with open_stage(tmp_path, start=NOON + 61_000) as stage:
        await connect(stage)
        assert stage.model.requests == []


@pytest.mark.parametrize("seconds", [10, -3_600], ids=["later", "clock-set-back"])
async def test_after_a_crash_in_the_middle_of_a_send_nothing_is_sent_again(
    tmp_path: Path, seconds: int
):
    async with open_stage(tmp_path, answer="说了一半") as stage:
        stage.platform.hold()
        stage.say(GROUP, FISH, AT_BOT, " 在吗")
        await stage.advance(2)
        assert await stage.rows("SELECT state FROM turns") == [("sending",)]
    async with open_stage(tmp_path, start=NOON + seconds * 1_000) as stage:
        await connect(stage)
        assert (stage.model.requests, stage.sent) == ([], [])
        assert await stage.rows("SELECT state FROM turns") == [("sent",)]
        stage.say(GROUP, BEAR, AT_BOT, " 你说什么")
        await stage.advance(10)
        assert told(stage.model.requests[0]) == ["说了一半"]


async def test_a_question_that_is_being_answered_is_not_asked_again_by_a_new_connection(
    stage: Stage,
):
    stage.model.hold()
    stage.say(GROUP, FISH, AT_BOT, " 在吗")
    await stage.advance(3)
    await connect(stage)
    stage.model.release()
    await stage.advance(30)
    assert (len(stage.model.requests), len(stage.sent)) == (1, 1)


async def test_a_question_in_a_chat_that_was_switched_off_meanwhile_stays_unanswered(stage: Stage):
    await heard(stage, stage.world.say(GROUP, FISH, AT_BOT, " 在吗", at=stage.now))
    stage.say(GROUP, OPERATOR, "/停用")
    await stage.advance(5)
    await connect(stage)
    assert stage.model.requests == []


async def test_what_was_recalled_before_the_connection_is_not_answered(stage: Stage):
    spoken = stage.world.say(GROUP, FISH, AT_BOT, " 在吗", at=stage.now)
    await heard(stage, spoken)
    await ingest(stage.app, stage.recall_event(spoken))
    await connect(stage)
    assert stage.model.requests == []


async def test_two_connections_at_once_answer_once(stage: Stage):
    await heard(stage, stage.world.say(GROUP, FISH, AT_BOT, " 在吗", at=stage.now))
    both = asyncio.gather(welcome(stage.app, str(BOT)), welcome(stage.app, str(BOT)))
    stage.spawn(asyncio.wait_for(both, None))
    await asyncio.sleep(0.1)
    await stage.advance(30)
    assert (len(stage.model.requests), len(stage.sent)) == (1, 1)

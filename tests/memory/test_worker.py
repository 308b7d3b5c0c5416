"""The worker: what falls due when, how far each task reads, what waits, and for whom."""

import asyncio
from pathlib import Path

import pytest

from bot.errors import ModelUnavailable
from bot.llm.protocol import ModelRequest
from bot.llm.scripted import Line, ScriptedModel
from bot.model import Chat
from bot.simulate import VirtualClock
from bot.store.chats import set_access, set_muted, set_removed
from bot.store.tasks import renew_lease
from bot.worker import LEASE_MS, free_own_leases, lease_owner, queue_due, tick
from tests.memory.workshop import (
    BEAR,
    BOT,
    FISH,
    GROUP,
    NOON,
    OF_BEAR,
    OF_FISH,
    OTHER_GROUP,
    PRIVATE,
    Workshop,
    check_all,
    diary,
    open_workshop,
    spoken,
)

OF_BEAR_ALONE = Chat(BOT, "private", BEAR)


def sentences(first: int, last: int) -> list[str]:
    return [f"第{number}句" for number in range(first, last + 1)]


# --- the table of triggers --------------------------------------------------------------------


async def test_the_fiftieth_message_makes_one_member_batch_and_no_group_reflection(shop: Workshop):
    await shop.chatter(49)
    assert await shop.tick() == 0
    await shop.chatter(1, start=50)
    assert await shop.tick() == 1
    assert [one.request.purpose for one in shop.asked()] == ["reflect.member-batch"]
    [shown] = shop.asked("member-batch")
    assert shown.texts == sentences(1, 50)
    assert [line["ref"] for line in shown.lines] == list(range(1, 51))
    assert (await shop.task()).reason == "count"


async def test_an_idle_group_is_reflected_once_from_the_same_messages(shop: Workshop):
    await shop.chatter(50)
    await shop.tick()
    await shop.pass_time(14.99)
    assert await shop.tick() == 0
    await shop.pass_time(0.01)
    assert await shop.tick() == 1
    [shown] = shop.asked("group")
    assert shown.texts == sentences(1, 50)
    await shop.pass_time(1_000)
    assert await shop.tick() == 0


async def test_every_cursor_moves_by_itself(shop: Workshop):
    rows = await shop.chatter(50)
    assert await shop.cursors() == {"group": 0, "member-batch": 0}
    await shop.tick()
    assert await shop.cursors() == {"group": 0, "member-batch": rows[-1]}
    await shop.chatter(1, start=51)
    await shop.idle()
    assert await shop.cursors() == {"group": rows[-1] + 1, "member-batch": rows[-1] + 1}
    assert shop.asked("member-batch")[-1].texts == ["第51句"]
    assert shop.asked("group")[-1].texts == sentences(1, 51)


async def test_no_number_of_messages_makes_a_group_due(shop: Workshop):
    await shop.set(memoryMemberBatchEnabled=False)
    for round_ in range(10):
        await shop.chatter(50, start=50 * round_ + 1)
        await shop.pass_time(10)
        assert await shop.tick() == 0
    assert shop.asked() == []


async def test_a_group_that_never_rests_is_reflected_after_the_longest_wait(shop: Workshop):
    await shop.set(memoryMemberBatchEnabled=False)
    for minute in range(0, 180, 10):
        assert await shop.tick() == 0, minute
        await shop.chatter(1, start=minute)
        await shop.pass_time(10)
    assert await shop.tick() == 1
    assert (await shop.task()).reason == "max-wait"
    await shop.chatter(1, start=999)
    await shop.pass_time(10)
    assert await shop.tick() == 0


async def test_a_member_batch_is_due_when_a_group_is_idle(shop: Workshop):
    await shop.chatter(3)
    assert await shop.idle() == 2
    assert [one.texts for one in shop.asked("member-batch")] == [sentences(1, 3)]


async def test_a_private_chat_is_reflected_only_once_the_bot_has_answered(shop: Workshop):
    await shop.chatter(60, PRIVATE)
    assert await shop.idle() == 0
    await shop.pass_time(1_000)
    assert await shop.tick() == 0
    await shop.answer_once()
    assert await shop.tick() == 1
    assert shop.asked("private-owner")[0].texts == sentences(1, 60)


async def test_a_private_chat_is_due_by_count_and_by_idleness(shop: Workshop):
    await shop.answer_once()
    await shop.chatter(49, PRIVATE)
    assert await shop.tick() == 0
    await shop.chatter(1, PRIVATE, start=50)
    assert await shop.tick() == 1
    await shop.chatter(1, PRIVATE, start=51)
    assert await shop.tick() == 0
    assert await shop.idle() == 1
    assert shop.asked("private-owner")[-1].texts == ["第51句"]


async def test_a_private_reflection_reads_both_directions_and_follows_the_chats_route(
    shop: Workshop,
):
    await shop.answer_once()
    await shop.hear("我在学琵琶", chat=PRIVATE)
    await shop.say_own("好厉害", PRIVATE)
    await shop.idle()
    [shown] = shop.asked("private-owner")
    assert [(line["direction"], line["senderId"]) for line in shown.lines] == [
        ("inbound", FISH),
        ("outbound", "BOT"),
    ]
    assert shown.request.last_route is not None
    assert shown.request.last_route.model == "example-model"


async def test_every_message_of_people_starts_the_idle_time_anew(shop: Workshop):
    for number in range(1, 5):
        await shop.chatter(1, start=number)
        await shop.pass_time(14)
        assert await shop.tick() == 0
    await shop.pass_time(1)
    assert await shop.tick() == 2


async def test_what_the_bot_says_delays_nothing_and_is_never_due(shop: Workshop):
    await shop.say_own("我在")
    await shop.pass_time(1_000)
    assert await shop.tick() == 0
    await shop.hear("在吗")
    await shop.pass_time(14)
    await shop.say_own("在的")
    await shop.pass_time(1)
    assert await shop.tick() == 2
    assert shop.asked("group")[0].texts == ["我在", "在吗", "在的"]


async def test_idleness_runs_on_when_messages_came_in_not_on_the_times_they_carry(shop: Workshop):
    await shop.hear("三天前说的", sent_at=NOON - 3 * 86_400_000)
    assert await shop.tick() == 0
    await shop.hear("时钟走快了", sent_at=NOON + 86_400_000)
    assert await shop.idle() == 2


async def test_minutes_may_be_fractions(shop: Workshop):
    await shop.set(memoryIdleMinutes=0.05)
    await shop.chatter(1)
    await shop.clock.advance(2.9)
    assert await shop.tick() == 0
    await shop.clock.advance(0.1)
    assert await shop.tick() == 2


async def test_commands_notices_and_bots_do_not_count(shop: Workshop):
    await shop.hear(*(["/帮助"] * 60), kind="command", pending=False)
    await shop.say_own("用法：", kind="notice")
    await shop.pass_time(1_000)
    assert await shop.tick() == 0
    assert await shop.pending() == {}


async def test_recalled_messages_do_not_count(shop: Workshop):
    rows = await shop.chatter(50)
    await shop.recall(rows[7])
    assert await shop.tick() == 0
    assert await shop.pending() == {"group": 49, "member-batch": 49}
    await shop.chatter(1, start=51)
    assert await shop.tick() == 1


# --- switches ---------------------------------------------------------------------------------


async def test_member_batches_switched_off_leave_what_is_remembered_and_the_other_tasks(
    shop: Workshop,
):
    await shop.answer_once()
    await shop.chatter(50)
    await shop.idle()
    before = await shop.export(OF_FISH)
    await shop.set(memoryMemberBatchEnabled=False)
    await shop.chatter(60, start=51)
    await shop.chatter(2, PRIVATE)
    assert await shop.idle() == 2
    assert [task.task for task in (await shop.tasks())[-2:]] == ["group", "private-owner"]
    after = await shop.export(OF_FISH)
    of_group = [entry for entry in after["documents"]["daily"] if entry["origin"] == str(GROUP)]
    assert of_group == before["documents"]["daily"]
    assert (await shop.pending())["member-batch"] == 60


async def test_member_batches_switched_on_again_go_on_where_they_stood(shop: Workshop):
    await shop.set(memoryGroupCompressAt=1_000, memoryMemberCompressAt=1_000)
    await shop.chatter(50)
    await shop.tick()
    await shop.set(memoryMemberBatchEnabled=False)
    await shop.chatter(150, start=51)
    assert await shop.idle() == 3
    await shop.set(memoryMemberBatchEnabled=True)
    assert await shop.tick() == 2
    assert [len(one.texts) for one in shop.asked("member-batch")] == [50, 80, 70]
    assert spoken(shop.asked("member-batch")) == sentences(1, 200)
    assert spoken(shop.asked("group")) == sentences(1, 200)


async def test_a_task_that_waits_for_its_next_try_is_not_run_once_it_is_switched_off(
    shop: Workshop,
):
    shop.model.enqueue(ModelUnavailable("down"), purpose="reflect.member-batch")
    await shop.chatter(50)
    await shop.tick()
    await shop.set(memoryMemberBatchEnabled=False)
    await shop.pass_time(5)
    await shop.tick()
    assert len(shop.asked("member-batch")) == 1
    await shop.set(memoryMemberBatchEnabled=True)
    await shop.tick()
    assert [one.texts for one in shop.asked("member-batch")] == [sentences(1, 50)] * 2


async def test_memory_switched_off_stops_all_and_deletes_nothing(shop: Workshop):
    await shop.answer_once()
    await shop.chatter(50)
    await shop.idle()
    texts = await shop.texts(OF_FISH)
    await shop.set(memoryEnabled=False)
    await shop.chatter(60, start=51)
    await shop.chatter(60, PRIVATE)
    await shop.pass_time(1_000)
    assert await shop.tick() == 0
    assert await shop.texts(OF_FISH) == texts
    await shop.set(memoryEnabled=True)
    await shop.tick()
    assert spoken(shop.asked("group")) == sentences(1, 110)
    assert spoken(shop.asked("private-owner")) == sentences(1, 60)


async def test_one_chat_may_be_switched_apart(shop: Workshop):
    await shop.set(memoryMemberBatchEnabled=False)
    await shop.set(OTHER_GROUP, memoryMemberBatchEnabled=True)
    await shop.set(GROUP, memoryEnabled=False)
    await shop.chatter(50)
    await shop.chatter(50, OTHER_GROUP)
    await shop.idle()
    assert [(t.chat, t.task) for t in await shop.tasks()] == [
        (OTHER_GROUP, "group"),
        (OTHER_GROUP, "member-batch"),
    ]


async def test_many_chats_that_are_switched_off_do_not_stand_before_those_that_are_due(
    shop: Workshop,
):
    for number in range(250):
        await shop.hear("没人理我", by=str(40_000 + number), chat=_private(40_000 + number))
        await shop.hear("安静的群", chat=_group(50_000 + number))
        await shop.set(_group(50_000 + number), memoryEnabled=False)
    await shop.pass_time(1)
    await shop.answer_once()
    await shop.chatter(1)
    await shop.chatter(1, PRIVATE)
    assert await shop.idle() == 3


def _private(user_id: int) -> Chat:
    return Chat(BOT, "private", str(user_id))


def _group(group_id: int) -> Chat:
    return Chat(BOT, "group", str(group_id))


@pytest.mark.parametrize("gone", ["removed", "disabled", "muted"])
async def test_a_chat_that_the_account_may_not_use_costs_no_calls(shop: Workshop, gone: str):
    shop.model.enqueue(ModelUnavailable("down"), ModelUnavailable("down"))
    await shop.chatter(2)
    await shop.idle()
    calls = len(shop.model.requests)
    async with shop.app.db.transaction() as tx:
        match gone:
            case "removed":
                await set_removed(tx, GROUP, shop.now)
            case "disabled":
                await set_access(tx, GROUP, "disabled", by=FISH, at=shop.now)
            case _:
                await set_muted(tx, GROUP, shop.now + 600 * 60_000)
    await shop.pass_time(500)
    assert await shop.tick() == 0
    assert len(shop.model.requests) == calls
    async with shop.app.db.transaction() as tx:
        await set_removed(tx, GROUP, None)
        await set_access(tx, GROUP, "enabled", by=FISH, at=shop.now)
    await shop.pass_time(101)
    assert await shop.tick() == 2


# --- batches ----------------------------------------------------------------------------------


async def test_a_backlog_is_drained_in_batches_of_eighty_oldest_first(shop: Workshop):
    await shop.set(memoryMemberCompressAt=1_000)
    await shop.answer_once()
    await shop.chatter(200, PRIVATE)
    assert await shop.tick() == 3
    assert [one.texts for one in shop.asked("private-owner")] == [
        sentences(1, 80),
        sentences(81, 160),
        sentences(161, 200),
    ]
    assert [t.reason for t in await shop.tasks()] == ["count", "backlog", "backlog"]


async def test_a_backlog_goes_on_after_a_restart_without_a_message(tmp_path: Path):
    model, clock = ScriptedModel(), VirtualClock(NOON)
    model.enqueue(diary, ModelUnavailable("the machine goes down"))
    async with open_workshop(tmp_path, model=model, clock=clock) as shop:
        await shop.set(memoryMemberCompressAt=1_000)
        await shop.answer_once()
        await shop.chatter(200, PRIVATE)
        await shop.tick()
        assert len(model.requests) == 2
    await clock.advance(60)
    again = ScriptedModel(diary)
    async with open_workshop(tmp_path, model=again, clock=clock) as shop:
        await free_own_leases(shop.app)
        assert await shop.tick() == 2
        assert [one.texts for one in shop.asked()] == [sentences(81, 160), sentences(161, 200)]
        await check_all(shop)


async def test_what_comes_while_a_backlog_is_drained_waits_for_its_own_trigger(shop: Workshop):
    await shop.set(memoryMemberBatchEnabled=False)
    await shop.chatter(120)
    await shop.pass_time(15)
    shop.model.hold()
    working = asyncio.create_task(shop.tick())
    await shop.model.until_asked()
    await shop.chatter(70, start=121)
    shop.model.release()
    assert await working == 2
    assert [len(one.texts) for one in shop.asked("group")] == [80, 80]
    assert (await shop.pending())["group"] == 30
    assert await shop.idle() == 1
    assert len(shop.asked("group")[-1].texts) == 30


async def test_a_batch_takes_the_lowest_rows_and_stands_in_order_of_time(shop: Workshop):
    late = await shop.hear("后说的", sent_at=NOON + 5_000)
    early = await shop.hear("先说的", sent_at=NOON + 1_000)
    await shop.set(memoryMaxBatchMessages=2)
    await shop.hear("更早说的", sent_at=NOON)
    await shop.idle()
    assert [one.texts for one in shop.asked("group")] == [["先说的", "后说的"], ["更早说的"]]
    assert late < early


async def test_the_cursor_passes_what_is_left_out(shop: Workshop):
    await shop.hear("/帮助", kind="command", pending=False)
    rows = await shop.chatter(2)
    await shop.recall(rows[0])
    await shop.say_own("这是通知", kind="notice")
    [last] = await shop.hear("/状态", kind="command", pending=False)
    await shop.idle()
    assert shop.asked("group")[0].texts == ["第2句"]
    assert await shop.cursors() == {"group": last, "member-batch": last}


async def test_a_full_batch_leaves_the_cursor_at_its_last_message(shop: Workshop):
    await shop.set(memoryMaxBatchMessages=2)
    rows = await shop.chatter(2)
    await shop.hear("/帮助", kind="command", pending=False)
    await shop.idle()
    assert (await shop.cursors())["group"] == rows[-1]


async def test_a_batch_without_a_word_of_people_moves_the_cursor_without_a_call(shop: Workshop):
    await shop.set(memoryMaxBatchMessages=3)
    for number in range(4):
        await shop.say_own(f"广播{number}")
    await shop.hear("到", by=BEAR)
    await shop.idle()
    assert [one.texts for one in shop.asked("group")] == [["广播3", "到"]]
    assert [task.calls for task in await shop.tasks() if task.task == "group"] == [0, 1]


async def test_the_messages_of_another_bot_are_read_and_prove_nothing(shop: Workshop):
    await shop.set(botAccounts=[BEAR])
    await shop.hear("我是天气机器人", by=BEAR, pending=False)
    await shop.hear("谢谢")
    await shop.idle()
    assert shop.asked("member-batch")[0].texts == ["我是天气机器人", "谢谢"]
    assert await shop.texts(OF_BEAR) == []
    assert await shop.texts(OF_FISH) == ["谢谢"]


# --- leases -----------------------------------------------------------------------------------


async def test_a_long_call_keeps_its_lease(shop: Workshop):
    shop.model.hold()
    await shop.chatter(50)
    working = asyncio.create_task(shop.tick())
    await shop.model.until_asked()
    for _ in range(20):
        await shop.clock.advance(20)
        await asyncio.sleep(0.005)
    [[until]] = await shop.rows("SELECT lease_until FROM tasks WHERE state = 'running'")
    assert until > shop.now
    shop.model.release()
    assert await working >= 1


async def test_a_lease_that_ended_is_free_for_others(tmp_path: Path):
    clock = VirtualClock(NOON)
    async with (
        open_workshop(tmp_path, clock=clock, port=8081) as dead,
        open_workshop(tmp_path, clock=clock, port=8082) as other,
    ):
        await dead.set(memoryGroupMaxWaitMinutes=10_080, memoryIdleMinutes=10_080)
        await dead.chatter(50)
        await dead.claim(lease_owner(dead.app), "member-batch")
        assert await tick(other.app) == 0
        await clock.advance(LEASE_MS / 1000)
        assert await tick(other.app) == 0
        await clock.advance(0.001)
        assert await tick(other.app) == 1
        await check_all(other)


async def test_a_starting_process_frees_what_its_own_last_run_held_and_no_more(tmp_path: Path):
    async with open_workshop(tmp_path) as shop:
        await shop.chatter(2)
        await shop.pass_time(15)
        await shop.claim("another:8080", "member-batch")
        await free_own_leases(shop.app)
        assert await shop.tick() == 0
        async with shop.app.db.transaction() as tx:
            await tx.execute_fetchall(
                "UPDATE tasks SET lease_owner = ? WHERE task = 'group'", [lease_owner(shop.app)]
            )
        await free_own_leases(shop.app)
        assert await shop.tick() == 1
        assert [one.request.purpose for one in shop.asked()] == ["reflect.group"]


async def test_a_lease_that_others_have_taken_is_not_renewed(shop: Workshop):
    await shop.chatter(2)
    await shop.pass_time(15)
    claim = await shop.claim("first")
    async with shop.app.db.transaction() as tx:
        assert await renew_lease(tx, claim, "first", shop.now + 1)
        assert not await renew_lease(tx, claim, "second", shop.now + 1)


async def test_two_processes_never_reflect_the_same_batch(tmp_path: Path):
    clock, model = VirtualClock(NOON), ScriptedModel(diary)
    async with (
        open_workshop(tmp_path, clock=clock, model=model, port=8081) as one,
        open_workshop(tmp_path, clock=clock, model=model, port=8082) as two,
    ):
        for group in range(6):
            await one.chatter(170, _group(60_000 + group))
        await clock.advance(15 * 60)
        await asyncio.gather(*(tick(shop.app) for shop in (one, two, one, two)))
        assert len(model.requests) == 6 * 2 * 3
        for task in ("group", "member-batch"):
            assert sorted(spoken(one.asked(task))) == sorted(sentences(1, 170) * 6)
        await check_all(one)


# --- running at the same time -----------------------------------------------------------------


async def test_no_more_run_at_once_than_is_set(shop: Workshop):
    await shop.set(memoryConcurrency=3)
    shop.model.hold()
    for group in range(8):
        await shop.hear("你好", chat=_group(60_000 + group))
    await shop.pass_time(15)
    working = asyncio.create_task(shop.tick())
    await shop.model.until_asked(3)
    await asyncio.sleep(0.05)
    assert len(shop.model.requests) == 3
    shop.model.release()
    assert await working == 16


async def test_a_call_that_takes_long_does_not_hold_up_other_chats(shop: Workshop):
    shop.model.hold()
    await shop.chatter(50)
    working = asyncio.create_task(shop.tick())
    await shop.model.until_asked()
    await shop.chatter(50, OTHER_GROUP)
    while len(shop.model.requests) < 2:
        await shop.clock.advance(15)
        await asyncio.sleep(0.005)
    assert shop.asked()[1].request.chat == OTHER_GROUP
    shop.model.release()
    await working


async def test_a_defect_in_one_chat_does_not_stop_the_others(shop: Workshop):
    def broken(request: ModelRequest) -> Line:
        return KeyError("a defect") if request.chat == GROUP else diary(request)

    shop.model.enqueue(*([broken] * 4))
    await shop.chatter(2)
    await shop.chatter(2, OTHER_GROUP)
    await shop.idle()
    assert await shop.cursors(GROUP) == {"group": 0, "member-batch": 0}
    assert await shop.cursors(OTHER_GROUP) == {"group": 4, "member-batch": 4}
    states = {(t.chat, t.state, t.attempts, t.error) for t in await shop.tasks()}
    assert states == {(GROUP, "queued", 1, "KeyError"), (OTHER_GROUP, "done", 0, "")}
    await shop.pass_time(1)
    await shop.tick()
    assert await shop.cursors(GROUP) == {"group": 2, "member-batch": 2}


async def test_a_worker_that_is_stopped_in_mid_call_writes_nothing_and_begins_anew(shop: Workshop):
    shop.model.hold()
    await shop.chatter(2)
    await shop.pass_time(15)
    working = asyncio.create_task(shop.tick())
    await shop.model.until_asked(2)
    working.cancel()
    await asyncio.wait([working])
    assert await shop.cursors() == {"group": 0, "member-batch": 0}
    shop.model.release()
    await free_own_leases(shop.app)
    assert await shop.tick() == 2


# --- budget -----------------------------------------------------------------------------------


async def test_over_the_budget_tasks_wait_for_the_next_day(shop: Workshop):
    await shop.set(dailyTokenBudget={"reflect": 1_000})
    await shop.spend(1_000)
    await shop.chatter(50)
    await shop.idle()
    assert shop.asked() == []
    await shop.pass_time(12 * 60)
    await shop.tick()
    assert len(shop.asked()) == 2


async def test_other_purposes_do_not_touch_the_budget_of_reflections(shop: Workshop):
    await shop.set(dailyTokenBudget={"reflect": 1_000})
    await shop.spend(5_000, "chat")
    await shop.chatter(50)
    assert await shop.tick() == 1


async def test_operators_are_told_once_a_day_when_a_budget_is_spent_by_eighty_percent(
    shop: Workshop,
):
    await shop.set(dailyTokenBudget={"reflect": 1_000})
    await shop.spend(799)
    await shop.tick()
    assert await shop.told() == []
    await shop.spend(1, "reflect.private-owner")
    await shop.tick()
    await shop.tick()
    [told] = await shop.told()
    assert "记忆整理" in told
    assert "800 / 1,000" in told
    await shop.spend(100)
    await shop.tick()
    assert len(await shop.told()) == 1
    await shop.pass_time(24 * 60)
    await shop.tick()
    assert len(await shop.told()) == 1
    await shop.spend(900)
    await shop.tick()
    assert len(await shop.told()) == 2


async def test_each_budget_is_told_of_apart(shop: Workshop):
    await shop.spend(2_000_000, "chat")
    await shop.spend(240_000, "compress.member")
    await shop.tick()
    told = await shop.told()
    assert len(told) == 2
    assert "回复" in told[0]
    assert "记忆压缩" in told[1]


async def test_a_restart_does_not_tell_again(tmp_path: Path):
    async with open_workshop(tmp_path) as shop:
        await shop.spend(900_000)
        await shop.tick()
        assert len(await shop.told()) == 1
    async with open_workshop(tmp_path) as shop:
        await shop.tick()
        assert await shop.told() == []


# --- what is queued ---------------------------------------------------------------------------


async def test_a_due_task_is_queued_once_however_often_one_looks(shop: Workshop):
    await shop.chatter(50)
    assert [await queue_due(shop.app) for _ in range(3)] == [1, 0, 0]
    await asyncio.gather(*(queue_due(shop.app) for _ in range(5)))
    assert len(await shop.tasks()) == 1
    await shop.tick()

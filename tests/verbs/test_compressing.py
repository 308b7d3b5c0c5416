"""Compression: old daily entries become memory, whole or not at all, and come back if they must."""

import asyncio
import json
import types
from collections.abc import Coroutine, Generator
from pathlib import Path
from typing import Any

import pytest

from bot.compress import compress
from bot.errors import ContextTooLong, ModelRefused, ModelUnavailable
from bot.llm.protocol import ModelAnswer, ModelRequest
from bot.llm.scripted import Line, Script
from bot.model import Stream, Usage
from bot.simulate.actions import Desk
from bot.store.revisions import undo_revision
from bot.store.tasks import Allowance, StreamClaim, claim_tasks, queue_compression
from bot.store.usage import add_usage
from bot.worker import LEASE_MS, free_own_leases, lease_owner, tick
from tests.verbs.remembering import (
    OF_FISH,
    OF_GROUP,
    badly,
    change,
    compress_now,
    day,
    grouped,
    held,
    lines,
    numbers,
    recall_rows,
    remember,
    well,
)
from tests.verbs.stage import BEAR, FISH, GROUP, OPERATOR, Stage, open_stage

MINUTE = 60


async def tasks(stage: Stage) -> list[tuple[str, str, int]]:
    """Return the compressions: state, reason, attempts."""
    return [
        (state, reason, attempts)
        for state, reason, attempts in await stage.rows(
            "SELECT state, reason, attempts FROM tasks WHERE task = 'compress' ORDER BY id"
        )
    ]


async def undo_newest(stage: Stage) -> bool:
    ((newest,),) = await stage.rows("SELECT max(id) FROM revisions")
    async with stage.app.db.transaction() as tx:
        return await undo_revision(tx, newest, by="10002", at=stage.now) is not None


def compressions(stage: Stage) -> list[ModelRequest]:
    return [r for r in stage.model.requests if r.purpose.startswith("compress.")]


# When and what


async def test_ninety_nine_entries_of_a_member_are_left_alone(stage: Stage):
    await remember(stage, OF_FISH, 99)
    await compress_now(stage, OF_FISH)
    assert stage.model.requests == []
    assert len(await numbers(stage, OF_FISH)) == 99
    assert await tasks(stage) == [("done", "count", 0)]


@pytest.mark.parametrize(
    ("stream", "purpose", "at", "keep", "calls"),
    [(OF_FISH, "compress.member", 100, 50, 1), (OF_GROUP, "compress.group", 200, 100, 2)],
)
async def test_at_the_number_the_oldest_are_in_memory_and_the_newest_stay(
    stage: Stage, stream: Stream, purpose: str, at: int, keep: int, calls: int
):
    told = await remember(stage, stream, at)
    stage.model.enqueue(*[well] * calls)
    await compress_now(stage, stream)
    assert await numbers(stage, stream) == told.numbers[keep:]
    memory = await held(stage, stream, "memory")
    assert len(memory) == 9 * calls
    rests_on = {row for entry in memory for proof in entry.proofs for row in proof}
    assert rests_on == {told.rows[number] for number in told.numbers[:keep]}
    assert [len(entry.proofs) for entry in memory] == [1] * len(memory)
    assert {request.purpose for request in stage.model.requests} == {purpose}
    assert all(request.max_tokens == 15_000 for request in stage.model.requests)
    assert await tasks(stage) == [("done", "backlog", 0)]


async def test_a_reflection_that_brings_the_hundredth_entry_begins_a_compression(stage: Stage):
    await stage.set(memoryIdleMinutes=1, memoryMemberBatchEnabled=False, memoryGroupCompressAt=101)
    told = await remember(stage, OF_GROUP, 100)
    await stage.set(memoryGroupKeepRecent=60)
    stage.say(GROUP, FISH, "春游定在周六出发")
    await stage.settle()
    await stage.advance(2 * MINUTE)
    fact = {"daily": [{"date": "", "text": "春游定在周六", "refs": [1]}]}
    stage.model.enqueue(json.dumps(fact, ensure_ascii=False), purpose="reflect.group")
    stage.model.enqueue(well, purpose="compress.group")
    await tick(stage.app)
    assert len(await numbers(stage, OF_GROUP)) == 60
    assert told.numbers[0] not in await numbers(stage, OF_GROUP)
    assert stage.model.queued == 0


async def test_entries_that_come_while_the_model_thinks_are_kept(stage: Stage):
    told = await remember(stage, OF_FISH, 100)
    stage.model.enqueue(well)
    stage.model.hold()
    working = stage.spawn(compress_now(stage, OF_FISH))
    await stage.model.until_asked()
    more = await remember(stage, OF_FISH, 7, first_day=90)
    early = await remember(stage, OF_FISH, 3)
    stage.model.release()
    await working
    assert await numbers(stage, OF_FISH) == [*told.numbers[50:], *more.numbers, *early.numbers]


async def test_what_is_not_named_stays(stage: Stage):
    def most(request: ModelRequest) -> str:
        return json.dumps({"memory": grouped(lines(request, "近事")[5:])}, ensure_ascii=False)

    told = await remember(stage, OF_FISH, 100)
    stage.model.enqueue(most)
    await compress_now(stage, OF_FISH)
    assert await numbers(stage, OF_FISH) == [*told.numbers[:5], *told.numbers[50:]]
    assert len(stage.model.requests) == 1


async def test_pinned_entries_are_never_shown_for_compression(stage: Stage):
    told = await remember(stage, OF_FISH, 100)
    async with stage.app.db.transaction() as tx:
        await tx.execute_fetchall("UPDATE entries SET pinned = 1 WHERE number = ?", (1,))
    stage.model.enqueue(well)
    await compress_now(stage, OF_FISH)
    assert await numbers(stage, OF_FISH) == [1, *told.numbers[50:]]
    assert len(lines(stage.model.requests[0], "近事")) == 49


async def test_each_stream_is_compressed_apart_and_sees_its_own_memory_alone(stage: Stage):
    await remember(stage, OF_FISH, 100, text="小鱼的第 {} 件事")
    await remember(stage, OF_FISH, 5, document="memory", text="小鱼长期的事 {}")
    await remember(stage, OF_GROUP, 200, text="本群的第 {} 件事")
    stage.model.enqueue(*[well] * 3)
    await compress_now(stage, OF_FISH)
    await compress_now(stage, OF_GROUP)
    for request in stage.model.requests:
        is_group = request.purpose == "compress.group"
        assert ("小鱼" in request.messages[0].content) != is_group
        assert ("本群的第" in request.messages[0].content) == is_group


async def test_memory_that_is_named_is_superseded_and_other_memory_stays(stage: Stage):
    def take_up(request: ModelRequest) -> str:
        items = grouped(lines(request, "近事"))
        items[0]["sources"].append("m1")
        return json.dumps({"memory": items}, ensure_ascii=False)

    await remember(stage, OF_FISH, 100)
    older = await remember(stage, OF_FISH, 2, document="memory")
    stage.model.enqueue(take_up)
    await compress_now(stage, OF_FISH)
    memory = await held(stage, OF_FISH, "memory")
    assert older.numbers[1] in [entry.number for entry in memory]
    assert older.numbers[0] not in [entry.number for entry in memory]
    assert any(older.rows[older.numbers[0]] in entry.proofs[0] for entry in memory)


async def test_daily_is_never_shortened_by_length(stage: Stage):
    await stage.set(memoryMemberCompressAt=3_000)
    text = "湖" * 294 + "{:06}"
    await remember(stage, OF_FISH, 2_000, text=text)
    await compress_now(stage, OF_FISH)
    entries = await held(stage, OF_FISH, "daily")
    assert [len(entry.text) for entry in entries] == [300] * 2_000
    await stage.set(memoryMemberCompressAt=2_000, memoryMemberKeepRecent=1_900)
    stage.model.enqueue(well, well)
    await compress_now(stage, OF_FISH)
    assert len(await held(stage, OF_FISH, "daily")) == 1_900


# Refused


def cut_off(request: ModelRequest) -> Line:
    return ModelAnswer(well(request), "length", "scripted", "scripted")


def changed(**fields: Any) -> Script:
    def script(request: ModelRequest) -> str:
        items = grouped(lines(request, "近事"))
        items[0] |= fields
        return json.dumps({"memory": items}, ensure_ascii=False)

    return script


REFUSED: dict[str, Script] = {
    "empty": "",
    "nothing": '{"memory": []}',
    "prose": "这些事都不重要。",
    "cut off": cut_off,
    "broken off": lambda request: well(request)[:-9],
    "a missing date": changed(date=""),
    "a lost date": changed(text="去湖边走了很多次，每次都是一圈"),
    "one vague sentence": badly,
    "unknown sources": changed(sources=["d1", "d99"]),
    "a date outside": changed(date=day(30)),
    "nine sources": changed(sources=[f"d{n}" for n in range(1, 10)]),
    "too long": changed(text="长" * 401),
    "too little": lambda request: json.dumps({"memory": grouped(lines(request, "近事"))[:6]}),
    "no network": ModelUnavailable("no network"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_is_refused_leaves_daily_whole_and_is_tried_again_later(stage: Stage, name: str):
    told = await remember(stage, OF_FISH, 100)
    stage.model.enqueue(REFUSED[name])
    await compress_now(stage, OF_FISH)
    assert await numbers(stage, OF_FISH) == told.numbers
    assert await held(stage, OF_FISH, "memory") == []
    assert await stage.rows("SELECT id FROM revisions") == []
    assert await tasks(stage) == [("queued", "count", 1)]

    await compress_now(stage, OF_FISH)
    await stage.advance(59)
    await tick(stage.app)
    assert len(stage.model.requests) == 1
    stage.model.enqueue(*[well] * 2)
    await stage.advance(1)
    await tick(stage.app)
    assert await numbers(stage, OF_FISH) == told.numbers[50:]
    assert [state for state, *_ in await tasks(stage)] == ["done"]


async def test_too_short_for_its_sources_is_refused(stage: Stage):
    text = "湖" * 290 + "{}"
    told = await remember(stage, OF_FISH, 100, text=text, a_day=100)
    items = [
        {"date": day(0), "text": "大家聊得很开心", "sources": [f"d{n + k}" for k in range(5)]}
        for n in range(1, 51, 5)
    ]
    stage.model.enqueue(json.dumps({"memory": items}, ensure_ascii=False))
    await compress_now(stage, OF_FISH)
    assert await numbers(stage, OF_FISH) == told.numbers


async def test_failures_wait_longer_and_longer_up_to_an_hour(stage: Stage):
    await remember(stage, OF_FISH, 100)
    waits = []
    stage.model.enqueue(*[ModelUnavailable("no network")] * 9)
    for _ in range(9):
        await compress_now(stage, OF_FISH)
        ((again,),) = await stage.rows("SELECT next_run_at FROM tasks WHERE state = 'queued'")
        waits.append((again - stage.now) // 60_000)
        await stage.advance((again - stage.now) / 1000)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


async def test_of_two_calls_the_first_is_kept_when_the_second_fails(stage: Stage):
    told = await remember(stage, OF_GROUP, 200)
    stage.model.enqueue(well, badly)
    await compress_now(stage, OF_GROUP)
    assert await numbers(stage, OF_GROUP) == told.numbers[50:]
    stage.model.enqueue(well)
    await stage.advance(MINUTE)
    await tick(stage.app)
    assert await numbers(stage, OF_GROUP) == told.numbers[100:]


# A model that refuses


async def test_an_entry_that_a_provider_refuses_is_found_and_passed_over(stage: Stage):
    told = await remember(stage, OF_FISH, 100)
    async with stage.app.db.transaction() as tx:
        await tx.execute_fetchall("UPDATE entries SET text = '犯忌的话' WHERE number = 30")

    def censor(request: ModelRequest) -> Line:
        is_refused = "犯忌的话" in request.messages[0].content
        return ModelRefused("content") if is_refused else well(request)

    stage.model.enqueue(*[censor] * 60)
    await compress_now(stage, OF_FISH)
    for _ in range(8):
        await stage.advance(MINUTE)
        await tick(stage.app)
    assert await numbers(stage, OF_FISH) == [30, *told.numbers[50:]]
    assert any("#000y" in text and "/压缩" in text for text in stage.texts())
    assert [state for state, *_ in await tasks(stage)] == ["done"]
    asked = len(compressions(stage))
    await compress_now(stage, OF_FISH, "command")
    assert len(compressions(stage)) == asked


async def test_a_prompt_that_is_too_long_is_halved_at_once(stage: Stage):
    await remember(stage, OF_FISH, 100)
    stage.model.enqueue(ContextTooLong("too long"), well, well)
    await compress_now(stage, OF_FISH)
    assert [len(lines(r, "近事")) for r in stage.model.requests] == [50, 25, 25]
    assert len(await numbers(stage, OF_FISH)) == 50


async def test_an_answer_that_cannot_be_used_five_times_makes_calls_smaller(stage: Stage):
    await remember(stage, OF_FISH, 100)
    stage.model.enqueue(*[badly] * 5, well, well)
    await compress_now(stage, OF_FISH)
    for _ in range(5):
        await stage.advance(60 * MINUTE)
        await tick(stage.app)
    assert [len(lines(r, "近事")) for r in stage.model.requests] == [50] * 5 + [25, 25]
    assert len(await numbers(stage, OF_FISH)) == 50


# Switches, budgets, commands


async def test_no_compression_while_memory_is_off(stage: Stage):
    await remember(stage, OF_FISH, 100)
    await stage.set(memoryEnabled=False)
    await compress_now(stage, OF_FISH)
    assert stage.model.requests == []
    assert await tasks(stage) == []


async def test_compressions_wait_for_the_next_day_when_their_budget_is_spent(stage: Stage):
    await remember(stage, OF_FISH, 100)
    spent = Usage("compress.group", "m", "e", stage.now, 1, 300_000, 0, 0, True)
    await add_usage(stage.app.db, spent)
    await compress_now(stage, OF_FISH)
    assert stage.model.requests == []
    stage.model.enqueue(well)
    await stage.advance(12 * 60 * MINUTE)
    await tick(stage.app)
    assert len(await numbers(stage, OF_FISH)) == 50


async def test_a_spent_budget_of_reflections_does_not_keep_compressions(stage: Stage):
    await remember(stage, OF_FISH, 100)
    spent = Usage("reflect.group", "m", "e", stage.now, 1, 1_000_000, 0, 0, True)
    await add_usage(stage.app.db, spent)
    stage.model.enqueue(well)
    await compress_now(stage, OF_FISH)
    assert len(await numbers(stage, OF_FISH)) == 50


async def test_an_operator_compresses_what_is_older_than_the_newest(stage: Stage):
    await remember(stage, OF_FISH, 60)
    await remember(stage, OF_GROUP, 100)
    stage.say(GROUP, OPERATOR, "/压缩")
    await stage.advance(2)
    assert "已安排压缩：1 人的记忆" in stage.texts()[-1]
    stage.model.enqueue(well)
    await tick(stage.app)
    assert len(await numbers(stage, OF_FISH)) == 50
    assert len(await numbers(stage, OF_GROUP)) == 100
    stage.say(GROUP, OPERATOR, "/任务")
    await stage.advance(10)
    assert "记忆压缩（成员） 完成：10 条近事变为 2 条长期记忆" in stage.texts()[-1]


async def test_an_operator_lets_a_compression_that_waits_go_on_at_once(stage: Stage):
    await remember(stage, OF_FISH, 100)
    stage.model.enqueue(badly)
    await compress_now(stage, OF_FISH)
    stage.say(GROUP, OPERATOR, "/压缩")
    await stage.advance(2)
    stage.model.enqueue(well)
    await tick(stage.app)
    assert len(await numbers(stage, OF_FISH)) == 50


async def test_others_may_not_compress_and_off_is_off(stage: Stage):
    await remember(stage, OF_FISH, 100)
    stage.say(GROUP, BEAR, "/压缩")
    await stage.advance(2)
    await stage.set(memoryEnabled=False)
    stage.say(GROUP, OPERATOR, "/压缩")
    await stage.advance(10)
    assert ["记忆已关闭" in text for text in stage.texts()] == [True]
    assert await tasks(stage) == []
    await stage.set(memoryEnabled=True, memoryMemberCompressAt=200, memoryMemberKeepRecent=150)
    stage.say(GROUP, OPERATOR, "/压缩")
    await stage.advance(10)
    assert "没有可以压缩的近事" in stage.texts()[-1]


# Changes meanwhile, crashes, other processes


async def test_an_answer_is_discarded_if_what_was_shown_was_forgotten_meanwhile(stage: Stage):
    told = await remember(stage, OF_FISH, 100)
    stage.model.enqueue(well, well)
    stage.model.hold()
    working = stage.spawn(compress_now(stage, OF_FISH))
    await stage.model.until_asked()
    await recall_rows(stage, told.rows[20])
    stage.model.release()
    await working
    assert await numbers(stage, OF_FISH) == [n for n in told.numbers if n != 20]
    assert await held(stage, OF_FISH, "memory") == []
    assert [state for state, *_ in await tasks(stage)] == ["queued"]


async def test_an_answer_is_discarded_if_the_chat_was_switched_off_meanwhile(stage: Stage):
    told = await remember(stage, OF_FISH, 100)
    stage.model.enqueue(well)
    stage.model.hold()
    working = stage.spawn(compress_now(stage, OF_FISH))
    await stage.model.until_asked()
    said = stage.world.say(GROUP, OPERATOR, "/停用", at=stage.now)
    await stage.hear(Desk(stage.world).event_of(said))
    assert stage.app.access.of(OF_FISH.origin) == "disabled"
    stage.model.release()
    await working
    assert await numbers(stage, OF_FISH) == told.numbers


async def test_two_processes_cannot_write_the_same_compression(stage: Stage):
    told = await remember(stage, OF_FISH, 100)
    stage.model.enqueue(well)
    stage.model.hold()
    working = stage.spawn(compress_now(stage, OF_FISH))
    await stage.model.until_asked()
    async with stage.app.db.transaction() as tx:
        await tx.execute_fetchall("UPDATE tasks SET lease_owner = 'somebody else'")
    stage.model.release()
    await working
    assert await numbers(stage, OF_FISH) == told.numbers
    assert await held(stage, OF_FISH, "memory") == []


@types.coroutine
def stopped(work: Coroutine[Any, Any, None], awaits: int) -> Generator[Any, Any, bool]:
    """Run ``work`` and stop it at one of its awaits; return whether it came to its end before."""
    try:
        for _ in range(awaits):
            yield work.send(None)
    except StopIteration:
        return True
    try:
        waited_for = work.throw(asyncio.CancelledError())
        while True:
            yield waited_for
            waited_for = work.send(None)
    except (asyncio.CancelledError, StopIteration):
        return False


async def test_a_stop_at_any_await_leaves_the_old_or_the_new_state(tmp_path: Path):
    """Wherever the work is: reading, asking, committing, ending."""
    seen: list[tuple[int, int]] = []
    is_done, awaits = False, 0
    while not is_done:
        async with open_stage(tmp_path / str(awaits)) as stage:
            await stage.set(memoryMemberKeepRecent=6, memoryMemberCompressAt=12)
            await remember(stage, OF_FISH, 12)
            stage.model.enqueue(well, well)
            owner = lease_owner(stage.app)
            is_done = await stopped(
                compress(stage.app, await claimed(stage, OF_FISH), owner), awaits
            )
            seen.append(await counts(stage))
        async with open_stage(tmp_path / str(awaits)) as stage:
            await free_own_leases(stage.app)
            stage.model.enqueue(well)
            await compress_now(stage, OF_FISH)
            assert await counts(stage) == (6, 1)
            assert len(await stage.rows("SELECT id FROM revisions")) == 1
        awaits += 1
    assert set(seen) == {(12, 0), (6, 1)}
    assert seen == sorted(seen, reverse=True)


async def counts(stage: Stage) -> tuple[int, int]:
    daily, memory = [await numbers(stage, OF_FISH, which) for which in ("daily", "memory")]
    return len(daily), len(memory)


async def test_a_retraction_of_what_was_compressed_meanwhile_is_not_lost(stage: Stage):
    """A model reads that an entry is not true while another one compresses it."""
    await stage.set(memoryIdleMinutes=1, memoryMemberBatchEnabled=False, memoryGroupCompressAt=101)
    told = await remember(stage, OF_GROUP, 101, text="第 {} 件事：去湖边走了一圈")
    stage.say(GROUP, FISH, "第 100 件事没有发生")
    await stage.settle()
    await stage.advance(2 * MINUTE)
    await stage.set(memoryGroupKeepRecent=1)
    reason = {"retract": [{"id": "0034", "refs": [1], "why": "没有发生"}]}
    stage.model.enqueue(json.dumps(reason), purpose="reflect.group")
    stage.model.hold()
    reflecting = stage.spawn(tick(stage.app))
    await stage.model.until_asked()
    assert '"id": "0034"' in stage.model.requests[0].messages[0].content
    stage.model.enqueue(well, well, purpose="compress.group")
    claim = await claimed(stage, OF_GROUP)
    compressing = stage.spawn(compress(stage.app, claim, lease_owner(stage.app)))
    await stage.model.until_asked(2)
    stage.model.release()
    await compressing
    await reflecting
    daily = await numbers(stage, OF_GROUP)
    assert told.numbers[99] not in daily
    ((ended_by,),) = await stage.rows("SELECT ended_by FROM entries WHERE number = 100")
    assert ended_by == "superseded"
    text = "".join(entry.text for entry in await held(stage, OF_GROUP, "memory"))
    assert "第 100 件事" not in text


async def claimed(stage: Stage, stream: Stream) -> StreamClaim:
    """Begin a compression as the worker does."""
    async with stage.app.db.transaction() as tx:
        await queue_compression(tx, stream, "count", stage.now)
        (claim,) = await claim_tasks(
            tx,
            lease_owner(stage.app),
            limit=9,
            now=stage.now,
            until=stage.now + LEASE_MS,
            allowed=Allowance(reflections=False),
        )
    assert isinstance(claim, StreamClaim)
    return claim


# Forgetting


async def compressed(stage: Stage, script: Script = well) -> tuple[list[int], dict[int, int]]:
    """Compress fifty of a hundred; return the numbers and rows of all."""
    told = await remember(stage, OF_FISH, 100)
    stage.model.enqueue(script)
    await compress_now(stage, OF_FISH)
    assert len(await numbers(stage, OF_FISH)) == 50
    return told.numbers, told.rows


async def test_a_compressed_entry_falls_with_any_source_and_the_others_return(stage: Stage):
    told, rows = await compressed(stage)
    before = await held(stage, OF_FISH, "memory")
    await recall_rows(stage, rows[9])
    assert await numbers(stage, OF_FISH) == [7, 8, 10, 11, 12, *told[50:]]
    after = await held(stage, OF_FISH, "memory")
    (fallen,) = set(before) - set(after)
    assert set(fallen.proofs[0]) == {rows[n] for n in range(7, 13)}
    texts = await stage.rows("SELECT text FROM entries WHERE ended_by = 'fallen'")
    assert texts == [("",), ("",)]
    assert fallen.text not in str(await stage.rows("SELECT before, after FROM revisions"))


async def test_what_returned_is_compressed_again_with_the_next(stage: Stage):
    told, rows = await compressed(stage)
    await recall_rows(stage, rows[9])
    more = await remember(stage, OF_FISH, 45, first_day=90)
    stage.model.enqueue(well)
    await compress_now(stage, OF_FISH)
    assert await numbers(stage, OF_FISH) == [*told[95:], *more.numbers]
    assert {e["text"] for e in lines(stage.model.requests[-1], "近事")[:5]} >= {
        "第 7 件事：去湖边走了一圈"
    }


async def test_another_proof_does_not_keep_what_a_forgotten_source_went_into(stage: Stage):
    told, rows = await compressed(stage)
    (first, *_) = await held(stage, OF_FISH, "memory")
    await change(stage, OF_FISH, lambda writer: writer.prove(first.number, [rows[told[99]]]))
    await recall_rows(stage, rows[1])
    assert first.number not in await numbers(stage, OF_FISH, "memory")
    assert await numbers(stage, OF_FISH) == [2, 3, 4, 5, 6, *told[50:]]


async def test_a_source_with_a_proof_left_returns_too(stage: Stage):
    told = await remember(stage, OF_FISH, 100)
    await change(stage, OF_FISH, lambda writer: writer.prove(1, [told.rows[99]]))
    stage.model.enqueue(well)
    await compress_now(stage, OF_FISH)
    await recall_rows(stage, told.rows[1])
    assert await numbers(stage, OF_FISH) == [1, 2, 3, 4, 5, 6, *told.numbers[50:]]


async def test_a_source_of_two_entries_returns_once_and_may_be_used_again(stage: Stage):
    def twice(request: ModelRequest) -> str:
        shown = lines(request, "近事")
        items = grouped(shown)
        items.append({**grouped([shown[0], shown[20]])[0]})
        return json.dumps({"memory": items}, ensure_ascii=False)

    told, rows = await compressed(stage, twice)
    await recall_rows(stage, rows[21])
    assert await numbers(stage, OF_FISH) == [1, 19, 20, 22, 23, 24, *told[50:]]
    await recall_rows(stage, rows[2])
    assert await numbers(stage, OF_FISH) == [1, 3, 4, 5, 6, 19, 20, 22, 23, 24, *told[50:]]


def nested(request: ModelRequest) -> str:
    """Take every shown memory up into an item of its own with one daily entry."""
    daily, memory = lines(request, "近事"), lines(request, "长期记忆")
    pairs = [grouped([day_entry, old])[0] for day_entry, old in zip(daily, memory, strict=False)]
    return json.dumps({"memory": [*pairs, *grouped(daily[len(pairs) :])]}, ensure_ascii=False)


async def twice_compressed(stage: Stage) -> tuple[list[int], dict[int, int]]:
    told, rows = await compressed(stage)
    more = await remember(stage, OF_FISH, 50, first_day=40)
    stage.model.enqueue(nested)
    await compress_now(stage, OF_FISH)
    assert await numbers(stage, OF_FISH) == more.numbers
    return told, rows | more.rows


async def test_forgetting_reaches_through_two_compressions(stage: Stage):
    told, rows = await twice_compressed(stage)
    daily = await numbers(stage, OF_FISH)
    await recall_rows(stage, rows[1])
    returned = [n for n in await numbers(stage, OF_FISH) if n not in daily]
    assert returned == [2, 3, 4, 5, 6, told[50]]
    texts = await stage.rows("SELECT count(*) FROM entries WHERE ended_by = 'fallen'")
    assert texts == [(3,)]


async def test_of_two_compressions_the_first_returns_whole_if_only_the_second_falls(stage: Stage):
    told, rows = await twice_compressed(stage)
    daily, memory = await numbers(stage, OF_FISH), await held(stage, OF_FISH, "memory")
    await recall_rows(stage, rows[told[50]])
    assert await numbers(stage, OF_FISH) == daily
    (back,) = set(await numbers(stage, OF_FISH, "memory")) - {entry.number for entry in memory}
    assert back == told[-1] + 1


async def test_what_was_retracted_after_compression_does_not_return(stage: Stage):
    told, rows = await compressed(stage)
    (first, *_) = await held(stage, OF_FISH, "memory")
    await change(stage, OF_FISH, lambda writer: writer.end(first.number, "superseded", "不是这样"))
    await recall_rows(stage, rows[1])
    assert await numbers(stage, OF_FISH) == told[50:]


async def test_all_that_is_forgotten_leaves_no_text_of_it(stage: Stage):
    told, rows = await twice_compressed(stage)
    await recall_rows(stage, *(rows[number] for number in told[:50]))
    kept = str(await stage.rows("SELECT text, ended_why FROM entries"))
    kept += str(await stage.rows("SELECT before, after FROM revisions"))
    assert "第 1 件事" not in kept
    assert "第 50 件事" not in kept


# Undo


async def test_undo_brings_the_daily_entries_back(stage: Stage):
    told, rows = await compressed(stage)
    assert await undo_newest(stage)
    assert await numbers(stage, OF_FISH) == told
    assert await held(stage, OF_FISH, "memory") == []
    assert [e.proofs for e in await held(stage, OF_FISH, "daily")] == [((rows[n],),) for n in told]


async def test_undo_of_undo_compresses_again(stage: Stage):
    told, rows = await compressed(stage)
    memory = await held(stage, OF_FISH, "memory")
    await stage.advance(1)
    assert await undo_newest(stage)
    await stage.advance(1)
    assert await undo_newest(stage)
    assert await numbers(stage, OF_FISH) == told[50:]
    assert await held(stage, OF_FISH, "memory") == memory
    await recall_rows(stage, rows[1])
    assert await numbers(stage, OF_FISH) == [2, 3, 4, 5, 6, *told[50:]]


async def test_undo_after_undo_and_undo_of_that_brings_the_daily_entries_back(stage: Stage):
    told, _ = await compressed(stage)
    ((change_id,),) = await stage.rows("SELECT id FROM revisions")
    for _ in range(2):
        await stage.advance(1)
        assert await undo_newest(stage)
    await stage.advance(1)
    async with stage.app.db.transaction() as tx:
        assert await undo_revision(tx, change_id, by="10002", at=stage.now)
    assert await numbers(stage, OF_FISH) == told
    assert await held(stage, OF_FISH, "memory") == []


async def test_undo_brings_named_memory_back(stage: Stage):
    await twice_compressed(stage)
    assert await undo_newest(stage)
    assert len(await numbers(stage, OF_FISH)) == 100
    assert len(await numbers(stage, OF_FISH, "memory")) == 9


async def test_undo_leaves_what_was_retracted_since_and_does_not_bring_its_sources(stage: Stage):
    told, _ = await compressed(stage)
    (first, *_) = await held(stage, OF_FISH, "memory")
    await stage.advance(1)
    await change(stage, OF_FISH, lambda writer: writer.end(first.number, "superseded", "不是这样"))
    assert await undo_newest(stage)
    assert await numbers(stage, OF_FISH) == told[6:]


async def test_undo_brings_nothing_forgotten_back(stage: Stage):
    told, rows = await compressed(stage)
    await recall_rows(stage, rows[1])
    assert not await undo_newest(stage)
    assert await numbers(stage, OF_FISH) == [2, 3, 4, 5, 6, *told[50:]]


async def test_undo_of_an_unknown_change_does_nothing(stage: Stage):
    async with stage.app.db.transaction() as tx:
        assert not await undo_revision(tx, 99, by="10002", at=stage.now)

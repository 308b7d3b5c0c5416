"""What changes while a compression is under way, and models that make nothing of it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from bot.errors import ContextTooLong, ModelRefused
from bot.llm.protocol import ModelRequest
from bot.llm.scripted import Line, Script
from bot.model import Chat, Scope, Stream
from bot.store.revisions import undo_revision
from bot.worker import tick
from tests.verbs.remembering import (
    CHAT,
    OF_FISH,
    OF_GROUP,
    Told,
    badly,
    change,
    compress_now,
    grouped,
    held,
    lines,
    numbers,
    recall_rows,
    remember,
    well,
)
from tests.verbs.stage import BEAR, BOT, FISH, GROUP, Stage

MINUTE = 60
HOUR = 60 * MINUTE
OF_BEAR = Stream(Scope(str(BOT), "member", str(BEAR)), CHAT)
IN_PRIVATE = Stream(OF_FISH.scope, Chat(str(BOT), "private", str(FISH)))
FORBIDDEN = "犯忌的话"

Deed = Callable[[Stage, Told], Any]


async def while_it_thinks(stage: Stage, stream: Stream, deed: Deed, told: Told) -> None:
    """Begin a compression, do something before the model's first answer, and let it end."""
    asked = len(stage.model.requests)
    stage.model.hold()
    working = stage.spawn(compress_now(stage, stream))
    await stage.model.until_asked(asked + 1)
    await deed(stage, told)
    stage.model.release()
    await working


def sizes(stage: Stage) -> list[int]:
    """Return how many daily entries each call read."""
    return [len(lines(request, "近事")) for request in stage.model.requests]


async def states(stage: Stage) -> list[tuple[str, str]]:
    return await stage.rows("SELECT state, error FROM tasks WHERE task = 'compress' ORDER BY id")


async def pin(stage: Stage, *chosen: int) -> None:
    async with stage.app.db.transaction() as tx:
        for number in chosen:
            await tx.execute_fetchall("UPDATE entries SET pinned = 1 WHERE number = ?", (number,))


def end(*chosen: int) -> Deed:
    async def deed(stage: Stage, told: Told) -> None:
        await change(
            stage,
            OF_FISH,
            lambda writer: [writer.end(number, "superseded", "不是这样") for number in chosen],
        )

    return deed


# Private


async def test_a_private_stream_is_compressed_as_a_members_and_stays_private(stage: Stage):
    await remember(stage, OF_FISH, 60)
    told = await remember(stage, IN_PRIVATE, 100, text="私下的第 {} 件事：去湖边走了一圈")
    stage.model.enqueue(well)
    await compress_now(stage, IN_PRIVATE)
    assert await numbers(stage, IN_PRIVATE) == told.numbers[50:]
    assert len(await numbers(stage, OF_FISH)) == 60
    assert [request.purpose for request in stage.model.requests] == ["compress.member"]
    assert {e.stream for e in await held(stage, IN_PRIVATE, "memory")} == {IN_PRIVATE}
    assert await held(stage, OF_FISH, "memory") == []


# What was shown changes


async def recall_one(stage: Stage, told: Told) -> None:
    await recall_rows(stage, told.rows[told.numbers[20]])


async def pin_one(stage: Stage, told: Told) -> None:
    await pin(stage, told.numbers[20])


async def undo_all(stage: Stage, told: Told) -> None:
    ((newest,),) = await stage.rows("SELECT max(id) FROM revisions")
    async with stage.app.db.transaction() as tx:
        assert await undo_revision(tx, newest, by="10002", at=stage.now)


@pytest.mark.parametrize(
    "deed", [recall_one, pin_one, end(21)], ids=["recalled", "pinned", "retracted"]
)
async def test_an_answer_is_discarded_if_a_source_changed_and_the_next_try_is_right(
    stage: Stage, deed: Deed
):
    told = await remember(stage, OF_FISH, 102)
    stage.model.enqueue(well, well)
    await while_it_thinks(stage, OF_FISH, deed, told)
    assert await held(stage, OF_FISH, "memory") == []
    assert len(await numbers(stage, OF_FISH)) in (101, 102)
    assert [state for state, _ in await states(stage)] == ["queued"]
    await stage.advance(MINUTE)
    await tick(stage.app)
    daily = await held(stage, OF_FISH, "daily")
    assert [e.number for e in daily if not e.pinned] == told.numbers[-50:]
    rests_on = {r for e in await held(stage, OF_FISH, "memory") for p in e.proofs for r in p}
    assert told.rows[told.numbers[20]] not in rests_on


@pytest.mark.parametrize("document", ["memory", "profile", "pattern"])
async def test_an_answer_is_discarded_if_what_it_saw_beside_was_forgotten(
    stage: Stage, document: Any
):
    """The words of a recalled message may have gone into it."""
    told = await remember(stage, OF_FISH, 100)
    beside = await remember(stage, OF_FISH, 1, document=document)
    stage.model.enqueue(well)

    async def forget(stage: Stage, _: Told) -> None:
        await recall_rows(stage, *beside.rows.values())

    await while_it_thinks(stage, OF_FISH, forget, told)
    assert await numbers(stage, OF_FISH) == told.numbers
    assert await held(stage, OF_FISH, "memory") == []


async def test_what_was_not_shown_may_change_meanwhile(stage: Stage):
    told = await remember(stage, OF_FISH, 100)
    stage.model.enqueue(well)

    async def change_recent_ones(stage: Stage, told: Told) -> None:
        await recall_rows(stage, told.rows[told.numbers[70]])
        await pin(stage, told.numbers[80])

    await while_it_thinks(stage, OF_FISH, change_recent_ones, told)
    assert await numbers(stage, OF_FISH) == [n for n in told.numbers[50:] if n != 71]


async def test_an_answer_is_discarded_if_what_it_took_up_was_undone_meanwhile(stage: Stage):
    first = await remember(stage, OF_FISH, 100)
    stage.model.enqueue(well)
    await compress_now(stage, OF_FISH)
    second = await remember(stage, OF_FISH, 50, first_day=40)
    stage.model.enqueue(well)
    await stage.advance(1)
    await while_it_thinks(stage, OF_FISH, undo_all, second)
    assert await numbers(stage, OF_FISH) == [*first.numbers, *second.numbers]
    assert await held(stage, OF_FISH, "memory") == []


async def test_a_proof_that_comes_meanwhile_goes_into_what_is_made(stage: Stage):
    told = await remember(stage, OF_FISH, 100)
    stage.model.enqueue(well)

    async def prove(stage: Stage, told: Told) -> None:
        await change(stage, OF_FISH, lambda writer: writer.prove(told.numbers[0], [told.rows[100]]))

    await while_it_thinks(stage, OF_FISH, prove, told)
    (first, *_) = await held(stage, OF_FISH, "memory")
    assert told.rows[100] in first.proofs[0]


async def test_what_was_pinned_between_two_calls_stays(stage: Stage):
    told = await remember(stage, OF_GROUP, 200)
    stage.model.enqueue(well, well)

    async def pin_a_later_one(stage: Stage, told: Told) -> None:
        await pin(stage, told.numbers[60])

    await while_it_thinks(stage, OF_GROUP, pin_a_later_one, told)
    assert sizes(stage) == [50, 49]
    assert await numbers(stage, OF_GROUP) == [told.numbers[60], *told.numbers[100:]]


# The number is reached again


async def test_what_reaches_the_number_while_the_model_thinks_is_compressed_too(stage: Stage):
    """Its own reflection could queue nothing: the task was open."""
    told = await remember(stage, OF_FISH, 100)
    stage.model.enqueue(well, well)
    more: list[Told] = []

    async def remember_more(stage: Stage, _: Told) -> None:
        more.append(await remember(stage, OF_FISH, 55, first_day=60))

    await while_it_thinks(stage, OF_FISH, remember_more, told)
    assert sizes(stage) == [50, 55]
    assert await numbers(stage, OF_FISH) == [*more[0].numbers[5:]]
    assert [state for state, _ in await states(stage)] == ["done"]


async def test_pinned_entries_that_reach_the_number_alone_end_the_task(stage: Stage):
    told = await remember(stage, OF_FISH, 120)
    await pin(stage, *told.numbers[:100])
    await compress_now(stage, OF_FISH)
    assert stage.model.requests == []
    assert [state for state, _ in await states(stage)] == ["done"]


async def test_pinned_entries_do_not_let_a_task_go_on_for_ever(stage: Stage):
    """They hold the number up, whatever is compressed, and a model leaves a fifth where it is."""

    def most(request: ModelRequest) -> str:
        shown = lines(request, "近事")
        kept = len(shown) // 5
        return json.dumps({"memory": grouped(shown[kept:])}, ensure_ascii=False)

    told = await remember(stage, OF_FISH, 160)
    await pin(stage, *told.numbers[60:160])
    stage.model.enqueue(*[most] * 20)
    await compress_now(stage, OF_FISH)
    assert await numbers(stage, OF_FISH) == told.numbers[10:]
    assert sizes(stage) == [10, 2]


async def test_a_stream_has_one_compression_at_a_time_and_streams_do_not_wait(stage: Stage):
    for stream in (OF_FISH, OF_BEAR):
        await remember(stage, stream, 100)
    stage.model.enqueue(well, well)
    stage.model.hold()
    working = [stage.spawn(compress_now(stage, stream)) for stream in (OF_FISH, OF_BEAR)]
    await stage.model.until_asked(2)
    working.append(stage.spawn(compress_now(stage, OF_FISH, "command")))
    await stage.settle()
    assert len(stage.model.requests) == 2
    stage.model.release()
    for work in working:
        await work
    assert len(await numbers(stage, OF_FISH)) == len(await numbers(stage, OF_BEAR)) == 50
    assert len(stage.model.requests) == 2


# Settings


async def test_a_greater_number_to_keep_holds_for_the_calls_that_are_left(stage: Stage):
    told = await remember(stage, OF_GROUP, 200)
    stage.model.enqueue(well, well)

    async def keep_more(stage: Stage, _: Told) -> None:
        await stage.set(memoryGroupCompressAt=400, memoryGroupKeepRecent=130)

    await while_it_thinks(stage, OF_GROUP, keep_more, told)
    assert sizes(stage) == [50, 20]
    assert await numbers(stage, OF_GROUP) == told.numbers[70:]


async def test_a_smaller_number_to_keep_is_seen_by_the_task_that_runs(stage: Stage):
    told = await remember(stage, OF_FISH, 100)
    stage.model.enqueue(*[well] * 3)

    async def keep_less(stage: Stage, _: Told) -> None:
        await stage.set(memoryMemberKeepRecent=10, memoryMemberCompressAt=40)

    await while_it_thinks(stage, OF_FISH, keep_less, told)
    assert sizes(stage) == [50, 40]
    assert await numbers(stage, OF_FISH) == told.numbers[90:]


async def test_a_greater_number_lets_a_queued_compression_go(stage: Stage):
    told = await remember(stage, OF_FISH, 100)
    stage.model.enqueue(badly)
    await compress_now(stage, OF_FISH)
    await stage.set(memoryMemberCompressAt=101)
    await stage.advance(MINUTE)
    await tick(stage.app)
    assert sizes(stage) == [50]
    assert await numbers(stage, OF_FISH) == told.numbers
    assert [state for state, _ in await states(stage)] == ["done"]


async def test_memory_switched_off_while_the_model_thinks_changes_nothing(stage: Stage):
    told = await remember(stage, OF_FISH, 100)
    stage.model.enqueue(well)

    async def switch_off(stage: Stage, _: Told) -> None:
        await stage.set(memoryEnabled=False)

    await while_it_thinks(stage, OF_FISH, switch_off, told)
    assert await numbers(stage, OF_FISH) == told.numbers
    assert await held(stage, OF_FISH, "memory") == []
    await stage.advance(HOUR)
    await tick(stage.app)
    assert len(stage.model.requests) == 1

    await stage.set(memoryEnabled=True)
    stage.model.enqueue(well)
    await compress_now(stage, OF_FISH)
    assert await numbers(stage, OF_FISH) == told.numbers[50:]


async def test_memory_switched_off_in_the_second_call_keeps_the_first(stage: Stage):
    def first(request: ModelRequest) -> str:
        stage.model.hold()
        return well(request)

    told = await remember(stage, OF_GROUP, 200)
    stage.model.enqueue(first, well)
    working = stage.spawn(compress_now(stage, OF_GROUP))
    await stage.model.until_asked(2)
    await stage.set(memoryEnabled=False)
    stage.model.release()
    await working
    assert await numbers(stage, OF_GROUP) == told.numbers[50:]
    assert len(await held(stage, OF_GROUP, "memory")) == 9


async def test_memory_switched_off_before_another_call_asks_no_more(stage: Stage):
    told = await remember(stage, OF_FISH, 100)
    await remember(stage, OF_FISH, 1, document="profile", text=FORBIDDEN + "{}")
    stage.model.enqueue(censor, censor)

    async def switch_off(stage: Stage, _: Told) -> None:
        await stage.set(memoryEnabled=False)

    await while_it_thinks(stage, OF_FISH, switch_off, told)
    assert len(stage.model.requests) == 1
    assert await numbers(stage, OF_FISH) == told.numbers


# Waiting


async def test_neither_a_message_nor_a_reflection_hastens_the_next_try(stage: Stage):
    await stage.set(memoryIdleMinutes=0.01, memoryMemberBatchEnabled=False)
    await remember(stage, OF_GROUP, 40)
    await stage.set(memoryGroupKeepRecent=20, memoryGroupCompressAt=40)
    stage.model.enqueue(badly, badly, well, purpose="compress.group")
    await compress_now(stage, OF_GROUP)
    await stage.advance(MINUTE)
    await tick(stage.app)
    for number in range(3):
        stage.say(GROUP, FISH, f"春游定在周{number}")
        await stage.advance(30)
        fact = {"daily": [{"date": "", "text": f"春游定在周{number}", "refs": [1]}]}
        stage.model.enqueue(json.dumps(fact, ensure_ascii=False), purpose="reflect.group")
        await tick(stage.app)
    purposes = [request.purpose for request in stage.model.requests]
    assert purposes == ["compress.group"] * 2 + ["reflect.group"] * 3
    assert len(await numbers(stage, OF_GROUP)) == 43
    await stage.advance(30)
    await tick(stage.app)
    assert len(await numbers(stage, OF_GROUP)) == 20


async def test_nothing_of_a_long_daily_is_lost_to_refusals(stage: Stage):
    text = "湖" * 294 + "{:06}"
    told = await remember(stage, OF_FISH, 2_000, text=text, a_day=100)
    stage.model.enqueue(*[badly] * 12)
    await compress_now(stage, OF_FISH)
    for _ in range(11):
        await stage.advance(HOUR)
        await tick(stage.app)
    assert len(stage.model.requests) == 12
    daily = await held(stage, OF_FISH, "daily")
    assert [entry.number for entry in daily] == told.numbers
    assert {len(entry.text) for entry in daily} == {300}


# Models that refuse what is beside, or repeat themselves


def censor(request: ModelRequest) -> Line:
    is_refused = FORBIDDEN in request.messages[0].content
    return ModelRefused("content") if is_refused else well(request)


async def set_aside(stage: Stage) -> list[Any]:
    return await stage.rows("SELECT number FROM entries WHERE set_aside = 1")


@pytest.mark.parametrize("document", ["memory", "profile", "pattern"])
async def test_what_is_refused_beside_the_daily_entries_is_left_out_and_sets_none_aside(
    stage: Stage, document: Any
):
    told = await remember(stage, OF_FISH, 100)
    beside = await remember(stage, OF_FISH, 1, document=document, text=FORBIDDEN + "{}")
    stage.model.enqueue(*[censor] * 9)
    await compress_now(stage, OF_FISH)
    assert await numbers(stage, OF_FISH) == told.numbers[50:]
    assert beside.numbers[0] in await numbers(stage, OF_FISH, document)
    assert await set_aside(stage) == []
    assert sizes(stage) == [50, 50]


async def test_two_refused_entries_are_found_beside_a_refused_profile(stage: Stage):
    told = await remember(stage, OF_FISH, 100)
    await remember(stage, OF_FISH, 1, document="profile", text=FORBIDDEN + "{}")
    async with stage.app.db.transaction() as tx:
        await tx.execute_fetchall(
            "UPDATE entries SET text = text || ? WHERE number IN (7, 40)", (FORBIDDEN,)
        )
    stage.model.enqueue(*[censor] * 200)
    await compress_now(stage, OF_FISH)
    for _ in range(20):
        await stage.advance(MINUTE)
        await tick(stage.app)
    assert await set_aside(stage) == [(7,), (40,)]
    assert await numbers(stage, OF_FISH) == [7, 40, *told.numbers[50:]]


async def test_a_prompt_that_is_too_long_is_first_made_shorter_by_what_is_beside(stage: Stage):
    told = await remember(stage, OF_FISH, 100)
    await remember(stage, OF_FISH, 20, document="memory", text="长期的事 {}" + "湖" * 250)
    stage.model.enqueue(ContextTooLong("too long"), well)
    await compress_now(stage, OF_FISH)
    assert await numbers(stage, OF_FISH) == told.numbers[50:]
    assert len(await numbers(stage, OF_FISH, "memory")) == 29


async def test_a_provider_that_refuses_everything_costs_no_entry(stage: Stage):
    told = await remember(stage, OF_FISH, 100)
    stage.model.enqueue(*[ModelRefused("content")] * 400)
    await compress_now(stage, OF_FISH)
    for _ in range(60):
        await stage.advance(HOUR)
        await tick(stage.app)
    assert await numbers(stage, OF_FISH) == told.numbers
    assert await held(stage, OF_FISH, "memory") == []
    alerts = [text for text in stage.texts() if "跳过了一条近事" in text]
    assert ["不再逐条通知" in text for text in alerts] == [False, False, True]


def repeated(request: ModelRequest) -> str:
    items = grouped(lines(request, "近事"))
    return json.dumps({"memory": items + items[-1:] * 60}, ensure_ascii=False)


def with_half_a_character(request: ModelRequest) -> str:
    items = grouped(lines(request, "近事"))
    items[0]["text"] += "\ud83d\u202e\u0000"
    return json.dumps({"memory": items})


async def test_a_model_that_repeats_itself_is_refused(stage: Stage):
    told = await remember(stage, OF_FISH, 100)
    stage.model.enqueue(repeated)
    await compress_now(stage, OF_FISH)
    assert await numbers(stage, OF_FISH) == told.numbers
    [(state, error)] = await states(stage)
    assert (state, "items-too-many" in error) == ("queued", True)


async def test_characters_that_no_text_can_have_do_not_reach_memory(stage: Stage):
    await remember(stage, OF_FISH, 100)
    stage.model.enqueue(with_half_a_character)
    await compress_now(stage, OF_FISH)
    text = "".join(entry.text for entry in await held(stage, OF_FISH, "memory"))
    assert text
    assert not set("\ud83d\u202e\u0000") & set(text)


HOSTILE: dict[str, Script] = {
    "nested": "[" * 100_000,
    "deep": '{"memory":' * 5_000 + "1" + "}" * 5_000,
    "null": '{"memory": null}',
    "strings": '{"memory": ["d1"]}',
    "infinite": '{"memory": [{"date": 1e999, "text": 1e999, "sources": [1e999]}]}',
    "long numbers": '{"memory": [{"date": "x", "text": "x", "sources": [' + "9" * 5_000 + "]}]}",
    "an error": '{"error": {"message": "overloaded"}}',
    "the prompt": lambda request: request.messages[0].content,
    "many": json.dumps({"memory": [{"date": "", "text": "x", "sources": ["d1"]}] * 20_000}),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_answer_is_refused_like_any_other(stage: Stage, name: str):
    told = await remember(stage, OF_FISH, 100)
    stage.model.enqueue(HOSTILE[name])
    await compress_now(stage, OF_FISH)
    assert await numbers(stage, OF_FISH) == told.numbers
    assert await held(stage, OF_FISH, "memory") == []
    assert [state for state, _ in await states(stage)] == ["queued"]

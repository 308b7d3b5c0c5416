"""What holds for every answer, however odd: nothing is lost, nothing comes without a witness."""

import json
from collections.abc import Iterable
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from bot.memory.answer import AnswerUnusable, parse_answer
from bot.memory.checks import check
from bot.memory.delta import merged, recheck
from bot.memory.repair import repair_request
from bot.memory.verdict import Added, Change, Proven, Superseded
from bot.memory.wording import max_chars_of
from bot.model import Batch, StreamMemory, TaskName
from tests.unit.applied import applied
from tests.unit.batches import (
    BOT_ID,
    GROUP_STREAM,
    PRIVATE,
    batch_of,
    entry,
    member_stream,
    remembered,
    said,
)

TASKS: tuple[TaskName, ...] = get_args(TaskName)
TALK = [
    said(1, "30001", "我喜欢吃辣", day="2026-08-21"),
    said(2, "30002", "后天聚餐"),
    said(3, BOT_ID, "好的"),
    said(4, "30007", "签到成功", is_person=False),
    said(5, "80000000", "谁", is_anonymous=True),
    said(6, "30001", "[图片]", statement=""),
    said(7, "30003", "我不去"),
]
AUTHORS = {1: "30002"}
TEXTS = [
    "喜欢吃辣",
    "喜欢吃辣。",
    "后天聚餐",
    "30003 不去",
    "30002 说：小鱼干不去",
    "阿明请客",
    "",
    "旧的事",
]

# Mostly what a model writes, now and then what it should not: else nothing would be believed.
junk = st.sampled_from([None, 7, "x", {}])
refs = st.lists(st.sampled_from([1, 2, 7, "1"]), min_size=1, max_size=3) | st.lists(
    st.integers(0, 8) | junk, max_size=3
)
facts = st.fixed_dictionaries(
    {"text": st.sampled_from(TEXTS), "refs": refs},
    optional={
        "date": st.sampled_from(["2026-08-21", "2026-08-22", "", "昨天"]),
        "type": st.sampled_from(["name", "preference", "?"]),
    },
)
odd_facts = st.fixed_dictionaries({"text": st.text(max_size=5) | junk, "refs": refs})
retractions = st.fixed_dictionaries(
    {"id": st.sampled_from(["#0001", "2", 3, "z", None]), "refs": refs}, optional={"why": st.text()}
)


def lists(*items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(st.one_of(*items), min_size=1, max_size=4)


fact_lists = lists(facts, facts, facts, odd_facts, junk)
subject = {
    "profile": fact_lists,
    "pattern": fact_lists,
    "summary": st.sampled_from(TEXTS) | junk,
    "daily": fact_lists | junk,
    "memory": fact_lists,
    "retract": lists(retractions, junk),
}
senders = st.sampled_from(
    ["30001", 30002, " 30003 ", "30001", "BOT", BOT_ID, "30009", "小鱼", None]
)
members = st.fixed_dictionaries({"senderId": senders}, optional=subject)
about_one = st.fixed_dictionaries({}, optional=subject)
about_members = st.fixed_dictionaries({"members": lists(members, members, members, junk)})


def answers_to(task: TaskName) -> st.SearchStrategy[dict[str, Any]]:
    return about_members if task == "member-batch" else about_one


tasks = st.sampled_from(TASKS)
answered = tasks.flatmap(lambda task: st.tuples(st.just(task), answers_to(task)))
repaired = tasks.flatmap(lambda task: st.tuples(st.just(task), answers_to(task), answers_to(task)))
Answered = tuple[TaskName, dict[str, Any]]
Repaired = tuple[TaskName, dict[str, Any], dict[str, Any]]


def batch_with_memory(task: TaskName) -> Batch:
    streams = {
        "group": [GROUP_STREAM],
        "member-batch": [member_stream("30001"), member_stream("30002")],
        "private-owner": [member_stream("30001", PRIVATE)],
    }
    talk = [one for one in TALK if task != "private-owner" or one.sender_id in ("30001", "BOT")]
    memories = [
        remembered(
            entry(1, "旧的事", "profile", stream=stream),
            entry(2, "旧的事", "daily", stream=stream, date="2026-08-22"),
            entry(3, "喜欢吃辣", "memory", stream=stream),
            stream=stream,
            summary="旧的概况",
        )
        for stream in streams[task]
    ]
    return batch_of(task, talk, memories)


def changes_of(answer: dict[str, Any], batch: Batch) -> tuple[Change, ...]:
    try:
        parsed = parse_answer(json.dumps(answer, ensure_ascii=False), batch.task)
    except AnswerUnusable:
        return ()
    return check(parsed, batch, authors=AUTHORS).changes


def after(memories: Iterable[StreamMemory], changes: Iterable[Change]) -> list[StreamMemory]:
    changes = tuple(changes)
    return [applied(memory, changes) for memory in memories]


def with_memories(batch: Batch, memories: Iterable[StreamMemory]) -> Batch:
    return batch_of(batch.task, batch.messages, memories)


@given(answered)
def test_every_leaf_is_counted_once_and_every_refusal_explained(case: Answered):
    task, answer = case
    batch = batch_with_memory(task)
    try:
        parsed = parse_answer(json.dumps(answer), task)
    except AnswerUnusable:
        return
    result = check(parsed, batch, authors={})
    assert 0 <= result.counts.refused <= result.counts.leaves
    assert result.reasons.total() == result.counts.refused
    assert all(f"- {one.path}：" in repair_request(result) for one in result.rejections)


@given(answered)
def test_applying_the_same_answer_twice_adds_nothing(case: Answered):
    task, answer = case
    batch = batch_with_memory(task)
    once = after(batch.memories, changes_of(answer, batch))
    again = changes_of(answer, with_memories(batch, once))
    known = {memory.stream for memory in once}
    additions = [one for one in again if isinstance(one, Added | Proven) and one.stream in known]
    superseded = {(e.stream, e.number) for m in batch.memories for e in m.entries}
    superseded -= {(e.stream, e.number) for m in once for e in m.entries}
    assert additions == [] or superseded


@given(answered)
def test_nothing_is_erased_but_by_a_retraction(case: Answered):
    task, answer = case
    batch = batch_with_memory(task)
    changes = changes_of(answer, batch)
    retracted = {(c.stream, c.entry_number) for c in changes if isinstance(c, Superseded)}
    for before, now in zip(batch.memories, after(batch.memories, changes), strict=True):
        living = {one.number: one for one in now.entries}
        for one in before.entries:
            if (one.stream, one.number) in retracted:
                continue
            kept = living[one.number]
            assert kept.text == one.text
            assert set(one.proofs) <= set(kept.proofs)
        assert now.summary.text


@given(answered)
def test_every_change_has_the_right_witness_within_the_batch(case: Answered):
    task, answer = case
    batch = batch_with_memory(task)
    by_row = {message.row_id: message for message in batch.messages}
    for change in changes_of(answer, batch):
        proofs = change.proofs if isinstance(change, Added) else ()
        proofs = (change.proof,) if isinstance(change, Proven | Superseded) else proofs
        for proof in proofs:
            messages = [by_row[row] for row in proof]
            said_by = {one.sender_id for one in messages if one.is_person and one.statement}
            people = [one for one in messages if one.is_person]
            assert people
            if change.stream.scope.kind == "member":
                assert change.stream.scope.id in said_by
        if isinstance(change, Added):
            assert 0 < len(change.text) <= max_chars_of(change.document)
            assert (change.date is not None) == (change.document in ("daily", "memory"))


@given(answered)
def test_no_change_leaves_the_streams_of_the_batch(case: Answered):
    task, answer = case
    allowed = {
        "group": {GROUP_STREAM},
        "member-batch": {member_stream(user) for user in ("30001", "30002", "30003")},
        "private-owner": {member_stream("30001", PRIVATE)},
    }
    changes = changes_of(answer, batch_with_memory(task))
    assert {change.stream for change in changes} <= allowed[task]


@given(repaired)
def test_an_answer_and_its_repair_are_no_less_than_the_answer(case: Repaired):
    task, first, second = case
    batch = batch_with_memory(task)
    try:
        results = [
            check(parse_answer(json.dumps(answer), task), batch, authors=AUTHORS)
            for answer in (first, second)
        ]
    except AnswerUnusable:
        return
    both = merged(results[0], results[1], batch.memories)
    texts = {(c.stream, c.document, c.text) for c in both.changes if isinstance(c, Added)}
    assert len(texts) == sum(isinstance(c, Added) for c in both.changes)
    assert merged(both, results[1], batch.memories).changes == both.changes


@given(answered, st.frozensets(st.integers(1001, 1007)))
def test_what_is_recalled_during_the_call_is_no_evidence(case: Answered, gone: frozenset[int]):
    task, answer = case
    batch = batch_with_memory(task)
    changes = recheck(changes_of(answer, batch), gone, batch.memories)
    memories = after(batch.memories, changes)
    entries = [one for memory in memories for one in memory.entries]
    assert gone.isdisjoint(row for one in entries for proof in one.proofs for row in proof)
    assert gone.isdisjoint(row for memory in memories for row in memory.summary.message_ids)
    assert recheck(changes, gone, batch.memories) == changes

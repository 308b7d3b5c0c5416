"""When reflections are due."""

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.triggers import AT_ONCE, TaskStats, TriggerRules, due, earliest_due_at
from bot.model import TaskName

MINUTE = 60_000
START = 1_000_000 * MINUTE
RULES = TriggerRules()
TASKS: tuple[TaskName, ...] = get_args(TaskName)


def waiting(
    pending: int = 1,
    *,
    oldest: float = 0,
    newest: float = 0,
    has_answered: bool = True,
    fell_due: bool = False,
) -> TaskStats:
    """``oldest`` and ``newest`` are minutes after ``START``."""
    return TaskStats(pending, at(oldest), at(newest), has_answered, fell_due)


def at(minutes: float) -> int:
    return START + round(minutes * MINUTE)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_due_after_a_quarter_of_an_hour_of_rest(task: TaskName):
    stats = waiting(newest=3)
    assert due(task, stats, RULES, at(18) - 1) is None
    assert due(task, stats, RULES, at(18)) == "idle"


def test_a_group_is_never_due_by_count():
    assert due("group", waiting(5_000), RULES, at(1)) is None


def test_a_member_batch_is_due_at_the_fiftieth_message():
    assert due("member-batch", waiting(49), RULES, at(1)) is None
    assert due("member-batch", waiting(50), RULES, at(1)) == "count"


def test_a_private_chat_is_due_at_the_fiftieth_message():
    assert due("private-owner", waiting(49), RULES, at(1)) is None
    assert due("private-owner", waiting(50), RULES, at(1)) == "count"


def test_each_count_has_its_own_setting():
    rules = TriggerRules(member_batch_messages=3, private_batch_messages=5)
    assert due("member-batch", waiting(3), rules, at(1)) == "count"
    assert due("private-owner", waiting(4), rules, at(1)) is None
    assert due("private-owner", waiting(5), rules, at(1)) == "count"


def test_a_group_that_never_rests_is_due_when_its_oldest_message_is_three_hours_old():
    stats = waiting(900, oldest=0, newest=179)
    assert due("group", stats, RULES, at(180) - 1) is None
    assert due("group", stats, RULES, at(180)) == "max-wait"


def test_the_three_hours_are_for_groups_only():
    stats = waiting(9, oldest=0, newest=179)
    assert due("member-batch", stats, RULES, at(180)) is None
    assert due("private-owner", stats, RULES, at(180)) is None


def test_a_private_chat_waits_for_the_first_answer_of_the_bot():
    silent = waiting(200, has_answered=False, fell_due=True)
    assert due("private-owner", silent, RULES, at(10_000)) is None
    assert due("private-owner", replace(silent, has_answered=True), RULES, at(10_000))


def test_groups_are_reflected_although_the_bot_never_spoke_there():
    silent = waiting(has_answered=False)
    assert due("group", silent, RULES, at(15)) == "idle"
    assert due("member-batch", silent, RULES, at(15)) == "idle"


def test_what_is_left_of_a_backlog_is_due_at_once():
    for task in TASKS:
        assert due(task, waiting(fell_due=True), RULES, at(0)) == "backlog"


def test_switching_member_batches_off_stops_nothing_else():
    off = replace(RULES, member_batch_enabled=False)
    stats = waiting(80, fell_due=True)
    assert due("member-batch", stats, off, at(10_000)) is None
    assert due("group", stats, off, at(15)) == "backlog"
    assert due("private-owner", stats, off, at(15)) == "backlog"


def test_switching_member_batches_on_again_finds_what_was_missed():
    assert due("member-batch", waiting(120), RULES, at(0)) == "count"


def test_switching_memory_off_stops_every_task():
    off = replace(RULES, memory_enabled=False)
    stats = waiting(500, fell_due=True)
    assert not any(due(task, stats, off, at(10_000)) for task in TASKS)


def test_minutes_may_be_fractions():
    rules = replace(RULES, idle_minutes=0.01)
    assert due("group", waiting(), rules, START + 599) is None
    assert due("group", waiting(), rules, START + 600) == "idle"


def test_a_message_without_a_time_is_not_forgotten():
    assert due("group", TaskStats(1, None, None, False, False), RULES, START) == "idle"


tasks = st.sampled_from(TASKS)
moments = st.integers(0, 10**10)
counts = st.integers(1, 10_000)
minutes = st.floats(0.01, 10_080)
rules_of_any_kind = st.builds(
    TriggerRules, st.booleans(), st.booleans(), minutes, counts, counts, minutes
)


@st.composite
def stats_of_any_kind(draw: st.DrawFn) -> TaskStats:
    oldest, newest = sorted((draw(moments), draw(moments)))
    return TaskStats(
        draw(st.integers(0, 300)), oldest, newest, draw(st.booleans()), draw(st.booleans())
    )


@given(tasks, stats_of_any_kind(), rules_of_any_kind, moments)
def test_nothing_pending_is_never_due(
    task: TaskName, stats: TaskStats, rules: TriggerRules, now: int
):
    assert due(task, replace(stats, pending=0), rules, now) is None


@given(tasks, stats_of_any_kind(), rules_of_any_kind, moments)
def test_what_is_switched_off_is_never_due(
    task: TaskName, stats: TaskStats, rules: TriggerRules, now: int
):
    assert due(task, stats, replace(rules, memory_enabled=False), now) is None
    assert due("member-batch", stats, replace(rules, member_batch_enabled=False), now) is None


@given(tasks, stats_of_any_kind(), rules_of_any_kind, moments, moments)
def test_what_is_due_stays_due(
    task: TaskName, stats: TaskStats, rules: TriggerRules, now: int, later: int
):
    assert due(task, stats, rules, now) is None or due(task, stats, rules, now + later)


@given(stats_of_any_kind(), rules_of_any_kind, moments, counts)
def test_how_many_wait_makes_no_difference_to_a_group(
    stats: TaskStats, rules: TriggerRules, now: int, pending: int
):
    one, many = replace(stats, pending=1), replace(stats, pending=pending)
    assert due("group", one, rules, now) == due("group", many, rules, now)


@given(tasks, stats_of_any_kind(), rules_of_any_kind, moments)
def test_a_task_is_due_exactly_from_its_earliest_moment_on(
    task: TaskName, stats: TaskStats, rules: TriggerRules, now: int
):
    earliest = earliest_due_at(task, stats, rules)
    if earliest is None:
        assert due(task, stats, rules, 10**15) is None
    else:
        assert (due(task, stats, rules, now) is not None) == (now >= earliest)
        assert due(task, stats, rules, earliest)


def test_a_task_that_waits_for_nothing_is_due_at_once():
    assert earliest_due_at("member-batch", waiting(50), RULES) == AT_ONCE
    assert earliest_due_at("group", waiting(50), RULES) == at(15)

"""Policies of memory: the presets, and what is refused."""

from dataclasses import replace
from typing import Any

import pytest

from bot.errors import MemoryPolicyError, QunyiError
from bot.memory.pack import FLOOR, score
from bot.memory.policy import DAY_MS, HOUR_MS, PRESETS, MemoryPolicy, Weights, policy
from bot.search.alike import NEAR
from bot.settings import DEFINITIONS, parse_value


def test_the_default_policy_keeps_notes_a_day_and_promoted_ones_a_month():
    default = policy("default")
    assert default.ttl_ms("working") == 24 * HOUR_MS
    assert default.ttl_ms("episodic") == 30 * DAY_MS
    assert default.ttl_ms("profile") is None


def test_in_the_default_policy_notes_rise_after_an_hour_and_after_a_week_of_use():
    first, second = policy("default").promotion("working"), policy("default").promotion("episodic")
    assert first is not None
    assert second is not None
    assert (first.after_ms, first.uses, first.to) == (HOUR_MS, 0, "episodic")
    assert (second.after_ms, second.uses, second.to) == (7 * DAY_MS, 2, "profile")
    assert policy("default").promotion("profile") is None


def test_every_value_of_the_setting_is_a_policy():
    assert DEFINITIONS["memoryPolicy"].per_chat
    for name in PRESETS:
        assert parse_value("memoryPolicy", name) == name
        assert policy(name).name == name


def test_what_a_journal_keeps_outlives_what_a_chat_keeps():
    chat, journal = policy("chat"), policy("journal")
    assert chat.working_ttl_hours < policy("default").working_ttl_hours < journal.working_ttl_hours
    assert journal.ttl_ms("episodic") is None
    assert chat.half_life_days < journal.half_life_days
    assert chat.weights.recency > journal.weights.recency


@pytest.mark.parametrize(
    "fault",
    [
        {"working_ttl_hours": 1, "working_promotion_hours": 1},
        {"working_ttl_hours": 0.5},
        {"episodic_ttl_days": 7, "episodic_promotion_days": 7},
        {"episodic_ttl_days": 3},
    ],
)
def test_a_policy_whose_notes_expire_before_they_can_rise_is_refused(fault: dict[str, Any]):
    with pytest.raises(MemoryPolicyError, match="longer than the delay"):
        replace(policy("default"), **fault)


@pytest.mark.parametrize(
    "fault",
    [
        {"half_life_days": 0},
        {"half_life_days": float("nan")},
        {"working_promotion_hours": -1},
        {"episodic_promotion_uses": -1},
        {"weights": Weights(0, 0, 0)},
        {"weights": Weights(1, -0.1, 1)},
    ],
)
def test_a_policy_with_impossible_numbers_is_refused(fault: dict[str, Any]):
    with pytest.raises(MemoryPolicyError):
        MemoryPolicy(**fault)


def test_an_unknown_policy_is_refused_with_the_names_of_those_there_are():
    with pytest.raises(MemoryPolicyError, match="default, chat, journal"):
        policy("forever")


def test_the_error_is_one_of_values_and_of_the_tree():
    assert issubclass(MemoryPolicyError, ValueError)
    assert issubclass(MemoryPolicyError, QunyiError)


@pytest.mark.parametrize("name", PRESETS)
def test_what_is_near_in_meaning_is_packed_however_old_it_is(name: str):
    weights = PRESETS[name].weights
    assert score(weights, recency=0, keyword=0, vector=NEAR) >= FLOOR

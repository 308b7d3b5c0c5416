"""How fast the bot speaks, and when it falls silent."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.pacing import (
    LONGEST_WAIT_MS,
    LOOP_SILENCE_MS,
    MINUTE_MS,
    Drop,
    Go,
    Outgoing,
    Refused,
    ReplyLimits,
    SendAttempt,
    SendHistory,
    SendLimits,
    TurnLoad,
    TurnTrace,
    Wait,
    loop_silence_until,
    send_decision,
    send_gap_ms,
    turn_decision,
)

NOW = 1_800_000_000_000
SEND = SendLimits(gap_seconds=1, per_chat_per_minute=20, per_account_per_minute=40)
REPLY = ReplyLimits(per_member_per_minute=5, per_member_per_day=200, global_per_minute=30)


def history(*sends: tuple[int, str]) -> SendHistory:
    value = SendHistory()
    for at, chat_key in sends:
        value = value.after_send(at, chat_key, ok=True)
    return value


def decide(past: SendHistory, message: Outgoing, limits: SendLimits = SEND, now: int = NOW):
    return send_decision(past, limits, message, now)


def test_the_first_message_goes_at_once():
    assert decide(SendHistory(), Outgoing("group:1", NOW)) == Go()


def test_the_next_message_waits_for_the_gap_whatever_its_chat():
    assert decide(history((NOW - 400, "group:1")), Outgoing("group:2", NOW)) == Wait(NOW + 600)


def test_a_chat_at_its_cap_waits_until_its_oldest_message_is_a_minute_old():
    limits = SendLimits(1, per_chat_per_minute=2, per_account_per_minute=9)
    past = history((NOW - 50_000, "group:1"), (NOW - 20_000, "group:1"))
    assert decide(past, Outgoing("group:1", NOW), limits) == Wait(NOW + 10_000)
    assert decide(past, Outgoing("group:2", NOW), limits) == Go()


def test_an_account_at_its_cap_makes_every_chat_wait():
    limits = SendLimits(1, per_chat_per_minute=2, per_account_per_minute=2)
    past = history((NOW - 50_000, "group:1"), (NOW - 20_000, "group:2"))
    assert decide(past, Outgoing("group:3", NOW), limits) == Wait(NOW + 10_000)


def test_what_would_wait_over_a_minute_is_dropped_and_a_reminder_is_not():
    limits = SendLimits(1, per_chat_per_minute=1, per_account_per_minute=9)
    past = history((NOW - 10_000, "group:1"))
    queued_at = NOW - 20_000
    assert decide(past, Outgoing("group:1", queued_at), limits) == Drop("waited-too-long")
    assert decide(past, Outgoing("group:1", queued_at, urgent=True), limits) == Wait(NOW + 50_000)


def test_what_has_waited_over_a_minute_is_dropped_though_it_could_go():
    assert decide(SendHistory(), Outgoing("group:1", NOW - 60_001)) == Drop("waited-too-long")
    assert decide(SendHistory(), Outgoing("group:1", NOW - 60_000)) == Go()


def test_failures_in_a_row_double_the_gap_up_to_a_bound():
    gaps = [send_gap_ms(SEND, failures) for failures in (0, 1, 2, 3, 6, 7, 1000)]
    assert gaps == [1000, 2000, 4000, 8000, 64_000, 64_000, 64_000]


def test_failures_slow_down_an_account_without_a_gap_too():
    assert send_gap_ms(SendLimits(0, 20, 40), 1) == 2000


def test_a_gap_longer_than_the_bound_stays():
    assert send_gap_ms(SendLimits(300, 20, 40), 3) == 300_000


def test_a_success_ends_the_slowness():
    past = SendHistory().after_send(NOW, "a", ok=False).after_send(NOW, "a", ok=False)
    assert past.failures == 2
    assert past.after_send(NOW, "a", ok=True).failures == 0


def test_a_clock_set_back_holds_nothing_up():
    past = history((NOW + 3_600_000, "group:1"))
    assert decide(past, Outgoing("group:1", NOW)) == Go()
    assert past.after_send(NOW, "group:1", ok=True).attempts == (SendAttempt(NOW, "group:1"),)


def test_the_history_keeps_one_minute():
    past = history((NOW - MINUTE_MS, "a"), (NOW - MINUTE_MS + 1, "a"), (NOW, "a"))
    assert [attempt.at for attempt in past.attempts] == [NOW - MINUTE_MS + 1, NOW]


def test_a_chat_at_its_cap_holds_up_no_other_chat():
    limits = SendLimits(1, per_chat_per_minute=1, per_account_per_minute=9)
    past = history((NOW - 30_000, "group:1"))
    assert decide(past, Outgoing("group:1", NOW), limits) == Wait(NOW + 30_000)
    assert decide(past, Outgoing("group:2", NOW), limits) == Go()


SEND_LIMITS = st.builds(
    SendLimits,
    gap_seconds=st.floats(min_value=0, max_value=20),
    per_chat_per_minute=st.integers(min_value=1, max_value=5),
    per_account_per_minute=st.integers(min_value=1, max_value=8),
)
ARRIVALS = st.lists(
    st.tuples(
        st.integers(min_value=0, max_value=9000),
        st.sampled_from(["group:1", "group:2", "private:3"]),
        st.booleans(),
        st.booleans(),
    ),
    max_size=40,
)


def most_within_a_minute(times: list[int]) -> int:
    return max(
        (bisect_left(times, start + MINUTE_MS) - index for index, start in enumerate(times)),
        default=0,
    )


@given(SEND_LIMITS, ARRIVALS)
def test_no_minute_holds_more_than_the_caps_and_no_gap_is_shorter(
    limits: SendLimits, arrivals: list[tuple[int, str, bool, bool]]
):
    sent: list[tuple[int, str]] = []
    past = SendHistory()
    now = NOW
    for pause_ms, chat_key, urgent, ok in arrivals:
        now += pause_ms
        message = Outgoing(chat_key, now, urgent)
        while isinstance(decision := send_decision(past, limits, message, now), Wait):
            assert now < decision.until
            assert urgent or decision.until - message.queued_at <= LONGEST_WAIT_MS
            now = decision.until
        if isinstance(decision, Go):
            sent.append((now, chat_key))
            past = past.after_send(now, chat_key, ok=ok)
        else:
            assert not urgent
    times = [at for at, _ in sent]
    assert most_within_a_minute(times) <= limits.per_account_per_minute
    for chat_key in {key for _, key in sent}:
        in_chat = [at for at, key in sent if key == chat_key]
        assert most_within_a_minute(in_chat) <= limits.per_chat_per_minute
    assert all(b - a >= limits.gap_seconds * 1000 for a, b in pairwise(times))
    assert len(past.attempts) <= limits.per_account_per_minute


def test_a_turn_starts_when_nothing_speaks_against_it():
    assert turn_decision(TurnLoad(), REPLY, NOW) == Go()


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (TurnLoad(member_last_minute=5), "member-minute"),
        (TurnLoad(member_today=200), "member-day"),
        (TurnLoad(member_last_minute=5, member_today=200), "member-day"),
        (TurnLoad(member_last_minute=5, last_minute=(NOW,) * 30), "member-minute"),
    ],
)
def test_a_member_over_their_own_limit_is_refused(load: TurnLoad, reason: str):
    decision = turn_decision(load, REPLY, NOW)
    assert isinstance(decision, Refused)
    assert decision.reason == reason


def test_an_account_at_its_limit_makes_wait():
    load = TurnLoad(last_minute=tuple(NOW - 59_000 + 1000 * i for i in range(30)))
    assert turn_decision(load, REPLY, NOW) == Wait(NOW + 1000)


@dataclass(frozen=True)
class Start:
    """A turn that began."""

    at: int
    sender_id: str


def load_of(starts: list[Start], sender_id: str, now: int, day_began_at: int) -> TurnLoad:
    """What the store says of earlier turns."""
    mine = [start.at for start in starts if start.sender_id == sender_id]
    return TurnLoad(
        member_last_minute=sum(at > now - MINUTE_MS for at in mine),
        member_today=sum(at >= day_began_at for at in mine),
        last_minute=tuple(start.at for start in starts if start.at > now - MINUTE_MS),
    )


@given(
    st.builds(
        ReplyLimits,
        per_member_per_minute=st.integers(min_value=1, max_value=4),
        per_member_per_day=st.integers(min_value=1, max_value=9),
        global_per_minute=st.integers(min_value=1, max_value=6),
    ),
    st.lists(
        st.tuples(
            st.integers(min_value=0, max_value=15_000),
            st.sampled_from(["30001", "30002"]),
        ),
        max_size=40,
    ),
)
def test_no_minute_holds_more_turns_than_the_limits(
    limits: ReplyLimits, asked: list[tuple[int, str]]
):
    starts: list[Start] = []
    now = NOW
    for pause_ms, sender_id in asked:
        now += pause_ms
        while isinstance(
            decision := turn_decision(load_of(starts, sender_id, now, NOW), limits, now), Wait
        ):
            assert now < decision.until <= now + MINUTE_MS
            now = decision.until
        if isinstance(decision, Go):
            starts.append(Start(now, sender_id))
    assert most_within_a_minute([s.at for s in starts]) <= limits.global_per_minute
    for sender_id in ("30001", "30002"):
        mine = [s.at for s in starts if s.sender_id == sender_id]
        assert most_within_a_minute(mine) <= limits.per_member_per_minute
        assert len(mine) <= limits.per_member_per_day


def quick_turns(count: int, *, sender_id: str = "30001", third_party: bool = False):
    return [
        TurnTrace(sender_id, NOW + 10_000 * i, NOW + 10_000 * i + 6000, third_party)
        for i in range(count)
    ]


def test_after_so_many_quick_answers_running_the_bot_is_silent_for_two_minutes():
    turns = quick_turns(11)
    ended = turns[-1].answered_at
    assert loop_silence_until(turns, ended, 10) == ended + LOOP_SILENCE_MS
    assert loop_silence_until(turns, ended + LOOP_SILENCE_MS, 10) is None


def test_one_quick_answer_fewer_is_no_loop():
    turns = quick_turns(10)
    assert loop_silence_until(turns, turns[-1].answered_at, 10) is None


def test_no_turns_are_no_loop():
    assert loop_silence_until([], NOW, 1) is None


@pytest.mark.parametrize(
    "other",
    [
        TurnTrace("30002", NOW + 50_000, NOW + 56_000, False),
        TurnTrace("30001", NOW + 50_000, NOW + 56_000, True),
        TurnTrace("30001", NOW + 51_001, NOW + 56_000, False),
    ],
    ids=["another sender", "a third party", "a slow answer"],
)
def test_a_break_in_the_run_starts_the_count_again(other: TurnTrace):
    turns = quick_turns(11)
    turns[5] = other
    assert loop_silence_until(turns, turns[-1].answered_at, 10) is None


def test_after_the_silence_a_new_question_is_answered_and_counts_from_one():
    turns = quick_turns(11)
    later = turns[-1].answered_at + LOOP_SILENCE_MS + 1000
    turns.append(TurnTrace("30001", later, later + 1000, False))
    assert loop_silence_until(turns, later + 1000, 10) is None


@pytest.mark.parametrize("back_ms", [1, 5 * MINUTE_MS, 365 * 24 * 60 * MINUTE_MS])
def test_a_clock_that_is_set_back_after_a_loop_does_not_silence_the_bot(back_ms: int):
    turns = quick_turns(11)
    assert loop_silence_until(turns, turns[-1].answered_at - back_ms, 10) is None

"""When an endpoint is left alone, and when it is tried again."""

from hypothesis import given
from hypothesis import strategies as st

from bot.llm.breaker import FAILURES_TO_OPEN, OPEN_MS, Breaker


def opened(now: int = 0) -> Breaker:
    breaker = Breaker()
    for _ in range(FAILURES_TO_OPEN):
        breaker = breaker.after_failure(now)
    return breaker


def test_it_opens_at_the_fifth_failure_running_and_not_before():
    breaker = Breaker()
    for _ in range(FAILURES_TO_OPEN - 1):
        breaker = breaker.after_failure(0)
        assert breaker.admits(0)
    assert not breaker.after_failure(0).admits(0)


def test_a_success_in_between_starts_the_count_again():
    breaker = Breaker()
    for _ in range(FAILURES_TO_OPEN - 1):
        breaker = breaker.after_failure(0)
    breaker = breaker.after_success()
    for _ in range(FAILURES_TO_OPEN - 1):
        breaker = breaker.after_failure(0)
    assert breaker.admits(0)


def test_it_stays_open_for_a_minute_and_says_for_how_long_yet():
    breaker = opened(1_000)
    assert not breaker.admits(1_000 + OPEN_MS - 1)
    assert breaker.wait_ms(1_000 + OPEN_MS - 1) == 1
    assert breaker.admits(1_000 + OPEN_MS)
    assert breaker.wait_ms(1_000 + OPEN_MS) == 0


def test_half_open_lets_exactly_one_trial_through():
    trial = opened().after_start(OPEN_MS)
    assert not trial.admits(OPEN_MS)
    assert not trial.admits(2 * OPEN_MS - 1)


def test_a_trial_that_succeeds_closes_it():
    assert opened().after_start(OPEN_MS).after_success() == Breaker()


def test_a_trial_that_fails_opens_it_again_for_a_minute():
    breaker = opened().after_start(OPEN_MS).after_failure(OPEN_MS + 5)
    assert not breaker.admits(2 * OPEN_MS + 4)
    assert breaker.admits(2 * OPEN_MS + 5)


def test_a_trial_that_never_reports_back_does_not_hold_it_for_ever():
    assert opened().after_start(OPEN_MS).admits(2 * OPEN_MS)


def test_an_abandoned_trial_is_free_for_the_next_caller():
    before = opened()
    assert before.after_start(OPEN_MS).after_abandon(before).admits(OPEN_MS)


def test_an_abandoned_call_does_not_undo_what_others_found_out():
    assert not opened().after_abandon(Breaker()).admits(0)
    assert Breaker().after_abandon(opened()) == Breaker()


@given(st.lists(st.sampled_from(["success", "failure", "start", "wait"]), max_size=60))
def test_it_always_lets_someone_through_within_a_minute(events):
    breaker, now = Breaker(), 0
    for event in events:
        if event == "wait":
            now += OPEN_MS // 3
        elif event == "success":
            breaker = breaker.after_success()
        elif event == "failure":
            breaker = breaker.after_failure(now)
        elif breaker.admits(now):
            breaker = breaker.after_start(now)
    assert breaker.admits(now + OPEN_MS)
    assert breaker.admits(now + breaker.wait_ms(now))


@given(back_ms=st.integers(1, 10 * OPEN_MS))
def test_a_clock_that_is_set_back_does_not_keep_it_open(back_ms: int):
    breaker = opened(1_000_000)
    now = 1_000_000 - back_ms
    assert breaker.admits(now)
    assert breaker.wait_ms(now) == 0
    # A trial went out, and failed.
    again = breaker.after_start(now).after_failure(now)
    assert not again.admits(now + OPEN_MS - 1)
    assert again.admits(now + OPEN_MS)

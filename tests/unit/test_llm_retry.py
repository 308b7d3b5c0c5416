"""Whether and when the same request is sent again."""

from hypothesis import given
from hypothesis import strategies as st

from bot.llm.retry import RetryPolicy, retry_after_seconds

POLICY = RetryPolicy()


def test_it_gives_up_after_the_last_attempt():
    assert POLICY.delay_seconds(POLICY.attempts - 1, 0.5) is not None
    assert POLICY.delay_seconds(POLICY.attempts, 0.5) is None


def test_a_wish_for_a_short_wait_is_honoured_and_one_for_a_long_wait_ends_it():
    limit = POLICY.retry_after_limit_seconds
    assert POLICY.delay_seconds(1, 0.0, limit) == limit
    assert POLICY.delay_seconds(1, 0.0, limit + 1) is None


@given(st.integers(1, 30), st.floats(0, 1, exclude_max=True))
def test_waits_grow_are_spread_and_stay_bounded(attempt, jitter):
    policy = RetryPolicy(attempts=100)
    delay = policy.delay_seconds(attempt, jitter)
    assert delay is not None
    assert policy.base_seconds / 2 <= delay <= policy.max_seconds


def test_every_form_of_retry_after_is_understood():
    now = 1_700_000_000_000
    assert retry_after_seconds({"retry-after": "7"}, now) == 7
    assert retry_after_seconds({"retry-after": "0.5"}, now) == 0.5
    assert retry_after_seconds({"retry-after-ms": "1500", "retry-after": "7"}, now) == 1.5
    date = "Tue, 14 Nov 2023 22:13:30 GMT"
    assert retry_after_seconds({"retry-after": date}, now) == 10
    assert retry_after_seconds({"retry-after": "-3"}, now) == 0
    assert retry_after_seconds({}, now) is None


@given(st.text(max_size=40))
def test_no_header_value_breaks_it(value):
    seconds = retry_after_seconds({"retry-after": value}, 0)
    assert seconds is None or seconds >= 0

"""What calls teach of a model, and the windows that are known without any."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.calibration import LEAST_RATIO, MOST_RATIO, Calibration
from bot.conversation.model_windows import DEFAULT_WINDOW_TOKENS, WINDOWS, window_tokens


def test_a_model_that_counts_more_gets_shorter_prompts():
    known = Calibration()
    for _ in range(30):
        known = known.after_answer(1_000, 1_500)
    assert known.ratio == pytest.approx(1.5, abs=0.01)
    assert known.room(32_000, 0.8) == pytest.approx(32_000 * 0.8 / 1.5, rel=0.01)


def test_one_odd_count_changes_little():
    assert Calibration().after_answer(1_000, 2_000).ratio == pytest.approx(1.3)


def test_short_prompts_and_missing_counts_teach_nothing():
    assert Calibration().after_answer(100, 900).ratio == 1
    assert Calibration().after_answer(1_000, 0).ratio == 1


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9))))
def test_whatever_a_provider_counts_the_proportion_is_bounded(counts: list[tuple[int, int]]):
    known = Calibration()
    for estimated, reported in counts:
        known = known.after_answer(estimated, reported)
    assert LEAST_RATIO <= known.ratio <= MOST_RATIO
    assert known.room(32_000, 0.8) >= 1


def test_a_window_that_a_refusal_tells_is_believed():
    known = Calibration().after_refusal(10_000, 8_192)
    assert known.room(128_000, 0.5) == 4_096
    assert known.room(4_000, 0.5) == 2_000


def test_a_prompt_that_should_have_fitted_by_the_told_window_is_not_sent_again():
    known = Calibration().after_refusal(6_000, 8_192)
    assert known.room(128_000, 1) == 5_400


def test_an_odd_window_is_not_believed():
    known = Calibration().after_refusal(10_000, 12)
    assert known.room(128_000, 1) == 9_000


def test_a_refusal_without_a_number_holds_for_a_while():
    known = Calibration().after_refusal(10_000, None)
    assert known.room(128_000, 0.8) == 9_000
    for _ in range(50):
        known = known.after_answer(9_000, 9_000)
    assert known.room(128_000, 0.8) > 11_000


def test_no_number_of_refusals_leaves_no_room():
    known = Calibration()
    for _ in range(100):
        known = known.after_refusal(1, None)
    assert known.room(128_000, 0.8) == 2_048


def test_there_is_always_room_for_something():
    assert Calibration().room(1_000, 0.0) == 1


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-4o-mini", 128_000),
        ("gpt-4.1-nano", 1_047_576),
        ("gpt-4", 8_192),
        ("gpt-4-0613", 8_192),
        ("openai/gpt-5-mini", 400_000),
        ("gpt-5-chat-latest", 128_000),
        ("o3-mini", 200_000),
        ("claude-sonnet-4-5", 200_000),
        ("models/gemini-2.5-flash", 1_048_576),
        ("deepseek-chat", 131_072),
        ("deepseek/deepseek-chat:free", 131_072),
        ("Qwen/Qwen3-8B", 131_072),
        ("qwen2.5:7b", 32_768),
        ("qwen3-coder-plus", 262_144),
        ("moonshot-v1-8k", 8_192),
        ("moonshot-v1-128k", 131_072),
        ("doubao-1-5-pro-256k-250115", 262_144),
        ("qwen2.5-7b-instruct-1m", 1_048_576),
        ("glm-4.6", 200_000),
        ("meta-llama/Llama-3.3-70B-Instruct", 131_072),
        ("llama3:8b", 8_192),
        ("something-new", 128_000),
        ("", 128_000),
    ],
)
def test_well_known_models_have_the_windows_that_their_makers_say(model: str, tokens: int):
    assert window_tokens(model, {}) == tokens


def test_what_the_operator_says_goes_first():
    assert window_tokens("gpt-4o", {"gpt-4o": 16_000}) == 16_000
    assert window_tokens("gpt-4o-mini", {"gpt-4o": 16_000}) == 128_000


def test_the_size_of_a_model_is_not_taken_for_that_of_its_window():
    assert window_tokens("some-8b-model", {}) == DEFAULT_WINDOW_TOKENS
    assert window_tokens("some-1k-model", {}) == DEFAULT_WINDOW_TOKENS


def test_the_table_is_in_lower_case_and_of_believable_sizes():
    assert all(name == name.lower() for name in WINDOWS)
    assert all(4_000 <= tokens <= 11_000_000 for tokens in WINDOWS.values())

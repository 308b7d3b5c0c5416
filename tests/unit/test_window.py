"""The window of a conversation: how far it grows, when it falls back, what it shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.window import (
    folded_start,
    full_at,
    last_mark,
    least_turns,
    message_ids,
    shown_turns,
)
from bot.model import Turn, TurnLine

MINUTE = 60_000


def turn(turn_id: int, *message_rows: int | None) -> Turn:
    lines = tuple(TurnLine(row, "question", "") for row in message_rows)
    return Turn(turn_id, "30001", 0, 0, False, 0, lines)


@pytest.mark.parametrize(("messages", "least"), [(16, 8), (17, 8), (2, 1), (1, 1), (100, 50)])
def test_a_question_and_its_answer_are_two_messages(messages: int, least: int):
    assert least_turns(messages) == least
    assert full_at(messages) == 2 * least


@pytest.mark.parametrize(
    ("start", "boundary", "cursor", "folded"),
    [
        (0, 8, 16, 8),
        (0, 8, 8, 8),
        (0, 8, 7, None),
        (0, 8, 0, None),
        (8, 8, 16, None),
        (9, 8, 16, None),
    ],
)
def test_a_window_is_folded_whole_and_not_before_the_summary_has_read_what_leaves_it(
    start: int, boundary: int, cursor: int, folded: int | None
):
    assert folded_start(start, boundary, cursor) == folded


@given(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))
def test_nothing_leaves_the_window_that_the_summary_has_not_read(
    start: int, boundary: int, cursor: int
):
    folded = folded_start(start, boundary, cursor)
    assert folded is None or start < folded <= cursor


def test_the_window_shows_the_turns_behind_its_beginning():
    turns = [turn(number) for number in (3, 5, 9)]
    assert [t.id for t in shown_turns(turns, 0)] == [3, 5, 9]
    assert [t.id for t in shown_turns(turns, 5)] == [9]
    assert shown_turns(turns, 9) == []


@pytest.mark.parametrize(
    ("minutes", "every", "mark"), [(0, 15, 0), (14.9, 15, 0), (15, 15, 15), (44, 15, 30), (7, 5, 5)]
)
def test_chats_are_looked_at_by_the_clock(minutes: float, every: float, mark: float):
    assert last_mark(round(minutes * MINUTE), every) == mark * MINUTE


def test_a_message_is_known_by_the_first_turn_that_shows_it():
    assert message_ids([turn(3, 1, None), turn(5, 2, 1)]) == {1: 3, 2: 5}

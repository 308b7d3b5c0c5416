"""The order within a chat: time, then sequence where both have one, then row."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.order import in_order
from bot.model import Chat, Message, Sender, StoredMessage


def stored(row_id: int, sent_at: int, sequence: int | None = None) -> StoredMessage:
    message = Message(
        chat=Chat("10001", "group", "20001"),
        platform_id=str(row_id),
        sender=Sender("30001"),
        direction="inbound",
        sent_at=sent_at,
        received_at=sent_at,
        local_date="2026-07-29",
        segments=(),
        text="",
        sequence=sequence,
    )
    return StoredMessage(row_id, message)


def rows(messages: list[StoredMessage]) -> list[int]:
    return [message.row_id for message in in_order(messages)]


def test_what_was_said_earlier_comes_first_whenever_it_arrived():
    assert rows([stored(1, 2000), stored(2, 1000)]) == [2, 1]


def test_within_one_second_the_sequence_decides():
    assert rows([stored(1, 1000, 8), stored(2, 1000, 7)]) == [2, 1]


def test_a_sequence_never_outweighs_the_time():
    assert rows([stored(1, 2000, 1), stored(2, 1000, 9)]) == [2, 1]


def test_without_a_sequence_the_row_decides():
    assert rows([stored(2, 1000), stored(1, 1000)]) == [1, 2]


def test_rows_without_a_sequence_keep_their_place_among_those_that_have_one():
    messages = [stored(1, 1000, 9), stored(2, 1000), stored(3, 1000, 8)]
    assert rows(messages) == [3, 2, 1]


def test_equal_sequences_stand_by_row():
    assert rows([stored(2, 1000, 5), stored(1, 1000, 5)]) == [1, 2]


def test_nothing_is_in_order():
    assert in_order([]) == []


MESSAGES = st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(1, 4)), max_size=6).map(
    lambda pairs: [stored(row, at, sequence) for row, (at, sequence) in enumerate(pairs)]
)


@given(MESSAGES)
def test_nothing_is_lost_and_the_order_does_not_depend_on_how_they_were_read(
    messages: list[StoredMessage],
):
    ordered = in_order(messages)
    assert sorted(rows(messages)) == [message.row_id for message in messages]
    for shuffled in list(permutations(messages))[:24]:
        assert in_order(shuffled) == ordered


@given(MESSAGES)
def test_times_never_fall_and_sequences_never_fall_within_a_time(messages: list[StoredMessage]):
    ordered = in_order(messages)
    times = [s.message.sent_at for s in ordered]
    assert times == sorted(times)
    for at in set(times):
        numbered = [
            s.message.sequence
            for s in ordered
            if s.message.sent_at == at and s.message.sequence is not None
        ]
        assert numbered == sorted(numbered)

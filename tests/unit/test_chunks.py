"""Chunks: every turn in one of them, in order, none too long, none ending on a question."""

from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.chunks import Piece, chunks, first_chunk

PIECES = st.lists(
    st.builds(Piece, chars=st.integers(0, 60), ends_on_user=st.booleans()), max_size=40
)


def answered(*chars: int) -> list[Piece]:
    return [Piece(n, ends_on_user=False) for n in chars]


def questions(*chars: int) -> list[Piece]:
    return [Piece(n, ends_on_user=True) for n in chars]


def itself(piece: Piece) -> Piece:
    return piece


def test_nothing_is_in_no_chunk():
    assert first_chunk([], 10) == 0
    assert list(chunks([], itself, 10)) == []


def test_a_chunk_has_as_many_pieces_as_fit():
    assert first_chunk(answered(4, 6, 1), 10) == 2
    assert first_chunk(answered(4, 6), 10) == 2
    assert first_chunk(answered(4, 7), 10) == 1


def test_a_piece_that_is_too_long_is_a_chunk_of_its_own():
    assert first_chunk(answered(99, 1), 10) == 1
    assert first_chunk([*answered(1), *questions(99), *answered(1)], 10) == 1
    assert first_chunk([*questions(99), *answered(1)], 10) == 1


def test_a_chunk_does_not_end_on_a_question():
    assert first_chunk([*answered(2), *questions(2), *answered(20)], 10) == 1
    assert first_chunk([*answered(2, 2), *questions(2, 2), *answered(20)], 10) == 2


def test_a_chunk_ends_on_a_question_if_nothing_else_is_left():
    assert first_chunk([*answered(2), *questions(2)], 10) == 2
    assert first_chunk(questions(4, 4, 4), 10) == 2


def test_a_chunk_is_made_smaller_while_a_bad_piece_is_looked_for():
    assert first_chunk(answered(1, 1, 1, 1), 10, 2) == 2
    assert first_chunk([*answered(1), *questions(1), *answered(1)], 10, 2) == 1
    assert first_chunk(answered(1, 1), 10, 0) == 1


@given(PIECES, st.integers(1, 100))
def test_chunks_are_all_of_the_pieces_once_and_in_order(pieces: list[Piece], max_chars: int):
    made = list(chunks(pieces, itself, max_chars))
    assert [piece for chunk in made for piece in chunk] == pieces
    assert all(made)
    for chunk in made:
        assert len(chunk) == 1 or sum(piece.chars for piece in chunk) <= max_chars
    for chunk in made[:-1]:
        assert not chunk[-1].ends_on_user or all(piece.ends_on_user for piece in chunk)

"""Vectors: kept in a byte for each dimension, sketched, and found again among many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.search.matrix import PAGE_SLOTS, ChatMatrix, Matrices, Narrowing, Page
from bot.search.vectors import SLOT, Vectors, kept, planes, restored, sketches, slot

DIMENSIONS = 96
SIDES = planes(DIMENSIONS)
NOON = 1_790_000_000_000


def some_vectors(count: int, seed: int = 1) -> Vectors:
    """Return vectors of the length 1."""
    drawn = np.random.RandomState(seed).standard_normal((count, DIMENSIONS)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def pages_of(vectors: Vectors, *, first_row: int = 1) -> list[Page]:
    """Return pages with a slot for each vector; rows count up, and so do moments."""
    slots = [
        slot(first_row + n, NOON + n, 1 + n % 5, sketch)
        for n, sketch in enumerate(sketches(vectors, SIDES))
    ]
    parts = [slots[n : n + PAGE_SLOTS] for n in range(0, len(slots), PAGE_SLOTS)]
    return [Page(n, n, b"".join(part)) for n, part in enumerate(parts, start=1)]


def near(matrix: ChatMatrix, vector: Vectors, count: int, **narrowing: int) -> tuple[int, ...]:
    """Return the rows nearest to a vector."""
    (sketch,) = sketches(vector[None, :], SIDES)
    return matrix.nearest(sketch, Narrowing(**narrowing), count).row_ids


@given(st.lists(st.floats(-1, 1, width=32), min_size=4, max_size=40).filter(any))
def test_what_is_kept_of_a_vector_points_the_same_way(numbers: list[float]):
    vector = np.array(numbers, np.float32)
    if np.linalg.norm(vector) < 1e-3:
        return
    vector /= np.linalg.norm(vector)
    (again,) = restored([kept(vector)], len(vector))
    assert float(again @ vector) > 0.995


def test_several_kept_vectors_come_back_in_order():
    vectors = some_vectors(5)
    again = restored([kept(one) for one in vectors], DIMENSIONS)
    assert np.abs(again - vectors).max() < 0.005


def test_planes_are_the_same_in_every_process():
    assert planes(3)[:, :2].round(4).tolist() == [
        pytest.approx(row) for row in planes(3)[:, :2].round(4).tolist()
    ]
    assert float(planes(DIMENSIONS)[0, 0]) == pytest.approx(float(SIDES[0, 0]))


def test_the_store_reserves_what_a_slot_takes():
    # The trigger that erases a slot has its size written out.
    assert SLOT.itemsize == 88


def test_of_many_the_nearest_by_sketch_hold_the_nearest_of_all():
    vectors = some_vectors(3_000)
    matrix = ChatMatrix()
    matrix.take(pages_of(vectors))
    for question in some_vectors(20, seed=2):
        best = {int(n) + 1 for n in np.argsort(-(vectors @ question))[:10]}
        assert len(best & set(near(matrix, question, 500))) >= 9


def test_the_nearest_come_first():
    vectors = some_vectors(300)
    matrix = ChatMatrix()
    matrix.take(pages_of(vectors))
    assert near(matrix, vectors[41], 1) == (42,)


def test_only_what_may_be_found_is_near():
    vectors = some_vectors(300)
    matrix = ChatMatrix()
    matrix.take(pages_of(vectors))
    assert {row % 5 for row in near(matrix, vectors[0], 50, member_id=3)} == {3}
    assert set(near(matrix, vectors[0], 300, since=NOON + 290)) == set(range(291, 301))
    assert set(near(matrix, vectors[0], 300, until=NOON + 3)) == {1, 2, 3}
    assert near(matrix, vectors[0], 300, member_id=77) == ()


def test_a_changed_page_takes_the_place_of_the_one_before():
    vectors = some_vectors(100)
    first, second = pages_of(vectors)
    matrix = ChatMatrix()
    matrix.take([first, second])
    erased = bytes(SLOT.itemsize) + first.slots[SLOT.itemsize :]
    matrix.take([Page(first.id, 3, erased)])
    assert len(matrix) == 99
    assert matrix.seen == 3
    assert 1 not in near(matrix, vectors[0], 100)


def test_an_empty_matrix_finds_nothing():
    assert near(ChatMatrix(), some_vectors(1)[0], 10) == ()


def test_memory_is_bounded_and_the_chat_searched_last_stays():
    page = pages_of(some_vectors(PAGE_SLOTS))
    matrices = Matrices(max_bytes=20_000)
    for chat_id in range(1, 10):
        matrices.of(1, chat_id).take(page)
        matrices.trim()
    assert matrices.size_bytes <= 20_000
    assert len(matrices.of(1, 9)) == PAGE_SLOTS
    assert len(matrices.of(1, 1)) == 0

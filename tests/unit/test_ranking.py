"""How well what is found fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.search.ranking import bm25, coverage


def test_what_has_more_of_the_question_comes_first():
    scores = bm25([(0, 1), (1, 1), (0, 2)], {1: 20, 2: 20}, total=100)
    assert scores[1] > scores[2] > 0


def test_what_few_have_tells_more_than_what_many_have():
    often = [(0, document) for document in range(2, 60)]
    scores = bm25([*often, (1, 1)], dict.fromkeys(range(60), 20), total=100)
    assert scores[1] > scores[2]


def test_of_equal_finds_the_shorter_fits_better():
    scores = bm25([(0, 1), (0, 2)], {1: 10, 2: 100}, total=100)
    assert scores[1] > scores[2]


def test_what_has_all_of_a_question_fits_wholly_and_what_has_a_part_fits_in_part():
    fits = coverage([(0, 1), (1, 1), (0, 2)], {1: 20, 2: 20}, total=100)
    assert fits[1] == pytest.approx(1)
    assert 0.3 < fits[2] < 0.5


def test_the_best_of_bad_ones_does_not_look_good():
    spread = [(phrase, phrase) for phrase in range(10)]
    fits = coverage(spread, dict.fromkeys(range(10), 20), total=100)
    assert max(fits.values()) == pytest.approx(0.1)


def test_what_nobody_has_counts_for_nobody():
    assert coverage([], {}, total=100) == {}


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(1, 20))), st.integers(0, 50))
def test_every_find_fits_somewhat_and_none_without_bound(hits: set[tuple[int, int]], total: int):
    lengths = {document: 3 * document for _, document in hits}
    fits = coverage(hits, lengths, total)
    assert fits.keys() == lengths.keys()
    assert all(0 < fit < 1.7 for fit in fits.values())

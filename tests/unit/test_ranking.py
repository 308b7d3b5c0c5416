"""How well what is found fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.search.ranking import bm25, shares


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


def test_the_best_is_1_and_what_was_not_found_would_be_0():
    assert shares({1: 4.0, 2: 1.0}) == {1: 1.0, 2: 0.25}
    assert shares({}) == {}


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(1, 20))), st.integers(0, 50))
def test_every_find_scores_something_and_nothing_more_than_the_best(
    hits: set[tuple[int, int]], total: int
):
    lengths = {document: 3 * document for _, document in hits}
    scores = shares(bm25(hits, lengths, total))
    assert scores.keys() == lengths.keys()
    assert all(0 < score <= 1 for score in scores.values())
    assert not scores or max(scores.values()) == pytest.approx(1)

"""Nearness: measured from what is usual, and no share of the best."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.search.alike import BUNDLED, FEW, NEAR, OPEN, Scale, nearness

SCALES = pytest.mark.parametrize("scale", [OPEN, BUNDLED], ids=["open", "bundled"])
COSINES = st.dictionaries(st.integers(1, 99), st.floats(-1, 1), max_size=20)


def unlike(count: int, usual: float) -> dict[int, float]:
    return {100 + number: usual for number in range(count)}


@SCALES
def test_what_is_usual_is_not_near_whatever_that_is(scale: Scale):
    for usual in (0.0, 0.1, scale.most_usual):
        assert set(nearness(unlike(FEW, usual), scale).values()) == {0.0}


def test_where_all_is_about_one_thing_all_of_it_is_near_if_it_is_known_what_is_usual():
    found = nearness(unlike(50, 0.6), BUNDLED)
    assert all(one >= NEAR for one in found.values())


@SCALES
def test_what_most_entries_are_about_is_still_near(scale: Scale):
    about = dict.fromkeys(range(1, 20), 0.6)
    found = nearness({**unlike(8, 0.1), **about}, scale)
    assert all(found[row] >= NEAR for row in about)


@SCALES
def test_what_lies_at_the_floor_is_just_near_and_what_lies_far_above_it_is_full(scale: Scale):
    others = unlike(FEW, 0.2)
    told = {1: 0.2 + scale.floor + 1e-6, 2: 0.2 + scale.floor - 0.01, 3: 1.0}
    found = nearness({**others, **told}, scale)
    assert found[1] == pytest.approx(NEAR, abs=1e-3)
    assert found[1] >= NEAR > found[2]
    assert found[3] == 1


@SCALES
def test_the_best_of_bad_ones_is_not_near(scale: Scale):
    assert nearness({**unlike(FEW, 0.1), 1: 0.15}, scale)[1] < NEAR


@SCALES
def test_of_few_it_is_assumed_what_is_usual(scale: Scale):
    assert nearness({1: scale.usual + 0.02}, scale)[1] < NEAR
    assert nearness({1: 0.9}, scale)[1] > NEAR
    assert nearness({}, scale) == {}


@SCALES
@given(cosines=COSINES)
def test_nearness_is_a_share_and_keeps_the_order(scale: Scale, cosines: dict[int, float]):
    found = nearness(cosines, scale)
    assert found.keys() == cosines.keys()
    assert all(0 <= one <= 1 for one in found.values())
    order = sorted(cosines, key=cosines.__getitem__)
    assert [found[row] for row in order] == sorted(found.values())

"""The search for what no model takes, the same for messages, entries and turns."""

import pytest

from bot.errors import ContextTooLong, ModelAnswerInvalid, ModelRefused
from bot.memory.answer import AnswerUnusable
from bot.work import UNUSABLE_BEFORE_HALVING, CutOff, NotTaken, Search

REFUSALS = [ModelRefused("no"), ContextTooLong("no")]
UNUSABLE = [AnswerUnusable("no"), ModelAnswerInvalid("no")]
LAST = UNUSABLE_BEFORE_HALVING - 1


@pytest.mark.parametrize("error", REFUSALS)
def test_a_refused_prompt_is_halved_until_one_thing_is_left(error: NotTaken):
    assert Search(None, 3).after(error, 9) == Search(4, 3)
    assert Search(4, 3).after(error, 2) == Search(1, 3)
    assert Search(1, 3).after(error, 1) is None


@pytest.mark.parametrize("error", UNUSABLE)
def test_unusable_answers_are_counted_before_calls_become_smaller(error: NotTaken):
    assert Search(None, 0).after(error, 9) == Search(None, 1)
    assert Search(1, LAST - 1).after(error, 1) == Search(1, LAST)
    assert Search(None, LAST).after(error, 9) == Search(4, LAST + 1)
    assert Search(4, LAST + 1).after(error, 4) == Search(2, LAST + 2)
    assert Search(1, LAST).after(error, 1) is None


def test_an_answer_that_was_cut_off_makes_the_next_call_smaller_at_once():
    assert Search(None, 0).after(CutOff("cut"), 9) == Search(4, 1)
    assert Search(4, 1).after(CutOff("cut"), 1) == Search(1, 2)
    assert Search(1, LAST).after(CutOff("cut"), 1) is None

"""When a message is answered without waiting for its next matcher."""

from typing import Any

import pytest

from plugins.heard import is_next

OURS: dict[int, list[Any]] = {1: [object()], 50: [object()]}


def test_with_no_plugin_between_a_message_is_answered_at_once():
    assert is_next(OURS)
    assert is_next({**OURS, 0: [object()], 51: [object()], 99: [object()]})


@pytest.mark.parametrize("priority", [2, 10, 49])
def test_a_plugin_between_sees_a_message_before_it_is_answered(priority: int):
    assert not is_next({**OURS, priority: [object()]})


def test_a_plugin_of_the_same_priority_sees_it_side_by_side():
    assert not is_next({**OURS, 50: [*OURS[50], object()]})


def test_a_plugin_that_has_gone_keeps_nothing_back():
    assert is_next({**OURS, 10: []})

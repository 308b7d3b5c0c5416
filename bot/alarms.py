"""Alarms: who keeps a moment asks here to be woken; the edge has the clockwork."""

from collections.abc import Callable


class Alarms:
    """Moments at which what is due is to be done.

    Until somebody winds it nothing happens: who moves another clock looks by hand.
    """

    def __init__(self) -> None:
        self._set: Callable[[int], object] | None = None

    def wind(self, set_alarm: Callable[[int], object]) -> None:
        """Say who wakes: ``set_alarm`` is given a moment, in UTC milliseconds."""
        self._set = set_alarm

    def set(self, at: int) -> None:
        """Ask to be woken at a moment, UTC milliseconds; one that has passed means now."""
        if self._set is not None:
            self._set(at)

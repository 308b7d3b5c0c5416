"""How an API call can go wrong. Set with ``OneBotClient.behave``.

The cases that matter are those where the application cannot tell whether its message went out:
``performed`` says whether it did.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from bot.simulate.actions import FAILED, Call


@dataclass(frozen=True, slots=True)
class Fail:
    """Answer with a failure."""

    retcode: int = FAILED
    wording: str = "操作失败"
    performed: bool = False
    """Do what was asked for all the same, as the platform may on "发送超时"."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Never answer."""

    performed: bool = False


@dataclass(frozen=True, slots=True)
class Delay:
    """Do at once what was asked for, and answer late."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close the connection without an answer."""

    performed: bool = False


@dataclass(frozen=True, slots=True)
class ReportFirst:
    """Deliver the ``message_sent`` event, and only then answer with the same message id."""

    seconds: float = 0
    """How long the answer waits."""


Behaviour = Fail | Silence | Delay | Disconnect | ReportFirst

CallFilter = str | Collection[str] | Callable[[Call], bool]
"""Which calls: an action's name, several of them, or a predicate."""


def matches(wanted: CallFilter, call: Call) -> bool:
    """Whether a filter takes a call."""
    if callable(wanted):
        return wanted(call)
    return call.action == wanted if isinstance(wanted, str) else call.action in wanted


@dataclass(slots=True)
class Rule:
    """A behaviour for some calls, for as often as ``times_left`` (None: always)."""

    wanted: CallFilter
    behaviour: Behaviour
    times_left: int | None = None

    def take(self, call: Call) -> bool:
        """Whether the rule applies to this call; counts if it does."""
        if self.times_left == 0 or not matches(self.wanted, call):
            return False
        if self.times_left is not None:
            self.times_left -= 1
        return True

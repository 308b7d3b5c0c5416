"""What a check found, in one line: Chinese first, short English behind it."""

from dataclasses import dataclass
from enum import Enum


class State(Enum):
    """How bad it is; the value is its mark."""

    GOOD = "✓"
    WARNING = "!"
    """The bot runs, but something is missing or looks odd."""
    FAULT = "✗"
    """The bot cannot run."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    state: State
    text: str

    def __str__(self) -> str:
        plain = "".join(sign if sign.isprintable() else " " for sign in self.text)
        return f"{self.state.value} {' '.join(plain.split())}"


def good(text: str) -> Finding:
    """Return a finding that needs nothing."""
    return Finding(State.GOOD, text)


def warning(text: str) -> Finding:
    """Return a finding that the bot can run with."""
    return Finding(State.WARNING, text)


def fault(text: str) -> Finding:
    """Return a finding that the bot cannot run with."""
    return Finding(State.FAULT, text)

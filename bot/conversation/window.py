"""The window: which turns of a conversation its prompts show, and when older ones are folded.

Pure. See ``docs/session.md``, "Window".
"""

from collections.abc import Collection, Iterable, Sequence

from bot.model import Turn

ENOUGH_TURNS = 8
"""So many new turns are worth a look at a quarter of an hour."""


def least_turns(max_messages: int) -> int:
    """Return how many turns, a question and an answer each, are always shown."""
    return max(1, max_messages // 2)


def full_at(max_messages: int) -> int:
    """Return with how many turns the window is to be folded: twice as many as it always shows."""
    return 2 * least_turns(max_messages)


def folded_start(start: int, boundary: int, cursor: int) -> int | None:
    """Return behind which turn the window begins once it is folded, ``None`` if it stays.

    Nothing leaves the window before the summary has read it, and it is folded whole or not at all,
    so that the beginning of the prompt stays still in between.

    Args:
        start: behind which turn it begins now.
        boundary: the newest turn that is not to be shown any more.
        cursor: up to which turn the summary has read.
    """
    return boundary if start < boundary <= cursor else None


def shown_turns(turns: Sequence[Turn], start: int) -> list[Turn]:
    """Return the turns of the window, which begins behind the turn ``start``."""
    return [turn for turn in turns if turn.id > start]


def is_open_to(turn: Turn, user_id: str, kept: Collection[int]) -> bool:
    """Whether somebody may be shown a turn: nothing of it is kept for it alone, or it is theirs.

    Args:
        turn: the turn.
        user_id: who asks.
        kept: message rows of people who have opted out, kept for the turn that answers them.
    """
    if not kept or turn.user_id == user_id:
        return True
    return not any(line.part == "question" and line.message_id in kept for line in turn.lines)


def last_mark(now: int, every_minutes: float) -> int:
    """Return the last moment at which chats are looked at, by the clock: 12:00, 12:15 …

    Args:
        now: UTC milliseconds, and so is what is returned.
        every_minutes: ``summaryEveryMinutes``.
    """
    every_ms = max(1, round(every_minutes * 60_000))
    return now - now % every_ms


def message_ids(turns: Iterable[Turn]) -> dict[int, int]:
    """Return the message rows that some turns show, each with the first turn that shows it."""
    found: dict[int, int] = {}
    for turn in turns:
        for line in turn.lines:
            if line.message_id is not None:
                found[line.message_id] = min(turn.id, found.get(line.message_id, turn.id))
    return found

"""When a reflection is due: a pure decision with its reason.

See ``docs/memory.md``, "Triggers".
"""

from dataclasses import dataclass
from typing import Literal

from bot.model import TaskName

Reason = Literal["idle", "count", "max-wait", "backlog"]
"""``idle``: nobody spoke for a while. ``count``: enough messages wait. ``max-wait``: the oldest
has waited too long. ``backlog``: part of what was there when the task fell due still waits."""

AT_ONCE = 0
"""What ``earliest_due_at`` says of a task that waits for nothing."""

_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class TaskStats:
    """What waits for one task in one chat. Times are those at which messages came in."""

    pending: int
    """Messages of people above the cursor: no commands, none recalled, none of bots."""
    oldest_pending_at: int | None
    """UTC milliseconds; ``None`` counts as long ago, so that nothing waits for ever."""
    newest_pending_at: int | None
    """UTC milliseconds; ``None`` counts as long ago."""
    has_answered: bool
    """The bot has once answered in this chat."""
    fell_due: bool
    """The task fell due before, and part of what was stored then still waits."""


@dataclass(frozen=True, slots=True)
class TriggerRules:
    """The settings that decide when a task is due; minutes may be fractions."""

    memory_enabled: bool = True
    member_batch_enabled: bool = True
    idle_minutes: float = 15
    member_batch_messages: int = 50
    private_batch_messages: int = 50
    group_max_wait_minutes: float = 180


def due(task: TaskName, stats: TaskStats, rules: TriggerRules, now: int) -> Reason | None:
    """Return why ``task`` is due at ``now`` (UTC milliseconds), or ``None`` if it is not.

    Once due, it stays due until something is reflected or switched off.
    """
    if not _is_open(task, stats, rules):
        return None
    if stats.fell_due:
        return "backlog"
    if _is_full(task, stats, rules):
        return "count"
    if now >= _idle_at(stats, rules):
        return "idle"
    if task == "group" and now >= _waited_at(stats, rules):
        return "max-wait"
    return None


def earliest_due_at(task: TaskName, stats: TaskStats, rules: TriggerRules) -> int | None:
    """Return when ``task`` falls due if nothing more arrives, in UTC milliseconds.

    ``AT_ONCE`` for a task that waits for nothing, ``None`` for one that time alone never makes
    due.
    """
    if not _is_open(task, stats, rules):
        return None
    if stats.fell_due or _is_full(task, stats, rules):
        return AT_ONCE
    if task == "group":
        return min(_idle_at(stats, rules), _waited_at(stats, rules))
    return _idle_at(stats, rules)


def _is_open(task: TaskName, stats: TaskStats, rules: TriggerRules) -> bool:
    if stats.pending <= 0 or not rules.memory_enabled:
        return False
    if task == "member-batch":
        return rules.member_batch_enabled
    return task == "group" or stats.has_answered


def _is_full(task: TaskName, stats: TaskStats, rules: TriggerRules) -> bool:
    if task == "group":
        return False
    limits = {
        "member-batch": rules.member_batch_messages,
        "private-owner": rules.private_batch_messages,
    }
    return stats.pending >= limits[task]


def _idle_at(stats: TaskStats, rules: TriggerRules) -> int:
    return _later(stats.newest_pending_at, rules.idle_minutes)


def _waited_at(stats: TaskStats, rules: TriggerRules) -> int:
    return _later(stats.oldest_pending_at, rules.group_max_wait_minutes)


def _later(at: int | None, minutes: float) -> int:
    return AT_ONCE if at is None else at + round(minutes * _MINUTE_MS)

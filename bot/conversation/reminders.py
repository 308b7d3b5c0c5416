"""Reminders: how far ahead, how many, and what is said when the time has come. Pure.

See ``docs/tools.md``, "Reminders".
"""

from bot.model import Reminder

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

MAX_OPEN = 20
"""So many reminders of one person wait at once, over all their chats."""

MAX_AHEAD_MS = 366 * DAY_MS
TEXT_CHARS = 200

LATE_MS = 2 * MINUTE_MS
"""What is later than this says so."""

RETRY_MS = 5 * MINUTE_MS
MAX_ATTEMPTS = 3
"""So often a send is tried that the platform refuses."""


def refusal(due_at: int, now: int) -> str:
    """Return why a reminder cannot be for that moment, or nothing."""
    if due_at <= now:
        return "这个时间已经过了。"
    if due_at - now > MAX_AHEAD_MS:
        return "最多只能提前一年。"
    return ""


def reminder_text(reminder: Reminder, now: int) -> str:
    """Return what is sent; what comes late says so."""
    late_ms = now - reminder.due_at
    late = f"（晚了 {span(late_ms)}，当时我不在线）" if late_ms >= LATE_MS else ""
    return f"提醒：{reminder.text}{late}"


def span(ms: int) -> str:
    """Return a length of time in its two greatest units, rounded down."""
    days, rest = divmod(ms, DAY_MS)
    hours, rest = divmod(rest, HOUR_MS)
    units = ((days, "天"), (hours, "小时"), (rest // MINUTE_MS, "分钟"))
    first = next((at for at, (count, _) in enumerate(units) if count), len(units) - 1)
    told = [f"{count} {unit}" for count, unit in units[first : first + 2] if count]
    return " ".join(told) or f"不到 1 {units[-1][1]}"

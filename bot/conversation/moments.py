"""Moments as models write them: a local day, maybe with a time. Pure."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

DAY_FORM = "YYYY-MM-DD[ HH:MM]"


def moment(text: str, zone: ZoneInfo, *, ends_day: bool = False) -> int | None:
    """Return a local moment in UTC milliseconds, or ``None`` if ``text`` is none.

    Args:
        text: ``YYYY-MM-DD``, maybe with ``HH:MM`` and seconds behind a space or a ``T``.
        zone: whose local time it is.
        ends_day: a bare day means its end, which is the beginning of the next.
    """
    try:
        local = datetime.fromisoformat(text.strip())
        is_bare = len(text.strip()) <= len("YYYY-MM-DD")
        if ends_day and is_bare:
            local += timedelta(days=1)
        # A time zone of its own would be a moment of another day than the one that is written.
        return round(local.replace(tzinfo=local.tzinfo or zone).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None

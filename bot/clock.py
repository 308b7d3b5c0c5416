"""Time as an argument: the only place that reads the wall clock.

See ``docs/architecture.md``, "House rules".
"""

import asyncio
import time
from datetime import datetime
from datetime import time as time_of_day
from typing import Protocol
from zoneinfo import ZoneInfo


class Clock(Protocol):
    """What a verb may ask about time. The simulator ships a virtual one."""

    def now(self) -> int:
        """Return the present moment in UTC milliseconds."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Suspend the caller for ``seconds`` of this clock's time."""
        ...


class SystemClock:
    """The wall clock."""

    def now(self) -> int:
        """Return the present moment in UTC milliseconds."""
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        """Suspend the caller for ``seconds``."""
        await asyncio.sleep(seconds)


def local_time(at: int, zone: ZoneInfo) -> datetime:
    """Return the local time of ``at`` (UTC milliseconds) in ``zone``."""
    return datetime.fromtimestamp(at / 1000, zone)


def local_minute(at: int, zone: ZoneInfo) -> str:
    """Return the local minute of ``at`` (UTC milliseconds) as ``YYYY-MM-DD HH:MM``."""
    return local_time(at, zone).isoformat(" ", "minutes")[:16]


def day_start(at: int, zone: ZoneInfo) -> int:
    """Return when the local day of ``at`` began, both in UTC milliseconds."""
    midnight = datetime.combine(local_time(at, zone).date(), time_of_day(), zone)
    return round(midnight.timestamp() * 1000)


def local_date(at: int, zone: ZoneInfo) -> str:
    """Return the local day of ``at`` (UTC milliseconds) as ``YYYY-MM-DD``."""
    return local_time(at, zone).date().isoformat()

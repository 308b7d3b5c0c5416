"""The log: what happens and why, without a line for each matcher that looks at an event."""

import logging
import sys
from typing import TYPE_CHECKING

from loguru import logger
from nonebot.log import default_format

if TYPE_CHECKING:
    from loguru import Record

CHATTY_MODULES = frozenset({"message", "matcher"})
"""Of NoneBot; what they write of each event only debugging needs."""


def configure(level: int | str) -> None:
    """Log to stdout at ``level`` and above, instead of NoneBot's own sink.

    That one is asked for every line of every level before it says no. Values of variables stay
    out of tracebacks: they hold what people wrote.
    """
    lowest = logger.level(level).no if isinstance(level, str) else level
    info, success = logger.level("INFO").no, logger.level("SUCCESS").no

    def is_wanted(record: "Record") -> bool:
        if record["name"] != "nonebot":
            return True
        # It prints its whole configuration, keys and tokens included.
        if record["function"] == "init" and record["level"].no < info:
            return False
        # One line per event with all that it says, and six for the matchers that look at it.
        is_chatter = record["module"] in CHATTY_MODULES and record["level"].no <= success
        return lowest < info or not is_chatter

    # It warns each time a look is skipped because the one before still works, which is as meant.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    # It quotes what servers say, which may be what people said; what matters is logged by us.
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
    logger.remove()
    logger.add(sys.stdout, level=lowest, diagnose=False, format=default_format, filter=is_wanted)

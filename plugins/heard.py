"""What follows once a message is stored, for the two matchers that may see to it.

Neither a plugin nor a matcher: NoneBot takes what a plugin imports from another for its own.
"""

from collections.abc import Mapping, Sequence

from loguru import logger
from nonebot.matcher import current_event, current_matcher

from bot.command import command
from bot.converse import converse
from bot.errors import SendError
from bot.ingest import Ingested
from plugins.adapter import QuietMessage
from plugins.current import current_app

INGEST_PRIORITY = 1
REPLY_PRIORITY = 50


async def reply() -> None:
    """Do what a command asks; let another message have its answer, if it is to have one.

    Whoever comes first does it, the other finds nothing left to do.
    """
    taken = _taken_out()
    if taken is None:
        return
    if taken.command is None:
        await converse(current_app(), taken)
    else:
        current_matcher.get().stop_propagation()
        await _obey(taken)


def is_next(matchers: Mapping[int, Sequence[object]]) -> bool:
    """Whether nobody but ``plugins/chat.py`` would see a message between ingest and answer.

    Other plugins may have matchers there, and keep a message for themselves.

    Args:
        matchers: NoneBot's, by priority.
    """
    between = range(INGEST_PRIORITY + 1, REPLY_PRIORITY)
    others = any(matchers[priority] for priority in matchers if priority in between)
    return not others and len(matchers.get(REPLY_PRIORITY, ())) <= 1


def _taken_out() -> Ingested | None:
    """Return what became of the message of the running matcher and is not yet seen to."""
    event = current_event.get()
    if not isinstance(event, QuietMessage):
        return None
    taken, event.taken = event.taken, None
    return taken


async def _obey(taken: Ingested) -> None:
    try:
        await command(current_app(), taken)
    except SendError as error:
        name = taken.command.name if taken.command else ""
        logger.warning("the answer to {} did not go out: {}", name, error)

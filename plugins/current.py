"""The running program, for whoever works at the edge.

Handlers ask here instead of declaring parameters: NoneBot solves those of a handler in task groups
of their own, which costs every message a third of a millisecond for each matcher.
"""

import nonebot

from bot.app import App


def current_app() -> App:
    """Return the running program, which the lifecycle plugin put on the server."""
    return nonebot.get_app().state.qunyi

"""The tools there are. See ``docs/tools.md``, "The tools"."""

from bot.app import App
from bot.tools.tool import Tool

BUILT_IN: tuple[Tool, ...] = ()
"""Those that need nothing but the program."""


def toolbox(app: App) -> tuple[Tool, ...]:
    """Return every tool of the program, whoever may use it."""
    return (*BUILT_IN, *app.tools)

"""The tools there are. See ``docs/tools.md``, "The tools"."""

from bot.app import App
from bot.tools.describe_image import DescribeImage
from bot.tools.tool import Tool


def toolbox(app: App) -> tuple[Tool, ...]:
    """Return every tool of the program, whoever may use it."""
    return (*_pictures(app), *app.mcp.tools())


def _pictures(app: App) -> tuple[Tool, ...]:
    """Without ``VISION_MODEL`` nobody looks at pictures."""
    return (DescribeImage(),) if app.routes.is_configured("vision") else ()

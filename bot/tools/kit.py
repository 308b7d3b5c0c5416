"""The tools there are. See ``docs/tools.md``, "The tools"."""

from bot.app import App
from bot.conversation.tools import Tool
from bot.tools.chat_history import ChatHistory
from bot.tools.describe_image import DescribeImage
from bot.tools.forget import Forget
from bot.tools.member_info import MemberInfo
from bot.tools.memory_search import MemorySearch
from bot.tools.remember import Remember
from bot.tools.remind import Remind
from bot.tools.surroundings import Surroundings

BUILT_IN: tuple[Tool[Surroundings], ...] = (
    ChatHistory(),
    MemorySearch(),
    Remember(),
    Forget(),
    MemberInfo(),
    Remind(),
)
"""Those that need nothing but the program."""


def toolbox(app: App) -> tuple[Tool[Surroundings], ...]:
    """Return every tool of the program, whoever may use it."""
    return (*BUILT_IN, *_pictures(app), *app.mcp.tools(), *app.tools)


def _pictures(app: App) -> tuple[Tool[Surroundings], ...]:
    """Without ``VISION_MODEL`` nobody looks at pictures."""
    return (DescribeImage(),) if app.routes.is_configured("vision") else ()

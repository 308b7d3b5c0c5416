"""Which tools there are."""

from bot.app import App
from bot.tools.chat_history import ChatHistory
from bot.tools.forget import Forget
from bot.tools.member_info import MemberInfo
from bot.tools.memory_search import MemorySearch
from bot.tools.remember import Remember
from bot.tools.remind import Remind
from bot.tools.tool import Tool

BUILT_IN: tuple[Tool, ...] = (
    ChatHistory(),
    MemorySearch(),
    Remember(),
    Forget(),
    MemberInfo(),
    Remind(),
)


def toolbox(app: App) -> tuple[Tool, ...]:
    """Return the tools of a running program."""
    return BUILT_IN

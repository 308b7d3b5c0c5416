"""Which function does which command."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from bot.commands.access import approve, block_member, disable, enable, unblock_member
from bot.commands.across import cross_groups
from bot.commands.call import Answer, Call
from bot.commands.lessons import lessons
from bot.commands.memory import (
    show_memory,
    show_own_memory,
    show_tasks,
    start_compression,
    start_reflection,
)
from bot.commands.model import choose_model
from bot.commands.notes import forget_one, keep, pin
from bot.commands.opting import opt_in, opt_out
from bot.commands.reminders import reminders
from bot.commands.search import search_chat
from bot.commands.session import begin_anew, tend_session
from bot.commands.settings import change_mode, change_persona, change_setting
from bot.commands.status import show_help, show_status
from bot.commands.stop import stop
from bot.commands.upkeep import tidy, undo

ACTIONS: Mapping[str, Callable[[Call], Awaitable[str | Answer]]] = MappingProxyType(
    {
        "帮助": show_help,
        "状态": show_status,
        "模式": change_mode,
        "设置": change_setting,
        "停": stop,
        "人设": change_persona,
        "模型": choose_model,
        "会话": tend_session,
        "新会话": begin_anew,
        "我的记忆": show_own_memory,
        "跨群": cross_groups,
        "记住": keep,
        "忘记": forget_one,
        "别记我": opt_out,
        "记我": opt_in,
        "提醒": reminders,
        "搜": search_chat,
        "记忆": show_memory,
        "置顶": pin,
        "整理": tidy,
        "撤销": undo,
        "反思": start_reflection,
        "压缩": start_compression,
        "任务": show_tasks,
        "经验": lessons,
        "启用": enable,
        "停用": disable,
        "同意": approve,
        "拉黑": block_member,
        "解除": unblock_member,
    }
)
"""By the command's name; the words, rights and help texts stand in
``bot/conversation/commands.py``."""

"""Which words are commands, who may use them, and how one is read from a message.

See ``docs/architecture.md``, "Commands". What a command does stands in ``bot/commands/``.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from bot.model import Segment

PREFIX = "群忆"
"""Other bots use the same words; this one before them, or alone, means us."""

Audience = Literal["anyone", "host", "group_admin", "operator"]
"""``host`` is whoever the chat is about: in a private chat the person, in a group its admins."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """One command."""

    name: str
    audience: Audience
    usage: str
    """What follows the name."""
    help: str
    joins: bool = False
    """What follows is free text, which people write without a space."""


COMMANDS: tuple[CommandSpec, ...] = (
    CommandSpec("帮助", "anyone", "", "看看有哪些命令 (help)"),
    CommandSpec("状态", "group_admin", "", "连接、模型、今天的用量 (status)"),
    CommandSpec(
        "模式",
        "group_admin",
        "[auto|mention|silent]",
        "怎么接话：auto 自己决定，mention 被叫到才说，silent 只听不说 (reply mode)",
    ),
    CommandSpec("停", "host", "", "停下正在想的和排队的回答 (stop)"),
    CommandSpec(
        "人设",
        "group_admin",
        "[text|默认]",
        "查看或修改机器人在这个聊天里的人设 (persona)",
    ),
    CommandSpec(
        "模型", "operator", "[name|默认]", "查看或选择回答这个聊天的模型 (model of this chat)"
    ),
    CommandSpec(
        "设置",
        "group_admin",
        "[key [value|默认]]",
        "查看或修改运行时设置，立刻生效 (settings)",
    ),
    CommandSpec(
        "会话",
        "group_admin",
        "[compact|summary|reset summary|reset all|remove]",
        "看看对话窗口和概要，折叠、重建、清空或删除 (conversation)",
    ),
    CommandSpec("新会话", "anyone", "", "清空这里的对话，概要和记忆保留 (new conversation)"),
    CommandSpec(
        "我的记忆", "anyone", "[页]", "看看我记得你什么，依据有多少 (what is kept about you)"
    ),
    CommandSpec(
        "跨群",
        "anyone",
        "开|关",
        "一个群记得的你，能不能在别的群里用 (use in others what one group knows of you)",
    ),
    CommandSpec(
        "记住", "anyone", "…", "把后面的话记成你的记忆 (remember this about me)", joins=True
    ),
    CommandSpec("忘记", "anyone", "[群]#id", "忘记一条关于你的记忆，不能恢复 (forget an entry)"),
    CommandSpec(
        "别记我",
        "anyone",
        "[确认]",
        "不再记录你，并抹去记得的和你说过的话，不能恢复 (opt out of being recorded)",
    ),
    CommandSpec("记我", "anyone", "", "重新开始记录你 (be recorded again)"),
    CommandSpec(
        "提醒", "anyone", "[列表|取消 #n|取消 全部]", "看看或取消你定的提醒 (your reminders)"
    ),
    CommandSpec(
        "搜",
        "anyone",
        "词 [@某人] [自 日期] [至 日期] [页 n]",
        "在这个聊天里找说过的话 (search what was said here)",
        joins=True,
    ),
    CommandSpec("记忆", "operator", "群|成员 id [页]", "查看群或成员的记忆 (show memory)"),
    CommandSpec("反思", "operator", "[group|member|private]", "马上整理这里的记忆 (reflect now)"),
    CommandSpec("压缩", "operator", "", "马上把这里较早的近事压缩成长期记忆 (compress now)"),
    CommandSpec(
        "置顶",
        "group_admin",
        "[群|成员 id] #id [取消]",
        "总是先想起这条，不压缩也不过期 (pin an entry)",
    ),
    CommandSpec("整理", "operator", "", "马上整理这里的便签：升级、过期、合并 (consolidate)"),
    CommandSpec("撤销", "group_admin", "[编号]", "列出记忆最近的改动，或撤销一个 (undo)"),
    CommandSpec("任务", "operator", "", "最近的整理任务和跳过的消息 (tasks)"),
    CommandSpec(
        "经验",
        "operator",
        "[页|改 #n 动作|删 #n]",
        "工具出过的错和解决办法 (lessons of tools)",
    ),
    CommandSpec("启用", "operator", "[群|成员 id]", "开始记录和回应这个聊天 (enable)"),
    CommandSpec("停用", "operator", "[群|成员 id]", "不再记录和回应这个聊天 (disable)"),
    CommandSpec("同意", "operator", "[编号]", "同意好友申请或入群邀请；不带编号时列出 (approve)"),
    CommandSpec("拉黑", "operator", "id", "不再回应这个人 (block)"),
    CommandSpec("解除", "operator", "id", "重新回应这个人 (unblock)"),
)

NAMES = frozenset(spec.name for spec in COMMANDS)

OTHER_WORDS = ("搜索", "搜图", "搜歌", "搜番", "搜题", "记住了", "记住没", "记住吗")
"""Longer words that begin with a name that joins: commands of other bots, and plain words."""

_JOINING = tuple(sorted((spec.name for spec in COMMANDS if spec.joins), key=len, reverse=True))
_JOINED_TEXT = re.compile(r"[\u3041-\u30ff\u3400-\u9fff]{2}")
"""A single character more makes another word of a name, as often as not."""


def spec_of(name: str) -> CommandSpec:
    """Return the command called ``name``; raises ``KeyError`` if there is none."""
    return {spec.name: spec for spec in COMMANDS}[name]


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it was typed."""

    name: str
    arguments: str
    """All behind the name, trimmed; an @ stands as its user id."""


def read_command(
    segments: Sequence[Segment], bot_id: str, starts: Collection[str]
) -> Command | None:
    """Return the command that a message is, or ``None`` if it is an ordinary message.

    Args:
        segments: the message; a quote and an @ of the bot may stand before the command.
        bot_id: the bot account.
        starts: ``COMMAND_START``; an empty string allows bare names.
    """
    text = _typed(segments, bot_id).strip()
    for start in sorted(starts, key=len, reverse=True):
        rest = text.removeprefix(start).lstrip()
        if text.startswith(start) and (command := _named(rest, may_join=bool(start))):
            return command
    return None


def _typed(segments: Sequence[Segment], bot_id: str) -> str:
    words: list[str] = []
    for segment in segments:
        if segment.type == "text":
            words.append(str(segment.data.get("text", "")))
        elif segment.type == "at":
            user_id = str(segment.data.get("qq", ""))
            if user_id != bot_id or "".join(words).strip():
                words.append(f" {user_id} ")
        elif segment.type != "reply":
            return ""
    return "".join(words)


def _named(text: str, *, may_join: bool) -> Command | None:
    first, arguments = _first_word(text)
    if first != PREFIX:
        return _called(text, may_join=may_join)
    return _called(arguments, may_join=may_join) if arguments else Command("帮助", "")


def _called(text: str, *, may_join: bool) -> Command | None:
    first, arguments = _first_word(text)
    if first in NAMES:
        return Command(first, arguments)
    if not may_join or first.startswith(OTHER_WORDS):
        return None
    joined = (name for name in _JOINING if first.startswith(name))
    name = next((name for name in joined if _JOINED_TEXT.match(first, len(name))), None)
    return Command(name, text.removeprefix(name).strip()) if name else None


def _first_word(text: str) -> tuple[str, str]:
    words = text.split(maxsplit=1)
    if not words or (text[0].isspace() and not text.strip()):
        return "", ""
    return words[0], words[1].strip() if len(words) > 1 else ""

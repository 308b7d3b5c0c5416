"""Run-time settings: 设置 模式 人设."""

from bot.clock import local_time
from bot.commands.call import Call, Refusal
from bot.errors import SettingError
from bot.model import Chat
from bot.settings import DEFINITIONS, SettingDefinition, definition, parse_value, shown

RESET_WORDS = frozenset({"默认", "default", "reset"})

DEFAULT_PERSONA = "QQ 上的一位聊天伙伴：真诚、随和、说话简短，像群里的老朋友，不像客服"
"""In the words of ``prompts/reply.j2``."""

PERSONA_NOT_ALLOWED = "操作者没有允许群管理员修改人设。"


async def change_setting(call: Call) -> str:
    """设置: list all settings, show one, or change one."""
    words = call.arguments.split(maxsplit=1)
    if not words:
        return _listed(call)
    try:
        setting = definition(words[0])
        if not setting.per_chat:
            _check_operator(call, setting)
        if len(words) == 1:
            return _described(call, setting)
        return await _changed(call, setting, words[1].strip())
    except SettingError as error:
        raise Refusal(str(error)) from error


async def change_mode(call: Call) -> str:
    """模式: when the bot answers in this group."""
    if not call.chat.is_group:
        raise Refusal("私聊里总会回应；/模式 请在群里使用。")
    if not call.arguments:
        return _described(call, definition("replyMode"))
    try:
        return await _changed(call, definition("replyMode"), call.arguments.strip().lower())
    except SettingError as error:
        raise Refusal(str(error)) from error


async def change_persona(call: Call) -> str:
    """人设: what character the bot has in this chat, in private chats too."""
    setting, words = definition("persona"), call.arguments.strip()
    if not words:
        return _described_persona(call, setting)
    _check_persona(call)
    try:
        await _set(call, setting, words, call.chat)
    except SettingError as error:
        raise Refusal(str(error)) from error
    return f"{_persona(call)}\n从下一个回答起生效。"


def _persona(call: Call) -> str:
    if persona := call.app.settings.of(call.chat).persona:
        return f"这里的人设：{persona}"
    return f"这里没有另设人设，用的是默认的（{DEFAULT_PERSONA}）。"


def _described_persona(call: Call, setting: SettingDefinition) -> str:
    """Return what character the bot has in this chat, who says so, and how to change it."""
    lines = [_persona(call)]
    if history := _history(call, setting):
        lines.append(f"{history}，{_reach(call, setting)}")
    if _may_set_persona(call):
        lines.append("想换就发送 /人设 加上想要的样子，例如 /人设 你是一位爱讲冷笑话的海盗。")
        if call.app.settings.last_change(setting.key, call.chat):
            lines.append("发送 /人设 默认 恢复。")
    else:
        lines.append(PERSONA_NOT_ALLOWED)
    return "\n".join(lines)


def _listed(call: Call) -> str:
    settings = call.app.settings.of(call.chat)
    lines = [
        f"{key}{'*' if setting.per_chat else ''} = {_short(shown(key, settings))}"
        for key, setting in DEFINITIONS.items()
        if call.is_operator or setting.per_chat
    ]
    return "\n".join(
        (*lines, "带 * 的可按聊天单独设置。发送 /设置 key 查看说明，/设置 key value 修改。")
    )


def _short(value: str) -> str:
    return value if len(value) <= 40 else value[:39] + "…"


def _described(call: Call, setting: SettingDefinition) -> str:
    """Return ``key = value``, where it holds, who set it, and what it means."""
    value = shown(setting.key, call.app.settings.of(call.chat))
    lines = [f"{setting.key} = {value}", f"范围：{_reach(call, setting)}"]
    if history := _history(call, setting):
        lines.append(history)
    lines.append(f"{setting.description}（要求{setting.requirement}）")
    return "\n".join(lines)


def _reach(call: Call, setting: SettingDefinition) -> str:
    if call.app.settings.last_change(setting.key, call.chat):
        return "本聊天单独设置"
    return "全局（可按聊天单独设置）" if setting.per_chat else "全局"


def _history(call: Call, setting: SettingDefinition) -> str:
    book = call.app.settings
    change = book.last_change(setting.key, call.chat) or book.last_change(setting.key)
    if change is None:
        return ""
    local = local_time(change.at, call.app.config.timezone)
    return f"{change.by} 于 {local:%Y-%m-%d %H:%M} 设置"


async def _changed(call: Call, setting: SettingDefinition, text: str) -> str:
    return await _set(call, setting, text, _place(call, setting))


async def _set(call: Call, setting: SettingDefinition, text: str, chat: Chat | None) -> str:
    book, now = call.app.settings, call.app.clock.now()
    if text in RESET_WORDS:
        await book.reset(setting.key, at=now, chat=chat)
    else:
        value = parse_value(setting.key, text)
        await book.change(setting.key, value, by=call.caller_id, at=now, chat=chat)
    settings = book.general if chat is None else book.of(chat)
    place = "全局" if chat is None else "本聊天"
    return f"{setting.key} = {shown(setting.key, settings)}（{place}，已生效）"


def _check_operator(call: Call, setting: SettingDefinition) -> None:
    if not call.is_operator:
        raise Refusal(f"{setting.key} 是全局设置，只有操作者可以查看和修改。")


def _place(call: Call, setting: SettingDefinition) -> Chat | None:
    """Return the chat that a change is for, ``None`` for all; refuse who may not make it."""
    here = call.chat if call.chat.is_group and setting.per_chat else None
    if call.is_operator:
        return here
    if here is None:
        _check_operator(call, setting)
    if setting.key == "persona":
        _check_persona(call)
    return here


def _check_persona(call: Call) -> None:
    if not _may_set_persona(call):
        raise Refusal(PERSONA_NOT_ALLOWED)


def _may_set_persona(call: Call) -> bool:
    return call.is_operator or call.app.settings.general.group_admins_can_set_persona

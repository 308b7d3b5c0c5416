"""What is going on and what one can say: 状态 帮助."""

from datetime import datetime, time

from bot.clock import local_time
from bot.commands.call import Call
from bot.conversation.commands import COMMANDS, Audience, CommandSpec
from bot.errors import ModelNotConfigured
from bot.store.usage import usage_since


async def show_help(call: Call) -> str:
    """帮助: the commands that the caller may use here."""
    start = next((s for s in call.app.config.command_start if s), "")
    lines = [_usage(start, spec) for spec in COMMANDS if may_use(call, spec.audience)]
    hello = "@我、引用我的消息，或以我的名字开头，就能和我说话。" if call.chat.is_group else ""
    prefix = f"和别的机器人命令重名时，在前面加 {start}群忆，例如 {start}群忆 帮助。"
    return "\n".join(line for line in (hello, "我认识的命令：", *lines, prefix) if line)


def _usage(start: str, spec: CommandSpec) -> str:
    usage = f" {spec.usage}" if spec.usage else ""
    return f"{start}{spec.name}{usage} — {spec.help}"


def may_use(call: Call, audience: Audience) -> bool:
    """Whether the caller belongs to a command's audience here."""
    match audience:
        case "anyone":
            return True
        case "host":
            return not call.chat.is_group or call.is_operator or call.is_group_admin
        case "group_admin":
            return call.is_operator or call.is_group_admin
        case "operator":
            return call.is_operator


async def show_status(call: Call) -> str:
    """状态: how this chat is served; for operators also models and the day's usage."""
    app = call.app
    settings = app.settings.of(call.chat)
    up_minutes = (app.clock.now() - app.started_at) // 60_000
    lines = [f"运行 {up_minutes // 60} 小时 {up_minutes % 60} 分钟"]
    if call.chat.is_group:
        lines.append(f"本群模式：{settings.reply_mode}")
    lines.append(f"记忆：{'开' if settings.memory_enabled else '关'}")
    if call.is_operator:
        lines += [f"在线账号：{'、'.join(app.accounts.connected) or '无'}", _model(call)]
        lines += await _usage_today(call)
    return "\n".join(lines)


def _model(call: Call) -> str:
    try:
        chosen = call.app.choices.of(call.chat)
        routes = call.app.routes.candidates("chat", preferred=chosen)
    except ModelNotConfigured as error:
        return f"模型：未配置（{error}）"
    return f"模型：{'、'.join(str(route) for route in routes)}"


async def _usage_today(call: Call) -> list[str]:
    app = call.app
    today = local_time(app.clock.now(), app.config.timezone).date()
    midnight = datetime.combine(today, time(), app.config.timezone)
    sums = await usage_since(app.db, round(midnight.timestamp() * 1000))
    if not sums:
        return ["今天还没有调用模型"]
    return ["今天的用量："] + [
        f"{s.purpose}：{s.calls} 次（成功 {s.succeeded}），"
        f"输入 {s.prompt_tokens}（缓存 {s.cached_tokens}），输出 {s.completion_tokens} token"
        for s in sums
    ]

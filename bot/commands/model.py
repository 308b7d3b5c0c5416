"""Which model answers in this chat: 模型."""

from bot.commands.call import Call, Refusal
from bot.commands.settings import RESET_WORDS
from bot.errors import ModelNotConfigured
from bot.text import display_name


async def choose_model(call: Call) -> str:
    """模型: show what may answer here, or choose which is asked first; at once."""
    app, name = call.app, call.arguments.strip()
    try:
        models = list(dict.fromkeys(route.model for route in app.routes.candidates("chat")))
    except ModelNotConfigured as error:
        raise Refusal(f"还没有配置模型（{error}）。") from error
    if not name:
        return _told(call, models)
    wanted = "" if name in RESET_WORDS else _known(models, name)
    await app.choices.choose(call.chat, wanted, by=call.caller_id, at=app.clock.now())
    return f"{_told(call, models)}\n（已生效）"


def _known(models: list[str], name: str) -> str:
    """Return the configured model that is meant; keys and prices are known of no other."""
    for model in models:
        if model.casefold() == name.casefold():
            return model
    shown = display_name(name, "?", 64)
    raise Refusal(
        f"没有配置 {shown}。可以选：{'、'.join(models)}。别的模型请先写进 CHAT_FALLBACK_MODELS。"
    )


def _told(call: Call, models: list[str]) -> str:
    chosen = call.app.choices.of(call.chat)
    order = [route.model for route in call.app.routes.candidates("chat", preferred=chosen)]
    if not chosen:
        how = "默认"
    elif chosen in models:
        how = "本聊天单独选择"
    else:
        how = f"默认；选择过的 {chosen} 已不在配置里"
    lines = [f"这个聊天用的模型：{order[0]}（{how}）"]
    if order[1:]:
        lines.append(f"它不可用时依次用：{'、'.join(dict.fromkeys(order[1:]))}")
    lines.append(f"可以选：{'、'.join(models)}。发送 /模型 名字，或 /模型 默认")
    return "\n".join(lines)

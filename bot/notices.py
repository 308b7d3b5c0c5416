"""What the bot says of itself, in the words people read."""

from collections.abc import Iterable


def privacy_notice(models: Iterable[str]) -> str:
    """Return what is said once where the bot begins to keep and answer: what, who reads it, how
    to see and erase it.

    Args:
        models: the names of the models that may read it.
    """
    named = "、".join(models) or "由操作者配置"
    return (
        f"【说明】我会保存这个聊天里的消息，并整理成有依据的记忆。阅读消息的是大模型（{named}），"
        "消息会发送给它的服务商，操作者在技术上也能读到。"
        "发送 /我的记忆 查看我记得你什么，/忘记 #编号 忘掉一条，/别记我 不再被记录；"
        "撤回消息会抹去由它而来的内容。"
        "/帮助 查看命令；其他要删除的请联系我的操作者。"
    )


def unconfigured_notice() -> str:
    """Return what is said, once to each, where no model is configured."""
    return (
        "我能收到消息，但还没有配置模型，所以暂时只能记录、不能回答。"
        "请操作者在 .env 里设置 CHAT_MODEL 和 OPENAI_API_KEY，然后重启。"
    )


def budget_notice() -> str:
    """Return what is said, once a day in each chat, when the day's tokens are spent."""
    return "今天的模型用量已经到上限了，明天再聊吧。"


def apology(error_id: str) -> str:
    """Return what is said to somebody who gets no answer; the log tells more under the id."""
    return f"抱歉，我这会儿答不上来，请稍后再试。（错误编号 {error_id}）"

"""What the bot says of itself, in the words people read."""

PRIVACY_NOTICE = (
    "【说明】我会保存这个聊天里的消息，用来理解上下文；回复由操作者配置的大模型生成，"
    "因此消息会发送给该模型的服务商，操作者在技术上也能读到。"
    "发送 /帮助 查看命令；想查看或删除已保存的内容，请联系我的操作者。"
)


def unconfigured_notice() -> str:
    """Return what is said, once to each, where no model is configured."""
    return (
        "我能收到消息，但还没有配置模型，所以暂时只能记录、不能回答。"
        "请操作者在 .env 里设置 CHAT_MODEL 和 OPENAI_API_KEY，然后重启。"
    )

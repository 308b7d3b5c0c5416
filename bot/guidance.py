"""What an operator has to do next, read off the configuration."""

import json
from collections.abc import Iterator

from bot.config import Config
from bot.llm.routing import Routes

SOCKET_PATH = "/onebot/v11/ws"


def socket_url(config: Config) -> str:
    """Return the address that a OneBot client on this machine connects to."""
    host = "127.0.0.1" if config.host in ("0.0.0.0", "::") else config.host
    return f"ws://{host}:{config.port}{SOCKET_PATH}"


def napcat_configuration(config: Config) -> str:
    """Return what to paste into NapCat's network configuration, the token included."""
    token = config.onebot_access_token
    client = {
        "name": "qunyi",
        "enable": True,
        "url": socket_url(config),
        "messagePostFormat": "array",
        "reportSelfMessage": False,
        "reconnectInterval": 5000,
        "token": token.get_secret_value() if token else "",
        "heartInterval": 30000,
    }
    return json.dumps({"network": {"websocketClients": [client]}}, ensure_ascii=False)


def next_steps(config: Config, routes: Routes) -> Iterator[str]:
    """Yield what is missing and how to get it, in Chinese and English, then how to connect."""
    if not routes.is_configured("chat"):
        yield (
            "没有配置模型：机器人会记录消息、响应命令，但不会聊天。"
            "请在 .env 里填写 CHAT_MODEL 和 OPENAI_API_KEY（以及 OPENAI_BASE_URL），然后重启。"
            " | No model is configured: set CHAT_MODEL and OPENAI_API_KEY in .env and restart."
        )
    if not config.superusers:
        yield (
            "没有设置操作者：请在 .env 里填写 SUPERUSERS（你的 QQ 号）。"
            " | No operator is set: put your QQ number into SUPERUSERS in .env."
        )
    yield (
        f"等待 OneBot v11 客户端（如 NapCat）连接 {socket_url(config)}；"
        "运行 python -m bot doctor 可得到要粘贴的配置。"
        f" | Waiting for a OneBot v11 client at {socket_url(config)}; "
        "`python -m bot doctor` prints what to paste into NapCat."
    )

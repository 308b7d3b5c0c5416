"""What an operator has to do next, read off the configuration."""

import json
from collections.abc import Iterator
from ipaddress import ip_address

from bot.config import Config
from bot.llm.routing import Routes

SOCKET_PATH = "/onebot/v11/ws"

NO_MODEL = (
    "没有配置模型：机器人会记录消息、响应命令，但不会聊天。"
    "请在 .env 里填写 CHAT_MODEL 和 OPENAI_API_KEY（以及 OPENAI_BASE_URL），然后重启。"
    " | No model is configured: set CHAT_MODEL and OPENAI_API_KEY in .env and restart."
)

NO_OPERATOR = (
    "没有设置操作者：请在 .env 里填写 SUPERUSERS（你的 QQ 号）。"
    " | No operator is set: put your QQ number into SUPERUSERS in .env."
)


def local_host(config: Config) -> str:
    """Return the address at which programs on this machine reach the bot."""
    host = ip_address(config.host)
    if not host.is_unspecified:
        return str(host)
    return "127.0.0.1" if host.version == 4 else "::1"


def socket_url(config: Config) -> str:
    """Return the address that a OneBot client on this machine connects to."""
    host = local_host(config)
    shown = f"[{host}]" if ":" in host else host
    return f"ws://{shown}:{config.port}{SOCKET_PATH}"


def napcat_configuration(config: Config) -> str:
    """Return what to paste into NapCat's network configuration, the token included."""
    client = {
        "name": "qunyi",
        "enable": True,
        "url": socket_url(config),
        "messagePostFormat": "array",
        "reportSelfMessage": False,
        "reconnectInterval": 5000,
        "token": _token(config),
        "heartInterval": 30000,
    }
    return json.dumps({"network": {"websocketClients": [client]}}, ensure_ascii=False)


def connection_guide(config: Config) -> Iterator[str]:
    """Yield lines that say what to enter where, so that a OneBot client finds the bot.

    The token is in them: they are for the terminal of who runs the bot, not for a log.
    """
    yield "连接 QQ 客户端 | Connect a QQ client"
    yield f"  地址 URL    {socket_url(config)}"
    yield f"  令牌 token  {_token(config) or '（没有设置，留空 | not set, leave it empty）'}"
    yield (
        "NapCat：WebUI → 网络配置 → 新建 → WebSocket 客户端，填上面的地址和令牌，消息格式选 Array，"
        "启用并保存；或把下面这段写进 NapCat 的 config/onebot11_<机器人QQ号>.json："
    )
    yield (
        "  | NapCat: WebUI → network → new → WebSocket client, with this address, token and format "
        "array; or put this into its config/onebot11_<account>.json:"
    )
    yield napcat_configuration(config)
    yield (
        "其他客户端（LLOneBot、Lagrange 等）：用「反向 WebSocket」，填同样的地址和令牌。"
        " | Other clients: a reverse WebSocket with the same address and token."
    )
    yield _from_elsewhere(config)


def next_steps(config: Config, routes: Routes) -> Iterator[str]:
    """Yield what is missing and how to get it, in Chinese and English, then how to connect."""
    if not routes.is_configured("chat"):
        yield NO_MODEL
    if not config.superusers:
        yield NO_OPERATOR
    yield (
        f"等待 OneBot v11 客户端（如 NapCat）连接 {socket_url(config)}；"
        "运行 python -m bot doctor 可得到要粘贴的配置。"
        f" | Waiting for a OneBot v11 client at {socket_url(config)}; "
        "`python -m bot doctor` prints what to paste into NapCat."
    )


def _token(config: Config) -> str:
    token = config.onebot_access_token
    return token.get_secret_value() if token else ""


def _from_elsewhere(config: Config) -> str:
    host = ip_address(config.host)
    if host.is_loopback:
        return (
            "客户端在别的机器或容器里：先设 HOST=0.0.0.0 和 ONEBOT_ACCESS_TOKEN，"
            "再运行一次 doctor。"
            " | For a client on another machine or in a container: set HOST=0.0.0.0 and "
            "ONEBOT_ACCESS_TOKEN first, and run the doctor again."
        )
    if not host.is_unspecified:
        return "客户端要能访问这个地址。 | The client has to reach this address."
    return (
        f"客户端在别的机器或容器里：把地址里的 {local_host(config)} 换成本机的地址。"
        f" | For a client elsewhere: write this machine's address instead of {local_host(config)}."
    )

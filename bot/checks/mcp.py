"""The servers of ``MCP_CONFIG``: whether the file can be used, and the programs be found."""

import shutil
from collections.abc import Iterator
from urllib.parse import urlsplit

from bot.checks.finding import Finding, fault, good, warning
from bot.config import Config
from bot.errors import ConfigError
from bot.mcp.config import Program, ServerConfig, read_servers


def mcp_findings(config: Config) -> Iterator[Finding]:
    """Yield what is to be said of each server; none is started or asked."""
    if config.mcp_config is None:
        return
    try:
        servers = read_servers(config.mcp_config)
    except ConfigError as error:
        yield fault(f"MCP_CONFIG 用不了 | MCP_CONFIG is not usable: {error.cause}")
        return
    if not servers:
        yield good("MCP_CONFIG 里没有启用的服务器 | MCP_CONFIG names no server that is enabled.")
    for server in servers:
        yield _server(server)


def _server(server: ServerConfig) -> Finding:
    users = "所有人" if server.members else "仅操作者"
    reached = server.reached
    if not isinstance(reached, Program):
        host = urlsplit(reached.url).hostname
        return good(f"MCP 服务器 {server.name}（{users}）：{host} | It is asked when the bot runs.")
    if shutil.which(reached.command) is None:
        return warning(
            f"MCP 服务器 {server.name}：找不到命令 {reached.command}，请安装或写完整路径"
            " | Its command is not found: install it, or write the whole path."
        )
    return good(
        f"MCP 服务器 {server.name}（{users}）：{reached.command}"
        " | Its command is there; it is started when the bot runs."
    )

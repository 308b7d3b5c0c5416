"""The port: free, or taken, and by whom."""

import asyncio
import errno
import os
import socket
from ipaddress import ip_address

from bot.checks.finding import Finding, fault, good, warning
from bot.config import Config
from bot.guidance import local_host
from bot.store.inspection import HOLDERS_ARE_KNOWN, Holder

ANSWER_SECONDS = 1.5
STATUS_LINE_MAX_BYTES = 256

ONEBOT_PATH = "/onebot/v11/"
"""NoneBot's OneBot adapter takes only POST here, so that GET is answered by 405, without a trace
in the adapter's log. A server without the adapter answers 404."""


async def port_finding(config: Config, holder: Holder | None) -> Finding:
    """Return whether the bot can listen, or does so already.

    Args:
        config: the static configuration.
        holder: who has the database open.
    """
    error = _listening_error(config)
    if error is None:
        return _free(config, holder)
    if error.errno != errno.EADDRINUSE:
        return _unusable(config, error)
    if await _has_onebot_server(config) and (holder is not None or not HOLDERS_ARE_KNOWN):
        return good(
            f"群忆正在运行{_process(holder)}，监听 {config.host}:{config.port}"
            " | Qunyi is running and listens there."
        )
    return fault(
        f"端口 {config.port} 被别的程序占用：停掉它，或换一个，例如 PORT={_other(config.port)}"
        f" | Another program listens on port {config.port}: stop it, or set PORT to another number."
    )


def _listening_error(config: Config) -> OSError | None:
    """Return what binding the address raises; nothing listens, and it is given back at once."""
    family = socket.AF_INET6 if ip_address(config.host).version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as plug:
            if os.name == "posix":
                plug.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                plug.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            plug.bind((config.host, config.port))
    except OSError as error:
        return error
    return None


def _free(config: Config, holder: Holder | None) -> Finding:
    if holder is None:
        return good(f"端口 {config.host}:{config.port} 空闲 | The port is free.")
    return warning(
        f"端口 {config.port} 空闲，但有别的进程{_process(holder)}打开着数据库：如果那是另一个群忆，"
        "请先停掉它，否则会重复回答"
        " | The port is free, but another process has the database open: if that is another Qunyi, "
        "stop it first, or both will answer."
    )


def _unusable(config: Config, error: OSError) -> Finding:
    cure = {
        errno.EACCES: "请用 1024 以上的 PORT | Use a PORT above 1023.",
        errno.EADDRNOTAVAIL: "这个 HOST 不是本机地址，请改成 127.0.0.1 或 0.0.0.0"
        " | HOST is no address of this machine: write 127.0.0.1 or 0.0.0.0.",
    }.get(error.errno or 0, "请修改 HOST 或 PORT | Mend HOST or PORT.")
    return fault(f"无法监听 {config.host}:{config.port}（{error.strerror}）：{cure}")


def _process(holder: Holder | None) -> str:
    if holder is None:
        return ""
    return f"（进程 {holder.process_id}）" if holder.process_id else "（在别的容器里）"


def _other(port: int) -> int:
    return port + 1 if port < 65_535 else port - 1


async def _has_onebot_server(config: Config) -> bool:
    """Ask who is there in plain HTTP, past any proxy."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return (await _status_line(config)).split()[1:2] == [b"405"]
    except (OSError, ValueError, TimeoutError):
        return False


async def _status_line(config: Config) -> bytes:
    host = local_host(config)
    reader, writer = await asyncio.open_connection(host, config.port, limit=STATUS_LINE_MAX_BYTES)
    try:
        request = f"GET {ONEBOT_PATH} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        writer.write(request.encode("ascii"))
        await writer.drain()
        return await reader.readline()
    finally:
        writer.close()

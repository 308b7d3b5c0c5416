"""The program itself and what it was told: versions, files, operators, token, time."""

import os
import platform
import sqlite3
from collections.abc import Iterator
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from ipaddress import ip_address
from pathlib import Path

from dotenv import dotenv_values

from bot import __version__
from bot.checks.finding import Finding, good, warning
from bot.clock import local_time
from bot.config import Config, variables
from bot.guidance import NO_OPERATOR

LIBRARIES = ("nonebot2", "nonebot-adapter-onebot", "pydantic", "aiosqlite", "aiosql", "openai")

SQLITE_FROM = (3, 38)
"""From here on JSON functions are always part of SQLite."""

TOKEN_MIN_CHARS = 16

TIME_FROM = 1_735_689_600_000
"""2025-01-01 in UTC milliseconds: a clock before it has lost its time."""

TYPO_LIKENESS = 0.9


def environment_findings(config: Config, now: int) -> Iterator[Finding]:
    """Yield what stands and falls with this machine and its configuration.

    Args:
        config: the static configuration.
        now: UTC milliseconds.
    """
    yield _versions()
    yield _sqlite()
    yield from _files(config)
    yield _time(config, now)
    yield _operators(config)
    yield _token(config)


def _versions() -> Finding:
    libraries = ", ".join(f"{name} {_version(name)}" for name in LIBRARIES)
    return good(f"群忆 Qunyi {__version__}, Python {platform.python_version()}, {libraries}")


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "?"


def _sqlite() -> Finding:
    if sqlite3.sqlite_version_info >= SQLITE_FROM:
        return good(f"SQLite {sqlite3.sqlite_version}")
    wanted = ".".join(map(str, SQLITE_FROM))
    return warning(
        f"SQLite {sqlite3.sqlite_version} 太旧，请换一个带 SQLite {wanted} 以上的 Python。"
        f" | It is old: use a Python that comes with SQLite {wanted} or newer."
    )


def _files(config: Config) -> Iterator[Finding]:
    names = (".env", f".env.{config.environment}")
    found = [path for name in names if (path := config.root / name).is_file()]
    if not found:
        yield good(
            f"没有 {names[0]}，只用环境变量；要用配置文件：cp .env.example .env"
            f" | No {names[0]}: only the process's environment counts. To have a file: "
            "cp .env.example .env"
        )
        return
    shown = ", ".join(path.name for path in found)
    yield good(
        f"配置文件 {shown}（在 {config.root}），环境变量优先"
        f" | Configuration read from {shown}; the process's environment wins."
    )
    for path in found:
        yield from _readable_by_others(path)
        yield from _typing_errors(path)


def _readable_by_others(path: Path) -> Iterator[Finding]:
    if os.name == "posix" and path.stat().st_mode & 0o077:
        yield warning(
            f"本机其他用户能读 {path.name}，里面可能有密钥：chmod 600 {path}"
            f" | Others on this machine can read {path.name}, which may hold keys: "
            f"chmod 600 {path}"
        )


def _typing_errors(path: Path) -> Iterator[Finding]:
    """Yield names that are nearly those of a variable; other programs' variables are welcome."""
    known = variables()
    for name in dotenv_values(path, interpolate=False):
        likely = get_close_matches(name.upper(), known, n=1, cutoff=TYPO_LIKENESS)
        if likely and name.upper() not in known:
            yield warning(
                f"{path.name} 里的 {name} 不是已知变量，是不是想写 {likely[0]}？"
                f" | {path.name} has {name}, which nothing reads. Did you mean {likely[0]}?"
            )


def _time(config: Config, now: int) -> Finding:
    zone = config.timezone.key
    shown = local_time(now, config.timezone).strftime("%Y-%m-%d %H:%M")
    if now < TIME_FROM:
        return warning(
            f"系统时间是 {shown}（{zone}），显然不对，请校准（NTP）"
            f" | The clock says {shown} ({zone}), which cannot be: set it, best by NTP."
        )
    return good(
        f"现在是 {shown}，时区 TIMEZONE={zone} | The local time; wrong? Mend TIMEZONE or the clock."
    )


def _operators(config: Config) -> Finding:
    if not config.superusers:
        return warning(NO_OPERATOR)
    shown = ", ".join(sorted(config.superusers))
    return good(f"操作者 SUPERUSERS：{shown} | The operators.")


def _token(config: Config) -> Finding:
    token = config.onebot_access_token
    if ip_address(config.host).is_loopback:
        return good(
            f"HOST={config.host}：只有本机能连接，令牌{'已设置' if token else '可以不设'}"
            f" | Only this machine can connect; a token is {'set' if token else 'not needed'}."
        )
    if token is None or len(token.get_secret_value()) < TOKEN_MIN_CHARS:
        return warning(
            f"HOST={config.host} 对外监听，而 ONEBOT_ACCESS_TOKEN 不足 {TOKEN_MIN_CHARS} 个字符，"
            "容易被猜到，请换长的随机串"
            f" | Other machines can connect, and the token is short: use {TOKEN_MIN_CHARS} or more "
            "random characters."
        )
    return good(
        f"HOST={config.host} 对外监听，ONEBOT_ACCESS_TOKEN 已设置"
        " | Other machines can connect; a token is set."
    )

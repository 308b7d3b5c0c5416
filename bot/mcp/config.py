"""The file that ``MCP_CONFIG`` names: which servers there are and how each is reached.

See ``docs/tools.md``, "MCP". Nothing else adds a server: no command, no page, no message.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bot.errors import ConfigError

DEFAULT_TIMEOUT_SECONDS = 30.0
LONGEST_TIMEOUT_SECONDS = 600.0
MAX_SERVERS = 20

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,23}")
_KEYS = frozenset(
    {"command", "args", "env", "url", "headers", "members", "timeoutSeconds", "disabled", "type"}
)
_TYPES = ("stdio", "http", "streamable-http", "streamableHttp")
_HEADER = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True, slots=True)
class Program:
    """A server that is started here and spoken to through its standard input and output."""

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class WebAddress:
    """A server that runs elsewhere and is spoken to over streamable HTTP."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server."""

    name: str
    reached: Program | WebAddress
    members: bool = False
    """Whether turns of people who are no operators have its tools."""
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    """How long one call may take."""


class _Wrong(ValueError):
    """What is wrong with an entry; never with a value of ``env`` or ``headers`` in it."""


def read_servers(path: Path) -> tuple[ServerConfig, ...]:
    """Return the servers of a file, those that are disabled left out.

    Raises:
        ConfigError: it cannot be read, or an entry cannot be used; all problems are in one text.
    """
    entries = _entries(path)
    servers: list[ServerConfig] = []
    problems: list[str] = []
    for name, entry in entries.items():
        try:
            servers += _server(name, entry)
        except _Wrong as error:
            problems.append(f"server {name[:40]!r}: {error}")
    problems += _ambiguous(servers)
    if problems:
        raise ConfigError("MCP_CONFIG", f"{path.name}: {'; '.join(problems)}")
    return tuple(servers)


def _entries(path: Path) -> Mapping[str, Any]:
    try:
        told = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError("MCP_CONFIG", f"{path.name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError("MCP_CONFIG", f"{path.name} is not UTF-8; save it anew") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ConfigError("MCP_CONFIG", f"{path.name} is no JSON ({place})") from None
    except (ValueError, RecursionError):
        raise ConfigError("MCP_CONFIG", f"{path.name} is no JSON") from None
    entries = told.get("mcpServers") if isinstance(told, dict) else None
    if not isinstance(entries, dict):
        raise ConfigError("MCP_CONFIG", f'{path.name}: write {{"mcpServers": {{"name": {{…}}}}}}')
    if len(entries) > MAX_SERVERS:
        raise ConfigError("MCP_CONFIG", f"{path.name} has more than {MAX_SERVERS} servers")
    return entries


def _server(name: str, entry: object) -> Iterator[ServerConfig]:
    if not _NAME.fullmatch(name):
        raise _Wrong("a name has 1 to 24 of A-Z, a-z, 0-9, _, - and ., a letter or digit first")
    if not isinstance(entry, dict):
        raise _Wrong("it is no object")
    if unknown := sorted(set(entry) - _KEYS):
        raise _Wrong(f"there is no key {unknown[0][:40]!r}; there are {', '.join(sorted(_KEYS))}")
    if entry.get("type", "stdio") not in _TYPES:
        raise _Wrong("type may be stdio or http")
    server = ServerConfig(name, _reached(entry), _flag(entry, "members"), _timeout_seconds(entry))
    if not _flag(entry, "disabled"):
        yield server


def _reached(entry: Mapping[str, Any]) -> Program | WebAddress:
    if ("command" in entry) == ("url" in entry):
        raise _Wrong("it needs either command or url")
    if "url" in entry:
        return WebAddress(_url(entry["url"]), _texts(entry, "headers"))
    command, args = entry["command"], entry.get("args", [])
    if not _is_plain(command) or not command.strip():
        raise _Wrong("command is no text")
    if not isinstance(args, list) or not all(map(_is_plain, args)):
        raise _Wrong("args is no list of texts")
    return Program(command, tuple(args), _texts(entry, "env"))


def _url(value: object) -> str:
    try:
        parts = urlsplit(value) if isinstance(value, str) else urlsplit("")
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable, parts = False, urlsplit("")
    if not usable or not isinstance(value, str) or re.search(r"\s", value):
        raise _Wrong("url is no http:// or https:// address")
    if parts.username or parts.password:
        raise _Wrong("url must not hold a user or password; use headers")
    return value


def _texts(entry: Mapping[str, Any], key: str) -> Mapping[str, str]:
    value = entry.get(key, {})
    parts = [*value, *value.values()] if isinstance(value, dict) else [None]
    if not all(map(_is_plain, parts)):
        raise _Wrong(f"{key} is no object of texts")
    if key == "headers" and not all(_can_travel(*pair) for pair in value.items()):
        raise _Wrong("a header may hold ASCII only; paste it anew")
    return value


def _can_travel(name: str, value: str) -> bool:
    return bool(_HEADER.fullmatch(name)) and value.isascii() and value.isprintable()


def _is_plain(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value


def _flag(entry: Mapping[str, Any], key: str) -> bool:
    value = entry.get(key, False)
    if not isinstance(value, bool):
        raise _Wrong(f"{key} is neither true nor false")
    return value


def _timeout_seconds(entry: Mapping[str, Any]) -> float:
    value = entry.get("timeoutSeconds", DEFAULT_TIMEOUT_SECONDS)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= LONGEST_TIMEOUT_SECONDS:
        raise _Wrong(f"timeoutSeconds is no number above 0 and up to {LONGEST_TIMEOUT_SECONDS:.0f}")
    return float(value)


def _ambiguous(servers: Sequence[ServerConfig]) -> Iterator[str]:
    """Yield what is wrong with names that tools could not tell apart."""
    seen: dict[str, str] = {}
    for server in servers:
        other = seen.setdefault(folded(server.name), server.name)
        if other != server.name:
            yield f"{other!r} and {server.name!r} are the same name to tools; rename one"


def folded(name: str) -> str:
    """Return a name as names of tools have it: small letters, digits and ``_``."""
    return re.sub(r"[^a-z0-9_]", "_", name.lower())

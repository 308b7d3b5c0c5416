"""Static configuration: the environment and ``.env``, read once at start.

The rules are NoneBot's, so that one file serves both: names in any case; ``ENVIRONMENT`` (from the
process or ``.env``) names a second file ``.env.<environment>``, which wins over ``.env``; the
process's environment wins over both; lists and objects are JSON. Beyond NoneBot, lists may also
be written with commas and a blank value means the default. See ``docs/architecture.md``,
"Configuration".
"""

import json
import re
from collections.abc import Iterator, Mapping
from io import StringIO
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import ErrorDetails

from bot.errors import ConfigError, SettingError
from bot.settings import checked_value, definition, validated

LOG_LEVELS = ("TRACE", "DEBUG", "INFO", "SUCCESS", "WARNING", "ERROR", "CRITICAL")
SQLITE_PREFIX = "sqlite:///"
SHOWN_MAX_CHARS = 60
NO_EMBEDDER = "off"
"""``EMBEDDING_MODEL`` for who wants none."""

_ENVIRONMENT = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)
_SECRET = re.compile(r"[!-~]+")


# --- checks: each raises ValueError with problem and cure, and never repeats a secret ---------


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_MAX_CHARS else text[: SHOWN_MAX_CHARS - 1] + "…"


def _environment(value: str) -> str:
    if not _ENVIRONMENT.fullmatch(value):
        raise ValueError(f"{_shown(value)} cannot be part of a file name; write for example prod")
    return value


def _host(value: str) -> str:
    host = "127.0.0.1" if value.casefold() == "localhost" else value
    try:
        return str(ip_address(host))
    except ValueError:
        raise ValueError(
            f"{_shown(value)} is no IP address; write 127.0.0.1 for this machine only, "
            "0.0.0.0 for all networks"
        ) from None


def _integer(lowest: int, highest: int) -> BeforeValidator:
    def check(value: object) -> int:
        text = str(value).strip()
        if not re.fullmatch(r"\d{1,10}", text, re.ASCII) or not lowest <= int(text) <= highest:
            raise ValueError(f"{_shown(value)} is no whole number from {lowest} to {highest}")
        return int(text)

    return BeforeValidator(check)


def _seconds(longest: int) -> BeforeValidator:
    def check(value: object) -> float:
        cure = f"{_shown(value)} is no number of seconds above 0 and up to {longest}"
        try:
            seconds = float(str(value))
        except ValueError:
            raise ValueError(cure) from None
        if not 0 < seconds <= longest:
            raise ValueError(cure)
        return seconds

    return BeforeValidator(check)


def _log_level(value: object) -> int | str:
    level = str(value).upper()
    if level in LOG_LEVELS:
        return level
    if re.fullmatch(r"\d{1,3}", level, re.ASCII):
        return int(level)
    raise ValueError(f"{_shown(value)} is no log level; write one of {', '.join(LOG_LEVELS)}")


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


def _synchronous(value: object) -> object:
    if _upper(value) not in {"FULL", "NORMAL"}:
        raise ValueError(f"{_shown(value)} is not known; write FULL or NORMAL")
    return _upper(value)


def _listed(value: object) -> tuple[str, ...]:
    """Return the items of a JSON list, of one JSON value, or of words with commas between."""
    items = _items(value) if isinstance(value, str) else value
    if isinstance(items, str | int) and not isinstance(items, bool):
        items = [items]
    if not isinstance(items, list | tuple | set | frozenset):
        raise ValueError(f"{_shown(value)} is no list; {_LIST_CURE}")
    return tuple(dict.fromkeys(_item(item) for item in items))


_LIST_CURE = 'write ["one", "two"], or one,two'


def _items(text: str) -> Any:
    if not text.startswith(("[", '"', "{")):
        return [item for part in re.split("[,，]", text) if (item := part.strip())]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{_shown(text)} is no valid JSON; {_LIST_CURE}") from None


def _item(item: object) -> str:
    if isinstance(item, bool) or not isinstance(item, str | int):
        raise ValueError(f"{_shown(item)} is neither a text nor a number; {_LIST_CURE}")
    return str(item).strip()


def _accounts(value: object) -> frozenset[str]:
    accounts = _listed(value)
    for account in accounts:
        if not re.fullmatch(r"[1-9]\d{0,19}", account, re.ASCII):
            raise ValueError(f'{_shown(account)} is no QQ number; write for example ["10001"]')
    return frozenset(accounts)


def _names(value: object) -> tuple[str, ...]:
    return tuple(name for name in _listed(value) if name)


def _prefixes(value: object) -> tuple[str, ...]:
    prefixes = _listed(value)
    if not prefixes:
        raise ValueError('no command could be given; write for example ["/"]')
    return prefixes


def _secret(value: object) -> object:
    """Refuse what cannot travel in an HTTP header."""
    if isinstance(value, str) and not _SECRET.fullmatch(value):
        raise ValueError(
            "it may hold only ASCII letters, digits and signs, without spaces; paste it anew"
        )
    return value


def _token(value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
    host = info.data.get("host")
    if value is None and host is not None and not ip_address(host).is_loopback:
        raise ValueError(
            f"missing, though HOST={host} lets other machines connect; set a long random text "
            "here and in the OneBot client, or set HOST=127.0.0.1"
        )
    return value


def _url(value: str) -> str:
    """Return an address of http or https that has a host and hides no password."""
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
        parts = urlsplit("")
    if not usable or re.search(r"\s", value):
        raise ValueError("no address; write for example https://models.example/v1")
    if parts.username or parts.password:
        raise ValueError("an address must not hold a user or password; use the …_API_KEY variable")
    return value


def _base_url(value: str) -> str:
    url = _url(value).rstrip("/")
    for ending in ("/chat/completions", "/embeddings", "/completions"):
        if url.endswith(ending):
            raise ValueError(f"leave out {ending} at the end: it is added for each call")
    return url


def _secret_url(value: object) -> object:
    if isinstance(value, str):
        _url(value)
    return value


def _model(value: str) -> str:
    if not value.isprintable() or len(value) > 200:
        raise ValueError(f"{_shown(value)} is no model name; write it as the provider lists it")
    return value


def _database_url(value: str) -> str:
    if value.startswith(("postgresql:", "postgres:")):
        raise ValueError(
            "PostgreSQL is not supported yet; write sqlite:///data/qunyi.db (under the project) "
            "or sqlite:////absolute/path.db"
        )
    path = value.removeprefix(SQLITE_PREFIX)
    if path == value or not path or path.endswith("/") or re.search(r"[?#\x00-\x1f]|^:", path):
        raise ValueError(
            "it names no database file; write sqlite:///data/qunyi.db (under the project) "
            "or sqlite:////absolute/path.db"
        )
    return value


def _timezone(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise ValueError(
            f"{_shown(value)} is no time zone; write for example Asia/Shanghai or UTC"
        ) from None


def _file(value: Path, info: ValidationInfo) -> Path:
    path = info.data["root"] / value.expanduser()
    if not path.is_file():
        raise ValueError(f"there is no file {_shown(str(path))}; mend the path or leave it blank")
    return path


def _initial_settings(value: object) -> dict[str, Any]:
    values = _object(value) if isinstance(value, str) else value
    if not isinstance(values, dict):
        raise ValueError(f"{_shown(value)} is no JSON object; {_SETTINGS_CURE}")
    problems = list(_setting_problems(values))
    if problems:
        raise ValueError(f"{'; '.join(problems)}; {_SETTINGS_CURE}")
    return {definition(key).key: item for key, item in values.items()}


def _setting_problems(values: Mapping[str, object]) -> Iterator[str]:
    """Yield what is wrong with each setting; if nothing is, with all of them together."""
    is_each_right = True
    for key, value in values.items():
        try:
            checked_value(key, value)
        except SettingError as error:
            is_each_right = False
            yield str(error)
    if is_each_right:
        try:
            validated(values)
        except SettingError as error:
            yield str(error)


_SETTINGS_CURE = 'write for example {"memoryIdleMinutes": 15}'


def _object(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{_shown(text)} is no valid JSON; {_SETTINGS_CURE}") from None


Secret = Annotated[SecretStr, BeforeValidator(_secret)]
BaseUrl = Annotated[str, AfterValidator(_base_url)]
ModelName = Annotated[str, AfterValidator(_model)]


class Config(BaseModel):
    """Everything that is fixed while the program runs. A field is a variable in lower case."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    root: Path
    """The project's directory; relative paths start here. No variable."""
    environment: Annotated[str, AfterValidator(_environment)] = "prod"

    host: Annotated[str, AfterValidator(_host)] = "127.0.0.1"
    port: Annotated[int, _integer(1, 65_535)] = 8080
    onebot_access_token: Annotated[Secret | None, AfterValidator(_token)] = None
    superusers: Annotated[frozenset[str], BeforeValidator(_accounts)] = frozenset()
    nickname: Annotated[tuple[str, ...], BeforeValidator(_names)] = ("群忆",)
    command_start: Annotated[tuple[str, ...], BeforeValidator(_prefixes)] = ("/",)
    api_timeout: Annotated[float, _seconds(600)] = 8.0
    """Seconds that a call to the OneBot client may take."""
    log_level: Annotated[int | str, BeforeValidator(_log_level)] = "INFO"

    openai_api_key: Secret | None = None
    openai_base_url: BaseUrl | None = None
    chat_model: ModelName | None = None
    chat_base_url: BaseUrl | None = None
    chat_api_key: Secret | None = None
    chat_fallback_models: Annotated[tuple[ModelName, ...], BeforeValidator(_names)] = ()
    memory_model: ModelName | None = None
    memory_base_url: BaseUrl | None = None
    memory_api_key: Secret | None = None
    decision_model: ModelName | None = None
    decision_base_url: BaseUrl | None = None
    decision_api_key: Secret | None = None
    vision_model: ModelName | None = None
    vision_base_url: BaseUrl | None = None
    vision_api_key: Secret | None = None
    embedding_model: ModelName | None = None
    """``off`` for none; without a name, the one that comes along."""
    embedding_base_url: BaseUrl | None = None
    embedding_api_key: Secret | None = None

    database_url: Annotated[str, AfterValidator(_database_url)] = "sqlite:///data/qunyi.db"
    sqlite_synchronous: Annotated[Literal["FULL", "NORMAL"], BeforeValidator(_synchronous)] = "FULL"
    timezone: Annotated[ZoneInfo, BeforeValidator(_timezone)] = ZoneInfo("Asia/Shanghai")
    worker_interval_seconds: Annotated[float, _seconds(3_600)] = 15.0
    initial_settings: Annotated[dict[str, Any], BeforeValidator(_initial_settings)] = Field(
        default_factory=dict
    )
    """Run-time settings, JSON by key, for keys that were never set."""

    dashboard_token: Secret | None = None
    alert_webhook_url: Annotated[SecretStr | None, BeforeValidator(_secret_url)] = None
    mcp_config: Annotated[Path, AfterValidator(_file)] | None = None

    @property
    def database_path(self) -> Path:
        """Where the SQLite database lies."""
        return self.root / self.database_url.removeprefix(SQLITE_PREFIX)

    def nonebot_options(self) -> dict[str, Any]:
        """Return the keyword arguments of ``nonebot.init``.

        They matter: NoneBot takes ``ONEBOT_ACCESS_TOKEN`` from its files but not from the
        process's environment, and turns one of digits only into a number.
        """
        token = self.onebot_access_token
        return {
            "host": self.host,
            "port": self.port,
            "log_level": self.log_level,
            "api_timeout": self.api_timeout,
            "superusers": set(self.superusers),
            "nickname": set(self.nickname),
            "command_start": set(self.command_start),
            "onebot_access_token": token.get_secret_value() if token else None,
        }

    def nonebot_environ(self) -> dict[str, str]:
        """Return the lists in the one form that NoneBot reads.

        It parses them, and stops at commas, before it looks at its arguments; so these go into the
        process's environment first.
        """
        return {
            "SUPERUSERS": json.dumps(sorted(self.superusers)),
            "NICKNAME": json.dumps(self.nickname),
            "COMMAND_START": json.dumps(self.command_start),
        }


def variables() -> tuple[str, ...]:
    """Return the names of all environment variables, as they are documented."""
    return tuple(field.upper() for field in Config.model_fields if field != "root")


def load_config(root: Path, environ: Mapping[str, str]) -> Config:
    """Return the configuration of the project in ``root``.

    Args:
        root: the directory that holds ``.env``.
        environ: the process's environment.

    Raises:
        ConfigError: a file or value cannot be used; all problems are in one text.
    """
    values = _layered(root, environ)
    fields = {
        name: value.strip()
        for name in Config.model_fields
        if name != "root" and (value := values.get(name)) and value.strip()
    }
    try:
        return Config(root=root.resolve(), **fields)  # pyright: ignore[reportArgumentType]
    except ValidationError as error:
        raise _config_error(error.errors(include_url=False)) from None


def _layered(root: Path, environ: Mapping[str, str]) -> dict[str, str | None]:
    """Return values by lower-case name, the strongest source last."""
    process = _folded(environ)
    base = _read(root / ".env")
    environment = ({**base, **process}.get("environment") or "").strip() or "prod"
    if not _ENVIRONMENT.fullmatch(environment):
        return {**base, **process}
    return {**base, **_read(root / f".env.{environment}"), **process}


def _folded(values: Mapping[str, str | None] | Mapping[str, str]) -> dict[str, str | None]:
    return {name.lower(): value for name, value in values.items()}


def _read(path: Path) -> dict[str, str | None]:
    if not path.is_file():
        return {}
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(path.name, "the file is not UTF-8; save it anew as UTF-8") from None
    except OSError as error:
        raise ConfigError(path.name, f"the file cannot be read: {error.strerror}") from None
    _refuse_unreadable(path.name, text)
    return _folded(dotenv_values(stream=StringIO(text)))


def _refuse_unreadable(name: str, text: str) -> None:
    """Name the line that python-dotenv would pass over; its text may be a secret, so not shown."""
    for statement in parse_stream(StringIO(text)):
        if statement.error:
            raise ConfigError(
                name,
                f"line {statement.original.line} is not NAME=value; close its quotes, or put # "
                "before a comment",
            )


def _config_error(problems: list[ErrorDetails]) -> ConfigError:
    """Return one error for all problems; of a variable with several, the first."""
    causes: dict[str, str] = {}
    for problem in problems:
        causes.setdefault(str(problem["loc"][0]).upper(), _cause(problem))
    if len(causes) == 1:
        return ConfigError(*causes.popitem())
    lines = "".join(f"\n  {name}: {cause}" for name, cause in causes.items())
    return ConfigError(", ".join(causes), f"{len(causes)} variables need mending{lines}")


def _cause(problem: ErrorDetails) -> str:
    raised = problem.get("ctx", {}).get("error")
    return str(raised) if raised is not None else problem["msg"]

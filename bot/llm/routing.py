"""Which models a purpose may use, in which order, and where. Pure.

See ``docs/architecture.md``, "Models".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal
from urllib.parse import urlsplit

from bot.errors import ModelNotConfigured
from bot.llm.protocol import Purpose, RouteName

Slot = Literal["CHAT", "MEMORY", "DECISION", "VISION", "EMBEDDING"]
"""What the environment configures; also the prefix of its variables."""

SLOTS: Mapping[Purpose, Slot] = {
    "chat": "CHAT",
    "reflect.group": "MEMORY",
    "reflect.member-batch": "MEMORY",
    "reflect.private-owner": "MEMORY",
    "compress.group": "MEMORY",
    "compress.member": "MEMORY",
    "summarize": "MEMORY",
    "decide": "DECISION",
    "vision": "VISION",
    "embed": "EMBEDDING",
}

OPENAI_URL = "https://api.openai.com/v1"

PLACEHOLDER_KEY = "no-key"
"""Sent where a base URL is configured without a key, as local servers are."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go. Neither address nor key appears in a repr: both may be secret."""

    name: str
    """Host and port, for logs and usage rows."""
    base_url: str = field(repr=False)
    api_key: str = field(repr=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Route:
    """One model at one endpoint."""

    model: str
    endpoint: Endpoint

    @property
    def name(self) -> RouteName:
        """What usage rows and answers call this route."""
        return RouteName(self.model, self.endpoint.name)

    def __str__(self) -> str:
        return f"{self.model} at {self.endpoint}"


@dataclass(frozen=True, slots=True)
class ModelSlot:
    """The values of ``X_MODEL``, ``X_BASE_URL`` and ``X_API_KEY``; each may be empty."""

    model: str = ""
    base_url: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The static configuration of models, as the environment gives it."""

    base_url: str = field(default="", repr=False)
    """``OPENAI_BASE_URL``."""
    api_key: str = field(default="", repr=False)
    """``OPENAI_API_KEY``."""
    chat: ModelSlot = ModelSlot()
    chat_fallback_models: tuple[str, ...] = ()
    """Names of models at the endpoint of ``chat``."""
    memory: ModelSlot = ModelSlot()
    decision: ModelSlot = ModelSlot()
    vision: ModelSlot = ModelSlot()
    embedding: ModelSlot = ModelSlot()

    def slot(self, slot: Slot) -> ModelSlot:
        """Return the values configured for ``slot``."""
        slots = {
            "CHAT": self.chat,
            "MEMORY": self.memory,
            "DECISION": self.decision,
            "VISION": self.vision,
            "EMBEDDING": self.embedding,
        }
        return slots[slot]


@dataclass(frozen=True, slots=True)
class Routes:
    """From a purpose to the routes that may serve it."""

    config: ModelConfig

    def candidates(
        self, purpose: Purpose, last: RouteName | None = None, preferred: str = ""
    ) -> tuple[Route, ...]:
        """Return the routes to try, in order; never empty.

        Args:
            purpose: what the call is for.
            last: the chat's last successful route. Memory without ``MEMORY_MODEL`` follows it
                as long as it is still configured, and falls back to ``CHAT_MODEL``.
            preferred: of the models of ``chat`` the one to ask first; one that is not configured
                changes nothing, and nothing changes for another purpose.

        Raises:
            ModelNotConfigured: the variable it names is missing or unusable.
        """
        return _candidates(self, purpose, last, preferred)

    def _found(self, purpose: Purpose, last: RouteName | None, preferred: str) -> tuple[Route, ...]:
        slot = SLOTS[purpose]
        if slot == "MEMORY" and not self.config.memory.model:
            return self._following_chat(last)
        routes = [self._route(slot, self.config.slot(slot).model)]
        if slot == "CHAT":
            routes += [self._route(slot, name) for name in self.config.chat_fallback_models]
            routes.sort(key=lambda route: route.model != preferred)
        return tuple(dict.fromkeys(routes))

    def is_configured(self, purpose: Purpose) -> bool:
        """Say whether ``candidates`` would return a route."""
        return _is_configured(self, purpose)

    def all(self) -> tuple[Route, ...]:
        """Return every distinct route that is configured, chat first; may be empty."""
        found: list[Route] = []
        for purpose in SLOTS:
            found += self.candidates(purpose) if self.is_configured(purpose) else ()
        return tuple(dict.fromkeys(found))

    def _following_chat(self, last: RouteName | None) -> tuple[Route, ...]:
        chat = self.candidates("chat")
        own = self.config.memory
        endpoint = self._endpoint("MEMORY") if own.base_url or own.api_key else chat[0].endpoint
        followed = [route for route in chat if route.name == last]
        models = dict.fromkeys(route.model for route in [*followed, chat[0]])
        return tuple(Route(model, endpoint) for model in models)

    def _route(self, slot: Slot, model: str) -> Route:
        endpoint = self._endpoint(slot)
        if not model:
            raise ModelNotConfigured(f"{slot}_MODEL is empty: set it to a model's name")
        return Route(model, endpoint)

    def _endpoint(self, slot: Slot) -> Endpoint:
        own = self.config.slot(slot)
        base_url = (own.base_url or self.config.base_url).strip()
        api_key = (own.api_key or self.config.api_key).strip()
        if not base_url and not api_key:
            raise ModelNotConfigured(
                "OPENAI_API_KEY is empty: set it, or OPENAI_BASE_URL for a server without keys"
            )
        return endpoint_at(slot, base_url or OPENAI_URL, api_key or PLACEHOLDER_KEY)


@lru_cache(maxsize=256)
def _candidates(
    routes: Routes, purpose: Purpose, last: RouteName | None, preferred: str
) -> tuple[Route, ...]:
    """Every turn asks several times, and the configuration does not change."""
    return routes._found(purpose, last, preferred)


@lru_cache(maxsize=64)
def _is_configured(routes: Routes, purpose: Purpose) -> bool:
    try:
        return bool(routes.candidates(purpose))
    except ModelNotConfigured:
        return False


def endpoint_at(slot: Slot, base_url: str, api_key: str) -> Endpoint:
    """Return the endpoint at ``base_url``.

    Raises:
        ModelNotConfigured: the address is no http(s) URL, or the key cannot be sent in a header.
            The text names the variables and contains neither value.
    """
    name = host_of(base_url)
    if not name:
        raise ModelNotConfigured(
            f"{slot}_BASE_URL or OPENAI_BASE_URL is no http:// or https:// address"
        )
    if "@" in urlsplit(base_url).netloc:
        raise ModelNotConfigured(
            f"{slot}_BASE_URL or OPENAI_BASE_URL has a password in it, which logs would show: "
            f"use …_API_KEY"
        )
    if not (api_key.isascii() and api_key.isprintable() and " " not in api_key):
        raise ModelNotConfigured(
            f"{slot}_API_KEY or OPENAI_API_KEY has characters that no key has: paste it again"
        )
    return Endpoint(name, base_url.rstrip("/"), api_key)


def host_of(base_url: str) -> str:
    """Return host and port of an http(s) URL, without user or password; empty if it is none."""
    try:
        parts = urlsplit(base_url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return ""
    return f"{parts.hostname}{port}"

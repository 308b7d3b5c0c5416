"""What every request to an endpoint has in common: the client, and the row of what it cost.

See ``docs/architecture.md``, "Models".
"""

import logging
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from openai import AsyncOpenAI, DefaultAsyncHttpx2Client, Omit

from bot.errors import StoreError
from bot.llm.completion import Tokens
from bot.llm.protocol import Purpose, UsageRecorder
from bot.llm.routing import Endpoint, Route
from bot.model import Chat, Usage

log = logging.getLogger(__name__)

_OF_THIS_MACHINE = (
    "X-Stainless-Lang",
    "X-Stainless-Package-Version",
    "X-Stainless-OS",
    "X-Stainless-Arch",
    "X-Stainless-Runtime",
    "X-Stainless-Runtime-Version",
    "X-Stainless-Async",
    "X-Stainless-Retry-Count",
    "X-Stainless-Read-Timeout",
)
"""Headers by which the SDK tells what it runs on. Half of all headers, and nobody's business."""


def client_of(endpoint: Endpoint) -> AsyncOpenAI:
    """Return a client that asks an endpoint once; whoever holds it closes it."""
    return AsyncOpenAI(
        api_key=endpoint.api_key,
        base_url=endpoint.base_url,
        max_retries=0,
        # A proxy from the environment is for the world, not for a server on this machine.
        http_client=DefaultAsyncHttpx2Client(trust_env=not is_local(endpoint.base_url)),
    )


def headers_for(purpose: Purpose) -> dict[str, str | Omit]:
    """Return the headers of a request, beside those that every client sends."""
    return {**dict.fromkeys(_OF_THIS_MACHINE, Omit()), "X-Purpose": purpose}


def is_local(base_url: str) -> bool:
    """Say whether ``base_url`` is on this machine."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
class Spent:
    """What one request was for, and what it cost."""

    purpose: Purpose
    route: Route
    chat: Chat | None
    started: int
    """UTC milliseconds, and so is the next."""
    ended: int
    tokens: Tokens
    error: str
    """The error's name, empty if there was none."""


async def keep_usage(record: UsageRecorder, spent: Spent) -> None:
    """Record one usage row. A row that cannot be kept does not cost the answer it is about."""
    usage = Usage(
        purpose=spent.purpose,
        model=spent.route.model,
        endpoint=spent.route.endpoint.name,
        at=spent.ended,
        duration_ms=spent.ended - spent.started,
        prompt_tokens=spent.tokens.prompt,
        cached_tokens=spent.tokens.cached,
        completion_tokens=spent.tokens.completion,
        ok=not spent.error,
        error=spent.error,
        chat=spent.chat,
    )
    try:
        await record(usage)
    except StoreError as failure:
        log.error("a usage row was not kept: %s", failure)

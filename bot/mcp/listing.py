"""What servers offer, made fit for a model: names, words and schemas within bounds. Pure.

See ``docs/tools.md``, "MCP". A server's words are as hostile as anybody's.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bot.conversation.tools import ToolSpec
from bot.mcp.config import folded
from bot.text import clipped, many_lines

MAX_TOOLS = 64
"""Of one server."""
NAME_CHARS = 64
DESCRIPTION_CHARS = 1_000
SCHEMA_CHARS = 8_000
DIGEST_CHARS = 8


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool as its server tells of it."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Listing:
    """What is taken of a server's offers."""

    specs: Mapping[str, ToolSpec]
    """By the server's own names."""
    left_out: int
    """How many offers are not taken: too many, or with schemas too long or of no use."""


def listing(server: str, offers: Iterable[Offer]) -> Listing:
    """Return the tools that models are told of.

    Args:
        server: the server's name in the configuration.
        offers: what it tells, in its order.
    """
    specs: dict[str, ToolSpec] = {}
    names: set[str] = set()
    left_out = 0
    for offer in offers:
        if len(specs) == MAX_TOOLS or offer.name in specs or not _is_usable(offer):
            left_out += 1
            continue
        name = next(each for each in _names(server, offer.name) if each not in names)
        names.add(name)
        specs[offer.name] = ToolSpec(name, _description(server, offer), offer.parameters)
    return Listing(specs, left_out)


def _names(server: str, tool: str) -> Iterator[str]:
    """Yield what a tool may be called, the best name first; the others are never equal."""
    whole = f"mcp_{folded(server)}_{folded(tool)}"
    if len(whole) <= NAME_CHARS:
        yield whole
    digest = hashlib.sha256(tool.encode("utf-8", "replace")).hexdigest()
    for length in (DIGEST_CHARS, 2 * DIGEST_CHARS):
        yield f"{whole[: NAME_CHARS - length - 1]}_{digest[:length]}"


def _is_usable(offer: Offer) -> bool:
    try:
        schema = json.dumps(offer.parameters, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return bool(offer.name) and len(schema) <= SCHEMA_CHARS and _takes_an_object(offer.parameters)


def _takes_an_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object"


def _description(server: str, offer: Offer) -> str:
    words = clipped(many_lines(offer.description).strip(), DESCRIPTION_CHARS)
    return words or f"{server} 的工具 {clipped(many_lines(offer.name), NAME_CHARS)}"

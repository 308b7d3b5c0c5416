"""Sifting: what the decision model says of noise, and of what bears on a request.

Pure. Whatever cannot be read, or is not said with confidence, keeps everything. See
``docs/session.md``, "Decision model".
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from bot.conversation.summary import Overturned
from bot.memory.answer import AnswerUnusable, plain_schema
from bot.memory.objects import objects_in, read_object

CONFIDENCE = 0.7
"""What is noise with less confidence is none."""


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Noise(_Shape):
    """A turn that says nothing worth keeping."""

    turn: int
    kind: Literal["greeting", "thanks", "repeat", "failed"]
    confidence: Annotated[float, Field(ge=0, le=1)]


class TurnsAnswer(_Shape):
    """What is said of the turns that are to be summarised."""

    noise: list[Noise] = []
    overturned: list[Overturned] = []


def _labels(value: object) -> tuple[str, ...]:
    many = value if isinstance(value, list) else []
    return tuple(one.strip().lower() for one in many if isinstance(one, str))


class BearingAnswer(_Shape):
    """Which entries of a summary bear on a request."""

    keep: Annotated[
        tuple[str, ...],
        BeforeValidator(_labels),
        Field(json_schema_extra={"items": {"type": "string"}}),
    ]


@lru_cache(maxsize=1)
def turns_schema() -> dict[str, Any]:
    """Return the JSON schema of what is said of turns; read-only."""
    return plain_schema(TurnsAnswer)


@lru_cache(maxsize=1)
def bearing_schema() -> dict[str, Any]:
    """Return the JSON schema of what bears on a request; read-only."""
    return plain_schema(BearingAnswer)


@dataclass(frozen=True, slots=True)
class Sifted:
    """What a decision model said of turns, as far as it can be read."""

    noise: frozenset[int]
    """Numbers of turns."""
    overturned: tuple[Overturned, ...]


def read_sifted(text: str) -> Sifted:
    """Return which turns are noise, and which decisions were overturned.

    Raises:
        AnswerUnusable: the answer says neither.
    """
    value = _last_with(text, ("noise", "overturned"))
    noise = (_read(Noise, one) for one in _list(value.get("noise")))
    overturned = (_read(Overturned, one) for one in _list(value.get("overturned")))
    return Sifted(
        frozenset(one.turn for one in noise if one and one.confidence >= CONFIDENCE),
        tuple(one for one in overturned if one),
    )


def read_bearing(text: str) -> frozenset[str]:
    """Return the labels of the entries that bear on a request.

    Raises:
        AnswerUnusable: the answer names none and does not say so either.
    """
    value = _last_with(text, ("keep",))
    return frozenset(_labels(value["keep"]))


def _last_with(text: str, keys: Collection[str]) -> dict[str, Any]:
    for found in reversed(objects_in(text)):
        value = None if found.is_fragment else read_object(text, found)
        if value is not None and any(isinstance(value.get(key), list) for key in keys):
            return value
    raise AnswerUnusable(f"the answer has none of {', '.join(keys)}")


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _read(shape: type[Any], value: object) -> Any:
    try:
        return shape.model_validate(value)
    except ValidationError:
        return None

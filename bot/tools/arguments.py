"""The arguments of tools: a pydantic model says what is allowed, its schema what a model reads."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from bot.errors import ToolError
from bot.text import display_name

MAX_PROBLEMS = 3
"""So many of them are told: the first is often the cause of the rest."""

_UNREAD = frozenset({"title", "default"})
"""What a schema says and no model needs: each word costs a token in every turn."""


class Arguments(BaseModel):
    """Base of all arguments. Models write numbers for ids, and null for what they leave out."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", str_strip_whitespace=True, coerce_numbers_to_str=True
    )

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {name: given for name, given in value.items() if given is not None}


A = TypeVar("A", bound=Arguments)


def schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    """Return the JSON schema of some arguments in as few words as it takes."""
    schema = arguments.model_json_schema()
    schema.pop("description", None)
    return _plain(schema)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: {name: _plain(one) for name, one in part.items()}
        if key == "properties"
        else _plain(part)
        for key, part in value.items()
        if key not in _UNREAD
    }


def read(arguments: type[A], given: Mapping[str, Any]) -> A:
    """Return what a model gave as arguments.

    Raises:
        ToolError: they are not what the tool takes, and why.
    """
    try:
        return arguments.model_validate(dict(given))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        told = "；".join(_told(one["loc"], one["msg"]) for one in problems[:MAX_PROBLEMS])
        raise ToolError(f"参数不对。{told}") from error


def _told(place: tuple[int | str, ...], problem: str) -> str:
    name = ".".join(display_name(str(part), "?") for part in place)
    return f"{name}: {problem}" if name else problem

"""The arguments of a tool call: JSON that a model wrote, held to the tool's schema. Pure.

See ``docs/tools.md``, "One use of a tool". What a model plainly means is taken: a QQ number without
quotes where text is asked for, ``"5"`` where a number is. Only what schemas of tools use is looked
at; a keyword that is not known here forbids nothing.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

MAX_DEPTH = 12
"""Of nested schemas; deeper values are taken as they are."""

MAX_KEPT_CHARS = 4_000
"""Longer arguments do not stay in the conversation."""

NOT_AN_OBJECT = "参数必须是一个 JSON 对象"

_NAMES = {
    "string": "文字",
    "integer": "整数",
    "number": "数",
    "boolean": "true 或 false",
    "array": "数组",
    "object": "对象",
    "null": "null",
}


class ArgumentsInvalid(ValueError):
    """The arguments are not what the schema asks for; its text says what would be."""


def read_arguments(text: str, schema: Schema) -> dict[str, Any]:
    """Return the arguments in ``text`` as ``schema`` asks for them.

    Raises:
        ArgumentsInvalid: they are no JSON, or something else was asked for.
    """
    try:
        value = json.loads(text or "{}", parse_constant=_refused)
    except (ValueError, RecursionError):
        raise ArgumentsInvalid(NOT_AN_OBJECT) from None
    if not isinstance(value, dict):
        raise ArgumentsInvalid(NOT_AN_OBJECT)
    return _Check(schema).held(value, {"type": "object", **schema}, "", 0)


def plain_arguments(text: str) -> str:
    """Return ``text`` if it is a JSON object of no great length, else an empty one: providers read
    it again, with every prompt that shows the call."""
    if len(text) > MAX_KEPT_CHARS:
        return "{}"
    try:
        value = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return "{}"
    return text if isinstance(value, dict) else "{}"


def _refused(constant: str) -> None:
    raise ValueError(constant)


class _Check:
    """One reading against one schema, whose ``$defs`` its parts may name."""

    def __init__(self, root: Schema) -> None:
        self._root = root

    def held(self, value: Any, schema: Schema, path: str, depth: int) -> Any:
        """Return ``value`` as ``schema`` asks for it."""
        schema = self._named(schema)
        if depth > MAX_DEPTH:
            return value
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list):
                return self._any(value, schema[key], path, depth)
        if types := _types(schema):
            value = _meant(value, types)
            if not any(_is(value, name) for name in types):
                raise ArgumentsInvalid(f"{_said(path)}应是{'或'.join(map(_name, types))}")
        allowed = schema.get("enum")
        if isinstance(allowed, list) and value not in allowed:
            options = "、".join(json.dumps(each, ensure_ascii=False) for each in allowed)
            raise ArgumentsInvalid(f"{_said(path)}应是以下之一：{options}")
        for problem in _bounds(value, schema):
            raise ArgumentsInvalid(f"{_said(path)}{problem}")
        if isinstance(value, dict):
            return self._object(value, schema, path, depth)
        if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
            items = enumerate(value, 1)
            return [
                self.held(each, schema["items"], f"{path}[{n}]", depth + 1) for n, each in items
            ]
        return value

    def _object(
        self, value: dict[str, Any], schema: Schema, path: str, depth: int
    ) -> dict[str, Any]:
        known = schema.get("properties")
        required = schema.get("required") or ()
        if not isinstance(known, Mapping):
            return value
        # Many models write null for what they leave out.
        given = {
            key: each
            for key, each in value.items()
            if each is not None or key in required or _takes_null(self._named(known.get(key, {})))
        }
        for key in required:
            if key not in given:
                raise ArgumentsInvalid(f"缺少参数 {_below(path, key)}")
        return {
            key: self.held(each, known[key], _below(path, key), depth + 1)
            for key, each in given.items()
            if key in known
        }

    def _any(self, value: Any, schemas: list[Schema], path: str, depth: int) -> Any:
        problems: list[ArgumentsInvalid] = []
        for schema in sorted(schemas, key=lambda one: not self._is_exact(value, one)):
            try:
                return self.held(value, schema, path, depth + 1)
            except ArgumentsInvalid as error:
                if self._may_be_told(value, schema):
                    problems.append(error)
        raise next(iter(problems), ArgumentsInvalid(f"{_said(path)}不对"))

    def _may_be_told(self, value: Any, schema: Schema) -> bool:
        """Whether what a choice asks for helps whoever gave a value: nobody means null by one."""
        return value is None or _types(self._named(schema)) != ("null",)

    def _is_exact(self, value: Any, schema: Schema) -> bool:
        return any(_is(value, name) for name in _types(self._named(schema)))

    def _named(self, schema: Any) -> Schema:
        """Return the schema that a reference within the tool's own names, or the schema itself."""
        if not isinstance(schema, Mapping):
            return {}
        for _ in range(MAX_DEPTH):
            name = schema.get("$ref")
            if not isinstance(name, str):
                return schema
            found = self._root.get("$defs", {}).get(name.removeprefix("#/$defs/"))
            schema = found if isinstance(found, Mapping) else {}
        return {}


def _types(schema: Schema) -> tuple[str, ...]:
    given = schema.get("type")
    names = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    return tuple(name for name in names if name in _NAMES)


def _name(kind: str) -> str:
    return _NAMES[kind]


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            return value is None


def _meant(value: Any, kinds: tuple[str, ...]) -> Any:
    """Return what is plainly meant by a value of another type than one of ``kinds``."""
    if any(_is(value, kind) for kind in kinds):
        return value
    if "integer" in kinds and isinstance(value, float) and value.is_integer():
        return int(value)
    if "string" in kinds and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        return value
    return next(
        (read for kind in kinds if (read := _typed(value.strip(), kind)) is not None), value
    )


def _typed(text: str, kind: str) -> int | float | bool | None:
    try:
        if kind == "integer":
            return int(text)
        if kind == "number":
            number = float(text)
            return number if math.isfinite(number) else None
    except ValueError:
        return None
    words = {"true": True, "false": False}
    return words.get(text.casefold()) if kind == "boolean" else None


def _bounds(value: Any, schema: Schema) -> Iterator[str]:
    """Yield what a value's size is at odds with."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from _bound(value, schema.get("minimum"), schema.get("maximum"), "")
    if isinstance(value, str):
        yield from _bound(len(value), schema.get("minLength"), schema.get("maxLength"), "的长度")
    if isinstance(value, list):
        yield from _bound(len(value), schema.get("minItems"), schema.get("maxItems"), "的项数")


def _bound(size: float, least: Any, most: Any, what: str) -> Iterator[str]:
    if isinstance(least, int | float) and size < least:
        yield f"{what}不能小于 {least}"
    if isinstance(most, int | float) and size > most:
        yield f"{what}不能大于 {most}"


def _takes_null(schema: Schema) -> bool:
    options = schema.get("anyOf") or schema.get("oneOf") or [schema]
    return any("null" in _types(one) for one in options if isinstance(one, Mapping))


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _said(path: str) -> str:
    return f"参数 {path} " if path else "参数"

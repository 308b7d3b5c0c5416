"""What a reflection may answer, and how its answer is read out of a model's text.

The types below are the answer's only definition: the JSON schema in the prompt is rendered from
them, and items are read with them, one by one, so that a malformed one spoils no other. Whether
an item is believed is decided in ``bot.memory.checks``. See ``docs/memory.md``, "Output".
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, cast, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from bot.errors import QunyiError
from bot.memory.objects import objects_in, read_object
from bot.memory.verdict import Reason, Rejection
from bot.memory.wording import (
    ENTRY_MAX_CHARS,
    GROUP_SUMMARY_MAX_CHARS,
    MEMBER_SUMMARY_MAX_CHARS,
    MEMORY_MAX_CHARS,
)
from bot.model import ProfileType, TaskName
from bot.text import single_line

_REF_MAX_DIGITS = 6
_ENVELOPES = 2
"""How many objects may be wrapped around the answer."""


class AnswerUnusable(QunyiError):
    """A model's text holds no answer to the task; its words say what was looked for."""


def _number(value: object) -> int:
    """Return the number that a model wrote as a number or as a string.

    Raises:
        ValueError: it wrote something else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("not a number")
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("not a whole number")
    digits = value.strip() if isinstance(value, str) else str(int(value))
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _REF_MAX_DIGITS):
        raise ValueError("not a number of a message")
    return int(digits)


def _refs(value: object) -> tuple[int, ...]:
    many = value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(_number(one) for one in many))


def _identifier(value: object) -> str:
    """Return an id as text; a model writes it as a number as often as as a string."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value.strip() if isinstance(value, str) else ""


def _line(value: object) -> object:
    return single_line(value) if isinstance(value, str) else value


def _line_or_nothing(value: object) -> str:
    return single_line(value) if isinstance(value, str) else ""


def _profile_type(value: object) -> object:
    return value if value in get_args(ProfileType) else "note"


Refs = Annotated[tuple[int, ...], Field(min_length=1), BeforeValidator(_refs)]
Identifier = Annotated[str, Field(min_length=1), BeforeValidator(_identifier)]
Day = Annotated[
    str,
    BeforeValidator(_line_or_nothing),
    Field(json_schema_extra={"pattern": r"^\d{4}-\d{2}-\d{2}$"}),
]
EntryText = Annotated[
    str, BeforeValidator(_line), Field(json_schema_extra={"maxLength": ENTRY_MAX_CHARS})
]
MemoryText = Annotated[
    str, BeforeValidator(_line), Field(json_schema_extra={"maxLength": MEMORY_MAX_CHARS})
]
GroupSummary = Annotated[str, Field(json_schema_extra={"maxLength": GROUP_SUMMARY_MAX_CHARS})]
MemberSummary = Annotated[str, Field(json_schema_extra={"maxLength": MEMBER_SUMMARY_MAX_CHARS})]


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Fact(_Shape):
    """Something to remember and the messages that say it."""

    text: EntryText
    refs: Refs


class TypedFact(_Shape):
    """A fact of a person's profile; an unknown type is a ``note``."""

    type: Annotated[ProfileType, BeforeValidator(_profile_type)] = "note"
    text: EntryText
    refs: Refs


class DatedFact(_Shape):
    """A fact of a day; a missing day is filled in from the evidence."""

    date: Day = ""
    text: EntryText
    refs: Refs


class DatedMemory(DatedFact):
    """A fact of a day that is kept for long."""

    text: MemoryText


class Retraction(_Shape):
    """An entry that the messages show to be no longer true."""

    id: Identifier
    refs: Refs
    why: Annotated[str, BeforeValidator(_line_or_nothing)] = ""


class GroupAnswer(_Shape):
    """What a reflection on a group answers."""

    profile: list[Fact] = []
    summary: GroupSummary = ""
    daily: list[DatedFact] = []
    memory: list[DatedMemory] = []
    retract: list[Retraction] = []


class MemberAnswer(_Shape):
    """What a reflection on the members of a group answers about one of them."""

    senderId: Identifier
    profile: list[TypedFact] = []
    pattern: list[Fact] = []
    summary: MemberSummary = ""
    daily: list[DatedFact] = []
    retract: list[Retraction] = []


class MemberBatchAnswer(_Shape):
    """What a reflection on the members of a group answers."""

    members: list[MemberAnswer] = []


class PrivateAnswer(_Shape):
    """What a reflection on a private chat answers."""

    profile: list[TypedFact] = []
    pattern: list[Fact] = []
    summary: MemberSummary = ""
    daily: list[DatedFact] = []
    memory: list[DatedMemory] = []
    retract: list[Retraction] = []


AnyFact = Fact | TypedFact | DatedFact
ItemValue = AnyFact | Retraction | str
"""A string is a summary."""

_ANSWERS: Mapping[TaskName, type[_Shape]] = {
    "group": GroupAnswer,
    "member-batch": MemberBatchAnswer,
    "private-owner": PrivateAnswer,
}
_FAULTS: Mapping[str, Reason] = {
    "text": "text-missing",
    "refs": "refs-missing",
    "id": "entry-unknown",
}


@dataclass(frozen=True, slots=True)
class Item:
    """One well-formed leaf of an answer."""

    path: str
    """Where it stands, such as ``members[1].daily[0]``."""
    key: str
    """``profile``, ``pattern``, ``summary``, ``daily``, ``memory`` or ``retract``."""
    value: ItemValue
    """Its texts are sanitised lines."""


@dataclass(frozen=True, slots=True)
class Part:
    """What an answer says about one subject: the group, a person."""

    path: str
    """Empty, or such as ``members[1]``."""
    sender_id: str | None
    """Whom a member's part names as its subject, trimmed; ``None`` in the other tasks."""
    items: tuple[Item, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    """The malformed leaves."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """An answer read as far as it can be read; nothing of it is believed yet."""

    task: TaskName
    parts: tuple[Part, ...]
    rejections: tuple[Rejection, ...] = ()
    """What belongs to no part."""


@lru_cache(maxsize=len(_ANSWERS))
def answer_schema(task: TaskName) -> dict[str, Any]:
    """Return the JSON schema of an answer, for the prompt and for the endpoint.

    It has no ``$ref``, since not every endpoint follows one. Treat it as read-only.
    """
    return plain_schema(_ANSWERS[task])


def plain_schema(shape: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of ``shape`` without ``$ref`` and without annotations."""
    schema = shape.model_json_schema(by_alias=True)
    return _plain(schema, schema.get("$defs", {}))


def _plain(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``schema`` with its references resolved and pydantic's annotations left out."""
    if "$ref" in schema:
        return _plain(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    plain = {key: value for key, value in schema.items() if key in _KEPT_KEYWORDS}
    if "properties" in schema:
        plain["properties"] = {
            name: _plain(value, definitions) for name, value in schema["properties"].items()
        }
    if "items" in schema:
        plain["items"] = _plain(schema["items"], definitions)
    return plain


_KEPT_KEYWORDS = frozenset(
    {"type", "enum", "required", "pattern", "minItems", "minLength", "maxLength"}
)


def parse_answer(text: str, task: TaskName) -> Parsed:
    """Return the last complete JSON object of ``text`` that fits the task, read item by item.

    Fences, prose and thinking around it are ignored, and so are keys that the task does not
    have. An object fits if it has a key of the task with a value of that key's kind, or if it
    is exactly ``{}``, which changes nothing; ``{}`` inside an object that breaks off does not
    count. The answer may be wrapped in another object.

    Raises:
        AnswerUnusable: there is no such object.
    """
    found = objects_in(text)
    for one in reversed(found):
        value = read_object(text, one)
        if value is None:
            continue
        if not value and not one.is_fragment:
            return Parsed(task, ())
        if fitting := _fitting(value, task, _ENVELOPES):
            return _parsed(fitting, task)
    if found:
        raise AnswerUnusable(f"none of the JSON objects in the answer has a key of {task}")
    raise AnswerUnusable("the answer holds no complete JSON object")


def _fitting(value: dict[str, Any], task: TaskName, envelopes: int) -> dict[str, Any] | None:
    if _fits(value, task):
        return value
    inner = [one for one in value.values() if isinstance(one, dict)] if envelopes else []
    return next(
        (fit for one in reversed(inner) if (fit := _fitting(one, task, envelopes - 1))), None
    )


def _fits(value: Mapping[str, Any], task: TaskName) -> bool:
    if task == "group" and "senderId" in value:
        return False
    fields = _ANSWERS[task].model_fields
    return any(
        value[key] is None or isinstance(value[key], str if key == "summary" else list)
        for key in fields.keys() & value.keys()
    )


def _parsed(value: Mapping[str, Any], task: TaskName) -> Parsed:
    if task != "member-batch":
        return Parsed(task, (_part(value, _ANSWERS[task], "", None),))
    members, rejections = [], []
    for index, member in enumerate(value["members"] or []):
        path = f"members[{index}]"
        if isinstance(member, dict):
            sender_id = _identifier(member.get("senderId"))
            members.append(_part(member, MemberAnswer, f"{path}.", sender_id))
        else:
            rejections.append(Rejection(path, "not-an-object"))
    return Parsed(task, tuple(members), tuple(rejections))


def _part(value: Mapping[str, Any], shape: type[_Shape], prefix: str, sender: str | None) -> Part:
    leaves = [
        leaf
        for key in shape.model_fields
        if key != "senderId" and value.get(key) is not None
        for leaf in _leaves(key, value[key], shape, prefix)
    ]
    return Part(
        path=prefix.removesuffix("."),
        sender_id=sender,
        items=tuple(leaf for leaf in leaves if isinstance(leaf, Item)),
        rejections=tuple(leaf for leaf in leaves if isinstance(leaf, Rejection)),
    )


def _leaves(
    key: str, value: object, shape: type[_Shape], prefix: str
) -> Iterator[Item | Rejection]:
    path = f"{prefix}{key}"
    if key == "summary":
        yield from _summary(path, value)
    elif isinstance(value, list):
        (item_shape,) = get_args(shape.model_fields[key].annotation)
        for index, item in enumerate(value):
            yield _leaf(f"{path}[{index}]", key, item, item_shape)
    else:
        yield Rejection(path, "not-a-list")


def _summary(path: str, value: object) -> Iterator[Item | Rejection]:
    if not isinstance(value, str):
        yield Rejection(path, "text-missing")
    elif line := single_line(value):
        yield Item(path, "summary", line)


def _leaf(path: str, key: str, value: object, shape: type[_Shape]) -> Item | Rejection:
    if not isinstance(value, dict):
        return Rejection(path, "not-an-object")
    try:
        read = shape.model_validate(value)
    except ValidationError as error:
        return Rejection(path, _fault(error))
    return Item(path, key, cast(ItemValue, read))


def _fault(error: ValidationError) -> Reason:
    """Return the reason of the first field that is missing or unreadable."""
    fields = error.errors(include_url=False, include_context=False, include_input=False)
    return _FAULTS[str(fields[0]["loc"][0])]

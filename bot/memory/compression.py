"""Compression: when a stream has many daily entries, the older ones become few lines of memory.

Which entries a call reads, and whether its answer may replace them. An answer is taken whole or
not at all: what is refused leaves every entry where it was. See ``docs/memory.md``, "Compression".
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from bot.memory.answer import AnswerUnusable, Day, MemoryText, plain_schema
from bot.memory.masking import is_sensitive, masked
from bot.memory.objects import objects_in, read_object
from bot.memory.wording import MEMORY_MAX_CHARS
from bot.model import Entry
from bot.text import json_line

CHUNK = 60
"""A call reads at most so many daily entries."""

MEMORY_CHARS = 4_500
"""So much of ``memory`` is shown, so that cost does not grow with age."""

BACKGROUND_CHARS = 2_000
"""So much of ``profile`` and ``pattern`` is shown."""

MAX_SOURCES = 8
MIN_COVERED_PERCENT = 80
"""Of the daily entries that are shown, so many must be sources of some item."""

MIN_CHARS_PERCENT = 15
"""All items together must be so long, measured by the entries that they name."""

Refusal = Literal[
    "unreadable",
    "malformed",
    "empty",
    "items-too-many",
    "text-missing",
    "text-too-long",
    "sensitive",
    "number-invented",
    "sources-missing",
    "sources-unknown",
    "sources-too-many",
    "date-missing",
    "date-outside",
    "date-lost",
    "coverage",
    "too-short",
]

_BACKGROUND = frozenset({"profile", "pattern"})
_DATE = re.compile(r"(?<!\d)(\d{4})\s?[-/.年]\s?(\d{1,2})\s?[-/.月]\s?(\d{1,2})(?!\d)")
_LONG_NUMBER = re.compile(r"\d{5,}")


class CompressionRefused(AnswerUnusable):
    """An answer may not replace what it was made from."""

    def __init__(self, reason: Refusal, place: str = "") -> None:
        super().__init__(f"{reason} {place}".rstrip())
        self.reason: Refusal = reason


@dataclass(frozen=True, slots=True)
class Plan:
    """What one call reads of a stream."""

    daily: tuple[Entry, ...]
    """To be compressed, oldest first: ``d1``, ``d2`` …"""
    memory: tuple[Entry, ...]
    """The newest of the long-term memory, which may be taken up as well: ``m1``, ``m2`` …"""
    background: tuple[Entry, ...]
    """Of ``profile`` and ``pattern``, to be understood and left alone."""
    rest: tuple[int, ...] = ()
    """Numbers of the daily entries that the calls after this one compress."""

    @property
    def sources(self) -> Mapping[str, Entry]:
        """The entries that an item may name, by label."""
        labelled = {f"d{place}": entry for place, entry in enumerate(self.daily, start=1)}
        return labelled | {f"m{place}": entry for place, entry in enumerate(self.memory, start=1)}

    @property
    def shown(self) -> tuple[Entry, ...]:
        """All that a model sees."""
        return (*self.daily, *self.memory, *self.background)


@dataclass(frozen=True, slots=True)
class Compressed:
    """A line of memory, and the entries that it stands for from now on."""

    text: str
    date: str | None
    sources: tuple[Entry, ...]


# What is read.


def plan(entries: Collection[Entry], at: int, keep_recent: int, chunk: int = CHUNK) -> Plan | None:
    """Return what the first call reads, or ``None`` if there is nothing to compress.

    Args:
        entries: the living entries of one stream.
        at: the number of daily entries from which on they are compressed.
        keep_recent: so many of the newest stay; pinned ones stay apart.
        chunk: how many daily entries one call reads at most (≥ 1).
    """
    daily = [entry.number for entry in entries if entry.document == "daily"]
    return continued(entries, daily, keep_recent, chunk) if len(daily) >= at else None


def continued(
    entries: Iterable[Entry], numbers: Iterable[int], keep_recent: int = 0, chunk: int = CHUNK
) -> Plan | None:
    """Return what the next call reads of the daily entries called ``numbers``.

    Those that ended, were pinned or set aside meanwhile are passed over, and so are those that are
    among the newest by now. The calls that are left read about equally much.
    """
    entries, wanted = tuple(entries), frozenset(numbers)
    movable = _by_day(e for e in entries if e.document == "daily" and _is_movable(e))
    old = movable[: max(0, len(movable) - keep_recent)]
    waiting = [entry for entry in old if entry.number in wanted]
    if not waiting:
        return None
    calls = -(-len(waiting) // chunk)
    size = -(-len(waiting) // calls)
    memory = [e for e in entries if e.document == "memory" and not e.pinned]
    background = [entry for entry in entries if entry.document in _BACKGROUND]
    return Plan(
        daily=tuple(waiting[:size]),
        memory=_newest(memory, MEMORY_CHARS),
        background=_newest(background, BACKGROUND_CHARS),
        rest=tuple(entry.number for entry in waiting[size:]),
    )


def alone(plan: Plan) -> Plan:
    """Return ``plan`` with nothing beside the daily entries, for a model that refuses what is."""
    return replace(plan, memory=(), background=())


def _is_movable(entry: Entry) -> bool:
    return not entry.pinned and not entry.set_aside


def _by_day(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: (entry.date or "", entry.number))


def _newest(entries: Iterable[Entry], budget_chars: int) -> tuple[Entry, ...]:
    """Return the newest entries that there is room for, in order of their days."""
    chosen: list[Entry] = []
    for entry in sorted(entries, key=lambda e: (e.updated_at, e.number), reverse=True):
        budget_chars -= len(_line(f"m{len(chosen) + 1}", entry)) + 1
        if budget_chars < 0:
            break
        chosen.append(entry)
    return tuple(_by_day(chosen))


def prompt_lines(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return the lines of a prompt, one JSON object each: ``daily``, ``memory``, ``background``."""
    sources = plan.sources
    return {
        "daily": tuple(_line(label, e) for label, e in sources.items() if label[0] == "d"),
        "memory": tuple(_line(label, e) for label, e in sources.items() if label[0] == "m"),
        "background": tuple(_line(entry.document, entry) for entry in plan.background),
    }


def _line(label: str, entry: Entry) -> str:
    if entry.document in _BACKGROUND:
        fields = {"document": entry.document, **({"type": entry.type} if entry.type else {})}
    else:
        fields = {"id": label, **({"date": entry.date} if entry.date else {})}
    return json_line({**fields, "text": masked(entry.text)})


# What is answered.


def _labels(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError("not a list of labels")
    return tuple(dict.fromkeys(one.strip().lower() for one in value))


class _Item(BaseModel):
    """A line of memory and the labels of what it was made from."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    date: Day = ""
    text: MemoryText
    sources: Annotated[
        tuple[str, ...],
        BeforeValidator(_labels),
        Field(json_schema_extra={"minItems": 1}),
    ]


class _Answer(BaseModel):
    """What a compression answers."""

    memory: list[_Item]


@lru_cache(maxsize=1)
def compression_schema() -> dict[str, Any]:
    """Return the JSON schema of an answer, for the prompt and for the endpoint; read-only."""
    return plain_schema(_Answer)


def check(plan: Plan, text: str) -> tuple[Compressed, ...]:
    """Return the lines of memory that an answer makes of what ``plan`` shows.

    Args:
        plan: what the model was shown.
        text: its whole answer; the last complete object with a list ``memory`` counts.

    Raises:
        CompressionRefused: the answer may not replace its sources, and why.
    """
    sources, scope_id = plan.sources, plan.daily[0].stream.scope.id
    items = tuple(
        _compressed(item, sources, scope_id, place) for place, item in enumerate(_items(text))
    )
    if not items:
        raise CompressionRefused("empty")
    _check_count(items)
    _check_dates(items)
    _check_coverage(items, plan)
    _check_length(items)
    return items


def _items(text: str) -> list[_Item]:
    for found in reversed(objects_in(text)):
        value = None if found.is_fragment else read_object(text, found)
        if value is not None and isinstance(value.get("memory"), list):
            try:
                return _Answer.model_validate(value).memory
            except ValidationError as error:
                raise CompressionRefused("malformed", _place_of(error)) from None
    raise CompressionRefused("unreadable")


def _place_of(error: ValidationError) -> str:
    """Return where the first fault is; nothing that anybody wrote is in it."""
    (first, *_) = error.errors(include_url=False, include_context=False, include_input=False)
    return ".".join(str(step) for step in first["loc"])


def _compressed(item: _Item, sources: Mapping[str, Entry], scope_id: str, place: int) -> Compressed:
    def refusal(reason: Refusal) -> CompressionRefused:
        return CompressionRefused(reason, f"memory[{place}]")

    if not item.sources:
        raise refusal("sources-missing")
    if not sources.keys() >= set(item.sources):
        raise refusal("sources-unknown")
    if len(item.sources) > MAX_SOURCES:
        raise refusal("sources-too-many")
    named = tuple(sources[label] for label in item.sources)
    if fault := _fault_of_text(item.text, named, scope_id):
        raise refusal(fault)
    days = {entry.date for entry in named if entry.date}
    if not days:
        return Compressed(item.text, None, named)
    if not item.date:
        raise refusal("date-missing")
    date = _only_day(item.date)
    if date not in days:
        raise refusal("date-outside")
    return Compressed(item.text, date, named)


def _fault_of_text(text: str, named: Sequence[Entry], scope_id: str) -> Refusal | None:
    if not text:
        return "text-missing"
    if len(text) > MEMORY_MAX_CHARS:
        return "text-too-long"
    if is_sensitive(text):
        return "sensitive"
    # People are told by their ids, so an id that no source names would be somebody's new fact.
    known = {scope_id, *(entry.date.replace("-", "") for entry in named if entry.date)}
    known |= {number for entry in named for number in _LONG_NUMBER.findall(entry.text)}
    return None if known.issuperset(_LONG_NUMBER.findall(text)) else "number-invented"


def _days_in(text: str) -> frozenset[str]:
    """Return the full dates that a text names, however they are written."""
    return frozenset(f"{y}-{int(m):02}-{int(d):02}" for y, m, d in _DATE.findall(text))


def _only_day(text: str) -> str:
    days = _days_in(text)
    return next(iter(days)) if len(days) == 1 else ""


def _check_dates(items: Iterable[Compressed]) -> None:
    """Every named entry's day must be that of an item that names it, or stand in its text."""
    named: set[Entry] = set()
    told: set[Entry] = set()
    for item in items:
        days = _days_in(item.text) | {item.date}
        named.update(item.sources)
        told.update(entry for entry in item.sources if not entry.date or entry.date in days)
    if lost := named - told:
        raise CompressionRefused("date-lost", ", ".join(sorted({e.date or "" for e in lost})))


def _check_count(items: Sequence[Compressed]) -> None:
    """A model that repeats itself compresses nothing: no more lines than entries go into them."""
    named = {entry for item in items for entry in item.sources}
    if len(items) > len(named):
        raise CompressionRefused("items-too-many", f"{len(items)} of {len(named)}")


def _check_coverage(items: Iterable[Compressed], plan: Plan) -> None:
    covered = {entry for item in items for entry in item.sources}.intersection(plan.daily)
    if 100 * len(covered) < MIN_COVERED_PERCENT * len(plan.daily):
        raise CompressionRefused("coverage", f"{len(covered)} of {len(plan.daily)}")


def _check_length(items: Sequence[Compressed]) -> None:
    cited = sum(len(entry.text) for entry in {e for item in items for e in item.sources})
    length = sum(len(item.text) for item in items)
    if 100 * length < MIN_CHARS_PERCENT * cited:
        raise CompressionRefused("too-short", f"{length} of {cited}")


def still_stands(plan: Plan, entries: Iterable[Entry]) -> bool:
    """Whether all that a model was shown is among ``entries`` still, and none of it pinned since.

    What came meanwhile does not matter.
    """
    held = {entry.number: _content(entry) for entry in entries}
    return all(held.get(entry.number) == _content(entry) for entry in plan.shown)


def _content(entry: Entry) -> tuple[str, str, str | None, bool]:
    return entry.document, entry.text, entry.date, entry.pinned

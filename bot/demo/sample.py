"""The sample: a group's week as it lies in ``data/sample/``, read and checked.

See ``docs/demo.md``, "The sample".
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from bot.demo.errors import SampleError
from bot.model import Role
from bot.simulate import Content, Person, World, segments

ZONE = ZoneInfo("Asia/Shanghai")
"""The sample's people live by this clock, whatever ``TIMEZONE`` says."""

BOT_NAME = "小忆"
STEP_SECONDS = 7
"""Lines of one minute follow each other so closely."""

ANSWER_MARK = "@"
"""Before a line's key: the bot's answer to that line."""

FACT_FILES = ("group", "members", "private")
ANSWER_FILES = frozenset({"chat", "compress", "session", *FACT_FILES})

_PICTURE = "[图片]"
_MENTION = re.compile(r"@\d{5,}")
_MARKS = re.compile(r"(@(?:bot|\d{5,})(?=\s)|\[图片\])")


@dataclass(frozen=True, slots=True)
class Line:
    """Something that happens in the week."""

    at: int
    """UTC milliseconds."""
    sender_id: int
    """Who says it, recalls it, or is renamed."""
    text: str = ""
    """What is said: ``@bot`` and ``@30001`` are mentions, ``[图片]`` is a picture."""
    key: str = ""
    """By which answers refer to it; empty for most."""
    quote: str = ""
    """The key of the line that it quotes; with ``ANSWER_MARK``, of the bot's answer to that."""
    is_private: bool = False
    recalls: str = ""
    """The key of the line that is taken back, if that is what happens."""
    card: str = ""
    """The new name within the group, if that is what happens."""

    @property
    def is_command(self) -> bool:
        """Whether it is a command to the bot."""
        return self.text.startswith("/")

    @property
    def is_asking(self) -> bool:
        """Whether the bot has to say something to it."""
        return self.is_private or self.is_command or "@bot" in self.text or self._quotes_bot

    @property
    def _quotes_bot(self) -> bool:
        return self.quote.startswith(ANSWER_MARK)


@dataclass(frozen=True, slots=True)
class Week:
    """The whole sample."""

    bot: Person
    group_id: int
    group_name: str
    people: tuple[Person, ...]
    """As they are when the week begins."""
    lines: tuple[Line, ...]
    """In order of time."""
    answers: Mapping[str, tuple[Mapping[str, Any], ...]]
    """What the model answers, by the name of the file it is recorded in."""

    @property
    def facts(self) -> Iterator[Mapping[str, Any]]:
        """What the model answers to reflections."""
        return chain.from_iterable(self.answers[name] for name in FACT_FILES)

    def line(self, key: str) -> Line:
        """Return the line with a key."""
        return next(line for line in self.lines if line.key == key)


def read_week(folder: Path) -> Week:
    """Return the sample that lies in ``folder``.

    Raises:
        SampleError: something is missing or wrong; the text names the file and the line.
    """
    path = folder / "cast.json"
    cast = _read(_CastForm, _text(path), str(path))
    answers = {path.stem: tuple(_records(path)) for path in _files(folder / "answers")}
    if lacking := ANSWER_FILES - answers.keys():
        raise SampleError(f"there is no {', '.join(sorted(lacking))}.jsonl in {folder / 'answers'}")
    week = Week(
        bot=cast.bot.person(),
        group_id=cast.group.id,
        group_name=cast.group.name,
        people=tuple(one.person() for one in cast.people),
        lines=tuple(line for path in _files(folder / "week") for line in _day(path)),
        answers=answers,
    )
    _check(week)
    return week


def new_world(week: Week) -> World:
    """Return what the bot's account sees when the week begins: the group, and friends."""
    world = World(week.bot)
    world.add_group(week.group_id, week.group_name, *week.people)
    world.befriend(*(replace(person, card="") for person in week.people))
    return world


def content_of(line: Line, bot_id: int, message_ids: Mapping[str, int]) -> tuple[Content, ...]:
    """Return what a line says as segments.

    Args:
        line: the line.
        bot_id: whom ``@bot`` means.
        message_ids: what was said so far, by key; the bot's answers with ``ANSWER_MARK``. One that
            never came is not quoted.
    """
    quoted = message_ids.get(line.quote)
    quote = () if quoted is None else (segments.reply(quoted),)
    return (*quote, *(_piece(part, bot_id) for part in _MARKS.split(line.text) if part))


def _piece(part: str, bot_id: int) -> Content:
    if part == _PICTURE:
        return segments.image()
    if part == "@bot":
        return segments.at(bot_id)
    return segments.at(part[1:]) if _MENTION.fullmatch(part) else part


class _PersonForm(BaseModel):
    """Somebody in ``cast.json``."""

    model_config = ConfigDict(extra="forbid")

    id: int
    nickname: str
    card: str = ""
    role: Role = "member"

    def person(self) -> Person:
        return Person(self.id, self.nickname, card=self.card, role=self.role)


class _GroupForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: int
    name: str


class _CastForm(BaseModel):
    """``cast.json``."""

    model_config = ConfigDict(extra="forbid")

    bot: _PersonForm
    group: _GroupForm
    people: list[_PersonForm]


class _DayForm(BaseModel):
    """The first line of a day."""

    model_config = ConfigDict(extra="forbid")

    day: date
    title: str = ""


class _LineForm(BaseModel):
    """Any other line of a day."""

    model_config = ConfigDict(extra="forbid")

    at: time
    sender_id: int = Field(validation_alias=AliasChoices("from", "by", "of"))
    text: str = ""
    key: str = ""
    quote: str = ""
    private: bool = False
    recall: str = ""
    card: str = ""

    def line(self, day: date, place: int) -> Line:
        moment = datetime.combine(day, self.at, ZONE) + timedelta(seconds=place * STEP_SECONDS)
        return Line(
            at=round(moment.timestamp() * 1000),
            sender_id=self.sender_id,
            text=self.text,
            key=self.key,
            quote=self.quote,
            is_private=self.private,
            recalls=self.recall,
            card=self.card,
        )


_Form = TypeVar("_Form", bound=BaseModel)


def _read(form: type[_Form], text: str, place: str) -> _Form:
    try:
        return form.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise SampleError(f"{place}: {where + ': ' if where else ''}{first['msg']}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SampleError(f"{path} cannot be read: {error}") from error


def _files(folder: Path) -> list[Path]:
    found = sorted(folder.glob("*.jsonl"))
    if not found:
        raise SampleError(f"there are no .jsonl files in {folder}")
    return found


def _numbered(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file that are not blank, each with how it is called in an error."""
    for number, text in enumerate(_text(path).splitlines(), start=1):
        if text.strip():
            yield f"{path}, line {number}", text


def _records(path: Path) -> Iterator[dict[str, Any]]:
    for place, text in _numbered(path):
        try:
            yield json.loads(text)
        except ValueError as error:
            raise SampleError(f"{place}: {error}") from error


def _day(path: Path) -> Iterator[Line]:
    """Yield what happens on a day; the first line of its file names it."""
    (head_place, head), *rest = _numbered(path)
    day = _read(_DayForm, head, head_place).day
    minute, order = None, 0
    for place, text in rest:
        form = _read(_LineForm, text, place)
        order = order + 1 if form.at == minute else 0
        minute = form.at
        yield form.line(day, order)


# What a reader of the files would not understand either.


def _check(week: Week) -> None:
    if problems := list(_problems(week)):
        raise SampleError("; ".join(problems))


def _problems(week: Week) -> Iterator[str]:
    moments = [line.at for line in week.lines]
    if moments != sorted(moments):
        yield "the lines of the week are not in order of time"
    keys = Counter(line.key for line in week.lines if line.key)
    records = Counter(r["key"] for r in week.facts if "key" in r)
    yield from (f"{key} is used twice" for key, n in (keys + records).items() if n > 1)
    yield from (f"no line has the key {key}" for key in sorted(_named(week) - keys.keys()))
    yield from (f"no record has the key {k}" for k in sorted(_sources(week) - records.keys()))
    yield from _ambiguous(week)
    answered = {record["to"] for record in week.answers["chat"]}
    for line in week.lines:
        if line.is_asking and not line.is_command and line.key not in answered:
            yield f"no answer is recorded to {line.text!r}"


def _named(week: Week) -> set[str]:
    """Return the keys by which lines and records name lines."""
    named = {line.quote or line.recalls for line in week.lines}
    named |= {ref for record in week.facts for ref in record["refs"] if isinstance(ref, str)}
    named |= {record["to"] for name in ("chat", "session") for record in week.answers[name]}
    return {name.removeprefix(ANSWER_MARK) for name in named} - {""}


def _sources(week: Week) -> set[str]:
    """Return the keys by which records name records."""
    named = {record["entry"] for record in week.facts if "entry" in record}
    return named | {key for record in week.answers["compress"] for key in record["sources"]}


def _ambiguous(week: Week) -> Iterator[str]:
    """Yield keys whose lines a prompt shows like others: of one sender, in one minute."""
    named = _named(week)
    places = Counter((line.at // 60_000, line.sender_id) for line in week.lines if line.text)
    for line in week.lines:
        if line.key in named and line.text and places[line.at // 60_000, line.sender_id] > 1:
            yield f"{line.key} is not the only line of its sender in that minute"

"""The rolling summary of a conversation: what is kept of it once its turns are shown no more.

Pure: what a model reads, how its answer is read, what of it is believed, and how it is shown. Its
limits and whose word binds are decided here and not by a prompt. See ``docs/session.md``,
"Rolling summary".
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from bot.memory.answer import AnswerUnusable, Day, plain_schema
from bot.memory.masking import is_sensitive, masked
from bot.memory.objects import objects_in, read_object
from bot.model import Turn, TurnLine, TurnPart
from bot.text import clipped, json_line, single_line

MAX_DECISIONS = 8
MAX_DISCUSSIONS = 8
DECISION_CHARS = 200
TOPIC_CHARS = 40
DESCRIPTION_CHARS = 200
DIRECTION_CHARS = 100
CURRENT_CHARS = 400

DO, DONT = "Do: ", "Don't: "
"""How every decision begins."""

Refusal = Literal[
    "not-an-object",
    "unknown-id",
    "no-prefix",
    "no-author",
    "no-evidence",
    "sensitive",
    "no-topic",
    "may-not-overturn",
    "dropped-unnamed",
]

_PREFIX = re.compile(r"(?:(?P<dont>do\s?not|don\s?['’`]?\s?t)|do)\s*[:：]\s*(?P<rule>.+)", re.I)
_READ: frozenset[TurnPart] = frozenset({"context", "quote", "question", "answer"})
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


# What is kept.


@dataclass(frozen=True, slots=True)
class Decision:
    """A rule that keeps applying, with who made it and the message rows that say so."""

    text: str
    """It begins with ``Do:`` or ``Don't:``."""
    author_id: str
    evidence: tuple[int, ...]
    binds: bool
    """Its author may make rules here; what others decided is background."""


@dataclass(frozen=True, slots=True)
class Discussion:
    """What was talked about, and where it led."""

    topic: str
    description: str = ""
    direction: str = ""
    last_discussed: str = ""
    """The local day, ``YYYY-MM-DD``."""


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """What is kept of the turns of one conversation, the oldest of each kind first."""

    key_decisions: tuple[Decision, ...] = ()
    past_discussions: tuple[Discussion, ...] = ()
    current_discussion: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.size

    @property
    def size(self) -> int:
        """How many entries it has."""
        decided, discussed = len(self.key_decisions), len(self.past_discussions)
        return decided + discussed + bool(self.current_discussion)


def written(summary: SessionSummary) -> str:
    """Return a summary as it is stored: JSON, or nothing at all if it is empty."""
    return "" if summary.is_empty else json.dumps(asdict(summary), ensure_ascii=False)


def read_summary(text: str) -> SessionSummary:
    """Return the summary that ``written`` stored; none if another program wrote it otherwise."""
    if not text:
        return NO_SUMMARY
    try:
        value = json.loads(text)
        return SessionSummary(
            tuple(
                Decision(one["text"], one["author_id"], tuple(one["evidence"]), one["binds"])
                for one in value["key_decisions"]
            ),
            tuple(Discussion(**one) for one in value["past_discussions"]),
            value["current_discussion"],
        )
    except (ValueError, LookupError, TypeError):
        # Every turn reads it: better none, which the next one replaces, than no turn.
        return NO_SUMMARY


NO_SUMMARY = SessionSummary()


# What is read.


@dataclass(frozen=True, slots=True)
class Voice:
    """Who said a message of the conversation."""

    sender_id: str
    may_decide: bool
    """Their word binds here: a group's owner and admins, operators; in private the person."""


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody said, as a summary may rest on it."""

    row_id: int
    voice: Voice


@dataclass(frozen=True, slots=True)
class SummaryInput:
    """What one call reads: the lines of some turns, and who said them."""

    lines: tuple[str, ...]
    said: Mapping[int, Said]
    """What people said themselves, by ``ref``."""
    last_day: str
    """The local day of the newest line, ``YYYY-MM-DD``."""


def summary_input(
    turns: Iterable[Turn],
    voices: Mapping[int, Voice],
    first_day: str,
    line_chars: int | None = None,
) -> SummaryInput:
    """Return the lines of some turns, one JSON object each, with a number for each.

    Args:
        turns: in order.
        voices: who said a message, by its row; bots and the account itself are left out.
        first_day: the local day to assume while no line tells one.
        line_chars: of each line's text so much is shown, all of it by default.
    """
    lines: list[str] = []
    said: dict[int, Said] = {}
    last_day = first_day
    for number, turn in enumerate(turns, start=1):
        for line in filter(_is_read, turn.lines):
            shown = _shown(line)
            if line_chars is not None:
                shown["text"] = clipped(shown["text"], line_chars)
            last_day = max(last_day, str(shown.get("at", ""))[:10])
            ref = len(lines) + 1
            lines.append(json_line({"ref": ref, "turn": number, **shown}))
            voice = voices.get(line.message_id or 0)
            if voice and line.message_id and line.part in ("context", "question"):
                said[ref] = Said(line.message_id, voice)
    return SummaryInput(tuple(lines), said, last_day)


def _is_read(line: TurnLine) -> bool:
    """Whether a summary reads a line: what people and the bot said."""
    return line.part in _READ


def _shown(line: TurnLine) -> dict[str, Any]:
    """Return a line of a turn as an object; an answer is text, the rest is JSON of our own."""
    if line.part == "answer":
        return {"senderId": "BOT", "text": masked(line.text)}
    value = json.loads(line.text)
    quoted = {"isQuote": True} if line.part == "quote" else {}
    told = {key: value[key] for key in ("at", "senderId", "senderName") if key in value}
    return {**told, **quoted, "text": masked(str(value.get("text", "")))}


def turn_chars(turn: Turn) -> int:
    """Return how many characters a turn is, as the size of a chunk is measured."""
    return sum(len(line.text) + 1 for line in turn.lines if _is_read(line))


def has_answer(turn: Turn) -> bool:
    """Whether anything is left of what was answered."""
    return any(line.part == "answer" for line in turn.lines)


def labelled(summary: SessionSummary) -> dict[str, Decision | Discussion]:
    """Return the entries of a summary by the labels under which prompts show them."""
    decisions = {f"k{place}": one for place, one in enumerate(summary.key_decisions, start=1)}
    return decisions | {
        f"p{place}": one for place, one in enumerate(summary.past_discussions, start=1)
    }


def summary_lines(summary: SessionSummary) -> tuple[str, ...]:
    """Return a summary as a summarizing prompt shows it, one JSON object per line."""
    lines = [json_line({"id": label, **_told(one)}) for label, one in labelled(summary).items()]
    if summary.current_discussion:
        lines.append(json_line({"current_discussion": summary.current_discussion}))
    return tuple(lines)


def _told(entry: Decision | Discussion) -> dict[str, Any]:
    if isinstance(entry, Decision):
        return {"decision": entry.text, "authorId": entry.author_id, "binds": entry.binds}
    return {key: value for key, value in asdict(entry).items() if value}


# What is shown to a turn.


def binding_lines(summary: SessionSummary) -> tuple[str, ...]:
    """Return the decisions that bind, as a turn shows them."""
    return tuple(_decision_line(one) for one in summary.key_decisions if one.binds)


def background_lines(summary: SessionSummary) -> tuple[str, ...]:
    """Return all else, as a turn shows it."""
    lines = [_decision_line(one) for one in summary.key_decisions if not one.binds]
    lines += [json_line(_told(one)) for one in summary.past_discussions]
    if summary.current_discussion:
        lines.append(json_line({"current": summary.current_discussion}))
    return tuple(lines)


def _decision_line(decision: Decision) -> str:
    return json_line({"decision": decision.text, "senderId": decision.author_id})


# What is answered.


def _refs(value: object) -> tuple[int, ...]:
    many = value if isinstance(value, list | tuple) else [value]
    digits = [str(one).strip() for one in many if isinstance(one, int | str)]
    numbers = [int(one) for one in digits if one.isascii() and one.isdigit() and len(one) < 7]
    return tuple(dict.fromkeys(numbers))


def _author(value: object) -> str:
    return str(value).strip() if isinstance(value, int | str) else ""


def _label(value: object) -> str:
    return value.strip().lower() if isinstance(value, str) else ""


def _line(value: object) -> str:
    return single_line(value) if isinstance(value, str) else ""


def _limit(max_chars: int) -> Any:
    return Field(json_schema_extra={"maxLength": max_chars})


Line = Annotated[str, BeforeValidator(_line)]
Refs = Annotated[
    tuple[int, ...], BeforeValidator(_refs), Field(json_schema_extra={"items": {"type": "integer"}})
]
Label = Annotated[str, BeforeValidator(_label)]


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class AnsweredDecision(_Shape):
    """A decision: an old one by its id, or a new one with its author and evidence."""

    id: Label = ""
    text: Annotated[Line, _limit(DECISION_CHARS)] = ""
    authorId: Annotated[str, BeforeValidator(_author)] = ""
    refs: Refs = ()


class Overturned(_Shape):
    """An old decision that does not hold any more, and what says so."""

    id: Label
    refs: Refs = ()


class AnsweredDiscussion(_Shape):
    """A discussion."""

    topic: Annotated[Line, _limit(TOPIC_CHARS)]
    description: Annotated[Line, _limit(DESCRIPTION_CHARS)] = ""
    direction: Annotated[Line, _limit(DIRECTION_CHARS)] = ""
    last_discussed: Day = ""


class SummaryAnswer(_Shape):
    """What a summary answers."""

    key_decisions: list[AnsweredDecision] = []
    overturned: list[Overturned] = []
    past_discussions: list[AnsweredDiscussion] = []
    current_discussion: Annotated[Line, _limit(CURRENT_CHARS)] = ""


@lru_cache(maxsize=1)
def summary_schema() -> dict[str, Any]:
    """Return the JSON schema of an answer, for the prompt and for the endpoint; read-only."""
    return plain_schema(SummaryAnswer)


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, read item by item; nothing of it is believed yet. ``None`` changes nothing."""

    decisions: tuple[AnsweredDecision, ...] | None = None
    overturned: tuple[Overturned, ...] = ()
    discussions: tuple[AnsweredDiscussion, ...] | None = None
    current: str | None = None
    malformed: int = 0
    """How many items could not be read."""


def parse_summary(text: str) -> Answered:
    """Return the last complete object of a model's answer that has a key of a summary.

    Raises:
        AnswerUnusable: there is none.
    """
    for found in reversed(objects_in(text)):
        value = read_object(text, found)
        if value is not None and (fitting := _fitting(value, is_fragment=found.is_fragment)):
            return _answered(fitting[0])
    raise AnswerUnusable("the answer holds no summary")


def _fitting(value: dict[str, Any], *, is_fragment: bool) -> list[dict[str, Any]]:
    """Return the summary that an object is or wraps; one that breaks off is none."""
    if is_fragment:
        return []
    inner = [one for one in value.values() if isinstance(one, dict)]
    return [one for one in (value, *inner) if not one or _has_key(one)][:1]


def _has_key(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("current_discussion"), str) or any(
        isinstance(value.get(key), list)
        for key in ("key_decisions", "overturned", "past_discussions")
    )


def _answered(value: Mapping[str, Any]) -> Answered:
    decisions, bad_decisions = _items(value.get("key_decisions"), AnsweredDecision)
    overturned, bad_overturned = _items(value.get("overturned"), Overturned)
    discussions, bad_discussions = _items(value.get("past_discussions"), AnsweredDiscussion)
    current = value.get("current_discussion")
    return Answered(
        decisions=decisions,
        overturned=overturned or (),
        discussions=discussions,
        current=single_line(current) if isinstance(current, str) else None,
        malformed=bad_decisions + bad_overturned + bad_discussions,
    )


def _items(value: object, shape: type[Any]) -> tuple[tuple[Any, ...] | None, int]:
    """Return the well-formed items of a list, and how many others there are."""
    if not isinstance(value, list):
        return None, 0
    read: list[Any] = []
    for one in value:
        try:
            read.append(shape.model_validate(one))
        except ValidationError:
            continue
    return tuple(read), len(value) - len(read)


# What is believed.


@dataclass(slots=True)
class _Merge:
    """A summary in the making."""

    previous: SessionSummary
    shown: SummaryInput
    refusals: list[Refusal] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Merged:
    """What becomes of a summary."""

    summary: SessionSummary
    refusals: tuple[Refusal, ...]
    """Why items of the answer came to nothing; nobody's words are in it."""


def merged(previous: SessionSummary, answer: Answered, shown: SummaryInput) -> Merged:
    """Return the summary that an answer makes of the one before.

    Whatever it says, a decision has an author who said so in what the model read; one that binds
    goes only if somebody who may do so overturned it; and the limits hold.
    """
    merge = _Merge(previous, shown, ["not-an-object"] * answer.malformed)
    summary = SessionSummary(
        _within_limit(_decisions(merge, answer)),
        _discussions(merge, answer.discussions),
        _current(merge, answer.current),
    )
    return Merged(summary, tuple(merge.refusals))


def without_overturned(
    previous: SessionSummary, overturned: Iterable[Overturned], shown: SummaryInput
) -> SessionSummary:
    """Return a summary without the decisions that were overturned by who may do so."""
    gone = _overturned(_Merge(previous, shown), overturned)
    kept = tuple(one for one in previous.key_decisions if one not in gone)
    return replace(previous, key_decisions=kept)


def _decisions(merge: _Merge, answer: Answered) -> list[Decision]:
    gone = _overturned(merge, answer.overturned)
    standing = [one for one in merge.previous.key_decisions if one not in gone]
    if answer.decisions is None:
        return standing
    named, new = _named(merge, answer.decisions, standing)
    # What was background may be decided by somebody who may do so: then that is what stands.
    retold = {_folded(one.text) for one in new}
    standing = [one for one in standing if _folded(one.text) not in retold]
    dropped = [one for one in standing if one not in named]
    if 2 * len(dropped) > len(merge.previous.key_decisions):
        merge.refusals.append("dropped-unnamed")
        return [*standing, *new]
    # What binds goes only by who may overturn it.
    return [*(one for one in standing if one in named or one.binds), *new]


def _overturned(merge: _Merge, overturned: Iterable[Overturned]) -> set[Decision]:
    gone: set[Decision] = set()
    entries = labelled(merge.previous)
    for one in overturned:
        decision = entries.get(one.id)
        if not isinstance(decision, Decision):
            merge.refusals.append("unknown-id")
        elif any(_may_overturn(said.voice, decision) for said in _said(merge, one.refs)):
            gone.add(decision)
        else:
            merge.refusals.append("may-not-overturn")
    return gone


def _may_overturn(voice: Voice, decision: Decision) -> bool:
    return voice.may_decide or voice.sender_id == decision.author_id or not decision.binds


def _said(merge: _Merge, refs: Iterable[int]) -> list[Said]:
    return [merge.shown.said[ref] for ref in refs if ref in merge.shown.said]


def _named(
    merge: _Merge, answered: Iterable[AnsweredDecision], standing: Collection[Decision]
) -> tuple[set[Decision], list[Decision]]:
    """Return which of the old decisions an answer keeps, and the new ones that are believed."""
    named: set[Decision] = set()
    new: dict[str, Decision] = {}
    entries = labelled(merge.previous)
    texts = {_folded(one.text): one for one in standing}
    for item in answered:
        old = entries.get(item.id) or texts.get(_folded(_prefixed(item.text)))
        if isinstance(old, Decision):
            named.add(old)
            if not old.binds and isinstance(found := _retold(merge, item, old), Decision):
                new[_folded(found.text)] = found
        elif item.id and not item.text:
            merge.refusals.append("unknown-id")
        elif isinstance(found := _new_decision(merge, item), Decision):
            new.setdefault(_folded(found.text), found)
        else:
            merge.refusals.append(found)
    return named, list(new.values())


def _retold(merge: _Merge, item: AnsweredDecision, old: Decision) -> Decision | None:
    """Return a decision that was background as somebody has decided it whose word binds."""
    if _folded(_prefixed(item.text)) != _folded(old.text):
        return None
    found = _new_decision(merge, item)
    return found if isinstance(found, Decision) and found.binds else None


def _new_decision(merge: _Merge, item: AnsweredDecision) -> Decision | Refusal:
    text = clipped(_prefixed(item.text), DECISION_CHARS) if item.text else ""
    if not text:
        return "no-prefix"
    if is_sensitive(text):
        return "sensitive"
    if item.authorId not in {said.voice.sender_id for said in merge.shown.said.values()}:
        return "no-author"
    own = [s for s in _said(merge, item.refs) if s.voice.sender_id == item.authorId]
    if not own:
        return "no-evidence"
    return Decision(
        text=text,
        author_id=item.authorId,
        evidence=tuple(dict.fromkeys(said.row_id for said in own)),
        binds=any(said.voice.may_decide for said in own),
    )


def _prefixed(text: str) -> str:
    """Return a decision as it has to begin, nothing if it begins in no such way."""
    found = _PREFIX.fullmatch(text)
    return f"{DONT if found['dont'] else DO}{found['rule']}" if found else ""


def _folded(text: str) -> str:
    return "".join(text.casefold().split())


def _within_limit(decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """Displace the oldest that does not bind, then the oldest, until there is room."""
    left = list(decisions)
    while len(left) > MAX_DECISIONS:
        left.remove(next((one for one in left if not one.binds), left[0]))
    return tuple(left)


def _discussions(
    merge: _Merge, answered: Sequence[AnsweredDiscussion] | None
) -> tuple[Discussion, ...]:
    if answered is None:
        return merge.previous.past_discussions
    by_topic: dict[str, Discussion] = {}
    for item in answered:
        found = _discussion(item, merge.shown.last_day)
        if isinstance(found, Discussion):
            by_topic[_folded(found.topic)] = found
        else:
            merge.refusals.append(found)
    newest = sorted(by_topic.values(), key=lambda one: one.last_discussed)[-MAX_DISCUSSIONS:]
    return tuple(newest)


def _discussion(item: AnsweredDiscussion, last_day: str) -> Discussion | Refusal:
    if not item.topic:
        return "no-topic"
    if is_sensitive(f"{item.topic}\n{item.description}\n{item.direction}"):
        return "sensitive"
    is_day = _DAY.fullmatch(item.last_discussed) and item.last_discussed <= last_day
    return Discussion(
        clipped(item.topic, TOPIC_CHARS),
        clipped(item.description, DESCRIPTION_CHARS),
        clipped(item.direction, DIRECTION_CHARS),
        item.last_discussed if is_day else last_day,
    )


def _current(merge: _Merge, answered: str | None) -> str:
    if answered is None:
        return merge.previous.current_discussion
    if is_sensitive(answered):
        merge.refusals.append("sensitive")
        return ""
    return clipped(answered, CURRENT_CHARS)


# What bears on a request.


def choices(summary: SessionSummary) -> dict[str, str]:
    """Return the entries that a turn may do without, by label, each as one line.

    Decisions that bind are none of them: those are always shown.
    """
    found = {
        label: json_line({"id": label, **_told(one)})
        for label, one in labelled(summary).items()
        if not (isinstance(one, Decision) and one.binds)
    }
    if summary.current_discussion:
        found["c"] = json_line({"id": "c", "current": summary.current_discussion})
    return found


def narrowed(summary: SessionSummary, kept: Collection[str]) -> SessionSummary:
    """Return a summary with what binds, and those of the other entries whose labels are kept."""
    dispensable = choices(summary).keys()
    entries = [
        e for label, e in labelled(summary).items() if label in kept or label not in dispensable
    ]
    return SessionSummary(
        tuple(one for one in entries if isinstance(one, Decision)),
        tuple(one for one in entries if isinstance(one, Discussion)),
        summary.current_discussion if "c" in kept else "",
    )

"""Facts of an answer, and the rules that each must pass to be believed.

A rule looks at a claim and names the reason for refusing it, or nothing. See
``docs/memory.md``, "Checks".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bot.memory.answer import AnyFact, DatedFact, TypedFact
from bot.memory.dates import completed, day_of
from bot.memory.evidence import Evidence, Messages, authors_of, is_of_people, proof_of
from bot.memory.masking import is_sensitive
from bot.memory.naming import Names, as_saying, looks_like_id
from bot.memory.verdict import Added, Reason
from bot.memory.wording import max_chars_of
from bot.model import Document, Entry, Stream, StreamMemory, entry_number


@dataclass(frozen=True, slots=True)
class Bench:
    """What every item of an answer is checked against."""

    evidence: Evidence
    names: Names
    authors: Mapping[int, str]
    """The sender of each message row that the entries rest on."""
    opted_out: frozenset[str]


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a part of an answer is about, and what is remembered of them."""

    user_id: str | None
    """``None`` for the group."""
    memory: StreamMemory

    @property
    def stream(self) -> Stream:
        """Where it is remembered."""
        return self.memory.stream

    def entry(self, label: str) -> Entry | None:
        """Return the entry that was shown under ``label``."""
        number = entry_number(label)
        return next((one for one in self.memory.entries if one.number == number), None)


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact as it would be stored, with the messages it names as its proof."""

    document: Document
    text: str
    messages: Messages
    subject: Subject


_Rule = Callable[[Claim, Bench], Reason | None]


def judged_fact(
    fact: AnyFact, document: Document, subject: Subject, bench: Bench
) -> Added | Reason:
    """Return the entry that ``fact`` becomes, or why it becomes none."""
    messages = bench.evidence.messages(fact.refs)
    if messages is None:
        return "refs-unknown"
    is_of_group = subject.user_id is None
    text = _as_told(fact.text, messages) if is_of_group else fact.text
    claim = Claim(document, text, messages, subject)
    for rule in _GROUP_RULES if is_of_group else _PERSON_RULES:
        if reason := rule(claim, bench):
            return reason
    return _accepted(fact, claim)


def _as_told(text: str, messages: Messages) -> str:
    """Return a saying of one of the messages' authors in the one form it is kept in."""
    saying = as_saying(text)
    if saying is None or saying[0] not in authors_of(messages):
        return text
    return f"{saying[0]} 说：{saying[1]}"


def _accepted(fact: AnyFact, claim: Claim) -> Added:
    change = Added(
        stream=claim.subject.stream,
        document=claim.document,
        text=completed(claim.text, claim.messages, max_chars_of(claim.document)),
        proofs=(proof_of(claim.messages),),
        tier="profile" if claim.document in ("profile", "pattern") else "episodic",
        type=fact.type if isinstance(fact, TypedFact) else None,
    )
    if isinstance(fact, DatedFact):
        return replace(change, date=day_of(fact.date, claim.messages))
    return change


def _text_is_missing(claim: Claim, _: Bench) -> Reason | None:
    return None if claim.text else "text-missing"


def _text_is_too_long(claim: Claim, _: Bench) -> Reason | None:
    return "text-too-long" if len(claim.text) > max_chars_of(claim.document) else None


def _is_sensitive(claim: Claim, _: Bench) -> Reason | None:
    return "sensitive" if is_sensitive(claim.text) else None


def _person_is_silent(claim: Claim, _: Bench) -> Reason | None:
    """The person themselves must say something among the refs."""
    is_said = claim.subject.user_id in authors_of(claim.messages)
    return None if is_said else "evidence-missing"


def _people_are_silent(claim: Claim, _: Bench) -> Reason | None:
    return None if any(map(is_of_people, claim.messages)) else "people-missing"


def _names_somebody_absent(claim: Claim, bench: Bench) -> Reason | None:
    """Whoever is named must say something among the refs, unless it is told as a saying."""
    authors = authors_of(claim.messages)
    named = bench.names.named_in(claim.text)
    if any(who & bench.opted_out for who in named):
        return "opted-out"
    if saying := as_saying(claim.text):
        if saying[0] in authors:
            return None
        if looks_like_id(saying[0]):
            return "wrong-speaker"
    return "names-member" if any(not who & authors for who in named) else None


_COMMON_RULES: Sequence[_Rule] = (_text_is_missing, _text_is_too_long, _is_sensitive)
_PERSON_RULES: Sequence[_Rule] = (*_COMMON_RULES, _person_is_silent)
_GROUP_RULES: Sequence[_Rule] = (*_COMMON_RULES, _people_are_silent, _names_somebody_absent)

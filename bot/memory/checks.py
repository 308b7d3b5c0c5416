"""What of an answer is believed: each item needs the right person's words, shown by code.

An item that fails is dropped and counted, the rest goes on. See ``docs/memory.md``, "Checks".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.memory.answer import DatedFact, Item, Parsed, Part, Retraction
from bot.memory.claims import Bench, Subject, judged_fact
from bot.memory.dates import completed
from bot.memory.delta import settled, wording_of
from bot.memory.evidence import Messages, authors_of, evidence_of, proof_of, stream_of
from bot.memory.masking import is_sensitive
from bot.memory.naming import Names, is_name
from bot.memory.verdict import (
    Added,
    Change,
    Checked,
    Counts,
    Reason,
    Rejection,
    Summarised,
    Superseded,
)
from bot.memory.wording import cut_at_sentence, summary_max_chars
from bot.model import Batch, Document, Entry, StreamMemory
from bot.text import clipped

WHY_MAX_CHARS = 100

_DOCUMENTS: Mapping[str, Document] = {
    "profile": "profile",
    "pattern": "pattern",
    "daily": "daily",
    "memory": "memory",
}


@dataclass(frozen=True, slots=True)
class _Accepted:
    path: str
    change: Change
    date_is_moved: bool


_Verdict = _Accepted | Rejection


def check(
    parsed: Parsed,
    batch: Batch,
    *,
    authors: Mapping[int, str],
    opted_out: frozenset[str] = frozenset(),
) -> Checked:
    """Return the changes that an answer makes, and why the rest of it makes none.

    Args:
        parsed: the answer.
        batch: what the model was shown; no change leaves its streams.
        authors: the sender of each message row that the batch's entries rest on; they may
            retract those of the group.
        opted_out: members who do not want to be remembered; no group entry names them.
    """
    bench = bench_of(batch, authors, opted_out)
    verdicts: list[_Verdict] = [*parsed.rejections]
    for part in parsed.parts:
        verdicts += _part_verdicts(part, bench)
    accepted = [verdict for verdict in verdicts if isinstance(verdict, _Accepted)]
    rejections = tuple(verdict for verdict in verdicts if isinstance(verdict, Rejection))
    refused = sum(rejection.leaves for rejection in rejections)
    moved = sum(verdict.date_is_moved for verdict in accepted)
    return Checked(
        changes=settled((verdict.change for verdict in accepted), batch.memories),
        rejections=rejections,
        counts=Counts(len(accepted) + refused, refused, moved),
    )


def bench_of(batch: Batch, authors: Mapping[int, str], opted_out: frozenset[str]) -> Bench:
    """Return what the items of an answer to ``batch`` are checked against."""
    evidence = evidence_of(batch)
    names = {user_id: set(known) for user_id, known in batch.names.items()}
    for message in batch.messages:
        if message.sender_id in evidence.speakers:
            names.setdefault(message.sender_id, set()).add(message.sender_name)
    for user_id in opted_out:
        names.setdefault(user_id, set())
    return Bench(evidence, Names(names, evidence.automata), authors, opted_out)


def without_named(
    changes: Sequence[Change], batch: Batch, opted_out: frozenset[str]
) -> tuple[Change, ...]:
    """Return the changes of an answer that stand once more people do not want to be remembered.

    No group entry names them; what is theirs falls with what they said.
    """
    names = bench_of(batch, {}, opted_out).names

    def is_named(change: Change) -> bool:
        if change.stream.scope.kind != "group" or not isinstance(change, Added | Summarised):
            return False
        return any(who & opted_out for who in names.named_in(change.text))

    return tuple(change for change in changes if not is_named(change))


def _part_verdicts(part: Part, bench: Bench) -> list[_Verdict]:
    if reason := _wrong_sender(part, bench):
        leaves = len(part.items) + len(part.rejections)
        return [Rejection(part.path, reason, max(1, leaves))]
    subject = _subject(part, bench.evidence.batch)
    verdicts: list[_Verdict] = [*part.rejections]
    verdicts += [_verdict(item, subject, bench) for item in part.items]
    return _without_contradictions(verdicts, subject.memory)


def _wrong_sender(part: Part, bench: Bench) -> Reason | None:
    """Return why a member's part has no subject; a name is never resolved."""
    sender_id = part.sender_id
    if sender_id is None or sender_id in bench.evidence.speakers:
        return None
    if not sender_id:
        return "sender-missing"
    if sender_id in bench.evidence.automata:
        return "sender-bot"
    return "sender-name" if is_name(sender_id, bench.evidence.batch.names) else "sender-absent"


def _subject(part: Part, batch: Batch) -> Subject:
    stream = stream_of(batch, part.sender_id)
    shown = (memory for memory in batch.memories if memory.stream == stream)
    user_id = None if stream.scope.kind == "group" else stream.scope.id
    return Subject(user_id, next(shown, StreamMemory(stream)))


def _verdict(item: Item, subject: Subject, bench: Bench) -> _Verdict:
    match item.value:
        case str() as text:
            outcome = _judged_summary(text, subject, bench)
        case Retraction() as retraction:
            outcome = _judged_retraction(retraction, subject, bench)
        case fact:
            outcome = judged_fact(fact, _DOCUMENTS[item.key], subject, bench)
    if isinstance(outcome, str):
        return Rejection(item.path, outcome)
    return _Accepted(item.path, outcome, _is_moved(item, outcome))


def _is_moved(item: Item, change: Change) -> bool:
    if not isinstance(item.value, DatedFact) or not isinstance(change, Added):
        return False
    return item.value.date != change.date


def _without_contradictions(verdicts: Sequence[_Verdict], memory: StreamMemory) -> list[_Verdict]:
    """Refuse to retract what the same part says again: it would be lost."""
    return [
        Rejection(verdict.path, "retract-contradicted")
        if isinstance(verdict, _Accepted) and _is_contradicted(verdict.change, verdicts, memory)
        else verdict
        for verdict in verdicts
    ]


def _is_contradicted(change: Change, verdicts: Sequence[_Verdict], memory: StreamMemory) -> bool:
    if not isinstance(change, Superseded):
        return False
    [wording] = {wording_of(one) for one in memory.entries if one.number == change.entry_number}
    return any(
        wording_of(verdict.change) == wording
        for verdict in verdicts
        if isinstance(verdict, _Accepted) and isinstance(verdict.change, Added)
    )


def _judged_summary(text: str, subject: Subject, bench: Bench) -> Change | Reason:
    if subject.user_id is None:
        messages = bench.evidence.of_people()
    else:
        messages = bench.evidence.of_speaker(subject.user_id)
    if not messages:
        return "people-missing" if subject.user_id is None else "evidence-missing"
    max_chars = summary_max_chars(subject.stream.scope.kind)
    text = cut_at_sentence(text, max_chars)
    if not text:
        return "text-too-long"
    if is_sensitive(text):
        return "sensitive"
    if subject.user_id is None and (reason := _summary_names(text, subject, bench)):
        return reason
    line = completed(text, messages[::-1], max_chars)
    return Summarised(subject.stream, line, proof_of(messages))


def _summary_names(text: str, subject: Subject, bench: Bench) -> Reason | None:
    """A group's summary names those who speak in the batch, or whom it named before."""
    before = frozenset[str]().union(*bench.names.named_in(subject.memory.summary.text))
    known = (bench.evidence.speakers | before) - bench.opted_out
    named = bench.names.named_in(text)
    if any(who & bench.opted_out for who in named):
        return "opted-out"
    return "names-member" if any(not who & known for who in named) else None


def _judged_retraction(retraction: Retraction, subject: Subject, bench: Bench) -> Change | Reason:
    entry = subject.entry(retraction.id)
    if entry is None:
        return "entry-unknown"
    messages = bench.evidence.messages(retraction.refs)
    if messages is None:
        return "refs-unknown"
    if not _may_retract(entry, messages, subject, bench):
        return "retract-unsupported"
    why = "" if is_sensitive(retraction.why) else clipped(retraction.why, WHY_MAX_CHARS)
    return Superseded(entry.stream, entry.number, proof_of(messages), why)


def _may_retract(entry: Entry, messages: Messages, subject: Subject, bench: Bench) -> bool:
    speaking = authors_of(messages)
    if subject.user_id is not None:
        return subject.user_id in speaking
    rests_on = {
        bench.authors[row] for proof in entry.proofs for row in proof if row in bench.authors
    }
    return len(speaking) >= 2 or bool(speaking & (rests_on | bench.evidence.batch.admins))

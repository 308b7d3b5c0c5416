"""Changes to memory: folded into one another, and checked again when they are written. Pure.

See ``docs/memory.md``, "Checks" and "Evidence".
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from bot.memory.verdict import Added, Change, Checked, Proof, Proven, Summarised, Superseded
from bot.memory.wording import same_wording
from bot.model import Document, Entry, Stream, StreamMemory

Wording = tuple[Stream, Document, str | None, str]
"""What makes two items one: the document of a stream, and equal text.

The third is the day, in ``daily`` alone: what happens again on another day is another event.
"""


def wording_of(item: Added | Entry) -> Wording:
    """Return what ``item`` says and where; equal for items that are one entry."""
    day = item.date if item.document == "daily" else None
    return item.stream, item.document, day, same_wording(item.text)


def settled(changes: Iterable[Change], memories: Iterable[StreamMemory]) -> tuple[Change, ...]:
    """Return ``changes`` without what says nothing new about ``memories`` or is said twice.

    An addition that an entry or an earlier addition already says becomes a proof of it; a proof
    that is already there goes, and so does what concerns an entry that no longer stands. The
    last summary of a stream stays, unless it is the one there is. An entry that is both proven
    and superseded stays as it is.
    """
    known = _Known(memories)
    for change in changes:
        known.take(change)
    return tuple(known.changes())


@dataclass(slots=True)
class _Known:
    """What is known of the memories, and what of the changes is new to them."""

    memories: Iterable[StreamMemory]
    entries: dict[tuple[Stream, int], Entry] = field(default_factory=dict)
    by_wording: dict[Wording, Entry] = field(default_factory=dict)
    summaries: dict[Stream, str] = field(default_factory=dict)
    added: dict[Wording, Added] = field(default_factory=dict)
    proven: dict[Proven, None] = field(default_factory=dict)
    restated: set[tuple[Stream, int]] = field(default_factory=set)
    summarised: dict[Stream, Summarised] = field(default_factory=dict)
    superseded: dict[tuple[Stream, int], Superseded] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for memory in self.memories:
            self.summaries[memory.stream] = memory.summary.text
            for entry in memory.entries:
                self.entries[entry.stream, entry.number] = entry
                self.by_wording.setdefault(wording_of(entry), entry)

    def take(self, change: Change) -> None:
        match change:
            case Added():
                self._add(change)
            case Proven():
                self._prove(change)
            case Summarised():
                self.summarised[change.stream] = change
            case Superseded():
                self.superseded.setdefault((change.stream, change.entry_number), change)

    def _add(self, change: Added) -> None:
        wording = wording_of(change)
        if entry := self.by_wording.get(wording):
            for proof in change.proofs:
                self._prove(Proven(entry.stream, entry.number, proof))
        elif earlier := self.added.get(wording):
            proofs = tuple(dict.fromkeys([*earlier.proofs, *change.proofs]))
            self.added[wording] = replace(earlier, proofs=proofs)
        else:
            self.added[wording] = change

    def _prove(self, change: Proven) -> None:
        key = change.stream, change.entry_number
        self.restated.add(key)
        if key in self.entries and change.proof not in self.entries[key].proofs:
            self.proven[change] = None

    def changes(self) -> Iterator[Change]:
        yield from self.added.values()
        yield from self.proven
        for stream, change in self.summarised.items():
            if same_wording(change.text) != same_wording(self.summaries.get(stream, "")):
                yield change
        for key, change in self.superseded.items():
            if key in self.entries and key not in self.restated:
                yield change


def recheck(
    changes: Iterable[Change], gone: frozenset[int], memories: Iterable[StreamMemory]
) -> tuple[Change, ...]:
    """Return what of ``changes`` still holds at the moment of writing them.

    Args:
        changes: what the checks let through when the answer came.
        gone: rows of messages that are recalled, erased or of people who opted out by now.
        memories: the streams as they are now; entries may have gone, or come, meanwhile.
    """
    standing = (left for change in changes if (left := _without(change, gone)))
    return settled(standing, memories)


def _without(change: Change, gone: frozenset[int]) -> Change | None:
    match change:
        case Added():
            proofs = standing_proofs(change.proofs, gone)
            return replace(change, proofs=proofs) if proofs else None
        case Summarised():
            return None if gone.intersection(change.message_ids) else change
        case _:
            return None if gone.intersection(change.proof) else change


def merged(first: Checked, second: Checked, memories: Sequence[StreamMemory]) -> Checked:
    """Return the valid items of an answer and of its repair, equal ones once.

    Args:
        first: the answer.
        second: its repair; its summary goes before the other.
        memories: the streams that both were checked against.
    """
    return Checked(
        changes=settled((*first.changes, *second.changes), memories),
        rejections=(*first.rejections, *second.rejections),
        counts=first.counts + second.counts,
    )


def standing_proofs(proofs: Iterable[Proof], gone: frozenset[int]) -> tuple[Proof, ...]:
    """Return the proofs of which no message is ``gone``."""
    return tuple(proof for proof in proofs if gone.isdisjoint(proof))

"""What changes make of a memory, in plain values: what the store does to its rows."""

from collections.abc import Iterable
from dataclasses import replace

from bot.memory.delta import settled
from bot.memory.verdict import Added, Change, Proven, Summarised, Superseded
from bot.model import Entry, StreamMemory, Summary


def applied(memory: StreamMemory, changes: Iterable[Change]) -> StreamMemory:
    """Return ``memory`` after those of ``changes`` that are of its stream."""
    entries = {entry.number: entry for entry in memory.entries}
    number = max(entries, default=0) + 1
    summary = memory.summary
    for change in settled((c for c in changes if c.stream == memory.stream), [memory]):
        match change:
            case Added():
                entries[number] = _entry(change, number)
                number += 1
            case Proven():
                entry = entries[change.entry_number]
                entries[entry.number] = replace(entry, proofs=(*entry.proofs, change.proof))
            case Summarised():
                message_ids = {*summary.message_ids, *change.message_ids}
                summary = Summary(change.text, tuple(sorted(message_ids)))
            case Superseded():
                del entries[change.entry_number]
    return StreamMemory(memory.stream, tuple(entries.values()), summary)


def _entry(change: Added, number: int) -> Entry:
    return Entry(
        number=number,
        stream=change.stream,
        document=change.document,
        text=change.text,
        proofs=change.proofs,
        type=change.type,
        date=change.date,
        tier=change.tier,
        source_task="group",
        created_at=0,
        updated_at=0,
    )

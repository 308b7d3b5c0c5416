"""What a reflection reads: messages and existing memory, as lines that nobody can forge.

See ``docs/memory.md``, "Input". People's text, names and entries enter only inside JSON strings,
one object per line, with sensitive numbers, keys and passwords masked.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

from bot.clock import local_time
from bot.memory.evidence import BOT
from bot.memory.masking import masked
from bot.memory.wording import GROUP_SUMMARY_MAX_CHARS
from bot.model import (
    Batch,
    BatchMessage,
    Chat,
    Document,
    Entry,
    Quoted,
    StreamMemory,
    Summary,
)
from bot.text import clipped, display_name, json_line

QUOTE_CHARS = 200
"""Of a quoted message, so much is shown."""

MEMORY_CHARS = 8_000
"""All existing entries together are shown in so much, so that cost does not grow with age."""

WEEKDAYS = ("星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日")

_DOCUMENTS: tuple[Document, ...] = ("profile", "pattern", "memory", "daily", "note")
_LASTING = frozenset[Document]({"profile", "pattern"})


def prompt_data(
    batch: Batch,
    chat_name: str,
    zone: ZoneInfo,
    message_chars: int,
    memory_chars: int = MEMORY_CHARS,
) -> dict[str, object]:
    """Return the variables that the prompt of ``batch.task`` asks for, its ``schema`` apart.

    Args:
        batch: what is read.
        chat_name: the name of the group or of the person, raw.
        zone: the zone of all local times.
        message_chars: of each message, so much is shown.
        memory_chars: bound of the existing entries, see ``shown_memories``.
    """
    memories = shown_memories(batch.memories, memory_chars)
    data: dict[str, object] = {
        "chat": chat_line(batch.chat, chat_name),
        "lines": batch_lines(batch, zone, message_chars),
    }
    if batch.task == "member-batch":
        return data | {"memory": memory_blocks(memories)}
    return data | {
        "memory": tuple(line for memory in memories for line in memory_lines(memory)),
        "summary": tuple(
            summary_line(memory.summary) for memory in memories if memory.summary.text
        ),
    }


def chat_line(chat: Chat, name: str) -> str:
    """Return which chat a batch comes from, as one JSON object."""
    keys = ("groupId", "groupName") if chat.is_group else ("senderId", "senderName")
    return json_line(dict(zip(keys, (chat.id, _name(name, chat.id)), strict=True)))


def batch_lines(batch: Batch, zone: ZoneInfo, message_chars: int) -> tuple[str, ...]:
    """Return one JSON object for each message of ``batch``, in its order."""
    refs = {message.row_id: message.ref for message in batch.messages}
    return tuple(
        json_line(_message_fields(message, refs, zone, message_chars)) for message in batch.messages
    )


def memory_lines(memory: StreamMemory) -> tuple[str, ...]:
    """Return one JSON object for each entry, document by document, the newest last."""
    return tuple(json_line(_entry_fields(entry)) for entry in _in_reading_order(memory.entries))


def memory_blocks(memories: Iterable[StreamMemory]) -> tuple[str, ...]:
    """Return one JSON object for each person of whom something is remembered."""
    return tuple(
        json_line(_block_fields(memory))
        for memory in memories
        if memory.entries or memory.summary.text
    )


def summary_line(summary: Summary) -> str:
    """Return a stream's summary as one JSON object."""
    return json_line({"summary": _summary_text(summary)})


def shown_memories(
    memories: Sequence[StreamMemory], budget_chars: int = MEMORY_CHARS
) -> tuple[StreamMemory, ...]:
    """Return ``memories`` with those entries only that ``budget_chars`` has room for.

    An entry is whole or absent. Newer ones come before older ones; ``profile`` and ``pattern``
    before the rest, in two thirds of the room or what the rest leaves over. Several streams share
    the room evenly, and what one does not need goes to those with more. Summaries are always
    shown, and not counted: what a model does not see it would replace.
    """
    shown = list(memories)
    left = budget_chars
    fewest_first = sorted(range(len(shown)), key=lambda index: len(memories[index].entries))
    for waiting, index in zip(range(len(shown), 0, -1), fewest_first, strict=True):
        entries = _within(memories[index].entries, left // waiting)
        shown[index] = replace(memories[index], entries=entries)
        left -= _cost(entries)
    return tuple(shown)


def _within(entries: Iterable[Entry], budget_chars: int) -> tuple[Entry, ...]:
    newest_first = sorted(entries, key=_age, reverse=True)
    lasting = [entry for entry in newest_first if entry.document in _LASTING]
    others = [entry for entry in newest_first if entry.document not in _LASTING]
    first = _fitting(lasting, budget_chars * 2 // 3)
    second = first + _fitting(others, budget_chars - _cost(first))
    third = second + _fitting(lasting[len(first) :], budget_chars - _cost(second))
    return tuple(sorted(third, key=lambda entry: entry.number))


def _fitting(entries: Iterable[Entry], budget_chars: int) -> list[Entry]:
    """Return the first of ``entries``, as many as there is room for."""
    fitting: list[Entry] = []
    for entry in entries:
        budget_chars -= _cost([entry])
        if budget_chars < 0:
            break
        fitting.append(entry)
    return fitting


def _cost(entries: Iterable[Entry]) -> int:
    """How many characters entries take in a prompt, their line breaks included."""
    return sum(len(json_line(_entry_fields(entry))) + 1 for entry in entries)


def _age(entry: Entry) -> tuple[int, int]:
    return entry.updated_at, entry.number


def _in_reading_order(entries: Iterable[Entry]) -> list[Entry]:
    def place(entry: Entry) -> tuple[int, str, int, int]:
        return (_DOCUMENTS.index(entry.document), entry.date or "", *_age(entry))

    return sorted(entries, key=place)


def _entry_fields(entry: Entry) -> dict[str, str]:
    fields: dict[str, str] = {"id": entry.label, "document": entry.document}
    if entry.type:
        fields["type"] = entry.type
    if entry.date:
        fields["date"] = entry.date
    return fields | {"text": masked(entry.text)}


def _block_fields(memory: StreamMemory) -> dict[str, Any]:
    return {
        "senderId": memory.stream.scope.id,
        "entries": [_entry_fields(entry) for entry in _in_reading_order(memory.entries)],
        "summary": _summary_text(memory.summary),
    }


def _summary_text(summary: Summary) -> str:
    return clipped(masked(summary.text), GROUP_SUMMARY_MAX_CHARS)


def _message_fields(
    message: BatchMessage, refs: Mapping[int, int], zone: ZoneInfo, message_chars: int
) -> dict[str, Any]:
    at = local_time(message.sent_at, zone)
    fields: dict[str, Any] = {
        "ref": message.ref,
        "at": at.strftime("%Y-%m-%d %H:%M"),
        "weekday": WEEKDAYS[at.weekday()],
        "direction": message.direction,
        "senderId": BOT if message.direction == "outbound" else message.sender_id,
        "senderName": _name(message.sender_name, message.sender_id),
        "text": _shortened(message.text, message_chars),
    }
    if message.quote:
        fields["quote"] = _quote_fields(message.quote, refs)
    return fields


def _quote_fields(quote: Quoted, refs: Mapping[int, int]) -> dict[str, Any]:
    ref = None if quote.row_id is None else refs.get(quote.row_id)
    return {
        "senderId": quote.sender_id,
        **({} if ref is None else {"ref": ref}),
        "text": _shortened(quote.text, QUOTE_CHARS),
    }


def _shortened(text: str, max_chars: int) -> str:
    """Masked first: half of a number is a number still."""
    return clipped(masked(text), max_chars)


def _name(name: str, fallback: str) -> str:
    return display_name(masked(name), fallback)

"""A snapshot: the memory of one scope as a chat's prompts show it, and when it is made anew.

Pure. See ``docs/memory.md``, "Snapshots".
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from typing import Literal

from bot.model import Snapshot, SnapshotEntry, entry_label
from bot.text import single_line

RefreshReason = Literal["first", "stale", "reach", "compacted", "expired", "aged", "over_budget"]
"""Why a snapshot is made anew: the chat has none; what it shows was forgotten or corrected; a
stream it was made from may not be read any more, or the person's other groups were let in or shut
out; the conversation was compacted; nobody used it for the time to live; memory has changed and it
is old; it is longer than the budget by now."""

UNDATED = "未注明日期"
"""Over daily entries without a day."""

READ_LINE_CHARS = 20
"""How long a line is taken to be at least, on average, when entries are read."""

MIN_LINE_CHARS = 10
"""No line of an entry is shorter: a dash, its label and a line break."""

MIN_READ = 20
"""Of each document at least so many entries are read, however small the budget."""


@dataclass(frozen=True, slots=True)
class SnapshotRules:
    """The settings that say how long a snapshot may be used, and how long it may be."""

    ttl_ms: int
    max_age_ms: int
    budget_chars: int
    """Frame included."""

    @property
    def read_per_document(self) -> int:
        """So many of the newest entries of a document are read: more hardly ever fit."""
        return max(MIN_READ, self.budget_chars // READ_LINE_CHARS)


@dataclass(frozen=True, slots=True)
class ScopeNow:
    """The part of a scope that a turn may read, as it stands now."""

    streams: frozenset[int]
    """The rows of the streams that the turn may read."""
    across: bool
    """Whether the person's other groups are among what may be read."""
    version: int
    """It grows with every change of these streams, and with every new one."""
    compactions: int
    """How often the conversation has been compacted."""


def refresh_reason(
    snapshot: Snapshot | None, scope: ScopeNow, now: int, rules: SnapshotRules
) -> RefreshReason | None:
    """Return why a snapshot has to be made anew, or ``None`` if the kept one is used as it is.

    A changed memory alone is no reason, so that the beginning of a prompt stays still: it waits
    for any of the others. Where nothing was shown there is nothing to keep still.

    Args:
        snapshot: what is kept, ``None`` if nothing is.
        scope: what the turn may read now.
        now: UTC milliseconds.
        rules: the settings.
    """
    if snapshot is None:
        return "first"
    if snapshot.stale:
        return "stale"
    if snapshot.across != scope.across or not snapshot.streams <= scope.streams:
        return "reach"
    has_changed = snapshot.version != scope.version
    if not snapshot.text:
        return "first" if has_changed else None
    if len(snapshot.text) > rules.budget_chars:
        return "over_budget"
    if snapshot.compactions != scope.compactions:
        return "compacted"
    # One from after ``now`` is a set-back clock's: how old it is cannot be told.
    if now < max(snapshot.active_at, snapshot.injected_at):
        return "expired"
    if now - snapshot.active_at > rules.ttl_ms:
        return "expired"
    return "aged" if has_changed and now - snapshot.injected_at > rules.max_age_ms else None


def is_showable(snapshot: Snapshot, scope: ScopeNow, rules: SnapshotRules) -> bool:
    """Whether a kept text may still be shown if no new one can be made."""
    is_allowed = not snapshot.stale and snapshot.streams <= scope.streams
    return is_allowed and len(snapshot.text) <= rules.budget_chars


@dataclass(frozen=True, slots=True)
class SnapshotContents:
    """All that a snapshot may show of a scope."""

    summaries: tuple[str, ...] = ()
    """One for each stream, that of the turn's own chat first."""
    entries: tuple[SnapshotEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Packed:
    """What fits."""

    text: str
    """Many lines; empty if there is nothing to show."""
    shown: tuple[int, ...]
    """The rows of the entries in it."""
    hash: str
    """Equal for equal contents, however they are laid out."""


_Section = Literal["pinned", "summary", "profile", "pattern", "daily", "memory"]
_TITLES: dict[_Section, str] = {
    "pinned": "置顶：",
    "summary": "概要：",
    "profile": "档案：",
    "pattern": "习惯：",
    "daily": "近事：",
    "memory": "长期记忆：",
}
"""In the order in which they are packed and shown."""

_LAST: tuple[_Section, ...] = ("profile", "pattern", "daily", "memory")
"""Behind these there are only entries, none of which is shorter than ``MIN_LINE_CHARS``."""


@dataclass(frozen=True, slots=True)
class _Item:
    section: _Section
    line: str
    entry: SnapshotEntry | None = None

    @property
    def heading(self) -> str:
        """The heading of the day under which it stands, if it stands under one."""
        if self.section != "daily" or self.entry is None:
            return ""
        return f"## {self.entry.date or UNDATED}"

    @property
    def place(self) -> tuple[int, str, int, int]:
        """Where it is shown within its section: days in order, the newest last."""
        if self.entry is None:
            return (0, "", 0, 0)
        date = self.entry.date if self.section in ("daily", "memory") else ""
        return (0, date or "", self.entry.number, self.entry.row_id)


def pack(contents: SnapshotContents, budget_chars: int) -> Packed:
    """Return what fits into ``budget_chars``: whole entries or nothing of them.

    Pins come first, then summaries, then ``profile`` and ``pattern``, then ``daily``, then
    ``memory``, each with the newest first. What does not fit is passed over, and what comes after
    it is tried.
    """
    taken: list[_Item] = []
    seen: set[str] = set()
    # Every line is counted with a break behind it, which the last one does not have.
    left = budget_chars + 1
    for section, told in _in_packing_order(contents):
        if left < MIN_LINE_CHARS and section in _LAST:
            break
        item = _item(section, told, left)
        if item is None:
            continue
        headings = {_TITLES[item.section], item.heading} - {""} - seen
        cost = sum(len(line) + 1 for line in (*headings, item.line))
        if cost <= left:
            taken.append(item)
            seen |= headings
            left -= cost
    return Packed(
        text="\n".join(_laid_out(taken)),
        shown=tuple(item.entry.row_id for item in taken if item.entry),
        hash=_hash_of(taken),
    )


def _item(section: _Section, told: SnapshotEntry | str, room: int) -> _Item | None:
    """Return what is to be shown as a line, ``None`` if it is empty or longer than ``room``."""
    if isinstance(told, str):
        line = single_line(told)
        return _Item(section, f"- {line}") if line else None
    # Most texts are clean already, and of most there is seen at once that they do not fit.
    if len(told.text) > room and told.text.isprintable():
        return None
    text = single_line(told.text)
    return _Item(section, _line(told, text), told) if text else None


def _in_packing_order(
    contents: SnapshotContents,
) -> Iterator[tuple[_Section, SnapshotEntry | str]]:
    """Yield what may be shown, raw: summaries and entries."""
    entries = sorted(contents.entries, key=_newness, reverse=True)
    entries.sort(key=lambda entry: entry.is_elsewhere)
    by_section: dict[_Section, list[SnapshotEntry]] = {section: [] for section in _TITLES}
    for entry in entries:
        if section := _section_of(entry):
            by_section[section].append(entry)
    for section, of_section in by_section.items():
        if section == "summary":
            for summary in contents.summaries:
                yield section, summary
        for entry in of_section:
            yield section, entry


def _newness(entry: SnapshotEntry) -> tuple[str, int, int, int]:
    return (entry.date or "", entry.updated_at, entry.number, entry.row_id)


def _line(entry: SnapshotEntry, text: str) -> str:
    """Return an entry as one line; ``text`` is its own as one line."""
    has_day_heading = entry.document == "daily" and not entry.pinned
    about = entry.type or ("" if has_day_heading else entry.date)
    words = (f"#{entry_label(entry.number)}", about, text)
    return f"- {' '.join(word for word in words if word)}"


def _section_of(entry: SnapshotEntry) -> _Section | None:
    """Return where an entry stands; notes stand nowhere."""
    if entry.document == "note":
        return None
    return "pinned" if entry.pinned else entry.document


def _laid_out(items: Sequence[_Item]) -> Iterator[str]:
    """Yield the lines: each title once, each day once, the newest last."""
    for section, title in _TITLES.items():
        of_section = [item for item in items if item.section == section]
        if of_section:
            yield title
        of_section.sort(key=lambda item: item.place)
        for heading, of_day in groupby(of_section, key=lambda item: item.heading):
            if heading:
                yield heading
            yield from (item.line for item in of_day)


def _hash_of(items: Sequence[_Item]) -> str:
    """Return what is equal for equal contents: of their fields, not of how they are laid out."""
    fields = sorted(json.dumps(_fields(item), ensure_ascii=False) for item in items)
    return sha256("\n".join(fields).encode("utf-8", "surrogatepass")).hexdigest()


def _fields(item: _Item) -> list[object]:
    entry = item.entry
    if entry is None:
        return [item.line]
    text = single_line(entry.text)
    return [entry.number, entry.document, entry.type, entry.date, entry.pinned, text]

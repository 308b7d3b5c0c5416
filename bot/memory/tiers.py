"""Tiers: which notes rise, which end, and which are folded into one.

Nothing here touches what a reflection wrote, or what is pinned. See ``docs/memory.md``, "Tiers".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.memory.policy import MemoryPolicy
from bot.memory.wording import ENTRY_MAX_CHARS
from bot.model import Document, Entry, ProfileType, Tier
from bot.text import clipped

KEEP_WORKING = 8
"""So many of the newest working notes stay as they are."""

_LEAST_CHARS = 6
"""A note of which less could be shown is only counted."""


@dataclass(frozen=True, slots=True)
class Rise:
    """A note that goes to another tier, and where it then stands."""

    entry: Entry
    tier: Tier
    document: Document
    type: ProfileType | None


@dataclass(frozen=True, slots=True)
class Consolidation:
    """What becomes of a stream's notes."""

    promoted: tuple[Rise, ...] = ()
    expired: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True)
class Fold:
    """A note that stands for several from now on."""

    text: str
    """One line, within the limit of an entry."""
    sources: tuple[Entry, ...]
    """Oldest first."""


def consolidated(entries: Iterable[Entry], policy: MemoryPolicy, now: int) -> Consolidation:
    """Return which notes of a stream rise, and which of the others have had their time.

    What rises is looked at first, so that nothing expires that was to rise; its time in the new
    tier begins now.

    Args:
        entries: the living entries of one stream.
        policy: that of the chat it comes from.
        now: UTC milliseconds.
    """
    notes = [entry for entry in entries if entry.document == "note"]
    promoted = tuple(rise for note in notes if (rise := _rise(note, policy, now)))
    risen = {rise.entry.number for rise in promoted}
    rest = (note for note in notes if note.number not in risen)
    return Consolidation(promoted, tuple(n for n in rest if _is_over(n, policy, now)))


def _rise(note: Entry, policy: MemoryPolicy, now: int) -> Rise | None:
    promotion = policy.promotion(note.tier)
    if promotion is None:
        return None
    if note.uses < promotion.uses or now - note.tier_since < promotion.after_ms:
        return None
    if promotion.to != "profile":
        return Rise(note, promotion.to, "note", None)
    return Rise(note, "profile", "profile", "note" if note.stream.scope.kind == "member" else None)


def _is_over(note: Entry, policy: MemoryPolicy, now: int) -> bool:
    ttl_ms = policy.ttl_ms(note.tier)
    if ttl_ms is None or note.pinned:
        return False
    # Said again, it begins again.
    return now - max(note.tier_since, note.updated_at) >= ttl_ms


def compact_working(entries: Iterable[Entry], keep: int = KEEP_WORKING) -> Fold | None:
    """Return the note that stands for a stream's older working notes, ``None`` if there are none.

    Args:
        entries: the living entries of one stream.
        keep: how many of the newest stay; pinned ones stay apart.
    """
    notes = [e for e in entries if e.document == "note" and e.tier == "working" and not e.pinned]
    notes.sort(key=lambda note: (note.updated_at, note.number))
    sources = tuple(notes[: max(0, len(notes) - keep)])
    return Fold(_fold_text(sources), sources) if sources else None


def _fold_text(sources: Sequence[Entry]) -> str:
    """Return one line that names all sources and says as much of each as there is room for."""
    names = [f"#{source.label} " for source in sources]
    room = ENTRY_MAX_CHARS - len("；".join(names))
    shares = _shares([len(source.text) for source in sources], room)
    if room < 0 or min(shares) < min(_LEAST_CHARS, *(len(s.text) for s in sources)):
        return _counted(sources)
    pairs = zip(names, sources, shares, strict=True)
    return "；".join(f"{name}{clipped(source.text, share)}" for name, source, share in pairs)


def _shares(lengths: Sequence[int], room: int) -> list[int]:
    """Return how many characters each gets: short ones all, the others evenly what is left."""
    shares = [0] * len(lengths)
    by_length = sorted(range(len(lengths)), key=lengths.__getitem__)
    for place, index in enumerate(by_length):
        shares[index] = max(0, min(lengths[index], room // (len(lengths) - place)))
        room -= shares[index]
    return shares


def _counted(sources: Sequence[Entry]) -> str:
    """Return what tells of more notes than one line can hold: how many, and the newest of them."""
    head = f"{len(sources)} 条便签 #{sources[0].label}…#{sources[-1].label}："
    texts, room = [], ENTRY_MAX_CHARS - len(head)
    for source in reversed(sources):
        text = clipped(source.text, ENTRY_MAX_CHARS // 5)
        room -= len(text) + 1
        if room < 0:
            break
        texts.append(text)
    return head + "；".join(texts)

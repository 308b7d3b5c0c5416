"""The recall pack: what of memory bears on a message, within a budget of tokens.

Pure. See ``docs/memory.md``, "Recall pack".
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bot.memory.policy import Weights
from bot.text import ELLIPSIS, single_line, whole_characters

FLOOR = 0.2
"""What scores less is not packed, unless it is pinned or a working note."""

MIN_CUT_CHARS = 8
"""A line that would keep less of its text is left out instead of cut."""


TOKENS_PER_ENTRY = 64
"""A budget allows for one entry that fits the question for so many of its tokens."""

LEAST_RECALLED = 4


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """How many tokens a text may cost, and by which measure."""

    tokens: int
    """0 and less: nothing at all."""
    estimate: Callable[[str], int]
    """Estimates the tokens of a text; what is longer never costs less than its own beginning."""

    def admits(self, text: str) -> bool:
        """Whether a text costs no more than that."""
        return self.estimate(text) <= self.tokens


@dataclass(frozen=True, slots=True)
class Recalled:
    """An entry that may be packed."""

    row_id: int
    word: str
    """What it is, such as its document: one word."""
    label: str
    """How it is named within its scope."""
    text: str
    score: float
    """From 0 to 1."""
    day: str = ""
    """The local day that it tells of, or was last said on; empty if none is known."""
    said_at: int = 0
    """UTC milliseconds."""
    is_pinned: bool = False
    is_note: bool = False
    """A working note, of the conversation that still goes on."""
    fits: bool = False
    """Its words alone would have it packed; that it means something else does not hide it."""

    @property
    def bears(self) -> bool:
        """Whether it has to do with the message, or is there anyway."""
        return self.is_pinned or self.is_note or self.fits or self.score >= FLOOR

    @property
    def head(self) -> str:
        """What stands before its text."""
        words = (f"- [{self.word} #{self.label} {self.score:.2f}]", self.day)
        return "".join(f"{word} " for word in words if word)


@dataclass(frozen=True, slots=True)
class ContextPack:
    """What was packed: the lines, and the entries that they show."""

    lines: tuple[str, ...] = ()
    entries: tuple[Recalled, ...] = ()
    tokens: int = 0
    """What ``render`` costs by the budget's measure."""

    def render(self) -> str:
        """Return one line per entry, ``""`` if there is none."""
        return "\n".join(self.lines)

    @property
    def row_ids(self) -> tuple[int, ...]:
        """The rows of the entries that it shows, whose use counts once the prompt is sent."""
        return tuple(entry.row_id for entry in self.entries)


def most_recalled(budget_tokens: int) -> int:
    """Return how many entries that fit the question are worth a look within a budget.

    Pins and working notes are apart. The best few say what matters; a pack that is always full
    costs its tokens in every turn.
    """
    return max(LEAST_RECALLED, budget_tokens // TOKENS_PER_ENTRY) if budget_tokens > 0 else 0


def recency(age_ms: int, half_life_ms: float) -> float:
    """Return 1 for what was said just now, and half as much for each half-life that has passed."""
    return 0.5 ** (max(0, age_ms) / half_life_ms)


def score(
    weights: Weights, *, recency: float, keyword: float, vector: float | None = None
) -> float:
    """Return the weighted mean of how recent and how close something is, from 0 to 1.

    Args:
        weights: only their proportion matters.
        recency: from 0 to 1, as the others.
        keyword: how well its words fit.
        vector: how near its meaning is; without vectors the other two share the whole weight.
    """
    parts = [(weights.recency, recency), (weights.keyword, keyword)]
    if vector is not None:
        parts.append((weights.vector, vector))
    whole = sum(weight for weight, _ in parts)
    return sum(weight * part for weight, part in parts) / whole if whole > 0 else 0.0


def pack(
    candidates: Iterable[Recalled], budget: TokenBudget, shown: frozenset[int] = frozenset()
) -> ContextPack:
    """Return what fits, pins first, then by score, then the newer first.

    A line is whole, cut or left out, and what comes after it is tried. Only one that alone exceeds
    the whole budget is cut, so that no line is cut to make room for others.

    Args:
        candidates: each entry once.
        budget: it bounds the rendered text, line breaks included.
        shown: the rows of the entries that the prompt shows already.
    """
    taken: list[tuple[str, Recalled]] = []
    text = ""
    for candidate in sorted(candidates, key=_precedence):
        if candidate.bears and candidate.row_id not in shown:
            before = f"{text}\n" if text else ""
            if line := _fitting(candidate, before, budget):
                taken.append((line, candidate))
                text = before + line
    lines, entries = tuple(line for line, _ in taken), tuple(entry for _, entry in taken)
    return ContextPack(lines, entries, budget.estimate(text) if text else 0)


def _precedence(candidate: Recalled) -> tuple[bool, float, int, int]:
    # Scores are shown with two digits, and what looks equal is in order of age.
    return (
        not candidate.is_pinned,
        -round(candidate.score, 2),
        -candidate.said_at,
        -candidate.row_id,
    )


def _fitting(candidate: Recalled, before: str, budget: TokenBudget) -> str:
    """Return the line of an entry as it fits behind what is packed, ``""`` if it does not."""
    told = single_line(candidate.text)
    line = candidate.head + told
    if not told:
        return ""
    if budget.admits(before + line):
        return line
    return "" if budget.admits(line) else _cut(candidate.head, told, before, budget)


def _cut(head: str, told: str, before: str, budget: TokenBudget) -> str:
    """Return a line with the longest beginning of its text that fits, ``""`` if that is short."""
    least, most = 0, len(told)
    while least < most:
        middle = (least + most + 1) // 2
        if budget.admits(f"{before}{head}{told[:middle]}{ELLIPSIS}"):
            least = middle
        else:
            most = middle - 1
    kept = told[: whole_characters(told, least)] if least else ""
    return f"{head}{kept}{ELLIPSIS}" if len(kept) >= MIN_CUT_CHARS else ""

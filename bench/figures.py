"""Numbers for people: percentiles, ratios, and bounds that are kept or not."""

import os
import platform
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value below which ``percent`` of ``values`` lie (nearest rank)."""
    ordered = sorted(values)
    rank = max(0, min(len(ordered) - 1, round(percent / 100 * len(ordered)) - 1))
    return ordered[rank]


@dataclass(frozen=True, slots=True)
class Times:
    """Durations of one kind, in milliseconds."""

    values: tuple[float, ...]

    @property
    def p50(self) -> float:
        """The median."""
        return percentile(self.values, 50)

    @property
    def p95(self) -> float:
        """Nineteen of twenty are no longer."""
        return percentile(self.values, 95)

    def __str__(self) -> str:
        return f"p50 {self.p50:7.2f} ms   p95 {self.p95:7.2f} ms   n {len(self.values)}"


def title(text: str) -> None:
    """Print a heading."""
    print(f"\n== {text}", flush=True)


def line(text: str) -> None:
    """Print one line at once, so that a long run shows how far it is."""
    print(f"   {text}", flush=True)


def verdict(what: str, value: float, bound: float, *, unit: str = "", least: bool = False) -> None:
    """Print a value beside the bound that it should keep: at most ``bound``, or at least."""
    is_kept = value >= bound if least else value <= bound
    sign = "≥" if least else "≤"
    mark = "kept" if is_kept else "MISSED"
    line(f"{what:<58} {value:8.2f}{unit}   wanted {sign} {bound:g}{unit}   {mark}")


def spread(values: Sequence[float]) -> str:
    """Return the median with the extremes of repeated runs, which show how noisy it was."""
    return f"{median(values):,.2f} ({min(values):,.2f} to {max(values):,.2f})"


def machine() -> str:
    """Return one line on where this runs and how busy it is."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, load {load}"
    )

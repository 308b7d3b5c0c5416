"""``python -m bench [name|all] [--short]``: the names are those of ``MEASUREMENTS``, and retrieval.

``retrieval`` may be followed by folders of labelled chats.
"""

import argparse
import signal
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Protocol

from loguru import logger

from bench import (
    backlog,
    ingest,
    latency,
    meaning,
    memory,
    prompts,
    reflection,
    retrieval,
    search,
    startup,
    year,
)
from bench.figures import machine
from bot.paths import ROOT

FOLDER = ROOT / "data" / "bench"


class Measurement(Protocol):
    """Prints what it measured."""

    def __call__(self, folder: Path, *, short: bool = False) -> None: ...


MEASUREMENTS: Mapping[str, Measurement] = {
    "ingest": ingest.measure,
    "latency": latency.measure,
    "startup": startup.measure,
    "memory": memory.measure,
    "reflection": reflection.measure,
    "year": year.measure,
    "prompts": prompts.measure,
    "search": search.measure,
    "meaning": meaning.measure,
    "backlog": backlog.measure,
}


def of_retrieval(sets: Sequence[Path]) -> Measurement:
    """Return the measurement of some sets of chats, or of the own one if there are none."""

    def measure(folder: Path, *, short: bool = False) -> None:
        retrieval.measure(folder, sets or [retrieval.OWN_SET])

    return measure


def main() -> int:
    """Run what the command line names; 0 unless something could not be run."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "what", nargs="?", choices=[*MEASUREMENTS, "retrieval", "all"], default="all"
    )
    parser.add_argument("sets", nargs="*", type=Path, help="folders with chats, of retrieval")
    parser.add_argument("--short", action="store_true", help="fewer rounds, for a first look")
    arguments = parser.parse_args()
    # As by Ctrl-C: no program that was started stays behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    logger.disable("bot")
    print(f"{date.today().isoformat()}: {machine()}")
    for name, measure in {**MEASUREMENTS, "retrieval": of_retrieval(arguments.sets)}.items():
        if arguments.what in (name, "all"):
            measure(FOLDER, short=arguments.short)
    return 0


if __name__ == "__main__":
    sys.exit(main())

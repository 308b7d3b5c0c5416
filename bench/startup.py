"""Start-up: from the start of the process until its port accepts, beside a bare NoneBot."""

from pathlib import Path
from statistics import median

from bench.figures import line, spread, title, verdict
from bench.million import working_copy
from bench.programs import bare_echo, qunyi

WANTED_SECONDS = 3.0
WANTED_OVER_BARE_SECONDS = 1.0


def measure(folder: Path, *, short: bool = False) -> None:
    """Print how long both take, started in turn."""
    title("start-up until the port accepts, on 1,000,000 messages")
    database = working_copy(folder, "run.db")
    bare: list[float] = []
    own: list[float] = []
    busy: dict[str, list[float]] = {}
    # The first of each only warms the caches of files and of compiled modules.
    for _ in range(1 + (3 if short else 9)):
        for program, found in ((bare_echo(folder), bare), (qunyi(folder, database), own)):
            with program:
                found.append(program.startup_seconds)
                busy.setdefault(program.name, []).append(program.cpu_seconds)
    for leftover in folder.glob("run.db*"):
        leftover.unlink()
    del bare[0], own[0]
    line(f"bare NoneBot: {spread(bare)} s")
    line(f"Qunyi:        {spread(own)} s")
    for name, seconds in busy.items():
        line(f"processor time of {name}, which other work disturbs less: {spread(seconds[1:])} s")
    verdict("start-up", median(own), WANTED_SECONDS, unit=" s")
    over = median(mine - theirs for mine, theirs in zip(own, bare, strict=True))
    verdict("start-up over a bare NoneBot", over, WANTED_OVER_BARE_SECONDS, unit=" s")
    line(f"ratio: {median(own) / median(bare):.2f} of a bare NoneBot")

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
    for _ in range(3 if short else 9):
        with bare_echo(folder) as program:
            bare.append(program.startup_seconds)
        with qunyi(folder, database) as program:
            own.append(program.startup_seconds)
    database.unlink()
    line(f"bare NoneBot: {spread(bare)} s")
    line(f"Qunyi:        {spread(own)} s")
    verdict("start-up", median(own), WANTED_SECONDS, unit=" s")
    over = median(mine - theirs for mine, theirs in zip(own, bare, strict=True))
    verdict("start-up over a bare NoneBot", over, WANTED_OVER_BARE_SECONDS, unit=" s")
    line(f"ratio: {median(own) / median(bare):.2f} of a bare NoneBot")

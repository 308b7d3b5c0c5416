"""``python -m bot`` with a command: run to its end in an environment that holds nothing else."""

import asyncio
import os
import sys
from dataclasses import dataclass

from bot.config import variables
from tests.e2e.harness import ROOT

COMMAND_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended."""

    status: int
    output: str
    errors: str

    @property
    def lines(self) -> list[str]:
        return self.output.splitlines()

    def line(self, part: str) -> str:
        """Return the only line of the output that holds ``part``."""
        (found,) = [line for line in self.lines if part in line]
        return found


async def command(*arguments: str, **environ: str) -> Outcome:
    """Run ``python -m bot`` with ``arguments`` and no variables but these."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "bot", *arguments),
        cwd=ROOT,
        # Blank is the default, whatever the developer's own .env says.
        env={"PATH": os.environ["PATH"], **dict.fromkeys(variables(), ""), **environ},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(COMMAND_SECONDS):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    encoding = environ.get("PYTHONIOENCODING", "utf-8")
    return Outcome(process.returncode or 0, output.decode(encoding), errors.decode(encoding))

"""Doctor: is everything there that the bot needs, and what to paste into the client.

It looks and changes nothing, also while the bot runs: no file is made, no row written.
"""

import io
import logging
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping

from bot.app import model_config
from bot.checks.database import database_findings
from bot.checks.environment import environment_findings
from bot.checks.finding import Finding, State
from bot.checks.mcp import mcp_findings
from bot.checks.models import model_findings
from bot.checks.port import port_finding
from bot.clock import Clock
from bot.config import Config
from bot.guidance import connection_guide
from bot.llm.routing import Routes
from bot.store.inspection import find_holder


async def diagnose(config: Config, clock: Clock) -> int:
    """Check everything, print it, and return 0 if the bot can run, else 1."""
    _prepare_output()
    counts: Counter[State] = Counter()
    async for finding in findings(config, clock):
        counts[finding.state] += 1
        _write(str(finding))
    _write("")
    _write(verdict(counts))
    _write("")
    for line in connection_guide(config):
        _write(line)
    return 1 if counts[State.FAULT] else 0


async def findings(config: Config, clock: Clock) -> AsyncIterator[Finding]:
    """Yield everything there is to say, the slow part last."""
    # First: closing the database would hide the answer.
    holder = find_holder(config.database_path)
    for finding in environment_findings(config, clock.now()):
        yield finding
    async for finding in database_findings(config, clock.now()):
        yield finding
    yield await port_finding(config, holder)
    for finding in mcp_findings(config):
        yield finding
    async for finding in model_findings(Routes(model_config(config)), clock):
        yield finding


def verdict(counts: Mapping[State, int]) -> str:
    """Return the closing line."""
    faults, warnings = counts.get(State.FAULT, 0), counts.get(State.WARNING, 0)
    if faults:
        return (
            f"{State.FAULT.value} 现在不能运行：先解决上面 {faults} 处 {State.FAULT.value}"
            f" | The bot cannot run: mend what is marked {State.FAULT.value} first."
        )
    if warnings:
        return (
            f"{State.WARNING.value} 可以运行，有 {warnings} 处提醒：见上面的 {State.WARNING.value}"
            f" | The bot can run; see what is marked {State.WARNING.value}."
        )
    return f"{State.GOOD.value} 一切正常 | All is well."


def _prepare_output() -> None:
    """Let a terminal that lacks a character show another one, and keep logs out of the report."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    logging.getLogger("bot").addHandler(logging.NullHandler())


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()

"""What the composition root hands to the plugins before there is a program."""

import os
from dataclasses import dataclass

import nonebot

from bot.clock import Clock, SystemClock
from bot.config import Config, load_config
from bot.paths import ROOT


@dataclass(frozen=True, slots=True)
class Given:
    """What the program is made of, where that is not the environment and the wall clock."""

    config: Config
    clock: Clock
    looks: bool = True
    """Whether work is done by the wall clock. Whoever moves another clock has it done, by
    ``bot.worker.tick`` and ``bot.consolidate.tend``."""


def hand_over(given: Given) -> None:
    """Say what the program is to be made of, before the server starts."""
    nonebot.get_app().state.given = given


def given() -> Given:
    """Return what was handed over, or the usual: ``nb run`` hands nothing over."""
    found = getattr(nonebot.get_app().state, "given", None)
    return found or Given(load_config(ROOT, os.environ), SystemClock())

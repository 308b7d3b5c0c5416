"""A life of talking and reflecting without end, to be killed: ``python -m tests.memory.talker``.

It prints ``ready`` once it has begun.
"""

import asyncio
import itertools
import os
import random
import sys
from pathlib import Path

from bot.clock import SystemClock
from bot.llm.protocol import ModelAnswer, ModelRequest
from bot.llm.scripted import ScriptedModel
from bot.simulate import VirtualClock
from bot.worker import free_own_leases
from tests.memory.workshop import Workshop, diary, open_workshop


class SlowModel(ScriptedModel):
    """Takes a moment to answer, so that a kill meets it in the middle of one."""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        await asyncio.sleep(random.uniform(0, 0.02))
        return await super().complete(request)


async def talk(shop: Workshop) -> None:
    """Say things, and now and then take one back."""
    for number in itertools.count():
        [row] = await shop.hear(f"第{os.getpid()}之{number}句", by=str(30_001 + number % 3))
        if number % 17 == 5:
            await shop.recall(row)
        await asyncio.sleep(0.001)


async def reflect(shop: Workshop) -> None:
    """Look for what is due as fast as one can."""
    while True:
        await shop.tick()
        await asyncio.sleep(0.001)


async def live(root: Path) -> None:
    """Talk and reflect until the end."""
    clock = VirtualClock(SystemClock().now())
    settings = {"memoryMemberBatchMessages": 7, "memoryIdleMinutes": 0.01}
    settings |= {"memoryGroupMaxWaitMinutes": 0.01, "memoryMaxBatchMessages": 12}
    async with open_workshop(root, model=SlowModel(diary), clock=clock, settings=settings) as shop:
        await free_own_leases(shop.app)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.gather(talk(shop), reflect(shop), _pass_time(clock))


async def _pass_time(clock: VirtualClock) -> None:
    while True:
        await asyncio.sleep(0.002)
        await clock.advance(0.5)


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1])))

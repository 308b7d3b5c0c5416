"""Resident memory: after many events it is what it was after few."""

import asyncio
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from bench.crowd import BOT, Crowd, crowd, message_id, said, sentence
from bench.figures import line, title, verdict
from bench.million import world_of
from bench.programs import Program, qunyi
from bot.simulate import OneBotClient, RawEvent, events, segments

FEW, MANY = 10_000, 100_000
SAMPLES = (FEW, 25_000, 50_000, 75_000, MANY)
WINDOW = 512
"""So many messages may be on their way; the next wait until these are stored, as people do not
say a thousand things before the first is heard."""
CHUNK = 64
MOST_PER_SECOND = 400
"""As fast as they come. A row is stored before all about its event is done, so that in a flood what
is still to be done would be measured as well."""

SETTLE_SECONDS = 2.0
POLL_SECONDS = 0.005
PATIENCE_SECONDS = 60
WANTED_GROWTH = 1.10


def mixture(everyone: Crowd, count: int) -> Iterator[RawEvent]:
    """Yield events of many kinds, none addressed to the bot; each message is new."""
    dice = random.Random(11)
    makers: list[Callable[[random.Random, Crowd, int, int], RawEvent]] = [
        _text,
        _picture,
        _quote,
        _mention,
        _card,
        _recall,
        _join,
        _reaction,
    ]
    weights = (70, 8, 5, 4, 3, 2, 2, 6)
    for number in range(1, count + 1):
        (maker,) = dice.choices(makers, weights)
        group_id = everyone.busy_group_ids(dice, 1)[0]
        yield maker(dice, everyone, group_id, number)


def _now() -> int:
    return time.time_ns() // 1_000_000


def _text(dice: random.Random, everyone: Crowd, group_id: int, number: int) -> RawEvent:
    return said(dice, everyone, group_id, number, _now())


def _picture(dice: random.Random, everyone: Crowd, group_id: int, number: int) -> RawEvent:
    content = [segments.image(f"{number:08X}.jpg", summary="[图片]"), segments.face(178, "斜眼笑")]
    return said(dice, everyone, group_id, number, _now(), content)


def _quote(dice: random.Random, everyone: Crowd, group_id: int, number: int) -> RawEvent:
    earlier = message_id(max(1, number - dice.randrange(1, 200)))
    content = [segments.reply(earlier), segments.text(sentence(dice))]
    return said(dice, everyone, group_id, number, _now(), content)


def _mention(dice: random.Random, everyone: Crowd, group_id: int, number: int) -> RawEvent:
    other = everyone.speaker(dice, group_id)
    content = [segments.at(other.user_id), segments.text(f" {sentence(dice)}")]
    return said(dice, everyone, group_id, number, _now(), content)


def _card(dice: random.Random, everyone: Crowd, group_id: int, number: int) -> RawEvent:
    user_id = everyone.speaker(dice, group_id).user_id
    card = f"新名片{dice.randrange(500)}"
    return events.group_card(BOT.user_id, group_id, user_id, card, "", at=_now())


def _recall(dice: random.Random, everyone: Crowd, group_id: int, number: int) -> RawEvent:
    user_id = everyone.speaker(dice, group_id).user_id
    earlier = message_id(max(1, number - dice.randrange(1, 50)))
    return events.group_recall(BOT.user_id, group_id, user_id, earlier, at=_now())


def _join(dice: random.Random, everyone: Crowd, group_id: int, number: int) -> RawEvent:
    user_id = everyone.speaker(dice, group_id).user_id
    return events.group_increase(BOT.user_id, group_id, user_id, at=_now())


def _reaction(dice: random.Random, everyone: Crowd, group_id: int, number: int) -> RawEvent:
    return events.notice(
        BOT.user_id,
        "group_msg_emoji_like",
        at=_now(),
        group_id=group_id,
        user_id=everyone.speaker(dice, group_id).user_id,
        message_id=message_id(max(1, number - 1)),
        likes=[{"emoji_id": "66", "count": 1}],
        is_add=True,
    )


class Crossing:
    """Delivers events, no faster than they are stored, and knows how far it is."""

    def __init__(self, client: OneBotClient, database: Path) -> None:
        self._client = client
        self._db = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        self._events = mixture(crowd(), MANY)
        self._messages = 0

    async def deliver(self, count: int) -> None:
        """Deliver the next ``count`` events, and wait until all of their messages are rows."""
        began = time.monotonic()
        for start in range(0, count, CHUNK):
            await asyncio.sleep(max(0.0, began + start / MOST_PER_SECOND - time.monotonic()))
            chunk = list(islice(self._events, min(CHUNK, count - start)))
            self._messages += sum(event["post_type"] == "message" for event in chunk)
            await self._client.deliver_many(chunk)
            await self._until_stored(self._messages - WINDOW)
        await self._until_stored(self._messages)

    async def _until_stored(self, count: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._stored() < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{count} messages were sent, and {self._stored()} are stored")
            await asyncio.sleep(POLL_SECONDS)

    def _stored(self) -> int:
        # Ids count up from 1 in a new database, and reading the last one costs nothing.
        (newest,) = self._db.execute("SELECT coalesce(max(id), 0) FROM messages").fetchone()
        return newest

    def close(self) -> None:
        """Let go of the database."""
        self._db.close()


async def _resident(program: Program, database: Path, samples: Sequence[int]) -> list[float]:
    """Return the resident MiB after so many events each."""
    async with OneBotClient(program.endpoint, world_of(crowd())) as client:
        crossing = Crossing(client, database)
        found: list[float] = []
        done = 0
        for sample in samples:
            began = time.perf_counter()
            await crossing.deliver(sample - done)
            rate = (sample - done) / (time.perf_counter() - began)
            await asyncio.sleep(SETTLE_SECONDS)
            found.append(program.resident_mib)
            line(f"after {sample:>7,} events: {found[-1]:7.1f} MiB   ({rate:,.0f} events/s)")
            done = sample
        crossing.close()
        return found


def measure(folder: Path, *, short: bool = False) -> None:
    """Print what the program holds as it works on."""
    samples = tuple(sample // 10 for sample in SAMPLES) if short else SAMPLES
    title("resident memory over the socket, on a database that begins empty")
    shutil.rmtree(folder / "memory", ignore_errors=True)
    database = folder / "memory" / "run.db"
    with qunyi(folder, database) as program:
        line(f"after start:          {program.resident_mib:7.1f} MiB")
        found = asyncio.run(_resident(program, database, samples))
    shutil.rmtree(folder / "memory", ignore_errors=True)
    what = f"after {samples[-1]:,} events over after {samples[0]:,}"
    verdict(what, found[-1] / found[0], WANTED_GROWTH)

"""The program gives messages vectors on its own, and takes them away with what it forgets."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.simulate.provider import ModelServer
from tests.e2e.harness import Room, RunningBot, new_room, until

EVERY = "0.2"


def vectors(bot: RunningBot) -> int:
    """Return how many messages have a vector."""
    return bot.rows("SELECT count(*) FROM message_vectors")[0][0]


@pytest.fixture(params=["vectors-small", ""], ids=["endpoint", "bundled"])
async def room(
    request: pytest.FixtureRequest, model_server: ModelServer, tmp_path: Path
) -> AsyncIterator[Room]:
    environ = {"EMBEDDING_MODEL": request.param, "WORKER_INTERVAL_SECONDS": EVERY}
    async with RunningBot(tmp_path, model_server, environ=environ) as bot:
        yield new_room(bot)


async def test_what_is_said_gets_a_vector_and_a_recall_takes_it(room: Room):
    bot = room.bot
    spoken = await bot.scene.say(room.id, room.asker.user_id, "我的门牌是八栋")
    await until(lambda: vectors(bot) == 1, "a vector")
    await bot.scene.recall(spoken.message_id)
    await until(lambda: vectors(bot) == 0, "the end of the vector")
    await bot.scene.say(room.id, room.asker.user_id, "周末去湖边钓鱼")
    await until(lambda: vectors(bot) == 1, "another vector")
    assert "wait for their vectors" not in bot.log

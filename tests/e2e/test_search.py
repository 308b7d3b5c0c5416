"""Searching over the wire: a database that is older than the index is searched after a start."""

import sqlite3
from pathlib import Path

from bot.simulate import Person, World
from bot.simulate.provider import ModelServer
from tests.e2e.harness import BOT, RunningBot, until
from tests.store.rows import indexed, outside

FROZEN = Path(__file__).parents[1] / "migration" / "v4.sql"
MEMBER = Person(30001, "小鱼")
GROUP_ID = 20001


async def test_an_older_database_is_indexed_after_the_start_and_searched(
    models: ModelServer, tmp_path: Path
):
    connection = sqlite3.connect(tmp_path / "qunyi.db")
    connection.executescript(FROZEN.read_text("utf-8"))
    connection.close()
    world = World(BOT)
    world.add_group(GROUP_ID, "钓鱼群", MEMBER)
    async with RunningBot(tmp_path, models, world) as bot:
        whole = "SELECT filled_from = 0 FROM message_index_state"
        await until(lambda: outside(bot.database, whole) == [(1,)], "the whole index")
        assert len(indexed(bot.database)) > 5
        spoken = await bot.scene.say(GROUP_ID, MEMBER.user_id, "/搜 七点")
        assert "明天七点出发" in (await bot.answer_to(spoken)).text

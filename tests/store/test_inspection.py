"""Looking into a database that may be in use: nothing is made, changed or held up."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bot.errors import StoreError
from bot.store.database import Database, open_database
from bot.store.inspection import contents_of, fault_in, find_holder, look_into, schema_of
from tests.store.rows import NOON


def _files(path: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in path.parent.iterdir()}


async def test_a_database_that_is_not_there_is_not_made(path: Path):
    with pytest.raises(StoreError, match=r"qunyi\.db"):
        async with look_into(path):
            pass
    assert _files(path) == {}


async def test_a_path_of_odd_characters_is_that_path(tmp_path: Path):
    odd = tmp_path / "a b%41?#群.db"
    async with open_database(odd, now=NOON):
        pass
    async with look_into(odd) as db:
        assert (await schema_of(db)).version >= 1


async def test_nothing_can_be_written_and_nothing_is_left_behind(path: Path):
    async with open_database(path, now=NOON):
        pass
    before = _files(path)
    with pytest.raises(StoreError, match="readonly"):
        async with look_into(path) as db, db.transaction() as connection:
            await connection.execute("DELETE FROM schema_steps")
    assert _files(path) == before


async def test_what_is_read_is_the_latest_commit_while_another_writes(db: Database, path: Path):
    async with db.transaction() as connection:
        await connection.execute("INSERT INTO accounts VALUES ('10001', 1, 1, NULL)")
        async with look_into(path) as seen:
            assert (await contents_of(seen)).accounts == 0
    async with look_into(path) as seen:
        assert (await contents_of(seen)).accounts == 1


async def test_a_sound_database_has_no_fault_and_a_check_without_time_does_not_know(
    db: Database, path: Path
):
    async with look_into(path) as seen:
        assert await fault_in(seen, seconds=0) is None
        assert await fault_in(seen) == ""


async def test_a_database_of_somebody_else_is_foreign_and_an_empty_one_is_not(path: Path):
    sqlite3.connect(path).close()
    async with look_into(path) as seen:
        assert not (await schema_of(seen)).is_foreign
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    async with look_into(path) as seen:
        assert (await schema_of(seen)).is_foreign


async def test_nobody_holds_a_database_that_is_closed_or_open_in_this_process_alone(
    db: Database, path: Path
):
    assert find_holder(path) is None
    assert find_holder(path.with_name("missing.db")) is None

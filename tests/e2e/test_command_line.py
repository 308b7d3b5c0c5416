"""The command line: its exit statuses, and what it says to whoever typed something wrong."""

from pathlib import Path

from bot.clock import SystemClock
from bot.store.database import open_database
from bot.store.inspection import look_into, schema_of
from tests.e2e.command import command
from tests.e2e.harness import KEY
from tests.store.rows import indexed, said, store


async def test_an_unknown_command_exits_with_2_and_shows_the_usage():
    outcome = await command("nonsense")
    assert outcome.status == 2
    assert "usage: python -m bot" in outcome.errors
    for known in ("run", "doctor", "backup"):
        assert known in outcome.errors


async def test_a_wrong_variable_is_named_before_anything_starts(tmp_path: Path):
    database = tmp_path / "qunyi.db"
    outcome = await command(
        "run", DATABASE_URL=f"sqlite:///{database}", TIMEZONE="Mars/Olympus", OPENAI_API_KEY=KEY
    )
    assert outcome.status == 1
    assert outcome.errors.startswith("TIMEZONE: ")
    assert "Traceback" not in outcome.errors
    assert KEY not in outcome.output + outcome.errors
    assert not database.exists()


async def test_a_database_that_is_none_is_named_when_the_bot_is_started(tmp_path: Path):
    database = tmp_path / "qunyi.db"
    database.write_text("this is a shopping list " * 100)
    outcome = await command("run", DATABASE_URL=f"sqlite:///{database}")
    assert outcome.status == 1
    assert str(database) in outcome.errors
    assert "Traceback" not in outcome.errors


async def test_a_backup_is_a_whole_database_and_never_replaces_a_file(tmp_path: Path):
    database, target = tmp_path / "qunyi.db", tmp_path / "copy.db"
    address = f"sqlite:///{database}"
    async with open_database(database, now=SystemClock().now()):
        written = await command("backup", str(target), DATABASE_URL=address)
    assert written.errors == f"backup written to {target}\n"
    assert (written.status, written.output) == (0, "")
    async with look_into(target) as copy:
        schema = await schema_of(copy)
    assert schema.version == schema.known_version
    assert target.stat().st_mode & 0o777 == 0o600

    before = target.read_bytes()
    refused = await command("backup", str(target), DATABASE_URL=address)
    assert refused.status == 1
    assert str(target) in refused.errors
    assert "exists already" in refused.errors
    assert target.read_bytes() == before


async def test_a_backup_without_a_file_name_exits_with_2():
    outcome = await command("backup")
    assert outcome.status == 2
    assert "file" in outcome.errors


async def test_reindexing_works_with_and_without_a_running_bot(tmp_path: Path):
    database = tmp_path / "qunyi.db"
    address = f"sqlite:///{database}"
    missing = await command("reindex", DATABASE_URL=address)
    assert missing.status == 1
    assert str(database) in missing.errors
    async with open_database(database, now=SystemClock().now()) as db:
        await store(db, said("花生", id="1"), said("猫", id="2"))
        before = indexed(database)
        beside = await command("reindex", DATABASE_URL=address)
        assert indexed(database) == before != {}
        assert not (await store(db, said("花生", id="1")))[0].is_new
    alone = await command("reindex", DATABASE_URL=address)
    assert indexed(database) == before
    for outcome in (beside, alone):
        assert (outcome.status, outcome.output) == (0, "")
        assert outcome.errors.endswith("the index is complete\n")

"""A migrated database of its own for every test of the store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.store.database import Database, open_database
from tests.store.rows import NOON


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the test's database is."""
    return tmp_path / "qunyi.db"


@pytest.fixture
async def db(path: Path) -> AsyncIterator[Database]:
    """An open, migrated, empty database."""
    async with open_database(path, now=NOON) as database:
        yield database

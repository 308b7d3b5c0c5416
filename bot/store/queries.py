"""Loads the named queries of one ``sql/*.sql`` file."""

from pathlib import Path
from typing import Any

import aiosql

from bot.store.sqlite import FetchAllAdapter

SQL_FOLDER = Path(__file__).parent / "sql"


def load(name: str) -> Any:
    """Return the queries of ``sql/<name>.sql``, each a coroutine function of its SQL name."""
    # For type checkers aiosql's own adapters do not fit its protocol either.
    adapter: Any = FetchAllAdapter
    return aiosql.from_path(SQL_FOLDER / f"{name}.sql", adapter, mandatory_parameters=False)

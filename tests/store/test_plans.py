"""Query plans: whatever grows is searched by an index, in every named query there is."""

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from bot.store.database import Database
from bot.store.queries import SQL_FOLDER, load

GROWING = frozenset(
    {
        "messages",
        "turns",
        "turn_lines",
        "session_messages",
        "members",
        "names",
        "memberships",
        "usage",
        "cursors",
    }
)
"""Tables with a row for every message, turn, call or person. All others stay small."""

ALLOWED = {
    "inspection.row_counts": "the doctor counts rows, once and by hand",
}
"""Named queries that may scan a growing table, each with the reason."""

_PLANNED = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
"""What has a plan; pragmas and definitions have none."""

_SCAN = re.compile(r"^(?:SCAN (\w+)|SEARCH (\w+) USING AUTOMATIC)")
"""An automatic index is a scan that builds an index first."""

_NAME = re.compile(r"(?:FROM|JOIN|INTO|UPDATE|,)\s+(\w+)(?:\s+AS\s+(\w+))?", re.IGNORECASE)


@dataclass(frozen=True)
class NamedQuery:
    """One query of ``sql/*.sql``."""

    name: str
    sql: str


class _AnyValue(dict[str, object]):
    def __missing__(self, key: str) -> object:
        return None


def _queries() -> Iterator[NamedQuery]:
    for file in sorted(SQL_FOLDER.glob("*.sql")):
        queries = load(file.stem)
        for name in queries.available_queries:
            sql = getattr(queries, name).sql
            if not name.endswith("_cursor") and sql.upper().startswith(_PLANNED):
                yield NamedQuery(f"{file.stem}.{name}", sql)


QUERIES = {query.name: query for query in _queries()}


def _tables(sql: str) -> dict[str, str]:
    """Return the table that every name in a statement stands for."""
    return {alias or table: table for table, alias in _NAME.findall(sql)}


async def _plan(db: Database, sql: str) -> list[str]:
    async with db.reader() as connection:
        rows = await connection.execute_fetchall(f"EXPLAIN QUERY PLAN {sql}", _AnyValue())
    return [row["detail"] for row in rows]


def _scanned(plan: list[str], sql: str) -> set[str]:
    tables = _tables(sql)
    names = [match[1] or match[2] for step in plan if (match := _SCAN.match(step))]
    return {tables.get(name, name) for name in names} & GROWING


@pytest.mark.parametrize("name", QUERIES)
async def test_no_query_scans_a_table_that_grows(db: Database, name: str):
    query = QUERIES[name]
    plan = await _plan(db, query.sql)
    if name in ALLOWED:
        assert _scanned(plan, query.sql), f"{name} scans nothing any more: {plan}"
    else:
        assert not _scanned(plan, query.sql), plan


@pytest.mark.parametrize(
    "name",
    [
        "messages.recent",
        "messages.newest_with_id",
        "chats.situation",
        "message_search.matches",
        "stretches.up_to",
        "stretches.behind",
        "stretches.latest",
    ],
)
async def test_the_hottest_reads_sort_nothing(db: Database, name: str):
    plan = await _plan(db, QUERIES[name].sql)
    assert not [step for step in plan if "TEMP B-TREE" in step], plan


async def test_what_is_kept_for_a_turn_is_found_without_reading_its_chat(db: Database):
    plan = await _plan(db, QUERIES["messages.kept"].sql)
    assert any("messages_kept" in step for step in plan), plan


async def test_a_scan_is_recognised_behind_an_alias(db: Database):
    sql = "SELECT * FROM turns AS t JOIN messages AS said ON said.text = t.error"
    assert _scanned(await _plan(db, sql), sql) == {"turns", "messages"}


def test_every_growing_table_exists_and_every_exception_is_a_query():
    steps = (SQL_FOLDER.parent / "migrations").glob("*.sql")
    schema = sqlite3.connect(":memory:")
    for step in sorted(steps):
        schema.executescript(step.read_text("utf-8"))
    tables = {row[0] for row in schema.execute("SELECT name FROM sqlite_master")}
    assert tables >= GROWING
    assert QUERIES.keys() >= ALLOWED.keys()

"""Ordered, forward-only migrations: each step is one transaction together with its record.

See ``docs/architecture.md``, "Storage". Steps never delete memory and never skip messages.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import aiosqlite

from bot.errors import MigrationError
from bot.store.queries import load

STEPS_FOLDER = Path(__file__).parent / "migrations"
_sql = load("migrations")


@dataclass(frozen=True, slots=True)
class Step:
    """One migration: its number, its file's name and its text."""

    version: int
    name: str
    script: str


def read_steps(folder: Path = STEPS_FOLDER) -> tuple[Step, ...]:
    """Return all steps in order, numbered 1, 2, 3 …

    Raises:
        MigrationError: a number is missing or given twice.
    """
    files = sorted(folder.glob("[0-9]*.sql"))
    steps = tuple(Step(int(f.name.split("_")[0]), f.stem, f.read_text("utf-8")) for f in files)
    if [step.version for step in steps] != list(range(1, len(steps) + 1)):
        raise MigrationError(f"the steps in {folder.name}/ are not numbered 1, 2, 3 …")
    return steps


def statements(script: str) -> Iterator[str]:
    """Split a script into complete statements; comments stay with the statement below them.

    Raises:
        MigrationError: the last statement has no end.
    """
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if rest := _without_comments(pending):
        raise MigrationError(f"a statement is not complete: {rest[:80]}")


def _without_comments(script: str) -> str:
    lines = (line.strip() for line in script.splitlines())
    return " ".join(line for line in lines if line and not line.startswith("--"))


async def applied_version(connection: aiosqlite.Connection) -> int:
    """Return the number of the last applied step, 0 for an empty database."""
    await _sql.create_record_table(connection)
    return await _sql.applied_version(connection) or 0


async def migrate(
    connection: aiosqlite.Connection, now: int, steps: tuple[Step, ...] | None = None
) -> int:
    """Apply the missing steps and return how many there were.

    Args:
        connection: the writer, in autocommit mode.
        now: UTC milliseconds, kept in each step's record.
        steps: for tests; all shipped steps by default.

    Raises:
        MigrationError: the database is newer than this program, or a step failed; a failed
            step leaves no trace.
    """
    known = read_steps() if steps is None else steps
    version = await applied_version(connection)
    if version > len(known):
        raise MigrationError(
            f"the database has schema {version}, this program knows {len(known)}: "
            "it was written by a newer Qunyi. Update the program, or restore an older backup."
        )
    count = 0
    for step in known[version:]:
        count += await _apply(connection, step, now)
    return count


async def _apply(connection: aiosqlite.Connection, step: Step, now: int) -> int:
    await connection.execute_fetchall("BEGIN IMMEDIATE")
    try:
        # Another process may have applied it while this one waited for the lock.
        if (await _sql.applied_version(connection) or 0) >= step.version:
            await connection.rollback()
            return 0
        for statement in statements(step.script):
            await connection.execute_fetchall(statement)
        await _sql.record_step(connection, version=step.version, name=step.name, applied_at=now)
        await connection.commit()
    except sqlite3.Error as error:
        await connection.rollback()
        raise MigrationError(f"step {step.name} failed: {error}") from error
    except BaseException:
        await connection.rollback()
        raise
    return 1

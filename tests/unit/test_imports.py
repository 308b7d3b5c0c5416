"""Imports point down only, as ``docs/architecture.md``, "Imports", says; pure rooms wait for
nothing."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BELOW = {"model", "errors", "clock", "text"}
"""Everybody may import these."""
PURE = ("conversation", "memory", "onebot", "search")
OUTSIDE = {"aiosqlite", "httpx2", "io", "openai", "os", "pathlib", "socket", "sqlite3"}
OUTSIDE |= {"subprocess", "time"}


def _table() -> dict[str, set[str]]:
    """Return what each room may import, as the document tells it."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.split("\n### Imports\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`bot/.*?) \| (.*?) \|$", section, re.M)
    return {
        room: set(re.findall(r"`(\w+)`", allowed))
        for names, allowed in rows
        for room in re.findall(r"`bot/(\w+)/`", names)
    }


TABLE = _table()
VERBS = {room for room, allowed in TABLE.items() if "plugins" in allowed}


def _sources(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def _imported(path: Path) -> set[str]:
    """Return the modules that a file imports, wherever in it."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    whole = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    parts = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return whole | parts


def _rooms(path: Path) -> set[str]:
    """Return which rooms and files of ``bot`` a file imports."""
    names = (name.split(".") for name in _imported(path))
    return {name[1] for name in names if name[0] == "bot" and len(name) > 1}


def test_the_table_of_imports_has_every_room():
    rooms = {path.parent.name for path in ROOT.glob("bot/*/__init__.py")}
    assert TABLE.keys() == rooms


@pytest.mark.parametrize("room", sorted(TABLE.keys() - VERBS))
def test_a_room_imports_only_what_stands_below_it(room: str):
    allowed = {room} | BELOW | TABLE[room]
    astray = {path.name: _rooms(path) - allowed for path in _sources(f"bot/{room}")}
    assert {name: rooms for name, rooms in astray.items() if rooms} == {}


@pytest.mark.parametrize("name", sorted(BELOW))
def test_what_everybody_may_import_imports_nothing_of_ours(name: str):
    assert _rooms(ROOT / "bot" / f"{name}.py") <= BELOW - {name}


@pytest.mark.parametrize("room", PURE)
def test_a_pure_room_waits_for_nothing_and_reaches_nothing_outside(room: str):
    for path in _sources(f"bot/{room}"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        assert [node.lineno for node in nodes if isinstance(node, ast.Await)] == [], path
        assert {name.split(".")[0] for name in _imported(path)} & OUTSIDE == set(), path


def test_nothing_but_the_edge_knows_of_nonebot_and_nobody_imports_the_edge():
    edge = {ROOT / "bot" / "__main__.py", *_sources("plugins")}
    for path in _sources("bot"):
        tops = {name.split(".")[0] for name in _imported(path)}
        assert "plugins" not in tops or path in edge, path
        assert "nonebot" not in tops or path in edge, path

"""The project's own files: packaging, pins, make targets, and the guard of the tests."""

import ast
import os
import re
import socket
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import bot

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
_pin = re.compile(
    r"^([a-z0-9._-]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.M
)

_registers_something = re.compile(r"= (nonebot\.)?(on(_[a-z_]+)?|get_driver)\(")


def _normal(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def test_every_line_of_the_lock_is_a_pin_with_hashes():
    assert _pin.sub("", LOCK) == ""


def test_the_lock_covers_what_the_project_and_its_tests_ask_for():
    asked = [
        *PROJECT["build-system"]["requires"],
        *PROJECT["project"]["dependencies"],
        *PROJECT["dependency-groups"]["dev"],
    ]
    assert {_normal(one) for one in asked} <= {_normal(name) for name, *_ in _pin.findall(LOCK)}


def test_exact_versions_in_the_project_are_those_of_the_lock():
    pins = {_normal(name): version for name, version, _ in _pin.findall(LOCK)}
    exact = [one for one in PROJECT["dependency-groups"]["dev"] if "==" in one]
    assert {_normal(one): one.split("==")[1] for one in exact}.items() <= pins.items()


def test_every_package_that_is_imported_is_asked_for_by_name():
    asked = {_normal(one) for one in PROJECT["project"]["dependencies"]}
    asked |= {"pydantic-core"}  # a part of pydantic
    providers = packages_distributions()
    imported = {
        _normal(provider)
        for folder in ("bot", "plugins")
        for path in (ROOT / folder).rglob("*.py")
        for name in _imports(path)
        if name not in {"bot", "plugins", *sys.stdlib_module_names}
        for provider in providers[name]
        if not (name == "nonebot" and provider != "nonebot2")
    }
    assert imported <= asked


def _imports(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    whole = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    parts = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.split(".")[0] for name in [*whole, *parts]}


def test_every_plugin_is_in_the_table_that_nb_run_reads():
    table = PROJECT["tool"]["nonebot"]
    modules = {
        f"plugins.{path.stem}": path.read_text(encoding="utf-8")
        for path in (ROOT / "plugins").glob("*.py")
    }
    written = {name for name, source in modules.items() if _registers_something.search(source)}
    assert written <= set(table["plugins"]["@local"])
    adapters = [one["module_name"] for group in table["adapters"].values() for one in group]
    assert adapters == ["plugins.adapter"]


def test_the_changelog_has_the_present_version():
    assert f"\n## [{bot.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_make_help_lists_every_target():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.M)
    assert phony
    told = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert set(re.findall(r"make (\w+)", told)) == set(phony[1].split())


def test_the_ci_script_can_be_run():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=True)


def test_a_test_cannot_reach_another_machine():
    with pytest.raises(RuntimeError, match="tests stay on this machine"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    with pytest.raises(RuntimeError, match="tests stay on this machine"):
        socket.getaddrinfo("models.example", 443)


def test_a_test_can_reach_this_machine():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5).close()
        socket.create_connection(("localhost", server.getsockname()[1]), timeout=5).close()


def test_the_developers_own_keys_are_unknown_to_tests():
    assert not {"OPENAI_API_KEY", "ONEBOT_ACCESS_TOKEN", "HOST"} & os.environ.keys()

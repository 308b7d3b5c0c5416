"""The file of MCP servers, and what of their offers a model is told."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.checks.finding import State
from bot.checks.mcp import mcp_findings
from bot.config import Config
from bot.errors import ConfigError
from bot.mcp.config import Program, ServerConfig, WebAddress, read_servers
from bot.mcp.listing import DESCRIPTION_CHARS, MAX_TOOLS, NAME_CHARS, Offer, listing
from bot.mcp.program import environment
from bot.mcp.servers import cause_of

OBJECT = {"type": "object"}


def written(folder: Path, servers: object, *, raw: str | None = None) -> Path:
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}) if raw is None else raw, "utf-8")
    return path


def problem(folder: Path, servers: object, *, raw: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        read_servers(written(folder, servers, raw=raw))
    assert caught.value.variable == "MCP_CONFIG"
    return caught.value.cause


def test_programs_and_addresses_are_read(tmp_path: Path):
    path = written(
        tmp_path,
        {
            "lib": {"command": "uvx", "args": ["lib"], "env": {"KEY": "a"}, "type": "stdio"},
            "web": {
                "url": "https://tools.example/mcp",
                "headers": {"Authorization": "Bearer b"},
                "members": True,
                "timeoutSeconds": 5,
            },
            "off": {"command": "x", "disabled": True},
        },
    )
    assert read_servers(path) == (
        ServerConfig("lib", Program("uvx", ("lib",), {"KEY": "a"})),
        ServerConfig(
            "web",
            WebAddress("https://tools.example/mcp", {"Authorization": "Bearer b"}),
            members=True,
            timeout_seconds=5.0,
        ),
    )


@pytest.mark.parametrize(
    ("entry", "cause"),
    [
        ({}, "either command or url"),
        ({"command": "a", "url": "https://b.example"}, "either command or url"),
        ({"command": ""}, "command is no text"),
        ({"command": ["a"]}, "command is no text"),
        ({"command": "a", "args": "b"}, "args is no list"),
        ({"command": "a", "args": [1]}, "args is no list"),
        ({"command": "a", "args": ["\0"]}, "args is no list"),
        ({"command": "a", "env": {"A": 1}}, "env is no object"),
        ({"command": "a", "member": True}, "no key 'member'"),
        ({"command": "a", "members": "yes"}, "members is neither"),
        ({"command": "a", "timeoutSeconds": 0}, "timeoutSeconds"),
        ({"command": "a", "timeoutSeconds": True}, "timeoutSeconds"),
        ({"command": "a", "timeoutSeconds": 1e9}, "timeoutSeconds"),
        ({"command": "a", "type": "sse"}, "stdio or http"),
        ({"command": "a", "type": []}, "stdio or http"),
        ({"url": "tools.example"}, "url is no"),
        ({"url": "https://a:b@tools.example"}, "user or password"),
        ({"url": "https://tools.example/a b"}, "url is no"),
        ({"url": 5}, "url is no"),
        ({"url": "https://tools.example", "headers": {"A": "ü"}}, "header"),
        ({"url": "https://tools.example", "headers": {"A": "b\r\nC: d"}}, "header"),
        ({"url": "https://tools.example", "headers": {"a b": "c"}}, "header"),
        ("uvx", "no object"),
    ],
)
def test_what_is_wrong_with_an_entry_is_said_with_its_name(tmp_path: Path, entry, cause: str):
    told = problem(tmp_path, {"lib": entry})
    assert cause in told
    assert "'lib'" in told


def test_all_problems_are_said_at_once(tmp_path: Path):
    told = problem(tmp_path, {"a": {}, "b": {"command": 1}})
    assert "'a'" in told
    assert "'b'" in told


@pytest.mark.parametrize("name", ["", "天气", "a b", "-a", "a" * 25, "a/b", "a\n"])
def test_a_name_that_tools_could_not_have_is_refused(tmp_path: Path, name: str):
    assert "a name has" in problem(tmp_path, {name: {"command": "a"}})


def test_names_that_are_one_to_tools_are_refused(tmp_path: Path):
    told = problem(tmp_path, {"a-b": {"command": "x"}, "A.b": {"command": "y"}})
    assert "'a-b' and 'A.b'" in told


@pytest.mark.parametrize(
    "raw", ["", "{", "[]", "5", '{"servers": {}}', '{"mcpServers": []}', "[" * 100_000]
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, raw: str):
    assert "mcp.json" in problem(tmp_path, None, raw=raw)


def test_secrets_stand_in_no_error_and_no_repr(tmp_path: Path):
    secret = "sk-invented-0123456789"
    assert secret not in problem(tmp_path, {"a": {"command": "x", "env": {"K": secret, "L": 1}}})
    assert secret not in problem(
        tmp_path, {"a": {"url": "https://a.example", "headers": {"K": secret, "L": "ü"}}}
    )
    assert secret not in repr(Program("x", (secret,), {"K": secret}))
    assert secret not in repr(WebAddress(f"https://a.example/?key={secret}", {"K": secret}))


def test_of_our_variables_a_program_gets_two():
    ours = {"PATH": "/bin", "HOME": "/root", "OPENAI_API_KEY": "a", "KEY": "b"}
    assert environment(Program("x", (), {"KEY": "c"}), ours) == {
        "PATH": "/bin",
        "HOME": "/root",
        "KEY": "c",
    }


def test_the_doctor_says_of_each_server_whether_it_can_be_reached(tmp_path: Path):
    servers = {
        "lib": {"command": sys.executable},
        "gone": {"command": "no-such-command-anywhere"},
        "web": {"url": "https://tools.example/mcp?key=secret"},
    }
    found = list(mcp_findings(Config(root=tmp_path, mcp_config=written(tmp_path, servers))))
    assert [one.state for one in found] == [State.GOOD, State.WARNING, State.GOOD]
    assert "secret" not in "".join(map(str, found))
    (wrong,) = mcp_findings(Config(root=tmp_path, mcp_config=written(tmp_path, {"a": {}})))
    assert wrong.state is State.FAULT
    assert list(mcp_findings(Config(root=tmp_path))) == []


def test_without_servers_the_package_is_not_loaded():
    """It takes most of a second, and most programs have no servers."""
    check = "import sys, bot.app, bot.doctor, bot.tools.kit; sys.exit('mcp' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True, cwd=Path(__file__).parents[2])


# Offers


def offer(name: str, words: str = "", schema: Any = OBJECT) -> Offer:
    return Offer(name, words, schema)


def names(*offers: Offer, server: str = "lib") -> list[str]:
    return [spec.name for spec in listing(server, offers).specs.values()]


def test_tools_are_named_after_their_server():
    assert names(offer("read_file"), server="My.Lib") == ["mcp_my_lib_read_file"]


def test_names_that_would_be_equal_or_too_long_are_told_apart():
    long = "x" * 100
    found = names(offer("a-b"), offer("a.b"), offer("A_B"), offer(long), offer(long + "y"))
    assert len(set(found)) == 5
    assert all(len(name) <= NAME_CHARS for name in found)
    assert found[0] == "mcp_lib_a_b"


def test_words_are_cut_and_cleaned():
    (spec,) = listing("lib", [offer("a", "一\r\n二\u202e" + "长" * 5_000)]).specs.values()
    assert spec.description.startswith("一\n二长")
    assert len(spec.description) == DESCRIPTION_CHARS


def test_a_tool_without_words_is_named():
    (spec,) = listing("lib", [offer("a")]).specs.values()
    assert spec.description == "lib 的工具 a"


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "string"},
        {"type": "object", "default": float("nan")},
        {"type": "object", "properties": {"a": {"description": "长" * 10_000}}},
    ],
)
def test_a_schema_of_no_use_is_left_out_and_counted(schema: Any):
    found = listing("lib", [offer("a", schema=schema), offer("b")])
    assert (list(found.specs), found.left_out) == (["b"], 1)


def test_a_thousand_offers_are_not_all_taken():
    found = listing("lib", [offer(f"tool{number}") for number in range(1_000)])
    assert (len(found.specs), found.left_out) == (MAX_TOOLS, 1_000 - MAX_TOOLS)


@given(st.lists(st.text(max_size=80), max_size=12), st.text(alphabet="aB.-_9", max_size=24))
def test_whatever_servers_call_their_tools_models_get_names_they_can_call(
    told: list[str], server: str
):
    found = names(*map(offer, told), server=server)
    assert len(set(found)) == len(found) == len({name for name in told if name})
    for name in found:
        assert name.isascii()
        assert name.replace("_", "a").isalnum()
        assert name == name.lower()
        assert len(name) <= NAME_CHARS


def test_the_first_cause_within_groups_of_errors_is_said():
    inner = ExceptionGroup("a", [ValueError("一\n二\u202e"), TypeError("b")])
    assert cause_of(ExceptionGroup("c", [inner])) == "ValueError: 一 二"
    assert cause_of(TimeoutError()) == "TimeoutError"

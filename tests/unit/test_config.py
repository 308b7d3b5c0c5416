"""Static configuration: where values come from, what is refused, and what .env.example says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.config import Config, load_config, variables
from bot.errors import ConfigError

ROOT = Path(__file__).parents[2]
_listed = re.compile(r"^#? ?([A-Z][A-Z_]+)=(.*)$", re.M)


def _cause(root: Path, **environ: str) -> str:
    with pytest.raises(ConfigError) as raised:
        load_config(root, environ)
    return str(raised.value)


def test_without_any_file_or_variable_the_defaults_hold(tmp_path: Path):
    config = load_config(tmp_path, {})
    assert (config.host, config.port, config.api_timeout) == ("127.0.0.1", 8080, 8)
    assert config.command_start == ("/",)
    assert config.superusers == frozenset()
    assert config.timezone == ZoneInfo("Asia/Shanghai")
    assert config.worker_interval_seconds == 15
    assert config.sqlite_synchronous == "FULL"
    assert config.database_path == tmp_path.resolve() / "data" / "qunyi.db"
    assert config.chat_model is None
    assert config.initial_settings == {}


def test_the_process_wins_over_the_environments_file_which_wins_over_dotenv(tmp_path: Path):
    (tmp_path / ".env").write_text("ENVIRONMENT=dev\nPORT=1\nCHAT_MODEL=base\nMEMORY_MODEL=base\n")
    (tmp_path / ".env.dev").write_text("PORT=2\nCHAT_MODEL=dev\n")
    (tmp_path / ".env.prod").write_text("PORT=4\n")
    config = load_config(tmp_path, {"PORT": "3"})
    assert config.environment == "dev"
    assert (config.port, config.chat_model, config.memory_model) == (3, "dev", "base")
    assert load_config(tmp_path, {"environment": "prod"}).port == 4


def test_without_an_environment_the_file_of_prod_is_read(tmp_path: Path):
    (tmp_path / ".env.prod").write_text("PORT=4\n")
    assert load_config(tmp_path, {}).port == 4


def test_names_are_read_in_any_case(tmp_path: Path):
    (tmp_path / ".env").write_text("chat_model=one\n")
    config = load_config(tmp_path, {"Log_Level": "debug"})
    assert (config.chat_model, config.log_level) == ("one", "DEBUG")


def test_a_blank_value_means_the_default(tmp_path: Path):
    (tmp_path / ".env").write_text("OPENAI_API_KEY=\nPORT= \nSUPERUSERS=\nTIMEZONE\n")
    config = load_config(tmp_path, {"COMMAND_START": ""})
    assert config.openai_api_key is None
    assert (config.port, config.command_start) == (8080, ("/",))


def test_variables_of_others_are_left_alone(tmp_path: Path):
    (tmp_path / ".env").write_text("ANOTHER_PLUGIN_KEY=1\nROOT=/elsewhere\n")
    assert load_config(tmp_path, {"PATH": "/bin"}).root == tmp_path.resolve()


def test_a_file_saved_with_a_byte_order_mark_is_read_whole(tmp_path: Path):
    (tmp_path / ".env").write_bytes(b"\xef\xbb\xbfPORT=9\r\nCHAT_MODEL=m # why\r\n")
    config = load_config(tmp_path, {})
    assert (config.port, config.chat_model) == (9, "m")


@pytest.mark.parametrize(
    "text",
    ['["30001", "30002"]', "[30001, 30002]", "30001,30002", "30001， 30002 ,", "[30002,30001]"],
)
def test_superusers_are_a_json_list_or_numbers_with_commas(tmp_path: Path, text: str):
    assert load_config(tmp_path, {"SUPERUSERS": text}).superusers == {"30001", "30002"}


def test_one_superuser_needs_no_list(tmp_path: Path):
    assert load_config(tmp_path, {"SUPERUSERS": "30001"}).superusers == {"30001"}
    assert load_config(tmp_path, {"SUPERUSERS": '"30001"'}).superusers == {"30001"}


def test_names_and_command_prefixes_keep_their_order(tmp_path: Path):
    config = load_config(tmp_path, {"NICKNAME": "群忆,小忆", "COMMAND_START": '["/", ""]'})
    assert config.nickname == ("群忆", "小忆")
    assert config.command_start == ("/", "")


def test_the_database_lies_under_the_project_or_at_an_absolute_path(tmp_path: Path):
    relative = load_config(tmp_path, {"DATABASE_URL": "sqlite:///x/y.db"})
    absolute = load_config(tmp_path, {"DATABASE_URL": "sqlite:////srv/群忆.db"})
    assert relative.database_path == tmp_path.resolve() / "x" / "y.db"
    assert absolute.database_path == Path("/srv/群忆.db")


def test_postgresql_is_refused_without_repeating_its_password(tmp_path: Path):
    cause = _cause(tmp_path, DATABASE_URL="postgresql://user:hunter2@db.example/qunyi")
    assert cause.startswith("DATABASE_URL: PostgreSQL is not supported yet")
    assert "hunter2" not in cause


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::"])
def test_listening_beyond_this_machine_needs_an_access_token(tmp_path: Path, host: str):
    cause = _cause(tmp_path, HOST=host)
    assert cause.startswith("ONEBOT_ACCESS_TOKEN: missing")
    assert "HOST=127.0.0.1" in cause
    assert load_config(tmp_path, {"HOST": host, "ONEBOT_ACCESS_TOKEN": "t0ken"}).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_listening_on_this_machine_needs_no_access_token(tmp_path: Path, host: str):
    assert load_config(tmp_path, {"HOST": host}).onebot_access_token is None


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ENVIRONMENT", "../x"),
        ("HOST", "example.org"),
        ("PORT", "80a"),
        ("PORT", "0"),
        ("PORT", "65536"),
        ("SUPERUSERS", "小鱼"),
        ("SUPERUSERS", "[true]"),
        ("SUPERUSERS", '["30001"'),
        ("NICKNAME", '{"a": 1}'),
        ("COMMAND_START", "[]"),
        ("API_TIMEOUT", "0"),
        ("API_TIMEOUT", "nan"),
        ("WORKER_INTERVAL_SECONDS", "inf"),
        ("LOG_LEVEL", "loud"),
        ("OPENAI_API_KEY", "key with spaces"),
        ("OPENAI_BASE_URL", "models.example/v1"),
        ("CHAT_BASE_URL", "https://models.example/v1/chat/completions"),
        ("MEMORY_BASE_URL", "https://[bad/v1"),
        ("CHAT_MODEL", "a\nb"),
        ("CHAT_FALLBACK_MODELS", '[{"a": 1}]'),
        ("DATABASE_URL", "data/qunyi.db"),
        ("DATABASE_URL", "sqlite://"),
        ("DATABASE_URL", "sqlite:///:memory:"),
        ("DATABASE_URL", "sqlite:///data/"),
        ("DATABASE_URL", "sqlite:///a.db?mode=ro"),
        ("SQLITE_SYNCHRONOUS", "OFF"),
        ("TIMEZONE", "Asia"),
        ("TIMEZONE", "../etc/passwd"),
        ("TIMEZONE", "Mars/Olympus"),
        ("INITIAL_SETTINGS", "{"),
        ("INITIAL_SETTINGS", "[]"),
        ("INITIAL_SETTINGS", '{"memoryIdleMinutes": "x"}'),
        ("INITIAL_SETTINGS", '{"nope": 1}'),
        ("ALERT_WEBHOOK_URL", "ftp://alerts.example"),
        ("MCP_CONFIG", "missing.json"),
    ],
)
def test_a_bad_value_is_an_error_that_names_its_variable_and_a_cure(
    tmp_path: Path, variable: str, value: str
):
    cause = _cause(tmp_path, **{variable: value})
    assert cause.startswith(f"{variable}: ")
    assert re.search(r"write|set|paste|leave|use|from \d|up to \d|mend", cause)


def test_all_problems_are_reported_together(tmp_path: Path):
    cause = _cause(tmp_path, PORT="x", TIMEZONE="x", HOST="0.0.0.0")
    assert {"PORT", "TIMEZONE", "ONEBOT_ACCESS_TOKEN"} <= set(re.findall("[A-Z_]{4,}", cause))
    assert len(cause.splitlines()) == 4


@given(
    values=st.dictionaries(st.sampled_from(variables()), st.text(st.characters(codec="utf-8"))),
)
def test_any_text_gives_a_configuration_or_a_config_error(values: dict[str, str]):
    try:
        load_config(ROOT / "tests", values)
    except ConfigError:
        return


def test_a_line_that_is_no_assignment_is_named_and_not_shown(tmp_path: Path):
    (tmp_path / ".env").write_text('PORT=1\nOPENAI_API_KEY="sk-unfinished\n')
    cause = _cause(tmp_path)
    assert cause.startswith(".env: line 2 ")
    assert "sk-" not in cause


def test_a_file_that_is_not_utf8_is_named(tmp_path: Path):
    (tmp_path / ".env.prod").write_bytes("NICKNAME=群忆\n".encode("gbk"))
    assert _cause(tmp_path).startswith(".env.prod: the file is not UTF-8")


def test_secrets_do_not_show_in_the_configurations_text(tmp_path: Path):
    secrets = [name for name in variables() if name.endswith(("_KEY", "_TOKEN"))]
    environ = dict.fromkeys(secrets, "s3cret") | {"ALERT_WEBHOOK_URL": "https://h.example/s3cret"}
    config = load_config(tmp_path, environ)
    assert "s3cret" not in f"{config!r} {config}"
    assert config.chat_api_key is not None
    assert config.chat_api_key.get_secret_value() == "s3cret"


def test_every_purpose_may_have_an_endpoint_of_its_own(tmp_path: Path):
    for purpose in ("CHAT", "MEMORY", "DECISION", "VISION", "EMBEDDING"):
        assert {f"{purpose}_MODEL", f"{purpose}_BASE_URL", f"{purpose}_API_KEY"} <= set(variables())
    config = load_config(tmp_path, {"MEMORY_BASE_URL": "http://127.0.0.1:9/v1/"})
    assert config.memory_base_url == "http://127.0.0.1:9/v1"


def test_initial_settings_are_checked_at_start_and_keyed_as_documented(tmp_path: Path):
    config = load_config(tmp_path, {"INITIAL_SETTINGS": '{"memoryidleminutes": 0.05}'})
    assert config.initial_settings == {"memoryIdleMinutes": 0.05}


def test_the_tools_file_is_found_from_the_projects_directory(tmp_path: Path):
    (tmp_path / "mcp.json").write_text("{}")
    assert (
        load_config(tmp_path, {"MCP_CONFIG": "mcp.json"}).mcp_config
        == tmp_path.resolve() / "mcp.json"
    )


def test_the_configuration_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        Config(root=ROOT).port = 1  # pyright: ignore[reportAttributeAccessIssue]


def test_nonebot_gets_the_token_and_lists_from_wherever_they_came(tmp_path: Path):
    (tmp_path / ".env").write_text(
        "SUPERUSERS=30001,30002\nNICKNAME=群忆\nONEBOT_ACCESS_TOKEN=123\n"
    )
    config = load_config(tmp_path, {"HOST": "0.0.0.0"})
    program = (
        "import json, nonebot, os, sys\n"
        "os.environ.update(json.loads(sys.argv[1]))\n"
        "options = json.loads(sys.argv[2])\n"
        "nonebot.init(**options)\n"
        "read = nonebot.get_driver().config\n"
        "print(sorted(read.superusers), read.nickname, read.host, repr(read.onebot_access_token))"
    )
    options = {
        name: sorted(value) if isinstance(value, set) else value
        for name, value in config.nonebot_options().items()
    }
    printed = subprocess.run(
        [sys.executable, "-c", program, _json(config.nonebot_environ()), _json(options)],
        cwd=tmp_path,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed.splitlines()[-1] == "['30001', '30002'] {'群忆'} 0.0.0.0 '123'"


def _json(value: object) -> str:
    return json.dumps(value)


def test_the_example_file_names_every_variable_and_no_other():
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    named = [name for name, _ in _listed.findall(example)]
    assert sorted(named) == sorted(variables())


def test_the_example_file_explains_every_variable_in_english_and_chinese():
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    for block in example.split("\n\n"):
        if _listed.search(block) and not block.startswith("# ---"):
            comments = [line for line in block.splitlines() if not _listed.match(line)]
            assert re.search("[a-z]{3}", "".join(comments)), block
            assert re.search("[\u4e00-\u9fff]", "".join(comments)), block


def test_the_example_file_as_it_stands_is_the_default_configuration(tmp_path: Path):
    (tmp_path / ".env").write_bytes((ROOT / ".env.example").read_bytes())
    config = load_config(tmp_path, {})
    defaults = load_config(tmp_path / "none", {})
    assert config == defaults.model_copy(update={"root": config.root})


def test_the_example_files_commented_examples_load_too(tmp_path: Path):
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    (tmp_path / "mcp.json").write_text("{}")
    (tmp_path / ".env").write_text("\n".join("=".join(pair) for pair in _listed.findall(example)))
    assert load_config(tmp_path, {}).superusers == {"30001"}

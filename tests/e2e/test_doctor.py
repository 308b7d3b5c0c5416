"""``python -m bot doctor``: what it finds, what it prints, and that it leaves everything alone."""

import json
import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bot.checks.database import database_findings
from bot.checks.environment import environment_findings
from bot.checks.finding import Finding, State, fault, good, warning
from bot.checks.models import model_findings
from bot.clock import SystemClock
from bot.config import Config, load_config
from bot.doctor import verdict
from bot.llm.openai_model import Patience
from bot.llm.routing import ModelConfig, ModelSlot, Routes
from bot.model import Chat
from bot.simulate.provider import EMPTY_CHOICES, HTML_GARBAGE, Failure, ModelServer, Script, Silence
from bot.store.database import open_database
from bot.store.inspection import HOLDERS_ARE_KNOWN
from bot.store.settings import open_settings
from tests.e2e.command import Outcome, command
from tests.e2e.harness import KEY, RunningBot, free_port

TOKEN = "invented-token-of-the-client"
TALKER = ModelConfig(chat=ModelSlot("talker"))
SHOPPING_LIST = b"milk, eggs, and no database; " * 100
NOW = 1_790_000_000_000
"""2026-09-21, UTC milliseconds."""


async def doctor(database: Path, *, port: int | None = None, **environ: str) -> Outcome:
    address = {"DATABASE_URL": f"sqlite:///{database}", "PORT": str(port or free_port())}
    return await command("doctor", **address, **environ)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "qunyi.db"


def write(path: Path, content: bytes) -> None:
    path.touch(0o600)
    path.write_bytes(content)


def read(path: Path) -> bytes:
    return path.read_bytes()


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


async def make_database(path: Path) -> None:
    async with open_database(path, now=NOW):
        pass


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port where something listens that never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


# --- the whole command ---------------------------------------------------------------------------


async def test_with_nothing_configured_the_bot_can_run_and_what_is_missing_is_said(tmp_path: Path):
    outcome = await doctor(tmp_path / "new" / "qunyi.db", port=18080)
    assert (outcome.status, outcome.errors) == (0, "")
    assert outcome.line("CHAT_MODEL").startswith("! ")
    assert outcome.line("没有设置操作者").startswith("! ")
    assert outcome.line("首次启动时会建立").startswith("✓ ")
    assert outcome.line("可以运行").startswith("! ")
    pasted = json.loads(outcome.line('{"network"'))["network"]["websocketClients"][0]
    assert pasted["url"] == "ws://127.0.0.1:18080/onebot/v11/ws"
    assert names_in(tmp_path) == []


async def test_with_everything_in_place_it_finds_nothing_to_mend(
    database: Path, models: ModelServer
):
    await make_database(database)
    models.api_key = KEY
    outcome = await doctor(
        database,
        OPENAI_BASE_URL=models.base_url,
        OPENAI_API_KEY=KEY,
        CHAT_MODEL="talker",
        ONEBOT_ACCESS_TOKEN=TOKEN,
        SUPERUSERS="30001",
    )
    models.api_key = ""
    assert (outcome.status, outcome.errors) == (0, "")
    assert outcome.line("talker").startswith("✓ ")
    assert outcome.line("quick_check").startswith("✓ ")
    assert len(models.requests) == 1
    assert KEY not in outcome.output
    assert TOKEN in outcome.line('{"network"')
    assert names_in(database.parent) == [database.name]


async def test_a_refused_key_is_named_by_its_variable_and_never_shown(
    database: Path, models: ModelServer
):
    models.answer = Failure(401, "invalid_api_key", f"Incorrect API key provided: {KEY}")
    outcome = await doctor(
        database,
        OPENAI_BASE_URL=models.base_url,
        CHAT_MODEL="talker",
        CHAT_API_KEY=KEY,
        ALERT_WEBHOOK_URL=f"https://alerts.example/{KEY}",
        DASHBOARD_TOKEN=KEY,
    )
    assert outcome.status == 0
    line = outcome.line("talker")
    assert line.startswith("! ")
    assert "401" in line
    assert "CHAT_API_KEY" in line
    assert KEY not in outcome.output + outcome.errors


async def test_a_port_that_another_program_has_taken_is_a_fault(database: Path, taken_port: int):
    outcome = await doctor(database, port=taken_port)
    assert outcome.status == 1
    line = outcome.line(f"端口 {taken_port}")
    assert line.startswith("✗ ")
    assert "PORT=" in line
    assert outcome.line("不能运行").startswith("✗ ")


async def test_a_database_that_is_none_is_named_and_kept(database: Path):
    write(database, SHOPPING_LIST)
    outcome = await doctor(database)
    assert outcome.status == 1
    assert [line for line in outcome.lines if line.startswith("✗") and str(database) in line]
    assert read(database) == SHOPPING_LIST


async def test_a_database_of_a_newer_version_is_a_fault(database: Path):
    await make_database(database)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("INSERT INTO schema_steps VALUES (9999, 'later', 0)")
    outcome = await doctor(database)
    assert outcome.status == 1
    line = outcome.line("9999")
    assert line.startswith("✗ ")
    assert str(database) in line


async def test_it_says_that_the_bot_runs_and_does_not_disturb_it(
    tmp_path: Path, models: ModelServer
):
    async with RunningBot(tmp_path, models) as bot:
        outcome = await doctor(bot.database, port=bot.endpoint.port)
        assert await bot.tell("/帮助")
        assert "ERROR" not in bot.log
    assert outcome.status == 0
    assert outcome.line("正在运行").startswith("✓ ")


@pytest.mark.skipif(not HOLDERS_ARE_KNOWN, reason="the system does not tell who has a file open")
async def test_another_process_that_has_the_database_open_is_named(database: Path):
    async with open_database(database, now=NOW):
        outcome = await doctor(database)
    assert outcome.status == 0
    line = outcome.line(f"进程 {os.getpid()}")
    assert line.startswith("! ")


async def test_a_terminal_without_the_marks_still_shows_the_report(database: Path):
    outcome = await doctor(database, PYTHONIOENCODING="gbk")
    assert (outcome.status, outcome.errors) == (0, "")
    assert "没有设置操作者" in outcome.output


async def test_a_wrong_variable_ends_the_doctor_with_its_name(database: Path):
    outcome = await doctor(database, TIMEZONE="Mars/Olympus")
    assert outcome.status == 1
    assert outcome.errors.startswith("TIMEZONE: ")


# --- single checks -------------------------------------------------------------------------------


def configured(root: Path, **environ: str) -> Config:
    return load_config(root, environ)


def environment(config: Config, now: int = NOW) -> str:
    return "\n".join(str(finding) for finding in environment_findings(config, now))


async def inside(path: Path, now: int = NOW) -> list[Finding]:
    config = configured(path.parent, DATABASE_URL=f"sqlite:///{path}")
    return [finding async for finding in database_findings(config, now)]


def only(found: list[Finding], state: State) -> str:
    (finding,) = [each for each in found if each.state is state]
    return finding.text


def test_a_misspelt_variable_in_dotenv_is_pointed_out(tmp_path: Path):
    dotenv = tmp_path / ".env"
    dotenv.write_text(f"OPENAI_APIKEY={KEY}\nchat_model=talker\nOTHER_PROGRAM=1\n")
    dotenv.chmod(0o600)
    told = environment(configured(tmp_path))
    assert "! .env 里的 OPENAI_APIKEY 不是已知变量，是不是想写 OPENAI_API_KEY？" in told
    assert "OTHER_PROGRAM" not in told
    assert KEY not in told


def test_both_configuration_files_are_named_and_others_may_read_neither(tmp_path: Path):
    for name in (".env", ".env.prod"):
        (tmp_path / name).write_text("PORT=9000\n")
        (tmp_path / name).chmod(0o644)
    told = environment(configured(tmp_path))
    assert "配置文件 .env, .env.prod" in told
    assert f"chmod 600 {tmp_path}/.env.prod" in told


def test_a_clock_that_lost_its_time_is_pointed_out(tmp_path: Path):
    assert "! 系统时间是 1970-01-01" in environment(configured(tmp_path), now=0)


def test_a_short_token_is_pointed_out_when_other_machines_can_connect(tmp_path: Path):
    exposed = {"HOST": "0.0.0.0"}
    short = environment(configured(tmp_path, ONEBOT_ACCESS_TOKEN="1234", **exposed))
    assert "! HOST=0.0.0.0" in short
    assert "1234" not in short
    long = environment(configured(tmp_path, ONEBOT_ACCESS_TOKEN=TOKEN, **exposed))
    assert "✓ HOST=0.0.0.0" in long
    assert TOKEN not in long


async def test_a_database_that_could_not_be_made_is_a_fault(tmp_path: Path):
    (tmp_path / "file").touch()
    found = await inside(tmp_path / "file" / "deep" / "qunyi.db")
    assert f"{tmp_path / 'file'}" in only(found, State.FAULT)


async def test_a_directory_is_no_database(tmp_path: Path):
    assert str(tmp_path) in only(await inside(tmp_path), State.FAULT)


async def test_another_programs_database_is_a_fault(database: Path):
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    os.chmod(database, 0o600)
    assert "别的程序" in only(await inside(database), State.FAULT)


async def test_a_database_without_any_schema_yet_is_in_order(database: Path):
    write(database, b"")
    assert {finding.state for finding in await inside(database)} == {State.GOOD}


async def test_a_database_that_others_can_read_is_pointed_out(database: Path):
    await make_database(database)
    os.chmod(database, 0o644)
    assert f"chmod 600 {database}" in only(await inside(database), State.WARNING)


async def test_a_damaged_database_is_a_fault(database: Path):
    await make_database(database)
    with database.open("r+b") as file:
        file.seek(5 * 4096)
        file.write(b"\x17" * 4096 * 20)
    assert [finding for finding in await inside(database) if finding.state is State.FAULT]


async def test_stored_settings_that_are_not_allowed_are_named(database: Path):
    await make_database(database)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("INSERT INTO settings VALUES ('sendGapSeconds', NULL, '-7', 0, '30001')")
    assert "sendGapSeconds" in only(await inside(database), State.FAULT)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE settings SET value = 'no JSON'")
    assert "不是 JSON" in only(await inside(database), State.FAULT)


async def test_a_chats_own_setting_that_is_not_allowed_is_named(database: Path):
    async with open_database(database, now=NOW) as db:
        book = await open_settings(db, {})
        chat = Chat("10001", "group", "20001")
        await book.change("replyMode", "silent", by="30001", at=NOW, chat=chat)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE settings SET value = '\"loud\"'")
    told = only(await inside(database), State.FAULT)
    assert "replyMode" in told


def routes_to(server: ModelServer, slots: ModelConfig = TALKER) -> Routes:
    return Routes(replace(slots, base_url=server.base_url, api_key=KEY))


async def asked(routes: Routes, patience: Patience | None = None) -> list[Finding]:
    found = model_findings(routes, SystemClock(), patience or Patience())
    return [finding async for finding in found]


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (Failure(402), ("402", "余额")),
        (Failure(403), ("403", "OPENAI_API_KEY")),
        (Failure(404), ("404", "CHAT_MODEL", "OPENAI_BASE_URL", "/v1")),
        (Failure(418), ("418", "OPENAI_BASE_URL")),
        (Failure(429), ("429", "额度")),
        (Failure(503), ("503", "服务商")),
        (HTML_GARBAGE, ("OPENAI_BASE_URL", "/v1")),
        (EMPTY_CHOICES, ("OPENAI_BASE_URL",)),
        (Failure(400, "content_filter"), ("拒绝",)),
        (Silence(), ("OPENAI_BASE_URL", "网络")),
    ],
)
async def test_what_a_model_fails_with_comes_with_its_cure(
    models: ModelServer, answer: Script, named: tuple[str, ...]
):
    models.answer = answer
    told = only(await asked(routes_to(models), Patience(reply_seconds=0.3)), State.WARNING)
    for part in ("talker", *named):
        assert part in told


async def test_a_route_that_several_purposes_share_is_asked_once(models: ModelServer):
    slots = replace(TALKER, decision=ModelSlot("talker"), vision=ModelSlot("viewer"))
    found = await asked(routes_to(models, slots))
    assert [str(finding)[0] for finding in found] == ["✓", "✓"]
    assert "talker" in found[0].text
    assert "CHAT/MEMORY/DECISION" in found[0].text
    assert [request.body["model"] for request in models.requests] == ["talker", "viewer"]


async def test_an_embedding_model_is_not_asked_to_chat(models: ModelServer):
    found = await asked(routes_to(models, replace(TALKER, embedding=ModelSlot("embedder"))))
    assert [request.body["model"] for request in models.requests] == ["talker"]
    assert "EMBEDDING_MODEL" in found[0].text


async def test_a_model_without_key_and_address_is_named():
    found = await asked(Routes(ModelConfig(vision=ModelSlot("viewer"))))
    assert [finding.state for finding in found] == [State.WARNING, State.WARNING]
    assert "VISION_MODEL" in found[1].text
    assert "OPENAI_API_KEY" in found[1].text


def test_a_finding_is_one_line_of_printable_characters():
    assert str(good("a\n  b\x1b[31m\r\u2028c")) == "✓ a b [31m c"


def test_the_verdict_follows_the_worst_finding():
    counted = {State.GOOD: 3}
    assert verdict(counted).startswith(good("").state.value)
    assert verdict({**counted, State.WARNING: 1}).startswith(warning("").state.value)
    assert verdict({State.WARNING: 1, State.FAULT: 1}).startswith(fault("").state.value)

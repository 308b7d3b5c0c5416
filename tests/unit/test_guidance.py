"""What operators are told: what is missing, and how a client finds the bot."""

import json
from pathlib import Path

import pytest

from bot.config import Config, load_config
from bot.guidance import connection_guide, napcat_configuration, next_steps, socket_url
from bot.llm.routing import ModelConfig, ModelSlot, Routes

TOKEN = "invented-token-of-the-client"
NO_ROUTES = Routes(ModelConfig())
ROUTES = Routes(ModelConfig(api_key="sk-invented", chat=ModelSlot("talker")))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def configured(root: Path, **environ: str) -> Config:
    return load_config(root, environ)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("192.0.2.7", "192.0.2.7"),
        ("::1", "[::1]"),
        ("::", "[::1]"),
    ],
)
def test_the_address_is_one_that_this_machine_can_connect_to(root: Path, host: str, address: str):
    config = configured(root, HOST=host, PORT="9000", ONEBOT_ACCESS_TOKEN=TOKEN)
    assert socket_url(config) == f"ws://{address}:9000/onebot/v11/ws"


def test_napcat_gets_address_and_token_and_only_messages_of_others(root: Path):
    config = configured(root, ONEBOT_ACCESS_TOKEN=TOKEN)
    (client,) = json.loads(napcat_configuration(config))["network"]["websocketClients"]
    assert client["url"] == "ws://127.0.0.1:8080/onebot/v11/ws"
    assert client["token"] == TOKEN
    assert client["enable"] is True
    assert client["messagePostFormat"] == "array"
    assert client["reportSelfMessage"] is False


def test_a_token_survives_the_way_through_json(root: Path):
    config = configured(root, ONEBOT_ACCESS_TOKEN='a"b\\c')
    (client,) = json.loads(napcat_configuration(config))["network"]["websocketClients"]
    assert client["token"] == 'a"b\\c'


def test_what_is_to_be_pasted_is_one_line(root: Path):
    assert "\n" not in napcat_configuration(configured(root))


def test_the_guide_names_address_token_and_where_they_go(root: Path):
    config = configured(root, ONEBOT_ACCESS_TOKEN=TOKEN)
    told = list(connection_guide(config))
    assert napcat_configuration(config) in told
    assert any("网络配置" in line for line in told)
    assert any("令牌" in line and TOKEN in line for line in told)


def test_the_guide_says_that_no_token_is_set(root: Path):
    assert any("没有设置" in line for line in connection_guide(configured(root)))


def test_the_guide_says_what_a_client_elsewhere_needs(root: Path):
    assert "HOST=0.0.0.0" in list(connection_guide(configured(root)))[-1]
    exposed = configured(root, HOST="0.0.0.0", ONEBOT_ACCESS_TOKEN=TOKEN)
    assert "127.0.0.1" in list(connection_guide(exposed))[-1]


def test_the_next_steps_name_the_variables_that_are_missing(root: Path):
    told = "\n".join(next_steps(configured(root), NO_ROUTES))
    for name in ("CHAT_MODEL", "OPENAI_API_KEY", "SUPERUSERS", "python -m bot doctor"):
        assert name in told


def test_with_a_model_and_an_operator_only_the_client_is_waited_for(root: Path):
    config = configured(root, SUPERUSERS="30001")
    (step,) = next_steps(config, ROUTES)
    assert socket_url(config) in step


def test_the_next_steps_go_to_the_log_and_hold_no_token(root: Path):
    config = configured(root, ONEBOT_ACCESS_TOKEN=TOKEN)
    assert TOKEN not in "\n".join(next_steps(config, NO_ROUTES))

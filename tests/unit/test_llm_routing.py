"""Which models serve which purpose."""

import pytest

from bot.errors import ModelNotConfigured
from bot.llm.protocol import RouteName
from bot.llm.routing import (
    OPENAI_URL,
    PLACEHOLDER_KEY,
    SLOTS,
    ModelConfig,
    ModelSlot,
    Route,
    Routes,
    host_of,
)

KEY = "sk-test-very-secret"


def named(routes: tuple[Route, ...]) -> list[str]:
    return [str(route) for route in routes]


def test_chat_tries_its_model_and_then_the_fallbacks_in_order():
    config = ModelConfig(
        api_key=KEY, chat=ModelSlot("big"), chat_fallback_models=("small", "big", "tiny")
    )
    assert named(Routes(config).candidates("chat")) == [
        "big at api.openai.com",
        "small at api.openai.com",
        "tiny at api.openai.com",
    ]


@pytest.mark.parametrize("purpose", [p for p, slot in SLOTS.items() if slot == "MEMORY"])
def test_every_memory_purpose_uses_the_memory_model(purpose):
    config = ModelConfig(api_key=KEY, chat=ModelSlot("big"), memory=ModelSlot("careful"))
    last = RouteName("big", "api.openai.com")
    assert named(Routes(config).candidates(purpose, last)) == ["careful at api.openai.com"]


def test_memory_without_a_model_follows_the_last_successful_route_and_then_the_chat_model():
    config = ModelConfig(api_key=KEY, chat=ModelSlot("big"), chat_fallback_models=("small",))
    last = RouteName("small", "api.openai.com")
    assert named(Routes(config).candidates("summarize", last)) == [
        "small at api.openai.com",
        "big at api.openai.com",
    ]
    assert named(Routes(config).candidates("summarize")) == ["big at api.openai.com"]


def test_a_last_route_that_is_no_longer_configured_is_not_followed():
    routes = Routes(ModelConfig(api_key=KEY, chat=ModelSlot("big")))
    for last in (RouteName("gone", "api.openai.com"), RouteName("big", "elsewhere.example")):
        assert named(routes.candidates("reflect.group", last)) == ["big at api.openai.com"]


def test_memory_without_a_model_may_still_have_an_endpoint_of_its_own():
    config = ModelConfig(
        api_key=KEY,
        chat=ModelSlot("big", "https://chat.example/v1"),
        memory=ModelSlot(base_url="https://memory.example/v1"),
    )
    assert named(Routes(config).candidates("compress.group")) == ["big at memory.example"]


def test_a_purpose_may_have_its_own_endpoint_and_key():
    config = ModelConfig(
        base_url="https://a.example/v1/",
        api_key=KEY,
        chat=ModelSlot("big"),
        vision=ModelSlot("seer", "http://127.0.0.1:8000/v1", "sk-other"),
    )
    routes = Routes(config)
    chat, vision = routes.candidates("chat")[0], routes.candidates("vision")[0]
    assert (chat.endpoint.base_url, chat.endpoint.api_key) == ("https://a.example/v1", KEY)
    assert (vision.endpoint.name, vision.endpoint.api_key) == ("127.0.0.1:8000", "sk-other")


def test_a_base_url_without_a_key_is_a_local_server_and_gets_a_placeholder():
    config = ModelConfig(base_url="http://localhost:11434/v1", chat=ModelSlot("qwen"))
    endpoint = Routes(config).candidates("chat")[0].endpoint
    assert endpoint.api_key == PLACEHOLDER_KEY
    assert endpoint.name == "localhost:11434"


def test_a_key_without_a_base_url_means_openai():
    config = ModelConfig(api_key=KEY, chat=ModelSlot("gpt"))
    assert Routes(config).candidates("chat")[0].endpoint.base_url == OPENAI_URL


def test_neither_key_nor_base_url_names_the_missing_variable():
    with pytest.raises(ModelNotConfigured, match="OPENAI_API_KEY"):
        Routes(ModelConfig(chat=ModelSlot("gpt"))).candidates("chat")


@pytest.mark.parametrize(
    ("purpose", "variable"),
    [
        ("chat", "CHAT_MODEL"),
        ("summarize", "CHAT_MODEL"),
        ("decide", "DECISION_MODEL"),
        ("vision", "VISION_MODEL"),
        ("embed", "EMBEDDING_MODEL"),
    ],
)
def test_a_missing_model_names_its_variable(purpose, variable):
    routes = Routes(ModelConfig(api_key=KEY))
    assert not routes.is_configured(purpose)
    with pytest.raises(ModelNotConfigured, match=variable):
        routes.candidates(purpose)


@pytest.mark.parametrize(
    "url", ["api.example/v1", "ftp://api.example", "http:///v1", "http://[oops"]
)
def test_an_address_that_is_none_names_the_variable_and_not_the_value(url):
    config = ModelConfig(api_key=KEY, chat=ModelSlot("gpt", base_url=url))
    with pytest.raises(ModelNotConfigured, match="CHAT_BASE_URL") as caught:
        Routes(config).candidates("chat")
    assert url not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-密钥", "sk-a\nb", "sk-a b"])
def test_a_key_that_cannot_be_sent_names_the_variable_and_not_the_value(key):
    with pytest.raises(ModelNotConfigured, match="OPENAI_API_KEY") as caught:
        Routes(ModelConfig(api_key=key, chat=ModelSlot("gpt"))).candidates("chat")
    assert key not in str(caught.value)


def test_no_repr_shows_a_key_or_an_address():
    url = "https://a.example:8443/v1/private-path"
    config = ModelConfig(
        base_url=url, api_key=KEY, chat=ModelSlot("gpt", url, KEY), memory=ModelSlot("m", "", KEY)
    )
    routes = Routes(config)
    shown = repr((config, routes, routes.all())) + "".join(map(str, routes.all()))
    assert KEY not in shown
    assert "private-path" not in shown
    assert host_of(url) == "a.example:8443"


def test_a_password_in_an_address_is_refused_because_logs_would_show_it():
    config = ModelConfig(base_url="https://user:hunter2@a.example/v1", chat=ModelSlot("gpt"))
    with pytest.raises(ModelNotConfigured, match="OPENAI_BASE_URL") as caught:
        Routes(config).candidates("chat")
    assert "hunter2" not in str(caught.value)


def test_all_lists_every_configured_route_once():
    config = ModelConfig(
        api_key=KEY,
        chat=ModelSlot("big"),
        chat_fallback_models=("small",),
        embedding=ModelSlot("vectors"),
    )
    assert [route.model for route in Routes(config).all()] == ["big", "small", "vectors"]
    assert Routes(ModelConfig()).all() == ()


def test_a_preferred_model_is_asked_first_and_the_others_in_their_order():
    config = ModelConfig(api_key=KEY, chat=ModelSlot("big"), chat_fallback_models=("a", "b"))
    routes = Routes(config)

    def order(preferred: str) -> list[str]:
        return [route.model for route in routes.candidates("chat", preferred=preferred)]

    assert order("b") == ["b", "big", "a"]
    assert order("") == order("unknown") == ["big", "a", "b"]
    assert [r.model for r in routes.candidates("reflect.group", preferred="b")] == ["big"]

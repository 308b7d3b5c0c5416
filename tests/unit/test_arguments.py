"""Arguments that a model wrote, held to the schema of a tool."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.arguments import (
    NOT_AN_OBJECT,
    ArgumentsInvalid,
    plain_arguments,
    read_arguments,
)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "maxLength": 20},
        "mode": {"enum": ["list", "search"]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 32},
        "share": {"type": "number"},
        "deep": {"type": "boolean"},
        "since": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "minutes": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
        "id": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "who": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "place": {"$ref": "#/$defs/Place"},
    },
    "required": ["query"],
    "$defs": {
        "Place": {
            "type": "object",
            "properties": {"row": {"type": "integer"}},
            "required": ["row"],
        }
    },
}

_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def read(**values: Any) -> dict[str, Any]:
    return read_arguments(json.dumps({"query": "西瓜", **values}), SCHEMA)


def problem(text: str) -> str:
    with pytest.raises(ArgumentsInvalid) as caught:
        read_arguments(text, SCHEMA)
    return str(caught.value)


def test_arguments_are_taken_as_they_are_asked_for():
    values = {"mode": "list", "limit": 3, "deep": True, "who": ["30001"], "place": {"row": 1}}
    assert read(**values) == {"query": "西瓜", **values}


@pytest.mark.parametrize(
    ("key", "given_value", "meant"),
    [
        ("query", 30001, "30001"),
        ("limit", "5", 5),
        ("limit", 5.0, 5),
        ("share", "0.5", 0.5),
        ("share", 2, 2),
        ("deep", "True", True),
        ("who", [30001, "30002"], ["30001", "30002"]),
        ("place", {"row": "7"}, {"row": 7}),
        ("since", None, None),
    ],
)
def test_what_is_plainly_meant_is_taken(key: str, given_value: Any, meant: Any):
    assert read(**{key: given_value})[key] == meant


def test_null_is_nothing_where_null_is_not_asked_for():
    assert read(limit=None, mode=None) == {"query": "西瓜"}


def test_what_nobody_asked_for_is_left_out():
    assert read(__class__="x", path="/etc/passwd") == {"query": "西瓜"}


@pytest.mark.parametrize("text", ["[]", "1", '"x"', "{", '{"query": NaN}', "[" * 100_000, "null"])
def test_what_is_no_object_is_refused(text: str):
    assert problem(text) == NOT_AN_OBJECT


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "缺少参数 query"),
        ({"query": None}, "参数 query 应是文字"),
        ({"query": ["x"]}, "参数 query 应是文字"),
        ({"query": "长" * 21}, "参数 query 的长度不能大于 20"),
        ({"query": "x", "limit": 0}, "参数 limit 不能小于 1"),
        ({"query": "x", "limit": 1.5}, "参数 limit 应是整数"),
        ({"query": "x", "limit": True}, "参数 limit 应是整数"),
        ({"query": "x", "limit": "9" * 5_000}, "参数 limit 应是整数"),
        ({"query": "x", "mode": "drop"}, '参数 mode 应是以下之一："list"、"search"'),
        ({"query": "x", "who": "30001"}, "参数 who 应是数组"),
        ({"query": "x", "who": [[]]}, "参数 who[1] 应是文字"),
        ({"query": "x", "who": ["a"] * 4}, "参数 who 的项数不能大于 3"),
        ({"query": "x", "place": {}}, "缺少参数 place.row"),
        ({"query": "x", "since": []}, "参数 since 应是文字"),
        ({"query": "x", "minutes": 0}, "参数 minutes 不能小于 1"),
        ({"query": "x", "minutes": "soon"}, "参数 minutes 应是整数"),
        ({"query": "x", "id": []}, "参数 id 应是整数"),
    ],
)
def test_what_is_wrong_is_told(values: dict[str, Any], words: str):
    assert problem(json.dumps(values)) == words


def test_a_tool_without_parameters_takes_empty_arguments():
    assert read_arguments("", {"type": "object", "properties": {}}) == {}


def test_a_schema_that_names_itself_ends():
    schema = {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert read_arguments('{"a": 1}', schema) == {"a": 1}


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "other"]), _json))
def test_whatever_is_given_is_taken_or_refused_with_a_reason(values: dict[str, Any]):
    try:
        taken = read_arguments(json.dumps(values), SCHEMA)
    except ArgumentsInvalid as error:
        taken = {"query": str(error)}
    assert taken.keys() <= SCHEMA["properties"].keys()
    assert isinstance(taken["query"], str)
    assert taken["query"] or values["query"] == ""
    assert isinstance(taken.get("limit", 1), int)


@given(st.text())
def test_what_goes_back_to_a_provider_is_always_an_object(text: str):
    assert isinstance(json.loads(plain_arguments(text)), dict)

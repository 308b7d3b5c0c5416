"""How an answer is found in a model's text, and read item by item."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.answer import (
    AnswerUnusable,
    Fact,
    Item,
    Parsed,
    Retraction,
    TypedFact,
    answer_schema,
    parse_answer,
)
from bot.memory.verdict import EXPLANATIONS, Reason
from bot.model import TaskName

TASKS: tuple[TaskName, ...] = get_args(TaskName)
ONE_FACT = '{"memory":[{"date":"2026-08-22","text":"周五聚餐","refs":[1]}]}'


def items(parsed: Parsed) -> list[Item]:
    return [item for part in parsed.parts for item in part.items]


def texts(text: str, task: TaskName = "group") -> list[str]:
    values = [item.value for item in items(parse_answer(text, task))]
    return [value if isinstance(value, str) else getattr(value, "text", "") for value in values]


def faults(text: str, task: TaskName = "group") -> list[tuple[str, str]]:
    parsed = parse_answer(text, task)
    found = [*parsed.rejections, *(one for part in parsed.parts for one in part.rejections)]
    return [(one.path, one.reason) for one in found]


def test_the_fenced_object_wins_over_thinking_and_braces_in_prose():
    text = (
        '<think>先看看 {"group":{}} 这样行不行：{"memory":[{"text":"草稿","refs":[2]}]}</think> '
        f"好的 {{见下}}：\n```json\n{ONE_FACT}\n```\n以上。"
    )
    assert texts(text) == ["周五聚餐"]


def test_the_last_object_that_fits_wins():
    assert texts(f'{{"memory":[{{"text":"旧","refs":[1]}}]}} 更正：{ONE_FACT} {{"note":1}}') == [
        "周五聚餐"
    ]


def test_an_empty_object_is_an_answer_that_changes_nothing():
    assert parse_answer("没有值得记的。\n{}", "member-batch").parts == ()


def test_an_object_with_none_of_the_keys_of_the_task_is_no_answer():
    with pytest.raises(AnswerUnusable):
        parse_answer('{"members":[]}', "group")


def test_a_text_without_a_complete_object_is_no_answer():
    with pytest.raises(AnswerUnusable):
        parse_answer(ONE_FACT[:-1] + " 以上", "group")


def test_an_empty_object_inside_one_that_breaks_off_is_no_answer():
    with pytest.raises(AnswerUnusable):
        parse_answer('{"members":[{},{"senderId":"30001","profile":[', "member-batch")


def test_a_draft_that_breaks_off_does_not_hide_the_answer_after_it():
    assert texts(f'{{"memory":[{{"text":"半句\n再来一次：{ONE_FACT}') == ["周五聚餐"]


def test_braces_quotes_and_tags_inside_strings_are_text():
    written = 'a } { "b" </think> \\ {}'
    answer = json.dumps({"profile": [{"text": written, "refs": [1]}]})
    assert texts(f"好：{answer}") == [written]


def test_an_answer_in_an_envelope_is_unwrapped():
    assert texts(f'{{"result":{{"group":{ONE_FACT}}}}}') == ["周五聚餐"]


def test_an_answer_about_members_is_none_about_the_group():
    with pytest.raises(AnswerUnusable):
        parse_answer('{"answer":{"senderId":"30001","profile":[]}}', "group")


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{ONE_FACT}</think>",
        f"<think>没写完 {ONE_FACT}",
        f"先想想 {ONE_FACT} </think> 没有了",
        f'<Thinking depth="2">{ONE_FACT}</ thinking>',
    ],
)
def test_what_was_only_thought_is_no_answer(text: str):
    with pytest.raises(AnswerUnusable):
        parse_answer(text, "group")


def test_thinking_that_was_never_opened_ends_where_it_is_closed():
    assert texts(f'{{"memory":[{{"text":"草稿","refs":[1]}}]}}</think>{ONE_FACT}') == ["周五聚餐"]


def test_a_raw_line_break_in_a_string_is_accepted():
    assert texts('{"profile":[{"text":"第一行\n第二行","refs":[1]}]}') == ["第一行 第二行"]


def test_a_malformed_item_spoils_no_other():
    text = json.dumps(
        {
            "profile": [None, "x", {"refs": [1]}, {"text": "甲", "refs": []}, {"text": "乙"}],
            "daily": "none",
            "summary": 7,
            "memory": [{"text": "好", "refs": [1]}],
            "retract": [{"refs": [1]}],
            "unknown": [1],
        }
    )
    assert texts(text) == ["好"]
    assert faults(text) == [
        ("profile[0]", "not-an-object"),
        ("profile[1]", "not-an-object"),
        ("profile[2]", "text-missing"),
        ("profile[3]", "refs-missing"),
        ("profile[4]", "refs-missing"),
        ("summary", "text-missing"),
        ("daily", "not-a-list"),
        ("retract[0]", "entry-unknown"),
    ]


def test_absent_empty_and_null_keys_hold_nothing():
    parsed = parse_answer('{"profile":null,"daily":[],"summary":"  "}', "private-owner")
    assert items(parsed) == []
    assert faults('{"profile":null,"daily":[],"summary":"  "}') == []


def test_refs_are_numbers_or_strings_of_digits_each_once():
    [item] = items(parse_answer('{"profile":[{"text":"甲","refs":[3,"7",3.0," 7 "]}]}', "group"))
    assert isinstance(item.value, Fact)
    assert item.value.refs == (3, 7)


@pytest.mark.parametrize("ref", ["true", "null", '"x"', "1.5", "-1", "1" * 5000, "[1]", "1e999"])
def test_a_ref_that_is_no_number_of_a_message_fails_its_item(ref: str):
    assert faults(f'{{"profile":[{{"text":"甲","refs":[1,{ref}]}}]}}') == [
        ("profile[0]", "refs-missing")
    ]


def test_ids_of_people_and_entries_may_be_numbers():
    text = '{"members":[{"senderId":30001,"retract":[{"id":12,"refs":[1]}]}]}'
    parsed = parse_answer(text, "member-batch")
    assert [part.sender_id for part in parsed.parts] == ["30001"]
    [item] = items(parsed)
    assert isinstance(item.value, Retraction)
    assert item.value.id == "12"


@pytest.mark.parametrize("kind", ['"hobby"', "null", "[]", "{}", '""'])
def test_an_unknown_type_of_profile_is_a_note(kind: str):
    text = f'{{"profile":[{{"type":{kind},"text":"甲","refs":[1]}}]}}'
    [item] = items(parse_answer(text, "private-owner"))
    assert isinstance(item.value, TypedFact)
    assert item.value.type == "note"


def test_every_path_says_where_an_item_stands():
    text = '{"members":[1,{"senderId":"30001","daily":[{"text":"甲","refs":[1]}],"summary":"乙"}]}'
    parsed = parse_answer(text, "member-batch")
    assert [item.path for item in items(parsed)] == ["members[1].summary", "members[1].daily[0]"]
    assert faults(text, "member-batch") == [("members[0]", "not-an-object")]


@pytest.mark.parametrize("task", TASKS)
def test_the_schema_is_plain_and_says_what_the_parser_reads(task: TaskName):
    schema = answer_schema(task)
    written = json.dumps(schema)
    assert schema["type"] == "object"
    assert "required" not in schema
    assert not any(word in written for word in ("$ref", "$defs", "title", "default", "anyOf"))
    person = schema["properties"].get("members", {}).get("items", schema)
    assert person["properties"]["retract"]["items"]["required"] == ["id", "refs"]
    assert person["properties"]["profile"]["items"]["properties"]["refs"] == {
        "type": "array",
        "items": {"type": "integer"},
        "minItems": 1,
    }


def test_the_keys_of_each_task_are_those_it_may_write():
    person = ["profile", "pattern", "summary", "daily"]
    members = answer_schema("member-batch")["properties"]["members"]["items"]
    assert list(members["properties"]) == ["senderId", *person, "retract"]
    assert list(answer_schema("private-owner")["properties"]) == [*person, "memory", "retract"]
    assert list(answer_schema("group")["properties"]) == [
        "profile",
        "summary",
        "daily",
        "memory",
        "retract",
    ]


def test_every_reason_has_an_explanation():
    assert EXPLANATIONS.keys() == set(get_args(Reason))


HOSTILE = [
    "{",
    '{"a":',
    '{"a":{"b":[',
    '{"a":[1,1,1,1,1,1,1,1,',
    '{":":"{',
    '{","":"{',
    '{"a":"{","b":"{",',
    '{"',
    '{"\\"',
    '"{\\"',
    "[{",
    "{}",
    "<think>",
    "</think>",
    "<think ",
    "<think>{",
    '{"a":{}}',
    '{"daily":[{"daily":',
    '{"a":1}{"a"',
    "\\",
]


@pytest.mark.parametrize("unit", HOSTILE)
@pytest.mark.timeout(20)
def test_a_hostile_text_is_read_in_one_walk(unit: str):
    text = unit * (200_000 // len(unit))
    try:
        parse_answer(text, "group")
    except AnswerUnusable:
        pass


def test_deep_nesting_ends_in_an_answer_or_in_none():
    deep = '{"a":' * 30_000 + "1" + "}" * 30_000
    with pytest.raises(AnswerUnusable):
        parse_answer(deep, "group")
    assert texts(f"{deep} {ONE_FACT}") == ["周五聚餐"]


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=10,
)
PROSE = st.text(alphabet=st.characters(exclude_characters="{}<>"), max_size=20)


@given(st.text(alphabet='{}[]",:\\ a1<think>/', max_size=80), st.sampled_from(TASKS))
def test_any_text_is_an_answer_or_unusable(text: str, task: TaskName):
    try:
        parse_answer(text, task)
    except AnswerUnusable:
        pass


@given(PROSE, st.dictionaries(st.text(max_size=4), JSON_VALUES, max_size=4), PROSE)
def test_an_answer_is_found_whole_among_prose(before: str, extra: dict[str, Any], after: str):
    answer = {**extra, "profile": [{"text": "甲", "refs": [1], **extra}]} | {"summary": "乙"}
    answer["profile"] = [{**extra, "text": "甲", "refs": [1]}]
    assert sorted(texts(before + json.dumps(answer, ensure_ascii=False) + after)) == ["乙", "甲"]

"""The rolling summary: what of an answer is believed, whose word binds, and its limits."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.summary import (
    DECISION_CHARS,
    MAX_DECISIONS,
    MAX_DISCUSSIONS,
    NO_SUMMARY,
    Answered,
    Decision,
    Discussion,
    Merged,
    Overturned,
    SessionSummary,
    SummaryInput,
    Voice,
    background_lines,
    binding_lines,
    choices,
    merged,
    narrowed,
    parse_summary,
    read_summary,
    summary_input,
    summary_lines,
    without_overturned,
    written,
)
from bot.memory.answer import AnswerUnusable
from bot.model import Turn, TurnLine
from bot.text import json_line

OWNER, MEMBER, OTHER = "30001", "30002", "30003"
VOICES = {
    11: Voice(OWNER, may_decide=True),
    12: Voice(MEMBER, may_decide=False),
    13: Voice(OTHER, may_decide=False),
}
DAY = "2026-07-29"


def line(row: int, sender: str, text: str = "嗨", part: Any = "question") -> TurnLine:
    fields = {"id": row, "at": f"{DAY} 12:00", "senderId": sender, "senderName": "甲", "text": text}
    return TurnLine(row, part, json_line(fields))


def turn(*lines: TurnLine) -> Turn:
    return Turn(1, OWNER, 0, 0, False, 0, lines)


def shown(*turns: Turn) -> SummaryInput:
    """What a call reads: lines of the owner (ref 1), a member (2), another (3), the bot (4)."""
    first = turn(line(11, OWNER), line(12, MEMBER), line(13, OTHER), TurnLine(14, "answer", "好"))
    return summary_input(turns or (first,), VOICES, DAY)


def decision(text: str, author: str = MEMBER, *, binds: bool = False) -> Decision:
    return Decision(f"Do: {text}", author, (1,), binds)


def summary(*decisions: Decision, **fields: Any) -> SessionSummary:
    return SessionSummary(decisions, **fields)


def new(text: str = "Do: 说中文", author: str = OWNER, *refs: int) -> dict[str, Any]:
    return {"text": text, "authorId": author, "refs": list(refs or (1,))}


def kept(*numbers: int) -> list[dict[str, str]]:
    return [{"id": f"k{number}"} for number in numbers]


def merge(previous: SessionSummary, **answer: Any) -> Merged:
    return merged(previous, parse_summary(json.dumps(answer)), shown())


def texts(found: Merged) -> list[str]:
    return [one.text for one in found.summary.key_decisions]


# What is read


def test_lines_are_numbered_and_say_of_which_turn_they_are():
    lines = shown(
        turn(line(11, OWNER), TurnLine(None, "answer", "好")), turn(line(12, MEMBER))
    ).lines
    read = [json.loads(one) for one in lines]
    assert [(one["ref"], one["turn"], one["senderId"]) for one in read] == [
        (1, 1, OWNER),
        (2, 1, "BOT"),
        (3, 2, MEMBER),
    ]


def test_what_is_quoted_is_marked_and_proves_nothing():
    found = shown(turn(line(11, OWNER, part="quote"), line(12, MEMBER)))
    assert json.loads(found.lines[0])["isQuote"] is True
    assert list(found.said) == [2]


def test_secrets_are_masked():
    found = shown(
        turn(line(11, OWNER, "我的密码是 hunter2abc"), TurnLine(1, "answer", "13800138000"))
    )
    assert "hunter2abc" not in "".join(found.lines)
    assert "13800138000" not in "".join(found.lines)


@given(st.text(max_size=80))
def test_whatever_people_write_a_line_is_a_line(text: str):
    found = shown(turn(line(11, OWNER, text), TurnLine(None, "answer", text)))
    assert all(len(one.splitlines()) == 1 for one in found.lines)


# What is answered


@pytest.mark.parametrize(
    "text",
    [
        '{"current_discussion": "谈"}',
        '好的：\n```json\n{"current_discussion": "谈"}\n```',
        '<think>{"current_discussion": "想"}</think>{"current_discussion": "谈"}',
        '{"summary": {"current_discussion": "谈"}}',
        '{"current_discussion": "旧"} 不对，应该是 {"current_discussion": "谈"}',
    ],
)
def test_the_last_object_that_fits_is_the_answer(text: str):
    assert parse_summary(text).current == "谈"


@pytest.mark.parametrize(
    "text",
    ["", "好的", "[]", '{"other": 1}', '{"current_discussion": "谈', '{"key_decisions": "x"}'],
)
def test_without_such_an_object_there_is_no_answer(text: str):
    with pytest.raises(AnswerUnusable):
        parse_summary(text)


def test_an_empty_object_changes_nothing():
    assert parse_summary("{}") == Answered()
    before = summary(decision("一"), current_discussion="谈")
    assert merge(before).summary == before


def test_a_malformed_item_spoils_no_other():
    found = merge(NO_SUMMARY, key_decisions=[7, "x", {"text": 3}, new(), {"refs": {}}])
    assert texts(found) == ["Do: 说中文"]


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
KEYS = ("key_decisions", "overturned", "past_discussions", "current_discussion")


@given(
    st.dictionaries(st.sampled_from(KEYS), JSONS | st.lists(JSONS, max_size=12)), st.integers(0, 8)
)
def test_whatever_a_model_answers_the_limits_hold_and_what_binds_stays(answer: Any, count: int):
    before = summary(*(decision(f"规矩{n}", OWNER, binds=True) for n in range(count)))
    try:
        found = merged(before, parse_summary(json.dumps(answer)), shown()).summary
    except AnswerUnusable:
        return
    assert set(before.key_decisions) <= set(found.key_decisions)
    assert len(found.key_decisions) <= MAX_DECISIONS
    assert len(found.past_discussions) <= MAX_DISCUSSIONS
    assert read_summary(written(found)) == found


# Decisions


def test_a_new_decision_has_its_author_and_the_rows_in_which_they_say_so():
    found = merge(NO_SUMMARY, key_decisions=[new("Do: 说中文", OWNER, 1, 2, 9)])
    assert found.summary.key_decisions == (Decision("Do: 说中文", OWNER, (11,), binds=True),)


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (new("说中文"), "no-prefix"),
        (new("Do:"), "no-prefix"),
        (new("Don't: 记 13800138000"), "sensitive"),
        (new(author="30009"), "no-author"),
        (new(author="BOT"), "no-author"),
        (new("Do: 说中文", OWNER, 2), "no-evidence"),
        (new("Do: 说中文", OWNER, 4), "no-evidence"),
        ({**new(), "refs": []}, "no-evidence"),
        ({"id": "k9"}, "unknown-id"),
    ],
)
def test_a_decision_is_left_out_that(item: dict[str, Any], reason: str):
    found = merge(NO_SUMMARY, key_decisions=[item])
    assert (texts(found), found.refusals) == ([], (reason,))


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("do：说中文", "Do: 说中文"),
        ("DON’T: 刷屏", "Don't: 刷屏"),
        ("Do not: 刷屏", "Don't: 刷屏"),
        ("Dont:刷屏", "Don't: 刷屏"),
    ],
)
def test_however_its_beginning_is_written_a_decision_begins_the_same(typed: str, text: str):
    assert texts(merge(NO_SUMMARY, key_decisions=[new(typed)])) == [text]


def test_a_long_decision_is_cut():
    (text,) = texts(merge(NO_SUMMARY, key_decisions=[new("Do: " + "长" * 999)]))
    assert len(text) == DECISION_CHARS


@pytest.mark.parametrize(("author", "ref", "binds"), [(OWNER, 1, True), (MEMBER, 2, False)])
def test_only_the_word_of_who_may_decide_binds(author: str, ref: int, binds: bool):
    found = merge(NO_SUMMARY, key_decisions=[new("Do: 说中文", author, ref)]).summary
    assert [one.binds for one in found.key_decisions] == [binds]
    assert bool(binding_lines(found)) == binds
    assert bool(background_lines(found)) != binds


def test_an_author_may_be_written_as_a_number():
    assert texts(merge(NO_SUMMARY, key_decisions=[{**new(), "authorId": int(OWNER)}]))


def test_an_old_decision_is_kept_as_it_is_by_its_id_or_its_text():
    before = summary(decision("一"), decision("二"), decision("三"))
    found = merge(
        before, key_decisions=[{"id": "K1", "text": "Do: 改写"}, new("Do: 二", OTHER, 3), new()]
    )
    assert texts(found) == ["Do: 一", "Do: 二", "Do: 说中文"]
    assert found.summary.key_decisions[:2] == before.key_decisions[:2]


@pytest.mark.parametrize("label", [{}, {"id": "k2"}])
def test_what_was_background_binds_once_somebody_says_so_who_may_decide(label: dict[str, str]):
    before = summary(decision("一"), decision("二"), decision("三"))
    again = {**label, **new("Do: 二", OWNER, 1)}
    found = merge(before, key_decisions=[*kept(1, 3), again]).summary.key_decisions
    assert [(one.text, one.binds) for one in found] == [
        ("Do: 一", False),
        ("Do: 三", False),
        ("Do: 二", True),
    ]
    # Whoever else says so changes nothing, nor does a word that is not theirs.
    for said_by, ref in ((OTHER, 3), (OWNER, 2)):
        again = {**label, **new("Do: 二", said_by, ref)}
        found = merge(before, key_decisions=[*kept(1, 3), again])
        assert found.summary.key_decisions == before.key_decisions


def test_a_decision_that_is_not_named_any_more_goes_if_it_does_not_bind():
    before = summary(decision("一"), decision("二", OWNER, binds=True), decision("三"))
    assert texts(merge(before, key_decisions=kept(3))) == ["Do: 一", "Do: 二", "Do: 三"]
    assert texts(merge(before, key_decisions=kept(1))) == ["Do: 一", "Do: 二", "Do: 三"]
    assert texts(merge(before, key_decisions=kept(2, 3))) == ["Do: 二", "Do: 三"]
    assert texts(merge(before, key_decisions=kept(1, 3))) == ["Do: 一", "Do: 二", "Do: 三"]


def test_who_drops_more_than_half_without_saying_why_drops_none_and_adds_what_is_new():
    before = summary(*(decision(str(n)) for n in range(5)))
    found = merge(before, key_decisions=[*kept(1, 2), new()], current_discussion="谈")
    assert texts(found) == [*(f"Do: {n}" for n in range(5)), "Do: 说中文"]
    assert found.refusals == ("dropped-unnamed",)
    assert found.summary.current_discussion == "谈"
    assert texts(merge(before, key_decisions=kept(1, 2, 3))) == ["Do: 0", "Do: 1", "Do: 2"]


def test_a_decision_that_was_overturned_goes_however_many_do():
    before = summary(*(decision(str(n)) for n in range(4)))
    gone = [{"id": f"k{n}", "refs": [2]} for n in (1, 2, 3)]
    found = merge(before, key_decisions=kept(4), overturned=gone)
    assert (texts(found), found.refusals) == (["Do: 3"], ())
    # Also if the answer says nothing else of decisions.
    assert texts(merge(before, overturned=gone)) == ["Do: 3"]


@pytest.mark.parametrize(
    ("ref", "goes"), [(1, True), (2, True), (3, False), (4, False), (99, False)]
)
def test_what_binds_is_overturned_by_its_author_or_who_may_decide_and_by_nobody_else(
    ref: int, goes: bool
):
    before = summary(decision("别刷屏", MEMBER, binds=True))
    found = merge(before, key_decisions=[], overturned=[{"id": "k1", "refs": [ref]}])
    assert texts(found) == ([] if goes else ["Do: 别刷屏"])


def test_a_ninth_decision_displaces_the_oldest_that_does_not_bind_then_the_oldest():
    before = summary(
        decision("一", OWNER, binds=True),
        decision("二"),
        *(decision(str(n), OWNER, binds=True) for n in range(3, 9)),
    )
    every = kept(*range(1, 9))
    found = merge(before, key_decisions=[*every, new("Do: 九")])
    assert texts(found) == ["Do: 一", *(f"Do: {n}" for n in range(3, 9)), "Do: 九"]
    again = merge(found.summary, key_decisions=[*every, new("Do: 十")])
    assert texts(again) == [*(f"Do: {n}" for n in range(3, 9)), "Do: 九", "Do: 十"]


def test_the_decision_model_overturns_under_the_same_rules():
    before = summary(decision("一", OWNER, binds=True), decision("二"))
    gone = [Overturned(id="k1", refs=(2,)), Overturned(id="k2", refs=(3,))]
    assert without_overturned(before, gone, shown()) == summary(decision("一", OWNER, binds=True))


# Discussions


def test_discussions_are_the_newest_eight_in_order_of_their_days():
    items = [{"topic": f"话题{n}", "last_discussed": f"2026-07-{20 - n:02}"} for n in range(12)]
    found = merge(NO_SUMMARY, past_discussions=items).summary.past_discussions
    assert [one.topic for one in found] == [f"话题{n}" for n in range(7, -1, -1)]


@pytest.mark.parametrize("day", ["", "昨天", "2026-07-30", "2026-7-1"])
def test_a_day_that_is_none_or_has_not_come_is_the_newest_that_was_read(day: str):
    (one,) = merge(
        NO_SUMMARY, past_discussions=[{"topic": "爬山", "last_discussed": day}]
    ).summary.past_discussions
    assert one == Discussion("爬山", last_discussed=DAY)


def test_a_topic_told_twice_is_one():
    items = [{"topic": "爬山", "description": "旧"}, {"topic": " 爬 山", "description": "新"}]
    (one,) = merge(NO_SUMMARY, past_discussions=items).summary.past_discussions
    assert one.description == "新"


def test_what_an_answer_leaves_out_stays_and_what_it_empties_goes():
    before = summary(past_discussions=(Discussion("爬山"),), current_discussion="谈")
    assert merge(before, key_decisions=[]).summary == before
    assert merge(before, past_discussions=[], current_discussion="").summary == NO_SUMMARY


def test_a_discussion_with_a_secret_in_it_is_left_out():
    found = merge(
        NO_SUMMARY,
        past_discussions=[{"topic": "号码", "description": "13800138000"}, {"description": "x"}],
        current_discussion="密码是 hunter2abc",
    )
    assert found.summary == NO_SUMMARY
    assert sorted(found.refusals) == ["not-an-object", "sensitive", "sensitive"]


# What is shown and kept


def full() -> SessionSummary:
    return SessionSummary(
        (decision("一", OWNER, binds=True), decision("二")),
        (Discussion("爬山", "去湖边", "等天气", DAY),),
        "在约时间",
    )


def test_a_summary_reads_back_as_it_was_written():
    assert read_summary(written(full())) == full()
    assert written(NO_SUMMARY) == ""
    assert read_summary("") == NO_SUMMARY


def test_what_binds_is_shown_apart_from_the_rest():
    assert binding_lines(full()) == (f'{{"decision": "Do: 一", "senderId": "{OWNER}"}}',)
    assert [list(json.loads(one)) for one in background_lines(full())] == [
        ["decision", "senderId"],
        ["topic", "description", "direction", "last_discussed"],
        ["current"],
    ]


def test_a_summarizing_prompt_shows_every_entry_under_a_label():
    labels = [json.loads(one).get("id") for one in summary_lines(full())]
    assert labels == ["k1", "k2", "p1", None]


def test_whatever_is_chosen_what_binds_stays():
    assert list(choices(full())) == ["k2", "p1", "c"]
    assert narrowed(full(), frozenset(choices(full()))) == full()
    left = narrowed(full(), frozenset())
    assert left == summary(decision("一", OWNER, binds=True))
    assert narrowed(full(), {"p1", "nonsense"}).past_discussions == full().past_discussions


@pytest.mark.parametrize(
    "text",
    [
        "说过的话",
        "{}",
        "[]",
        "null",
        '{"key_decisions": [1], "past_discussions": [], "current_discussion": ""}',
        '{"key_decisions": [], "past_discussions": [{"subject": "a"}], "current_discussion": ""}',
    ],
)
def test_a_summary_that_cannot_be_read_is_none(text: str):
    assert read_summary(text) == NO_SUMMARY

"""What of an answer is believed, case by case."""

from typing import Any

import pytest

from bot.memory.checks import without_named
from bot.memory.repair import repair_request
from bot.memory.verdict import Added, Checked, Proven, Summarised, Superseded
from bot.model import Quoted
from tests.unit.batches import (
    BOT_ID,
    GROUP_STREAM,
    NAMES,
    PRIVATE,
    batch_of,
    checked,
    entry,
    fact,
    member_stream,
    remembered,
    said,
)

TALK = [
    said(1, "30001", "我喜欢吃辣"),
    said(2, "30002", "我在学 Rust"),
    said(3, BOT_ID, "小鱼养了一只猫"),
    said(4, "30003", "周五聚餐吧"),
]


def added(result: Checked) -> list[tuple[str, str]]:
    """Return whose entries were added, with their texts."""
    return [(one.stream.scope.id, one.text) for one in result.changes if isinstance(one, Added)]


def refusals(result: Checked) -> list[tuple[str, str]]:
    return [(one.path, one.reason) for one in result.rejections]


def member(sender_id: object, *profile: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"senderId": sender_id, "profile": list(profile), **more}


def group(*profile: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"profile": list(profile), **more}


# Members


def test_an_item_keyed_by_a_name_is_refused_and_never_resolved():
    answer = {"members": [member("小鱼", fact("喜欢吃辣", 1)), member("30002", fact("学 Rust", 2))]}
    result = checked(answer, batch_of("member-batch", TALK))
    assert added(result) == [("30002", "学 Rust")]
    assert refusals(result) == [("members[0]", "sender-name")]
    assert (result.counts.leaves, result.counts.refused) == (2, 1)


def test_members_who_did_not_speak_and_broken_ones_are_dropped_and_counted():
    one = fact("喜欢安静", 1)
    answer = {
        "members": [
            member(30001, fact("喜欢吃辣", 1)),
            member("BOT", one),
            member("10001", one),
            member("30009", one),
            member(" 30002 ", fact("学 Rust", 2)),
            None,
            "x",
            {"profile": [one, one]},
            {"senderId": "30009"},
        ]
    }
    result = checked(answer, batch_of("member-batch", TALK))
    assert added(result) == [("30001", "喜欢吃辣"), ("30002", "学 Rust")]
    assert dict(result.reasons) == {
        "not-an-object": 2,
        "sender-bot": 2,
        "sender-absent": 2,
        "sender-missing": 2,
    }
    assert result.counts.leaves == 10
    assert result.needs_repair


@pytest.mark.parametrize("ref", [2, 3])
def test_a_member_item_needs_words_of_that_very_member(ref: int):
    answer = {"members": [member("30001", fact("养了一只猫", ref))]}
    result = checked(answer, batch_of("member-batch", TALK))
    assert added(result) == []
    assert refusals(result) == [("members[0].profile[0]", "evidence-missing")]


@pytest.mark.parametrize(
    "message",
    [
        said(1, "30001", "[合并转发 1 条] 我养了猫", statement=""),
        said(1, "30001", "[图片：一只猫]", statement="  "),
        said(1, "30001", "", statement="", quote=Quoted("BOT", "你养了一只猫")),
    ],
)
def test_quoting_forwarding_and_showing_is_not_saying(message: Any):
    answer = {"members": [member("30001", fact("养了一只猫", 1), summary="养猫的人")]}
    result = checked(answer, batch_of("member-batch", [message, *TALK[1:]]))
    assert result.changes == ()
    assert set(result.reasons) == {"evidence-missing"}


def test_other_bots_and_anonymous_people_have_no_memory():
    talk = [
        said(1, "30007", "签到成功", is_person=False),
        said(2, "80000000", "我是谁", is_anonymous=True),
        said(3, "30001", "早"),
    ]
    answer = {"members": [member("30007", fact("甲", 1)), member("80000000", fact("乙", 2))]}
    result = checked(answer, batch_of("member-batch", talk))
    assert result.changes == ()
    assert set(result.reasons) == {"sender-bot", "sender-absent"}


def test_an_item_may_rest_on_others_words_too():
    answer = {"members": [member("30001", fact("和阿明一起学 Rust", 1, 2))]}
    [change] = checked(answer, batch_of("member-batch", TALK)).changes
    assert isinstance(change, Added)
    assert change.proofs == ((1001, 1002),)
    assert change.stream == member_stream("30001")


def test_profile_and_pattern_are_of_the_lasting_tier_and_daily_is_an_episode():
    answer = {
        "members": [
            member(
                "30001",
                fact("喜欢吃辣", 1, type="preference"),
                fact("怕猫", 1, type="fear"),
                fact("常说辣", 1),
                pattern=[fact("每天聊吃的", 1)],
                daily=[fact("说起吃辣", 1, date="2026-08-22")],
            )
        ]
    }
    changes = checked(answer, batch_of("member-batch", TALK)).changes
    shapes = [(c.document, c.type, c.date, c.tier) for c in changes if isinstance(c, Added)]
    assert shapes == [
        ("profile", "preference", None, "profile"),
        ("profile", "note", None, "profile"),
        ("profile", "note", None, "profile"),
        ("pattern", None, None, "profile"),
        ("daily", None, "2026-08-22", "episodic"),
    ]


# Refs


@pytest.mark.parametrize("refs", [[99], [1, 99], [0], [-1]])
def test_refs_outside_the_batch_fail_their_item(refs: list[int]):
    answer = {"members": [member("30001", fact("喜欢吃辣", *refs))]}
    result = checked(answer, batch_of("member-batch", TALK))
    assert result.changes == ()
    assert result.counts.refused == 1


def test_an_item_without_refs_fails():
    answer = {"members": [member("30001", {"text": "喜欢吃辣"}, fact("喜欢吃辣"))]}
    result = checked(answer, batch_of("member-batch", TALK))
    assert result.changes == ()
    assert dict(result.reasons) == {"refs-missing": 2}


# Private


def test_the_bots_words_alone_prove_nothing_in_private():
    talk = [said(1, "30001", "你好"), said(2, BOT_ID, "你喜欢吃辣")]
    answer = group(fact("喜欢吃辣", 2, type="preference"), fact("打了招呼", 1, 2))
    result = checked(answer, batch_of("private-owner", talk))
    assert added(result) == [("30001", "打了招呼")]
    assert refusals(result) == [("profile[0]", "evidence-missing")]
    assert {change.stream for change in result.changes} == {member_stream("30001", PRIVATE)}


# The group


def test_a_group_item_does_not_rest_on_the_bot_alone():
    result = checked(group(fact("群里有一只猫", 3)), batch_of("group", TALK))
    assert refusals(result) == [("profile[0]", "people-missing")]


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("30002 在学 Rust", 1),
        ("阿明在学 Rust", 1),
        ("小鱼干要请客", 1),
        ("tom 要请客", 1),
        ("小鱼和小鱼干要请客", 1),
        ("30002说：小鱼干要请客", 1),
    ],
)
def test_a_group_item_about_a_member_needs_that_members_words(text: str, ref: int):
    result = checked(group(fact(text, ref)), batch_of("group", TALK))
    assert result.changes == ()
    assert result.counts.refused == 1


@pytest.mark.parametrize(
    ("text", "refs"),
    [
        ("30002 在学 Rust", [2]),
        ("阿明在学 Rust", [1, 2]),
        ("小鱼在学 Rust", [2]),
        ("小鱼干提议聚餐", [4]),
        ("群里周五聚餐", [1]),
        ("讨论 atomic 与 tomorrow", [1]),
        ("大家决定聚餐", [1]),
    ],
)
def test_a_group_item_with_the_right_words_is_kept(text: str, refs: list[int]):
    result = checked(group(fact(text, *refs)), batch_of("group", TALK))
    assert result.rejections == ()
    assert len(result.changes) == 1


def test_what_one_says_about_another_is_kept_as_a_saying():
    answer = group(fact("阿明(30002)说:小鱼干要请客", 2), fact("30001 说：阿明要请客", 2))
    result = checked(answer, batch_of("group", TALK))
    assert added(result) == [("20001", "30002 说：小鱼干要请客")]
    assert refusals(result) == [("profile[1]", "wrong-speaker")]


def test_nobody_can_silence_a_group_by_taking_a_common_name():
    names = {**NAMES, "30008": frozenset({"大家", "2026", "，。", "的"})}
    answer = group(fact("大家决定 2026 年，聚餐。", 1))
    assert checked(answer, batch_of("group", TALK, names=names)).rejections == ()


def test_people_who_opted_out_are_not_named():
    answer = group(fact("30001 说：30005 要走", 1), fact("30005 要走", 1), summary="30005 要走")
    result = checked(answer, batch_of("group", TALK), opted_out=frozenset({"30005"}))
    assert result.changes == ()
    assert dict(result.reasons) == {"opted-out": 3}


def test_what_names_who_opts_out_meanwhile_does_not_stand():
    batch = batch_of("group", TALK)
    answer = group(fact("30001 说：30002 要走", 1), fact("聚餐", 1), summary="30002 要走")
    result = checked(answer, batch)
    assert len(result.changes) == 3
    standing = without_named(result.changes, batch, frozenset({"30002"}))
    assert [one.text for one in standing if isinstance(one, Added)] == ["聚餐"]
    assert len(standing) == 1
    assert without_named(result.changes, batch, frozenset({"30009"})) == result.changes


# Texts


def test_sensitive_texts_are_dropped():
    answer = group(fact("手机号是 13812345678", 1), summary="密码：hunter2secret")
    result = checked(answer, batch_of("private-owner", TALK[:1]))
    assert result.changes == ()
    assert dict(result.reasons) == {"sensitive": 2}


def test_texts_are_one_line_within_the_limit():
    answer = group(
        fact("甲\n乙\u202e丙\u2028丁", 1),
        fact("长" * 301, 1),
        fact("长" * 300, 1),
        fact("\u200b", 1),
        memory=[fact("久" * 400, 1), fact("久" * 401, 1)],
    )
    result = checked(answer, batch_of("group", TALK))
    assert [text for _, text in added(result)] == ["甲 乙丙 丁", "长" * 300, "久" * 400]
    assert dict(result.reasons) == {"text-too-long": 2, "text-missing": 1}


def test_the_day_after_tomorrow_is_counted_from_the_day_it_was_said():
    talk = [said(1, "30001", "后天下午三点开会", day="2026-08-22")]
    answer = {"daily": [fact("后天下午三点开会", 1, date="2026-08-23")]}
    result = checked(answer, batch_of("group", talk))
    [change] = result.changes
    assert isinstance(change, Added)
    assert (change.date, change.text) == ("2026-08-22", "后天(2026-08-24)下午三点开会")
    assert result.counts.dates_moved == 1
    assert result.counts.refused == 0


# Equal texts


def test_equal_texts_of_one_answer_are_one_entry_with_two_proofs():
    answer = group(fact("群里周四聚餐。", 1), fact("群里 周四聚餐", 2))
    [change] = checked(answer, batch_of("group", TALK)).changes
    assert isinstance(change, Added)
    assert change.proofs == ((1001,), (1002,))


def test_a_text_that_is_remembered_gains_a_proof():
    memory = remembered(entry(7, "群里喜欢吃辣！！", "profile"), entry(8, "群里喜欢吃辣", "memory"))
    answer = group(fact("群里喜欢吃辣", 1), fact("群里不喜欢吃辣", 2))
    result = checked(answer, batch_of("group", TALK, [memory]))
    assert [c for c in result.changes if isinstance(c, Proven)] == [
        Proven(GROUP_STREAM, 7, (1001,))
    ]
    assert added(result) == [("20001", "群里不喜欢吃辣")]


def test_forty_facts_stay_and_one_is_added():
    memory = remembered(*(entry(n, f"第 {n} 件事", date="2026-08-01") for n in range(1, 41)))
    answer = {"memory": [fact("群里聚餐", 1, date="2026-08-22")]}
    result = checked(answer, batch_of("group", TALK, [memory]))
    assert added(result) == [("20001", "群里聚餐")]
    assert len(result.changes) == 1


def test_the_same_event_on_another_day_is_another_event():
    memory = remembered(entry(7, "群里聚餐", "daily", date="2026-08-01"))
    answer = {"daily": [fact("群里聚餐", 1, date="2026-08-22")]}
    result = checked(answer, batch_of("group", TALK, [memory]))
    assert added(result) == [("20001", "群里聚餐")]


# Summaries


def test_a_summary_rests_on_what_was_read_for_it():
    answer = {"members": [member("30001", summary="爱吃辣的人")]}
    [change] = checked(answer, batch_of("member-batch", TALK)).changes
    assert change == Summarised(member_stream("30001"), "爱吃辣的人", (1001,))
    [change] = checked({"summary": "群里在约饭"}, batch_of("group", TALK)).changes
    assert change == Summarised(GROUP_STREAM, "群里在约饭", (1001, 1002, 1004))


def test_a_summary_that_is_too_long_ends_with_a_sentence():
    text = "群里在约饭。" * 90 + "尾" * 100
    [change] = checked({"summary": text}, batch_of("group", TALK)).changes
    assert isinstance(change, Summarised)
    assert change.text == "群里在约饭。" * 90
    result = checked({"summary": "长" * 601}, batch_of("group", TALK))
    assert refusals(result) == [("summary", "text-too-long")]


def test_a_summary_of_the_group_names_nobody_who_is_silent():
    talk = TALK[:2]
    result = checked({"summary": "小鱼干在筹备聚餐"}, batch_of("group", talk))
    assert refusals(result) == [("summary", "names-member")]
    known = remembered(summary="小鱼干在筹备发布")
    result = checked({"summary": "小鱼干筹备完了"}, batch_of("group", talk, [known]))
    assert len(result.changes) == 1


def test_the_summary_that_is_there_is_no_change():
    memory = remembered(summary="群里在约饭")
    result = checked({"summary": "群里在约饭。"}, batch_of("group", TALK, [memory]))
    assert result.changes == ()
    assert result.rejections == ()


# Retractions


def retract(label: str, *refs: int, why: str = "说反了") -> dict[str, Any]:
    return {"id": label, "refs": list(refs), "why": why}


OLD = entry(7, "群里喜欢聚餐", proofs=((500, 501),))


@pytest.mark.parametrize(
    ("refs", "admins", "authors", "is_retracted"),
    [
        ([1], [], {}, False),
        ([3], [], {500: "30001"}, False),
        ([1], [], {501: "30001"}, True),
        ([1], ["30001"], {}, True),
        ([1, 2], [], {}, True),
        ([1, 3], [], {}, False),
    ],
)
def test_a_group_entry_is_retracted_by_its_author_an_admin_or_two_members(
    refs: list[int], admins: list[str], authors: dict[int, str], is_retracted: bool
):
    batch = batch_of("group", TALK, [remembered(OLD)], admins=admins)
    result = checked({"retract": [retract("#0007", *refs)]}, batch, authors=authors)
    if is_retracted:
        proof = tuple(1000 + ref for ref in refs)
        assert result.changes == (Superseded(GROUP_STREAM, 7, proof, "说反了"),)
    else:
        assert refusals(result) == [("retract[0]", "retract-unsupported")]


def test_a_member_retracts_only_what_is_their_own_and_was_shown():
    memories = [
        remembered(
            entry(7, "喜欢吃辣", "profile", stream=member_stream(user)), stream=member_stream(user)
        )
        for user in ("30001", "30002")
    ]
    answer = {
        "members": [
            member("30001", retract=[retract("7", 1), retract("7", 1), retract("0008", 1)]),
            member("30002", retract=[retract("7", 1), retract("？", 2)]),
        ]
    }
    result = checked(answer, batch_of("member-batch", TALK, memories))
    assert result.changes == (Superseded(member_stream("30001"), 7, (1001,), "说反了"),)
    assert refusals(result) == [
        ("members[0].retract[2]", "entry-unknown"),
        ("members[1].retract[0]", "retract-unsupported"),
        ("members[1].retract[1]", "entry-unknown"),
    ]


def test_what_an_answer_says_again_it_does_not_retract():
    answer = {"memory": [fact("群里喜欢聚餐", 1)], "retract": [retract("0007", 1, 2)]}
    result = checked(answer, batch_of("group", TALK, [remembered(OLD)]))
    assert result.changes == (Proven(GROUP_STREAM, 7, (1001,)),)
    assert refusals(result) == [("retract[0]", "retract-contradicted")]


def test_a_reason_to_retract_keeps_no_secrets():
    answer = {"retract": [retract("0007", 1, 2, why="新号 13812345678")]}
    [change] = checked(answer, batch_of("group", TALK, [remembered(OLD)])).changes
    assert isinstance(change, Superseded)
    assert change.why == ""


# Repair


def test_half_refused_needs_no_repair_and_more_does():
    good, bad = fact("群里约饭", 1), fact("群里约饭", 99)
    assert not checked(group(good, bad), batch_of("group", TALK)).needs_repair
    assert checked(group(good, bad, bad), batch_of("group", TALK)).needs_repair
    assert not checked("{}", batch_of("group", TALK)).needs_repair


def test_the_repair_request_names_places_and_reasons_and_nobodys_words():
    answer = {"members": [member("小鱼", fact("秘密的事", 1))], "other": 1}
    request = repair_request(checked(answer, batch_of("member-batch", TALK)))
    assert "- members[0]：senderId 是名字，必须写号码" in request
    assert "秘密" not in request
    assert "小鱼" not in request

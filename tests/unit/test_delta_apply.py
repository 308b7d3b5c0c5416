"""Changes folded, checked again, applied."""

from bot.memory.delta import merged, recheck
from bot.memory.verdict import Added, Proven, Summarised, Superseded
from bot.memory.wording import same_wording
from bot.model import Entry
from tests.unit.applied import applied
from tests.unit.batches import (
    GROUP_STREAM,
    batch_of,
    checked,
    entry,
    fact,
    remembered,
    said,
)

TALK = [said(ref, "30001", "说话") for ref in range(1, 6)]
NOBODY: frozenset[int] = frozenset()


def new(text: str, *proofs: tuple[int, ...]) -> Added:
    return Added(GROUP_STREAM, "memory", text, proofs or ((1001,),), "episodic", None, "2026-08-22")


def test_five_equal_wordings_are_one_entry_with_five_proofs():
    memory = remembered()
    for ref in range(1, 6):
        answer = {"memory": [fact("群里周四聚餐" + "。" * ref, ref)]}
        memory = applied(memory, checked(answer, batch_of("group", TALK, [memory])).changes)
    [one] = memory.entries
    assert one.proofs == ((1001,), (1002,), (1003,), (1004,), (1005,))


def test_a_repair_adds_to_the_answer_and_equal_items_are_one():
    batch = batch_of("group", TALK)
    bad = fact("坏", 99)
    first = checked({"memory": [fact("甲", 1), bad, bad, bad], "summary": "旧"}, batch)
    second = checked({"memory": [fact("甲。", 1), fact("乙", 2)], "summary": "新"}, batch)
    both = merged(first, second, batch.memories)
    assert [c.text for c in both.changes if isinstance(c, Added)] == ["甲", "乙"]
    assert [c.text for c in both.changes if isinstance(c, Summarised)] == ["新"]
    assert (both.counts.leaves, both.counts.refused) == (8, 3)


def test_a_repair_does_not_retract_what_the_answer_said():
    memory = remembered(entry(1, "甲"))
    batch = batch_of("group", TALK, [memory], admins=["30001"])
    first = checked({"memory": [fact("甲", 1)]}, batch)
    second = checked({"retract": [{"id": "1", "refs": [2]}]}, batch)
    assert merged(first, second, [memory]).changes == (Proven(GROUP_STREAM, 1, (1001,)),)


def test_what_rests_on_a_recalled_message_is_not_written():
    changes = (
        new("甲", (1001, 1002), (1003,)),
        new("乙", (1002,)),
        Proven(GROUP_STREAM, 1, (1002,)),
        Summarised(GROUP_STREAM, "新", (1001, 1002)),
        Superseded(GROUP_STREAM, 2, (1001, 1002), ""),
    )
    memory = remembered(entry(1, "丙"), entry(2, "丁"))
    assert recheck(changes, frozenset({1002}), [memory]) == (new("甲", (1003,)),)


def test_what_was_forgotten_or_learnt_during_the_call_is_respected():
    changes = (
        new("甲"),
        Proven(GROUP_STREAM, 1, (1001,)),
        Superseded(GROUP_STREAM, 1, (1001,), ""),
    )
    now = remembered(entry(3, "甲"))
    assert recheck(changes, NOBODY, [now]) == (Proven(GROUP_STREAM, 3, (1001,)),)


def test_typing_makes_no_difference_and_everything_else_does():
    assert same_wording("我 喜欢吃辣。 ") == same_wording("我喜欢吃辣")
    assert same_wording("ＲＵＳＴ 好，快") == same_wording("rust好, 快!")
    texts = [
        "我喜欢吃辣",
        "我不喜欢吃辣",
        "3.5",
        "35",
        "C++",
        "C",
        "a b",
        "ab",
        "。",
        "来吗？",
        "来吗",
    ]
    assert len({same_wording(text) for text in texts}) == len(texts)


def test_the_delta_of_a_whole_batch_is_applied_at_once():
    talk = [said(ref, f"3{ref % 40:04}", f"说了第 {ref} 句") for ref in range(1, 81)]
    answer = {"memory": [fact(f"第 {ref} 件事", ref) for ref in range(1, 81)]}
    memory = remembered(*(entry(n, f"旧的第 {n} 件") for n in range(1, 301)))
    result = checked(answer, batch_of("group", talk, [memory], names={}))
    after = applied(memory, result.changes)
    assert len(after.entries) == 380
    assert all(isinstance(one, Entry) for one in after.entries)

"""Reflect: what becomes of an answer, and of none."""

import asyncio
import json
import math

import pytest

from bot.errors import (
    ContextTooLong,
    ModelAnswerInvalid,
    ModelNotConfigured,
    ModelRefused,
    ModelUnavailable,
)
from bot.llm.protocol import ModelRequest
from bot.llm.scripted import Line
from bot.model import entry_label
from bot.reflect import reflect
from bot.worker import LEASE_MS, lease_owner
from tests.memory.workshop import (
    BEAR,
    CAT,
    FISH,
    GROUP,
    OF_BEAR,
    OF_FISH,
    OF_GROUP,
    OPERATOR,
    PRIVATE,
    Shown,
    Workshop,
    cut_off,
    diary,
    refuse_if,
    say,
    say_of,
    spoken,
)

DOWN = ModelUnavailable("no answer")
REFUSED = ModelRefused("the provider refuses the content")


async def alone(shop: Workshop) -> None:
    """Leave the group's task alone in the world."""
    await shop.set(memoryMemberBatchEnabled=False)


async def retries(shop: Workshop, minutes: float) -> int:
    """Let minutes pass, looking again every half of one; return how many calls that made."""
    before = len(shop.model.requests)
    for _ in range(round(minutes * 2)):
        await shop.pass_time(0.5)
        await shop.tick()
    return len(shop.model.requests) - before


# --- what is written --------------------------------------------------------------------------


async def test_an_answer_becomes_entries_with_their_evidence(shop: Workshop):
    rows = await shop.hear("我们周三前交稿", "好，我来写", by=FISH)
    shop.model.enqueue(
        say(
            memory=[{"date": "2026-07-29", "text": "稿子周三前交", "refs": [1]}],
            summary="群里在赶稿子",
        ),
        purpose="reflect.group",
    )
    shop.model.enqueue(
        say_of(FISH, profile=[{"type": "background", "text": "负责写稿", "refs": [1, 2]}]),
        purpose="reflect.member-batch",
    )
    await shop.idle()
    [entry] = (await shop.export(OF_GROUP))["documents"]["memory"]
    assert entry["date"] == "2026-07-29"
    assert [e["sender_id"] for e in entry["evidence"]] == [FISH]
    [own] = (await shop.export(OF_FISH))["documents"]["profile"]
    assert len(own["evidence"]) == 2
    assert own["type"] == "background"
    assert (await shop.export(OF_GROUP))["documents"]["summary"] == {str(GROUP): "群里在赶稿子"}
    assert await shop.cursors() == {"group": rows[-1], "member-batch": rows[-1]}


async def test_items_of_the_wrong_person_are_refused_and_counted_and_the_rest_is_applied(
    shop: Workshop,
):
    await shop.hear("我养了一只猫", by=FISH)
    await shop.hear("我搬到南京了", by=BEAR)
    members = [
        {"senderId": "小鱼", "profile": [{"text": "养猫", "refs": [1]}]},
        {"senderId": FISH, "profile": [{"text": "搬到南京", "refs": [2]}]},
        {"senderId": int(BEAR), "profile": [{"text": "住在南京", "refs": [2]}]},
        {"senderId": "BOT", "profile": [{"text": "是机器人", "refs": [1]}]},
        None,
        "x",
    ]
    shop.model.enqueue(json.dumps({"members": members}), purpose="reflect.member-batch")
    shop.model.enqueue("{}", purpose="reflect.member-batch")
    await shop.idle()
    assert await shop.texts(OF_BEAR) == ["住在南京"]
    assert await shop.texts(OF_FISH) == []
    [task] = [t for t in await shop.tasks() if t.task == "member-batch"]
    assert task.counts["changes"] == 1
    assert task.counts["refused"] == 5
    assert sorted(task.refusals) == [
        ("members[0]", "sender-absent"),
        ("members[1].profile[0]", "evidence-missing"),
        ("members[3]", "sender-bot"),
        ("members[4]", "not-an-object"),
        ("members[5]", "not-an-object"),
    ]


async def test_equal_words_of_five_batches_are_one_entry_with_five_proofs(shop: Workshop):
    await shop.answer_once()
    for _ in range(5):
        await shop.hear("我吃素", chat=PRIVATE)
        shop.model.enqueue(say(profile=[{"type": "preference", "text": "吃素", "refs": [1]}]))
        await shop.idle()
    [entry] = (await shop.export(OF_FISH))["documents"]["profile"]
    assert len(entry["evidence"]) == 5
    assert "证据 5" in await shop.command("/我的记忆", by=FISH, chat=PRIVATE)


async def test_the_same_answer_again_adds_nothing_and_what_it_does_not_mention_stays(
    shop: Workshop,
):
    await alone(shop)
    await shop.chatter(40)
    await shop.idle()
    assert len(await shop.texts(OF_GROUP, "daily")) == 40
    answer = say(memory=[{"text": "周五聚餐", "refs": [1]}])
    for number in (41, 42):
        await shop.chatter(1, start=number)
        shop.model.enqueue(answer)
        await shop.idle()
    assert len(await shop.texts(OF_GROUP, "daily")) == 40
    [text] = await shop.texts(OF_GROUP, "memory")
    assert text.startswith("周五")


async def test_a_retraction_supersedes_and_keeps_what_it_rests_on(shop: Workshop):
    await shop.answer_once()
    await shop.hear("我住在杭州", chat=PRIVATE)
    shop.model.enqueue(say(profile=[{"type": "background", "text": "住在杭州", "refs": [1]}]))
    await shop.idle()
    [row] = await shop.hear("我搬到苏州了", chat=PRIVATE)

    def moved(request: ModelRequest) -> str:
        return say(
            profile=[{"type": "background", "text": "住在苏州", "refs": [1]}],
            retract=[{"id": Shown(request).id_of("住在杭州"), "refs": [1], "why": "搬家了"}],
        )

    shop.model.enqueue(moved)
    await shop.idle()
    assert await shop.texts(OF_FISH) == ["住在苏州"]
    assert await shop.rows(
        "SELECT e.text, e.ended_by, e.ended_why, m.message_id FROM entries AS e"
        " JOIN ending_messages AS m ON m.entry_id = e.id"
    ) == [("住在杭州", "superseded", "搬家了", row)]


async def test_only_an_entry_that_was_shown_can_be_retracted(shop: Workshop):
    await alone(shop)
    await shop.set(memoryGroupCompressAt=1_000)
    for number in range(200):
        await shop.hear(f"第{number}件" + "很长的事" * 20)
    await shop.idle()
    held = {entry["id"] for entry in (await shop.export(OF_GROUP))["documents"]["daily"]}
    await shop.hear("第0件不作数了")
    hidden: list[str] = []

    def retract(request: ModelRequest) -> str:
        hidden.extend(sorted(held - {entry["id"] for entry in Shown(request).entries}))
        return say(retract=[{"id": hidden[0], "refs": [1], "why": "不作数"}])

    shop.model.enqueue(retract, "{}")
    await shop.idle()
    assert hidden
    assert len(await shop.texts(OF_GROUP)) == 200
    assert (await shop.task()).counts["refused.entry-unknown"] == 1


async def test_a_task_sees_and_changes_its_own_stream_only(shop: Workshop):
    await shop.answer_once()
    await shop.hear("我怕黑", chat=PRIVATE)
    shop.model.enqueue(say(profile=[{"type": "note", "text": "怕黑", "refs": [1]}]))
    await shop.idle()
    await shop.hear("大家好")
    shop.model.enqueue(
        say_of(FISH, retract=[{"id": entry_label(1), "refs": [1], "why": "不怕了"}]),
        purpose="reflect.member-batch",
    )
    await shop.idle()
    assert await shop.texts(OF_FISH, "profile") == ["怕黑"]
    assert "怕黑" not in shop.asked("member-batch")[0].prompt
    assert "怕黑" not in shop.asked("group")[0].prompt


async def test_every_change_leaves_a_revision_and_no_change_leaves_none(shop: Workshop):
    await shop.set(memoryConcurrency=1)
    await shop.hear("你好", "在吗")
    shop.model.enqueue("{}", "{}")
    await shop.idle()
    assert await shop.rows("SELECT * FROM revisions") == []
    assert await shop.rows("SELECT * FROM streams") == []
    await shop.chatter(2)
    await shop.idle()
    revisions = await shop.rows("SELECT by, why, before, after FROM revisions ORDER BY id")
    assert [(by, why) for by, why, _, _ in revisions] == [
        ("group", "idle"),
        ("member-batch", "idle"),
        ("member-batch", "idle"),
    ]
    assert json.loads(revisions[0][2]) == {"entries": []}
    assert [one["text"] for one in json.loads(revisions[0][3])["entries"]] == ["第1句", "第2句"]


async def test_a_date_is_that_of_saying_and_not_of_reflecting(shop: Workshop):
    await shop.clock.advance(12 * 3_600 + 30 * 60)
    await shop.hear("后天下午三点开会")
    await shop.clock.advance(86_400)
    shop.model.enqueue(say(daily=[{"text": "后天下午三点开会", "refs": [1]}]))
    await shop.tick()
    [entry] = (await shop.export(OF_GROUP))["documents"]["daily"]
    assert entry["date"] == "2026-07-30"
    assert "2026-08-01" in entry["text"]


# --- repair -----------------------------------------------------------------------------------


async def test_an_answer_of_which_most_fails_is_repaired_once_and_both_are_applied(shop: Workshop):
    await alone(shop)
    await shop.hear("甲事定了", "乙事定了")
    first = say(
        memory=[
            {"text": "甲事定了", "refs": [1]},
            {"text": "乙事定了", "refs": [9]},
            {"text": "丙事定了", "refs": []},
        ]
    )
    second = say(memory=[{"text": "乙事定了", "refs": [2]}, {"text": "甲事定了", "refs": [1]}])
    shop.model.enqueue(first, second)
    await shop.idle()
    found = (await shop.export(OF_GROUP))["documents"]["memory"]
    assert [(entry["text"], len(entry["evidence"])) for entry in found] == [
        ("甲事定了", 1),
        ("乙事定了", 1),
    ]
    one, two = shop.model.requests
    assert [message.role for message in two.messages] == ["user", "assistant", "user"]
    assert two.messages[0] == one.messages[0]
    assert two.messages[1].content == first
    assert two.purpose == one.purpose
    assert (await shop.task()).calls == 2


async def test_an_answer_of_which_half_fails_is_not_repaired(shop: Workshop):
    await alone(shop)
    await shop.hear("甲事定了")
    shop.model.enqueue(
        say(memory=[{"text": "甲事定了", "refs": [1]}, {"text": "乙事定了", "refs": [9]}])
    )
    await shop.idle()
    assert len(shop.model.requests) == 1


@pytest.mark.parametrize("failure", [DOWN, REFUSED, ContextTooLong("long"), "不会", cut_off()])
async def test_a_repair_that_fails_leaves_the_first_answer(shop: Workshop, failure: Line):
    await alone(shop)
    await shop.hear("甲事定了")
    bad = [{"text": f"第{n}件", "refs": [9]} for n in range(3)]
    shop.model.enqueue(say(memory=[{"text": "甲事定了", "refs": [1]}, *bad]), failure, failure)
    await shop.idle()
    assert await shop.texts(OF_GROUP) == ["甲事定了"]
    assert (await shop.task()).state == "done"
    assert await shop.values("SELECT unusable FROM cursors WHERE task = 'group'") == [0]


# --- only waiting -----------------------------------------------------------------------------


async def test_the_pause_doubles_up_to_an_hour_whatever_arrives(shop: Workshop):
    await alone(shop)
    shop.model.enqueue(*([DOWN] * 9))
    await shop.chatter(1)
    await shop.idle()
    for minutes in (1, 2, 4, 8, 16, 32, 60, 60):
        await shop.chatter(60, start=1_000)
        assert await retries(shop, minutes - 0.5) == 0, minutes
        assert await retries(shop, 0.5) == 1, minutes
    assert await shop.texts(OF_GROUP) == []
    assert (await shop.task()).attempts == 9
    assert await retries(shop, 60) > 1
    assert len(await shop.texts(OF_GROUP)) > 0


@pytest.mark.parametrize(
    "error",
    [
        ModelUnavailable("network"),
        *(ModelUnavailable(f"HTTP {code}", status=code) for code in (401, 402, 403, 404, 429, 503)),
        ModelUnavailable("the breaker is open"),
        ModelNotConfigured("no key"),
    ],
    ids=str,
)
async def test_an_outage_never_narrows_or_skips_however_long_it_lasts(
    shop: Workshop, error: Exception
):
    await alone(shop)
    shop.model.enqueue(*([error] * 12))
    await shop.chatter(30)
    await shop.idle()
    for _ in range(11):
        await shop.pass_time(60)
        await shop.tick()
    assert await shop.rows("SELECT last_id, batch_limit, unusable, quarantined FROM cursors") == [
        (0, None, 0, 0),
        (0, None, 0, 0),
    ]
    await shop.pass_time(60)
    await shop.tick()
    assert [len(one.texts) for one in shop.asked("group")] == [30] * 13
    assert len(await shop.texts(OF_GROUP)) == 30


async def test_after_a_success_the_pause_begins_anew(shop: Workshop):
    await alone(shop)
    shop.model.enqueue(DOWN, DOWN, diary, DOWN)
    await shop.chatter(1)
    await shop.idle()
    assert await retries(shop, 3) == 2
    await shop.chatter(1, start=2)
    await shop.idle()
    assert await retries(shop, 1) == 1


async def test_one_chat_that_waits_does_not_hold_up_another(shop: Workshop):
    await alone(shop)
    shop.model.enqueue(DOWN)
    await shop.chatter(1)
    await shop.idle()
    await shop.answer_once()
    await shop.chatter(50, PRIVATE)
    assert await shop.tick() == 1


# --- answers that cannot be used --------------------------------------------------------------


async def test_an_answer_that_is_cut_off_is_asked_for_once_more_with_twice_the_limit(
    shop: Workshop,
):
    await alone(shop)
    await shop.chatter(3)
    shop.model.enqueue(cut_off(), diary)
    await shop.idle()
    assert [request.max_tokens for request in shop.model.requests] == [4_000, 8_000]
    assert len(await shop.texts(OF_GROUP)) == 3


async def test_an_answer_that_stays_cut_off_writes_nothing_and_costs_two_calls_until_the_pause_ends(
    shop: Workshop,
):
    await alone(shop)
    whole = cut_off(say(daily=[{"text": "第1句", "refs": [1]}]))
    shop.model.enqueue(*([whole] * 40))
    await shop.chatter(50)
    await shop.idle()
    assert len(shop.model.requests) == 2
    await shop.chatter(30, start=51)
    assert await retries(shop, 0.5) == 0
    assert await shop.texts(OF_GROUP) == []
    assert (await shop.cursors())["group"] == 0
    assert await retries(shop, 0.5) == 2


@pytest.mark.parametrize("answer", ["我不知道", cut_off(), ModelAnswerInvalid("no choices"), "[]"])
async def test_from_the_fifth_answer_that_cannot_be_used_batches_are_halved(
    shop: Workshop, answer: Line
):
    await alone(shop)

    def script(request: ModelRequest) -> Line:
        return answer if len(Shown(request).lines) > 20 else diary(request)

    shop.model.enqueue(*([script] * 60))
    await shop.chatter(80)
    await shop.idle()
    while (await shop.cursors())["group"] == 0:
        await shop.pass_time(60)
        await shop.tick()
    sizes = [len(one.lines) for one in shop.asked("group")]
    sizes = sizes[::2] if isinstance(answer, type(cut_off())) else sizes
    assert sizes[:6] == [80, 80, 80, 80, 80, 40]
    assert sorted(await shop.texts(OF_GROUP)) == sorted(f"第{n}句" for n in range(1, 81))
    assert await shop.rows("SELECT * FROM quarantine") == []


async def test_a_message_that_makes_answers_unusable_is_found_and_passed(shop: Workshop):
    await alone(shop)
    shop.model.enqueue(*([_babble] * 200))
    await shop.chatter(80)
    await shop.idle()
    for _ in range(40):
        await shop.pass_time(60)
        await shop.tick()
    assert sorted(await shop.texts(OF_GROUP)) == sorted(f"第{n}句" for n in range(1, 81) if n != 37)
    assert len(shop.model.requests) < 30
    assert await shop.values("SELECT message_id FROM quarantine") == [37]
    assert len(await shop.told()) == 1


def _babble(request: ModelRequest) -> Line:
    return "嗯……" if "第37句" in Shown(request).texts else diary(request)


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [1, 2, 40, 41, 80])
async def test_one_refused_message_is_quarantined_and_the_other_79_are_reflected(
    shop: Workshop, bad: int
):
    await alone(shop)
    word = f"第{bad}句"
    shop.model.enqueue(*([refuse_if(word, REFUSED)] * 40))
    await shop.chatter(80)
    await shop.idle()
    assert sorted(await shop.texts(OF_GROUP)) == sorted(
        f"第{n}句" for n in range(1, 81) if n != bad
    )
    assert await shop.rows("SELECT message_id, task FROM quarantine") == [(bad, "group")]
    assert len(shop.model.requests) <= 2 * math.ceil(math.log2(80)) + 2
    [told] = await shop.told()
    assert f"行 {bad}" in told
    assert word not in told
    assert FISH in told or BEAR in told
    assert "跳过" in await shop.command("/任务", by=OPERATOR)


async def test_a_prompt_that_is_too_long_is_halved_at_once(shop: Workshop):
    await alone(shop)

    def script(request: ModelRequest) -> Line:
        return ContextTooLong("too long") if len(Shown(request).lines) > 30 else diary(request)

    shop.model.enqueue(*([script] * 20))
    await shop.chatter(80)
    await shop.idle()
    assert [len(one.lines) for one in shop.asked("group")] == [80, 40, 20, 20, 20, 20]
    assert len(await shop.texts(OF_GROUP)) == 80


async def test_each_task_looks_for_its_own_refused_messages(shop: Workshop):
    shop.model.enqueue(*([refuse_if("第5句", REFUSED)] * 40), purpose="reflect.group")
    await shop.chatter(10)
    await shop.idle()
    assert await shop.values("SELECT task FROM quarantine") == ["group"]
    assert spoken(shop.asked("member-batch")) == [f"第{n}句" for n in range(1, 11)]


async def test_three_quarantines_running_stop_the_task_and_tell_the_operator(shop: Workshop):
    await alone(shop)
    shop.model.enqueue(*([REFUSED] * 60))
    await shop.chatter(20)
    await shop.idle()
    assert await shop.values("SELECT message_id FROM quarantine") == [1, 2, 3]
    assert (await shop.task()).state == "stopped"
    calls = len(shop.model.requests)
    await shop.chatter(100, start=21)
    await shop.pass_time(1_000)
    await shop.tick()
    assert len(shop.model.requests) == calls
    told = await shop.told()
    assert len(told) == 3
    assert "已停" in told[-1]
    assert "已停" not in told[0]


async def test_a_stopped_task_goes_on_when_an_operator_says_so(shop: Workshop):
    await alone(shop)
    is_strict = True

    def script(request: ModelRequest) -> Line:
        return REFUSED if is_strict else diary(request)

    shop.model.enqueue(*([script] * 60))
    await shop.chatter(20)
    await shop.idle()
    asked = len(shop.model.requests)
    is_strict = False
    await shop.command("/反思", by=OPERATOR)
    await shop.tick()
    assert [one.texts for one in shop.asked("group")[asked:]] == [
        [f"第{n}句" for n in range(4, 21)]
    ]


async def test_a_success_between_them_keeps_quarantines_from_stopping_a_task(shop: Workshop):
    await alone(shop)

    def script(request: ModelRequest) -> Line:
        texts = Shown(request).texts
        return REFUSED if any(int(text[1:-1]) % 3 == 0 for text in texts) else diary(request)

    shop.model.enqueue(*([script] * 400))
    await shop.chatter(15)
    await shop.idle()
    assert await shop.values("SELECT message_id FROM quarantine") == [3, 6, 9, 12, 15]
    assert len(await shop.texts(OF_GROUP)) == 10
    assert (await shop.task()).state == "done"


async def test_what_the_bot_says_between_does_not_hide_that_all_is_refused(shop: Workshop):
    await shop.answer_once()
    shop.model.enqueue(*([REFUSED] * 400))
    for number in range(20):
        await shop.hear(f"第{number}问", chat=PRIVATE)
        await shop.say_own(f"第{number}答", PRIVATE)
    await shop.idle()
    assert len(await shop.rows("SELECT * FROM quarantine")) == 3
    assert (await shop.task()).state == "stopped"


# --- whose task it is -------------------------------------------------------------------------


async def test_a_commit_from_another_cursor_than_expected_writes_nothing(shop: Workshop):
    await shop.chatter(3)
    await shop.pass_time(15)
    claim = await shop.claim("me")
    shop.model.hold()
    working = asyncio.create_task(reflect(shop.app, claim, "me"))
    await shop.model.until_asked()
    async with shop.app.db.transaction() as tx:
        await tx.execute_fetchall("UPDATE cursors SET last_id = 1 WHERE task = 'group'")
    shop.model.release()
    await working
    assert await shop.texts(OF_GROUP) == []
    assert await shop.rows("SELECT state FROM tasks WHERE id = ?", claim.id) == [("running",)]
    async with shop.app.db.transaction() as tx:
        await tx.execute_fetchall("UPDATE cursors SET last_id = 0 WHERE task = 'group'")


@pytest.mark.parametrize("answer", [diary, DOWN, REFUSED, "嗯", cut_off()])
async def test_who_lost_the_lease_changes_nothing(shop: Workshop, answer: Line):
    await shop.chatter(6)
    await shop.pass_time(15)
    claim = await shop.claim("me")
    shop.model.enqueue(answer, answer)
    async with shop.app.db.transaction() as tx:
        await tx.execute_fetchall(
            "UPDATE tasks SET lease_owner = 'other', lease_until = ? WHERE id = ?",
            [shop.now + LEASE_MS, claim.id],
        )
    before = await shop.rows("SELECT * FROM cursors"), await shop.rows("SELECT * FROM tasks")
    await reflect(shop.app, claim, "me")
    assert before == (
        await shop.rows("SELECT * FROM cursors"),
        await shop.rows("SELECT * FROM tasks"),
    )
    assert await shop.rows("SELECT * FROM entries") == []
    assert await shop.rows("SELECT * FROM quarantine") == []


async def test_one_message_that_another_has_quarantined_is_not_quarantined_twice(shop: Workshop):
    await shop.chatter(1)
    await shop.pass_time(15)
    claim = await shop.claim("me")
    shop.model.enqueue(REFUSED)
    async with shop.app.db.transaction() as tx:
        await tx.execute_fetchall("UPDATE tasks SET lease_owner = 'other'")
    await reflect(shop.app, claim, "me")
    assert await shop.rows("SELECT * FROM quarantine") == []
    assert await shop.told() == []
    assert lease_owner(shop.app) != "other"


# --- what a batch shows -----------------------------------------------------------------------


async def test_a_quote_is_shown_with_its_author_and_its_ref(shop: Workshop):
    await shop.hear("周五聚餐", by=CAT, platform_id="771")
    await shop.hear("同意", by=FISH, reply_to="771")
    await shop.idle()
    line = shop.asked("group")[0].lines[1]
    assert line["quote"] == {"senderId": CAT, "ref": 1, "text": "周五聚餐"}


async def test_a_recalled_quote_is_not_shown(shop: Workshop):
    [row] = await shop.hear("周五聚餐", by=CAT, platform_id="771")
    await shop.hear("同意", by=FISH, reply_to="771")
    await shop.recall(row)
    await shop.idle()
    assert "聚餐" not in shop.asked("group")[0].prompt


async def test_what_is_remembered_is_shown_to_those_it_is_of_and_never_as_a_message(
    shop: Workshop,
):
    await shop.hear("我爱吃鱼", by=FISH)
    await shop.idle()
    await shop.hear("早", by=BEAR)
    await shop.idle()
    assert shop.asked("member-batch")[1].entries == []
    await shop.hear("早", by=FISH)
    await shop.idle()
    shown = shop.asked("member-batch")[2]
    assert [entry["text"] for entry in shown.entries] == ["我爱吃鱼"]
    assert shown.texts == ["早"]

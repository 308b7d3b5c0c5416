"""Commands of memory: what each shows, to whom, and where."""

import re

import pytest

from bot.errors import ModelRefused, ModelUnavailable
from bot.llm.protocol import ModelRequest
from bot.llm.scripted import Line
from bot.model import Chat, Stream, entry_label
from bot.store.memory import StreamWriter, rewrite
from tests.memory.workshop import (
    BEAR,
    BOT,
    FISH,
    GROUP,
    OF_FISH,
    OPERATOR,
    OTHER_GROUP,
    PRIVATE,
    Workshop,
    diary,
    say,
    say_of,
)


async def remember(shop: Workshop) -> None:
    """Let the bot know one thing of the group, of a person in each group, and in private."""
    await shop.answer_once()
    await shop.hear("本群每周三例会")
    await shop.hear("我在这个群爬山", chat=GROUP)
    await shop.hear("我在那个群钓鱼", chat=OTHER_GROUP)
    await shop.hear("我私下怕黑", chat=PRIVATE)
    shop.model.enqueue(
        say(memory=[{"text": "每周三例会", "refs": [1]}]), "{}", purpose="reflect.group"
    )
    shop.model.enqueue(
        say_of(FISH, profile=[{"type": "preference", "text": "爱爬山", "refs": [2]}]),
        say_of(FISH, profile=[{"type": "preference", "text": "爱钓鱼", "refs": [1]}]),
        purpose="reflect.member-batch",
    )
    shop.model.enqueue(
        say(profile=[{"type": "note", "text": "怕黑", "refs": [1]}], summary="有些怕黑"),
        purpose="reflect.private-owner",
    )
    await shop.set(memoryConcurrency=1)
    await shop.idle()


async def test_in_private_people_see_all_that_is_kept_about_them(shop: Workshop):
    await remember(shop)
    answer = await shop.command("/我的记忆", by=FISH, chat=PRIVATE)
    for words in ("爱爬山", "爱钓鱼", "怕黑", "有些怕黑", "〔群 20001〕", "〔私聊〕", "#0001"):
        assert words in answer
    assert "例会" not in answer


async def test_in_a_group_people_see_what_a_prompt_there_may_show_of_them(shop: Workshop):
    await remember(shop)
    answer = await shop.command("/我的记忆", by=FISH)
    assert "爱爬山" in answer
    assert "爱钓鱼" in answer
    assert OTHER_GROUP.id not in answer
    assert "怕黑" not in answer


async def test_in_a_group_people_who_do_not_want_it_see_nothing_of_their_other_groups(
    shop: Workshop,
):
    await remember(shop)
    assert "跨群：关" in await shop.command("/跨群 关", by=FISH, chat=PRIVATE)
    answer = await shop.command("/我的记忆", by=FISH)
    assert "爱爬山" in answer
    assert "爱钓鱼" not in answer
    assert "跨群：开" in await shop.command("/跨群 开", by=FISH)
    assert "爱钓鱼" in await shop.command("/我的记忆", by=FISH)


async def test_who_asks_about_other_groups_without_a_word_is_told_how_it_stands(shop: Workshop):
    assert "跨群：开" in await shop.command("/跨群", by=FISH)
    await shop.command("/跨群 off", by=FISH)
    assert "跨群：关" in await shop.command("/跨群", by=FISH, chat=PRIVATE)
    assert "跨群：开" in await shop.command("/跨群", by=BEAR)
    assert "用法" in await shop.command("/跨群 也许", by=FISH)
    await shop.set(memoryMemberCrossGroup=False)
    assert "操作者目前" in await shop.command("/跨群 开", by=FISH)


async def test_dated_things_of_a_person_are_shown_in_private_alone(shop: Workshop):
    await shop.hear("我今天爬山")
    await shop.idle()
    assert "爬山" not in await shop.command("/我的记忆", by=FISH)
    assert "爬山" in await shop.command("/我的记忆", by=FISH, chat=PRIVATE)


async def test_nobody_sees_what_is_kept_of_another(shop: Workshop):
    await remember(shop)
    assert await shop.command("/我的记忆", by=BEAR) == "还没有关于你的记忆。"
    for by in (FISH, BEAR):
        assert await shop.command(f"/记忆 成员 {FISH}", by=by) == ""


async def test_operators_see_in_a_group_only_what_that_group_may_see(shop: Workshop):
    await remember(shop)
    assert "每周三例会" in await shop.command("/记忆")
    assert "例会" not in await shop.command("/记忆 群 20001", chat=OTHER_GROUP)
    answer = await shop.command(f"/记忆 成员 {FISH}", chat=OTHER_GROUP)
    assert "私聊" in answer
    assert not any(words in answer for words in ("爱钓鱼", "爱爬山", "怕黑"))


async def test_what_was_said_in_private_is_not_shown_to_operators_either(shop: Workshop):
    await remember(shop)
    mine = Chat(BOT, "private", OPERATOR)
    answer = await shop.command(f"/记忆 成员 {FISH}", chat=mine)
    assert "爱爬山" in answer
    assert "爱钓鱼" in answer
    assert "怕黑" not in answer


@pytest.mark.parametrize("words", ["成员", "成员 小鱼", "群 20001 多余", "什么 1"])
async def test_a_command_that_cannot_be_understood_says_how_it_is_meant(shop: Workshop, words: str):
    assert "用法" in await shop.command(f"/记忆 {words}")


async def test_a_forgotten_thing_is_shown_no_more(shop: Workshop):
    await shop.hear("我爱爬山")
    [row] = await shop.hear("我爱钓鱼")
    await shop.idle()
    await shop.recall(row)
    answer = await shop.command("/我的记忆", by=FISH, chat=PRIVATE)
    assert "爬山" in answer
    assert "钓鱼" not in answer


# --- reflecting now ---------------------------------------------------------------------------


async def test_what_waits_is_reflected_without_waiting_for_its_trigger(shop: Workshop):
    await shop.chatter(3)
    assert "群记忆、成员记忆" in await shop.command("/反思")
    assert await shop.tick() == 2
    assert [task.reason for task in await shop.tasks()] == ["command", "command"]


async def test_one_task_can_be_named(shop: Workshop):
    await shop.chatter(3)
    await shop.command("/反思 member")
    await shop.tick()
    assert [task.task for task in await shop.tasks()] == ["member-batch"]
    assert "用法" in await shop.command("/反思 everything")
    assert "私聊" in await shop.command("/反思 private")


async def test_a_task_that_waits_for_its_next_try_is_tried_now(shop: Workshop):
    await shop.set(memoryMemberBatchEnabled=False)
    shop.model.enqueue(*([ModelUnavailable("down")] * 5))
    await shop.chatter(3)
    await shop.idle()
    await shop.pass_time(1)
    await shop.tick()
    calls = len(shop.model.requests)
    await shop.command("/反思 group")
    await shop.tick()
    assert len(shop.model.requests) == calls + 1


async def test_where_nothing_waits_nothing_is_begun(shop: Workshop):
    assert await shop.command("/反思") == "没有等待整理的消息。"
    assert await shop.tick() == 0


async def test_a_stopped_task_is_released_even_while_nothing_waits(shop: Workshop):
    await shop.set(memoryMemberBatchEnabled=False)
    is_strict = True

    def script(request: ModelRequest) -> Line:
        return ModelRefused("no") if is_strict else diary(request)

    shop.model.enqueue(*([script] * 20))
    await shop.chatter(3)
    await shop.idle()
    assert (await shop.task()).state == "stopped"
    await shop.command("/反思 group")
    await shop.chatter(3, start=4)
    is_strict = False
    await shop.idle()
    assert (await shop.task()).state == "done"


async def test_a_switch_is_stronger_than_the_command(shop: Workshop):
    await shop.chatter(3)
    await shop.set(memoryMemberBatchEnabled=False)
    await shop.command("/反思")
    await shop.tick()
    assert [task.task for task in await shop.tasks()] == ["group"]
    assert "已关闭" in await shop.command("/反思 member")
    await shop.set(memoryEnabled=False)
    assert "已关闭" in await shop.command("/反思")


async def test_members_of_a_group_cannot_start_it(shop: Workshop):
    await shop.chatter(3)
    assert await shop.command("/反思", by=BEAR) == ""
    assert await shop.tick() == 0


async def test_tasks_are_listed_with_what_became_of_them(shop: Workshop):
    shop.model.enqueue(ModelUnavailable("HTTP 503"), purpose="reflect.group")
    await shop.chatter(3)
    await shop.idle()
    answer = await shop.command("/任务")
    assert "第 1 次失败" in answer
    assert "HTTP 503" in answer
    assert "3 条消息，3 处更新" in answer


async def test_a_group_does_not_learn_of_tasks_elsewhere(shop: Workshop):
    await remember(shop)
    await shop.chatter(1, OTHER_GROUP)
    answer = await shop.command("/任务")
    assert "group:20001" in answer
    assert "20002" not in answer
    assert FISH not in answer
    mine = Chat(BOT, "private", OPERATOR)
    assert "private:30001" in await shop.command("/任务", chat=mine)


async def test_what_does_not_fit_one_answer_is_shown_page_by_page(shop: Workshop):
    """People need every number to have the entry forgotten."""
    [row] = await shop.hear("话")

    def add(writer: StreamWriter) -> None:
        for number in range(40):
            writer.add("profile", f"第 {number} 件" + "话" * 200, [[row]], source_task="command")

    async with shop.app.db.transaction() as tx:
        await rewrite(tx, {Stream(OF_FISH, GROUP): add}, at=shop.now, by="test", why="")
    for words, by, chat in (
        ("/我的记忆", FISH, GROUP),
        ("/我的记忆", FISH, PRIVATE),
        (f"/记忆 成员 {FISH}", OPERATOR, Chat(BOT, "private", OPERATOR)),
    ):
        found: list[str] = []
        asked = words
        while True:
            answer = await shop.command(asked, by=by, chat=chat)
            found += re.findall(r"^#(\w{4}) 第 .*（证据 1）$", answer, re.MULTILINE)
            more = re.search(r"发送 (\S.* \d+) 接着看", answer)
            if not more:
                break
            assert answer.count("档案：") == 1
            asked = more[1]
        assert found == [entry_label(number) for number in range(1, 41)]
        assert "只有" in await shop.command(f"{words} 99", by=by, chat=chat)


async def test_a_page_that_is_none_is_told_how_it_is_meant(shop: Workshop):
    await remember(shop)
    for words in ("x", "0", "-1", "1 2", "9" * 30):
        assert "用法" in await shop.command(f"/我的记忆 {words}", by=FISH)
    assert "爱爬山" in await shop.command("/我的记忆 １", by=FISH)
    assert "每周三例会" in await shop.command("/记忆 1")
    assert "每周三例会" in await shop.command("/记忆 群 20001 1")
    assert "用法" in await shop.command("/记忆 群 20001 x")

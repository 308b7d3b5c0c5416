"""The built-in tools that look into memory and at members, and write notes."""

import json

import pytest

from bot.errors import ToolError
from bot.model import ANONYMOUS_ID, Entry, Sender, Stream
from bot.store.chats import member_joined
from bot.store.memory import StreamWriter, read_stream
from bot.tools.kit import toolbox
from tests.verbs.remembering import OF_FISH, OF_GROUP, change
from tests.verbs.stage import BEAR, CAT, FISH, Stage
from tests.verbs.tooling import ALONE, HERE, THERE, output, question, spoken, stored, turn, use


async def knows(stage: Stage, stream: Stream, text: str, by: int = FISH) -> tuple[str, int]:
    """Let a stream hold an entry; return its number as it is shown, and what it rests on."""
    [row] = await stored(stage, spoken(stage, f"关于{text}", stream.origin, by))
    numbers: list[int] = []

    def add(writer: StreamWriter) -> None:
        numbers.append(writer.add("profile", text, [[row]], source_task="group"))

    await change(stage, stream, add)
    [entry] = [e for e in await entries(stage, stream) if e.number == numbers[0]]
    return entry.label, row


async def entries(stage: Stage, stream: Stream) -> tuple[Entry, ...]:
    return (await read_stream(stage.app.db, stream)).memory.entries


def test_what_models_read_of_the_tools_is_short_and_well_formed(stage: Stage):
    tools = toolbox(stage.app)
    names = [tool.spec.name for tool in tools]
    assert len(set(names)) == len(names)
    for tool in tools:
        schema = json.dumps(tool.spec.parameters, ensure_ascii=False)
        assert tool.spec.parameters["type"] == "object"
        assert '"title"' not in schema
        assert len(tool.spec.description) <= 100
        assert len(schema) <= 1_000
        assert not tool.operators_only


# memory_search


async def test_memory_is_found_with_its_number_and_what_it_rests_on(stage: Stage):
    label, row = await knows(stage, OF_FISH, "喜欢在湖边钓鱼")
    await knows(stage, OF_GROUP, "周会在周三")
    told = await output(await turn(stage), "memory_search", query="钓鱼")
    assert f"#{label}" in told.text
    assert "喜欢在湖边钓鱼" in told.text
    assert "周会" not in told.text
    assert told.message_ids == (row,)


async def test_what_has_nothing_to_do_with_the_question_is_not_found(stage: Stage):
    await knows(stage, OF_FISH, "喜欢在湖边钓鱼")
    assert await use(await turn(stage), "memory_search", query="火箭发射") == "没有找到。"


async def test_what_the_prompt_shows_of_memory_is_not_found_again(stage: Stage):
    await knows(stage, OF_FISH, "喜欢在湖边钓鱼")
    asker = await turn(stage, "我爱在湖边钓鱼吗")
    # The recall pack of this very question holds it.
    assert await use(asker, "memory_search", query="湖边钓鱼") == "没有找到。"
    stage.say(int(HERE.id), FISH, "小忆在吗")
    await stage.advance(20)
    # Now a snapshot does.
    assert await use(await turn(stage), "memory_search", query="湖边钓鱼") == "没有找到。"


async def test_nothing_is_looked_up_while_memory_is_off(stage: Stage):
    await knows(stage, OF_FISH, "喜欢在湖边钓鱼")
    await stage.set(memoryEnabled=False)
    with pytest.raises(ToolError, match="记忆已关闭"):
        await use(await turn(stage), "memory_search", query="钓鱼")


# remember


async def test_a_note_rests_on_what_the_sender_says_in_this_turn(stage: Stage):
    asker = await turn(stage, "我对花生过敏，记一下")
    told = await output(asker, "remember", text="对花生过敏")
    [note] = await entries(stage, OF_FISH)
    assert (note.document, note.tier, note.text) == ("note", "working", "对花生过敏")
    assert told.text == f"记下了 #{note.label}：对花生过敏"
    rows = tuple(stored.row_id for stored in asker.scene.question.messages)
    assert note.proofs == (rows,)
    assert told.message_ids == rows


async def test_a_note_may_be_of_the_group_but_of_nobody_else(stage: Stage):
    await stored(stage, spoken(stage, "在", by=BEAR))
    asker = await turn(stage, "我们以后用英语开会")
    await use(asker, "remember", text="开会用英语", about="group")
    assert [entry.text for entry in await entries(stage, OF_GROUP)] == ["开会用英语"]
    with pytest.raises(ToolError, match="提到了别人"):
        await use(asker, "remember", text=f"{BEAR} 喜欢睡觉", about="group")
    with pytest.raises(ToolError, match="参数不对"):
        await use(asker, "remember", text="喜欢睡觉", about=str(BEAR))


@pytest.mark.parametrize("text", ["手机号 13800138000", "密码是 hunter2", ""])
async def test_what_may_not_be_remembered_is_not(stage: Stage, text: str):
    asker = await turn(stage, f"记住：{text}")
    with pytest.raises(ToolError):
        await use(asker, "remember", text=text)
    assert await entries(stage, OF_FISH) == ()


async def test_nothing_is_noted_of_the_anonymous(stage: Stage):
    asker = await turn(
        stage, "我对花生过敏", by=int(ANONYMOUS_ID), sender=Sender(ANONYMOUS_ID, anonymous=True)
    )
    with pytest.raises(ToolError):
        await use(asker, "remember", text="对花生过敏")


# forget


async def test_forgetting_is_proposed_and_left_to_the_person(stage: Stage):
    label, row = await knows(stage, OF_FISH, "喜欢在湖边钓鱼")
    for arguments in ({"id": label}, {"id": f"#{label}"}, {"query": "钓鱼的事"}):
        told = await output(await turn(stage), "forget", **arguments)
        assert f"/忘记 我#{label} — 喜欢在湖边钓鱼" in told.text
        assert "还没有忘记" in told.text
        assert told.message_ids == (row,)
    assert [entry.text for entry in await entries(stage, OF_FISH)] == ["喜欢在湖边钓鱼"]


async def test_the_proposed_command_forgets(stage: Stage):
    label, _ = await knows(stage, OF_FISH, "喜欢在湖边钓鱼")
    told = await use(await turn(stage), "forget", id=label)
    command = next(line for line in told.splitlines() if line.startswith("/")).split(" — ")[0]
    stage.say(int(HERE.id), FISH, command)
    await stage.advance(10)
    assert await entries(stage, OF_FISH) == ()


async def test_nobody_is_offered_what_is_not_theirs_to_forget(stage: Stage):
    label, _ = await knows(stage, OF_FISH, "喜欢在湖边钓鱼")
    await knows(stage, OF_GROUP, "周会在周三，大家都来")
    bear = await turn(stage, by=BEAR)
    assert await use(bear, "forget", id=label) == "没有找到提问者可以忘记的记忆。"
    for query in ("钓鱼", "周会"):
        assert await use(bear, "forget", query=query) == "没有找到提问者可以忘记的记忆。"


async def test_forgetting_asks_for_one_way_to_say_what(stage: Stage):
    for arguments in ({}, {"id": "0001", "query": "钓鱼"}, {"id": "不是编号"}):
        with pytest.raises(ToolError, match="参数不对"):
            await use(await turn(stage), "forget", **arguments)


# member_info


def told(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


async def test_a_member_is_shown_as_everybody_in_the_group_sees_them(stage: Stage):
    await stored(
        stage,
        spoken(stage, "早", by=BEAR, sender=Sender(str(BEAR), "大熊", "旧名片", role="admin")),
    )
    await stored(
        stage,
        spoken(stage, "晚", by=BEAR, sender=Sender(str(BEAR), "大熊", "新名片", role="admin")),
    )
    asker = await turn(stage)
    for arguments in ({"user_id": BEAR}, {"name": "新名"}, {"name": "旧名片"}, {"name": "大熊"}):
        [line] = told(await use(asker, "member_info", **arguments))
        assert line["userId"] == str(BEAR)
        assert (line["nickname"], line["card"], line["role"]) == ("大熊", "新名片", "管理员")
        assert sorted(map(str, line["names"])) == ["大熊", "新名片", "旧名片"]  # type: ignore[arg-type]


async def test_who_asks_for_nobody_gets_themselves(stage: Stage):
    [line] = told(await use(await turn(stage, by=CAT), "member_info"))
    assert line["userId"] == str(CAT)


async def test_when_somebody_joined_is_known_from_notices_else_from_the_platform(stage: Stage):
    await stored(stage, spoken(stage, "在", by=BEAR), spoken(stage, "在", by=CAT))
    async with stage.app.db.transaction() as tx:
        await member_joined(tx, HERE, str(BEAR), stage.now - 3 * 86_400_000)
    asker = await turn(stage)
    [bear] = told(await use(asker, "member_info", user_id=BEAR))
    assert bear["joined"] == "2026-07-26"
    [cat] = told(await use(asker, "member_info", user_id=CAT))
    assert cat["joined"] != ""
    stage.app.accounts.disconnect(HERE.bot_id)
    [cat] = told(await use(asker, "member_info", user_id=CAT))
    assert cat["joined"] == "未知"


async def test_nobody_of_another_group_is_known_here(stage: Stage):
    await stored(stage, spoken(stage, "在", THERE, CAT))
    asker = await turn(stage)
    assert await use(asker, "member_info", user_id=CAT) == "本群没有这个成员。"


async def test_in_private_nobody_else_is_told_of(stage: Stage):
    await stored(stage, spoken(stage, "在", by=BEAR))
    asker = await turn(stage, chat=ALONE)
    for arguments in ({"user_id": BEAR}, {"name": "nick"}):
        with pytest.raises(ToolError, match="只能查对方本人"):
            await use(asker, "member_info", **arguments)
    [line] = told(await use(asker, "member_info"))
    assert line == {"userId": str(FISH), "names": [f"nick-{FISH}"]}


async def test_a_question_of_several_messages_is_evidence_as_a_whole(stage: Stage):
    asker = await question(stage, "我不吃香菜", "记一下")
    await use(asker, "remember", text="不吃香菜")
    [note] = await entries(stage, OF_FISH)
    assert note.proofs == (tuple(s.row_id for s in asker.scene.question.messages),)

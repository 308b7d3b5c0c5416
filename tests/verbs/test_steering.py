"""Commands that steer a chat's turns: 停, 模型, 人设."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.commands.settings import DEFAULT_PERSONA
from bot.simulate import Person
from tests.verbs.stage import (
    AT_BOT,
    BEAR,
    FISH,
    GROUP,
    OPERATOR,
    OTHER_GROUP,
    Stage,
    open_stage,
    whole,
)
from tests.verbs.tooling import HERE

MODELS = {
    "openai_api_key": "sk-example",
    "chat_model": "big-one",
    "chat_fallback_models": ("small-one", "old-one"),
}


@pytest.fixture
async def configured(tmp_path: Path) -> AsyncIterator[Stage]:
    """A program that has three models to choose from."""
    async with open_stage(tmp_path, **MODELS) as opened:
        yield opened


async def answer_to(
    stage: Stage, who: int | Person, words: str, *, group: int | None = GROUP, seconds: float = 10
) -> str:
    count = len(stage.sent)
    if group is None:
        assert isinstance(who, int)
        stage.whisper(who, words)
    else:
        stage.say(group, who, words)
    await stage.advance(seconds)
    return "\n".join(stage.texts()[count:])


# 停


async def test_a_turn_that_thinks_is_stopped_and_says_nothing_more(stage: Stage):
    stage.model.hold()
    stage.say(GROUP, BEAR, AT_BOT, " 在吗")
    await stage.advance(5)
    assert await answer_to(stage, FISH, "/停") == "停下了。"
    stage.model.release()
    await stage.advance(60)
    assert stage.texts() == ["停下了。"]
    assert await answer_to(stage, FISH, "/停") == "现在没有在回答。"


async def test_who_waits_is_not_answered_either_and_the_next_question_is(stage: Stage):
    stage.model.hold()
    stage.say(GROUP, BEAR, AT_BOT, " 一")
    await stage.advance(5)
    stage.say(GROUP, FISH, AT_BOT, " 二")
    await stage.advance(1)
    assert await answer_to(stage, OPERATOR, "/停") == "停下了。"
    stage.model.release()
    await stage.advance(60)
    assert stage.texts() == ["停下了。"]
    assert await answer_to(stage, BEAR, "小忆，三") == "好的"


async def test_a_question_within_its_debounce_is_stopped(stage: Stage):
    stage.say(GROUP, BEAR, AT_BOT, " 在吗")
    await stage.advance(0.5)
    assert await answer_to(stage, FISH, "/停") == "停下了。"
    assert stage.model.requests == []


async def test_an_answer_that_goes_out_is_not_called_back(stage: Stage):
    stage.platform.hold()
    stage.say(GROUP, BEAR, AT_BOT, " 在吗")
    await stage.advance(5)
    stage.say(GROUP, FISH, "/停")
    await stage.settle(blocked=1)
    stage.platform.release()
    await stage.advance(10)
    assert stage.texts() == ["好的", "回答已经在发了，停不下来。"]


async def test_other_chats_go_on(stage: Stage):
    stage.model.hold()
    stage.say(OTHER_GROUP, BEAR, AT_BOT, " 在吗")
    await stage.advance(5)
    assert await answer_to(stage, FISH, "/停") == "现在没有在回答。"
    stage.model.release()
    await stage.advance(10)
    assert stage.texts()[-1] == "好的"


async def test_members_stop_nothing_in_a_group_and_their_own_turn_in_private(stage: Stage):
    stage.model.hold()
    stage.say(GROUP, BEAR, AT_BOT, " 在吗")
    stage.whisper(BEAR, "在吗")
    await stage.advance(5)
    assert await answer_to(stage, BEAR, "/停") == ""
    assert await answer_to(stage, BEAR, "/停", group=None) == "停下了。"
    stage.model.release()
    await stage.advance(30)
    assert [sent.text for sent in stage.sent if sent.chat == HERE] == ["好的"]


# 模型


async def test_the_models_and_the_choice_are_shown(configured: Stage):
    assert await answer_to(configured, OPERATOR, "/模型") == (
        "这个聊天用的模型：big-one（默认）\n"
        "它不可用时依次用：small-one、old-one\n"
        "可以选：big-one、small-one、old-one。发送 /模型 名字，或 /模型 默认"
    )


async def test_a_choice_holds_at_once_in_its_chat_and_after_a_restart(tmp_path: Path):
    async with open_stage(tmp_path, **MODELS) as stage:
        told = await answer_to(stage, OPERATOR, "/模型 Old-One")
        assert told.startswith("这个聊天用的模型：old-one（本聊天单独选择）")
        await answer_to(stage, BEAR, "小忆在吗")
        await answer_to(stage, BEAR, "小忆在吗", group=OTHER_GROUP)
        preferred = [request.preferred_model for request in stage.model.requests]
        assert preferred == ["old-one", ""]
        by = await stage.rows("SELECT model, model_by FROM chats WHERE model <> ''")
        assert by == [("old-one", str(OPERATOR))]
    async with open_stage(tmp_path, start=stage.now + 60_000, **MODELS) as stage:
        assert "old-one（本聊天单独选择）" in await answer_to(stage, OPERATOR, "/模型")
        assert "old-one at" in (await answer_to(stage, OPERATOR, "/状态")).split("、")[0]
        assert "big-one（默认）" in await answer_to(stage, OPERATOR, "/模型 默认")
        await answer_to(stage, BEAR, "小忆在吗")
        assert stage.model.requests[-1].preferred_model == ""


async def test_only_what_is_configured_can_be_chosen(configured: Stage):
    told = await answer_to(configured, OPERATOR, "/模型 huge-one")
    assert told.startswith("没有配置 huge-one。可以选：big-one、small-one、old-one。")
    assert configured.app.choices.of(HERE) == ""


async def test_a_choice_that_is_configured_no_more_changes_nothing_and_says_so(tmp_path: Path):
    async with open_stage(tmp_path, **MODELS) as stage:
        await answer_to(stage, OPERATOR, "/模型 old-one")
    fewer = {**MODELS, "chat_fallback_models": ("small-one",)}
    async with open_stage(tmp_path, start=stage.now + 60_000, **fewer) as stage:
        told = await answer_to(stage, OPERATOR, "/模型")
        assert "big-one（默认；选择过的 old-one 已不在配置里）" in told


async def test_without_a_model_it_is_said_what_is_missing(stage: Stage):
    assert "还没有配置模型" in await answer_to(stage, OPERATOR, "/模型")


async def test_models_are_the_operators_business(configured: Stage):
    for words in ("/模型", "/模型 old-one"):
        assert await answer_to(configured, FISH, words) == ""
        assert await answer_to(configured, BEAR, words, group=None) == ""


# 人设


async def test_a_persona_is_of_its_chat_and_holds_at_once(stage: Stage):
    told = await answer_to(stage, OPERATOR, "/人设 你是一只 爱冷笑话的猫")
    assert told == "这里的人设：你是一只 爱冷笑话的猫\n从下一个回答起生效。"
    await answer_to(stage, BEAR, "小忆在吗")
    await answer_to(stage, BEAR, "小忆在吗", group=OTHER_GROUP)
    shown = ["爱冷笑话的猫" in whole(request) for request in stage.model.requests]
    assert shown == [True, False]
    told = await answer_to(stage, OPERATOR, "/人设")
    assert "设置，本聊天单独设置\n" in told
    assert told.endswith("\n发送 /人设 默认 恢复。")
    assert "没有另设人设" in await answer_to(stage, OPERATOR, "/人设 默认")
    await answer_to(stage, BEAR, "小忆在吗")
    assert "爱冷笑话的猫" not in whole(stage.model.requests[-1])


async def test_without_a_persona_it_is_told_which_one_is_used_and_how_to_set_one(stage: Stage):
    told = await answer_to(stage, OPERATOR, "/人设")
    assert told == (
        f"这里没有另设人设，用的是默认的（{DEFAULT_PERSONA}）。\n"
        "想换就发送 /人设 加上想要的样子，例如 /人设 你是一位爱讲冷笑话的海盗。"
    )
    await answer_to(stage, BEAR, "小忆在吗")
    assert DEFAULT_PERSONA in whole(stage.model.requests[-1])
    admin = Person(BEAR, "大熊", role="admin")
    told = await answer_to(stage, admin, "/人设")
    assert told.endswith("\n操作者没有允许群管理员修改人设。")


async def test_a_persona_for_all_is_shown_where_there_is_no_other(stage: Stage):
    await stage.set(persona="你是管家")
    told = await answer_to(stage, OPERATOR, "/人设")
    assert told.startswith("这里的人设：你是管家\n")
    assert "全局" in told
    assert "/人设 默认" not in told


async def test_in_private_an_operator_sets_that_of_their_own_chat(stage: Stage):
    told = await answer_to(stage, OPERATOR, "/人设 你是管家", group=None)
    assert "生效" in told
    assert stage.app.settings.general.persona == ""
    await answer_to(stage, OPERATOR, "在吗", group=None)
    assert "你是管家" in whole(stage.model.requests[-1])


async def test_a_groups_admins_set_it_only_if_they_may(stage: Stage):
    admin = Person(BEAR, "大熊", role="admin")
    assert "没有允许" in await answer_to(stage, admin, "/人设 你是狗")
    assert await answer_to(stage, BEAR, "/人设 你是狗") == ""
    assert await answer_to(stage, BEAR, "/人设 你是狗", group=None) == ""
    await stage.set(groupAdminsCanSetPersona=True)
    assert "生效" in await answer_to(stage, admin, "/人设 你是狗")
    assert stage.app.settings.of(HERE).persona == "你是狗"


async def test_a_persona_has_its_bound(stage: Stage):
    assert "不超过 4000 字" in await answer_to(stage, OPERATOR, f"/人设 {'长' * 4_001}")
    assert stage.app.settings.of(HERE).persona == ""

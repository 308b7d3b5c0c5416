"""Commands: who may give them, what they do, how they answer."""

import pytest

from bot.model import Segment, Usage
from bot.simulate import Fail, Person, segments
from bot.simulate.actions import Desk
from bot.store.usage import add_usage
from tests.verbs.stage import (
    AT_BOT,
    BEAR,
    BOT,
    FISH,
    GROUP,
    NOON,
    OPERATOR,
    OTHER_GROUP,
    Stage,
    whole,
)


async def answer_to(stage: Stage, who: int | Person, words: str, *, chat: int = GROUP) -> str:
    """What somebody gets for a command in a group; empty if nothing."""
    count = len(stage.sent)
    stage.say(chat, who, words)
    await stage.advance(10)
    return "\n".join(stage.texts()[count:])


async def private_answer_to(stage: Stage, who: int, words: str) -> str:
    """What somebody gets for a command in private; empty if nothing."""
    count = len(stage.sent)
    stage.whisper(who, words)
    await stage.advance(10)
    return "\n".join(stage.texts()[count:])


OPERATORS_ONLY = ["/启用", "/停用", "/同意", f"/拉黑 {BEAR}", f"/解除 {BEAR}"]
ADMINS = ["/状态", "/模式", "/设置"]


@pytest.mark.parametrize("words", OPERATORS_ONLY)
async def test_what_is_the_operators_alone_is_given_to_nobody_else(stage: Stage, words: str):
    owner = stage.world.member(GROUP, FISH)
    impostor = Person(30_050, str(OPERATOR), card=str(OPERATOR), role="owner", title="SUPERUSER")
    for who in (owner, BEAR, impostor):
        assert await answer_to(stage, who, words) == ""
    assert await answer_to(stage, OPERATOR, words) != ""


@pytest.mark.parametrize("words", ADMINS)
async def test_owners_and_admins_of_a_group_may_do_theirs_in_it(stage: Stage, words: str):
    assert await answer_to(stage, FISH, words) != ""
    assert await answer_to(stage, BEAR, words) == ""
    assert await answer_to(stage, Person(BEAR, "大熊", role="admin"), words) != ""
    assert await answer_to(stage, OPERATOR, words) != ""
    assert await private_answer_to(stage, FISH, words) == ""


async def test_anybody_gets_help_with_what_they_may_use(stage: Stage):
    for_all = await answer_to(stage, BEAR, "/帮助")
    for_owner = await answer_to(stage, FISH, "/帮助")
    for_operator = await answer_to(stage, OPERATOR, "/帮助")
    assert "/设置" not in for_all
    assert "/设置" in for_owner
    assert "/拉黑" not in for_owner
    assert "/拉黑" in for_operator


async def test_a_command_is_answered_quoting_it_and_is_no_question(stage: Stage):
    spoken = stage.say(GROUP, BEAR, AT_BOT, " /帮助")
    await stage.advance(20)
    (sent,) = stage.sent
    assert sent.segments[0] == Segment("reply", {"id": str(spoken.message_id)})
    assert stage.model.requests == []
    assert await stage.rows("SELECT kind FROM messages ORDER BY id") == [("command",), ("notice",)]


async def test_commands_and_their_answers_are_in_no_prompt(stage: Stage):
    await answer_to(stage, OPERATOR, "/状态")
    await answer_to(stage, BEAR, "小忆在吗")
    prompt = whole(stage.model.requests[0])
    assert "/状态" not in prompt
    assert "本群模式" not in prompt


async def test_who_may_not_use_a_command_gets_neither_an_answer_nor_a_turn(stage: Stage):
    stage.say(GROUP, BEAR, AT_BOT, " /停用")
    await stage.advance(20)
    assert (stage.sent, stage.model.requests) == ([], [])


async def test_a_command_seen_twice_is_done_once(stage: Stage):
    raw = Desk(stage.world).event_of(stage.world.say(GROUP, OPERATOR, "/状态", at=NOON))
    for _ in range(2):
        stage.hear(raw)
        await stage.advance(10)
    assert len(stage.sent) == 1


async def test_a_command_of_long_ago_is_not_done(stage: Stage):
    spoken = stage.world.say(GROUP, OPERATOR, "/停用", at=NOON - 61_000)
    await stage.hear(Desk(stage.world).event_of(spoken))
    assert stage.sent == []
    assert await stage.rows("SELECT access FROM chats") == [("",)]


async def test_an_answer_that_does_not_go_out_stops_nothing(stage: Stage):
    stage.platform.behave("send_group_msg", Fail(), times=1)
    assert await answer_to(stage, OPERATOR, "/状态") == ""
    assert await answer_to(stage, OPERATOR, "/状态") != ""


# 设置 and 模式


async def test_a_setting_is_shown_with_its_value_its_reach_and_who_set_it(stage: Stage):
    before = await answer_to(stage, OPERATOR, "/设置 replyMinGapSeconds")
    assert before.startswith("replyMinGapSeconds = 3\n范围：全局（可按聊天单独设置）")
    changed = await answer_to(stage, OPERATOR, "/设置 replyMinGapSeconds 5")
    assert changed == "replyMinGapSeconds = 5（本聊天，已生效）"
    after = await answer_to(stage, FISH, "/设置 replyMinGapSeconds")
    assert "范围：本聊天单独设置" in after
    assert f"{OPERATOR} 于 2026-07-29 12:00 设置" in after
    assert stage.app.settings.of(stage.other_group).reply_min_gap_seconds == 3


async def test_a_setting_takes_effect_at_once(stage: Stage):
    await private_answer_to(stage, OPERATOR, "/设置 replyDebounceSeconds 4")
    count, begun = len(stage.sent), stage.now
    stage.say(GROUP, FISH, AT_BOT, " 在吗")
    await stage.advance(20)
    assert stage.sent[count].at - begun == 4000


async def test_a_setting_goes_back_to_its_default(stage: Stage):
    await answer_to(stage, FISH, "/设置 replyMinGapSeconds 9")
    assert "= 3（本聊天，已生效）" in await answer_to(stage, FISH, "/设置 replyMinGapSeconds 默认")


async def test_an_operator_sets_for_all_in_private_and_for_the_group_in_it(stage: Stage):
    assert "（全局，已生效）" in await private_answer_to(stage, OPERATOR, "/设置 replyMaxChars 300")
    assert "（本聊天，已生效）" in await answer_to(stage, OPERATOR, "/设置 replyMaxChars 200")
    assert stage.app.settings.of(stage.group).reply_max_chars == 200
    assert stage.app.settings.of(stage.other_group).reply_max_chars == 300
    assert "（全局，已生效）" in await answer_to(stage, OPERATOR, "/设置 sendGapSeconds 2")


@pytest.mark.parametrize("words", ["/设置 sendGapSeconds", "/设置 sendGapSeconds 0"])
async def test_a_groups_owner_neither_sees_nor_sets_what_is_global(stage: Stage, words: str):
    assert "是全局设置，只有操作者可以查看和修改" in await answer_to(stage, FISH, words)
    assert stage.app.settings.general.send_gap_seconds == 1
    assert "sendGapSeconds" not in await answer_to(stage, FISH, "/设置")


async def test_a_groups_owner_sets_the_persona_only_where_operators_allow_it(stage: Stage):
    assert "没有允许群管理员修改人设" in await answer_to(stage, FISH, "/设置 persona 你是海盗")
    await private_answer_to(stage, OPERATOR, "/设置 groupAdminsCanSetPersona true")
    assert "已生效" in await answer_to(stage, FISH, "/设置 persona 你是海盗")
    await answer_to(stage, BEAR, "小忆在吗")
    system = stage.model.requests[0].messages[0].content
    assert system.startswith("你是海盗")
    assert "12356" in system


@pytest.mark.parametrize(
    "words",
    [
        "/设置 noSuchKey",
        "/设置 replyMaxChars 很多",
        "/设置 replyMaxChars 0",
        "/设置 replyMode loud",
    ],
)
async def test_a_wrong_key_or_value_is_refused_in_words_and_changes_nothing(
    stage: Stage, words: str
):
    before = stage.app.settings.of(stage.group)
    text = await answer_to(stage, OPERATOR, words)
    assert words.split()[1] in text
    assert "已生效" not in text
    assert stage.app.settings.of(stage.group) == before


async def test_the_mode_of_a_group_is_changed_by_its_owner_in_it_alone(stage: Stage):
    assert "replyMode = auto（本聊天，已生效）" in await answer_to(stage, FISH, "/模式 auto")
    assert stage.app.settings.of(stage.group).reply_mode == "auto"
    assert stage.app.settings.of(stage.other_group).reply_mode == "mention"
    assert await private_answer_to(stage, OPERATOR, "/模式 auto") == (
        "私聊里总会回应；/模式 请在群里使用。"
    )
    assert (await answer_to(stage, FISH, "/模式")).startswith("replyMode = auto")


# 状态


async def test_the_owner_of_a_group_sees_no_models_and_no_usage(stage: Stage):
    await add_usage(stage.app.db, Usage("chat", "m", "e", stage.now, 1, 1234, 0, 0, True))
    owners = await answer_to(stage, FISH, "/状态")
    assert "本群模式：mention" in owners
    assert "1234" not in owners
    assert "模型" not in owners
    operators = await answer_to(stage, OPERATOR, "/状态")
    assert "在线账号：10001" in operators
    assert "1234" in operators


# 启用 停用 拉黑 解除


@pytest.mark.parametrize(
    "words",
    [
        "/启用 群",
        "/启用 20001",
        "/停用 群 abc",
        "/启用 人 30001",
        "/停用 群 ２０００１",
        "/拉黑",
        "/拉黑 某人",
        "/解除 ",
        "/拉黑 30001 30002",
    ],
)
async def test_a_command_that_makes_no_sense_tells_how_to_use_it(stage: Stage, words: str):
    assert "用法：" in await answer_to(stage, OPERATOR, words)
    assert await stage.rows("SELECT count(*) FROM blocks") == [(0,)]


async def test_another_chat_is_switched_by_its_id(stage: Stage):
    assert "已停用群 20002" in await private_answer_to(stage, OPERATOR, f"/停用 群 {OTHER_GROUP}")
    stage.say(OTHER_GROUP, FISH, AT_BOT, " 在吗")
    stage.say(GROUP, FISH, AT_BOT, " 在吗")
    await stage.advance(10)
    assert [request.chat for request in stage.model.requests] == [stage.group]


async def test_a_member_is_blocked_by_an_at(stage: Stage):
    stage.say(GROUP, OPERATOR, "/拉黑 ", segments.at(BEAR))
    await stage.advance(10)
    assert stage.texts() == [f"已拉黑 {BEAR}，不再回应。"]
    assert "已在黑名单里" in await answer_to(stage, OPERATOR, f"/拉黑 {BEAR}")
    assert await answer_to(stage, OPERATOR, f"/解除 {BEAR}") == f"已解除 {BEAR}。"
    assert "不在黑名单里" in await answer_to(stage, OPERATOR, f"/解除 {BEAR}")


async def test_an_operator_cannot_be_blocked(stage: Stage):
    assert "操作者不能被拉黑" in await answer_to(stage, OPERATOR, f"/拉黑 {OPERATOR}")


async def test_a_block_is_of_one_account(stage: Stage):
    await answer_to(stage, OPERATOR, f"/拉黑 {BEAR}")
    assert await stage.rows("SELECT bot_id, user_id FROM blocks") == [(str(BOT), str(BEAR))]

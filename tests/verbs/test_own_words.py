"""What the bot says on its own account is shown to no model, and an operator is always heard."""

from bot.simulate import segments
from bot.simulate.actions import Desk
from tests.verbs.stage import (
    AT_BOT,
    BEAR,
    FISH,
    GROUP,
    NOON,
    OPERATOR,
    Stage,
    whole,
)
from tests.verbs.test_catching_up import connect, heard

HELP = "我认识的命令"


async def test_a_quoted_answer_to_a_command_is_in_no_prompt(stage: Stage):
    stage.say(GROUP, FISH, "/帮助")
    await stage.advance(5)
    (answer,) = stage.sent
    assert HELP in answer.text
    stage.say(GROUP, BEAR, segments.reply(answer.message_id), AT_BOT, " 这是什么")
    await stage.advance(5)
    (request,) = stage.model.requests
    assert "这是什么" in whole(request)
    assert HELP not in whole(request)


async def test_an_answer_to_a_command_keeps_no_text(stage: Stage):
    stage.say(GROUP, FISH, "/帮助")
    await stage.advance(5)
    rows = await stage.rows("SELECT kind, text, segments FROM messages WHERE direction='outbound'")
    assert rows == [("notice", "", "[]")]


async def test_the_echo_of_an_answer_to_a_command_brings_its_text_back_neither(stage: Stage):
    stage.say(GROUP, FISH, "/帮助")
    await stage.advance(5)
    for report in stage.platform.reports:
        await stage.hear(report)
    spoken = stage.world.history(stage.group)[-1]
    await stage.hear(Desk(stage.world).event_of(spoken))
    rows = await stage.rows("SELECT kind, text FROM messages WHERE direction='outbound'")
    assert rows == [("notice", "")]


async def test_what_was_being_sent_at_a_crash_is_no_context_afterwards(stage: Stage):
    await heard(stage, stage.world.say(GROUP, FISH, "嗨", at=NOON - 900_000))
    stage.world.speak(stage.group, "档案：#0001 怕黑", at=NOON - 890_000)
    await connect(stage)
    stage.say(GROUP, BEAR, AT_BOT, " 在吗")
    await stage.advance(5)
    assert "怕黑" not in whole(stage.model.requests[-1])


async def test_an_operator_is_never_taken_for_a_bot(stage: Stage):
    await stage.set(stage.group, botAccounts=[str(OPERATOR)])
    stage.say(GROUP, OPERATOR, "/设置 botAccounts 默认")
    await stage.advance(5)
    assert "botAccounts" in stage.texts()[0]
    assert str(OPERATOR) not in stage.app.settings.of(stage.group).bot_accounts


async def test_the_bot_itself_is_not_blocked(stage: Stage):
    stage.say(GROUP, OPERATOR, "/拉黑 10001")
    await stage.advance(5)
    assert stage.texts() == ["这是机器人自己的账号。"]

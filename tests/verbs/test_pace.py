"""When the bot answers: gaps, debounce, limits and loops, to the millisecond."""

from tests.verbs.stage import AT_BOT, BEAR, FISH, GROUP, Stage


async def test_a_question_is_answered_when_its_sender_has_paused(stage: Stage):
    stage.say(GROUP, FISH, AT_BOT, " 你好")
    await stage.advance(60)
    assert (stage.texts(stage.group), stage.times()) == (["好的"], [1.2])

"""Forgetting on request, as the conversation sees it: from the very next prompt on it is gone."""

from bot.model import Chat, Scope, Stream, entry_label
from bot.remember import remember
from bot.store.memory import StreamWriter, rewrite
from tests.verbs.stage import AT_BOT, BEAR, BOT, FISH, GROUP, Stage, told, whole

CHAT = Chat(str(BOT), "group", str(GROUP))
OF_FISH = Stream(Scope(str(BOT), "member", str(FISH)), CHAT)
SECRET = "花生过敏"


async def learn(stage: Stage, text: str = f"对{SECRET}") -> str:
    """Let the bot know what the newest message of a person says, and return the label."""
    [[row]] = await stage.rows(
        "SELECT max(id) FROM messages WHERE direction = 'inbound' AND kind = 'chat'"
    )
    numbers: list[int] = []

    def add(writer: StreamWriter) -> None:
        numbers.append(writer.add("profile", text, [[row]], type="note", source_task="command"))

    async with stage.app.db.transaction() as tx:
        await rewrite(tx, {OF_FISH: add}, at=stage.now, by="test", why="")
    return entry_label(numbers[0])


async def ask(stage: Stage, text: str, by: int = FISH) -> str:
    """Ask something and return the whole prompt."""
    await stage.advance(10)
    stage.say(GROUP, by, AT_BOT, text)
    await stage.advance(10)
    return whole(stage.model.requests[-1])


async def test_a_forgotten_entry_is_absent_from_the_very_next_prompt(stage: Stage):
    stage.model.enqueue(f"知道了，你对{SECRET}")
    await ask(stage, f"我对{SECRET}")
    label = await learn(stage)
    prompt = await ask(stage, "早餐吃什么")
    assert SECRET in prompt
    stage.say(GROUP, FISH, f"/忘记 #{label}")
    await stage.advance(10)
    assert "忘记了" in stage.texts()[-1]
    for by in (FISH, BEAR):
        assert SECRET not in await ask(stage, "晚餐吃什么", by)
    assert "好的" in told(stage.model.requests[-1])
    shown = "SELECT text FROM turn_lines UNION ALL SELECT text FROM snapshots"
    assert SECRET not in str(await stage.rows(shown))
    kept = "SELECT text FROM messages WHERE direction = 'outbound'"
    assert SECRET not in str(await stage.rows(kept))


async def test_a_turn_that_is_being_prepared_begins_again_without_it(stage: Stage):
    await ask(stage, f"我对{SECRET}")
    label = await learn(stage)
    await stage.advance(10)
    stage.model.hold()
    stage.say(GROUP, BEAR, AT_BOT, "大家好")
    await stage.advance(5)
    assert SECRET in whole(stage.model.requests[-1])
    asked = len(stage.model.requests)
    stage.say(GROUP, FISH, f"/忘记 #{label}")
    await stage.advance(5)
    stage.model.release()
    await stage.advance(5)
    assert len(stage.model.requests) > asked
    assert SECRET not in whole(stage.model.requests[-1])


async def test_what_is_to_be_remembered_is_in_the_prompts_of_who_asked_and_in_nobody_elses(
    stage: Stage,
):
    await ask(stage, "你好")
    stage.say(GROUP, FISH, f"/记住 我对{SECRET}")
    await stage.advance(40 * 60)
    assert SECRET in await ask(stage, "早餐吃什么")
    assert SECRET not in await ask(stage, "早餐吃什么", BEAR)


async def test_a_note_is_in_the_very_next_prompt(stage: Stage):
    await ask(stage, "我最近在备考")
    [[row]] = await stage.rows("SELECT max(id) FROM messages WHERE direction = 'inbound'")
    await remember(stage.app, CHAT, str(FISH), [row], "正在准备考试")
    assert "正在准备考试" in await ask(stage, "在忙什么")
    assert "正在准备考试" not in await ask(stage, "在忙什么", BEAR)

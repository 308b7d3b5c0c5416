"""What is forgotten in one chat, in the chats in which the bot has told it: gone there as well."""

import json

import pytest

from bot.model import Chat, Scope, Stream
from bot.store.memory import StreamWriter, forget_message, rewrite
from bot.store.messages import Recall, recall_message
from tests.verbs.stage import AT_BOT, BEAR, BOT, FISH, GROUP, OTHER_GROUP, Stage, told, whole

TEXT = "我最爱的菜是折耳根炒腊肉"
DISH = "折耳根"
HERE = Chat(str(BOT), "group", str(GROUP))
THERE = Chat(str(BOT), "group", str(OTHER_GROUP))
ALONE = Chat(str(BOT), "private", str(FISH))


async def remember(stage: Stage) -> None:
    stage.say(GROUP, FISH, f"/记住 {TEXT}")
    await stage.advance(10)


async def ask(stage: Stage, chat: Chat, words: str, by: int = FISH) -> str:
    """Say something to the bot and return the newest prompt."""
    if chat.is_group:
        stage.say(int(chat.id), by, *((words,) if words.startswith("/") else (AT_BOT, words)))
    else:
        stage.whisper(by, words)
    await stage.advance(10)
    return whole(stage.model.requests[-1]) if stage.model.requests else ""


async def take_back(stage: Stage, row: int) -> None:
    [[platform_id]] = await stage.rows("SELECT platform_id FROM messages WHERE id = ?", row)
    async with stage.app.db.transaction() as tx:
        await recall_message(tx, Recall(HERE, platform_id, str(FISH), stage.now))
        await forget_message(tx, row, stage.now)


async def forget(stage: Stage, how: str) -> None:
    if how == "recall":
        [[row]] = await stage.rows("SELECT min(id) FROM messages")
        await take_back(stage, row)
    else:
        await ask(stage, {"here": HERE, "there": THERE, "alone": ALONE}[how], "/忘记 我#0001")


async def own_words(stage: Stage) -> str:
    """All that is kept of what the bot said."""
    rows = await stage.rows(
        "SELECT text, segments FROM messages WHERE direction = 'outbound'"
        " UNION ALL SELECT text, '' FROM turn_lines WHERE part = 'answer'"
    )
    return json.dumps(rows, ensure_ascii=False)


@pytest.mark.parametrize("how", ["here", "there", "alone", "recall"])
@pytest.mark.parametrize("chat", [HERE, THERE, ALONE], ids=["here", "there", "alone"])
async def test_answers_that_repeat_it_lose_their_text_in_whatever_chat(
    stage: Stage, how: str, chat: Chat
):
    await remember(stage)
    stage.model.enqueue(f"当然，{TEXT}，你说过")
    await ask(stage, chat, "我爱吃什么")
    await ask(stage, chat, "/我的记忆")
    assert DISH in await ask(stage, chat, "再说说")
    assert DISH in await own_words(stage)
    await forget(stage, how)
    assert DISH not in await own_words(stage)
    assert DISH not in await ask(stage, chat, "再说说")
    assert told(stage.model.requests[-1])


@pytest.mark.parametrize("how", ["here", "recall"])
async def test_so_do_those_that_repeat_what_was_made_of_the_message(stage: Stage, how: str):
    """The entry says it in other words than the message, and another stream rests on it too."""
    stage.say(GROUP, FISH, "我嘛，顿顿离不开鱼腥草")
    await stage.advance(10)
    [[row]] = await stage.rows("SELECT max(id) FROM messages")
    for scope, text in (("member", f"爱吃{DISH}炒肉"), ("group", f"群里有人爱{DISH}")):
        await add(stage, scope, text, row)
    stage.model.enqueue(f"你爱吃{DISH}炒肉", f"群里有人爱{DISH}")
    await ask(stage, THERE, "我爱吃什么")
    await ask(stage, HERE, "群里谁爱吃什么", BEAR)
    assert DISH in await own_words(stage)
    await forget(stage, how)
    assert DISH not in await own_words(stage)


@pytest.mark.parametrize("how", ["here", "recall"])
async def test_so_do_those_that_repeat_the_message_itself(stage: Stage, how: str):
    stage.say(GROUP, FISH, f"离不开{DISH}")
    await stage.advance(10)
    [[row]] = await stage.rows("SELECT max(id) FROM messages")
    await add(stage, "member", "爱吃鱼腥草", row)
    stage.model.enqueue(f"你离不开{DISH}")
    await ask(stage, THERE, "我爱吃什么")
    await forget(stage, how)
    assert DISH not in await own_words(stage)


@pytest.mark.parametrize("how", ["here", "recall"])
async def test_what_was_remembered_of_such_an_answer_falls_and_is_repeated_no_more(
    stage: Stage, how: str
):
    await remember(stage)
    stage.model.enqueue(f"{TEXT}，对吧")
    await ask(stage, THERE, "我爱吃什么")
    [[row]] = await stage.rows("SELECT max(id) FROM messages WHERE direction = 'outbound'")
    await add(stage, "group", f"聊过{DISH}的吃法", row, THERE)
    stage.model.enqueue(f"这里聊过{DISH}的吃法")
    await ask(stage, THERE, "聊过什么", BEAR)
    await forget(stage, how)
    assert DISH not in await own_words(stage)
    assert DISH not in str(await stage.rows("SELECT * FROM entries"))
    assert DISH not in await ask(stage, THERE, "聊过什么", BEAR)


async def test_what_stands_by_another_message_may_still_be_told(stage: Stage):
    await remember(stage)
    stage.say(GROUP, BEAR, "一起吃饭吧")
    await stage.advance(10)
    first, second = (
        row
        for (row,) in await stage.rows(
            "SELECT id FROM messages WHERE direction = 'inbound' ORDER BY id"
        )
    )
    await add(stage, "group", "周五一起吃饭", first)

    def prove(writer: StreamWriter) -> None:
        writer.prove(1, [second])

    async with stage.app.db.transaction() as tx:
        await rewrite(tx, {group_stream(HERE): prove}, at=stage.now, by="test", why="")
    stage.model.enqueue("周五一起吃饭")
    await ask(stage, HERE, "有什么安排", BEAR)
    await forget(stage, "recall")
    assert "周五一起吃饭" in await own_words(stage)


async def test_answers_in_chats_that_were_never_shown_it_stay(stage: Stage):
    await remember(stage)
    stage.model.enqueue(TEXT)
    await ask(stage, Chat(str(BOT), "private", str(BEAR)), "说说", BEAR)
    await forget(stage, "here")
    assert DISH in await own_words(stage)


def group_stream(chat: Chat) -> Stream:
    return Stream(Scope(str(BOT), "group", chat.id), chat)


async def add(stage: Stage, scope: str, text: str, row: int, chat: Chat = HERE) -> None:
    stream = group_stream(chat)
    if scope == "member":
        stream = Stream(Scope(str(BOT), "member", str(FISH)), chat)

    def work(writer: StreamWriter) -> None:
        writer.add("profile", text, [[row]], source_task="group")

    async with stage.app.db.transaction() as tx:
        await rewrite(tx, {stream: work}, at=stage.now, by="test", why="")

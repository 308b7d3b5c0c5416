"""Kills, restarts, outages and duplicates: nothing is lost, nothing is answered twice."""

import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from bot.simulate import Delay, Fail, RawEvent, Silence, Utterance, events, provider, segments
from bot.simulate.provider import ModelServer
from tests.e2e.harness import (
    BOT,
    QUICK,
    Room,
    RunningBot,
    new_friend,
    new_room,
    prompt,
    quoted_id,
    shown_lines,
    shown_texts,
    until,
    whole_prompt,
)

AT_BOT = segments.at(BOT.user_id)
ODD_ID = -1_712_345_678
LOCK_SECONDS = 3.0


@pytest.fixture(scope="module")
async def shared_bot(
    model_server: ModelServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningBot]:
    """A bot that tests kill; each leaves it running, with nobody waiting for an answer."""
    environ = {"API_TIMEOUT": "2"}
    directory = tmp_path_factory.mktemp("bot")
    async with RunningBot(directory, model_server, environ=environ) as bot:
        yield bot


@pytest.fixture
async def bot(shared_bot: RunningBot, models: ModelServer) -> RunningBot:
    shared_bot.client.behave_normally()
    shared_bot.client.forget()
    if not shared_bot.is_running:
        await shared_bot.start()
    return shared_bot


def said(room: Room, *content: str | segments.RawSegment, seconds_ago: float = 0) -> Utterance:
    """Let somebody say something that nobody reports to the bot."""
    at = room.bot.client.clock.now() - round(1_000 * seconds_ago)
    return room.bot.world.say(room.id, room.asker.user_id, *content, at=at)


def with_odd_id(room: Room, text: str, message_id: int = ODD_ID) -> RawEvent:
    return events.group_message(
        BOT.user_id,
        room.id,
        room.asker,
        [AT_BOT, segments.text(text)],
        message_id=message_id,
        at=room.bot.client.clock.now(),
    )


def odd_rows(room: Room) -> Sequence[object]:
    return [text for number, _, text in room.bot.messages(room.chat) if number == str(ODD_ID)]


# Duplicates


async def test_the_same_event_is_one_row_one_call_and_one_reply_also_over_a_restart(
    bot: RunningBot, room: Room
):
    event = with_odd_id(room, " 你好")
    await bot.client.deliver(event, copies=3)
    (sent,) = await bot.client.wait_for_sent(chat=room.chat)
    await bot.client.deliver(event)
    await bot.restart()
    await bot.client.deliver(event, copies=2)
    assert await room.others_sent() == [sent]
    assert quoted_id(sent) == str(ODD_ID)
    assert (len(odd_rows(room)), len(bot.requests())) == (1, 2)


async def test_two_ids_with_the_same_text_stay_two_messages(bot: RunningBot, room: Room):
    first = await room.ask("一样的话")
    await bot.answer_to(first)
    second = await room.ask("一样的话")
    await bot.answer_to(second)
    assert len(room.stored()) == 2
    assert len(bot.requests()) == 2


async def test_two_connections_deliver_everything_twice_and_nobody_notices(
    tmp_path: Path, models: ModelServer
):
    async with RunningBot(tmp_path, models, copies=2, report_self_message=True) as bot:
        room = new_room(bot)
        answers = [await room.asked(f"第 {number} 句") for number in range(3)]
        assert await room.others_sent() == answers
        assert len(room.stored()) == 4
        await until(lambda: len(bot.messages(room.chat, "outbound")) == 4, "the bot's messages")
        assert len(bot.requests()) == 4


async def test_a_report_of_the_own_message_before_the_answer_is_one_row(
    tmp_path: Path, models: ModelServer
):
    async with RunningBot(tmp_path, models, report_self_message=True) as bot:
        room = new_room(bot)
        await room.asked("第一句")
        await room.asked("第二句")
        await room.others_sent()
        ids = [str(sent.message_id) for sent in room.sent]
        await until(lambda: len(bot.messages(room.chat, "outbound")) >= 3, "the bot's messages")
        assert [number for number, _, _ in bot.messages(room.chat, "outbound")] == ids
        assert not any(line["senderId"] == "BOT" for line in shown_lines(bot.requests()[-1]))


# Restarts


async def test_the_beginning_of_the_prompt_stays_as_it_is_over_a_restart(
    bot: RunningBot, room: Room, models: ModelServer
):
    for question in ("一加一", "二加二"):
        models.enqueue(f"{question}的答案", purpose="chat")
        await room.asked(question)
    await bot.restart()
    assert "Finished server process" in bot.log
    await room.asked("三加三")
    _, second, third = bot.requests()
    assert json.dumps(prompt(third)[:3]) == json.dumps(prompt(second)[:3])
    assert [m["role"] for m in prompt(third)] == ["system", *["user", "assistant"] * 2, "user"]
    assert "二加二" in prompt(third)[3]["content"]
    assert prompt(third)[4]["content"] == "二加二的答案"


async def test_stopping_waits_for_nobody_and_what_was_not_sent_is_sent_after_the_start(
    tmp_path: Path, models: ModelServer
):
    settings = {**QUICK, "sendPerChatPerMinute": 1}
    async with RunningBot(tmp_path, models, settings=settings) as bot:
        room = new_room(bot)
        await room.asked("第一句")
        second = await room.ask("第二句")
        await until(lambda: len(bot.requests()) == 2, "the second answer")
        await bot.restart()
        await bot.answer_to(second)
        assert len(room.sent) == 2


# Kills


async def test_a_kill_between_store_and_answer_loses_and_repeats_nothing(
    bot: RunningBot, room: Room, models: ModelServer
):
    models.enqueue(provider.Silence(), purpose="chat")
    asked = await room.ask("还活着吗")
    await models.until_requests(1)
    await bot.kill()
    assert len(room.stored()) == 1
    await bot.start()
    sent = await bot.answer_to(asked)
    assert await room.others_sent() == [sent]
    assert room.stored().count(shown_texts(bot.requests()[0])[0]) == 1
    await bot.reconnect()
    assert len(await room.others_sent()) == 2


@pytest.mark.parametrize(
    "behaviour", [Silence(performed=True), Delay(30)], ids=["no answer", "a late answer"]
)
async def test_a_kill_while_sending_answers_nothing_twice(
    bot: RunningBot, room: Room, behaviour: Silence | Delay
):
    bot.client.behave("send_group_msg", behaviour, times=1)
    asked = await room.ask("发了吗")
    await bot.client.wait_for_call("send_group_msg")
    await bot.kill()
    await bot.start()
    assert [quoted_id(sent) for sent in await room.others_sent()] == [str(asked.message_id)]
    open_turns = "SELECT count(*) FROM turns WHERE state = 'sending'"
    await until(lambda: bot.rows(open_turns) == [(0,)], "the end of all turns")
    # What may have been sent is part of the conversation.
    assert [m["content"] for m in prompt(bot.requests()[-1]) if m["role"] == "assistant"] == [
        "好的"
    ]


async def test_a_kill_after_sending_answers_nothing_twice(bot: RunningBot, room: Room):
    sent = await room.asked("好了吗")
    await bot.kill()
    await bot.start()
    assert await room.others_sent() == [sent]


async def test_a_private_message_is_answered_after_a_kill_with_its_notice(
    bot: RunningBot, models: ModelServer
):
    friend = new_friend(bot)
    models.enqueue(provider.Silence(), purpose="chat")
    await bot.scene.whisper(friend.user_id, "在吗")
    await models.until_requests(1)
    await bot.kill()
    await bot.start()
    chat = bot.world.private_chat(friend.user_id)
    answer, notice = await bot.client.wait_for_sent(2, chat=chat)
    assert (answer.text, notice.text[:4]) == ("好的", "【说明】")


@pytest.mark.long
@pytest.mark.parametrize("pause_ms", [3, 30, 100])
async def test_a_kill_at_any_moment_leaves_one_row_and_at_most_one_answer(
    bot: RunningBot, room: Room, pause_ms: int
):
    await room.asked("先认识一下")
    before = len(room.sent)
    asked = said(room, AT_BOT, " 随时会断")
    await bot.client.deliver(bot.client.desk.event_of(asked))
    await bot.client.clock.sleep(pause_ms / 1_000)
    await bot.kill()
    sent_at_kill = len(bot.answers_to(asked))
    await bot.start()
    others = await room.others_sent()
    assert len(bot.answers_to(asked)) <= 1
    assert len(bot.answers_to(asked)) >= sent_at_kill
    assert len(others) <= before + 1
    assert len([text for text in room.stored() if "随时会断" in text]) == 1


# Old messages


async def test_a_message_older_than_a_minute_is_kept_and_never_answered(
    bot: RunningBot, room: Room
):
    old = said(room, AT_BOT, " 早就说过了", seconds_ago=65)
    await bot.client.deliver(bot.client.desk.event_of(old))
    assert await room.others_sent() == []
    assert any("早就说过了" in text for text in room.stored())


async def test_an_old_command_is_not_obeyed(bot: RunningBot, room: Room):
    old = said(room, "/帮助", seconds_ago=65)
    await bot.client.deliver(bot.client.desk.event_of(old))
    assert await room.others_sent() == []


# Outages


async def test_what_was_said_during_an_outage_is_kept_once_and_answered_if_fresh(
    bot: RunningBot, room: Room
):
    await room.asked("先认识一下")
    await bot.stop()
    old = said(room, AT_BOT, " 两分钟前问的", seconds_ago=120)
    missed = [said(room, f"闲聊 {number}", seconds_ago=30) for number in range(60)]
    fresh = said(room, AT_BOT, " 刚刚问的", seconds_ago=1)
    await bot.start()
    await bot.answer_to(fresh)
    others = await room.others_sent()
    await bot.reconnect()
    await bot.client.wait_for_call("get_group_msg_history")
    assert len(await room.others_sent()) == len(others) + 1
    kept = [number for number, _, _ in bot.messages(room.chat)]
    assert all(kept.count(str(spoken.message_id)) == 1 for spoken in [old, *missed, fresh])
    assert (bot.answers_to(old), len(bot.answers_to(fresh))) == ([], 1)


async def test_groups_without_rows_are_not_caught_up_with(bot: RunningBot, room: Room):
    said(room, AT_BOT, " 没人认识我")
    await bot.reconnect()
    await until(lambda: bot.log.rstrip().endswith("missed messages stored"), "the catch-up")
    asked_for = [c.params["group_id"] for c in bot.client.calls if "history" in c.action]
    assert str(room.id) not in map(str, asked_for)
    assert room.stored() == []


async def test_a_client_that_keeps_no_history_is_served_all_the_same(bot: RunningBot, room: Room):
    await room.asked("先认识一下")
    bot.client.behave("get_group_msg_history", Fail(1404, "不支持的API"))
    said(room, AT_BOT, " 错过的")
    bot.client.forget()
    await bot.reconnect()
    await bot.client.wait_for_call("get_group_msg_history")
    await room.asked("还在吗", who=room.other)
    assert not any("错过的" in text for text in room.stored())


async def test_a_recall_during_an_outage_is_in_no_prompt_once_it_is_known(
    bot: RunningBot, room: Room
):
    await room.asked("先认识一下")
    await bot.stop()
    gone = said(room, "悄悄撤回的话")
    bot.world.recall(gone.message_id)
    await bot.start()
    await room.asked("有人说话吗", who=room.other)
    assert all("悄悄撤回的话" not in whole_prompt(request) for request in bot.requests())


# The database


async def test_nothing_is_lost_while_another_process_holds_the_write_lock(
    bot: RunningBot, room: Room
):
    await room.asked("先认识一下")
    before = len(room.sent)
    intruder = sqlite3.connect(bot.database, isolation_level=None)
    try:
        intruder.execute("BEGIN IMMEDIATE")
        spoken = [await bot.scene.say(room.id, room.other.user_id, f"第 {n} 句") for n in range(19)]
        asked = await bot.scene.say(room.id, room.asker.user_id, AT_BOT, " 都收到了吗")
        await bot.client.clock.sleep(LOCK_SECONDS)
        assert not any(map(bot.is_stored, [*spoken, asked]))
        intruder.execute("ROLLBACK")
    finally:
        intruder.close()
    answer = await bot.answer_to(asked)
    assert all(map(bot.is_stored, [*spoken, asked]))
    assert len(room.stored()) == 21
    assert [sent.text for sent in room.sent[before:]] == [answer.text] == ["好的"]

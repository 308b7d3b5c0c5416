"""How much the bot lets itself be drawn into: bursts, floods, and other bots."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

from bot.simulate import OneBotClient, Person, Scene, Sent, World, segments
from bot.simulate.provider import ModelServer
from tests.e2e.harness import (
    BOT,
    DEFAULTS,
    QUICK,
    Room,
    RunningBot,
    new_room,
    shown_texts,
    until,
)

AT_BOT = segments.at(BOT.user_id)
SECOND_BOT = Person(10_002, "另一个机器人")
KNOWN_BOT = Person(2_854_196_310, "Q群管家")

GAP_SECONDS = 0.3
PER_CHAT_PER_MINUTE = 20
TOLERANCE_SECONDS = 0.05
"""The bot counts its gap where it sends, the simulator where it receives."""

RUNNING_TURNS = 3


def busiest_minute(sent: list[Sent]) -> int:
    """Return how many messages were sent within the fullest 60 seconds."""
    times = [each.at for each in sent]
    return max(sum(start <= at < start + 60_000 for at in times) for start in times)


def has_gaps(sent: list[Sent], seconds: float) -> bool:
    """Whether so much time lies between any two messages."""
    times = sorted(each.at for each in sent)
    gaps = [(later - earlier) / 1_000 for earlier, later in pairwise(times)]
    return all(gap >= seconds - TOLERANCE_SECONDS for gap in gaps)


async def until_quiet(bot: RunningBot, seconds: float) -> None:
    """Wait until nothing was sent for so long."""
    async with asyncio.timeout(60):
        count = -1
        while count != len(bot.client.calls):
            count = len(bot.client.calls)
            await asyncio.sleep(seconds)


async def test_ten_mentions_in_five_seconds_get_at_most_two_replies(
    tmp_path: Path, models: ModelServer
):
    async with RunningBot(tmp_path, models, settings=DEFAULTS) as bot:
        room = new_room(bot)
        for number in range(10):
            await room.ask(f"第 {number} 次叫你")
            await asyncio.sleep(0.5)
        await bot.client.wait_for_sent(chat=room.chat, timeout_seconds=10)
        await until_quiet(bot, 4.5)
        assert 1 <= len(room.sent) <= 2
        assert has_gaps(list(room.sent), 3)
        asked = [text for request in bot.requests() for text in shown_texts(request)]
        assert all(any(f"第 {number} 次" in text for text in asked) for number in range(10))


async def test_a_flood_of_200_messages_respects_the_gap_and_the_caps(
    tmp_path: Path, models: ModelServer
):
    settings = {
        **QUICK,
        "sendGapSeconds": GAP_SECONDS,
        "sendPerChatPerMinute": PER_CHAT_PER_MINUTE,
    }
    async with RunningBot(tmp_path, models, settings=settings) as bot:
        crowd = [Person(40_000 + number, f"群友{number}") for number in range(25)]
        room = new_room(bot, "热闹群", *crowd)
        for wave in range(8):
            for person in crowd:
                spoken = bot.world.say(
                    room.id, person, AT_BOT, f" 第 {wave} 轮", at=bot.client.clock.now()
                )
                await bot.client.deliver(bot.client.desk.event_of(spoken))
            await asyncio.sleep(0.8)
        await bot.client.wait_for_sent(PER_CHAT_PER_MINUTE, chat=room.chat, timeout_seconds=20)
        await until_quiet(bot, 2)
        sent = list(room.sent)
        assert busiest_minute(sent) == len(sent) == PER_CHAT_PER_MINUTE
        assert has_gaps(sent, GAP_SECONDS)
        assert len(room.stored()) == 200
        # Another chat does not wait for the flooded one.
        await new_room(bot).asked()


async def test_replies_to_one_person_are_limited_by_the_minute(tmp_path: Path, models: ModelServer):
    settings = {**QUICK, "replyPerMemberPerMinute": 3}
    async with RunningBot(tmp_path, models, settings=settings) as bot:
        room = new_room(bot)
        for number in range(3):
            await room.asked(f"第 {number} 句")
        refused = await room.ask("第四句")
        await room.others_sent()
        assert bot.answers_to(refused) == []
        assert len(bot.requests()) == 4


# Bots


async def test_known_bots_get_no_answer_and_no_memory(bot: RunningBot, room: Room):
    bot.world.join(room.id, KNOWN_BOT)
    await room.say(KNOWN_BOT, AT_BOT, " 你好，我也是机器人")
    await room.say(KNOWN_BOT, "/帮助")
    assert await room.others_sent() == []
    counted = (
        "SELECT m.counted FROM messages AS m JOIN members AS p ON p.id = m.member_id"
        " WHERE p.user_id = ?"
    )
    assert bot.rows(counted, str(KNOWN_BOT.user_id)) == [(0,), (0,)]


async def test_a_bot_that_the_operator_names_gets_no_answer(bot: RunningBot, room: Room):
    await room.asked("我是人")
    await room.order(f"/设置 botAccounts {room.asker.user_id}")
    before = len(room.sent)
    await room.ask("我不是人")
    assert len(await room.others_sent()) == before


async def test_accounts_of_the_same_store_do_not_answer_each_other(bot: RunningBot, room: Room):
    world = World(SECOND_BOT)
    world.add_group(room.id, "测试群", BOT, room.asker)
    bot.world.join(room.id, SECOND_BOT)
    async with OneBotClient(bot.endpoint, world) as second:
        accounts = "SELECT count(*) FROM accounts WHERE bot_id = ?"
        await until(
            lambda: bot.rows(accounts, str(SECOND_BOT.user_id)) == [(1,)], "the second account"
        )
        await room.say(SECOND_BOT, AT_BOT, " 在吗")
        assert await room.others_sent() == []
        await Scene(second).say(room.id, room.asker.user_id, segments.at(SECOND_BOT.user_id))
        (sent,) = await second.wait_for_sent()
        assert sent.chat.bot_id == str(SECOND_BOT.user_id)


@asynccontextmanager
async def two_bots(
    directory: Path, models: ModelServer, group_id: int
) -> AsyncIterator[tuple[RunningBot, RunningBot]]:
    """Run two bots that know nothing of each other in one group."""
    settings = {**QUICK, "maxConsecutiveTurns": RUNNING_TURNS}
    first_home, second_home = directory / "first", directory / "second"
    first_home.mkdir()
    second_home.mkdir()
    worlds = (World(BOT), World(SECOND_BOT))
    asker = Person(30_001, "起头的人")
    for world, other in zip(worlds, (SECOND_BOT, BOT), strict=True):
        world.add_group(group_id, "机器人群", other, asker)
    async with (
        RunningBot(first_home, models, worlds[0], settings=settings) as first,
        RunningBot(second_home, models, worlds[1], settings=settings) as second,
    ):
        yield first, second


async def relay(source: RunningBot, target: RunningBot, group_id: int, until_told: asyncio.Event):
    """Carry what one bot says in the group to the other, calling it by an @."""
    carried = 0
    account = source.world.account
    while not until_told.is_set():
        for sent in source.client.sent[carried:]:
            carried += 1
            callee = segments.at(target.world.account.user_id)
            await target.scene.say(group_id, account, callee, f" {sent.text}")
        await asyncio.sleep(0.01)


async def test_two_bots_wired_together_fall_silent(tmp_path: Path, models: ModelServer):
    group_id = 20_001
    models.answer = "你说得对，请继续"
    async with two_bots(tmp_path, models, group_id) as (first, second):
        done = asyncio.Event()
        relays = asyncio.gather(
            relay(first, second, group_id, done), relay(second, first, group_id, done)
        )
        try:
            await first.scene.say(group_id, 30_001, AT_BOT, " 开始吧")
            await until_quiet(first, 2)
        finally:
            done.set()
            await relays
        # The answer to the person, then as many to the other bot as the setting allows.
        assert RUNNING_TURNS <= len(first.client.sent) <= RUNNING_TURNS + 2
        assert len(second.client.sent) <= RUNNING_TURNS + 2
        count = len(first.client.sent)
        await first.scene.say(group_id, SECOND_BOT, AT_BOT, " 你还在吗")
        await until_quiet(first, 1)
        assert len(first.client.sent) == count

"""While the database takes nothing, whatever happens waits for it, and no text goes astray."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from loguru import logger

from bot.alert import FULL_STORE
from bot.catch_up import welcome
from bot.simulate import Fail, RawEvent, events
from bot.worker import tick
from tests.verbs.stage import (
    AT_BOT,
    BEAR,
    BOT,
    FISH,
    GROUP,
    NOON,
    OPERATOR,
    Stage,
    open_stage,
    whole,
)

SECRET = "我的秘密是西瓜"
LONG = "长" * 3_000


async def pragma(stage: Stage, text: str) -> None:
    """Set something of the connection that writes."""
    async with stage.app.db.transaction() as tx:
        await tx.execute_fetchall(f"PRAGMA {text}")


@asynccontextmanager
async def locked(stage: Stage) -> AsyncIterator[None]:
    """Let another connection hold the write lock, longer than the program waits for it at once."""
    await pragma(stage, "busy_timeout = 1")
    other = sqlite3.connect(stage.app.db.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@asynccontextmanager
async def no_room(stage: Stage) -> AsyncIterator[None]:
    """Let the database not grow any more."""
    await pragma(stage, "max_page_count = 1")
    yield
    await pragma(stage, f"max_page_count = {1 << 30}")


@asynccontextmanager
async def logged(level: str = "WARNING") -> AsyncIterator[list[str]]:
    """Gather what is logged."""
    lines: list[str] = []
    sink = logger.add(lines.append, level=level, format="{message}")
    try:
        yield lines
    finally:
        logger.remove(sink)


async def a_while() -> None:
    """Let some attempts fail, in real time."""
    await asyncio.sleep(0.4)


async def until_rows(stage: Stage, sql: str, wanted: list[tuple[object, ...]]) -> None:
    """Wait, in real time, until what waited to be written is there; alerts are errands of nobody
    whom the stage knows."""
    found: list[tuple[object, ...]] = []
    for _ in range(500):
        found = await stage.rows(sql)
        if found == wanted:
            break
        await asyncio.sleep(0.02)
    assert found == wanted


async def kept_text(stage: Stage) -> str:
    messages = await stage.rows("SELECT text || segments FROM messages")
    lines = await stage.rows("SELECT text FROM turn_lines")
    return "\n".join(str(row[0]) for row in [*messages, *lines])


# Recalls


async def test_a_recall_that_meets_a_lock_is_done_when_the_lock_is_gone(stage: Stage):
    spoken = stage.say(GROUP, FISH, SECRET)
    await stage.settle()
    async with logged() as lines, locked(stage):
        stage.recall(spoken)
        await a_while()
        assert SECRET in await kept_text(stage)
    await stage.settle()
    assert SECRET not in await kept_text(stage)
    assert len([line for line in lines if "waits to be stored" in line]) == 1
    stage.say(GROUP, BEAR, AT_BOT, " 说说看")
    await stage.advance(60)
    assert len(stage.model.requests) == 1
    assert SECRET not in whole(stage.model.requests[0])


async def test_a_question_asked_while_a_recall_waits_is_answered_without_it(stage: Stage):
    spoken = stage.say(GROUP, FISH, SECRET)
    await stage.settle()
    question = stage.say(GROUP, BEAR, AT_BOT, " 说说看")
    await stage.settle()
    async with locked(stage):
        stage.recall(spoken)
        await a_while()
        await stage.clock.advance(5)
        await a_while()
        assert stage.model.requests == []
    await stage.advance(60)
    assert [SECRET in whole(request) for request in stage.model.requests] == [False]
    assert len(stage.sent) == 1
    assert question.message_id


@pytest.mark.parametrize("by", [FISH, BEAR], ids=["the-question", "its-context"])
async def test_a_turn_that_shows_what_waits_to_be_taken_back_is_stopped_at_once(
    stage: Stage, by: int
):
    stage.model.hold()
    context = stage.say(GROUP, BEAR, SECRET if by == BEAR else "嗨")
    await stage.settle()
    question = stage.say(GROUP, FISH, AT_BOT, " ", SECRET if by == FISH else "说说看")
    await stage.advance(5)
    assert stage.model.held == 1
    async with locked(stage):
        stage.recall(context if by == BEAR else question)
        await a_while()
        assert stage.model.held == 0
        stage.model.release()
        await a_while()
        assert stage.sent == []
    await stage.advance(60)
    assert [SECRET in whole(request) for request in stage.model.requests[1:]] == [False] * (
        by == BEAR
    )
    assert SECRET not in await kept_text(stage)


async def test_a_message_and_its_recall_that_wait_together_leave_no_text(stage: Stage):
    stage.say(GROUP, FISH, "嗨")
    await stage.settle()
    async with locked(stage):
        spoken = stage.say(GROUP, FISH, AT_BOT, " ", SECRET)
        stage.recall(spoken)
        await a_while()
        # Longer than an early recall is kept.
        await stage.clock.advance(11 * 60)
        stage.recall(stage.say(GROUP, BEAR, "别的"))
        await a_while()
    await stage.advance(60)
    assert stage.model.requests == []
    assert await stage.rows("SELECT text FROM messages WHERE recalled_at IS NULL") == [("嗨",)]
    assert SECRET not in await kept_text(stage)


# Everything else


Looks = tuple[RawEvent, str]

NOTICES: dict[str, Looks] = {
    "card": (
        events.group_card(BOT, GROUP, FISH, "鱼一", at=NOON),
        "SELECT count(*) FROM memberships WHERE card = '鱼一'",
    ),
    "admin": (
        events.group_admin(BOT, GROUP, FISH, at=NOON),
        "SELECT count(*) FROM memberships WHERE role = 'admin'",
    ),
    "joined": (
        events.group_increase(BOT, GROUP, FISH, at=NOON),
        "SELECT count(*) FROM memberships WHERE joined_at IS NOT NULL",
    ),
    "left": (
        events.group_decrease(BOT, GROUP, FISH, at=NOON, sub_type="leave"),
        "SELECT count(*) FROM memberships WHERE left_at IS NOT NULL",
    ),
    "removed": (
        events.group_decrease(BOT, GROUP, BOT, at=NOON, sub_type="kick_me"),
        "SELECT count(*) FROM chats WHERE removed_at IS NOT NULL",
    ),
    "renamed": (
        events.group_name(BOT, GROUP, FISH, "新名字", at=NOON),
        "SELECT count(*) FROM chats WHERE name = '新名字'",
    ),
    "muted": (
        events.group_ban(BOT, GROUP, BOT, at=NOON),
        "SELECT count(*) FROM chats WHERE muted_until > 0",
    ),
    "request": (
        events.friend_request(BOT, FISH, at=NOON, flag="flag-1"),
        "SELECT count(*) FROM requests",
    ),
}


@pytest.mark.parametrize(("raw", "looks"), NOTICES.values(), ids=NOTICES)
async def test_every_notice_that_meets_a_lock_is_kept_when_the_lock_is_gone(
    stage: Stage, raw: RawEvent, looks: str
):
    stage.say(GROUP, FISH, "嗨")
    await stage.settle()
    async with locked(stage):
        stage.hear(raw)
        await a_while()
    await stage.advance(60)
    assert await stage.rows(looks) == [(1,)]


async def test_notices_that_wait_are_kept_in_the_order_in_which_they_came(stage: Stage):
    async with locked(stage):
        for number in range(9):
            stage.hear(events.group_card(BOT, GROUP, FISH, f"鱼{number}", at=NOON))
        await a_while()
    await stage.settle()
    assert await stage.rows("SELECT card FROM memberships") == [("鱼8",)]


async def test_a_connection_that_meets_a_lock_is_caught_up_when_the_lock_is_gone(stage: Stage):
    async with locked(stage):
        stage.spawn(welcome(stage.app, str(BOT)))
        await a_while()
    await stage.settle()
    assert await stage.rows("SELECT bot_id FROM accounts") == [(str(BOT),)]


async def test_a_new_group_name_in_a_message_costs_it_no_answer(stage: Stage):
    stage.world.rename_group(GROUP, "又一个名字")
    async with locked(stage):
        stage.say(GROUP, FISH, AT_BOT, " 在吗")
        await a_while()
    await stage.advance(60)
    assert len(stage.sent) == 1
    assert await stage.rows("SELECT name FROM chats") == [("又一个名字",)]


# A full disk


async def test_messages_that_find_no_room_are_stored_and_answered_once_there_is(stage: Stage):
    async with logged() as lines, no_room(stage):
        for number in range(60):
            stage.say(GROUP, BEAR, f"{number} {LONG}")
        stage.say(GROUP, FISH, AT_BOT, " 在吗")
        await a_while()
        assert await stage.rows("SELECT count(*) FROM messages") == [(0,)]
    await stage.advance(20)
    texts = [text for (text,) in await stage.rows("SELECT text FROM messages ORDER BY id")]
    assert [text.split()[0] for text in texts[:60]] == [str(number) for number in range(60)]
    assert len(stage.sent) == 1
    assert len([line for line in lines if "waits to be stored" in line]) == 1


async def test_operators_are_told_of_a_full_disk_once_and_all_of_them(tmp_path: Path):
    operators = frozenset({str(OPERATOR), str(BEAR)})
    async with open_stage(tmp_path, superusers=operators) as stage, no_room(stage):
        for number in range(10):
            stage.say(GROUP, FISH, f"{number} {LONG}")
        await a_while()
        for _ in range(3):
            await tick(stage.app)
            await stage.clock.advance(10)
            await a_while()
        assert {sent.chat.id for sent in stage.sent} == operators
        assert stage.texts() == [FULL_STORE] * 2
        await pragma(stage, f"max_page_count = {1 << 30}")
        await until_rows(stage, "SELECT count(*) FROM messages WHERE kind = 'notice'", [(2,)])


async def test_a_lock_is_no_news_for_operators(stage: Stage):
    async with locked(stage):
        stage.say(GROUP, FISH, "嗨")
        await a_while()
        await tick(stage.app)
        await a_while()
    await stage.advance(10)
    assert stage.sent == []


async def test_how_a_send_ended_is_kept_once_it_can_be(stage: Stage):
    stage.platform.behave("send_group_msg", Fail(), times=1)
    stage.platform.hold()
    stage.say(GROUP, FISH, AT_BOT, " 在吗")
    await stage.settle()
    await stage.clock.advance(2)
    await stage.settle()
    assert stage.platform.held == 1
    async with locked(stage):
        stage.platform.release()
        await a_while()
    await stage.advance(10)
    assert await stage.rows("SELECT state, error FROM turns") == [("failed", "SendRejected")]
